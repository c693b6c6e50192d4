// What a refused call says: the API's code and message, and what the agent can do about it.

export interface Failure {
  code: string
  message: string
  next_step: string
  details?: unknown
  request_id?: string
  retry_after_seconds?: number
}

/** No answer of the API: the service could not be reached, or something in front of it answered. */
export const local_errors = {
  UNREACHABLE: 'The service did not answer.',
  UNEXPECTED_ANSWER: 'What answered was not the service.',
} as const

const tell_a_human = 'Stop and tell your operator; trying again will not help.'
const later = 'Wait for retry_after_seconds (a second if absent), then repeat the call.'

/** One row for every code that an operation behind a tool may answer; a test holds it to openapi.json. */
export const next_steps: Readonly<Record<string, string>> = {
  VALIDATION_FAILED: 'Correct the arguments that details.issues names, then call again.',
  INVALID_JSON: 'Send arguments that are valid JSON text, then call again.',
  UNAUTHORIZED: `The key is missing, wrong or revoked. ${tell_a_human}`,
  QUOTA_EXCEEDED: `The plan of this tenant allows no more. Remove what is not needed, or wait for its renewal; otherwise tell your operator.`,
  FORBIDDEN: `This key may not do that; the tools need an agent key. ${tell_a_human}`,
  NAMESPACE_FORBIDDEN: 'Use another namespace or key: names that begin with __ are reserved.',
  TENANT_PENDING_DELETION: `The tenant is being deleted. ${tell_a_human}`,
  KEY_NOT_FOUND: 'Nothing is stored there. Look with kv_list, or store a first value with kv_put.',
  DLQ_NOT_FOUND: 'Look for the right id with dlq_list; it may have been removed.',
  SCHEDULE_NOT_FOUND: 'Check the id that schedule_create answered.',
  CHECKPOINT_NOT_FOUND: 'Check the id that checkpoint_create answered.',
  INBOX_NOT_FOUND:
    'Check the id that inbox_create answered; inboxes are removed a day after they expire. Create a new one if needed.',
  REQUEST_TIMEOUT: 'The request arrived too slowly. Repeat the call.',
  VERSION_MISMATCH:
    'Somebody changed it. Read it with kv_get, decide anew, and repeat with the version that you read.',
  ALREADY_CLAIMED: 'Another agent works on it. Leave it, or take another with dlq_claim without id.',
  LOCK_NOT_HELD: 'Your lock ran out or belongs to another. Stop working on it; look with dlq_get.',
  INVALID_STATE: 'Its status does not allow this any more. Read it, and go by what it says.',
  CHECKPOINT_ALREADY_RESOLVED: 'It was decided before. Read it with checkpoint_get, and go by what it says.',
  IDEMPOTENCY_IN_PROGRESS:
    'The first call with this idempotency_key is still running. Repeat the same call in a second.',
  IDEMPOTENCY_KEY_REUSED:
    'This idempotency_key belongs to a call with other arguments. Choose a new one for a new call.',
  PAYLOAD_TOO_LARGE: 'Send less: store large data elsewhere and keep a reference to it.',
  UNSUPPORTED_MEDIA_TYPE: `Something on the way changed the request. ${tell_a_human}`,
  RATE_LIMITED: later,
  INTERNAL: 'Repeat the call once; if it fails again, tell your operator the request_id.',
  UNAVAILABLE: later,
  OUTCOME_UNKNOWN:
    'It may or may not have happened. Repeat with the same idempotency_key if you gave one; otherwise look first.',
  STORAGE_FULL: `The disk of the service is full; reads still work. ${tell_a_human}`,
  ROUTE_NOT_FOUND: `The service is older than this tool, or its address is wrong. ${tell_a_human}`,
  METHOD_NOT_ALLOWED: `The service is older than this tool, or its address is wrong. ${tell_a_human}`,
  UNREACHABLE:
    'It may or may not have happened. Wait a moment and look, or repeat with the same idempotency_key if you gave one. If it stays away, tell your operator.',
  UNEXPECTED_ANSWER: `The address of the service may be wrong, or a proxy is in the way. ${tell_a_human}`,
}

export function nextStep(code: string): string {
  return next_steps[code] ?? tell_a_human
}
