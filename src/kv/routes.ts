// /v1/kv

import { Type } from 'typebox'
import { isoOrNull } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { Reply, route } from '../contract/route.ts'
import { AnyJson, Shape, value_bytes_max } from '../contract/schemas.ts'
import * as kv from './service.ts'
import {
  Entry,
  ExpiresAt,
  entryRead,
  IfMatch,
  KeyPage,
  KeyQuery,
  key,
  key_columns,
  keysListed,
  namespace,
  read_headers,
  tag,
  Version,
  version_header,
} from './shapes.ts'

export const getValue = route({
  group: v1,
  method: 'GET',
  path: '/v1/kv/:namespace/:key',
  tag,
  summary: 'Read a value and its version',
  description:
    'The value is the exact JSON text that was put. With `If-None-Match`, 304 while the version is the same.',
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
  description:
    'Compare and set with `cas_version`, `If-Match` or `If-None-Match`: 409, or 412 for the headers, when the version differs. `ttl_seconds` counts from now.',
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
      ttl_seconds: ['--ttl <duration>', 'it expires after this; default never'],
      cas_version: ['--if-version <n>', 'only over this version'],
    },
    or: { cas_version: ['--if-absent', 'only when there is no such key', 0] },
  },
  auth: ['agent'],
  emits: ['kv.put', 'kv.expired'],
  params: { namespace, key },
  headers: {
    'If-Match': IfMatch,
    'If-None-Match': 'Versions that must not be stored; `*` means only if absent.',
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
      body: Shape(
        'PutResult',
        { of: 'Entry', about: 'The version that a put wrote.' },
        {
          namespace: Type.String(),
          key: Type.String(),
          version: Version,
          expires_at: ExpiresAt,
        },
      ),
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
  description: 'With `If-Match`, only that version. Version numbers continue when the key is written again.',
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
  emits: ['kv.deleted'],
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
  description: 'Keys with their versions, without values. `prefix` narrows the list.',
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
