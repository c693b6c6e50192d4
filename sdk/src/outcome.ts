// The outcome of a try: a success, or an error, with the reasons for and against another try.

import { WaystationError, WaystationNetworkError, WaystationTimeoutError } from './errors.ts'
import type { ErrorCode, OperationSpec } from './types.ts'

/** A success. */
export interface Answer {
  status: number
  /** Empty when there is no body. */
  text: string
}

export type FailedTry = WaystationError | WaystationNetworkError | WaystationTimeoutError

/** True for an error of a request, false for one of the program, or of the caller that ended it. */
export function isFailedTry(error: unknown): error is FailedTry {
  return [WaystationError, WaystationNetworkError, WaystationTimeoutError].some(
    (kind) => error instanceof kind,
  )
}

/** `now`: for a Retry-After that is a date, where the answer does not say its own. */
export function answerOf(
  response: Response,
  text: string,
  { operation, headers }: { operation: OperationSpec; headers: Readonly<Record<string, string>> },
  now: number,
): Answer | WaystationError {
  const { status } = response
  const is_empty = status === 304 ? 'if-none-match' in headers : status === 204 && operation.empty
  if (is_empty) return { status, text: '' }
  const body = parsed(text)
  if (isObject(body) && isObject(body.error) && typeof body.error.code === 'string') {
    return refusal(response, body.error, now)
  }
  // A blocked rate check is a result, although its status is 429.
  const is_success = (status >= 200 && status < 300) || (status === 429 && operation.wrapped)
  if (is_success && isOf(operation, body)) return { status, text }
  const message = `Status ${status}, not from the service.`
  return refusal(response, { code: 'UNEXPECTED_ANSWER', message }, now)
}

/** True for an answer of this operation: something before the service may answer JSON, too. */
function isOf({ wrapped, empty, has }: OperationSpec, body: unknown): boolean {
  const data = wrapped && isObject(body) ? body.data : body
  return isObject(data) && (has === undefined ? !empty : Object.hasOwn(data, has))
}

/** True when another try may succeed. */
export function isTransient(error: FailedTry): boolean {
  if (!(error instanceof WaystationError)) return true
  return isUnavailable(error) || error.status === 429 || error.code === 'IDEMPOTENCY_IN_PROGRESS'
}

/**
 * Refusals of a time: a freeze and a pause end with their resume, and something before the service, such as a proxy while the
 * service is replaced, knows nothing of it.
 */
const passing_codes: readonly string[] = [
  'REQUEST_TIMEOUT',
  'TENANT_FROZEN',
  'AGENT_PAUSED',
  'UNEXPECTED_ANSWER',
]

/** True when every try will be refused until the key, the item or the request changes. */
export function isPermanent(error: unknown): error is WaystationError {
  if (!(error instanceof WaystationError) || isTransient(error)) return false
  return error.status < 500 && !passing_codes.includes(error.code)
}

/** True when the request may have had its effect without an answer. */
export function isOutcomeUnknown(error: FailedTry): boolean {
  if (error instanceof WaystationNetworkError) return error.may_have_arrived
  if (error instanceof WaystationTimeoutError) return true
  return isUnavailable(error) && !(error.status === 503 && error.code === 'UNAVAILABLE')
}

/**
 * The error of a try whose outcome is unknown, after a later try that had no effect. The refusal of a repeat says nothing about
 * the first one: the key may have been revoked, or the tenant frozen, in between.
 */
export function afterwards(unknown: FailedTry, later: FailedTry): FailedTry {
  if (later instanceof WaystationError && later !== unknown && !isTransient(later)) unknown.cause = later
  return unknown
}

/** The refusal that an error is, or that a repeat has met after a try whose outcome is unknown. Null for others. */
export function refusalOf(error: unknown): WaystationError | null {
  if (isFailedTry(error) && error.cause instanceof WaystationError) return error.cause
  return error instanceof WaystationError ? error : null
}

/**
 * 503 of the service or 502, 503, 504 of something before it, whose errors may look like ours. A quarantine is a refusal. Cloudflare
 * has 520 to 530 of its own: 524 means that the request has arrived, 521 that it has not, and 520 may mean either.
 */
function isUnavailable({ status, code }: WaystationError): boolean {
  const is_of_gateway = (status >= 502 && status <= 504) || (status >= 520 && status <= 530)
  return is_of_gateway && code !== 'QUARANTINED'
}

/** Bun gives the code alone. */
const codes_of_no_connection: readonly unknown[] = [
  'ECONNREFUSED',
  'ConnectionRefused',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_PROXY_TUNNEL',
]
/** Certificates that are not taken end the handshake, before the request. */
const codes_of_certificates = /^(CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_(GET_ISSUER|VERIFY)_|ERR_TLS_CERT_)/
/** Deno gives no code. The text before it has the URL, in which a space cannot stand. */
const no_connection_of_deno = ': client error (Connect): '
/** Of Node, whose code is that of any request that was given up. CONNECT asks for a connection alone. */
const no_tunnel_of_node = /^Proxy response \(\d+\) !== 200 when HTTP Tunneling$/

interface Told {
  code?: unknown
  syscall?: unknown
  message?: unknown
  cause?: unknown
  errors?: unknown
}

/** Runtimes name a connection that was never made in their own ways, Node that of a proxy two causes below. */
export function wasRefused(error: unknown): boolean {
  const told = (error ?? {}) as Told
  const reason = (told.cause ?? {}) as Told
  return [told, reason, (reason.cause ?? {}) as Told].some((said) => {
    const message = String(said.message)
    return (
      isOfNoConnection(said) || message.includes(no_connection_of_deno) || no_tunnel_of_node.test(message)
    )
  })
}

/**
 * Node names the call that failed. Where a name has several addresses, of which it gives each 250 ms, it has an error for each,
 * and the code of the first, such as ETIMEDOUT, says nothing of the kind.
 */
function isOfNoConnection({ code, syscall, errors }: Told): boolean {
  if (syscall === 'connect' || syscall === 'getaddrinfo' || codes_of_no_connection.includes(code)) return true
  if (codes_of_certificates.test(String(code))) return true
  return Array.isArray(errors) && errors.length > 0 && errors.every((each) => isOfNoConnection(each ?? {}))
}

function refusal(response: Response, error: Record<string, unknown>, now: number): WaystationError {
  const { status, headers } = response
  return new WaystationError(
    error.code as ErrorCode,
    `${error.message}${issuesOf(error.details)}`,
    status,
    isObject(error.details) ? error.details : undefined,
    typeof error.request_id === 'string' ? error.request_id : headers.get('x-request-id'),
    retryAfter(headers, now),
  )
}

/** Seconds from now; it may be given as a date, too (RFC 9110, 10.2.3). */
function retryAfter(headers: Headers, now: number): number | undefined {
  const given = headers.get('retry-after') ?? ''
  if (/^\d+(\.\d+)?$/.test(given)) return Number(given)
  const until = Date.parse(given)
  if (Number.isNaN(until)) return undefined
  const sent_at = Date.parse(headers.get('date') ?? '')
  return Math.max(0, Math.ceil((until - (Number.isNaN(sent_at) ? now : sent_at)) / 1_000))
}

/** The first broken rules of VALIDATION_FAILED, for the message. */
function issuesOf(details: unknown): string {
  const issues = isObject(details) && Array.isArray(details.issues) ? details.issues : []
  const texts = issues.slice(0, 3).map(({ path, message }) => `${path} ${message}`)
  return texts.length > 0 ? ` (${texts.join('; ')})` : ''
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
