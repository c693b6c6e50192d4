// How many names are looked up at once. The owner of a name decides how long its DNS server takes, so a look-up needs a
// permit, and a tenant whose look-ups hang leaves permits for the others.

import { limit } from '../base/limit.ts'
import { Permits } from '../base/permits.ts'

/** For an attempt, or to judge a URL that is being created. */
export type Purpose = 'attempt' | 'creation'

/** Where addresses come from. A name is in lower case and without a dot at the end. */
export interface NameSource {
  /** The addresses of a name that needs no look-up, or null. */
  known(name: string): string[] | null
  /** All addresses. None when the name does not resolve. Ends after `limit_ms`. */
  ask(name: string, limit_ms: number): Promise<string[]>
}

export const attempt_look_ups_max = limit(
  'dns.attempts',
  64,
  'requests',
  'Names that attempts look up at once on a node. Past it an attempt waits for its turn.',
)
export const attempt_look_ups_reserve = limit(
  'dns.attempts_reserve',
  16,
  'requests',
  'Look-ups for attempts that are kept for tenants with few under way, whatever servers are silent.',
)
const attempt_look_up_ms_max = limit(
  'dns.attempt',
  5_000,
  'milliseconds',
  'How long an attempt looks its name up. Past it the attempt fails with `dns`.',
)
const permit_wait_ms_max = limit(
  'dns.attempt_wait',
  5_000,
  'milliseconds',
  'How long an attempt waits for its turn to look its name up. Past it the job is put back: it was no attempt.',
)
export const creation_look_ups_max = limit(
  'dns.creations',
  32,
  'requests',
  'Names of new URLs that are looked up at once on a node. Past it a URL is judged at its attempt only.',
)
export const creation_look_ups_reserve = limit(
  'dns.creations_reserve',
  16,
  'requests',
  'Look-ups for new URLs that are kept for tenants with few under way, whatever servers are silent.',
)
const creation_look_up_ms_max = limit(
  'dns.creation',
  500,
  'milliseconds',
  'How long the name of a new URL is looked up. Past it the URL is judged at its attempt only.',
)

/** Past it the tenant that was served longest ago is forgotten, and counts as one that never was. */
const served_remembered_max = limit(
  'dns.tenants_remembered',
  10_000,
  'entries',
  'Tenants that are remembered for taking turns at look-ups. Who was served longest ago is forgotten first.',
)

export interface LookupTimes {
  attempt_ms_max?: number
  permit_wait_ms_max?: number
  creation_ms_max?: number
}

interface Waiting {
  answer(granted: boolean): void
}

export class Lookups {
  readonly #attempts = new Permits(attempt_look_ups_max, attempt_look_ups_reserve)
  readonly #creations = new Permits(creation_look_ups_max, creation_look_ups_reserve)
  /** Attempts without a permit by tenant, the oldest first. */
  readonly #waiting = new Map<string, Waiting[]>()
  /** Tenant -> the number of the permit that it got last; whose is oldest comes first. */
  readonly #served_at = new Map<string, number>()
  #grants = 0
  readonly #times: Required<LookupTimes>

  constructor(
    private readonly names: NameSource,
    times: LookupTimes = {},
  ) {
    this.#times = {
      attempt_ms_max: attempt_look_up_ms_max,
      permit_wait_ms_max,
      creation_ms_max: creation_look_up_ms_max,
      ...times,
    }
  }

  /** All addresses of a name. None when it does not resolve, or not in time; null when there was no permit. */
  async addresses(tenant_id: string, name: string, purpose: Purpose): Promise<string[] | null> {
    const known = this.names.known(name)
    if (known) return known
    return purpose === 'attempt' ? this.#forAttempt(tenant_id, name) : this.#atCreation(tenant_id, name)
  }

  /** The creation of a URL does not wait for a permit: the attempt is where it counts. */
  async #atCreation(tenant_id: string, name: string): Promise<string[] | null> {
    if (!this.#creations.mayAcquire(tenant_id)) return null
    this.#creations.acquire(tenant_id)
    try {
      return await this.names.ask(name, this.#times.creation_ms_max)
    } finally {
      this.#creations.release(tenant_id)
    }
  }

  async #forAttempt(tenant_id: string, name: string): Promise<string[] | null> {
    if (!(await this.#permit(tenant_id))) return null
    try {
      return await this.names.ask(name, this.#times.attempt_ms_max)
    } finally {
      this.#attempts.release(tenant_id)
      this.#grantNext()
    }
  }

  #permit(tenant_id: string): Promise<boolean> | boolean {
    if (!this.#waiting.has(tenant_id) && this.#attempts.mayAcquire(tenant_id)) {
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
        this.#forget(tenant_id, waiting)
        waiting.answer(false)
      }, this.#times.permit_wait_ms_max)
      const queue = this.#waiting.get(tenant_id)
      if (queue) queue.push(waiting)
      else this.#waiting.set(tenant_id, [waiting])
    })
  }

  /** To the tenants that hold least first, and of these to the one that was served longest ago, or never. */
  #grantNext(): void {
    for (;;) {
      let next: string | null = null
      for (const tenant_id of this.#waiting.keys()) {
        if (!this.#attempts.mayAcquire(tenant_id)) continue
        if (next === null || this.#isBefore(tenant_id, next)) next = tenant_id
      }
      if (next === null) return
      this.#serve(next)
      const waiting = this.#waiting.get(next)![0]!
      this.#forget(next, waiting)
      waiting.answer(true)
    }
  }

  #isBefore(one: string, other: string): boolean {
    const held_more = this.#attempts.heldBy(one) - this.#attempts.heldBy(other)
    if (held_more !== 0) return held_more < 0
    return (this.#served_at.get(one) ?? 0) < (this.#served_at.get(other) ?? 0)
  }

  #serve(tenant_id: string): void {
    this.#attempts.acquire(tenant_id)
    this.#served_at.delete(tenant_id)
    this.#served_at.set(tenant_id, ++this.#grants)
    if (this.#served_at.size <= served_remembered_max) return
    for (const oldest of this.#served_at.keys()) {
      this.#served_at.delete(oldest)
      return
    }
  }

  #forget(tenant_id: string, waiting: Waiting): void {
    const queue = this.#waiting.get(tenant_id)!
    queue.splice(queue.indexOf(waiting), 1)
    if (queue.length === 0) this.#waiting.delete(tenant_id)
  }
}
