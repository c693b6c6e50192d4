// effects.once: one call that claims an effect, does it under its lease, and records what came of it.

import {
  EffectFailedError,
  EffectInFlightError,
  EffectRejectedError,
  EffectUnknownError,
  EffectUnrecordedError,
} from './effect-errors.ts'
import type { Effects } from './effects.ts'
import { hasCode, WaystationError } from './errors.ts'
import { EventWait } from './events.ts'
import { encodeJson, RawJson } from './json.ts'
import { caught, keepLock } from './lock.ts'
import type { Body } from './options.ts'
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
   * Recorded when `work` throws: `failed`, the default; `retry` when it certainly did not happen; `unknown`, the
   * default once its signal is aborted: then nothing is reported, and the lease runs out.
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

export async function doOnce<T, P>(
  effects: Effects,
  transport: Transport,
  given: OnceEffect<P>,
  work: (permit: Permit<P>) => T | Promise<T>,
): Promise<T> {
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
    this.#call = { ...this.#report, signal }
  }

  async run(): Promise<T> {
    for (;;) {
      const next = await this.#next()
      if (!('asked_at' in next)) return resultOf(next)
      const lease = await this.#confirmed(next)
      if (lease) return this.#do(lease)
    }
  }

  /** Returns a lease, or the effect that is over. */
  async #next(): Promise<Lease | Effect> {
    const { now, uuid } = this.transport.platform
    for (;;) {
      // Of this try alone: a repeat of the request gets the same lease, and a later call does not.
      const lease_token = await uuid()
      const asked_at = now()
      const claimed = await this.#refusable(() =>
        this.effects.claim({ ...this.#claim, lease_token }, this.#call),
      )
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
    const started = await this.#refusable(() =>
      this.effects.start(id, { lease_token, ...this.#call }).catch((error: unknown) => {
        if (hasCode(error, 'INVALID_STATE')) return null
        throw error
      }),
    )
    return started && { effect: started, lease_token, asked_at }
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
    signal?.throwIfAborted()
    const over = new AbortController()
    const onAbort = () => over.abort(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      const any = [{ subject: id }]
      const wait = new EventWait(this.transport, { ...this.#report, signal: over.signal, any })
      await wait.begun
      // It may have changed before the wait began.
      const { status } = await this.effects.get(id, this.#call)
      if (status === 'unknown') await wait
    } finally {
      signal?.removeEventListener('abort', onAbort)
      over.abort()
    }
  }

  /** Null when the lease, whose answer came late, is lost: nothing was begun, and it is free again. */
  async #confirmed(lease: Lease): Promise<Lease | null> {
    const { lease_token, asked_at } = lease
    const { id, lease_seconds } = lease.effect
    const { signal } = this.given
    const { now } = this.transport.platform
    const release = (error: string) =>
      caught(() => this.effects.fail(id, { lease_token, error, retry: true }, this.#report))
    if (signal?.aborted) {
      await release('It was stopped before it was begun.')
      throw signal.reason
    }
    const extended_at = now()
    if (extended_at - asked_at < lease_seconds * 1_000 * share) return lease
    const failed = await caught(() => this.effects.extend(id, { lease_token }, this.#call))
    if (!failed) return { ...lease, asked_at: extended_at }
    await release('Its lease came too late: it was not begun.')
    if (!hasCode(failed.error, 'EFFECT_NOT_HELD')) throw failed.error
    return null
  }

  async #do(lease: Lease): Promise<T> {
    const { effect, lease_token, asked_at } = lease
    const { id, lease_seconds, fence, payload_hash, effective_hash } = effect
    const { signal } = this.given
    const stop = new AbortController()
    const onAbort = () => stop.abort(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    const lock = keepLock(
      this.transport.platform,
      {
        ...{ lock_ms: lease_seconds * 1_000, asked_at, share },
        extend: (options) => this.effects.extend(id, { lease_token }, options),
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
    await lock.stop()
    signal?.removeEventListener('abort', onAbort)
    if (!thrown) return this.#succeed(lease, result!)
    await this.#fail(lease, thrown.error, stop.signal.aborted)
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
  async #fail({ effect: { id }, lease_token }: Lease, error: unknown, stopped: boolean): Promise<void> {
    const { on_throw = stopped ? 'unknown' : 'failed' } = this.given
    const means = typeof on_throw === 'function' ? on_throw(error) : on_throw
    if (means === 'unknown') return
    const report = { lease_token, error: textOf(error), retry: means === 'retry' }
    await caught(() => this.effects.fail(id, report, this.#report))
  }
}

function resultOf<T>(effect: Effect): T {
  if (effect.status === 'failed') throw new EffectFailedError(effect)
  return effect.result as T
}

/** A result that is not JSON, or too large. */
function isUnfit(error: unknown): boolean {
  if (!(error instanceof WaystationError)) return error instanceof TypeError || error instanceof RangeError
  return error.status === 400 || error.status === 413
}

/** As the service takes it: without NUL and halves of characters. */
function textOf(error: unknown): string {
  const text = String(error instanceof Error ? error.message || error.name : error)
  return [...text.replace(/\0|\p{Cs}/gu, '\ufffd')].slice(0, error_characters_max).join('')
}
