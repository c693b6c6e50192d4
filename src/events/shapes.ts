// The shapes that both routes share.

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { label_characters_max, Text } from '../contract/schemas.ts'

export const tag = 'Events'

/** Under the 60 s after which clients and proxies commonly give up. */
export const wait_seconds_max = limit(
  'events.wait',
  55,
  'seconds',
  'How long a request may wait for an event. Past it 400.',
)
const subject_characters_max = limit(
  'events.subject',
  1_024,
  'characters',
  'A `subject` to filter events by. Past it 400.',
)

export const After = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export type WantedFields = ReturnType<typeof wantedFields>

/** `types`: of the events that features declare. */
export function wantedFields(types: readonly string[]) {
  const nouns = new Set(types.map((type) => `${type.split('.')[0]}.*`))
  return {
    type: Type.Enum([...types, ...nouns], {
      'x-component': 'EventType',
      description: 'This type, or all types of a noun: schedule.*.',
    }),
    subject: Text(subject_characters_max, 'About this subject: its id, or kind:id.', { minLength: 1 }),
    workflow_id: Text(label_characters_max, 'Events of this workflow.', { minLength: 1 }),
  }
}
