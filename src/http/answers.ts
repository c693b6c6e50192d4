// Answers: JSON or nothing, always with the request id; and the error envelope.

import { ApiError, type ErrorCode, type ShedReason } from '../base/errors.ts'
import { Refusals } from '../base/overload.ts'
import { encode } from '../contract/encode.ts'
import { dataText, errorText, type Group } from '../contract/group.ts'
import { EventStream, InParts, type Piece, Reply, Streamed } from '../contract/route.ts'
import { DbError } from '../db/errors.ts'
import type { Exchange } from './exchange.ts'
import { isLarge, LargeAnswer, type Outgoing } from './outgoing.ts'

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** The part of a request that goes into its answer. */
type Asked = Pick<Exchange, 'request_id' | 'ignored'>

/** A handler's result as a response of a route of this group. `status` is for a result that does not carry its own. */
export function reply(asked: Asked, group: Group, status: number, result: unknown): Outgoing {
  if (result instanceof Reply) {
    if (result.body === null) return empty(result.status, asked.request_id, result.headers)
    const text = dataText(group, result.status, encode(result.body))
    return json(asked, result.status, text, result.headers)
  }
  if (result instanceof Streamed || result instanceof InParts) {
    const [before = '', after = ''] = dataText(group, status, '\n').split('\n')
    const body =
      result instanceof Streamed
        ? enclosed(before, result.pieces, after)
        : new InParts(result.held_bytes, joined([[before], result.texts, [after]]))
    return new LargeAnswer(status, new Headers(headersOf(asked, null)), body)
  }
  if (result instanceof EventStream) {
    const headers = new Headers({ ...headersOf(asked, null), ...of_event_streams })
    return new LargeAnswer(status, headers, result.pieces, true)
  }
  return result === undefined
    ? empty(status, asked.request_id, null)
    : json(asked, status, dataText(group, status, encode(result)), null)
}

function* joined(texts: readonly Iterable<string>[]): Generator<string> {
  for (const some of texts) yield* some
}

async function* enclosed(before: string, pieces: AsyncIterator<Piece>, after: string) {
  try {
    yield before
    for (;;) {
      const { done, value } = await pieces.next()
      if (done) break
      yield value
    }
    yield after
  } finally {
    await pieces.return?.()
  }
}

type Extra = Readonly<Record<string, string>> | null

export function json(asked: Asked, status: number, text: string, extra: Extra): Outgoing {
  if (isLarge(text)) return new LargeAnswer(status, new Headers(headersOf(asked, extra)), text)
  const response = new Response(text, { status, headers: sharedHeaders(asked.request_id, extra) })
  const names = asked.ignored?.header
  if (names) response.headers.set('x-ignored-fields', names)
  return response
}

/** nginx would otherwise hold events back until its buffer is full. */
const of_event_streams = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }

const of_every_answer = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
const common = { 'content-type': 'application/json', ...of_every_answer }

/** By the names of the headers beside the common ones. Code alone chooses these names, so there are few. */
const shared = new Map<string, Headers>()

/** Copied into each response, 0.3 µs cheaper than an object each time. Each answer sets all values that are not common. */
function sharedHeaders(request_id: string, extra: Extra): Headers {
  let names = ''
  for (const name in extra) names += `${name},`
  let headers = shared.get(names)
  if (!headers) {
    headers = new Headers(common)
    shared.set(names, headers)
  }
  headers.set('x-request-id', request_id)
  for (const name in extra) headers.set(name, extra[name]!)
  return headers
}

function headersOf({ request_id, ignored }: Asked, extra: Extra): Record<string, string> {
  const headers: Record<string, string> = { ...common, 'x-request-id': request_id, ...extra }
  const names = ignored?.header
  if (names) headers['x-ignored-fields'] = names
  return headers
}

export function empty(status: number, request_id: string, extra: Extra): Response {
  return new Response(null, {
    status,
    headers: { 'x-request-id': request_id, ...of_every_answer, ...extra },
  })
}

/** The route or page that failed. */
export interface Failing {
  method: string
  path: string
  /** Null for a page. */
  group: Group | null
}

/** The error envelope of the API contract. An unexpected failure becomes INTERNAL, and its cause goes to the log only. */
export function failure(error: unknown, request_id: string, log: Log, route: Failing | null): Response {
  const { status, headers, text } = failed(error, request_id, log, route)
  return new Response(text, { status, headers })
}

/** The same before it is a response: a body that breaks thousands of rules has a large answer. */
export function failed(error: unknown, request_id: string, log: Log, route: Failing | null) {
  const known = error instanceof ApiError ? error : databaseError(error)
  if (!known)
    log.error(
      { request_id, route: route && `${route.method} ${route.path}`, error: stackOf(error) },
      'request failed',
    )
  const shown = known ?? new ApiError('INTERNAL')
  const { code, status, retry_after_seconds, close } = shown
  const headers: Record<string, string> = {}
  if (retry_after_seconds !== undefined) headers['retry-after'] = String(retry_after_seconds)
  if (code === 'UNAUTHORIZED') headers['www-authenticate'] = 'Bearer'
  if (close) headers.connection = 'close'
  const text = errorText(route?.group ?? null, shown, request_id)
  return { status, headers: headersOf({ request_id, ignored: null }, headers), text }
}

const busy = new Refusals('database')

const database_codes = {
  lost: 'UNAVAILABLE',
  damaged: 'UNAVAILABLE',
  full: 'STORAGE_FULL',
  outcome_unknown: 'OUTCOME_UNKNOWN',
} as const satisfies Record<string, ErrorCode>

function databaseError(error: unknown): ApiError | null {
  if (!(error instanceof DbError) || error.kind === 'unique') return null
  if (error.kind === 'busy') return busy.next()
  return new ApiError(database_codes[error.kind], { retry_after_seconds: 1 })
}

/** Why this failure refused a request for lack of room; null when it is another one. */
export function shedReasonOf(error: unknown): ShedReason | null {
  if (error instanceof ApiError) return error.shed ?? null
  if (!(error instanceof DbError)) return null
  if (error.kind === 'busy') return 'database'
  return error.kind === 'full' ? 'disk_full' : null
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
