// The job of a subscription. There is one as long as the subscription exists: it is idle while there is nothing to send,
// and due as soon as an event that the subscription takes has its number.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { type EventRow, service_cause } from '../contract/event.ts'
import type { Reader, Tx } from '../db/db.ts'
import { type AttemptResult, errorText, type LeasedJob, nextAttemptAt } from '../jobs/job.ts'
import type { MessageContext, SendingKind } from '../jobs/kind.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as tenants from '../tenants/service.ts'
import { endAsking } from './address-store.ts'
import * as attempts from './attempt-store.ts'
import * as deliveries from './delivery-store.ts'
import { events as own_events } from './events.ts'
import { askForConfirmation, type Delivery, mailAbout, nextRequest } from './request-service.ts'
import { attempt_offsets_ms, attempts_max, type PauseReason } from './subscription.ts'
import { waitingEvents } from './waiting-service.ts'

const events_a_lease_max = limit(
  'subscriptions.events_a_lease',
  32,
  'entries',
  'Events that a subscription delivers in a row, before others may have its permit.',
)

export const subscription_job: SendingKind = {
  name: 'subscription',
  attempts_max,
  attempt_offsets_ms,
  starts_at_once: true,
  goes_on: true,
  logged_as: null,
  begun: null,
  async message(context, job) {
    const { db, dependencies, started_at } = context
    const { tenant_id } = job
    const secrets = await tenants.signingSecrets(db, dependencies.keys.secrets, tenant_id, started_at, {
      goes_on: true,
    })
    if (!secrets) return 'paused'
    const subscription = await deliveries.deliverable(db, job)
    if (!subscription) return null
    if (subscription.status === 'unconfirmed') return askForConfirmation(context, job, subscription)
    if (subscription.status === 'paused') return null
    const events_max = subscription.format === 'mail' ? 1 : events_a_lease_max
    const { events, more, reached } = await waitingEvents(
      db,
      tenant_id,
      subscription,
      dependencies.event_types,
      events_max,
    )
    if (events.length === 0) return { seen: reached }
    const attempt = await attemptOf(db, job, subscription, events[0]!)
    const delivery = { subscription, events, more, reached, attempt, results: [] }
    if (subscription.format === 'mail') return mailAbout(context, job, delivery)
    return { ...delivery, next: () => nextRequest(context, job, delivery, secrets) }
  },
  async idle(tx, dependencies, job, seen) {
    if (!(await jobs.repeat(tx, dependencies.jobs, job, jobs.idle_at))) return
    // Events that were skipped are not read again.
    if (seen !== null) await deliveries.advance(tx, job.tenant_id, job.source_id, seen)
    await lookAgain(tx, dependencies, job)
  },
  async settle(tx, dependencies, job, result) {
    const delivery = result.sequence as Delivery | undefined
    const results = delivery?.results ?? []
    const taken = results.filter(({ ok }) => ok).length
    const tried = triesOf(job, result, taken)
    const next_at = nextTryAt(tried, result)
    const is_behind = delivery !== undefined && (delivery.more || taken < (delivery.events?.length ?? 0))
    const again_at = result.ok ? (is_behind ? tx.now : jobs.idle_at) : (next_at ?? jobs.idle_at)
    const waits = next_at !== null
    // Even if the subscription is gone: the address got the email. Its row is locked before the job's, as in a confirmation.
    if (delivery && !delivery.events)
      await endAsking(tx, job.tenant_id, delivery.subscription.address_hash!, result.ok)
    const held = await jobs.repeat(tx, dependencies.jobs, job, again_at, waits ? tried : undefined)
    if (delivery?.events)
      await logAttempts(tx, job, entriesOf(delivery.attempt, delivery.events, results), held)
    if (!held) return null
    const attempt = taken > 0 ? 1 : (delivery?.attempt ?? tried.attempts)
    await settleRow(tx, job, delivery, result, { taken, attempts: result.ok ? 0 : attempt })
    if (!result.ok && !waits) await giveUp(tx, job, result)
    if (result.ok && !is_behind) await lookAgain(tx, dependencies, job)
    return null
  },
}

/**
 * The number of this attempt to deliver the first event that waits. The job counts failed attempts in a row: the first
 * of them may have been for an event that is no longer kept.
 */
async function attemptOf(
  q: Reader,
  { tenant_id, source_id, attempts: in_a_row }: LeasedJob,
  { position }: deliveries.Deliverable,
  { id, seq }: EventRow,
): Promise<number> {
  if (in_a_row === 1) return 1
  const logged = await attempts.kept(q, tenant_id, source_id)
  const before = logged.find(({ event_id }) => event_id !== id)
  const is_gone = before && before.error !== null && before.event_seq > position && before.event_seq < seq
  if (!is_gone) return in_a_row
  return before === logged[0] ? 1 : logged[0]!.attempt + 1
}

