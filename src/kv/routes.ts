// /v1/kv

import { type Static, Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageRequest, pageUpTo } from '../contract/page.ts'
import { type Context, type Param, Reply, route } from '../contract/route.ts'
import {
  AnyJson,
  Json,
  Nullable,
  Page,
  PageQuery,
  RawJson,
  Shape,
  Time,
  value_bytes_max,
} from '../contract/schemas.ts'
import {
  etag,
  ifNoneMatchNames,
  isKey,
  type KeyRef,
  key_bytes_max,
  namespace_form,
  ownerOf,
} from './entry.ts'
import * as kv from './service.ts'
import type { ListedRow } from './store.ts'

const tag = 'Key-value store'
const key_columns = ['key', 'version', 'expires_at', 'updated_at']

const namespace: Param = {
  schema: Type.String({
    pattern: namespace_form.source,
    description: '__… is reserved, save your own __agent.<agent_id>.',
  }),
  read: (decoded) => (namespace_form.test(decoded) ? decoded : null),
  message: `must match ${namespace_form.source}`,
}

const key: Param = {
  schema: Type.String({
    minLength: 1,
    maxLength: key_bytes_max,
    description: '1 to 512 bytes of UTF-8, percent-encoded once.',
  }),
  read: (decoded) => (isKey(decoded) ? decoded : null),
  message: 'must be 1 to 512 bytes of UTF-8 without control characters, and not "." or ".."',
}

const IfMatch = 'Versions that may be there: `3`, `"3"`, a list, or `*`. Otherwise 412.'
const Version = Type.Integer({ description: 'Starts at 1, rises by 1, never repeats for a key.' })
const ExpiresAt = Nullable(Time('Absent from then on; null for never.'))
const UpdatedAt = Time('When this version was written.')

const Entry = Shape('Entry', {
  namespace: Type.String(),
  key: Type.String(),
  value: Json('The exact text that was put.'),
  version: Version,
  expires_at: ExpiresAt,
  updated_at: UpdatedAt,
})
const KeyPage = Page(
  Shape('ListedKey', { key: Type.String(), version: Version, expires_at: ExpiresAt, updated_at: UpdatedAt }),
)
const KeyQuery = Type.Object({
  ...PageQuery,
  prefix: Type.Optional(Type.String({ description: 'Only keys that start with it.' })),
})
/** Of the version that is read or was written. */
const version_header = { 'X-Version': Type.String() }
const read_headers = {
  'If-Match': IfMatch,
  'If-None-Match': 'A version that the caller has already: 304 when it is still there.',
}

export const getValue = route({
  group: v1,
  method: 'GET',
  path: '/v1/kv/:namespace/:key',
  tag,
  summary: 'Read a value and its version',
  sdk: { name: 'kv.get' },
  cli: {
    usage: 'kv get <namespace> <key>',
    about: 'Print a value: the exact JSON text that was put',
    group: 'Values by namespace and key',
    examples: [
      'waystation kv get state last-run',
      'waystation kv get state greeting --string',
      'waystation kv get state last-run --json   # with its version and times',
    ],
    options: { if_version: ['--if-version <n>', 'only this version; another is a conflict'] },
  },
  auth: ['agent'],
  params: { namespace, key },
  headers: read_headers,
  replies: { 200: { body: Entry, headers: version_header }, 304: { body: null } },
  errors: ['KEY_NOT_FOUND', 'VERSION_MISMATCH', 'NAMESPACE_FORBIDDEN'],
  handle: (context, { params, header }) => entryRead(context, params, header),
})

