// Runs due jobs: chosen, leased, attempted, settled. Any number of workers on any number of nodes run nothing twice,
// because a lease is a guarded update and a result counts only under the fencing token of its lease.

import type { Millis } from '../base/clock.ts'
import { randomStep } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import { nextTurn } from '../base/next-turn.ts'
import { sleep } from '../base/sleep.ts'
import { dueWork } from '../db/db.ts'
import { isOutcomeUnknown, isUnavailable } from '../db/errors.ts'
import { attempt, type Unsent } from './attempt.ts'
import { Coalescer, wait_ms_max } from './coalesce.ts'
import { ConcurrencyLimiter, node_max } from './concurrency.ts'
import { anyDue } from './due-store.ts'
import { type Batch, idOf, JobQueue, type QueuedJob } from './fairness.ts'
import { type AttemptResult, type LeasedJob, lease_ms } from './job.ts'
import { type JobKinds, kindsOf, type SendingKind } from './kind.ts'
import { Outcomes, type Running } from './outcomes.ts'
import { type Ended, node_prefetch_max } from './prefetch.ts'
import * as search from './search-store.ts'
import * as store from './store.ts'
import { UnreadJobs } from './unread.ts'
import type { WorkerOptions } from './worker-options.ts'

/** Leased jobs, in flight, prefetched or not settled yet. */
const running_max = limit(
  'jobs.leased',
  node_max + node_prefetch_max,
  'attempts',
  'Jobs that a node has leased, until their outcome is written. Past it nothing is leased.',
)
/** After each dispatch a tick looks at the time. */
const batches_max = limit(
  'jobs.batches',
  8,
  'entries',
  'Batches that are started in one dispatch, before the worker does anything else.',
)
const no_progress_max = limit(
  'jobs.batches_without_progress',
  3,
  'entries',
  'Batches in a row that may lease nothing. Past it the worker waits for its next call.',
)
/** The delay before a dispatch without progress is repeated. */
const dispatch_again_ms = 1_000
/** The delay of a job whose host name could not be resolved yet; less than `dispatch_again_ms`, which finds it then. */
const untried_again_ms = 500
/** A tick looks this often for the end of what other nodes leased. */
const look_again_ms = 50

export class JobWorker {
  readonly #limiter = new ConcurrencyLimiter()
  readonly #kinds: JobKinds
  readonly #queue: JobQueue
  readonly #coalescer = new Coalescer()
  readonly #running = new Set<Promise<void>>()
  readonly #outcomes: Outcomes
  readonly #unread: UnreadJobs
  /** Jobs that this node may have leased: the answer to the commit was lost. */
  readonly #undoing = new Set<string>()
  #dispatching: Promise<void> | null = null
  #next_dispatch: PromiseWithResolvers<void> | null = null
  #again: Timer | undefined
  readonly #fence_step: number
  /** When the timer dispatches next. */
  #expected_at = Number.POSITIVE_INFINITY
  #stopped = false
  #ticks = 0

  constructor(private readonly options: WorkerOptions) {
    this.#kinds = kindsOf(options.kinds)
    this.#queue = new JobQueue(options.db, options.clock, this.#kinds, options.onError)
    this.#outcomes = new Outcomes(options)
    this.#unread = new UnreadJobs(options.clock)
    this.#fence_step = options.fence_step ?? randomStep()
  }

  /**
   * Starts what is due and for which there is room; more follows on its own as room is made. Resolves when nothing more
   * can be started now, or after a bounded part of it.
   */
  dispatch(): Promise<void> {
    this.#next_dispatch ??= Promise.withResolvers()
    this.#dispatching ??= this.#dispatchAll()
    return this.#next_dispatch.promise
  }

  /** The same after a job was enqueued: it is looked for even while older ones wait that may not be started. */
  dispatchNew(): Promise<void> {
    this.#queue.expire()
    return this.dispatch()
  }

  /** The timer will call `dispatchNew` then; infinite when that is not known. */
  expectDispatch(at: Millis): void {
    this.#expected_at = at
  }

