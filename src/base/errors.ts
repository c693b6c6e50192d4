// Every error code of the API: one row each, status and the sentence that callers read.

export const errors = {
  DELETE_REQUIRES_CONFIRM: {
    status: 400,
    message: 'Send {"confirm": "DELETE ALL DATA"} to delete this tenant.',
  },
  VALIDATION_FAILED: { status: 400, message: 'The request breaks a rule; details.issues lists each one.' },
  INVALID_JSON: { status: 400, message: 'The body is not valid JSON in UTF-8.' },
  UNAUTHORIZED: { status: 401, message: 'A valid key is required.' },
  QUOTA_EXCEEDED: { status: 402, message: 'The plan of this tenant allows no more of these.' },
  FORBIDDEN: { status: 403, message: 'This credential may not do that.' },
  NAMESPACE_FORBIDDEN: { status: 403, message: 'This namespace or key is reserved.' },
  TENANT_PENDING_DELETION: {
    status: 403,
    message: 'This tenant is scheduled for deletion; its admin key may restore it.',
  },
  ROUTE_NOT_FOUND: { status: 404, message: 'There is no such path.' },
  KEY_NOT_FOUND: { status: 404, message: 'There is no such key.' },
  AGENT_NOT_FOUND: { status: 404, message: 'There is no such agent.' },
  AUDIT_ENTRY_NOT_FOUND: { status: 404, message: 'There is no such audit entry.' },
  APPROVAL_KEY_NOT_FOUND: { status: 404, message: 'There is no such approval key.' },
  DLQ_NOT_FOUND: { status: 404, message: 'There is no such dead letter.' },
  SCHEDULE_NOT_FOUND: { status: 404, message: 'There is no such schedule.' },
  CHECKPOINT_NOT_FOUND: { status: 404, message: 'There is no such checkpoint.' },
  INBOX_NOT_FOUND: { status: 404, message: 'There is no such inbox.' },
  METHOD_NOT_ALLOWED: { status: 405, message: 'This path has no such method; see the Allow header.' },
  REQUEST_TIMEOUT: { status: 408, message: 'The request took too long to arrive.' },
  TENANT_NAME_TAKEN: { status: 409, message: 'A tenant of this name exists.' },
  AGENT_ID_TAKEN: { status: 409, message: 'An agent of this name exists.' },
  VERSION_MISMATCH: { status: 409, message: 'The stored version is another one.' },
  ALREADY_CLAIMED: { status: 409, message: 'Another agent holds the lock on this dead letter.' },
  LOCK_NOT_HELD: { status: 409, message: 'You do not hold the lock on this dead letter.' },
  CHECKPOINT_ALREADY_RESOLVED: { status: 409, message: 'This checkpoint has been decided already.' },
  INVALID_STATE: { status: 409, message: 'The current status does not allow this.' },
  IDEMPOTENCY_IN_PROGRESS: {
    status: 409,
    message: 'The first request with this Idempotency-Key is still running.',
  },
  INBOX_EXPIRED: { status: 410, message: 'The time of this inbox is over; it takes no more messages.' },
  PAYLOAD_TOO_LARGE: { status: 413, message: 'The body, or a value in it, is too large.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: 'Send JSON, without a Content-Encoding.' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, message: 'This Idempotency-Key was used with another body.' },
  RATE_LIMITED: { status: 429, message: 'Too many requests from this address; see Retry-After.' },
  INTERNAL: { status: 500, message: 'Something broke on our side; the request id finds it in the log.' },
  UNAVAILABLE: { status: 503, message: 'The service cannot answer right now; see Retry-After.' },
  OUTCOME_UNKNOWN: {
    status: 503,
    message:
      'The connection to the database was lost while committing; repeat with the same Idempotency-Key.',
  },
  STORAGE_FULL: { status: 507, message: 'The disk is full: reads go on, writes resume once there is room.' },
} as const satisfies Record<string, { status: number; message: string }>

export type ErrorCode = keyof typeof errors

/** One broken rule. `path` is a JSON pointer into the body, or `query.limit`, `header.If-Match`, `path.key`. */
export interface Issue {
  path: string
  message: string
}

interface ErrorOptions {
  details?: Record<string, unknown>
  /** Whole seconds for the Retry-After header (RFC 9110 section 10.2.3). */
  retry_after_seconds?: number
  /** True when the connection must end, because the rest of the request is not wanted. */
  close?: boolean
  /** Only for VERSION_MISMATCH, which the API contract fixes at 409 on put and 412 on If-Match. */
  status?: 412
}

/** An answer other than success. The code decides the status. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly status: number
  readonly details: Record<string, unknown> | undefined
  readonly retry_after_seconds: number | undefined
  readonly close: boolean

  constructor(
    readonly code: ErrorCode,
    options: ErrorOptions = {},
  ) {
    super(errors[code].message)
    this.status = options.status ?? errors[code].status
    this.details = options.details
    this.retry_after_seconds = options.retry_after_seconds
    this.close = options.close ?? false
  }
}

/** 400 VALIDATION_FAILED with these issues. */
export function invalid(...issues: Issue[]): ApiError {
  return new ApiError('VALIDATION_FAILED', { details: { issues } })
}
