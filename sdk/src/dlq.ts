// client.dlq

import * as generated from './generated-resources.ts'
import type { ClaimedDeadLetter } from './types.ts'
import { type WorkContext, type WorkOptions, type WorkSummary, workOn } from './work.ts'

export class Dlq extends generated.Dlq {
  /**
   * Claims items one after the other, oldest first, extends their locks, and resolves each when `handler` is done with
   * it. When the handler throws, the item is released for another try; for GiveUp, and after `claims_max` claims, it is
   * archived. Goes on until `signal` is aborted, and returns once the items in progress are settled.
   */
  work(
    handler: (item: ClaimedDeadLetter, context: WorkContext) => unknown,
    options: WorkOptions = {},
  ): Promise<WorkSummary> {
    return workOn(this, this.transport.platform, handler, options)
  }
}
