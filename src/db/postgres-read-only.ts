// A PostgreSQL that takes no writes, as the old primary does after a failover. Connections to it stay open and answer reads, so
// nothing else would ever replace them: new ones are tried until they reach a server that takes writes.

import type { Settings } from './connection-settings.ts'
import { isReadOnly } from './errors.ts'
import type { Pool } from './postgres-pool.ts'

const look_every_ms = 500

export class ReadOnly {
  /** Writes are refused by the server. */
  is_on = false
  #timer: Timer | undefined
  #is_closed = false

  constructor(
    private readonly pool: Pick<Pool, 'probe'>,
    /** A new connection may write: others like it are to take the place of those that are open. */
    private readonly onWritable: () => void,
  ) {}

  /** The end of a call. */
  notice(error: unknown): void {
    if (isReadOnly(error)) this.#begin()
  }

  /** An answer of the server about itself. */
  judge({ transaction_read_only }: Settings): void {
    if (transaction_read_only === 'on') this.#begin()
  }

  #begin(): void {
    if (this.is_on || this.#is_closed) return
    this.is_on = true
    this.#lookLater()
  }

  #lookLater(): void {
    this.#timer = setTimeout(() => this.#look(), look_every_ms)
    this.#timer.unref()
  }

  async #look(): Promise<void> {
    const rows = await this.pool.probe('show transaction_read_only').catch(() => []) // away: that is found out elsewhere
    if (this.#is_closed) return
    if (rows[0]?.transaction_read_only !== 'off') return this.#lookLater()
    this.is_on = false
    this.onWritable()
  }

  close(): void {
    this.#is_closed = true
    clearTimeout(this.#timer)
  }
}
