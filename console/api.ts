// Calls of the public API. Failures are values, told apart by their code.

import { memberText } from '../sdk/src/json.ts'
import type { ErrorCode } from '../sdk/src/types.ts'
import { base, type Query, withQuery } from './address.ts'
import { learnTime } from './time.ts'

export interface Problem {
  /** OFFLINE: no answer came, so a change may have been made or not. ABORTED: nobody waits for it any more. */
  code: ErrorCode | 'OFFLINE' | 'ABORTED'
  status: number
  message: string
  details: Record<string, unknown>
  request_id: string | null
}

/** The same as the one before: what is asked again and again fails with another request id each time. */
export function isSame(one: Problem | null, other: Problem | null): boolean {
  return one?.code === other?.code && one?.status === other?.status && one?.message === other?.message
}

/** Whether nobody knows if a change was made: no answer came, or one that does not tell. */
export function isUncertain({ code, status }: Problem): boolean {
  return code === 'OFFLINE' || code === 'UNAVAILABLE' || status >= 500
}

/** `text` is the answer as it came: numbers, order and duplicate keys of stored JSON are exact in it alone. */
export type Result<T> = { ok: true; value: T; text: string } | { ok: false; problem: Problem }

export interface Ask {
  query?: Query
  /** Sent as JSON. */
  body?: unknown
  signal?: AbortSignal
  headers?: Record<string, string>
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** How long an answer may let itself be waited for, beside the wait that was asked for: lines die without a word. */
const patience_ms = 30_000

export async function call<T>(key: string, method: Method, path: string, ask: Ask = {}): Promise<Result<T>> {
  const line = new AbortController()
  const hangUp = () => line.abort()
  ask.signal?.addEventListener('abort', hangUp)
  if (ask.signal?.aborted) hangUp()
  const timer = setTimeout(hangUp, patience_ms + Number(ask.query?.wait ?? 0) * 1_000)
  try {
    const response = await fetch(base + withQuery(path, ask.query), {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(ask.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...ask.headers,
      },
      body: ask.body === undefined ? null : JSON.stringify(ask.body),
      signal: line.signal,
      // The key is the only thing that says who asks.
      credentials: 'omit',
      cache: 'no-store',
      referrerPolicy: 'no-referrer',
    })
    // The body may be long on its way: neither is it late, nor the time it tells right by then.
    clearTimeout(timer)
    learnTime(response.headers.get('date'))
    const text = await response.text()
    return response.ok ? success<T>(path, text) : { ok: false, problem: problemOf(response, text) }
  } catch (error) {
    const left = (error as Error).name === 'AbortError' && !line.signal.aborted
    return failed(left || ask.signal?.aborted ? 'ABORTED' : 'OFFLINE', 'No answer came from the service.')
  } finally {
    clearTimeout(timer)
    ask.signal?.removeEventListener('abort', hangUp)
  }
}

/** /api wraps its answers; who calls it gets what is inside. */
function success<T>(path: string, text: string): Result<T> {
  const inner = path.startsWith('/api/') ? (memberText(text, 'data') ?? 'null') : text
  try {
    return { ok: true, value: (inner === '' ? undefined : JSON.parse(inner)) as T, text: inner }
  } catch {
    return failed('UNAVAILABLE', 'The answer is not JSON: something between here and the service changed it.')
  }
}

function problemOf(response: Response, text: string): Problem {
  const request_id = response.headers.get('x-request-id')
  const { status } = response
  const { code, message, details } = errorIn(text) ?? {}
  if (typeof code === 'string' && typeof message === 'string') {
    return { code: code as ErrorCode, status, message, details: details ?? {}, request_id }
  }
  const foreign = `Something in front of the service answered ${status}.`
  return { code: 'UNAVAILABLE', status, message: foreign, details: {}, request_id }
}

/** Proxies have JSON of their own, in other forms than the envelope. */
function errorIn(text: string): Partial<Problem> | undefined {
  try {
    return (JSON.parse(text) as { error?: Partial<Problem> } | null)?.error
  } catch {
    return undefined
  }
}

function failed(code: Problem['code'], message: string): { ok: false; problem: Problem } {
  return { ok: false, problem: { code, status: 0, message, details: {}, request_id: null } }
}
