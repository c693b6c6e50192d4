// The memory of requests and answers in flight: bodies that arrive or wait for the database, answers that are not
// read yet. It is shared out, so that no slow client takes all of it.

import type { Clock } from './clock.ts'
import { ApiError } from './errors.ts'
import { limit } from './limit.ts'
import { Account, Hold, type Owner } from './memory-hold.ts'

const mebibyte = 1_048_576

export const memory_bytes_default = limit(
  'memory.bytes',
  64 * mebibyte,
  'bytes',
  'Request bodies and answers in memory at once, the default of MEMORY_BUDGET. Past it the request or answer that has gone longest without progress is cut off; when all progress, the next is refused with 503 UNAVAILABLE.',
)

/** With less, the largest answer, a full page within a message of MCP, would never find room. */
export const memory_bytes_min = limit(
  'memory.bytes_min',
  32 * mebibyte,
  'bytes',
  'The smallest MEMORY_BUDGET, so that the largest single body or answer finds room in each share.',
)

const small_percent = limit(
  'memory.small_percent',
  25,
  'percent',
  'The part of MEMORY_BUDGET that only small bodies use, so that large ones never refuse them.',
)

const tenant_percent = limit(
  'memory.tenant_percent',
  25,
  'percent',
  'The part of MEMORY_BUDGET that one tenant may use: less than an address may, so that a tenant leaves memory for others behind the same proxy.',
)

const address_percent = limit(
  'memory.address_percent',
  50,
  'percent',
  'The part of MEMORY_BUDGET that one client address may use: what it holds leaves memory for the others.',
)

export class MemoryBudget {
  readonly #total: Account
  readonly #tenants = new Map<string, Account>()
  readonly #addresses = new Map<string, Account>()
  readonly #small_bytes_max: number
  readonly #tenant_bytes_max: number
  readonly #address_bytes_max: number
  #small_bytes = 0

  constructor(
    readonly clock: Clock,
    bytes_max: number,
  ) {
    this.#small_bytes_max = share(bytes_max, small_percent)
    this.#total = new Account(bytes_max - this.#small_bytes_max)
    this.#tenant_bytes_max = share(bytes_max, tenant_percent)
    this.#address_bytes_max = share(bytes_max, address_percent)
  }

  /** All that is counted at the moment. */
  get bytes(): number {
    return this.#total.bytes + this.#small_bytes
  }

  /** Addresses and tenants that hold something. */
  get owners(): number {
    return this.#tenants.size + this.#addresses.size
  }

  /** `cut` is called at most once; it drops what is held, and must not throw. */
  hold(owner: Owner, cut: () => void): Hold {
    return new Hold(this, owner, cut)
  }

  /** Counts a small body without an object. After true, the caller calls `releaseSmall` with the same number. */
  acquireSmall(bytes: number): boolean {
    if (this.#small_bytes + bytes > this.#small_bytes_max) return false
    this.#small_bytes += bytes
    return true
  }

  releaseSmall(bytes: number): void {
    this.#small_bytes -= bytes
  }

  /** The accounts that this owner's bytes are counted in, the narrowest first. */
  accountsOf({ address, tenant_id }: Owner): Account[] {
    const accounts = [accountIn(this.#addresses, address, this.#address_bytes_max), this.#total]
    return tenant_id === null ? accounts : [this.tenantAccount(tenant_id), ...accounts]
  }

  tenantAccount(tenant_id: string): Account {
    return accountIn(this.#tenants, tenant_id, this.#tenant_bytes_max)
  }

  /** Removes the accounts of this owner that count nothing any more. */
  removeEmpty({ address, tenant_id }: Owner): void {
    if (this.#addresses.get(address)?.bytes === 0) this.#addresses.delete(address)
    if (tenant_id !== null && this.#tenants.get(tenant_id)?.bytes === 0) this.#tenants.delete(tenant_id)
  }
}

/** The answer when there is no room: 503 UNAVAILABLE with Retry-After. */
export function outOfMemory(close = false): ApiError {
  return new ApiError('UNAVAILABLE', { retry_after_seconds: 1, close, shed: 'memory' })
}

function share(bytes_max: number, percent: number): number {
  return Math.floor((bytes_max * percent) / 100)
}

function accountIn(accounts: Map<string, Account>, key: string, bytes_max: number): Account {
  const known = accounts.get(key)
  if (known) return known
  const made = new Account(bytes_max)
  accounts.set(key, made)
  return made
}
