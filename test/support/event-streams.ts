// Events as tests make them and read them.

import { Type } from 'typebox'
import { declareEvents, service_cause } from '../../src/contract/event.ts'
import * as journal from '../../src/journal/service.ts'
import { inTime } from './patience.ts'
import type { TestService } from './service.ts'

const types = declareEvents({
  'audit.appended': { about: 'For tests.', subject: 'audit_entry', data: { n: Type.Integer() } },
  'dlq.created': { about: 'For tests.', subject: 'dlq_item', data: { n: Type.Integer() } },
})

export interface Happening {
  type?: keyof typeof types
  subject_id?: string
  workflow_id?: string | null
  private_to?: string | null
}

/** Leaves events in one transaction, without a call of the API. */
export function happen({ app }: TestService, tenant_id: string, ...happenings: Happening[]): Promise<void> {
  return app.db.write(tenant_id, async (tx) => {
    for (const [n, { type = 'audit.appended', subject_id = 's1', ...given }] of happenings.entries()) {
      const event = { tenant_id, cause: service_cause, subject_id, data: { n }, ...given }
      await journal.emit(tx, types[type], event)
    }
  })
}

/** A block of a stream of Server-Sent Events: its fields, and its comment under ''. */
export type Block = Record<string, string>

export class EventReader {
  readonly #pieces: AsyncIterator<Uint8Array>
  readonly #decoder = new TextDecoder()
  #text = ''

  constructor(
    readonly response: Response,
    readonly close: () => void,
  ) {
    this.#pieces = response.body![Symbol.asyncIterator]()
  }

  /** The next block; null at the end of the stream. */
  async next(): Promise<Block | null> {
    for (;;) {
      const at = this.#text.indexOf('\n\n')
      if (at !== -1) {
        const block = this.#text.slice(0, at)
        this.#text = this.#text.slice(at + 2)
        return Object.fromEntries(block.split('\n').map((line) => fieldOf(line)))
      }
      const { done, value } = await inTime(this.#pieces.next())
      if (done) return null
      this.#text += this.#decoder.decode(value, { stream: true })
    }
  }

  /** The subjects of so many events. */
  async subjects(count: number): Promise<string[]> {
    const found: string[] = []
    while (found.length < count) {
      const block = await this.next()
      if (block === null) throw new Error(`the stream ended after ${found}`)
      if (block.data !== undefined) found.push(JSON.parse(block.data).subject.id)
    }
    return found
  }
}

function fieldOf(line: string): [string, string] {
  const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? []
  return [name, value]
}

/** Opens a stream; what it says first was read. */
export async function follow(
  { url }: TestService,
  key: string,
  path = '/v1/events',
  headers: Record<string, string> = {},
): Promise<EventReader> {
  const controller = new AbortController()
  const response = await fetch(`${url}${path}`, {
    headers: { authorization: `Bearer ${key}`, accept: 'text/event-stream', ...headers },
    signal: controller.signal,
  })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return new EventReader(response, () => controller.abort())
}

/** Opens so many streams at once, more than fetch does, and resolves when each has begun; returns what closes them. */
export async function followOften({ url }: TestService, key: string, count: number): Promise<() => void> {
  const { hostname, port } = new URL(url)
  const request = `GET /v1/events HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${key}\r\nAccept: text/event-stream\r\n\r\n`
  const open = async () => {
    const begun = Promise.withResolvers<void>()
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        open: (opened) => void opened.write(request),
        data(_, bytes) {
          const text = new TextDecoder().decode(bytes)
          if (text.includes('retry: ')) begun.resolve()
          else if (!text.startsWith('HTTP/1.1 200')) begun.reject(new Error(text))
        },
        error: (_, error) => begun.reject(error),
      },
    })
    await inTime(begun.promise)
    return socket
  }
  const sockets = await Promise.all(Array.from({ length: count }, open))
  return () => {
    for (const socket of sockets) socket.terminate()
  }
}
