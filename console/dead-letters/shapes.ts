// Dead letters and the operations on many of them, as the API answers them.

import type { DeadLetterOperation, ListedDeadLetter } from '../../sdk/src/types.ts'

export type {
  DeadLetter as OpenLetter,
  DeadLetterCause as Cause,
  DeadLetterOperationItem as Outcome,
  ListedDeadLetter as Letter,
} from '../../sdk/src/types.ts'
export type Status = ListedDeadLetter['status']

export type Verb = 'redrive' | 'discard'
export type Operation = Omit<DeadLetterOperation, 'verb'> & { verb: Verb }

/** The filter of a request. */
export interface Filter {
  status?: Status
  source?: ListedDeadLetter['source']
  source_id?: string
  cause?: string
  workflow_id?: string
  from?: string
  to?: string
  ids?: string[]
}
