// A client of HTTP/1.1 on a plain socket, for probes and loads: it costs little beside the service that it asks, its
// own address can be chosen, and it can stop reading, stop sending or reset.

import type { Socket } from 'bun'

/** Of tenants that behave, and of those that do not: different clients have different addresses. */
export const good_address = '127.0.0.10'
export const attacker_address = '127.0.0.66'

export interface Answer {
  status: number
  head: string
  bytes: number
  /** Empty unless the connection keeps bodies. */
  body: string
}

export class Closed extends Error {
  override name = 'Closed'
}

interface Options {
  from?: string
  keep_bodies?: boolean
}

interface Waiting {
  resolve(answer: Answer): void
  reject(error: Error): void
}

export class Wire {
  #socket!: Socket
  #unsent: Uint8Array | null = null
  #waiting: Waiting | null = null
  #closed = false
  #reader: AnswerReader

  private constructor(keep_bodies: boolean) {
    this.#reader = new AnswerReader(keep_bodies)
  }

  static async connect(port: number, { from, keep_bodies = false }: Options = {}): Promise<Wire> {
    const wire = new Wire(keep_bodies)
    const options = { hostname: '127.0.0.1', port, ...(from ? { localAddress: from } : {}) }
    wire.#socket = await Bun.connect({
      ...options,
      socket: {
        data: (_, bytes) => wire.#received(bytes),
        drain: () => wire.#send(),
        close: () => wire.#ended(),
        end: () => wire.#ended(),
        error: () => wire.#ended(),
      },
    })
    return wire
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Sends, and waits for the whole answer. Throws Closed when the connection ends before. */
  ask(request: Uint8Array): Promise<Answer> {
    if (this.#closed) return Promise.reject(new Closed('the connection was closed'))
    const answer = new Promise<Answer>((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
    this.push(request)
    return answer
  }

  /** Sends, and waits for nothing. */
  push(bytes: Uint8Array): void {
    this.#unsent = this.#unsent ? Buffer.concat([this.#unsent, bytes]) : bytes
    this.#send()
  }

  /** Reads nothing more: answers stay in the buffers of the system until they are full. */
  stopReading(): void {
    if (!this.#closed) this.#socket.pause()
  }

  /** Ends with a reset. */
  reset(): void {
    if (this.#closed) return
    this.#socket.terminate()
    this.#ended()
  }

  /** Resolves with the status of the answer, or 0 when the connection ended without one. */
  answered(): Promise<number> {
    if (this.#closed) return Promise.resolve(0)
    return new Promise((resolve) => {
      this.#waiting = { resolve: ({ status }) => resolve(status), reject: () => resolve(0) }
    })
  }

  #send(): void {
    while (this.#unsent && !this.#closed) {
      const written = this.#socket.write(this.#unsent)
      if (written < 0) this.#ended()
      if (written <= 0) return
      this.#unsent = written < this.#unsent.byteLength ? this.#unsent.subarray(written) : null
    }
  }

  #received(bytes: Uint8Array): void {
    const answer = this.#reader.read(bytes)
    if (!answer) return
    const waiting = this.#waiting
    this.#waiting = null
    waiting?.resolve(answer)
  }

  #ended(): void {
    if (this.#closed) return
    this.#closed = true
    this.#unsent = null
    this.#waiting?.reject(new Closed('the connection ended before the answer'))
    this.#waiting = null
  }
}

/** Takes answers apart as their bytes come: by Content-Length, or in chunks. */
class AnswerReader {
  #head: Buffer | null = null
  #text = ''
  #status = 0
  #bytes = 0
  #body: string[] = []
  /** Bytes until the end of the body, or of the chunk with its line end. */
  #left = 0
  #chunked = false
  #line: string | null = null

  constructor(readonly keep_bodies: boolean) {}

  /** The answer that these bytes complete, or null. */
  read(bytes: Uint8Array): Answer | null {
    let rest = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (this.#text === '') {
      const all: Buffer = this.#head ? Buffer.concat([this.#head, rest]) : rest
      const end = all.indexOf('\r\n\r\n')
      if (end === -1) {
        this.#head = Buffer.from(all)
        return null
      }
      this.#begin(all.toString('latin1', 0, end))
      rest = all.subarray(end + 4)
    }
    const done = this.#chunked ? this.#inChunks(rest) : this.#inOne(rest)
    if (!done) return null
    const answer = { status: this.#status, head: this.#text, bytes: this.#bytes, body: this.#body.join('') }
    this.#text = ''
    return answer
  }

  #begin(head: string): void {
    this.#text = head
    this.#head = null
    this.#status = Number(head.slice(9, 12))
    this.#bytes = 0
    this.#body = []
    this.#chunked = /\r\ntransfer-encoding: *chunked/i.test(head)
    this.#line = this.#chunked ? '' : null
    this.#left = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
    if (this.#status === 204 || this.#status === 304) this.#left = 0
  }

  #inOne(bytes: Buffer): boolean {
    this.#keep(bytes)
    this.#left -= bytes.length
    return this.#left <= 0
  }

  #inChunks(bytes: Buffer): boolean {
    for (let at = 0; at < bytes.length; ) {
      if (this.#line !== null) {
        const end = bytes.indexOf(10, at)
        this.#line += bytes.toString('latin1', at, end === -1 ? bytes.length : end)
        if (end === -1) return false
        at = end + 1
        const size = Number.parseInt(this.#line, 16)
        this.#line = null
        this.#left = size + 2
        if (size === 0) return true // ends with an empty line, which always comes along
      } else {
        const part = Math.min(this.#left, bytes.length - at)
        this.#keep(bytes.subarray(at, at + Math.max(0, Math.min(part, this.#left - 2))))
        this.#left -= part
        at += part
        if (this.#left === 0) this.#line = ''
      }
    }
    return false
  }

  #keep(bytes: Buffer): void {
    this.#bytes += bytes.length
    if (this.keep_bodies) this.#body.push(bytes.toString('utf8'))
  }
}

/** The bytes of a request. */
export function requestBytes(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: string | Uint8Array,
): Buffer {
  const bytes = body === undefined ? null : Buffer.from(body)
  const fields = {
    host: '127.0.0.1',
    ...headers,
    ...(bytes ? { 'content-length': String(bytes.length) } : {}),
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  return bytes ? Buffer.concat([head, bytes]) : head
}

export interface Heard {
  text: string
  /** Null while the other side keeps the connection open. */
  closed_after_ms: number | null
}

/** Sends bytes as they are and listens for `listen_ms`, or until the other side closes. */
export async function exchange(
  port: number,
  bytes: string | Uint8Array,
  listen_ms: number,
  from = attacker_address,
): Promise<Heard> {
  const began = performance.now()
  const heard: Buffer[] = []
  return new Promise<Heard>((resolve) => {
    let over = false
    const finish = (closed: boolean, socket?: Socket) => {
      if (over) return
      over = true
      clearTimeout(timer)
      socket?.terminate()
      const closed_after_ms = closed ? performance.now() - began : null
      resolve({ text: Buffer.concat(heard).toString('latin1'), closed_after_ms })
    }
    let opened: Socket | undefined
    const timer = setTimeout(() => finish(false, opened), listen_ms)
    Bun.connect({
      ...{ hostname: '127.0.0.1', port, localAddress: from },
      socket: {
        open: (socket) => {
          opened = socket
          socket.write(bytes)
        },
        data: (_, part) => void heard.push(Buffer.from(part)),
        end: (socket) => finish(true, socket),
        close: () => finish(true),
        error: () => finish(true),
      },
    }).catch(() => finish(true))
  })
}
