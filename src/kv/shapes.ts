// Parameters and answers that the routes share.

import { type Static, Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import { pageOf, pageRequest } from '../contract/page.ts'
import { type Context, type Param, Reply } from '../contract/route.ts'
import { Json, Nullable, Page, PageQuery, RawJson, Shape, Time } from '../contract/schemas.ts'
import { etag, ifNoneMatchNames, isKey, type KeyRef, key_bytes_max, namespace_form } from './entry.ts'
import { list } from './lists.ts'
import { read, requireAllowed } from './service.ts'
import type { ListedRow } from './store.ts'

export const tag = 'Key-value store'
export const key_columns = ['key', 'version', 'expires_at', 'updated_at']

export const namespace: Param = {
  schema: Type.String({
    pattern: namespace_form.source,
    description: 'Names that begin with __ are reserved, except your own __agent.<agent_id>.',
  }),
  read: (decoded) => (namespace_form.test(decoded) ? decoded : null),
  message: `must match ${namespace_form.source}`,
}

export const key: Param = {
  schema: Type.String({
    minLength: 1,
    maxLength: key_bytes_max,
    description: '1 to 512 bytes of UTF-8, percent-encoded once.',
  }),
  read: (decoded) => (isKey(decoded) ? decoded : null),
  message: 'must be 1 to 512 bytes of UTF-8 without control characters, and not "." or ".."',
}

export const IfMatch = 'Versions that may be stored: `3`, `"3"`, a list, or `*`. Otherwise 412.'
export const Version = Type.Integer({ description: 'Starts at 1, rises by 1, never repeats for a key.' })
export const ExpiresAt = Nullable(Time('The key is absent from then on; null: it does not expire.'))
const UpdatedAt = Time('When this version was written.')

export const Entry = Shape('Entry', 'A value under a key, with its version.', {
  namespace: Type.String(),
  key: Type.String(),
  value: Json('The exact text that was put.'),
  version: Version,
  expires_at: ExpiresAt,
  updated_at: UpdatedAt,
})
export const KeyPage = Page(
  Shape(
    'ListedKey',
    { of: 'Entry', about: 'A key as lists show it: without its value.' },
    { key: Type.String(), version: Version, expires_at: ExpiresAt, updated_at: UpdatedAt },
  ),
)
export const KeyQuery = Type.Object({
  ...PageQuery,
  prefix: Type.Optional(Type.String({ description: 'Only keys that start with this text.' })),
})
/** Of the version that is read or was written. */
export const version_header = { 'X-Version': Type.String() }
export const read_headers = {
  'If-Match': IfMatch,
  'If-None-Match': 'A version that the caller already has: 304 while it is the current one.',
}

type ReadContext = Context<AgentCaller | AdminCaller>

export async function entryRead(
  { db, caller, now }: ReadContext,
  ref: KeyRef,
  header: (name: string) => string | null,
): Promise<Reply> {
  const entry = await read(db, caller, ref, header('if-match'), now)
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

export async function keysListed(context: ReadContext, namespace: string, query: Static<typeof KeyQuery>) {
  const { db, caller, now } = context
  const prefix = query.prefix ?? ''
  requireAllowed(caller, { namespace, key: prefix })
  const request = pageRequest(context, query)
  const range = { prefix, after: request.after ? String(request.after[0]) : null }
  const { rows, reached } = await list(db, caller.tenant_id, namespace, range, now, request.rows_max)
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
