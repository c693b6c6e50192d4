// Calls of the public API. A failure is a value; its code tells failures apart.

import { memberText } from '../../sdk/src/json.ts'
import type { ErrorCode } from '../../sdk/src/types.ts'
import { learnTime } from '../text/time.ts'
import { base, type Query, withQuery } from './address.ts'

export interface Problem {
  /** OFFLINE: no answer came, so a change may or may not have been made. ABORTED: the page no longer needs the answer. */
  code: ErrorCode | 'OFFLINE' | 'ABORTED'
  status: number
  message: string
  details: Record<string, unknown>
  request_id: string | null
}

/** A rule that a request breaks. */
export interface Issue {
  /** A JSON pointer into the body, or `query.limit`. */
  path: string
  message: string
}

export function issuesOf(problem: Problem | null): Issue[] {
  const issues = problem?.details.issues
  return Array.isArray(issues) ? issues : []
}

/** True when both say the same to a reader. Repeats of one failure differ in their request id. */
export function isSame(one: Problem | null, other: Problem | null): boolean {
  return one?.code === other?.code && one?.status === other?.status && one?.message === other?.message
}

/** True when a change may or may not have been made: no answer came, or one from something in between. */
export function isOutcomeUnknown({ code, status }: Problem): boolean {
  return code === 'OFFLINE' || code === 'UNAVAILABLE' || status >= 500
}

/** `text` is the answer as it came: numbers, order and duplicate keys of stored JSON are exact in it alone. */
export type Result<T> = { ok: true; value: T; text: string } | { ok: false; problem: Problem }

export interface PageOf<T> {
  items: T[]
  next_cursor: string | null
}

export interface Ask {
  query?: Query
  /** Sent as JSON. */
  body?: unknown
  /** JSON that is sent as it is written, instead of `body`. */
  body_text?: string
  signal?: AbortSignal | undefined
  headers?: Record<string, string>
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Without a byte of the answer; for the first, added to the wait that a request asks for. A broken connection may stay silent for ever. */
const timeout_ms = 30_000

/** With no key for what needs none. */
export async function call<T>(
  key: string | null,
  method: Method,
  path: string,
  ask: Ask = {},
): Promise<Result<T>> {
  const controller = new AbortController()
  const abort = () => controller.abort()
  ask.signal?.addEventListener('abort', abort)
  if (ask.signal?.aborted) abort()
  const asked_at = Date.now()
  let timer = setTimeout(abort, timeout_ms + Number(ask.query?.wait ?? 0) * 1_000)
  const goOn = () => {
    clearTimeout(timer)
    timer = setTimeout(abort, timeout_ms)
  }
  const body = ask.body_text ?? (ask.body === undefined ? null : JSON.stringify(ask.body))
  try {
    const response = await fetch(base + withQuery(path, ask.query), {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        // The plan of the tenant does not count reads of the console: src/http/console-read.ts.
        'x-waystation-client': 'console',
        ...(body === null ? {} : { 'content-type': 'application/json' }),
        ...ask.headers,
      },
      body,
      signal: controller.signal,
      // The key is the only credential.
      credentials: 'omit',
      cache: 'no-store',
      referrerPolicy: 'no-referrer',
    })
    // A long body says nothing about the clock of the service.
    learnTime(response.headers.get('date'), asked_at)
    goOn()
    const text = await textOf(response, goOn)
    return response.ok ? success<T>(path, text) : { ok: false, problem: problemOf(response, text) }
  } catch (error) {
    const left = (error as Error).name === 'AbortError' && !controller.signal.aborted
    return failed(left || ask.signal?.aborted ? 'ABORTED' : 'OFFLINE', 'No answer came from the service.')
  } finally {
    clearTimeout(timer)
    ask.signal?.removeEventListener('abort', abort)
  }
}

/**
 * The whole body: a long one may take its time, as long as it comes. Its pieces are followed in a copy: Chromium notes a request whose
 * body is read by pieces as cancelled, though all of it came.
 */
async function textOf(response: Response, onPiece: () => void): Promise<string> {
  const copy = response.clone().body?.getReader()
  const follow = async () => {
    while (copy && !(await copy.read()).done) onPiece()
  }
  const [text] = await Promise.all([response.text(), follow()])
  return text
}

/** Takes an answer of /api out of its envelope. */
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

/** Undefined for the JSON of a proxy, which has another form than the envelope. */
function errorIn(text: string): Partial<Problem> | undefined {
  try {
    return (JSON.parse(text) as { error?: Partial<Problem> } | null)?.error
  } catch {
    return undefined
  }
}

export function failed(code: Problem['code'], message: string): { ok: false; problem: Problem } {
  return { ok: false, problem: { code, status: 0, message, details: {}, request_id: null } }
}