/**
 * The attempts of the event that was tried last: one, when the same lease delivered events before it. A lease past the last attempt
 * only says that nobody wrote the outcome of that one.
 */
function triesOf({ attempts, first_attempt_at }: LeasedJob, result: AttemptResult, taken: number) {
  if (taken > 0) return { attempts: 1, first_attempt_at: result.started_at }
  return { attempts: Math.min(attempts, attempts_max), first_attempt_at }
}

/**
 * When the next attempt is due; null after the last one. A late attempt, for example after the service was stopped, delays those after
 * it: otherwise all would be due at once, and the receiver would not have its three days.
 */
function nextTryAt(
  { attempts, first_attempt_at }: { attempts: number; first_attempt_at: Millis },
  result: AttemptResult,
): Millis | null {
  const at = nextAttemptAt({ attempts, first_attempt_at }, result, attempts_max, attempt_offsets_ms)
  if (at === null) return null
  const pause_ms = attempt_offsets_ms[attempts]! - attempt_offsets_ms[attempts - 1]!
  return Math.max(at, result.started_at + pause_ms)
}

/**
 * A job that became idle in this transaction is due again when there is something to send after all. Its row is locked: a
 * transaction that numbers another event comes before it, and is seen here, or after it, and wakes the job.
 */
async function lookAgain(
  tx: Tx,
  dependencies: MessageContext['dependencies'],
  job: LeasedJob,
): Promise<void> {
  const { tenant_id, source_id: id } = job
  const selected = await deliveries.selection(tx, tenant_id, id)
  if (!selected) return
  const { events, reached, more } = await waitingEvents(tx, tenant_id, selected, dependencies.event_types, 1)
  const [first] = events
  const position = first ? first.seq - 1 : reached
  if (position > selected.position) await deliveries.advance(tx, tenant_id, id, position)
  if (first || more) await jobs.setNext(tx, dependencies.jobs, job, tx.now)
}

interface Outcome {
  taken: number
  attempts: number
}

async function settleRow(
  tx: Tx,
  { tenant_id, source_id: id }: LeasedJob,
  delivery: Delivery | undefined,
  result: AttemptResult,
  { taken, attempts }: Outcome,
): Promise<void> {
  const events = delivery?.events ?? []
  const last = events[taken - 1]
  await deliveries.settle(tx, tenant_id, id, {
    // After the last event none up to `reached` is wanted, so these are not read again.
    position: last && taken === events.length ? delivery!.reached : (last?.seq ?? null),
    attempts,
    last_error: errorText(result),
    last_status_code: result.status_code,
    delivered_at: last ? tx.now : null,
  })
}

async function giveUp(tx: Tx, { tenant_id, source_id }: LeasedJob, result: AttemptResult): Promise<void> {
  const reason: PauseReason = result.status_code === 410 ? 'gone' : 'failing'
  if (!(await deliveries.pause(tx, tenant_id, source_id, reason))) return
  await journal.emit(tx, own_events['subscription.paused'], {
    ...{ tenant_id, cause: service_cause, subject_id: source_id },
    data: { reason, last_error: errorText(result) },
  })
}

type Entry = Omit<attempts.LoggedAttempt, 'number'>

function entriesOf(
  attempt_of_first: number,
  events: readonly EventRow[],
  results: readonly AttemptResult[],
): Entry[] {
  return results.map(({ started_at, duration_ms, status_code, error }, n) => {
    const { id: event_id, seq: event_seq, type: event_type } = events[n]!
    const attempt = n === 0 ? attempt_of_first : 1
    return { event_id, event_seq, event_type, attempt, started_at, duration_ms, status_code, error }
  })
}

/**
 * Logs attempts, also under a lost lease. `held`: the lease was held until now. Otherwise the same settlement may have logged them
 * before: the answer of the database was lost, and the settlement runs again.
 */
async function logAttempts(
  tx: Tx,
  { tenant_id, source_id: id }: LeasedJob,
  made: readonly Entry[],
  held: boolean,
): Promise<void> {
  const entries = held ? made : await notLogged(tx, tenant_id, id, made)
  if (entries.length === 0) return
  const logged = await deliveries.countLogged(tx, tenant_id, id, entries.length, entries.at(-1)!.started_at)
  if (logged === null) return
  const first = logged - entries.length
  await Promise.all(
    entries.map((entry, n) => attempts.put(tx, tenant_id, id, { number: first + n, ...entry })),
  )
}

async function notLogged(tx: Tx, tenant_id: string, id: string, made: readonly Entry[]): Promise<Entry[]> {
  const keyOf = ({ event_id, attempt, started_at }: Entry) => `${event_id} ${attempt} ${started_at}`
  const logged = new Set((await attempts.kept(tx, tenant_id, id)).map(keyOf))
  return made.filter((entry) => !logged.has(keyOf(entry)))
}
