// Writers and readers that race on the journal of one tenant, on all nodes of a service, and what they were told.

import type { Change, SeenEvent } from './journal-judge.ts'

export interface RacingTenant {
  admin_key: string
  api_key: string
}

/** The nodes as they are at the moment: one that was killed comes back under another address. */
export interface Nodes {
  url(n: number): string
}

/** One kind of change: its request, and how all that the service holds of it is read. */
interface Kind {
  type: string
  method: string
  path(mark: string): string
  body(mark: string): object
  /** Subject of the event to mark, of all that is there. */
  kept(get: Get): Promise<Map<string, string>>
}

type Get = (path: string) => Promise<Json>
// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of an answer's shape
type Json = any

/** Of every page of a list. */
async function each(
  get: Get,
  path: string,
  entryOf: (item: Json) => Awaited<[string, string] | null>,
): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (let cursor = ''; ; ) {
    const page = await get(`${path}&limit=200${cursor}`)
    for (const item of page.items) {
      const entry = entryOf(item)
      if (entry) found.set(...entry)
    }
    if (page.next_cursor === null) return found
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
  }
}

const kinds: readonly Kind[] = [
  {
    type: 'audit.appended',
    method: 'POST',
    path: () => '/v1/audit',
    body: (mark) => ({ action: 'raced', actor: mark }),
    kept: (get) => each(get, '/v1/audit?action=raced', ({ id, actor }) => [id, actor]),
  },
  {
    type: 'dlq.created',
    method: 'POST',
    path: () => '/v1/dlq',
    body: (mark) => ({ payload: 1, error: 'raced', workflow_id: mark }),
    kept: (get) => each(get, '/v1/dlq?source=agent', ({ id, workflow_id }) => [id, workflow_id]),
  },
  {
    type: 'schedule.created',
    method: 'POST',
    path: () => '/v1/schedules',
    body: (mark) => ({
      callback_url: 'http://127.0.0.1:9/never',
      fire_at: '2999-01-01T00:00:00Z',
      callback_payload: 1,
      name: mark,
    }),
    kept: (get) => each(get, '/v1/schedules?status=pending', ({ id, name }) => [id, name]),
  },
]

const patience_ms = 20_000
/** How long a reader that is behind the end gets nothing before it counts as stuck: node and machine may be slow. */
const stuck_ms = 60_000

export class JournalLoad {
  readonly changes: Change[] = []
  /** How many of them were acknowledged. */
  acknowledged = 0
  readonly readers: SeenEvent[][] = []
  /** Answers that no request may get. */
  readonly refused: string[] = []
  /** The number of the last event, once no more changes come. */
  #last_seq: number | null = null
  readonly #reading: Promise<void>[] = []

  constructor(
    private readonly nodes: Nodes,
    private readonly tenant: RacingTenant,
    /** Types whose changes are made. */
    private readonly types: readonly string[] = kinds.map(({ type }) => type),
  ) {}

  /** So many writers until so many changes were acknowledged. */
  async write(writers: number, changes: number): Promise<void> {
    const chosen = kinds.filter(({ type }) => this.types.includes(type))
    await Promise.all(
      Array.from({ length: writers }, async (_, writer) => {
        for (let n = 0; this.acknowledged < changes; n++)
          await this.#change(chosen[(writer + n) % chosen.length]!, `w${writer}-${n}`, writer + n)
      }),
    )
  }