  /** An attempt that has ended makes room; without jobs that wait for any, the timer finds the next. */
  #dispatchWaiting(): void {
    if (!this.#stopped && !this.#queue.isDrained) void this.dispatch()
  }

  async #dispatchAll(): Promise<void> {
    await null // so that #dispatching is set before it is cleared
    while (this.#next_dispatch) {
      await nextTurn() // attempts that end in the same turn make room for one batch
      const dispatch = this.#next_dispatch
      this.#next_dispatch = null
      try {
        const outcome = await this.#startBatches()
        if (outcome === 'more') void this.dispatch()
        if (outcome === 'no_progress') this.#dispatchAgain()
      } catch (error) {
        this.options.onError(error)
        this.#dispatchAgain()
      }
      dispatch.resolve()
    }
    this.#dispatching = null // here, where #next_dispatch was read last: a dispatch requested in between must not be lost
  }

  /** With TICK=external nothing else would try a decision's callback again before the next tick. */
  #dispatchAgain(): void {
    if (this.options.internal || this.#stopped) return
    clearTimeout(this.#again)
    this.#again = setTimeout(() => void this.dispatch(), dispatch_again_ms)
  }

  async #startBatches(): Promise<'more' | 'done' | 'no_progress'> {
    if (this.options.beforeLook) await this.options.beforeLook()
    if (this.options.held?.()) return 'done'
    let without_progress = 0
    for (let batch = 0; batch < batches_max; batch++) {
      if (this.#stopped) return 'done'
      if (without_progress === no_progress_max) return 'no_progress'
      const outcome = await this.#startBatch()
      if (outcome === 'nothing_to_start') {
        this.#coalescer.end() // no lease follows whose commit could hold the results that wait
        return 'done'
      }
      if (outcome === 'started' && this.#queue.isDrained) return 'done'
      without_progress = outcome === 'started' ? 0 : without_progress + 1
    }
    return 'more'
  }

  /** Chooses, leases and starts. No progress: other nodes were faster, or the database refused. */
  async #startBatch(): Promise<'started' | 'nothing_to_start' | 'no_progress'> {
    // Jobs whose result is not written yet count too, or they would be sent again. The end of any job dispatches again.
    if (this.#running.size >= running_max) {
      this.#queue.postpone()
      return 'nothing_to_start'
    }
    const only_at_once = !this.options.internal && this.#ticks === 0
    const batches = await this.#queue.next(this.#limiter, (job) => this.#mayStart(job), only_at_once)
    if (batches.length === 0) {
      await this.#reportStragglers()
      return 'nothing_to_start'
    }
    const leasing = Promise.all(batches.map((batch) => this.#lease(batch)))
    this.#coalescer.end() // results that wait are settled in the commit of the lease
    const leased = (await leasing).flat()
    for (const running of leased) this.#track(this.#run(running))
    await this.#reportStragglers()
    if (leased.length > 0) return 'started'
    this.#queue.clear() // the buffer is out of date
    return 'no_progress'
  }

  /** With TICK=external, outside a tick, only first attempts of kinds that wait for none start on their own. */
  #mayStart(job: QueuedJob): boolean {
    const { kind, attempts } = job
    if (this.#undoing.has(idOf(job))) return false
    return this.options.internal || this.#ticks > 0 || (kind.starts_at_once && attempts === 0)
  }

  /** Due jobs of deleted and frozen tenants would fill every read. */
  async #reportStragglers(): Promise<void> {
    const tenant_ids = this.#queue.takeStragglers()
    if (tenant_ids.length > 0) await this.options.onStragglers(tenant_ids).catch(this.options.onError)
  }

  /** Leases the jobs of this batch that are still due; others were leased by another node, or are gone. */
  async #lease({ tenant_id, kind, items }: Batch): Promise<Running[]> {
    const { db, clock } = this.options
    const leased_at = clock.monotonic() // the lease is older than its answer
    const ids = items.map(({ source_id }) => source_id)
    let lease_until = 0
    let leased: LeasedJob[] = []
    try {
      await db.write(dueWork(tenant_id), async (tx) => {
        lease_until = tx.now + lease_ms
        leased = await store.lease(tx, tenant_id, kind, ids, lease_until, this.#fence_step)
      })
      this.options.measures?.leased(leased)
      const got = new Set(leased.map(({ source_id }) => source_id))
      for (const item of items) if (!got.has(item.source_id)) this.#limiter.release(item)
      // For example, another transaction holds the row: the job may still be due.
      if (got.size < items.length) this.#queue.leftOut()
      // The permit was acquired for the destination that was read; a PATCH may have given the job another since.
      const destinations = new Map(items.map(({ source_id, destination }) => [source_id, destination]))
      return leased.map((row) => ({
        job: { ...row, destination: destinations.get(row.source_id)! },
        kind,
        leased_at,
      }))
    } catch (error) {
      for (const item of items) this.#limiter.release(item)
      this.#queue.expire()
      this.options.onError(error)
      if (isOutcomeUnknown(error) && leased.length > 0)
        this.#track(
          this.#undoLease(
            leased.map((job) => ({ job, kind, leased_at })),
            lease_until,
          ),
        )
      return []
    }
  }

  /** This node leases the jobs again only afterwards: its new lease might have the same token and end as the one that is undone. */
  async #undoLease(running: Running[], lease_until: Millis): Promise<void> {
    const ids = running.map(({ job, kind }) => idOf({ ...job, kind }))
    for (const id of ids) this.#undoing.add(id)
    try {
      await this.#outcomes.undoLease(running, lease_until)
    } finally {
      for (const id of ids) this.#undoing.delete(id)
      this.#queue.expire() // they are due
    }
  }

  #track(work: Promise<void>): void {
    const ended = work
      .catch((error) => this.options.onError(error))
      .finally(() => {
        this.#running.delete(ended)
        this.#dispatchWaiting()
      })
    this.#running.add(ended)
  }

  /** One leased job, from its permit to its settlement. */
  async #run({ job, kind, leased_at }: Running): Promise<void> {
    if (!(await this.#limiter.start(job))) return this.#releasePrefetched({ job, kind, leased_at })
    const { measures, clock } = this.options
    const began_at = clock.now()
    if (kind.message === null) {
      measures?.begun(job, began_at)
      return this.#withPermit(job, () => this.#outcomes.settleLocal(job, kind))
    }
    const running = { job, kind, leased_at }
    const progress = { begun: () => this.#outcomes.count(kind.begun), mayGoOn: () => !this.#stopped }
    const result = await this.#withPermit(job, () => attempt(this.options, running, progress))
    if (!this.#unread.isEmpty && !isUnread(result)) this.#unread.forget(unreadId(running))
    if ('unsent' in result) return this.#endUnsent(running, result)
    measures?.begun(job, began_at)
    measures?.ended(kind.name, result)
    await this.#coalescer.wait(this.#commitFollows(job, kind))
    if (!this.#queue.isDrained) {
      this.#dispatchWaiting() // the jobs that follow are leased in the commit that settles this one
      await nextTurn() // so that the lease above joins the same commit
    }
    await this.#outcomes.settle(running, result)
  }

  /**
   * True when more results are about to come, or more jobs to be leased, which can share a commit with this result. On
   * PostgreSQL they have commits of their own. The result of a last attempt does not wait: should the node die first, the
   * job would fail for good.
   */
  #commitFollows(job: LeasedJob, kind: SendingKind): boolean {
    if (this.#stopped || this.options.db.engine === 'postgres') return false
    if (job.attempts >= kind.attempts_max) return false
    return this.#limiter.isPrefetching(job) || this.#expected_at - this.options.clock.now() < wait_ms_max
  }

  /** Cancels a prefetched job: its lease does not count as an attempt. */
  async #releasePrefetched(running: Running): Promise<void> {
    try {
      await this.#release(running)
    } finally {
      this.#limiter.release(running.job)
    }
  }

  /** The permit is released when the attempt has ended, before its outcome is written. */
  async #withPermit<T extends AttemptResult | Unsent | undefined>(
    job: LeasedJob,
    attempt: () => Promise<T>,
  ): Promise<T> {
    let ended: Ended | null = null
    try {
      const result = await attempt()
      if (result && 'ok' in result)
        ended = { answered: result.status_code !== null, duration_ms: result.duration_ms }
      // The next would fail as well: while the database is unavailable, keep the leases there are.
      if (result && isUnread(result)) this.#limiter.slowDown(job)
      return result
    } catch (error) {
      this.#limiter.slowDown(job)
      throw error
    } finally {
      this.#limiter.end(job, ended)
    }
  }

  /** Ends the lease of a job that sent nothing. */
  async #endUnsent(running: Running<SendingKind>, unsent: Unsent): Promise<void> {
    if (unsent.unsent === 'untried') this.#outcomes.count(running.kind.begun, -1)
    this.#dispatchWaiting() // its permit is free
    try {
      if (unsent.unsent === 'nothing_left') await this.#outcomes.endIdle(running, unsent.seen)
      else if (unsent.unsent === 'stale_or_paused') await this.#release(running)
      else if (unsent.unsent === 'later') await this.#outcomes.release(running, () => unsent.not_before)
      else if (unsent.unsent === 'untried' || this.#mayRelease(running, unsent.error))
        await this.#releaseUntried(running)
    } catch (error) {
      this.#limiter.slowDown(running.job)
      throw error
    }
    if (unsent.unsent === 'unread') throw unsent.error
  }

  async #release(running: Running): Promise<void> {
    await this.#outcomes.release(running)
    this.#queue.expire() // it is due
  }

  /**
   * While the database was only unavailable, it was no attempt; otherwise the lease runs out and counts, so that the job ends.
   * So it is also when making the message writes: when it is made again, it sees whether that was committed.
   */
  #mayRelease(running: Running, error: unknown): boolean {
    return (isUnavailable(error) || isOutcomeUnknown(error)) && this.#unread.mayRelease(unreadId(running))
  }

  /** Due a little later, so that it is not leased again in between. */
  async #releaseUntried(running: Running): Promise<void> {
    await this.#outcomes.release(running, (now) => now + untried_again_ms)
    this.#dispatchAgain()
  }

  /** True when a job that was due then is still to run, leased or not. */
  anyDue(at: Millis): Promise<boolean> {
    return anyDue(this.options.db, at, this.#kinds)
  }

  /** When the next job falls due that is not due then; null when there is none. */
  nextAt(now: Millis): Promise<Millis | null> {
    return search.nextAt(this.options.db, now)
  }

  /** Runs all that is due now, on any node; resolves when the attempts have ended, after `wait_ms_max` at most. */
  async tick(wait_ms_max: number): Promise<void> {
    const { clock } = this.options
    const arrived_at = clock.now()
    const until = clock.monotonic() + wait_ms_max
    this.#ticks += 1
    try {
      await this.dispatch()
      while (!this.#stopped && (await this.anyDue(arrived_at)) && clock.monotonic() < until) {
        await Promise.race([sleep(look_again_ms), ...this.#running])
        await this.dispatch()
      }
      await this.#outcomes.settled(until)
    } finally {
      this.#ticks -= 1
    }
  }

  /** Jobs that this node has leased and not settled. */
  get running(): number {
    return this.#running.size
  }

  /** True when due jobs wait for room, or were left out by a lease. */
  get hasBacklog(): boolean {
    return this.#queue.hasBacklog
  }

  /** The counters that were raised since the last call, `schedules.fired` and so on. */
  takeCounts(): ReadonlyMap<string, number> {
    return this.#outcomes.takeCounts()
  }

  /** Starts nothing more; resolves when what is in flight has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#outcomes.stop()
    clearTimeout(this.#again)
    this.#limiter.close()
    await this.#dispatching
    await Promise.all(this.#running)
  }
}

function isUnread(result: AttemptResult | Unsent): boolean {
  return 'unsent' in result && result.unsent === 'unread'
}

/** A job, and the event that it sends. */
function unreadId({ job, kind }: Running): string {
  return `${idOf({ ...job, kind })} ${job.event_id}`
}
