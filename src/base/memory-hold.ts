// The memory that one request or one answer takes, counted in the accounts of its owner.

import { limit } from './limit.ts'
import type { MemoryBudget } from './memory.ts'

/** A holder that made progress this recently is not cut off. */
const progress_ms = limit(
  'memory.progress_ms',
  1_000,
  'milliseconds',
  'How long a request or an answer may go without progress before it can be cut off when memory is short.',
)

/** Progress is noted no more often than this. */
const note_every_ms = 100

export interface Owner {
  address: string
  /** Null until it is known. */
  tenant_id: string | null
}

/** Bytes of one address, one tenant or of all, with those that can be cut off: longest without progress first. */
export class Account {
  bytes = 0
  readonly cuttable = new Set<Hold>()

  constructor(readonly bytes_max: number) {}
}

/** The memory that one request or one answer takes. */
export class Hold {
  bytes = 0
  /** True once it was cut off: it holds nothing then. */
  is_cut = false
  #accounts: Account[] = []
  #owner: Owner
  #pinned = false
  #progressed_at: number

  constructor(
    private readonly budget: MemoryBudget,
    owner: Owner,
    private readonly cut: () => void,
  ) {
    this.#owner = { ...owner }
    this.#progressed_at = budget.clock.monotonic()
  }

  /** Counts more bytes. False when there is no room, or when this hold was cut off: then nothing was counted. */
  grow(bytes: number): boolean {
    if (!Number.isSafeInteger(bytes)) throw new Error(`not a number of bytes: ${bytes}`)
    if (this.is_cut) return false
    const accounts = this.bytes > 0 ? this.#accounts : this.budget.accountsOf(this.#owner)
    const found = this.#makeRoom(accounts, bytes)
    if (found && bytes > 0) {
      // The holder that was cut off meanwhile may have been the last of an account.
      if (this.bytes === 0) this.#enter(this.budget.accountsOf(this.#owner))
      this.bytes += bytes
      for (const account of this.#accounts) account.bytes += bytes
    }
    if (this.bytes === 0) this.budget.removeEmpty(this.#owner)
    return found
  }

  /** Counts fewer bytes: part of an answer was sent. */
  shrink(bytes: number): void {
    const fewer = Math.min(bytes, this.bytes)
    this.bytes -= fewer
    for (const account of this.#accounts) account.bytes -= fewer
    if (this.bytes === 0) this.release()
  }

  /** Bytes arrived, or were taken by the receiver. */
  progress(): void {
    const now = this.budget.clock.monotonic()
    if (now - this.#progressed_at < note_every_ms) return
    this.#progressed_at = now
    if (!this.#pinned)
      for (const { cuttable } of this.#accounts) if (cuttable.delete(this)) cuttable.add(this)
  }

  /** Names the tenant, once it is known. False when its share has no room for what is held: then nothing was changed. */
  assign(tenant_id: string): boolean {
    if (this.is_cut) return false
    if (this.bytes > 0) {
      if (!this.#makeRoom([this.budget.tenantAccount(tenant_id)], this.bytes)) return false
      const account = this.budget.tenantAccount(tenant_id)
      account.bytes += this.bytes
      this.#enter([account, ...this.#accounts])
    }
    this.#owner.tenant_id = tenant_id
    return true
  }

  /** Keeps it from being cut off from now on: what it holds is in use and has no sender to wait for. */
  pin(): void {
    this.#pinned = true
    for (const { cuttable } of this.#accounts) cuttable.delete(this)
  }

  /** Releases all of it. May be called again. */
  release(): void {
    for (const account of this.#accounts) {
      account.bytes -= this.bytes
      account.cuttable.delete(this)
    }
    this.bytes = 0
    this.#accounts = []
    this.budget.removeEmpty(this.#owner)
  }

  /** Joins the end of each line of those that can be cut off. */
  #enter(accounts: Account[]): void {
    this.#accounts = accounts
    this.#progressed_at = this.budget.clock.monotonic()
    if (this.#pinned) return
    for (const { cuttable } of accounts) {
      cuttable.delete(this)
      cuttable.add(this)
    }
  }

  /** Cuts off the holders that have gone longest without progress, until each account has room; none, when one cannot. */
  #makeRoom(accounts: readonly Account[], bytes: number): boolean {
    if (!accounts.every((account) => this.#couldHaveRoom(account, bytes))) return false
    for (const account of accounts) {
      for (const other of account.cuttable) {
        if (account.bytes + bytes <= account.bytes_max) break
        if (other !== this) other.#cutOff()
      }
    }
    return true
  }

  /** True when there is room without those that made no progress. */
  #couldHaveRoom({ bytes: used, bytes_max, cuttable }: Account, bytes: number): boolean {
    const before = this.budget.clock.monotonic() - progress_ms
    let missing = used + bytes - bytes_max
    for (const other of cuttable) {
      if (missing <= 0 || other.#progressed_at > before) break
      if (other !== this) missing -= other.bytes
    }
    return missing <= 0
  }

  #cutOff(): void {
    this.is_cut = true
    this.release()
    this.cut()
  }
}
