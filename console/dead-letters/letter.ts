// Words for dead letters, and what may be done with one.

import { causeInWords } from '../text/failure.ts'
import { counted, firstLine } from '../text/words.ts'
import type { Letter, Verb } from './shapes.ts'
import type { Source } from './sources.ts'

/** The cause of a letter: that of the service in words, that of an agent as it wrote it. */
export function titleOf({ source, error }: Pick<Letter, 'source' | 'error'>): string {
  return source === 'agent' ? firstLine(error) : causeInWords(error)
}

export const verb_titles: Record<Verb, string> = { redrive: 'Redrive', discard: 'Discard' }

/** `3 dead letters` */
export function letters(value: number): string {
  return counted(value, 'dead letter')
}

function heldBy(agent_id: string | null): string {
  return `${agent_id ?? 'An agent'} works on it until its lock ends.`
}

/** The reason for which the API would refuse to redrive it; null when it would not, undefined while that is not known. */
export function redriveRefusal(
  { status, source, locked_by, redriven_as }: Omit<Letter, 'cause'>,
  origin: Source | undefined,
): string | null | undefined {
  if (status === 'resolved') return redriven_as ? 'It has been sent again already.' : 'It is resolved.'
  if (status === 'claimed') return heldBy(locked_by)
  if (source === 'agent') {
    return status === 'failed'
      ? 'An agent left it: there is no call to send again, and agents can claim it.'
      : null
  }
  if (source === 'schedule' || origin?.call === 'failed') return null
  if (origin?.call === 'pending') return 'The callback of this approval is being sent.'
  return origin && 'The callback of this approval did not fail: there is nothing to send again.'
}

/** The reason for which the API would refuse to discard it; null when it would not. */
export function discardRefusal({ status, locked_by }: Pick<Letter, 'status' | 'locked_by'>): string | null {
  if (status === 'claimed') return heldBy(locked_by)
  return status === 'failed' ? null : `It is ${status} already.`
}

/** The reason for which the API would refuse to resolve it; null when it would not. */
export function resolveRefusal({ status, locked_by }: Pick<Letter, 'status' | 'locked_by'>): string | null {
  if (status === 'claimed') return heldBy(locked_by)
  return status === 'resolved' ? 'It is resolved already.' : null
}
