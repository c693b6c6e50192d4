// The filter of dead letters, of lists and of operations on many. No imports from db or http.

import { type Millis, parseTime } from '../base/clock.ts'
import { idBound, past_all_ids } from '../base/ids.ts'
import type { DlqStatus, ItemRow } from './item.ts'

/** An absent member filters nothing. */
export interface Filter {
  /** As it is seen at the time of the look. */
  status?: DlqStatus
  source?: ItemRow['source']
  source_id?: string
  cause?: string
  workflow_id?: string
  /** Captured from this instant on. */
  from?: Millis
  /** Captured before this instant. */
  to?: Millis
}

/** True when a look may pass rows that the filter does not take. */
export function isSelective({ status: _, ...others }: Filter): boolean {
  return Object.values(others).some((value) => value !== undefined)
}

/** Ids sort by time, so that instants are bounds of ids: from the first on, and before the second. */
export function boundsOf({ from, to }: Filter): { from_id: string; before_id: string } {
  return {
    from_id: from === undefined ? '' : idBound('dlq', from),
    before_id: to === undefined ? past_all_ids : idBound('dlq', to),
  }
}

/** `from` and `to` of a request, which has checked them. */
export function instantsOf({
  from,
  to,
}: {
  from?: string | undefined
  to?: string | undefined
}): Pick<Filter, 'from' | 'to'> {
  return {
    ...(from !== undefined && { from: parseTime(from)! }),
    ...(to !== undefined && { to: parseTime(to)! }),
  }
}
