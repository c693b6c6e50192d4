// The causes of dead letters.

import type { ListedDeadLetter } from '../../sdk/src/types.ts'

export interface Cause {
  cause: string
  source: ListedDeadLetter['source']
  letters: number
  latest: string
  oldest: string
}

/** The causes of these letters, newest first; the most frequent cause comes first. */
export function causesOf(rows: ListedDeadLetter[]): Cause[] {
  const causes = new Map<string, Cause>()
  for (const { source, cause, created_at } of rows) {
    const known = causes.get(`${source} ${cause}`)
    if (known) {
      known.letters += 1
      known.oldest = created_at
    } else {
      causes.set(`${source} ${cause}`, { cause, source, letters: 1, latest: created_at, oldest: created_at })
    }
  }
  return [...causes.values()].toSorted(
    (one, other) => other.letters - one.letters || (one.cause < other.cause ? -1 : 1),
  )
}
