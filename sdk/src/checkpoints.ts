// client.checkpoints

import * as generated from './generated-resources.ts'
import { type CallOptions, retries_max } from './transport.ts'
import type { Checkpoint } from './types.ts'

/** How long the service holds a waiting request; it accepts 55 at most. */
const wait_seconds_default = 50
/** A service with too many waiting requests answers at once. The next request then follows after this, and a little more. */
const look_again_ms = 1_000

export class Checkpoints extends generated.Checkpoints {
  /**
   * Waits until it is approved, rejected, expired or cancelled, however long that takes; `signal` ends the wait. An
   * unavailable service is tried again for about a minute, unless `retries` says otherwise.
   */
  async waitFor(
    id: string,
    {
      wait_seconds = wait_seconds_default,
      retries = retries_max,
      ...options
    }: CallOptions & { wait_seconds?: number | undefined } = {},
  ): Promise<Checkpoint> {
    const { now, sleep, random } = this.transport.platform
    for (;;) {
      const asked_at = now()
      const checkpoint = await this.get(id, { ...options, retries, wait: wait_seconds })
      if (checkpoint.status !== 'pending') return checkpoint
      if (now() - asked_at < look_again_ms) {
        await sleep(look_again_ms + Math.floor(random() * look_again_ms), options.signal)
      }
    }
  }
}
