// Receivers of the tests of one file.

import { afterAll } from 'bun:test'
import { type Receiver, startReceiver } from './receiver.ts'

/**
 * Starts receivers that are stopped after the tests of the file. Each answers these statuses in turn, the last one from
 * then on.
 */
export function receiversOfFile(): (...statuses: number[]) => Promise<Receiver> {
  const receivers: Receiver[] = []
  afterAll(async () => {
    for (const receiver of receivers) await receiver.stop()
  })
  return async (...statuses) => {
    const receiver = await startReceiver()
    receivers.push(receiver)
    receiver.answer = () => ({ status: statuses.length > 1 ? statuses.shift()! : statuses[0]! })
    return receiver
  }
}
