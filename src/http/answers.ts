// What goes out: JSON or nothing, always with the request id; and the error envelope.

import { ApiError, type ErrorCode } from '../base/errors.ts'
import { encode } from '../contract/encode.ts'
import { Reply, type Route } from '../contract/route.ts'
import { DbError } from '../db/db.ts'

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** A handler's result as a response. `status` is for a result that does not carry its own. */
export function respond(result: unknown, status: number, request_id: string, ignored: string[]): Response {
  if (result instanceof Reply) {
    if (result.body === null) return empty(result.status, request_id, result.headers)
    return json(result.status, encode(result.body), request_id, result.headers, ignored)
  }
  return result === undefined
    ? empty(status, request_id, null)
    : json(status, encode(result), request_id, null, ignored)
}

type Extra = Readonly<Record<string, string>> | null

export function json(
  status: number,
  text: string,
  request_id: string,
  extra: Extra,
  ignored: string[],
): Response {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'x-request-id': request_id,
    'cache-control': 'no-store',
  }
  if (extra) Object.assign(headers, extra)
  const names = ignored.length > 0 ? ignoredNames(ignored) : ''
  if (names !== '') headers['x-ignored-fields'] = names
  return new Response(text, { status, headers })
}

export function empty(status: number, request_id: string, extra: Extra): Response {
  return new Response(null, {
    status,
    headers: { 'x-request-id': request_id, 'cache-control': 'no-store', ...extra },
  })
}

const ignored_names_max = 20

function ignoredNames(names: string[]): string {
  const shown = names.filter((name) => /^[A-Za-z0-9_.-]{1,64}$/.test(name))
  return shown.slice(0, ignored_names_max).join(', ')
}

/** The error envelope of the API contract. What is no expected failure becomes INTERNAL, and goes to the log only. */
export function failure(error: unknown, request_id: string, log: Log, route: Route | null): Response {
  const known = error instanceof ApiError ? error : databaseError(error)
  if (!known)
    log.error(
      { request_id, route: route && `${route.method} ${route.path}`, error: stackOf(error) },
      'request failed',
    )
  const { code, status, message, details, retry_after_seconds, close } = known ?? new ApiError('INTERNAL')
  const envelope = details ? { code, message, details, request_id } : { code, message, request_id }
  const headers: Record<string, string> = {}
  if (retry_after_seconds !== undefined) headers['retry-after'] = String(retry_after_seconds)
  if (code === 'UNAUTHORIZED') headers['www-authenticate'] = 'Bearer'
  if (close) headers.connection = 'close'
  return json(status, JSON.stringify({ error: envelope }), request_id, headers, [])
}

const database_codes = {
  busy: 'UNAVAILABLE',
  lost: 'UNAVAILABLE',
  full: 'STORAGE_FULL',
  outcome_unknown: 'OUTCOME_UNKNOWN',
} as const satisfies Record<string, ErrorCode>

function databaseError(error: unknown): ApiError | null {
  if (!(error instanceof DbError) || error.kind === 'unique') return null
  return new ApiError(database_codes[error.kind], { retry_after_seconds: 1 })
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