export const putValue = route({
  group: v1,
  method: 'PUT',
  path: '/v1/kv/:namespace/:key',
  tag,
  summary: 'Write a value, or only if its version is the expected one',
  sdk: {
    name: 'kv.put',
    arguments: ['value'],
    retry: {
      safe: { without: ['cas_version', 'if-match', 'if-none-match'] },
      why: 'without a condition the same value is put again; with one, the repeat could not tell its own write from another',
    },
  },
  cli: {
    usage: 'kv put <namespace> <key> [value]',
    about: 'Put a value: JSON from the argument, a file or standard input',
    examples: [
      `waystation kv put state last-run '{"rows": 42}' --ttl 7d`,
      'waystation kv put state greeting "good morning" --string',
      'waystation kv put state report --file report.json --if-version 3',
      'date +%s | waystation kv put state lock --if-absent',
    ],
    options: {
      ttl_seconds: ['--ttl <duration>', 'it expires after this; without it never'],
      cas_version: ['--if-version <n>', 'only over this version'],
    },
    or: { cas_version: ['--if-absent', 'only when there is no such key', 0] },
  },
  auth: ['agent'],
  params: { namespace, key },
  headers: {
    'If-Match': IfMatch,
    'If-None-Match': 'Versions that must not be there; `*` means only if absent.',
  },
  body: Type.Object({
    value: AnyJson(value_bytes_max, 'Any JSON, at most 256 KiB; comes back as the same text.'),
    ttl_seconds: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Without it the key does not expire.' }),
    ),
    cas_version: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Write only over this version; 0 means only if absent.' }),
    ),
  }),
  replies: {
    200: {
      body: Shape('PutResult', {
        namespace: Type.String(),
        key: Type.String(),
        version: Version,
        expires_at: ExpiresAt,
      }),
      headers: version_header,
    },
  },
  errors: ['VERSION_MISMATCH', 'NAMESPACE_FORBIDDEN', 'QUOTA_EXCEEDED'],
  async handle({ db, caller, dependencies }, { params, body, header }) {
    const { version, expires_at } = await kv.put(db, caller, dependencies.plans, params, {
      value: body.value.text,
      ttl_seconds: body.ttl_seconds,
      cas_version: body.cas_version,
      if_match: header('if-match'),
      if_none_match: header('if-none-match'),
    })
    return new Reply(
      200,
      { namespace: params.namespace, key: params.key, version, expires_at: isoOrNull(expires_at) },
      { 'x-version': String(version) },
    )
  },
})

export const deleteValue = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/kv/:namespace/:key',
  tag,
  summary: 'Remove a key',
  sdk: {
    name: 'kv.delete',
    retry: {
      safe: { without: ['if-match'] },
      why: 'without a condition; absent is absent',
      done: { code: 'KEY_NOT_FOUND' },
    },
  },
  cli: {
    usage: 'kv delete <namespace> <key>',
    about: 'Delete a key',
    examples: ['waystation kv delete state last-run --if-version 3'],
  },
  auth: ['agent'],
  destructive: true,
  params: { namespace, key },
  headers: { 'If-Match': IfMatch },
  replies: { 204: { body: null } },
  errors: ['KEY_NOT_FOUND', 'VERSION_MISMATCH', 'NAMESPACE_FORBIDDEN'],
  handle: ({ db, caller }, { params, header }) => kv.remove(db, caller, params, header('if-match')),
})

export const listKeys = route({
  group: v1,
  method: 'GET',
  path: '/v1/kv/:namespace',
  tag,
  summary: 'List the keys of a namespace in bytewise order',
  sdk: { name: 'kv.list' },
  cli: {
    usage: 'kv list <namespace>',
    examples: ['waystation kv list state --prefix user/ --all'],
    columns: key_columns,
  },
  auth: ['agent'],
  params: { namespace },
  query: KeyQuery,
  replies: { 200: { body: KeyPage } },
  errors: ['NAMESPACE_FORBIDDEN'],
  handle: (context, { params, query }) => keysListed(context, params.namespace, query),
})

