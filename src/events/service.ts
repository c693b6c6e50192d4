// Reading the journal, and waiting for what comes.

import { ApiError } from '../base/errors.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import type { EventRow } from '../contract/event.ts'
import type { Context } from '../contract/route.ts'
import { onKeyEnd } from '../contract/wait.ts'
import { Filter, type Wanted, type Wants } from '../contract/wanted.ts'
import type { Reader } from '../db/db.ts'
import { lastSeq, numberIfPossible } from '../journal/service.ts'
import { Follower } from './follower.ts'
import { pageOf } from './pages.ts'

export type EventsContext = Context<AdminCaller | AgentCaller>

export interface Found {
  events: readonly EventRow[]
  /** The number to go on behind. */
  next_after: number
}

export interface Asked {
  any: readonly Wanted[]
  /** Only events with a higher number; null: begins now. */
  after: number | null
  rows_max: number
  wait_ms: number
}

function wantsOf({ caller }: EventsContext, any: readonly Wanted[]): Wants {
  const viewer = caller.kind === 'agent' ? caller.agent_id : null
  return { filters: any.map((wanted) => new Filter(wanted)), viewer }
}

/**
 * Events behind `after`; where there is none, waits for the first. Throws what a new request would be answered when the key
 * of this one ends meanwhile.
 */
export async function read(context: EventsContext, asked: Asked): Promise<Found> {
  const { dependencies, caller } = context
  const { notifier } = dependencies.shared
  const { after, rows_max, wait_ms } = asked
  const waits = wait_ms > 0 && notifier.enter(caller.tenant_id)
  if (!waits && after !== null) return readNow(context, asked, after)
  try {
    return await withFollower(context, asked, async (follower) => {
      if (waits) context.extendTimeout(wait_ms)
      const events = await follower.next(rows_max, waits ? wait_ms : 0)
      if (waits) await context.requireStillAllowed()
      return { events, next_after: follower.position }
    })
  } finally {
    if (waits) notifier.leave(caller.tenant_id)
  }
}

/** The request of the follower is over when its client has left, or its key has ended. */
async function withFollower(
  context: EventsContext,
  { any, after }: Asked,
  work: (follower: Follower) => Promise<Found>,
): Promise<Found> {
  const signal = context.signal()
  let is_over = signal.aborted
  let stop = () => {
    is_over = true
  }
  const end = () => stop()
  signal.addEventListener('abort', end)
  const unheed = onKeyEnd(context, end)
  const stop_checks = checkAgain(context, end)
  try {
    const follower = await followerOf(context, any, after)
    stop = () => follower.close()
    if (is_over) stop() // while the follower began
    try {
      return await work(follower)
    } finally {
      follower.close()
    }
  } finally {
    signal.removeEventListener('abort', end)
    unheed()
    stop_checks()
  }
}

/** Checks the key from time to time: no signal comes of what another node could not signal. An outage ends no wait. */
function checkAgain({ dependencies, requireStillAllowed }: EventsContext, end: () => void): () => void {
  const { notifier } = dependencies.shared
  let is_stopped = false
  let timer: Timer | undefined
  const wait = () => {
    const { look_again_ms } = notifier
    // A timer of infinity would end at once.
    if (!is_stopped && look_again_ms !== Number.POSITIVE_INFINITY) timer = setTimeout(check, look_again_ms)
  }
  const check = () => {
    requireStillAllowed().then(wait, (error) => {
      if (error instanceof ApiError && error.code !== 'UNAVAILABLE') end()
      else wait()
    })
  }
  wait()
  return () => {
    is_stopped = true
    clearTimeout(timer)
  }
}

/**
 * Behind `after`, from now on when that is null or no event has this number. Acquires no place; `close` must follow. Throws what
 * the database throws.
 */
export async function followerOf(
  context: EventsContext,
  any: readonly Wanted[],
  after: number | null,
): Promise<Follower> {
  const { db, dependencies, caller } = context
  const { tails, notifier } = dependencies.shared
  const { tenant_id } = caller
  const wants = wantsOf(context, any)
  const tail = await tails.enter(tenant_id)
  const position = Math.min(after ?? tail.position, tail.position)
  return new Follower({ db, tails, notifier, tenant_id, wants }, tail, position)
}

async function readNow(context: EventsContext, { any, rows_max }: Asked, after: number): Promise<Found> {
  const { db, dependencies, caller } = context
  await numberIfPossible(dependencies.journal, caller.tenant_id)
  const { events, reached } = await pageOf(db, caller.tenant_id, wantsOf(context, any), { after, rows_max })
  const next_after = reached ?? events.at(-1)?.seq ?? (await knownOf(db, caller.tenant_id, after))
  return { events, next_after }
}

/**
 * The number itself, or the last one where no event has it yet: after a restore from a backup numbers are given again, and a
 * reader from before it would miss the events up to its own.
 */
async function knownOf(q: Reader, tenant_id: string, after: number): Promise<number> {
  return after === 0 ? 0 : Math.min(after, await lastSeq(q, tenant_id))
}
