// client.dlq

import * as generated from './generated-resources.ts'
import { type CallOptions, type CreateOptions, retries_max } from './transport.ts'
import type { ClaimedDeadLetter, DeadLetterOperation, MatchedDeadLetters, Operations } from './types.ts'
import { type WorkContext, type WorkOptions, type WorkSummary, workOn } from './work.ts'

/** The pause between two looks at an operation. */
const look_again_ms = 500

type Redrive = Operations['redriveItems']['body']
type Discard = Operations['discardItems']['body']

export class Dlq extends generated.Dlq {
  /** Sends many items again: the operation, or with `dry_run` how many match. Throws TOO_MANY_OPERATIONS. */
  override redriveMany(
    body: Redrive & { dry_run: true },
    options?: CreateOptions,
  ): Promise<MatchedDeadLetters>
  override redriveMany(
    body: Redrive & { dry_run?: false | undefined },
    options?: CreateOptions,
  ): Promise<DeadLetterOperation>
  override redriveMany(
    body: Redrive,
    options?: CreateOptions,
  ): Promise<MatchedDeadLetters | DeadLetterOperation>
  override redriveMany(body: Redrive, options: CreateOptions = {}) {
    return super.redriveMany(body, options)
  }

  /** Archives many failed items: the operation, or with `dry_run` how many match. Throws TOO_MANY_OPERATIONS. */
  override discardMany(
    body: Discard & { dry_run: true },
    options?: CreateOptions,
  ): Promise<MatchedDeadLetters>
  override discardMany(
    body: Discard & { dry_run?: false | undefined },
    options?: CreateOptions,
  ): Promise<DeadLetterOperation>
  override discardMany(
    body: Discard,
    options?: CreateOptions,
  ): Promise<MatchedDeadLetters | DeadLetterOperation>
  override discardMany(body: Discard, options: CreateOptions = {}) {
    return super.discardMany(body, options)
  }

  /** Waits until the operation has succeeded or was cancelled; `signal` ends the wait. `onProgress` gets each look. */
  async waitForOperation(
    id: string,
    {
      onProgress,
      retries = retries_max,
      ...options
    }: CallOptions & { onProgress?: ((operation: DeadLetterOperation) => void) | undefined } = {},
  ): Promise<DeadLetterOperation> {
    const { sleep } = this.transport.platform
    for (;;) {
      const operation = await this.operation(id, { ...options, retries })
      onProgress?.(operation)
      if (operation.status !== 'running') return operation
      await sleep(look_again_ms, options.signal)
    }
  }

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
