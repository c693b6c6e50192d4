// The stop of the service: in steps, each with its time.

import { limit } from '../base/limit.ts'
import type { Drain } from '../http/drain.ts'
import { refuseConnections } from './listener.ts'

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

/** The pause after which connections count as idle. */
const quiet_ms = 250
const look_every_ms = 50
/** The time in which clients that send on and on must have noticed. */
const linger_ms_max = limit(
  'stop.linger',
  2_000,
  'milliseconds',
  'How long a stop waits for a moment without requests, in which each answer closes its connection. Past it idle connections are closed.',
)

type Server = ReturnType<typeof Bun.serve>

/** In the order in which they stop. */
interface Stopping {
  server: Server | undefined
  /** Waits until connections are idle. */
  linger(): Promise<void>
  /** Wait for the attempts under way. */
  drains: readonly (() => Promise<unknown>)[]
  /** Close connections that nothing needs any more. */
  disconnect: readonly (() => void)[]
  /** Write the counts that are in memory. */
  counts: readonly (() => Promise<unknown>)[]
  close(): Promise<unknown>
}

export async function stopInSteps(stopping: Stopping): Promise<void> {
  const { server, linger, drains, disconnect, counts, close } = stopping
  const served = linger().then(() => server && drained(server))
  await withinTime(Promise.all([served, ...drains.map((drain) => drain())]), drain_ms_max)
  for (const end of disconnect) end()
  await withinTime(Promise.all(counts.map((write) => write())), count_ms_max)
  await withinTime(close(), close_ms_max)
}

/**
 * Lets no new connection in, and resolves once no request has come for a moment. A client that sends on a connection while it is closed as idle would
 * lose its request: so each answer closes its connection first, and clients that send know.
 */
export async function lingered(drain: Drain, port: number): Promise<void> {
  await refuseConnections(port)
  let seen = drain.requests
  let quiet_for_ms = 0
  for (let waited_ms = 0; quiet_for_ms < quiet_ms && waited_ms < linger_ms_max; waited_ms += look_every_ms) {
    await Bun.sleep(look_every_ms)
    quiet_for_ms = drain.requests === seen ? quiet_for_ms + look_every_ms : 0
    seen = drain.requests
  }
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
