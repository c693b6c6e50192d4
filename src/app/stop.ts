// The stop of the service: in steps, each with its time.

import { limit } from '../base/limit.ts'

/** The time that requests under way have to finish after the stop signal. */
const drain_ms_max = limit(
  'stop.drain',
  10_000,
  'milliseconds',
  'How long requests under way may take after the stop signal. Past it their connections end.',
)
/** The time in which the last counts must be written. */
const count_ms_max = limit(
  'stop.counts',
  5_000,
  'milliseconds',
  'How long the last counts may take to be written.',
)
/** The time in which the database must close: a silent one must not keep the process alive. */
const close_ms_max = limit('stop.close', 1_500, 'milliseconds', 'How long the database may take to close.')

type Server = ReturnType<typeof Bun.serve>

/** In the order in which they stop. */
interface Stopping {
  server: Server | undefined
  /** Wait for the attempts under way. */
  drains: readonly (() => Promise<unknown>)[]
  /** Closes connections that nothing needs any more. */
  disconnect(): void
  /** Write the counts that are in memory. */
  counts: readonly (() => Promise<unknown>)[]
  close(): Promise<unknown>
}

export async function stopInSteps({ server, drains, disconnect, counts, close }: Stopping): Promise<void> {
  await withinTime(Promise.all([server && drained(server), ...drains.map((drain) => drain())]), drain_ms_max)
  disconnect()
  await withinTime(Promise.all(counts.map((write) => write())), count_ms_max)
  await withinTime(close(), close_ms_max)
}

async function drained(server: Server): Promise<void> {
  const hard_stop = setTimeout(() => server.stop(true), drain_ms_max)
  await server.stop()
  clearTimeout(hard_stop)
}

/** Resolves when the work does, or when the time is over. */
async function withinTime(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: Timer | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, over])
  clearTimeout(timer)
}
