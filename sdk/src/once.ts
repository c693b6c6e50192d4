// effects.once: one call that claims an effect, does it under its lease, and records what came of it.

import { onAbort, reasonOf, throwIfAborted } from './abort.ts'
import {
  EffectFailedError,
  EffectInFlightError,
  EffectRejectedError,
  EffectUnknownError,
  EffectUnrecordedError,
  NotDone,
} from './effect-errors.ts'
import type { Effects } from './effects.ts'
import { hasCode, WaystationError, WaystationNetworkError, WaystationTimeoutError } from './errors.ts'
import { EventWait } from './events.ts'
import { checkRuns } from './functions.ts'
import { encodeJson, RawJson } from './json.ts'
import { caught, keepLock } from './lock.ts'
import type { Body } from './options.ts'
import { isFailedTry, isOutcomeUnknown, refusalOf } from './outcome.ts'
import { type CallOptions, retries_max, type Transport } from './transport.ts'
import type { ClaimedEffect, Effect } from './types.ts'

/** The meaning of an error of `work`: it did not happen; it did not, and may be started again; nobody knows. */
export type ThrownMeans = 'failed' | 'retry' | 'unknown'

export interface OnceEffect<P = unknown>
  extends Omit<Body<'claimEffect'>, 'lease_token'>,
    Omit<CallOptions, 'request_id'> {
  /** Bound by its exact JSON: give an object whose members are always in the same order, and nothing that changes. */
  payload: P
  /** While another has the lease: `wait`, the default, or throw EffectInFlightError. */
  if_in_flight?: 'wait' | 'throw' | undefined
  /** While nobody knows whether it has happened: throw EffectUnknownError, the default, or `wait` for a person. */
  if_unknown?: 'wait' | 'throw' | undefined
  /** Called with the approval that it waits for, once: `approval_url` is for the person. */
  on_waiting?: ((checkpoint: NonNullable<ClaimedEffect['checkpoint']>) => unknown) | undefined
  /**
   * The meaning of an error of `work` that is not a NotDone: `unknown`, the default: it may have happened, and the lease is
   * given up without a report, so that `on_unknown` decides; `failed`, for good; `retry`: it did not happen.
   */
  on_throw?: ThrownMeans | ((error: unknown) => ThrownMeans) | undefined
}

export interface Permit<P = unknown> {
  /** The id of the effect, the same however often it is started: an idempotency key for the target. */
  id: string
  /** Says what to do: your payload, or the one that an approver has put in its place. */
  payload: P
  /** Of these bytes: SHA-256 in hex. */
  payload_hash: string
  /** Grows with every lease of the effect: the target may refuse a lower one. */
  fence: number
  /** Aborted when the lease was lost, and with the `signal` of the call: stop then. */
  signal: AbortSignal
  effect: Effect
}

interface Lease {
  effect: ClaimedEffect
  lease_token: string
  asked_at: number
}

const share = 1 / 3
const error_characters_max = 4_096
/** Extensions of a lease whose answer was late, before it is released. */
const extensions_max = 3
/** Leases in a row that came too late; each pause before the next is twice as long. */
const late_max = 6
const late_ms_first = 250
/** Left of a lease that is given up without a report. */
const given_up_seconds = 1

export async function doOnce<T, P>(
  effects: Effects,
  transport: Transport,
  given: OnceEffect<P>,
  work: (permit: Permit<P>) => T | Promise<T>,
): Promise<T> {
  checkRuns('work', work)
  const { payload } = given
  if (payload === undefined) throw new TypeError('payload must be a JSON value')
  // As it is now: its owner may change it while an approval is waited for.
  const claim = { ...given, payload: new RawJson(encodeJson(payload)) }
  return new Once<T, P>(effects, transport, claim as OnceEffect<never>, work).run()
}

class Once<T, P> {
  readonly #claim: Body<'claimEffect'>
  readonly #call: CallOptions
  /** A report is sent although the caller wants no more. */
  readonly #report: CallOptions
  /** The same for what only frees a lease early: one try. */
  readonly #tidy: CallOptions
  #shown: string | null = null

