// Messages over standard input and output, one JSON-RPC message a line. Standard output belongs to the protocol: nothing else
// may be written there.

import type { Readable, Writable } from 'node:stream'
import {
  type JSONRPCMessage,
  ProtocolErrorCode,
  parseJSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/server'

const newline = 0x0a

/** As over HTTP: bytes of another encoding are refused, and so is a byte order mark. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Unlike the transport of the library: it answers a line that is not a message, and the end of its input does not cancel
 * the calls under way.
 */
export class LineTransport implements Transport {
  onmessage?: (message: JSONRPCMessage) => void
  onclose?: () => void
  /** Resolves when nothing more can be read: false when a message was longer than allowed. Rejects for an input that is none. */
  readonly input_ended: Promise<boolean>
  readonly #input: Readable
  readonly #output: Writable
  readonly #message_bytes_max: number
  readonly #end: (was_read: boolean) => void
  readonly #fail: (error: unknown) => void
  /** Of the line that has begun. */
  #parts: Buffer[] = []
  #bytes = 0

  constructor(input: Readable, output: Writable, message_bytes_max: number) {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    this.#input = input
    this.#output = output
    this.#message_bytes_max = message_bytes_max
    this.input_ended = promise
    this.#end = resolve
    this.#fail = reject
  }

  async start(): Promise<void> {
    const ended = () => this.#end(true)
    // The reader of the answers has disconnected. It may do so more than once.
    this.#output.on('error', ended)
    try {
      this.#input.on('data', this.#read).once('end', ended).once('close', ended).on('error', ended)
    } catch (error) {
      // The library would keep it to itself.
      this.#fail(error)
    }
  }

  /** Does not wait for the client to read: the library would come to no further message until then, nor at the end of the input. */
  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#output.writable) this.#output.write(`${JSON.stringify(message)}\n`)
  }

  async close(): Promise<void> {
    this.#input.off('data', this.#read).pause()
    this.#end(true)
    this.onclose?.()
  }

  readonly #read = (chunk: Buffer): void => {
    let rest = chunk
    for (let end = rest.indexOf(newline); end >= 0; end = rest.indexOf(newline)) {
      if (!this.#append(rest.subarray(0, end))) return
      const line = Buffer.concat(this.#parts)
      this.#parts = []
      this.#bytes = 0
      this.#receive(line)
      rest = rest.subarray(end + 1)
    }
    this.#append(rest)
  }

  /** False when the line has become too long. */
  #append(part: Buffer): boolean {
    this.#bytes += part.length
    if (this.#bytes > this.#message_bytes_max) {
      this.#parts = []
      this.#input.off('data', this.#read).pause()
      this.#end(false)
      return false
    }
    this.#parts.push(part)
    return true
  }

  #receive(line: Uint8Array): void {
    let message: unknown
    try {
      message = JSON.parse(utf8.decode(line))
    } catch {
      this.#refuse(ProtocolErrorCode.ParseError, 'The line is not valid JSON in UTF-8.')
      return
    }
    try {
      this.onmessage?.(parseJSONRPCMessage(message))
    } catch {
      this.#refuse(ProtocolErrorCode.InvalidRequest, 'Send one JSON-RPC message per line, as an object.')
    }
  }

  /** As over HTTP without its id: that was not read. */
  #refuse(code: ProtocolErrorCode, message: string): void {
    void this.send({ jsonrpc: '2.0', id: null, error: { code, message } } as unknown as JSONRPCMessage)
  }
}
