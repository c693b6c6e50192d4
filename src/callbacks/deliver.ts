// The sender of requests to receivers: its time and connections are limited. All requests out of the service go here.

import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { Attempt, type Failure, type Outcome, type Outgoing } from './attempt.ts'
import { openConnection } from './dial.ts'
import type { EgressPolicy } from './guard.ts'
import { Pool, type PoolSettings } from './pool.ts'

/** Settings that differ from the defaults. */
export type SenderOptions = Partial<PoolSettings>

const defaults: PoolSettings = {
  deadline_ms: limit(
    'callbacks.attempt',
    10_000,
    'milliseconds',
    'One attempt, from the look-up of the name to the header block of the answer. Past it it fails with `timeout`.',
  ),
  idle_ms: limit(
    'callbacks.idle_connection',
    1_000,
    'milliseconds',
    'How long an idle connection to a receiver is kept: less than servers usually wait for the next request. One that is closed just as it is used again fails the attempt.',
  ),
  connections_kept_max: limit(
    'callbacks.connections',
    512,
    'connections',
    'Connections to receivers, above which none is kept for reuse.',
  ),
  connect: openConnection,
}

export class Sender {
  readonly #policy: EgressPolicy
  readonly #clock: Clock
  readonly #pool: Pool

  constructor(policy: EgressPolicy, clock: Clock, options: SenderOptions = {}) {
    this.#policy = policy
    this.#clock = clock
    this.#pool = new Pool({ ...defaults, ...options }, clock)
  }

  /**
   * Never rejects. 2xx is success as soon as its header block is in. Follows no redirect, reads no proxy settings,
   * keeps no cookie, decodes no content.
   */
  send(tenant_id: string, outgoing: Outgoing): Promise<Outcome> {
    return new Promise((resolve) => {
      const started = this.#clock.monotonic()
      const settle = (status: number | null, error: Failure | null) => {
        const duration_ms = Math.round(this.#clock.monotonic() - started)
        resolve({ ok: error === null, status, error, duration_ms })
      }
      new Attempt(outgoing, this.#pool, settle).start(this.#policy, tenant_id)
    })
  }

  /** Closes every connection; attempts under way end as `refused`. */
  close(): void {
    this.#pool.close()
  }
}
