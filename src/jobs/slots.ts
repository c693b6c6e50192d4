// How much may be under way at once: on this node, for one tenant, for one destination, and for one lane.

import { limit } from '../base/limit.ts'
import { Permits } from '../base/permits.ts'
import { attemptsMax, type WorkKind } from './job.ts'

/** Attempts in flight on this node. */
export const node_max = limit(
  'jobs.in_flight',
  320,
  'attempts',
  'Attempts under way on a node. Past it due work waits until an attempt ends.',
)
/** Of these, what a tenant leaves to others, whatever it has to send. */
export const reserve = limit(
  'jobs.in_flight_reserve',
  64,
  'attempts',
  'Of these, those kept for tenants that have few under way: whatever one tenant sends, others find room.',
)
/** Attempts in flight for one destination: scheme, host and port. */
export const destination_max = limit(
  'jobs.destination',
  16,
  'attempts',
  'Attempts under way from a node to one scheme, host and port. Past it work for it waits.',
)
/** Of these, for one tenant. */
export const lane_max = limit(
  'jobs.destination_of_tenant',
  12,
  'attempts',
  'Of these, for one tenant, so that tenants that share a receiver all reach it.',
)
/** What a lane may have leased beside, to follow at once when an attempt ends. */
export const ahead_max = limit(
  'jobs.ahead_of_destination',
  72,
  'attempts',
  'Work that is leased for a quick receiver and not sent yet. A node that dies delays it.',
)
/** The same for all lanes of the node, beside the attempts in flight. */
export const node_ahead_max = limit('jobs.ahead', 96, 'attempts', 'The same for all receivers of a node.')
/** An attempt that took no longer shows that its receiver keeps nobody waiting. */
export const quick_ms = 50
/** Lanes remembered between their attempts. */
const remembered_max = limit(
  'jobs.destinations_remembered',
  10_000,
  'entries',
  'Destinations of which a node remembers how they answered. Past it idle ones are forgotten.',
)

/** A tenant's work for one destination; '' when nothing is sent, which needs a place of the node only. */
export interface Lane {
  tenant_id: string
  destination: string
}

/** Work for which there might be a place. */
export interface Seeker extends Lane {
  kind: WorkKind
  /** So far. */
  attempts: number
}

interface LaneState {
  /** What holds a place, or waits for one under its lease. */
  taken: number
  /** Of these, attempts in flight. */
  in_flight: number
  /** Grows from 1 to `lane_max` while the receiver answers, and falls back to 1 when it does not. */
  allowed: number
  /** Quick answers in a row. */
  quick: number
  /** Whether it takes more ahead, until it has all that it may; it begins when little is left. */
  filling: boolean
  /** Told true when their turn has come, false when it does not come. */
  waiting: ((goes: boolean) => void)[]
}

/** How an attempt ended: whether the receiver sent any status at all, and how long it took. */
export interface Ended {
  answered: boolean
  duration_ms: number
}

/**
 * A receiver that never answers holds one place of this node, not twelve: a lane gets more only as it shows that it
 * is answered (as in slow start, RFC 5681 section 3.1). It is the tenant's own lane, so that nobody can make a
 * receiver slow for others.
 *
 * A place is held for up to 10 s and cannot be taken back, so a tenant with many such receivers must not get all of
 * them: some are kept in reserve for tenants that hold little (base/permits.ts). Timeouts are counted on an account of
 * their own. They send nothing and end within a commit, so they do not wait behind their tenant's silent receivers.
 *
 * A receiver that answers quickly would have the node commit for each handful of answers. A lane that has shown to be
 * quick, and is alone at its destination, takes more than its places: what is ahead holds no place, waits in memory
 * under its lease, goes out as places become free, and is sent away when an answer is slow or does not come, or when
 * tenants live on the reserve: a lane that hands its places on would keep them from those. Last attempts are not taken
 * ahead: should the node die, that work would be given up and had never been sent.
 */
export class Slots {
  readonly #lanes = new Map<string, LaneState>()
  /** Places of each destination that are taken. */
  readonly #destinations = new Map<string, number>()
  readonly #places = new Permits(node_max, reserve)
  /** Leased ahead, by tenant. */
  readonly #ahead_of = new Map<string, number>()
  #ahead = 0
  #closed = false

  /** Places of the node; not every tenant may take one of them. */
  get free(): number {
    return this.#places.free
  }

  /** Whether the tenant may send anything more now, wherever to. */
  hasPlaceFor(tenant_id: string): boolean {
    return this.#places.mayAcquire(tenant_id)
  }

  /** Of a lane: whether there is room for any of its work. */
  isFree(lane: Lane | Seeker): boolean {
    if (this.free === 0) return false
    if (lane.destination === '') return this.#places.mayAcquire(accountOf(lane))
    const state = this.#lanes.get(keyOf(lane))
    const at_destination = this.#destinations.get(lane.destination) ?? 0
    if (at_destination < destination_max && (!state || state.taken < state.allowed)) {
      return this.#places.mayAcquire(accountOf(lane))
    }
    return state !== undefined && at_destination === lane_max && this.#mayGoAhead(state) && !isLast(lane)
  }

