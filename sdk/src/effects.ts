// client.effects

import * as generated from './generated-resources.ts'
import { type LookOptions, lookUntil } from './look.ts'
import { doOnce, type OnceEffect, type Permit } from './once.ts'
import type { Effect } from './types.ts'

export class Effects extends generated.Effects {
  /**
   * Does something at most once, and answers its recorded result: claims the effect, waits for its approval, starts it, calls
   * `work` while it keeps the lease, and records what came of it. A call for an effect that is over answers the recorded
   * result without calling `work`. Throws EffectRejectedError, EffectFailedError, EffectUnknownError, EffectInFlightError
   * (with `if_in_flight: 'throw'`), EffectUnrecordedError, and what `work` throws.
   */
  once<T, P = unknown>(effect: OnceEffect<P>, work: (permit: Permit<P>) => T | Promise<T>): Promise<T> {
    return doOnce(this, this.transport, effect, work)
  }

  /**
   * Waits until it neither waits for its approval nor runs, however long that takes; `signal` ends the wait. An unavailable
   * service is tried again for about a minute, unless `retries` says otherwise.
   */
  waitFor(id: string, options: LookOptions = {}): Promise<Effect> {
    const isDone = ({ status }: Effect) => status !== 'awaiting_approval' && status !== 'running'
    return lookUntil(this.transport, options, (call) => this.get(id, call), isDone)
  }
}
