// The tails of this node: one for each tenant for whose events requests wait.

import type { Notifier } from '../base/notifier.ts'
import { type JournalReader, Tail } from './tail.ts'

export class Tails {
  readonly #tails = new Map<string, Tail>()

  constructor(
    private readonly reader: JournalReader,
    private readonly notifier: Notifier,
  ) {}

  /** Tenants whose events somebody waits for. For tests. */
  get size(): number {
    return this.#tails.size
  }

  /**
   * The tail of a tenant, until `leave`. Every event that was committed before the call is at its position or before it.
   * Throws what the database throws.
   */
  async enter(tenant_id: string): Promise<Tail> {
    const tail = this.#tails.get(tenant_id) ?? this.#begin(tenant_id)
    tail.users += 1
    try {
      await tail.refresh()
      return tail
    } catch (error) {
      this.leave(tail)
      throw error
    }
  }

  #begin(tenant_id: string): Tail {
    const tail = new Tail(tenant_id, this.reader, this.notifier)
    this.#tails.set(tenant_id, tail)
    return tail
  }

  /** The last one ends it. */
  leave(tail: Tail): void {
    tail.users -= 1
    if (tail.users > 0) return
    this.#tails.delete(tail.tenant_id)
    tail.end()
  }
}
