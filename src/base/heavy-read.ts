// The permit of one heavy read, held while its rows are read and while they are sent.

import type { HeavyReads } from './heavy-reads.ts'
import { limit } from './limit.ts'

const kept_ms_max = limit(
  'heavy_reads.kept_ms',
  1_000,
  'milliseconds',
  'How long an answer that is being sent counts as a heavy read of its tenant, so that a tenant has few pages in memory; past it a slow client no longer keeps others of its tenant from reading.',
)

/** The right of one request to read. */
export class Permit {
  #held: 'no' | 'tenant' | 'node' = 'no'
  #end: Timer | undefined

  constructor(
    private readonly reads: HeavyReads,
    private readonly tenant_id: string,
    private readonly signal: AbortSignal,
  ) {}

  /** Waits for the permit; rejects when the client is gone, or there is none in time. */
  async acquire(ms_max: number | null = null): Promise<void> {
    await this.reads.acquire(this.tenant_id, this.signal, ms_max)
    this.#held = 'node'
  }

  /** May be called again. */
  release(): void {
    clearTimeout(this.#end)
    if (this.#held === 'node') this.reads.release(this.tenant_id)
    if (this.#held === 'tenant') this.reads.releaseOfTenant(this.tenant_id)
    this.#held = 'no'
  }

  /**
   * Called when the rows were read and are being sent. Other tenants may read at once; it counts as a read of its own
   * tenant until they were sent, and not for long in any case.
   */
  releaseSoon(): void {
    if (this.#held !== 'node') return
    this.#held = 'tenant'
    this.reads.releaseOfNode()
    this.#end = setTimeout(() => this.release(), kept_ms_max)
  }

  /** Waits for something else without the permit, so that a waiting request keeps no other from reading. */
  async pause<T>(waiting: Promise<T>): Promise<T> {
    this.release()
    const result = await waiting
    await this.acquire()
    return result
  }
}
