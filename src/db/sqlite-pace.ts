// How quick the disk is, and so where the log is flushed: in the event loop while a flush costs less than a hop to
// another thread and back, off it otherwise.

import type { Millis } from '../base/clock.ts'

/** A flush that takes no longer than this costs other requests less than to hand it to a thread would. */
const quick_ms = 0.3
/** After a flush this long the next could hang as well: it runs off the loop. */
const hung_ms = 10
/** Of a flush that is merely slow no more than this counts, so that one among many quick ones changes nothing. */
const counted_ms = 1
/** The part of the estimate that the last flush makes. */
const weight = 1 / 8
/** The disk is quick for good: should it grow slow again, that is looked at as if it were the first time. */
const settled_ms = 0.8 * quick_ms
/** How long flushes stay off the loop. Doubled each time that the disk has proved to be slow when they came back. */
const first_pause_ms = 50
/** The shortest after a flush that hung. Doubled each time that flushes which hang stop the loop for more than their share. */
const hung_pause_ms = 250
/** Of the time between two flushes that hung, without the pause. */
const hung_share = 1 / 100
const last_pause_ms = 60_000
/** Flushes come back only after one off the loop that took no longer than this, the way to the thread and back included. */
const promising_ms = 4

export class DiskPace {
  /** Decaying mean of the flushes in the loop. Begins at the limit, so that one slow flush is enough until it has fallen. */
  #estimate_ms = quick_ms
  #pause_ms = first_pause_ms
  #hung_pause_ms = hung_pause_ms
  #hung_at: Millis = Number.NEGATIVE_INFINITY
  /** Null while flushes run in the loop. */
  #paused_until: Millis | null = null

  /** True when the next flush runs in the event loop. Changes only when a flush has ended. */
  get is_quick(): boolean {
    return this.#paused_until === null
  }

  /** A flush in the loop has ended at `now`. */
  tookInLoop(ms: number, now: Millis): void {
    this.#estimate_ms += (Math.min(ms, counted_ms) - this.#estimate_ms) * weight
    if (this.#estimate_ms > quick_ms || ms >= hung_ms) {
      const pause_ms = ms >= hung_ms ? Math.max(this.#pause_ms, this.#hungPause(ms, now)) : this.#pause_ms
      this.#paused_until = now + pause_ms
      this.#pause_ms = Math.min(2 * pause_ms, last_pause_ms)
    } else if (this.#estimate_ms < settled_ms) this.#pause_ms = first_pause_ms
  }

  /** A few quick flushes do not make up for one that hung, during which no request is served. */
  #hungPause(ms: number, now: Millis): Millis {
    const in_loop_ms = now - this.#hung_at - this.#hung_pause_ms
    const hangs_often = ms > hung_share * in_loop_ms
    this.#hung_pause_ms = hangs_often ? Math.min(2 * this.#hung_pause_ms, last_pause_ms) : hung_pause_ms
    this.#hung_at = now
    return this.#hung_pause_ms
  }

  /** A flush off the loop has ended at `now`. `ms` is seen from the loop: the disk may have been quicker. */
  tookOffLoop(ms: number, now: Millis): void {
    if (now < this.#paused_until! || ms > promising_ms) return
    this.#paused_until = null
    this.#estimate_ms = quick_ms
  }
}
