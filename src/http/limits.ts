// The service's own limits per client: fixed windows in memory, one set per node.

import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
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

/**
 * So many in a window: of an IPv4 address, of a /64 of IPv6, and ten times as many of a /48. When more clients come than
 * are remembered, those that are stay: new ones are counted together with their neighbours, so nobody is forgotten
 * because others are many.
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

  /** Counts one; false when the address, or its network, has used up its number. In its normal spelling. */
  take(address: string): boolean {
    const counted = this.#countedOf(address)
    if (counted.some(([windows, key]) => windows.isUsedUp(key))) return false
    for (const [windows, key] of counted) windows.add(key, 1)
    return true
  }

  /** Takes one back that did not count in the end. */
  giveBack(address: string): void {
    for (const [windows, key] of this.#countedOf(address)) windows.add(key, -1)
  }

  /** Whole seconds until this address may take one again, at least 1. */
  retryAfter(address: string): number {
    const used_up = this.#countedOf(address).filter(([windows, key]) => windows.isUsedUp(key))
    const ends = Math.max(0, ...used_up.map(([windows, key]) => windows.endOf(key)))
    return Math.max(1, Math.ceil((ends - this.clock.monotonic()) / 1_000))
  }

  /** Where this address is counted now. */
  #countedOf(address: string): [windows: Windows, key: string][] {
    const now = this.clock.monotonic()
    const { client, site, provider } = networksOf(address)
    const counted: [Windows, string][] = []
    let all_remembered = this.#clients.remembers(client, now)
    if (all_remembered) counted.push([this.#clients, client])
    if (site !== null && this.#sites.remembers(site, now)) counted.push([this.#sites, site])
    else if (site !== null) all_remembered = false
    if (!all_remembered) {
      this.#providers.makeRoom(provider, now)
      counted.push([this.#providers, provider])
    }
    return counted
  }
}

/** In the order in which they end, because all are of one length. */
class Windows {
  readonly #windows = new Map<string, Window>()

  constructor(
    private readonly number: number,
    private readonly window_ms: number,
  ) {}

  /** Begins a window if none runs; false when there is no room for one. */
  remembers(key: string, now: number): boolean {
    const known = this.#windows.get(key)
    if (known && known.ends > now) return true
    this.#forgetEnded(now)
    if (this.#windows.size >= windows_max) return false
    this.#windows.set(key, { used: 0, ends: now + this.window_ms })
    return true
  }

  /** The same, in place of the window that ends first if need be. */
  makeRoom(key: string, now: number): void {
    if (this.remembers(key, now)) return
    this.#windows.delete(this.#windows.keys().next().value!)
    this.remembers(key, now)
  }

  isUsedUp(key: string): boolean {
    return this.#windows.get(key)!.used >= this.number
  }

  add(key: string, count: 1 | -1): void {
    const window = this.#windows.get(key)!
    window.used = Math.max(0, window.used + count)
  }

  endOf(key: string): number {
    return this.#windows.get(key)!.ends
  }

  #forgetEnded(now: number): void {
    for (const [key, { ends }] of this.#windows) {
      if (ends > now) return
      this.#windows.delete(key)
    }
  }
}
