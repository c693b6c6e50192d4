// Removes what has expired, in bounded steps. Nothing depends on when it runs: what has expired is absent at once.

import { type Clock, day_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import * as credentials from '../credentials/service.ts'
import { type Db, upkeep } from '../db/db.ts'
import * as dlq from '../dlq/service.ts'
import * as idempotency from '../idempotency/service.ts'
import * as inbox from '../inbox/service.ts'
import * as kv from '../kv/service.ts'
import * as quotas from '../quotas/service.ts'
import * as usage from '../usage/service.ts'

/** Rows of each kind that one step removes. */
const rows_max = limit(
  'sweep.rows',
  500,
  'rows',
  'Rows of each kind that one step of the sweep removes, so that requests wait for no more than one step.',
)
/** And bytes, where rows may be large. */
const bytes_max = limit(
  'sweep.bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes that one step of the sweep removes where rows may be large.',
)

/** The counts of past months are kept for a year. */
const months_kept_ms = 400 * day_ms

export interface Swept {
  kv_keys: number
  inboxes: number
  idempotency_keys: number
  locks_released: number
  /** Whether another step would find more. */
  more: boolean
}

/** One bounded step over every kind. */
export async function sweep(db: Db, clock: Clock): Promise<Swept> {
  const keys = await kv.sweep(db, clock.now())
  const inboxes = await inbox.sweep(db, clock.now())
  const letters = await dlq.sweep(db, clock.now())
  const idempotency_keys = await db.write(upkeep, (tx) => idempotency.sweep(tx, rows_max, bytes_max))
  const more_answers = await idempotency.anyExpired(db, clock.now())
  const months = await db.write(upkeep, (tx) => quotas.sweepCalls(tx, tx.now - months_kept_ms, rows_max))
  const hours = await db.write(upkeep, (tx) => usage.sweep(tx, tx.now, rows_max))
  const ended_keys = await db.write(upkeep, (tx) => credentials.sweep(tx, rows_max))
  return {
    kv_keys: keys.expired,
    inboxes: inboxes.expired,
    idempotency_keys,
    locks_released: letters.locks_released,
    more:
      keys.more ||
      inboxes.more ||
      letters.more ||
      more_answers ||
      ended_keys === rows_max ||
      months === rows_max ||
      hours === rows_max,
  }
}

const idle_ms = 5_000
/** Pause between two steps while there is more to do, so that requests come first. */
const busy_ms = 50

export interface Sweeper {
  /** Resolves when no step is under way any more. */
  stop(): Promise<void>
}

/** Runs a step now and then until stopped. A failed one is told and tried again later. */
export function startSweeper(
  step: () => Promise<{ more: boolean }>,
  onError: (error: unknown) => void,
): Sweeper {
  let stopped = false
  let timer: Timer
  let under_way: Promise<void> = Promise.resolve()
  const schedule = (delay_ms: number) => {
    if (!stopped) timer = setTimeout(() => (under_way = run()), delay_ms)
  }
  const run = async () => {
    try {
      schedule((await step()).more ? busy_ms : idle_ms)
    } catch (error) {
      onError(error)
      schedule(idle_ms)
    }
  }
  schedule(idle_ms)
  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await under_way
    },
  }
}
