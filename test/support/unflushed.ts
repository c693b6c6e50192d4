// A service on a SQLite file whose flushes a test holds.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Sync } from '../../src/db/sqlite-flush.ts'
import { databaseFolder } from './folders.ts'
import { HeldFlush } from './held-flush.ts'
import { TestService } from './service.ts'

export interface Unflushed {
  service: TestService
  flush: HeldFlush
  /** Failures of the disk that end the service. */
  fatal: unknown[]
  /** How many of these are answered, now that each has had several turns of the event loop and a request after it. */
  answered(asked: readonly Promise<unknown>[]): Promise<number>
  stop(): Promise<void>
}

/** `sync` in place of a flush that is held. */
export async function startUnflushed(sync?: Sync): Promise<Unflushed> {
  const folder = databaseFolder()
  const flush = new HeldFlush()
  const fatal: unknown[] = []
  const service = new TestService({ CALLBACK_ALLOW: '127.0.0.0/8', CLOCK: 'test' })
  // Nothing runs beside the calls, so a flush is that of a call.
  service.background = false
  service.sync = sync ?? flush.sync
  service.onFatal = (error) => fatal.push(error)
  await service.start(`sqlite:${join(folder, 'test.db')}`)
  return {
    service,
    flush,
    fatal,
    async answered(asked) {
      let count = 0
      for (const answer of asked) void answer.finally(() => (count += 1))
      for (let i = 0; i < 5; i++) await service.ask('GET', '/livez')
      return count
    },
    async stop() {
      flush.release()
      await service.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
