// One attempt: a request to an address of a user's choosing, from the look-up of the name to an outcome, a value.

import http from 'node:http'
import type { Socket } from 'node:net'
import { limit } from '../base/limit.ts'
import { nextTurn } from '../base/next-turn.ts'
import { Dial, DialError } from './dial.ts'
import { type EgressPolicy, judge, type Target } from './guard.ts'
import type { Pool } from './pool.ts'

/**
 * `dns`: the name has no address, or its DNS server gave none in time. `refused`: no connection, or one that broke
 * or spoke something else before a whole header block of HTTP/1.1 was in. `timeout`: the deadline passed. `tls`: no
 * handshake, or no trusted certificate for the name. `blocked`: the guard forbids the URL or the address, or the
 * request cannot be written as HTTP. `too_large`: a header block over 64 KiB. `status`: any other status than 2xx,
 * redirects included.
 */
export type FailureClass = 'dns' | 'refused' | 'timeout' | 'tls' | 'blocked' | 'too_large' | 'status'

/**
 * `status`: null when no answer came. `error`: null when `ok`; `untried` when nothing was done, because the name
 * could not be looked up yet: then it was not an attempt. `duration_ms`: until the header block was in.
 */
export type Outcome = { ok: boolean; status: number | null; error: Failure | null; duration_ms: number }

export type Failure = FailureClass | 'untried'

export interface Outgoing {
  method: string
  url: string
  /** Host, Content-Length and the headers of the connection are written here; those in `headers` are dropped. */
  headers: Record<string, string>
  body: string | Uint8Array
}

/** An email to one address. */
export interface OutgoingMail {
  to: string
  subject: string
  text: string
  headers: Record<string, string>
}

/** The content of an attempt. */
export type Sendable = Outgoing | OutgoingMail

const answer_bytes_max = limit(
  'callbacks.answer',
  64 * 1_024,
  'bytes',
  'How much of an answer is read. Past it the connection is closed.',
)

type Settle = (status: number | null, error: Failure | null) => void

/** From the look-up to the last byte of the answer that is read. The first call of `#settle` counts. */
export class Attempt {
  readonly #outgoing: Outgoing
  readonly #pool: Pool
  readonly #settle: Settle
  #deadline: Timer | undefined
  #dial: Dial | undefined
  #request: http.ClientRequest | undefined
  #bytes_read = 0
  #settled = false

  constructor(outgoing: Outgoing, pool: Pool, settle: Settle) {
    this.#outgoing = outgoing
    this.#pool = pool
    this.#settle = settle
  }

  start(policy: EgressPolicy, tenant_id: string): void {
    this.#deadline = setTimeout(() => this.#fail('timeout'), this.#pool.settings.deadline_ms)
    judge(policy, tenant_id, this.#outgoing.url).then(
      (judged) => {
        if (this.#settled) return
        if (judged.ok) void this.#exchange(judged.target)
        else this.#fail(judged.why)
      },
      () => this.#fail('blocked'),
    )
  }

  /**
   * A kept connection may have been closed by the receiver, and only the turns of the event loop show that: the first may
   * begin before the system is asked what has arrived.
   */
  async #exchange(target: Target): Promise<void> {
    const dial = new Dial(target)
    for (let turn = 0; turn < 2 && this.#pool.hasIdle(dial.key); turn++) await nextTurn()
    if (this.#settled) return
    this.#pool.closeUnkept(dial.key)
    this.#dial = dial
    try {
      const request = http.request(requestOptions(this.#outgoing, target.url, this.#pool, dial))
      this.#request = request
      let is_unsent = false
      request.on('socket', (socket: Socket) => {
        is_unsent = request.reusedSocket && socket.destroyed
        this.#meter(request, socket)
      })
      request.on('response', (response) => this.#headIsIn(response))
      request.on('upgrade', (response, socket) => {
        this.#headIsIn(response)
        socket.destroy()
      })
      request.on('error', (error) => {
        if (!this.#settled && request.reusedSocket && this.#bytes_read === 0) this.#pool.keepNone(dial.key)
        if (!is_unsent || this.#settled) return this.#fail(failureOf(error))
        this.#request = undefined // with its end the deadline would end
        void this.#exchange(target)
      })
      request.end(this.#outgoing.body)
    } catch {
      this.#fail('blocked')
    }
  }

  /** Runs after the parser has seen each chunk, so a header block that ends in it counts as in. */
  #meter(request: http.ClientRequest, socket: Socket): void {
    const count = (chunk: Uint8Array) => {
      this.#bytes_read += chunk.length
      if (this.#bytes_read > answer_bytes_max) this.#fail('too_large')
    }
    socket.on('data', count)
    request.once('close', () => {
      socket.off('data', count)
      if (request === this.#request) clearTimeout(this.#deadline)
    })
  }

  /** The body is only read so that the connection can be used again. */
  #headIsIn(response: http.IncomingMessage): void {
    const status = response.statusCode ?? 0
    const ok = status >= 200 && status < 300
    this.#settleOnce(status, ok ? null : 'status')
    response.on('error', () => {})
    response.resume()
    if (this.#pool.isFull()) this.#end()
  }

  #fail(error: Failure): void {
    this.#settleOnce(null, error)
    this.#end()
  }

  #settleOnce(status: number | null, error: Failure | null): void {
    if (this.#settled) return
    this.#settled = true
    this.#settle(status, error)
  }

  #end(): void {
    clearTimeout(this.#deadline)
    this.#dial?.abandon()
    this.#request?.destroy()
  }
}

/** Headers of one connection or one message (RFC 9110 section 7.6.1), which the service writes itself. */
const connection_headers = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'trailer', 'te', 'expect'],
  ...['connection', 'keep-alive', 'proxy-connection', 'upgrade'],
])

const methods_without_body = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS'])

/** Throws, here or in `http.request`, on what cannot be written as HTTP/1.1. */
function requestOptions(outgoing: Outgoing, url: URL, pool: Pool, dial: Dial): http.RequestOptions {
  const { method, body } = outgoing
  if (method.toUpperCase() === 'CONNECT') throw new Error('a tunnel is not a request')
  const headers = ['host', url.host]
  for (const [name, value] of Object.entries(outgoing.headers)) {
    if (!connection_headers.has(name.toLowerCase())) headers.push(name, value)
  }
  if (!pool.keeps(dial.key)) headers.push('connection', 'close')
  const length = Buffer.byteLength(body)
  if (length > 0 || !methods_without_body.has(method)) headers.push('content-length', String(length))
  const path = url.pathname + url.search
  // The name for TLS is the dial's matter; an empty one keeps node:http from working one out for every request.
  const options = {
    agent: pool,
    dial,
    method,
    path,
    headers,
    servername: '',
    maxHeaderSize: answer_bytes_max,
  }
  return options as http.RequestOptions
}

function failureOf(error: Error & { code?: string }): FailureClass {
  if (error instanceof DialError) return error.failure
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'too_large'
  return error.code?.startsWith('ERR_SSL_') ? 'tls' : 'refused'
}