  constructor(
    private readonly effects: Effects,
    private readonly transport: Transport,
    private readonly given: OnceEffect<never>,
    private readonly work: (permit: Permit<P>) => T | Promise<T>,
  ) {
    const { signal, timeout_ms, retries = retries_max, ...rest } = given
    const { if_in_flight: _, if_unknown: __, on_waiting: ___, on_throw: ____, ...claim } = rest
    this.#claim = claim
    this.#report = { timeout_ms, retries }
    this.#tidy = { timeout_ms, retries: 0 }
    this.#call = { ...this.#report, signal }
  }

  async run(): Promise<T> {
    for (let late = 0; ; ) {
      const next = await this.#next()
      if (!('asked_at' in next)) return resultOf(next)
      const lease = await this.#confirmed(next)
      if (lease) return this.#do(lease)
      late += 1
      if (late === late_max) throw tooLate(this.#leaseMs(next))
      await this.transport.platform.sleep(late_ms_first * 2 ** late, this.given.signal)
    }
  }

  /** Returns a lease, or the effect that is over. */
  async #next(): Promise<Lease | Effect> {
    const { now, uuid } = this.transport.platform
    for (;;) {
      // Of this try alone: a repeat of the request gets the same lease, and a later call does not.
      const lease_token = await uuid()
      const asked_at = now()
      const claim = (options: CallOptions) => this.effects.claim({ ...this.#claim, lease_token }, options)
      const claimed = await this.#refusable(() => this.#leased(lease_token, claim))
      if (claimed === null) continue
      if (claimed.status === 'running') return { effect: claimed, lease_token, asked_at }
      if (claimed.status === 'awaiting_approval') await this.#approval(claimed)
      else if (claimed.status !== 'approved') return claimed
      else {
        const lease = await this.#start(claimed.id, lease_token)
        if (lease) return lease
      }
    }
  }

  async #approval({ id, checkpoint }: ClaimedEffect): Promise<void> {
    if (checkpoint && this.#shown !== checkpoint.id) {
      this.#shown = checkpoint.id
      await this.given.on_waiting?.(checkpoint)
    }
    await this.effects.waitFor(id, this.#call)
  }

  /** Null when it has changed meanwhile. */
  async #start(id: string, lease_token: string): Promise<Lease | null> {
    const asked_at = this.transport.platform.now()
    const { lease_seconds } = this.given
    const start = (options: CallOptions) =>
      this.effects.start(id, { lease_token, ...(lease_seconds && { lease_seconds }), ...options })
    const started = await this.#refusable(() =>
      this.#leased(lease_token, start, id).catch((error: unknown) => {
        if (hasCode(error, 'INVALID_STATE')) return null
        throw error
      }),
    )
    return started && { effect: started, lease_token, asked_at }
  }

  /**
   * Asks for a lease. One that the service gave, and whose answer never came, is released: nothing was begun. Null when it had
   * run out before that: it can be asked for again. `known_id`: of the effect, where it is known before.
   */
  async #leased(
    lease_token: string,
    ask: (options: CallOptions) => Promise<ClaimedEffect>,
    known_id?: string,
  ): Promise<ClaimedEffect | null> {
    const { signal } = this.given
    throwIfAborted(signal)
    try {
      return await ask(this.#call)
    } catch (thrown) {
      const error = telling(thrown)
      if (hasCode(error, 'EFFECT_UNKNOWN')) {
        // Of the token of this try alone, so the lease of another is left as it is.
        if (await caught(() => this.#undo(error.details?.effect_id as string, lease_token))) throw error
        return null
      }
      if (!signal?.aborted && !mayBeLeased(error)) throw error
      await caught(async () => {
        const id = await this.#leasedId(ask, known_id)
        if (id !== undefined) await this.#undo(id, lease_token)
      })
      throw error
    }
  }

  /** Of the effect that may be leased; undefined when it surely is not. */
  async #leasedId(
    ask: (options: CallOptions) => Promise<ClaimedEffect>,
    known_id: string | undefined,
  ): Promise<string | undefined> {
    try {
      // The repeat has the same token: it answers that very lease.
      const { id, lease_token } = await ask(this.#tidy)
      return lease_token === null ? undefined : id
    } catch (error) {
      // A freeze refuses it, and neither reads nor the release.
      if (known_id !== undefined || !(error instanceof WaystationError)) return known_id
      const { type, key } = this.given
      const { items } = await this.effects.list({ type, key, ...this.#tidy }).page()
      return items[0]?.id
    }
  }

  #undo(id: string, lease_token: string): Promise<unknown> {
    const report = { lease_token, error: 'It was stopped before it was begun.', retry: true }
    return this.effects.fail(id, report, this.#tidy)
  }

  /** Null when there is another answer by now. */
  async #refusable<A>(ask: () => Promise<A>): Promise<A | null> {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof WaystationError)) throw error
      const { type, key } = this.given
      const id = (error.details?.effect_id as string | undefined) ?? ''
      const about = { id, type, key }
      const { if_in_flight = 'wait', if_unknown = 'throw' } = this.given
      switch (error.code) {
        case 'EFFECT_REJECTED':
          throw new EffectRejectedError(about, error, { cause: error })
        case 'EFFECT_IN_FLIGHT':
          if (if_in_flight === 'throw') throw new EffectInFlightError(about, error, { cause: error })
          await this.effects.waitFor(id, this.#call)
          return null
        case 'EFFECT_UNKNOWN':
          if (if_unknown === 'throw') throw new EffectUnknownError(about, error, { cause: error })
          await this.#known(id)
          return null
        default:
          throw error
      }
    }
  }

  /** Waits until somebody has said what became of it. */
  async #known(id: string): Promise<void> {
    const { signal } = this.given
    throwIfAborted(signal)
    const over = new AbortController()
    const stopListening = onAbort(signal, () => over.abort(signal?.reason))
    try {
      const any = [{ subject: id }]
      const wait = new EventWait(this.transport, { ...this.#report, signal: over.signal, any })
      await wait.begun
      // It may have changed before the wait began.
      const { status } = await this.effects.get(id, this.#call)
      if (status === 'unknown') await wait
    } finally {
      stopListening()
      over.abort()
    }
  }

  /** Null when the lease, whose answer came late, is lost: nothing was begun, and it is free again. */
  async #confirmed(given: Lease): Promise<Lease | null> {
    const lease_ms = this.#leaseMs(given)
    const { signal } = this.given
    const { now } = this.transport.platform
    let lease = given
    for (let extensions = 0; ; extensions += 1) {
      if (signal?.aborted) {
        await this.#release(lease, 'It was stopped before it was begun.')
        throw reasonOf(signal)
      }
      const asked_at = now()
      const since_ms = asked_at - lease.asked_at
      if (since_ms < lease_ms * share) return lease
      // After its whole time another may have it, whatever an extension has answered.
      const failed =
        since_ms >= lease_ms || extensions === extensions_max
          ? late
          : await caught(() => this.#extend(lease, this.#call))
      if (failed) {
        await this.#release(lease, 'Its lease came too late: it was not begun.')
        if (failed === late || hasCode(refusalOf(failed.error), 'EFFECT_NOT_HELD')) return null
        throw failed.error
      }
      lease = { ...lease, asked_at }
    }
  }

  /** As the service gave it: a policy may have cut it. */
  #leaseMs({ effect }: Lease): number {
    return effect.lease_seconds * 1_000
  }

  #extend(lease: Lease, options: CallOptions, lease_seconds = this.#leaseMs(lease) / 1_000) {
    return this.effects.extend(lease.effect.id, { lease_token: lease.lease_token, lease_seconds }, options)
  }

  #release({ effect: { id }, lease_token }: Lease, error: string) {
    return caught(() => this.effects.fail(id, { lease_token, error, retry: true }, this.#report))
  }

  async #do(lease: Lease): Promise<T> {
    const { effect, asked_at } = lease
    const { id, fence, payload_hash, effective_hash } = effect
    const { signal } = this.given
    const stop = new AbortController()
    // It may have been aborted since the lease was confirmed.
    if (signal?.aborted) stop.abort(signal.reason)
    const stopListening = onAbort(signal, () => stop.abort(signal?.reason))
    const stopKeeping = keepLock(
      this.transport.platform,
      {
        ...{ lock_ms: this.#leaseMs(lease), asked_at, share },
        extend: (options) => this.#extend(lease, options),
      },
      { error: () => {}, lost: (reason) => stop.abort(reason) },
    )
    let result: T
    const thrown = await caught(async () => {
      result = await this.work({
        ...{ id, fence, effect, signal: stop.signal, payload_hash: effective_hash ?? payload_hash },
        payload: (effective_hash === null ? effect.payload : effect.effective_payload) as P,
      })
    })
    await stopKeeping()
    stopListening()
    if (!thrown) return this.#succeed(lease, result!)
    await this.#threw(lease, thrown.error)
    throw thrown.error
  }

  /** Also when the lease was lost: it has happened. */
  async #succeed({ effect, lease_token }: Lease, result: T): Promise<T> {
    const { id } = effect
    try {
      return (await this.effects.succeed(id, { lease_token, result }, this.#report)).result as T
    } catch (error) {
      // That it happened is worth more than its result.
      const failed = isUnfit(error)
        ? await caught(() => this.effects.succeed(id, { lease_token }, this.#report))
        : { error }
      throw new EffectUnrecordedError(effect, result, failed === null, { cause: error })
    }
  }

  /** Of a report that gets lost nobody knows: the lease runs out. */
  async #threw(lease: Lease, error: unknown): Promise<void> {
    const { effect, lease_token } = lease
    const means = meaningOf(error, this.given.on_throw)
    if (means === 'unknown') {
      // Nobody works under it any more, so that what follows on its end need not wait.
      if (this.#leaseMs(lease) > given_up_seconds * 1_000)
        await caught(() => this.#extend(lease, this.#tidy, given_up_seconds))
      return
    }
    const report = { lease_token, error: textOf(error), retry: means === 'retry' }
    await caught(() => this.effects.fail(effect.id, report, this.#report))
  }
}

/** The failure of a lease that is not extended any more. */
const late = { error: null }

function tooLate(lease_ms: number): WaystationTimeoutError {
  return new WaystationTimeoutError(
    lease_ms,
    `Every lease of ${lease_ms} ms came too late to be used, and nothing was begun: ask for a longer one with lease_seconds.`,
  )
}

/** Refusals that say what has become of the effect. */
const telling_codes: readonly string[] = [
  'EFFECT_IN_FLIGHT',
  'EFFECT_REJECTED',
  'EFFECT_UNKNOWN',
  'INVALID_STATE',
]

/** A repeat under the token of a lease answers that lease; such a refusal of it says that there is none any more. */
function telling(error: unknown): unknown {
  const refusal = refusalOf(error)
  return refusal && telling_codes.includes(refusal.code) ? refusal : error
}

/** True when the service may have given a lease without the caller learning of it. */
function mayBeLeased(error: unknown): boolean {
  if (error instanceof WaystationError)
    return error.status < 400 || error.status === 500 || isOutcomeUnknown(error)
  return !(error instanceof WaystationNetworkError) || error.may_have_arrived
}

function meaningOf(error: unknown, on_throw: OnceEffect['on_throw'] = 'unknown'): ThrownMeans {
  if (error instanceof NotDone) return error.retry ? 'retry' : 'failed'
  try {
    const means = typeof on_throw === 'function' ? on_throw(error) : on_throw
    return means === 'failed' || means === 'retry' ? means : 'unknown'
  } catch {
    return 'unknown'
  }
}

function resultOf<T>(effect: Effect): T {
  const { status, result } = effect
  if (status === 'succeeded') return result as T
  if (status === 'failed') throw new EffectFailedError(effect)
  const message = `The effect is ${status}, which this version does not know.`
  throw new WaystationError('UNEXPECTED_ANSWER', message, 200, undefined, null, undefined)
}

/** A result that is not JSON, whatever its encoding has thrown, or too large. */
function isUnfit(error: unknown): boolean {
  const refusal = refusalOf(error)
  if (!refusal) return !isFailedTry(error)
  return refusal.status === 400 || refusal.status === 413
}

/** As the service takes it: not empty, without NUL and halves of characters. */
function textOf(error: unknown): string {
  let text = ''
  try {
    text = String(error instanceof Error ? error.message || error.name : error)
  } catch {
    // It has no form as a text.
  }
  const fit = [...text.replace(/\0|\p{Cs}/gu, '\ufffd')].slice(0, error_characters_max).join('')
  return fit || 'It threw an error without a text.'
}
