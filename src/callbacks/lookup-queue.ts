// The attempts that wait for a permit to look a name up: the tenant that holds fewest permits is next.

import { limit } from '../base/limit.ts'
import type { Permits } from '../base/permits.ts'

/** A tenant that is not remembered counts as one that was never served. */
const served_remembered_max = limit(
  'dns.tenants_remembered',
  10_000,
  'entries',
  'Tenants that are remembered for taking turns at look-ups. The one that was served longest ago is forgotten first.',
)

interface Waiting {
  answer(granted: boolean): void
}

export class LookupQueue {
  /** Attempts without a permit by tenant, the oldest first. */
  readonly #waiting = new Map<string, Waiting[]>()
  /** Tenant -> the number of the permit that it got last, in the order of these numbers. */
  readonly #served_at = new Map<string, number>()
  #grants = 0

  constructor(
    private readonly permits: Permits,
    private readonly wait_ms_max: number,
  ) {}

  /** True once the tenant has a permit, false when there was none in time. */
  acquire(tenant_id: string): Promise<boolean> | boolean {
    if (!this.#waiting.has(tenant_id) && this.permits.mayAcquire(tenant_id)) {
      this.#serve(tenant_id)
      return true
    }
    return new Promise((resolve) => {
      const waiting: Waiting = {
        answer: (granted) => {
          clearTimeout(timer)
          resolve(granted)
        },
      }
      const timer = setTimeout(() => {
        this.#remove(tenant_id, waiting)
        waiting.answer(false)
      }, this.wait_ms_max)
      const queue = this.#waiting.get(tenant_id)
      if (queue) queue.push(waiting)
      else this.#waiting.set(tenant_id, [waiting])
    })
  }

  release(tenant_id: string): void {
    this.permits.release(tenant_id)
    this.#grantNext()
  }

  /** To the tenants that hold least first, and of these to the one that was served longest ago, or never. */
  #grantNext(): void {
    for (;;) {
      let next: string | null = null
      for (const tenant_id of this.#waiting.keys()) {
        if (!this.permits.mayAcquire(tenant_id)) continue
        if (next === null || this.#isBefore(tenant_id, next)) next = tenant_id
      }
      if (next === null) return
      this.#serve(next)
      const waiting = this.#waiting.get(next)![0]!
      this.#remove(next, waiting)
      waiting.answer(true)
    }
  }

  #isBefore(one: string, other: string): boolean {
    const held_more = this.permits.heldBy(one) - this.permits.heldBy(other)
    if (held_more !== 0) return held_more < 0
    return (this.#served_at.get(one) ?? 0) < (this.#served_at.get(other) ?? 0)
  }

  #serve(tenant_id: string): void {
    this.permits.acquire(tenant_id)
    this.#served_at.delete(tenant_id)
    this.#served_at.set(tenant_id, ++this.#grants)
    if (this.#served_at.size <= served_remembered_max) return
    for (const oldest of this.#served_at.keys()) {
      this.#served_at.delete(oldest)
      return
    }
  }

  #remove(tenant_id: string, waiting: Waiting): void {
    const queue = this.#waiting.get(tenant_id)!
    queue.splice(queue.indexOf(waiting), 1)
    if (queue.length === 0) this.#waiting.delete(tenant_id)
  }
}
