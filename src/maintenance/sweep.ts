// Removes what has expired, in bounded steps. Nothing depends on when it runs: what has expired is absent at once.

import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Feature, Sweep } from '../contract/feature.ts'
import type { Db } from '../db/db.ts'
import type { DueLists } from '../db/sweep-tenants.ts'

/** Rows of each kind that one step removes, where a feature has no bound of its own. */
const rows_max = limit(
  'sweep.rows',
  500,
  'rows',
  'Rows of each kind that one step of the sweep removes, so that requests wait for no more than one step.',
)
/** Bytes that one step removes, where rows may be large. */
const bytes_max = limit(
  'sweep.bytes',
  4 * 1_048_576,
  'bytes',
  'Bytes that one step of the sweep removes where rows may be large.',
)

const bounds = { rows_max, bytes_max }

type Count = (counter: string, by: number) => void

interface Sweeping {
  db: Db
  clock: Clock
  features: readonly Feature[]
  count: Count
  lists: DueLists
}

interface Steps {
  /** Other steps would find more. */
  more: boolean
  /** None has failed, or waits because it had failed. */
  is_complete: boolean
}

/**
 * One bounded step of every feature. What each removes is counted at once: it holds, also when a later one fails. One that fails
 * waits, and keeps no other from its step.
 */
export function sweep(sweeping: Sweeping): Promise<Steps> {
  const sweeps = sweeping.features.flatMap(({ name, expiries, sweep }) => [
    ...named(`${name} expiries`, expiries),
    ...named(name, sweep),
  ])
  return stepOfEach(sweeping, sweeps)
}

/** The same for what must leave its event within a second. */
export function expire(sweeping: Sweeping): Promise<Steps> {
  const expiries = sweeping.features.flatMap(({ name, expiries }) => named(name, expiries))
  return stepOfEach(sweeping, expiries)
}

interface NamedSweep extends Sweep {
  name: string
}

function named(name: string, sweep: Sweep | undefined): NamedSweep[] {
  return sweep ? [{ ...sweep, name }] : []
}

/** One after the other. True when any finds more. */
async function stepOfEach(
  { db, clock, count, lists }: Sweeping,
  sweeps: readonly NamedSweep[],
): Promise<Steps> {
  const steps: Steps = { more: false, is_complete: true }
  for (const { name, run } of sweeps) {
    const done = await lists.sweeps.take(name, () => run(db, clock.now(), lists, bounds))
    steps.is_complete &&= done !== null
    steps.more ||= done?.more ?? false
    for (const [counter, by] of Object.entries(done?.counts ?? {})) count(counter, by)
  }
  return steps
}

/** Pause between two steps of a sweep that find nothing. */
const idle_ms = 5_000
/** The same for what must leave its event within a second: half of it is left for the step. */
export const expiry_idle_ms = limit(
  'sweep.expiry_pause',
  500,
  'milliseconds',
  'Pause between two looks at what has expired and leaves an event: dead letters’ locks, inboxes, keys of namespaces with events.',
)
/** Pause between two steps while there is more to do, so that requests come first. */
const busy_ms = 50

export interface Sweeper {
  /** Resolves when no step is under way any more. */
  stop(): Promise<void>
}

/** Runs a step at intervals until stopped. A failed one is reported and tried again later. */
export function startSweeper(
  step: () => Promise<{ more: boolean }>,
  onError: (error: unknown) => void,
  pause_ms = idle_ms,
): Sweeper {
  let stopped = false
  let timer: Timer
  let under_way: Promise<void> = Promise.resolve()
  const schedule = (delay_ms: number) => {
    if (!stopped) timer = setTimeout(() => (under_way = run()), delay_ms)
  }
  const run = async () => {
    try {
      schedule((await step()).more ? busy_ms : pause_ms)
    } catch (error) {
      onError(error)
      schedule(pause_ms)
    }
  }
  schedule(pause_ms)
  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await under_way
    },
  }
}
