// Every error of the API is an ApiError; its code decides the status and the sentence that callers read.

import { type ErrorRow, shared_rows } from './error-rows.ts'

/** Every code and its row. A feature adds its own to this interface, beside its call of `declareErrors`. */
export interface ErrorRows extends SharedRows {}
type SharedRows = typeof shared_rows

export type ErrorCode = keyof ErrorRows

const rows: Record<string, ErrorRow> = { ...shared_rows }

/** Every row; those of a feature are there once its errors.ts was loaded. */
export const errors = rows as Readonly<Record<ErrorCode, ErrorRow>>

/** Adds the codes of a feature. Throws when a code is known already. */
export function declareErrors<const Rows extends Readonly<Record<string, ErrorRow>>>(added: Rows): Rows {
  for (const [code, row] of Object.entries(added)) {
    if (Object.hasOwn(rows, code)) throw new Error(`the error ${code} is declared twice`)
    rows[code] = row
  }
  return added
}

/** Every code that was declared, by status and then by name. */
export function errorCodes(): ErrorCode[] {
  const codes = Object.keys(errors) as ErrorCode[]
  return codes.toSorted((one, other) => errors[one].status - errors[other].status || (one < other ? -1 : 1))
}

/** Every status that this code may have. */
export function statusesOf(code: ErrorCode): number[] {
  const { status, precondition_status } = errors[code]
  return precondition_status === undefined ? [status] : [status, precondition_status]
}

/** One broken rule. `path` is a JSON pointer into the body, or `query.limit`, `header.If-Match`, `path.key`. */
export interface Issue {
  path: string
  message: string
}

/**
 * Why a request was refused although nothing is wrong with it. share: its tenant, or its address, has more under way than
 * its share. event_loop: the event loop is delayed. in_flight: too many requests are under way. memory: of bodies and
 * answers. heavy_reads: too many are under way. database: too much waits for a commit, a connection or a lock. disk_full.
 */
export const shed_reasons = [
  'share',
  'event_loop',
  'in_flight',
  'memory',
  'heavy_reads',
  'database',
  'disk_full',
] as const

export type ShedReason = (typeof shed_reasons)[number]

interface ErrorOptions {
  details?: Record<string, unknown>
  /** Whole seconds for the Retry-After header (RFC 9110 section 10.2.3). */
  retry_after_seconds?: number
  /** True when the connection must end, because the rest of the request is not wanted. */
  close?: boolean
  /** True when a condition in a header failed, which has a status of its own. */
  precondition?: boolean
  /** Set when the request was refused for lack of room. */
  shed?: ShedReason
  /** Instead of the sentence of the code's row, where more can be said. */
  message?: string
}

/** An answer other than success. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly status: number
  readonly details: Record<string, unknown> | undefined
  readonly retry_after_seconds: number | undefined
  readonly close: boolean
  readonly shed: ShedReason | undefined

  constructor(
    readonly code: ErrorCode,
    options: ErrorOptions = {},
  ) {
    if (!Object.hasOwn(errors, code)) throw new Error(`no feature declares the error ${code}`)
    const { message, status, precondition_status } = errors[code]
    super(options.message ?? message)
    this.status = options.precondition ? (precondition_status ?? status) : status
    this.details = options.details
    this.retry_after_seconds = options.retry_after_seconds
    this.close = options.close ?? false
    this.shed = options.shed
  }
}

/** 400 VALIDATION_FAILED with these issues. */
export function invalid(...issues: Issue[]): ApiError {
  return new ApiError('VALIDATION_FAILED', { details: { issues } })
}
