// The calls of one tenant in one month, as a node knows them.

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

export function usedOf({ known, writing, unwritten }: Entry): number {
  return known + writing + unwritten
}
