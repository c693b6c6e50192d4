// The errors of a call: refused by the service, no answer, no answer in time.

import { KnownError } from './copies.ts'
import { type ErrorCode, type ExitClass, error_rows } from './types.ts'

/** Of an answer that was not the service's. */
const unexpected_answer = {
  next: 'Check the address of the service, and what stands between here and the service.',
  exit: 'unexpected',
} as const

/** The service, or something in front of it, refused the call. */
export class WaystationError extends KnownError {
  /** @internal */
  static override readonly waystation_class = 'WaystationError'
  override readonly name = 'WaystationError'

  constructor(
    /** UNEXPECTED_ANSWER: the answer was not the service's, such as a page of a proxy. */
    readonly code: ErrorCode | 'UNEXPECTED_ANSWER',
    message: string,
    readonly status: number,
    /** Details of the code, e.g. `current_version` of VERSION_MISMATCH; undefined where it has none. */
    readonly details: Readonly<Record<string, unknown>> | undefined,
    /** Finds the request in the service's log; null when the answer named none. */
    readonly request_id: string | null,
    /** The Retry-After header; undefined without one. */
    readonly retry_after_seconds: number | undefined,
  ) {
    super(`${code}: ${message}`)
  }

  /** The caller's next step, in a sentence or two. */
  get next(): string {
    return rowOf(this.code).next
  }

  /** The kind of failure, for scripts: the command line exits by it. */
  get exit(): ExitClass {
    return rowOf(this.code).exit
  }

  override toJSON(): Record<string, unknown> {
    return { ...super.toJSON(), next: this.next }
  }
}

/** A service that is newer than this package may have other codes. */
function rowOf(code: string): { next: string; exit: ExitClass } {
  return Object.hasOwn(error_rows, code) ? error_rows[code as ErrorCode] : unexpected_answer
}

/**
 * No answer: the connection was refused, lost or not possible. `cause` is what fetch threw, or the refusal of a repeat: the
 * first try may still have had its effect.
 */
export class WaystationNetworkError extends KnownError {
  /** @internal */
  static override readonly waystation_class = 'WaystationNetworkError'
  override readonly name = 'WaystationNetworkError'

  constructor(
    cause: unknown,
    /** False when the request certainly never reached the service. */
    readonly may_have_arrived: boolean,
    /** The address of the service, without user name, password and query. */
    readonly url: string,
  ) {
    super(`No answer from ${url}: it could not be reached, or the connection was lost before its answer.`, {
      cause,
    })
  }
}

/** No answer within the time given; the request may have had its effect. `cause` is the refusal of a repeat, if any. */
export class WaystationTimeoutError extends KnownError {
  /** @internal */
  static override readonly waystation_class = 'WaystationTimeoutError'
  override readonly name = 'WaystationTimeoutError'

  constructor(
    readonly waited_ms: number,
    message = `No answer within ${waited_ms} ms.`,
  ) {
    super(message)
  }
}

/** True for a refusal with this code: `catch (error) { if (!hasCode(error, 'KEY_NOT_FOUND')) throw error }`. */
export function hasCode<C extends WaystationError['code']>(
  error: unknown,
  code: C,
): error is WaystationError & { code: C } {
  return error instanceof WaystationError && error.code === code
}
