// Bounds of the attempts in flight at once: on this node, for one tenant, for one destination, and for one lane.

import { limit } from '../base/limit.ts'
import { Permits } from '../base/permits.ts'
import { type Ended, node_prefetch_max, Prefetch } from './prefetch.ts'

export const node_max = limit(
  'jobs.in_flight',
  320,
  'attempts',
  'Attempts in flight on a node. Past it due jobs wait until an attempt ends.',
)
export const reserve = limit(
  'jobs.in_flight_reserve',
  64,
  'attempts',
  'Of these, those kept for tenants that have few in flight: however much one tenant sends, others find room.',
)
export const destination_max = limit(
  'jobs.destination',
  16,
  'attempts',
  'Attempts in flight from a node to one scheme, host and port. Past it its jobs wait.',
)
export const lane_max = limit(
  'jobs.destination_of_tenant',
  12,
  'attempts',
  'Of these, for one tenant, so that tenants that share a receiver all reach it.',
)
const remembered_max = limit(
  'jobs.destinations_remembered',
  10_000,
  'entries',
  'Destinations for which a node remembers how they answered. Past it idle ones are forgotten.',
)

/** A tenant's jobs for one destination; '' when nothing is sent, which needs a permit of the node only. */
export interface Lane {
  tenant_id: string
  destination: string
}

/** A job for which there might be a permit. */
export interface Candidate extends Lane {
  /** True when no attempt follows this one: it is not prefetched. */
  is_last: boolean
}

interface LaneState {
  /** Permits held, and prefetched jobs. */
  held: number
  /** Of these, attempts in flight. */
  in_flight: number
  /** Grows from 1 to `lane_max` while the receiver answers, and falls back to 1 when it does not. */
  allowed: number
  prefetch: Prefetch
}

/**
 * A receiver that never answers holds one permit of this node, not twelve: a lane gets more only as its receiver
 * answers (as in slow start, RFC 5681 section 3.1). It is the tenant's own lane, so that no tenant can make a
 * receiver slow for others.
 *
 * A permit is held for up to 10 s, by an email for up to 20 s, and cannot be withdrawn, so a tenant with many such receivers
 * must not get all of them: some are kept in reserve for tenants that hold little (base/permits.ts). Timeouts are counted on an
 * account of their own. They send nothing and end within a commit, so they do not wait behind their tenant's silent receivers.
 *
 * A lane whose receiver is quick, and that is alone at its destination, prefetches: such jobs hold no permit, start as
 * permits of the lane become free, and are cancelled when an answer is slow or does not come, or when the
 * reserve is in use: a lane that passes its permits to its own prefetched jobs would keep them from other tenants. Last
 * attempts are not prefetched: should the node die, the job would fail for good without ever having been sent.
 */
export class ConcurrencyLimiter {
  readonly #lanes = new Map<string, LaneState>()
  /** Permits held of each destination. */
  readonly #destinations = new Map<string, number>()
  readonly #permits = new Permits(node_max, reserve)
  /** Prefetched jobs, by tenant. */
  readonly #prefetched_of = new Map<string, number>()
  #prefetched = 0
  #closed = false

  /** Permits of the node; not every tenant may acquire one of them. */
  get free(): number {
    return this.#permits.free
  }

  /** True when the tenant may send more now, to some destination. */
  hasPermitFor(tenant_id: string): boolean {
    return this.#permits.mayAcquire(tenant_id)
  }

  /** True when there is room for the job; of a lane, for any of its jobs. */
  mayAcquire(lane: Lane | Candidate): boolean {
    if (this.free === 0) return false
    if (lane.destination === '') return this.#permits.mayAcquire(accountOf(lane))
    const state = this.#lanes.get(keyOf(lane))
    const at_destination = this.#destinations.get(lane.destination) ?? 0
    if (at_destination < destination_max && (!state || state.held < state.allowed)) {
      return this.#permits.mayAcquire(accountOf(lane))
    }
    const is_last = 'is_last' in lane && lane.is_last
    return state !== undefined && at_destination === lane_max && this.#mayPrefetch(state) && !is_last
  }