  async #change({ type, method, path, body }: Kind, mark: string, node: number): Promise<void> {
    const change: Change = { mark, type, began_at: performance.now(), acknowledged_at: null }
    this.changes.push(change)
    try {
      const { status, text } = await this.#ask(node, method, path(mark), body(mark))
      if (status === 201 || status === 200) {
        change.acknowledged_at = performance.now()
        this.acknowledged += 1
        // Without an answer of the database or the node, the change may have been made or not.
      } else if (status !== 503) this.refused.push(`${type}: ${status} ${text}`)
    } catch {
      await Bun.sleep(20) // the node is gone
    }
  }

  /** A reader that follows by `after` from the oldest event on, each request on another node, in one of three ways. */
  follow(way: 'pages' | 'waits' | 'stream', n: number): void {
    const got: SeenEvent[] = []
    this.readers.push(got)
    const step = { pages: this.#page, waits: this.#wait, stream: this.#stream }[way].bind(this)
    const run = async () => {
      let moved_at = performance.now()
      for (let turn = n; ; turn++) {
        const before = got.length
        await step(got, turn).catch(() => Bun.sleep(20)) // the node is gone
        if (got.length > before || this.#last_seq === null) moved_at = performance.now()
        const is_behind = this.#last_seq === null || (got.at(-1)?.seq ?? 0) < this.#last_seq
        if (!is_behind || performance.now() - moved_at > stuck_ms) return
      }
    }
    this.#reading.push(run())
  }

  async #page(got: SeenEvent[], node: number): Promise<void> {
    const after = got.at(-1)?.seq ?? 0
    const { items } = await this.#get(node, `/v1/events?after=${after}&limit=${1 + (node % 50)}`)
    got.push(...items)
  }

  /** One event at a time, as an agent does. */
  async #wait(got: SeenEvent[], node: number): Promise<void> {
    const body = { any: [{}], after: got.at(-1)?.seq ?? 0, wait_seconds: 1 }
    const { status, text } = await this.#ask(node, 'POST', '/v1/wait', body)
    if (status !== 200) throw new Error(text)
    const { event } = JSON.parse(text)
    if (event) got.push(event)
  }

  async #stream(got: SeenEvent[], node: number): Promise<void> {
    const stop = AbortSignal.timeout(1_000)
    const response = await fetch(`${this.nodes.url(node)}/v1/events`, {
      headers: {
        authorization: `Bearer ${this.tenant.admin_key}`,
        accept: 'text/event-stream',
        'last-event-id': String(got.at(-1)?.seq ?? 0),
      },
      signal: stop,
    })
    let text = ''
    const decoder = new TextDecoder()
    try {
      for await (const bytes of response.body!) {
        text += decoder.decode(bytes, { stream: true })
        const blocks = text.split('\n\n')
        text = blocks.pop()!
        for (const block of blocks) {
          const data = /^data: (.*)$/m.exec(block)?.[1]
          if (data !== undefined) got.push(JSON.parse(data))
        }
      }
    } catch (error) {
      if (!stop.aborted) throw error
    }
  }

  /** No more changes come; resolves when every reader has come to the end, or gets nothing any more. */
  async end(): Promise<void> {
    this.#last_seq = (await this.journal()).at(-1)?.seq ?? 0
    await Promise.all(this.#reading)
  }

  async journal(): Promise<SeenEvent[]> {
    const journal: SeenEvent[] = []
    for (;;) {
      const page = await this.#get(0, `/v1/events?after=${journal.at(-1)?.seq ?? 0}&limit=200`)
      if (page.items.length === 0) return journal
      journal.push(...page.items)
    }
  }

  async kept(): Promise<Map<string, Map<string, string>>> {
    const chosen = kinds.filter(({ type }) => this.types.includes(type))
    return new Map(
      await Promise.all(
        chosen.map(async ({ type, kept }) => [type, await kept((path) => this.#get(0, path))] as const),
      ),
    )
  }

  async #get(node: number, path: string): Promise<Json> {
    const { status, text } = await this.#ask(node, 'GET', path)
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
    return JSON.parse(text)
  }

  async #ask(node: number, method: string, path: string, body?: object) {
    const response = await fetch(`${this.nodes.url(node)}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${method === 'GET' ? this.tenant.admin_key : this.tenant.api_key}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(patience_ms),
    })
    // Another program may have got the port of a node that was killed.
    if (!response.headers.has('x-request-id')) throw new Error('not the service')
    return { status: response.status, text: await response.text() }
  }
}
