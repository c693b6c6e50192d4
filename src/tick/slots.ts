// How much may be under way at once: on this node, for one destination, and for one lane.

/** Attempts in flight on this node. */
export const node_max = 256
/** Attempts in flight for one destination: scheme, host and port. */
export const destination_max = 16
/** Of these, for one tenant: where tenants share a receiver, each finds a place. */
export const lane_max = 12
/** Lanes remembered between their attempts. */
const remembered_max = 10_000

/** A tenant's work for one destination; '' when nothing is sent, which needs a place on the node only. */
export interface Lane {
  tenant_id: string
  destination: string
}

interface LaneState {
  active: number
  /** Grows from 1 to `lane_max` while the receiver answers, and falls back to 1 when it does not. */
  allowed: number
}

/**
 * A receiver that never answers holds one place of this node, not twelve: a lane gets more only as it shows that it
 * is answered (as in slow start, RFC 5681 section 3.1). It is the tenant's own lane, so that nobody can make a
 * receiver slow for others.
 */
export class Slots {
  readonly #lanes = new Map<string, LaneState>()
  readonly #destinations = new Map<string, number>()
  readonly #tenants = new Map<string, number>()
  #active = 0

  get free(): number {
    return node_max - this.#active
  }

  isFree(lane: Lane): boolean {
    if (this.free === 0) return false
    if (lane.destination === '') return true
    if ((this.#destinations.get(lane.destination) ?? 0) >= destination_max) return false
    const state = this.#lanes.get(keyOf(lane))
    return !state || state.active < state.allowed
  }

  /** Attempts in flight of this tenant. */
  activeOf(tenant_id: string): number {
    return this.#tenants.get(tenant_id) ?? 0
  }

  take(lane: Lane): void {
    this.#active += 1
    this.#tenants.set(lane.tenant_id, this.activeOf(lane.tenant_id) + 1)
    if (lane.destination === '') return
    this.#destinations.set(lane.destination, (this.#destinations.get(lane.destination) ?? 0) + 1)
    this.#stateOf(lane).active += 1
  }

  /** `answered`: whether the receiver sent any status at all; null when nothing was tried. */
  giveBack(lane: Lane, answered: boolean | null): void {
    this.#active -= 1
    const others = this.activeOf(lane.tenant_id) - 1
    if (others > 0) this.#tenants.set(lane.tenant_id, others)
    else this.#tenants.delete(lane.tenant_id)
    if (lane.destination === '') return
    const left = this.#destinations.get(lane.destination)! - 1
    if (left > 0) this.#destinations.set(lane.destination, left)
    else this.#destinations.delete(lane.destination)
    const state = this.#lanes.get(keyOf(lane))!
    state.active -= 1
    if (answered === true) state.allowed = Math.min(lane_max, state.allowed + 1)
    if (answered === false) state.allowed = 1
  }

  #stateOf(lane: Lane): LaneState {
    const known = this.#lanes.get(keyOf(lane))
    if (known) return known
    if (this.#lanes.size >= remembered_max) this.#forgetIdle()
    const fresh = { active: 0, allowed: 1 }
    this.#lanes.set(keyOf(lane), fresh)
    return fresh
  }

  #forgetIdle(): void {
    for (const [key, { active }] of this.#lanes) if (active === 0) this.#lanes.delete(key)
  }
}

function keyOf({ tenant_id, destination }: Lane): string {
  return `${tenant_id} ${destination}`
}
