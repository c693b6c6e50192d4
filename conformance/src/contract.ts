// The parts of the contract that hold for the whole API: error codes with their statuses, plans, forms of ids and times.

/** The statuses of each code. One code has one status, VERSION_MISMATCH apart. */
export const errorStatuses: Record<string, number[]> = {
  VALIDATION_FAILED: [400],
  INVALID_JSON: [400],
  DELETE_REQUIRES_CONFIRM: [400],
  UNAUTHORIZED: [401],
  QUOTA_EXCEEDED: [402],
  FORBIDDEN: [403],
  TENANT_PENDING_DELETION: [403],
  NAMESPACE_FORBIDDEN: [403],
  ROUTE_NOT_FOUND: [404],
  AGENT_NOT_FOUND: [404],
  AUDIT_ENTRY_NOT_FOUND: [404],
  SCHEDULE_NOT_FOUND: [404],
  CHECKPOINT_NOT_FOUND: [404],
  APPROVAL_KEY_NOT_FOUND: [404],
  INBOX_NOT_FOUND: [404],
  KEY_NOT_FOUND: [404],
  DLQ_NOT_FOUND: [404],
  METHOD_NOT_ALLOWED: [405],
  TENANT_NAME_TAKEN: [409],
  AGENT_ID_TAKEN: [409],
  VERSION_MISMATCH: [409, 412],
  ALREADY_CLAIMED: [409],
  INVALID_STATE: [409],
  CHECKPOINT_ALREADY_RESOLVED: [409],
  LOCK_NOT_HELD: [409],
  IDEMPOTENCY_IN_PROGRESS: [409],
  INBOX_EXPIRED: [410],
  PAYLOAD_TOO_LARGE: [413],
  UNSUPPORTED_MEDIA_TYPE: [415],
  IDEMPOTENCY_KEY_REUSED: [422],
  RATE_LIMITED: [429],
  INTERNAL: [500],
  UNAVAILABLE: [503],
  OUTCOME_UNKNOWN: [503],
  STORAGE_FULL: [507],
}

/** Those of the table of errors in the first API document, which has a second name for the 412. */
export const documentedStatuses: Record<string, number[]> = {
  DELETE_REQUIRES_CONFIRM: [400],
  QUOTA_EXCEEDED: [402],
  NAMESPACE_FORBIDDEN: [403],
  KEY_NOT_FOUND: [404],
  DLQ_NOT_FOUND: [404],
  TENANT_NAME_TAKEN: [409],
  AGENT_ID_TAKEN: [409],
  VERSION_MISMATCH: [409, 412],
  PRECONDITION_FAILED: [412],
  ALREADY_CLAIMED: [409],
}

/** Under /api and /hook an error says `success: false` beside itself. */
export function marksErrors(path: string): boolean {
  return /^\/(api|hook)\//.test(path)
}

export const second = 1
export const minute = 60
export const hour = 3_600
export const day = 86_400

/** UTC, to the millisecond. */
export const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

export type Kind = 'admin' | 'agent' | 'approval'

export const kinds: readonly Kind[] = ['admin', 'agent', 'approval']

export const key_prefixes: Record<Kind, string> = {
  admin: 'svc_adm_',
  agent: 'svc_agt_',
  approval: 'svc_apr_',
}

/** A key: its prefix, 32 random characters and the 6 of a checksum. */
export function keyForm(kind: Kind): RegExp {
  return new RegExp(`^${key_prefixes[kind]}[0-9A-Za-z]{38}$`)
}

/** A key as it is shown after its creation. */
export function maskedForm(kind: Kind): RegExp {
  return new RegExp(`^${key_prefixes[kind]}\\*{4}[0-9A-Za-z]{4}$`)
}
