// The reasons for which effects.once did not do it.

import { KnownError } from './copies.ts'
import type { WaystationError } from './errors.ts'

/** The effect, as far as it is known. */
export interface About {
  /** Empty when there is none. */
  id: string
  type: string
  key: string
}

/** Of effects.once: `work` was not called, or what came of it could not be recorded. */
export class EffectError extends KnownError {
  /** @internal */
  static override readonly waystation_class: string = 'EffectError'
  override readonly name: string = 'EffectError'
  /** Null when there is none: no use of the approval was left for it. */
  readonly effect_id: string | null
  readonly type: string
  readonly key: string

  constructor({ id, type, key }: About, happened: string, options?: ErrorOptions) {
    super(`The effect ${type} ${JSON.stringify(key)} ${happened}`, options)
    this.effect_id = id || null
    this.type = type
    this.key = key
  }
}

/** Its approval was refused, for ever. */
export class EffectRejectedError extends EffectError {
  /** @internal */
  static override readonly waystation_class = 'EffectRejectedError'
  override readonly name = 'EffectRejectedError'
  /** How: by a person, by the end of its time, by a cancellation, or no use of the approval was left. */
  readonly status: 'rejected' | 'expired' | 'cancelled' | 'used_up'
  readonly checkpoint_id: string | null

  constructor(about: About, { details }: WaystationError, options?: ErrorOptions) {
    super(about, `was not approved (${details?.status}).`, options)
    this.status = details?.status as EffectRejectedError['status']
    this.checkpoint_id = (details?.checkpoint_id as string | undefined) ?? null
  }
}

/** Somebody has its lease. */
export class EffectInFlightError extends EffectError {
  /** @internal */
  static override readonly waystation_class = 'EffectInFlightError'
  override readonly name = 'EffectInFlightError'
  readonly agent_id: string
  /** RFC 3339. */
  readonly lease_until: string
  readonly retry_after_seconds: number | undefined

  constructor(about: About, { details, retry_after_seconds }: WaystationError, options?: ErrorOptions) {
    super(about, `is being done by ${details?.agent_id} until ${details?.lease_until}.`, options)
    this.agent_id = details?.agent_id as string
    this.lease_until = details?.lease_until as string
    this.retry_after_seconds = retry_after_seconds
  }
}

/** A lease ran out without a report: a person has to look whether it has happened. */
export class EffectUnknownError extends EffectError {
  /** @internal */
  static override readonly waystation_class = 'EffectUnknownError'
  override readonly name = 'EffectUnknownError'
  /** Asks the person; null with `on_unknown: 'hold'`. */
  readonly checkpoint_id: string | null

  constructor(about: About, { details }: WaystationError, options?: ErrorOptions) {
    super(about, 'may or may not have happened: nobody has reported it.', options)
    this.checkpoint_id = (details?.checkpoint_id as string | undefined) ?? null
  }
}

/** It was recorded as failed, for ever. */
export class EffectFailedError extends EffectError {
  /** @internal */
  static override readonly waystation_class = 'EffectFailedError'
  override readonly name = 'EffectFailedError'
  /** As it was reported, or as a person has said; null without a word. */
  readonly reason: string | null

  constructor(about: About & { error: string | null }) {
    super(about, `has failed${about.error === null ? '' : `: ${about.error}`}`)
    this.reason = about.error
  }
}

/** `work` has ended, and its result was not recorded. `cause` is the error of the report. */
export class EffectUnrecordedError extends EffectError {
  /** @internal */
  static override readonly waystation_class = 'EffectUnrecordedError'
  override readonly name = 'EffectUnrecordedError'

  constructor(
    about: About,
    /** As `work` returned it. */
    readonly result: unknown,
    /** True when it was recorded that it has happened: the result alone is missing. */
    readonly has_succeeded: boolean,
    options: ErrorOptions,
  ) {
    super(about, 'was done, and its result was not recorded.', options)
  }

  /** Instead of a result that is not JSON, which may be why it was not recorded, it has the reason. */
  override toJSON(): Record<string, unknown> {
    return { ...super.toJSON(), result: asJson(this.result) }
  }
}

function asJson(value: unknown): unknown {
  try {
    JSON.stringify(value)
    return value
  } catch (error) {
    return String(error)
  }
}

/**
 * Thrown by `work` of effects.once when the effect surely did not happen, such as after the target has refused it: recorded
 * as failed for good or, with `retry`, free to be started again. Any other error leaves it unknown.
 */
export class NotDone extends KnownError {
  /** @internal */
  static override readonly waystation_class = 'NotDone'
  override readonly name = 'NotDone'
  readonly retry: boolean

  constructor(message: string, { retry = false, ...options }: ErrorOptions & { retry?: boolean } = {}) {
    super(message, options)
    this.retry = retry
  }
}
