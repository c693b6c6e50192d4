// Look-ups of names, of which only some run at once. The owner of a name decides how long its DNS server takes, so a
// look-up needs a permit, and a tenant whose look-ups hang leaves permits for the others.

import { limit } from '../base/limit.ts'
import { Permits } from '../base/permits.ts'
import { LookupQueue } from './lookup-queue.ts'

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
  'Look-ups for attempts that are kept for tenants with few under way, however many servers are silent.',
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
  'How long an attempt waits for its turn to look its name up. Past it the job is put back without an attempt.',
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
  'Look-ups for new URLs that are kept for tenants with few under way, however many servers are silent.',
)
const creation_look_up_ms_max = limit(
  'dns.creation',
  500,
  'milliseconds',
  'How long the name of a new URL is looked up. Past it the URL is judged only at its attempt.',
)

export interface LookupTimes {
  attempt_ms_max?: number
  permit_wait_ms_max?: number
  creation_ms_max?: number
}

export class Lookups {
  readonly #attempts: LookupQueue
  readonly #creations = new Permits(creation_look_ups_max, creation_look_ups_reserve)
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
    const permits = new Permits(attempt_look_ups_max, attempt_look_ups_reserve)
    this.#attempts = new LookupQueue(permits, this.#times.permit_wait_ms_max)
  }

  /** All addresses of a name. None when it does not resolve, or not in time; null when there was no permit. */
  async addresses(tenant_id: string, name: string, purpose: Purpose): Promise<string[] | null> {
    const known = this.names.known(name)
    if (known) return known
    return purpose === 'attempt' ? this.#forAttempt(tenant_id, name) : this.#atCreation(tenant_id, name)
  }

  /** The creation of a URL does not wait for a permit: the check at the attempt is the one that counts. */
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
    if (!(await this.#attempts.acquire(tenant_id))) return null
    try {
      return await this.names.ask(name, this.#times.attempt_ms_max)
    } finally {
      this.#attempts.release(tenant_id)
    }
  }
}
