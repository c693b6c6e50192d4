// Dead letters and the operations on many of them, as the API answers them.

import type { DeadLetterOperation, ListedDeadLetter } from '../../sdk/src/types.ts'

export type {
  DeadLetter as OpenLetter,
  DeadLetterCause as Cause,
  DeadLetterOperation as Operation,
  DeadLetterOperationItem as Outcome,
  ListedDeadLetter as Letter,
} from '../../sdk/src/types.ts'
export type Status = ListedDeadLetter['status']

export type Verb = DeadLetterOperation['verb']

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