export const listNamespaces = route({
  group: v1,
  method: 'GET',
  path: '/v1/namespaces',
  tag,
  summary: 'List the namespaces that hold a key, private ones included, in bytewise order',
  sdk: { name: 'namespaces.list' },
  cli: {
    usage: 'namespace list',
    about: 'List the namespaces that hold a key, those of single agents included',
    group: 'Keys and values of all agents, to read with the admin key',
    examples: ['waystation namespace list --all'],
    columns: ['namespace', 'agent_id'],
  },
  auth: ['admin'],
  query: Type.Object(PageQuery),
  replies: {
    200: {
      body: Page(
        Shape('Namespace', {
          namespace: Type.String(),
          agent_id: Nullable(
            Type.String({ description: 'Whose private namespace it is; null for a shared one.' }),
          ),
        }),
      ),
    },
  },
  errors: [],
  async handle(context, { query }) {
    const { db, caller, now } = context
    const { rows_max, after } = pageRequest(context, query)
    const [namespace = '', key = null] = (after ?? []) as [string?, string?]
    const place = { namespace, key: after ? key : '' }
    const { names, next } = await kv.namespaces(db, caller.tenant_id, place, now, rows_max - 1)
    const items = names.map((name) => ({ namespace: name, agent_id: ownerOf(name) }))
    return pageUpTo(context, items, next && [next.namespace, ...(next.key === null ? [] : [next.key])])
  },
})

export const listNamespaceKeys = route({
  group: v1,
  method: 'GET',
  path: '/v1/namespaces/:namespace/keys',
  tag,
  summary: 'List the keys of any namespace, in bytewise order',
  sdk: { name: 'namespaces.keys' },
  cli: {
    usage: 'namespace keys <namespace>',
    examples: ['waystation namespace keys state --prefix user/ --all'],
    columns: key_columns,
  },
  auth: ['admin'],
  params: { namespace },
  query: KeyQuery,
  replies: { 200: { body: KeyPage } },
  errors: ['NAMESPACE_FORBIDDEN'],
  handle: (context, { params, query }) => keysListed(context, params.namespace, query),
})

export const getNamespaceKey = route({
  group: v1,
  method: 'GET',
  path: '/v1/namespaces/:namespace/keys/:key',
  tag,
  summary: 'Read a value and its version in any namespace',
  sdk: { name: 'namespaces.get' },
  cli: {
    usage: 'namespace get <namespace> <key>',
    about: 'Print a value: the exact JSON text that was put',
    examples: [
      'waystation namespace get state last-run',
      'waystation namespace get state last-run --json   # with its version and times',
    ],
    options: { if_version: false },
  },
  auth: ['admin'],
  params: { namespace, key },
  headers: read_headers,
  replies: { 200: { body: Entry, headers: version_header }, 304: { body: null } },
  errors: ['KEY_NOT_FOUND', 'VERSION_MISMATCH', 'NAMESPACE_FORBIDDEN'],
  handle: (context, { params, header }) => entryRead(context, params, header),
})

type Reading = Context<AgentCaller | AdminCaller>

async function entryRead(
  { db, caller, now }: Reading,
  ref: KeyRef,
  header: (name: string) => string | null,
): Promise<Reply> {
  const entry = await kv.read(db, caller, ref, header('if-match'), now)
  const headers = { 'x-version': String(entry.version), etag: etag(entry.version) }
  const if_none_match = header('if-none-match')
  if (if_none_match !== null && ifNoneMatchNames(if_none_match, entry.version))
    return new Reply(304, null, headers)
  return new Reply(
    200,
    {
      namespace: ref.namespace,
      key: ref.key,
      value: new RawJson(entry.value),
      version: entry.version,
      expires_at: isoOrNull(entry.expires_at),
      updated_at: iso(entry.updated_at),
    },
    headers,
  )
}

async function keysListed(context: Reading, namespace: string, query: Static<typeof KeyQuery>) {
  const { db, caller, now } = context
  const prefix = query.prefix ?? ''
  kv.requireAllowed(caller, { namespace, key: prefix })
  const request = pageRequest(context, query)
  const range = { prefix, after: request.after ? String(request.after[0]) : null }
  const { rows, reached } = await kv.list(db, caller.tenant_id, namespace, range, now, request.rows_max)
  return pageOf(context, request, {
    rows,
    itemOf: listedOf,
    positionOf: (row) => [row.key],
    reached: reached === null ? null : [reached],
  })
}

function listedOf(row: ListedRow) {
  return {
    key: row.key,
    version: row.version,
    expires_at: isoOrNull(row.expires_at),
    updated_at: iso(row.updated_at),
  }
}
