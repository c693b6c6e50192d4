// Ranges of texts in bytewise order.

/** The texts that begin so. */
export interface TextRange {
  prefix: string
  /** The text after which it begins; null: with the first. */
  after: string | null
}

/** The least text that may be in the range. None has a NUL: between a text and the same with U+0001 there is none. */
export function beginOf({ prefix, after }: TextRange): string {
  return after === null ? prefix : `${after}\u0001`
}