  #mayPrefetch({ held, prefetch }: LaneState): boolean {
    if (!prefetch.isFilling || held < lane_max) return false
    return this.#prefetched < node_prefetch_max && this.#permits.hasBeyondReserve
  }

  /** The number of jobs that this tenant has in flight or prefetched. */
  activeOf(tenant_id: string): number {
    const permits = this.#permits.heldBy(tenant_id) + this.#permits.heldBy(timeoutAccountOf(tenant_id))
    return permits + (this.#prefetched_of.get(tenant_id) ?? 0)
  }

  /** For a job that is leased next. */
  acquire(lane: Lane): void {
    if (lane.destination === '') {
      this.#permits.acquire(accountOf(lane))
      return
    }
    const state = this.#stateOf(lane)
    state.held += 1
    if (state.held <= lane_max) this.#countPermit(lane, 1)
    else this.#countPrefetched(lane, 1)
    state.prefetch.onAcquired(state.held)
  }

  /** Resolves when the attempt may start. False: it is cancelled, and the permit must be released. */
  start(lane: Lane): Promise<boolean> | boolean {
    if (lane.destination === '') return true
    const state = this.#lanes.get(keyOf(lane))!
    if (state.in_flight < lane_max) {
      state.in_flight += 1
      return true
    }
    // It was prefetched; meanwhile the receiver may have become slow, or the node is stopping.
    if (this.#closed || !state.prefetch.isQuick) return false
    return state.prefetch.wait()
  }

  /** True while attempts of the lane follow each other without a commit: until as many wait as it has permits. */
  isPrefetching(lane: Lane): boolean {
    const state = this.#lanes.get(keyOf(lane))
    if (!state?.prefetch.isQuick || this.#permits.isReserveInUse) return false
    return state.held > lane_max && state.prefetch.waiting !== lane_max
  }

  /** Releases what was acquired for an attempt that did not start. */
  release(lane: Lane): void {
    if (lane.destination === '') {
      this.#permits.release(accountOf(lane))
      return
    }
    const state = this.#lanes.get(keyOf(lane))!
    if (state.held <= lane_max) this.#countPermit(lane, -1)
    else this.#countPrefetched(lane, -1)
    state.held -= 1
    state.prefetch.onReleased(state.held)
  }

  #countPermit(lane: Lane, by: 1 | -1): void {
    if (by === 1) this.#permits.acquire(accountOf(lane))
    else this.#permits.release(accountOf(lane))
    count(this.#destinations, lane.destination, by)
  }

  #countPrefetched(lane: Lane, by: 1 | -1): void {
    this.#prefetched += by
    count(this.#prefetched_of, lane.tenant_id, by)
  }

  /** Releases the permit of an attempt that started; null when nothing was tried. */
  end(lane: Lane, ended: Ended | null): void {
    this.release(lane)
    if (lane.destination === '') return
    const state = this.#lanes.get(keyOf(lane))!
    state.in_flight -= 1
    if (ended) {
      state.allowed = ended.answered ? Math.min(lane_max, state.allowed + 1) : 1
      state.prefetch.judge(ended)
    }
    if (this.#permits.isReserveInUse) state.prefetch.cancelAll() // so that the permit goes to the tenant with the fewest
    if (state.prefetch.startNext()) state.in_flight += 1
  }

  /** Cancels what is prefetched, and prefetches no more until the receiver is quick again. */
  slowDown(lane: Lane): void {
    this.#lanes.get(keyOf(lane))?.prefetch.slowDown()
  }

  /** Cancels all that is prefetched, now and from now on. */
  close(): void {
    this.#closed = true
    for (const { prefetch } of this.#lanes.values()) prefetch.slowDown()
  }

  #stateOf(lane: Lane): LaneState {
    const known = this.#lanes.get(keyOf(lane))
    if (known) return known
    if (this.#lanes.size >= remembered_max) this.#removeIdle()
    const fresh = { held: 0, in_flight: 0, allowed: 1, prefetch: new Prefetch(lane_max) }
    this.#lanes.set(keyOf(lane), fresh)
    return fresh
  }

  #removeIdle(): void {
    for (const [key, { held }] of this.#lanes) if (held === 0) this.#lanes.delete(key)
  }
}

function keyOf({ tenant_id, destination }: Lane): string {
  return `${tenant_id} ${destination}`
}

/** The account that the permits of a lane are counted on. */
function accountOf({ tenant_id, destination }: Lane): string {
  return destination === '' ? timeoutAccountOf(tenant_id) : tenant_id
}

function timeoutAccountOf(tenant_id: string): string {
  return `${tenant_id} timeouts`
}

function count(counts: Map<string, number>, key: string, by: 1 | -1): void {
  const now = (counts.get(key) ?? 0) + by
  if (now > 0) counts.set(key, now)
  else counts.delete(key)
}
