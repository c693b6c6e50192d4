// Writes the outcomes of leased jobs: they are settled, or released because nothing was sent. A database that refuses for a
// moment is asked again while the lease holds; the fencing token makes that safe.

import type { Millis } from '../base/clock.ts'
import { sleep } from '../base/sleep.ts'
import { dueWork, from, type Tx } from '../db/db.ts'
import { isOutcomeUnknown } from '../db/errors.ts'
import { type AttemptResult, type LeasedJob, lease_ms } from './job.ts'
import type { Counter, JobKind, LocalKind, SendingKind } from './kind.ts'
import * as store from './store.ts'
import { undoLease } from './undo-store.ts'
import type { WorkerOptions } from './worker-options.ts'

const write_again_ms = 2_000 // at most, between two tries to write an outcome
/** A tick looks this often whether outcomes are written. */
const look_again_ms = 50

/** Its kind, and when it was leased, on the monotonic clock. */
export interface Running<Kind extends JobKind = JobKind> {
  job: LeasedJob
  kind: Kind
  leased_at: number
}

export class Outcomes {
  /** Those that are being written; each is counted once its transaction is answered. */
  readonly #settling = new Set<Promise<void>>()
  #counts = new Map<string, number>()
  #stopped = false

  constructor(private readonly options: Pick<WorkerOptions, 'db' | 'clock' | 'dependencies'>) {}

  /** A commit whose answer was lost may still have settled it: the next try then finds the lease gone. */
  async settle(running: Running<SendingKind>, result: AttemptResult): Promise<void> {
    const { db, dependencies } = this.options
    const { job, kind } = running
    let maybe_committed: Counter = null
    const settle = async () => {
      let counter: Counter = null
      const work = async (tx: Tx) => (counter = await kind.settle(from(tx, job), dependencies, job, result))
      try {
        return (await db.write(dueWork(job.tenant_id), work)) ?? maybe_committed
      } catch (error) {
        if (isOutcomeUnknown(error)) maybe_committed ??= counter
        throw error
      }
    }
    await this.#counted(this.#writeWithRetry(running, settle))
  }

  /** Settles a job that sends nothing: as long as this fails, the job is leased again. */
  async settleLocal(job: LeasedJob, kind: LocalKind): Promise<undefined> {
    const { db, dependencies } = this.options
    await this.#counted(
      db.write(dueWork(job.tenant_id), (tx) => kind.settle(from(tx, job), dependencies, job)),
    )
  }

  /** Nothing is left to send. `seen`: as the kind says, or null. */
  async endIdle({ job, kind }: Running<SendingKind>, seen: number | null): Promise<void> {
    const { db, dependencies } = this.options
    await db.write(dueWork(job.tenant_id), async (tx) => {
      if (kind.idle) await kind.idle(tx, dependencies, job, seen)
      else await store.complete(tx, job)
    })
  }

  /** The lease was not used: the attempt does not count, and the job is due, or will be at another time. */
  async release(running: Running, againAt?: (now: Millis) => Millis): Promise<void> {
    const { db, dependencies } = this.options
    const { job, kind } = running
    await this.#writeWithRetry(running, () =>
      db.write(dueWork(job.tenant_id), async (tx) => {
        const again_at = againAt?.(tx.now) ?? null
        await store.release(tx, job, again_at)
        const at_once = kind.starts_at_once && job.attempts === 1
        if (again_at !== null) tx.afterCommit(() => dependencies.jobs.wake(again_at, at_once))
      }),
    )
  }

  /**
   * The commit of the lease may have been lost, or only its answer: then nothing else shows that its jobs were not tried. They are
   * all of one lease.
   */
  async undoLease(running: Running[], lease_until: Millis): Promise<void> {
    const [first] = running
    const jobs = running.map(({ job }) => job)
    const undo = (tx: Tx) => undoLease(tx, jobs, lease_until)
    await this.#writeWithRetry(first!, () => this.options.db.write(dueWork(first!.job.tenant_id), undo))
  }

  /** A refusal for a moment must not send a delivered callback again, nor count an attempt that was not made. */
  async #writeWithRetry<T>({ leased_at }: Running, write: () => Promise<T>): Promise<T> {
    const { clock } = this.options
    for (let wait_ms = 50; ; wait_ms = Math.min(2 * wait_ms, write_again_ms)) {
      try {
        return await write()
      } catch (error) {
        if (this.#stopped || clock.monotonic() - leased_at + wait_ms > lease_ms) throw error
        await sleep(wait_ms)
      }
    }
  }

  /**
   * The database may show an outcome before the answer to its transaction has been read, and other outcomes follow all
   * the time: only those that are being written now are waited for, so that this tick counts what it has seen done.
   */
  async settled(until: number): Promise<void> {
    const isSettling = (settling: Promise<void>) => this.#settling.has(settling)
    let left = [...this.#settling]
    while (left.length > 0 && !this.#stopped && this.options.clock.monotonic() < until) {
      await Promise.race([sleep(look_again_ms), ...left])
      left = left.filter(isSettling)
    }
  }

  async #counted(written: Promise<Counter>): Promise<void> {
    const counted = written
      .then((counter) => this.count(counter))
      .finally(() => this.#settling.delete(settling))
    const settling = counted.catch(() => {}) // its writer gets the failure
    this.#settling.add(settling)
    return counted
  }

  /** Adds to a counter. -1 withdraws a count; if that was reported meanwhile, the next report has one less. */
  count(counter: Counter, by: 1 | -1 = 1): void {
    if (counter !== null) this.#counts.set(counter, (this.#counts.get(counter) ?? 0) + by)
  }

  /** The counters that were raised since the last call, `schedules.fired` and so on. */
  takeCounts(): ReadonlyMap<string, number> {
    const counts = [...this.#counts]
    this.#counts = new Map(counts.filter(([, count]) => count < 0))
    return new Map(counts.filter(([, count]) => count > 0))
  }

  /** Repeats no write that fails, and waits for nothing. */
  stop(): void {
    this.#stopped = true
  }
}