  #mayGoAhead(state: LaneState): boolean {
    if (!isQuick(state) || !state.filling || state.taken < lane_max) return false
    return this.#ahead < node_ahead_max && this.#places.hasBeyondReserve
  }

  /** What this tenant has in flight or leased ahead. */
  activeOf(tenant_id: string): number {
    const places = this.#places.heldBy(tenant_id) + this.#places.heldBy(timeoutsOf(tenant_id))
    return places + (this.#ahead_of.get(tenant_id) ?? 0)
  }

  /** For work that is leased next. */
  take(lane: Lane): void {
    if (lane.destination === '') {
      this.#places.acquire(accountOf(lane))
      return
    }
    const state = this.#stateOf(lane)
    state.taken += 1
    if (state.taken <= lane_max) this.#countPlace(lane, 1)
    else this.#countAhead(lane, 1)
    if (state.taken === lane_max + ahead_max) state.filling = false
  }

  /** Resolves when the attempt may begin. False: it shall not, and what was taken is to be given back. */
  turn(lane: Lane): Promise<boolean> | boolean {
    if (lane.destination === '') return true
    const state = this.#lanes.get(keyOf(lane))!
    if (state.in_flight < lane_max) {
      state.in_flight += 1
      return true
    }
    // It was taken ahead; until its lease was there, the receiver may have become slow, or the node be told to stop.
    if (this.#closed || !isQuick(state)) return false
    return new Promise((resolve) => state.waiting.push(resolve))
  }

  /** Whether attempts of the lane follow each other without a commit: until as many wait as it has places. */
  isAhead(lane: Lane): boolean {
    const state = this.#lanes.get(keyOf(lane))
    if (!state || !isQuick(state) || this.#places.isReserveInUse) return false
    return state.taken > lane_max && state.waiting.length !== lane_max
  }

  /** Gives back what was taken, and whose turn had not come. */
  giveBack(lane: Lane): void {
    if (lane.destination === '') {
      this.#places.release(accountOf(lane))
      return
    }
    const state = this.#lanes.get(keyOf(lane))!
    if (state.taken <= lane_max) this.#countPlace(lane, -1)
    else this.#countAhead(lane, -1)
    state.taken -= 1
    if (state.taken <= 2 * lane_max) state.filling = true
  }

  #countPlace(lane: Lane, by: 1 | -1): void {
    if (by === 1) this.#places.acquire(accountOf(lane))
    else this.#places.release(accountOf(lane))
    count(this.#destinations, lane.destination, by)
  }

  #countAhead(lane: Lane, by: 1 | -1): void {
    this.#ahead += by
    count(this.#ahead_of, lane.tenant_id, by)
  }

  /** The same after the turn; null when nothing was tried. */
  end(lane: Lane, ended: Ended | null): void {
    this.giveBack(lane)
    if (lane.destination === '') return
    const state = this.#lanes.get(keyOf(lane))!
    state.in_flight -= 1
    if (ended) judge(state, ended)
    if (this.#places.isReserveInUse) sendAway(state) // so that the place goes to whoever has least
    if (state.waiting.length === 0) return
    state.in_flight += 1
    state.waiting.shift()!(true)
  }

  /** Whoever waits for a place of the lane is sent away, and nothing is taken ahead until it is quick anew. */
  sendAway(lane: Lane): void {
    const state = this.#lanes.get(keyOf(lane))
    if (state) slowDown(state)
  }

  /** Whoever waits is sent away, and nobody waits any more. */
  close(): void {
    this.#closed = true
    for (const state of this.#lanes.values()) sendAway(state)
  }

  #stateOf(lane: Lane): LaneState {
    const known = this.#lanes.get(keyOf(lane))
    if (known) return known
    if (this.#lanes.size >= remembered_max) this.#forgetIdle()
    const fresh = { taken: 0, in_flight: 0, allowed: 1, quick: 0, filling: true, waiting: [] }
    this.#lanes.set(keyOf(lane), fresh)
    return fresh
  }

  #forgetIdle(): void {
    for (const [key, { taken }] of this.#lanes) if (taken === 0) this.#lanes.delete(key)
  }
}

function keyOf({ tenant_id, destination }: Lane): string {
  return `${tenant_id} ${destination}`
}

/** The account that the places of a lane are counted on. */
function accountOf({ tenant_id, destination }: Lane): string {
  return destination === '' ? timeoutsOf(tenant_id) : tenant_id
}

function timeoutsOf(tenant_id: string): string {
  return `${tenant_id} timeouts`
}

function judge(state: LaneState, { answered, duration_ms }: Ended): void {
  state.allowed = answered ? Math.min(lane_max, state.allowed + 1) : 1
  if (answered && duration_ms <= quick_ms) state.quick += 1
  else slowDown(state)
}

function slowDown(state: LaneState): void {
  state.quick = 0
  sendAway(state)
}

/** Whether nothing follows this attempt: so it is with every forward. */
function isLast(lane: Lane | Seeker): boolean {
  return 'kind' in lane && lane.attempts + 1 >= attemptsMax(lane.kind)
}

function isQuick({ quick }: LaneState): boolean {
  return quick >= lane_max
}

function sendAway(state: LaneState): void {
  for (const tell of state.waiting.splice(0)) tell(false)
}

function count(counts: Map<string, number>, key: string, by: 1 | -1): void {
  const now = (counts.get(key) ?? 0) + by
  if (now > 0) counts.set(key, now)
  else counts.delete(key)
}
