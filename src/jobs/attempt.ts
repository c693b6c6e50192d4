// One attempt of a leased job: what it sends is read and sent. How the lease ends is written afterwards, when the permit is
// free for others (outcomes.ts).

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { type AttemptResult, type Sequence, stale_lease_ms, stale_mail_ms } from './job.ts'
import type { SendingKind } from './kind.ts'
import type { Running } from './outcomes.ts'
import type { WorkerOptions } from './worker-options.ts'

const sequence_ms_max = limit(
  'jobs.sequence',
  2_000,
  'milliseconds',
  'How long a job that sends several requests in a row may begin another. Then its permit is free for others.',
)

/** Nothing was sent. */
export type Unsent =
  /** `seen`: as the kind says, or null. */
  | { unsent: 'nothing_left'; seen: number | null }
  /** The lease is too old, or the tenant is paused. */
  | { unsent: 'stale_or_paused' }
  | { unsent: 'later'; not_before: Millis }
  /** There was no permit to resolve the host name of its receiver. */
  | { unsent: 'untried' }
  | Unread

/** The message could not be read from the database. */
interface Unread {
  unsent: 'unread'
  error: unknown
}

export type Attempting = Pick<WorkerOptions, 'db' | 'clock' | 'send' | 'dependencies' | 'onError'>

interface Progress {
  /** Called when the first request is about to be sent. */
  begun(): void
  /** False ends a sequence. */
  mayGoOn(): boolean
}

/** One request, or a sequence of them. */
export async function attempt(
  options: Attempting,
  running: Running<SendingKind>,
  progress: Progress,
): Promise<AttemptResult | Unsent> {
  const { db, clock, dependencies } = options
  const { job, kind, leased_at } = running
  const started_at = clock.now()
  // The node that made the last attempt died before it wrote the outcome.
  if (job.attempts > kind.attempts_max) {
    return { ok: false, status_code: null, error: 'interrupted', started_at, duration_ms: 0 }
  }
  const request = await kind.message({ db, dependencies, started_at }, job).catch(unread)
  if (request === null) return { unsent: 'nothing_left', seen: null }
  if (request === 'paused') return { unsent: 'stale_or_paused' }
  if ('unsent' in request) return request
  if ('seen' in request) return { unsent: 'nothing_left', seen: request.seen }
  if (clock.monotonic() - leased_at > stale_lease_ms) return { unsent: 'stale_or_paused' }
  if ('not_before' in request) return { unsent: 'later', ...request }
  if ('next' in request) return attemptEach(options, running, request, progress)
  progress.begun()
  const { ok, status, error, duration_ms } = await options.send(job, request)
  if (error === 'untried') return { unsent: 'untried' }
  return { ok, status_code: status, error, started_at, duration_ms: Math.round(duration_ms) }
}

function unread(error: unknown): Unread {
  return { unsent: 'unread', error }
}

/**
 * One request after the other until one is not accepted, for a bounded time: then others may have the permit, and the
 * lease does not end during an attempt. When the next one cannot be read, those accepted are settled: otherwise all of
 * them would be sent again.
 */
async function attemptEach(
  { clock, send, onError }: Attempting,
  { job, leased_at }: Running<SendingKind>,
  sequence: Sequence,
  progress: Progress,
): Promise<AttemptResult | Unsent> {
  const until = clock.monotonic() + sequence_ms_max
  const { results } = sequence
  do {
    const request = await sequence.next().catch(unread)
    if (request !== null && 'unsent' in request) {
      if (results.length === 0) return request
      onError(request.error)
      break
    }
    if (request === null) break
    // An email is alone in its sequence.
    if ('to' in request && clock.monotonic() - leased_at > stale_mail_ms) return { unsent: 'stale_or_paused' }
    if (results.length === 0) progress.begun()
    const started_at = clock.now()
    const { ok, status, error, duration_ms } = await send(job, request)
    if (error === 'untried') break
    results.push({ ok, status_code: status, error, started_at, duration_ms: Math.round(duration_ms) })
  } while (results.at(-1)!.ok && progress.mayGoOn() && clock.monotonic() < until)
  const last = results.at(-1)
  return last ? { ...last, sequence } : { unsent: 'untried' }
}
