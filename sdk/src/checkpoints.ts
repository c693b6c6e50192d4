// client.checkpoints

import * as generated from './generated-resources.ts'
import { type LookOptions, lookUntil, waitSeconds } from './look.ts'
import type { CreateOptions } from './transport.ts'
import type { Checkpoint } from './types.ts'

type NewCheckpoint = Parameters<generated.Checkpoints['create']>[0]
type Question = Omit<NewCheckpoint, 'callback_url'> & Partial<Pick<NewCheckpoint, 'callback_url'>>

export class Checkpoints extends generated.Checkpoints {
  /**
   * Asks a human and waits for the decision, as `waitFor` does. The decision is sent nowhere unless there is a
   * `callback_url`. After a restart, the same `idempotency_key` waits for the same question.
   */
  async ask(question: Question, options: CreateOptions & LookOptions = {}): Promise<Checkpoint> {
    const { wait_seconds, idempotency_key, ...call } = options
    waitSeconds(wait_seconds) // before a person is asked
    const { id } = await this.create(
      { callback_url: null, ...question },
      { ...call, ...(idempotency_key === undefined ? {} : { idempotency_key }) },
    )
    return this.waitFor(id, { ...call, wait_seconds })
  }

  /**
   * Waits until it is approved, rejected, expired or cancelled, however long that takes; `signal` ends the wait. An
   * unavailable service is tried again for about a minute, unless `retries` says otherwise.
   */
  waitFor(id: string, options: LookOptions = {}): Promise<Checkpoint> {
    const isDone = ({ status }: Checkpoint) => status !== 'pending'
    return lookUntil(this.transport, options, (call) => this.get(id, call), isDone)
  }
}
