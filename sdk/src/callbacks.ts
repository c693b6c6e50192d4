// Verifies that a callback is from the service. Standard Webhooks 1.0.0, symmetric signatures (v1).

import { KnownError } from './copies.ts'
import { webCrypto } from './platform.ts'

export type VerificationFailure =
  /** A header is missing or not in its form. */
  | 'malformed'
  /** Its time is further away than tolerated: a replay, or a clock that is wrong. */
  | 'too_old'
  | 'too_new'
  /** None of its signatures matches any of the secrets. */
  | 'no_match'
  | 'too_large'

export class CallbackVerificationError extends KnownError {
  /** @internal */
  static override readonly waystation_class = 'CallbackVerificationError'
  override readonly name = 'CallbackVerificationError'

  constructor(readonly reason: VerificationFailure) {
    super(`The callback must not be trusted: ${reason}.`)
  }
}

export interface VerifiedCallback<T = unknown> {
  /** The same on every retry: remember it to do everything once. */
  id: string
  /**
   * `schedule.fired`, `checkpoint.approved` or `checkpoint.rejected`; null when the header was not there. It is not
   * signed, and neither is `attempt`: the decision of a checkpoint is in the body, too.
   */
  event: string | null
  /** 1, 2 or 3; null when the header was not there. */
  attempt: number | null
  /** When this attempt was sent, whole seconds since the Unix epoch. */
  timestamp_seconds: number
  /** The exact body. */
  text: string
  /** The body, parsed. */
  body: T
}

export interface VerifyOptions {
  /** How far the time of the attempt may be from now; default 300. */
  tolerance_seconds?: number | undefined
  /** Ms since the Unix epoch; default the current time. */
  now?: number | undefined
  /** A larger body is refused unread; default 1 MiB. */
  body_bytes_max?: number | undefined
}

/** A Request, or what other servers give: headers and the exact body. */
export type CallbackRequest =
  | Request
  | { headers: Headers | Record<string, string | string[] | undefined>; body: string | Uint8Array }

const tolerance_seconds_default = 300
const body_bytes_max_default = 1_048_576
const secret_prefix = 'whsec_'
/** A header with more is not one of ours. */
const signatures_max = 16

/**
 * The callback, when one of its signatures was made with one of the secrets; otherwise CallbackVerificationError.
 * Give both secrets while one rotates. The body must not have been read or parsed before.
 */
export async function verifyCallback<T = unknown>(
  request: CallbackRequest,
  secret: string | readonly string[],
  {
    tolerance_seconds = tolerance_seconds_default,
    now,
    body_bytes_max = body_bytes_max_default,
  }: VerifyOptions = {},
): Promise<VerifiedCallback<T>> {
  const header = headerReader(request.headers)
  const id = header('webhook-id')
  const timestamp = header('webhook-timestamp')
  const signatures = signaturesOf(header('webhook-signature'))
  if (!id || !/^\d{1,12}$/.test(timestamp ?? '') || signatures.length === 0) {
    throw new CallbackVerificationError('malformed')
  }
  const timestamp_seconds = Number(timestamp)
  const age_seconds = Math.floor((now ?? Date.now()) / 1_000) - timestamp_seconds
  // Written this way, a limit of NaN refuses everything.
  if (!(age_seconds <= tolerance_seconds)) throw new CallbackVerificationError('too_old')
  if (!(-age_seconds <= tolerance_seconds)) throw new CallbackVerificationError('too_new')

  const bytes = await bytesOf(request, body_bytes_max)
  const signed = joined([new TextEncoder().encode(`${id}.${timestamp}.`), bytes])
  if (!(await isSigned(signed, signatures, typeof secret === 'string' ? [secret] : secret))) {
    throw new CallbackVerificationError('no_match')
  }
  const text = new TextDecoder().decode(bytes)
  const attempt = Number(header('x-waystation-attempt') ?? Number.NaN)
  return {
    id,
    event: header('x-waystation-event') ?? null,
    attempt: Number.isInteger(attempt) ? attempt : null,
    timestamp_seconds,
    text,
    body: JSON.parse(text) as T,
  }
}

/** Compares every pair to its end, so that the time does not depend on which one matches. */
async function isSigned(
  signed: Uint8Array,
  signatures: string[],
  secrets: readonly string[],
): Promise<boolean> {
  const { subtle } = await webCrypto()
  let matches = false
  for (const secret of secrets) {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' }
    const key = await subtle.importKey('raw', secretBytes(secret), algorithm, false, ['sign'])
    const digest = new Uint8Array(await subtle.sign('HMAC', key, signed as Uint8Array<ArrayBuffer>))
    const expected = btoa(String.fromCharCode(...digest))
    for (const signature of signatures) matches = areEqual(signature, expected) || matches
  }
  return matches
}

/** In a time that depends on the lengths alone. */
function areEqual(given: string, expected: string): boolean {
  let difference = given.length ^ expected.length
  for (let at = 0; at < expected.length; at += 1) {
    difference |= (given.charCodeAt(at) || 0) ^ expected.charCodeAt(at)
  }
  return difference === 0
}

/** Throws TypeError for a secret in the wrong form: a mistake of set-up, not of the sender. */
function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  const base64 = secret.startsWith(secret_prefix) ? secret.slice(secret_prefix.length) : secret
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
    if (bytes.length > 0) return bytes
  } catch {}
  throw new TypeError('a signing secret is whsec_ and base64')
}

/** Those of version 1; others are there for receivers that know them. */
function signaturesOf(header: string | undefined): string[] {
  return (header ?? '')
    .split(' ', signatures_max)
    .filter((signature) => signature.startsWith('v1,'))
    .map((signature) => signature.slice(3))
}

/** Frameworks and polyfills bring Headers and Requests of their own, so what they can do counts, not their class. */
function headerReader(headers: CallbackRequest['headers']): (name: string) => string | undefined {
  if (isHeaders(headers)) return (name) => headers.get(name) ?? undefined
  const known = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return (name) => {
    const value = known.get(name)
    return Array.isArray(value) ? value.join(', ') : value
  }
}

function isHeaders(headers: CallbackRequest['headers']): headers is Headers {
  return typeof headers.get === 'function'
}

/** Throws TypeError when the exact body is not there: another mistake of set-up. */
async function bytesOf(request: CallbackRequest, bytes_max: number): Promise<Uint8Array> {
  if ('bodyUsed' in request) {
    if (request.bodyUsed)
      throw new TypeError('the body was read before: give its exact text as { headers, body }')
    return request.body ? readUpTo(request.body, bytes_max) : new Uint8Array()
  }
  const { body } = request
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  if (!ArrayBuffer.isView(bytes))
    throw new TypeError('body must be the exact body, text or bytes, not parsed')
  if (!(bytes.byteLength <= bytes_max)) throw new CallbackVerificationError('too_large')
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

async function readUpTo(body: ReadableStream<Uint8Array>, bytes_max: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return joined(chunks)
    chunks.push(value)
    length += value.length
    if (length <= bytes_max) continue
    await reader.cancel()
    throw new CallbackVerificationError('too_large')
  }
}

function joined(chunks: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}
