// The causes of dead letters.

import type { ListedDeadLetter } from '../../sdk/src/types.ts'
import { firstLine } from '../text/words.ts'

const cause_characters_max = 160

/** Failures of one cause have one text: the first line without ids and numbers. Statuses of HTTP stay. */
export function causeOf(error: string): string {
  return firstLine(error)
    .replace(/\b[a-z]{2,4}_[0-9a-z]{26}\b/g, '…')
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '…')
    .replace(/(?<!\b(?:status|http|code) ?)\b(?=[0-9a-f]*\d)(?:\d+|[0-9a-f]{8,})\b/gi, '…')
    .slice(0, cause_characters_max)
}

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
  for (const { source, error, created_at } of rows) {
    const cause = causeOf(error)
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
