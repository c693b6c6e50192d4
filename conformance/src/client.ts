// One HTTP request, sent byte for byte as a check wants it. No redirect is followed, no header is added but what HTTP needs.

import { Agent, type ClientRequest, request as plainRequest } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'

export interface Sent {
  method: string
  /** Path and query, as they go out. */
  path: string
  /** A list is sent as headers of the same name. */
  headers: Record<string, string | string[]>
  body?: string | Uint8Array
  /** Sends the body in chunks, without a length. */
  chunked?: boolean
}

export interface Answer {
  sent: Sent
  status: number
  /** Names in lower case. */
  headers: Record<string, string>
  text: string
  /** The parsed body; undefined when it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a check reaches into an answer and reports what it lacks
  json: any
}

/** Requests that may time out before no more are sent: a service that hangs would delay each check by a time-out. */
const unanswered_max = 10

export class Client {
  readonly url: URL
  readonly #agent: Agent
  readonly #request: (url: URL, options: object) => ClientRequest
  readonly #timeout_ms: number
  /** Requests in a row that were not answered in time. */
  #unanswered = 0

  constructor(url: string, timeout_ms: number) {
    this.url = new URL(url)
    const secure = this.url.protocol === 'https:'
    this.#agent = secure ? new SecureAgent({ keepAlive: true }) : new Agent({ keepAlive: true })
    this.#request = secure ? secureRequest : plainRequest
    this.#timeout_ms = timeout_ms
  }

  async send(sent: Sent): Promise<Answer> {
    if (this.#unanswered >= unanswered_max)
      throw new Error(
        `the service has not answered ${unanswered_max} requests in a row: nothing more is sent`,
      )
    try {
      return await this.#once(sent, this.#agent)
    } catch (error) {
      // The service may close idle connections at the moment when one is used again: nothing has reached it.
      if (error instanceof StaleConnection) return this.#once(sent, false)
      throw error
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  /** `agent`: false for a new connection. */
  #once(sent: Sent, agent: Agent | false): Promise<Answer> {
    const bytes = typeof sent.body === 'string' ? new TextEncoder().encode(sent.body) : sent.body
    const headers: Sent['headers'] = { ...sent.headers }
    if (bytes && sent.chunked) headers['transfer-encoding'] = 'chunked'
    else if (bytes) headers['content-length'] = String(bytes.length)
    const base = this.url.pathname.replace(/\/$/, '')
    return new Promise((resolve, reject) => {
      const request = this.#request(this.url, {
        method: sent.method,
        path: `${base}${sent.path}`,
        headers,
        agent,
      })
      const fail = (error: NodeJS.ErrnoException) => {
        const stale = request.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '')
        reject(stale ? new StaleConnection() : new Error(`${sent.method} ${sent.path}: ${error.message}`))
      }
      // Of the whole answer: one that comes byte by byte is late, too.
      const late = setTimeout(() => {
        this.#unanswered += 1
        request.destroy(new Error(`no answer within ${this.#timeout_ms / 1_000} s`))
      }, this.#timeout_ms)
      request.on('close', () => clearTimeout(late))
      request.on('error', fail)
      request.on('response', (response) => {
        const chunks: Uint8Array[] = []
        response.on('data', (chunk: Uint8Array) => chunks.push(chunk))
        response.on('error', fail)
        response.on('aborted', () => fail(new Error('the answer ended early')))
        response.on('end', () => {
          clearTimeout(late)
          this.#unanswered = 0
          const text = Buffer.concat(chunks).toString()
          resolve({
            sent,
            status: response.statusCode ?? 0,
            headers: headersOf(response.headers),
            text,
            json: parsed(text),
          })
        })
      })
      request.end(bytes)
    })
  }
}

class StaleConnection extends Error {}

function headersOf(headers: NodeJS.Dict<string | string[]>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}

function parsed(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
