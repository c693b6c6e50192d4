// The service's own limits per client: fixed windows in memory, one set per node, however many processes it has.

import type { Clock } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { Awaitable } from '../db/db.ts'
import { networksOf } from './address.ts'

const windows_max = limit(
  'clients.windows',
  10_000,
  'entries',
  'Bounds the clients, and the networks, that each limit per client remembers; new ones past it are counted by provider.',
)
/** A network may have this many times the number of one client. */
const network_factor = 10

interface Window {
  used: number
  ends: number
}

/** The windows in which `acquire` counted a request, for `release`. */
export type Counted = readonly Window[]

/**
 * A number of requests in a window: of an IPv4 address, of a /64 of IPv6, and ten times as many of a /48. When more
 * clients come than are remembered, the known ones stay, and new ones are counted together with their neighbours: however many
 * come, no client is forgotten. A refused client is not remembered.
 */
export class AddressLimit {
  readonly #clients: Windows
  readonly #sites: Windows
  readonly #providers: Windows

  constructor(
    private readonly clock: Clock,
    number: number,
    window_ms: number,
  ) {
    this.#clients = new Windows(number, window_ms)
    this.#sites = new Windows(number * network_factor, window_ms)
    this.#providers = new Windows(number * network_factor, window_ms)
  }

  /** Counts one; null when the address, or its network, has used up its number. In its normal spelling. */
  acquire(address: string): Counted | null {
    const now = this.clock.monotonic()
    if (this.#usedUpOf(address, now).length > 0) return null
    const { client, site, provider } = networksOf(address)
    const counted: (Window | null)[] = [this.#clients.remember(client, now)]
    if (site !== null) counted.push(this.#sites.remember(site, now))
    if (counted.includes(null)) counted.push(this.#providers.makeRoom(provider, now))
    const windows = counted.filter((window) => window !== null)
    for (const window of windows) window.used += 1
    return windows
  }

  /** Counts one less, for a request without effect. Once for each that was acquired. */
  release(counted: Counted): void {
    for (const window of counted) window.used -= 1
  }

  /** Whole seconds until this address may take one again, at least 1. */
  retryAfter(address: string): number {
    const now = this.clock.monotonic()
    const ends = this.#usedUpOf(address, now).map((window) => window.ends)
    return Math.max(1, Math.ceil((Math.max(now, ...ends) - now) / 1_000))
  }

  /** The windows that keep this address from taking one. */
  #usedUpOf(address: string, now: number): Window[] {
    const { client, site, provider } = networksOf(address)
    const own = [this.#clients.usedUp(client, now), site === null ? null : this.#sites.usedUp(site, now)]
    const used_up = own.filter((window) => window !== null)
    if (used_up.length > 0) return used_up
    const all_remembered =
      this.#clients.canRemember(client, now) && (site === null || this.#sites.canRemember(site, now))
    const shared = all_remembered ? null : this.#providers.usedUp(provider, now)
    return shared === null ? [] : [shared]
  }

  /** Windows in memory, those that have ended included. For tests. */
  get size(): { clients: number; sites: number; providers: number } {
    return { clients: this.#clients.size, sites: this.#sites.size, providers: this.#providers.size }
  }
}

/** A request that was counted; `release` counts one less. Or the whole seconds until the address may try again. */
export type Admission = { release(): void } | { retry_after_seconds: number }

/** A limit as requests use it: of this process, or counted in one place for several processes. */
export type Limiter = (address: string) => Awaitable<Admission>

export interface Limiters {
  sign_ups: Limiter
  failed_keys: Limiter
}

export function limiterOf(limit: AddressLimit): Limiter {
  return (address) => {
    const counted = limit.acquire(address)
    if (!counted) return { retry_after_seconds: limit.retryAfter(address) }
    return { release: () => limit.release(counted) }
  }
}

/** Counts one. Throws RATE_LIMITED when the address, or its network, has used up its number, after `onRefused`. */
export function requireLeft(
  limiter: Limiter,
  address: string,
  onRefused: (retry_after_seconds: number) => void = () => {},
): Awaitable<() => void> {
  const released = (admission: Admission): (() => void) => {
    if ('release' in admission) return admission.release
    onRefused(admission.retry_after_seconds)
    throw new ApiError('RATE_LIMITED', admission)
  }
  const admission = limiter(address)
  return admission instanceof Promise ? admission.then(released) : released(admission)
}

/** Windows of one length, in the order in which they end. */
class Windows {
  readonly #windows = new Map<string, Window>()

  constructor(
    private readonly number: number,
    private readonly window_ms: number,
  ) {}

  get size(): number {
    return this.#windows.size
  }

  /** The window that runs, or a new one; null when there is no room for one. */
  remember(key: string, now: number): Window | null {
    if (!this.canRemember(key, now)) return null
    const known = this.#windows.get(key)
    return known ?? this.#begin(key, now)
  }

  /** The same, in place of the window that ends first if need be. */
  makeRoom(key: string, now: number): Window {
    const known = this.remember(key, now)
    if (known) return known
    this.#windows.delete(this.#windows.keys().next().value!)
    return this.#begin(key, now)
  }

  /** True when a window of this key runs, or could begin. */
  canRemember(key: string, now: number): boolean {
    this.#forgetEnded(now)
    return this.#windows.has(key) || this.#windows.size < windows_max
  }

  /** The window of this key when it has used up its number. */
  usedUp(key: string, now: number): Window | null {
    const known = this.#windows.get(key)
    return known && known.ends > now && known.used >= this.number ? known : null
  }

  #begin(key: string, now: number): Window {
    const window = { used: 0, ends: now + this.window_ms }
    this.#windows.set(key, window)
    return window
  }

  #forgetEnded(now: number): void {
    for (const [key, { ends }] of this.#windows) {
      if (ends > now) return
      this.#windows.delete(key)
    }
  }
}
