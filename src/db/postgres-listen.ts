// The channel on which the nodes of one PostgreSQL hear each other: LISTEN on a connection of its own, which is opened
// again when it ends. Nothing is taken for granted: a node listens once it has heard itself.

import { SQL } from 'bun'
import type { Clock } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import { inTime } from '../base/in-time.ts'
import { limit } from '../base/limit.ts'
import { addressOf } from './postgres-url.ts'

/** Of NOTIFY; channels belong to a database. */
export const channel = 'waystation'

/** A node that hears nothing of itself any more is found out this often. */
const prove_every_ms = 5_000
const proof_ms_max = limit(
  'nodes.proof_ms',
  2_000,
  'milliseconds',
  'How long a node waits to hear itself on PostgreSQL. Past it LISTEN does not work, and it looks for changes of other nodes instead.',
)
/** The start does not wait longer to hear whether LISTEN works. */
const start_ms_max = limit(
  'nodes.start_ms',
  1_000,
  'milliseconds',
  'How long a start waits to hear itself on PostgreSQL. Past it the service starts without having heard itself.',
)
const connect_ms_max = limit(
  'nodes.connect_ms',
  3_000,
  'milliseconds',
  'How long the connection that listens may take to open. Past it another one is opened.',
)
const retry_ms_min = limit(
  'nodes.retry_least',
  100,
  'milliseconds',
  'The first pause before a connection that listened and was lost is opened again; it doubles.',
)
const retry_ms_max = limit(
  'nodes.retry',
  5_000,
  'milliseconds',
  'The longest pause before the connection that listens is opened again.',
)
const unheard_retry_ms_max = limit(
  'nodes.unheard_retry',
  60_000,
  'milliseconds',
  'The same while LISTEN has never worked, as behind a pooler.',
)

export interface ListenOptions {
  url: string
  clock: Clock
  /** Sends to all that listen, this node included, on another connection. */
  send(text: string): Promise<void>
  onText(text: string): void
  /** True: texts are heard from now on; some that were sent before may have been missed. False: they are not. */
  onHeard(heard: boolean, reason: string): void
  /** How often a node makes sure that it still hears itself. */
  prove_every_ms?: number
}

export class PostgresListener {
  #client: SQL | null = null
  #heard = false
  #was_heard = false
  readonly #first_known = Promise.withResolvers<void>()
  /** Why it does not listen. */
  #reason = 'it has not heard its own NOTIFY yet'
  #retry_ms = retry_ms_min
  /** The server or a pooler refused a setting of the connection. */
  #plain = false
  #timer: Timer | undefined
  /** The text in which this node waits to hear itself. */
  #proof: { text: string; onHeard: () => void } | null = null

  constructor(private readonly options: ListenOptions) {}

  /** The reason that nothing is heard; null while it is. */
  get trouble(): string | null {
    return this.#heard ? null : this.#reason
  }

  /** Resolves when texts are heard, or when it is clear that they will not be for now. */
  async start(): Promise<void> {
    void this.#open()
    await within(start_ms_max, this.#first_known.promise).catch(() => {})
  }

  async #open(): Promise<void> {
    const client = this.#newClient()
    this.#client = client
    try {
      await within(
        connect_ms_max,
        client.listen(channel, (text) => this.#onText(client, text)),
      )
    } catch (error) {
      return this.#lost(client, `no connection that listens: ${(error as Error).message}`)
    }
    if (client === this.#client) await this.#prove(client)
  }

  /** The connection that listens is the only one of this client. */
  #newClient(): SQL {
    const client: SQL = new SQL({
      ...addressOf(this.options.url),
      max: 1,
      connectionTimeout: connect_ms_max / 1_000,
      connection: {
        application_name: 'waystation listen',
        ...(this.#plain ? {} : { idle_session_timeout: '0' }), // it is idle by nature
      },
      onclose: (error) => this.#lost(client, `the connection that listens was lost: ${error?.message}`),
    })
    return client
  }

  #onText(client: SQL, text: string): void {
    if (client !== this.#client) return
    if (text === this.#proof?.text) this.#proof.onHeard()
    else if (!text.startsWith(proof_prefix)) this.options.onText(text)
  }

  async #prove(client: SQL): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const text = newId(proof_prefix, this.options.clock.now())
    this.#proof = { text, onHeard: resolve }
    try {
      await within(proof_ms_max, Promise.all([this.options.send(text), promise]))
    } catch (error) {
      return this.#lost(client, `a node does not hear its own NOTIFY: ${(error as Error).message}`)
    }
    if (client !== this.#client) return
    this.#retry_ms = retry_ms_min
    this.#setHeard(true, '')
    this.#timer = setTimeout(() => this.#prove(client), this.options.prove_every_ms ?? prove_every_ms)
  }

  #lost(client: SQL, reason: string): void {
    if (client !== this.#client) return
    this.#client = null
    clearTimeout(this.#timer)
    client.close({ timeout: 0 }).catch(() => {})
    // A pooler knows a few settings, and a server before 14 not this one, which it says in its own language.
    if (!this.#plain && /startup parameter|idle_session_timeout/i.test(reason)) {
      this.#plain = true
      return void this.#open()
    }
    this.#setHeard(false, reason)
    this.#timer = setTimeout(() => this.#open(), this.#retry_ms)
    this.#retry_ms = Math.min(2 * this.#retry_ms, this.#was_heard ? retry_ms_max : unheard_retry_ms_max)
  }

  #setHeard(heard: boolean, reason: string): void {
    this.#reason = reason
    this.#first_known.resolve()
    if (heard === this.#heard) return
    this.#heard = heard
    this.#was_heard = true
    this.options.onHeard(heard, reason)
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = null
    await client?.close({ timeout: 0 }).catch(() => {})
  }
}

const proof_prefix = 'proof'

/** Rejects when it takes longer. */
function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return inTime(work, ms, () => new Error(`nothing within ${ms} ms`))
}
