// The calls of one tenant in one month, as a node knows them.

import { exceeded } from './quota.ts'

export interface Entry {
  tenant_id: string
  month: string
  /** The number in the database when it was last read. */
  known: number
  /** Counted here since; `writing` is on its way. */
  unwritten: number
  writing: number
  looked_at: number
  asked_at: number
  /** A look or a write under way: they exclude each other, so that nothing is counted twice or not at all. */
  busy: Promise<void> | null
  looking: boolean
}

/** Throws QUOTA_EXCEEDED; a call that is refused is not counted. */
export function count(entry: Entry, limit: number | null): void {
  if (limit !== null && usedOf(entry) >= limit) throw exceeded('api_calls_per_month', usedOf(entry), limit)
  entry.unwritten += 1
}

export function usedOf({ known, writing, unwritten }: Entry): number {
  return known + writing + unwritten
}
