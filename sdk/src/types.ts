// Made from openapi.json by scripts/sdk-types.ts: do not edit.

/** Why a request was refused. */
export type ErrorCode =
  | 'DELETE_REQUIRES_CONFIRM'
  | 'INVALID_JSON'
  | 'VALIDATION_FAILED'
  | 'UNAUTHORIZED'
  | 'QUOTA_EXCEEDED'
  | 'AGENT_PAUSED'
  | 'AGENT_READ_ONLY'
  | 'EFFECT_APPROVAL_REQUIRED'
  | 'EFFECT_REJECTED'
  | 'FORBIDDEN'
  | 'NAMESPACE_FORBIDDEN'
  | 'NOT_AN_APPROVER'
  | 'TENANT_FROZEN'
  | 'TENANT_PENDING_DELETION'
  | 'AGENT_NOT_FOUND'
  | 'APPROVAL_KEY_NOT_FOUND'
  | 'AUDIT_ENTRY_NOT_FOUND'
  | 'CHECKPOINT_NOT_FOUND'
  | 'DLQ_NOT_FOUND'
  | 'EFFECT_NOT_FOUND'
  | 'EFFECT_POLICY_NOT_FOUND'
  | 'INBOX_NOT_FOUND'
  | 'KEY_NOT_FOUND'
  | 'LINK_NOT_FOUND'
  | 'MESSAGE_NOT_FOUND'
  | 'OPERATION_NOT_FOUND'
  | 'ROUTE_NOT_FOUND'
  | 'SCHEDULE_NOT_FOUND'
  | 'SEAL_EVENT_NOT_FOUND'
  | 'SEAL_SIZE_UNKNOWN'
  | 'SUBSCRIPTION_NOT_FOUND'
  | 'WORKFLOW_NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'REQUEST_TIMEOUT'
  | 'AGENT_ID_TAKEN'
  | 'ALREADY_CLAIMED'
  | 'ALREADY_VOTED'
  | 'CHECKPOINT_ALREADY_RESOLVED'
  | 'CLOCK_ADVANCING'
  | 'EFFECT_APPROVERS_GONE'
  | 'EFFECT_IN_FLIGHT'
  | 'EFFECT_NOT_HELD'
  | 'EFFECT_UNKNOWN'
  | 'IDEMPOTENCY_IN_PROGRESS'
  | 'INVALID_STATE'
  | 'LOCK_NOT_HELD'
  | 'TENANT_NAME_TAKEN'
  | 'TOO_MANY_COMMENTS'
  | 'TOO_MANY_NAMESPACES'
  | 'TOO_MANY_OPERATIONS'
  | 'VERSION_MISMATCH'
  | 'VOTE_DIFFERS'
  | 'INBOX_EXPIRED'
  | 'PAYLOAD_TOO_LARGE'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'ANSWER_INVALID'
  | 'EFFECT_KEY_REUSED'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'NOT_EDITABLE'
  | 'RATE_LIMITED'
  | 'INTERNAL'
  | 'SEAL_BROKEN'
  | 'OUTCOME_UNKNOWN'
  | 'QUARANTINED'
  | 'UNAVAILABLE'
  | 'STORAGE_FULL'

/** A tenant with its admin key and signing secret, as only its creation answers them. */
export interface CreatedTenant {
  tenant_id: string
  name: string
  plan: string
  quota: Quota
  owner_email: string
  status: 'active' | 'pending_deletion'
  purge_at: string | null
  /** When it was created. */
  created_at: string
  frozen_at: string | null
  frozen_reason: string | null
  resumed_at: string | null
  /** In the answer of GET while the service is a restored copy that its operator has not released: nothing due is sent, and no effect starts. */
  quarantined_since?: string
  /** Shown in this answer only. */
  admin_key: string
  /** Standard Webhooks secret that signs callbacks. Shown in this answer only. */
  signing_secret: string
}

/** The quotas of a tenant, each with its use. */
export interface Quota {
  agents: Usage
  kv_keys: Usage
  dlq_items: Usage
  active_schedules: Usage
  inboxes: Usage
  effects: Usage
  effect_policies: Usage
  subscriptions: Usage
  api_calls_per_month: Usage
  storage_bytes: Usage
}

/** How much of a quota is used. */
export interface Usage {
  used: number
  limit: number | null
}

/** The tenant that is scheduled for deletion. */
export interface DeletedTenant {
  tenant_id: string
  status: 'active' | 'pending_deletion'
  purge_at: string | null
}

/** An account: its plan, its use of its quotas, and its state. */
export interface Tenant {
  tenant_id: string
  name: string
  plan: string
  quota: Quota
  owner_email: string
  status: 'active' | 'pending_deletion'
  purge_at: string | null
  /** When it was created. */
  created_at: string
  frozen_at: string | null
  frozen_reason: string | null
  resumed_at: string | null
  /** In the answer of GET while the service is a restored copy that its operator has not released: nothing due is sent, and no effect starts. */
  quarantined_since?: string
}

/** A tenant with its new signing secret. */
export interface TenantWithSecret {
  tenant_id: string
  name: string
  plan: string
  quota: Quota
  owner_email: string
  status: 'active' | 'pending_deletion'
  purge_at: string | null
  /** When it was created. */
  created_at: string
  frozen_at: string | null
  frozen_reason: string | null
  resumed_at: string | null
  /** In the answer of GET while the service is a restored copy that its operator has not released: nothing due is sent, and no effect starts. */
  quarantined_since?: string
  /** Standard Webhooks secret that signs callbacks. Shown in this answer only. */
  signing_secret: string
}

/** A tenant with its new admin key, and when the key before ends. */
export interface RotatedTenant {
  tenant_id: string
  name: string
  plan: string
  quota: Quota
  owner_email: string
  status: 'active' | 'pending_deletion'
  purge_at: string | null
  /** When it was created. */
  created_at: string
  frozen_at: string | null
  frozen_reason: string | null
  resumed_at: string | null
  /** In the answer of GET while the service is a restored copy that its operator has not released: nothing due is sent, and no effect starts. */
  quarantined_since?: string
  /** Shown in this answer only. */
  admin_key: string
  previous_key_expires_at: string | null
}

/** The calls of one hour or day. */
export interface UsageStep {
  /** When the step begins. */
  start_at: string
  /** Calls with a key of the tenant. */
  calls: number
  /** Those that were answered 4xx or 5xx. */
  failures: number
  features: Array<{
    feature:
      | 'tenants'
      | 'agents'
      | 'approval_keys'
      | 'kv'
      | 'audit'
      | 'dlq'
      | 'schedules'
      | 'checkpoints'
      | 'inboxes'
      | 'rate_limits'
      | 'effects'
      | 'workflows'
      | 'subscriptions'
      | 'seal'
      | 'events'
    /** Calls with a key of the tenant. */
    calls: number
    /** Those that were answered 4xx or 5xx. */
    failures: number
  }>
}

/** An agent with its key in full, as only its creation answers it. */
export interface CreatedAgent {
  agent_id: string
  /** The same as agent_id. */
  name: string
  description: string | null
  callback_base_url: string | null
  /** In full, in this answer only. */
  api_key: string
  /** When it was created. */
  created_at: string
  /** full, read (it changes nothing) or propose (each of its effects waits for an approval). */
  mode: 'full' | 'read' | 'propose'
  paused_at: string | null
  paused_reason: string | null
}

/** A program that calls the service with a key of its own. */
export interface Agent {
  agent_id: string
  /** The same as agent_id. */
  name: string
  description: string | null
  callback_base_url: string | null
  api_key: string | null
  /** When it was created. */
  created_at: string
  /** full, read (it changes nothing) or propose (each of its effects waits for an approval). */
  mode: 'full' | 'read' | 'propose'
  paused_at: string | null
  paused_reason: string | null
}

/** An agent with its new key, and when the key before ends. */
export interface RotatedAgent {
  agent_id: string
  /** The same as agent_id. */
  name: string
  description: string | null
  callback_base_url: string | null
  /** In full, in this answer only. */
  api_key: string
  /** When it was created. */
  created_at: string
  /** full, read (it changes nothing) or propose (each of its effects waits for an approval). */
  mode: 'full' | 'read' | 'propose'
  paused_at: string | null
  paused_reason: string | null
  previous_key_expires_at: string | null
}

/** An approval key in full, as only its creation answers it. */
export interface CreatedApprovalKey {
  approval_key_id: string
  checkpoint_id: string | null
  label: string | null
  /** In full at creation only, afterwards masked: svc_apr_****x7Qa. */
  approval_key: string
  /** When it was created. */
  created_at: string
  expires_at: string | null
  last_used_at: string | null
  approval_url: string | null
}

/** A key with which a person decides checkpoints, masked. */
export interface ApprovalKey {
  approval_key_id: string
  checkpoint_id: string | null
  label: string | null
  /** In full at creation only, afterwards masked: svc_apr_****x7Qa. */
  approval_key: string
  /** When it was created. */
  created_at: string
  expires_at: string | null
  last_used_at: string | null
}

/** A value under a key, with its version. */
export interface Entry {
  namespace: string
  key: string
  /** The exact text that was put. */
  value: unknown
  /** Starts at 1, rises by 1, never repeats for a key. */
  version: number
  expires_at: string | null
  /** When this version was written. */
  updated_at: string
}

/** The version that a put wrote. */
export interface PutResult {
  namespace: string
  key: string
  /** Starts at 1, rises by 1, never repeats for a key. */
  version: number
  expires_at: string | null
}

/** A namespace of keys and its settings. */
export interface Namespace {
  namespace: string
  agent_id: string | null
  /** True when each change of a key in it leaves an event. */
  events: boolean
}

/** A key as lists show it: without its value. */
export interface ListedKey {
  key: string
  /** Starts at 1, rises by 1, never repeats for a key. */
  version: number
  expires_at: string | null
  /** When this version was written. */
  updated_at: string
}

/** An entry of the audit log, which never changes. */
export interface AuditEntry {
  id: string
  /** Starts at 1, rises by 1, without gaps, per tenant. */
  seq: number
  action: string
  workflow_id: string | null
  actor: string
  /** The exact text that was sent, or null. */
  metadata: unknown
  agent_id: string | null
  request_id: string
  /** Server time; never earlier than that of the previous entry. */
  created_at: string
}

/** A text that a field has in the log. */
export interface AuditSuggestion {
  value: string
}

/** A redrive or discard of many dead letters, with how far it is. */
export interface DeadLetterOperation {
  id: string
  verb: 'redrive' | 'discard'
  status: 'running' | 'succeeded' | 'cancelled'
  /** The dead letters that an operation is for. */
  filter: {
    status: 'failed' | 'claimed' | 'resolved' | 'archived' | null
    source: 'agent' | 'schedule' | 'checkpoint' | null
    source_id: string | null
    cause: string | null
    workflow_id: string | null
    from: string | null
    to: string | null
    ids_count: number | null
  }
  /** Dead letters that matched when it began. */
  matched: number
  done: number
  /** Those that could not be sent again. */
  failed: number
  /** Those that were claimed, or no longer matched, when their turn came. */
  skipped: number
  max: number
  per_second: number | null
  /** True when further dead letters may match: `max` was reached, or the search ended early. */
  more: boolean
  looked_until: string | null
  waiting_for: string | null
  /** When it began. */
  created_at: string
  /** When it last changed. */
  updated_at: string
  finished_at: string | null
}

/** Work that failed for good and is kept until somebody resolves it. */
export interface DeadLetter {
  id: string
  status: 'failed' | 'claimed' | 'resolved' | 'archived'
  error: string
  /** The first line of the error with ids and numbers masked: failures with the same cause have the same text. */
  cause: string
  workflow_id: string | null
  source: 'agent' | 'schedule' | 'checkpoint'
  source_id: string | null
  agent_id: string | null
  lock_seconds: number
  locked_by: string | null
  locked_until: string | null
  /** The number of claims. */
  claims: number
  /** When it was captured. */
  created_at: string
  /** When it last changed. */
  updated_at: string
  resolved_at: string | null
  redriven_as: string | null
  /** The exact text that was sent. */
  payload: unknown
}

/** A dead letter as lists show it: without its payload. */
export interface ListedDeadLetter {
  id: string
  status: 'failed' | 'claimed' | 'resolved' | 'archived'
  error: string
  /** The first line of the error with ids and numbers masked: failures with the same cause have the same text. */
  cause: string
  workflow_id: string | null
  source: 'agent' | 'schedule' | 'checkpoint'
  source_id: string | null
  agent_id: string | null
  lock_seconds: number
  locked_by: string | null
  locked_until: string | null
  /** The number of claims. */
  claims: number
  /** When it was captured. */
  created_at: string
  /** When it last changed. */
  updated_at: string
  resolved_at: string | null
  redriven_as: string | null
}

/** A dead letter with the token of the lock that the call got. */
export interface ClaimedDeadLetter {
  id: string
  status: 'failed' | 'claimed' | 'resolved' | 'archived'
  error: string
  /** The first line of the error with ids and numbers masked: failures with the same cause have the same text. */
  cause: string
  workflow_id: string | null
  source: 'agent' | 'schedule' | 'checkpoint'
  source_id: string | null
  agent_id: string | null
  lock_seconds: number
  locked_by: string | null
  locked_until: string | null
  /** The number of claims. */
  claims: number
  /** When it was captured. */
  created_at: string
  /** When it last changed. */
  updated_at: string
  resolved_at: string | null
  redriven_as: string | null
  /** The exact text that was sent. */
  payload: unknown
  /** Send it with extend, release, fail and resolve to be sure that the lock is still yours. */
  lock_token: string
}

/** The answer of a dry run: what an operation would take. */
export interface MatchedDeadLetters {
  /** Dead letters that an operation would take, `max` at most. */
  matched: number
  /** Present when the search ended early, at items captured then: pass it as `from` to count those that follow. */
  looked_until?: string
}

/** A dead letter with the token of the lock that was extended. */
export interface ExtendedDeadLetter {
  id: string
  status: 'failed' | 'claimed' | 'resolved' | 'archived'
  error: string
  /** The first line of the error with ids and numbers masked: failures with the same cause have the same text. */
  cause: string
  workflow_id: string | null
  source: 'agent' | 'schedule' | 'checkpoint'
  source_id: string | null
  agent_id: string | null
  lock_seconds: number
  locked_by: string | null
  locked_until: string | null
  /** The number of claims. */
  claims: number
  /** When it was captured. */
  created_at: string
  /** When it last changed. */
  updated_at: string
  resolved_at: string | null
  redriven_as: string | null
  /** The exact text that was sent. */
  payload: unknown
  lock_token: string | null
}

/** Dead letters of one cause and source, counted. */
export interface DeadLetterCause {
  cause: string
  source: 'agent' | 'schedule' | 'checkpoint'
  /** Dead letters of this cause and source. */
  count: number
  /** When the oldest of them was captured. */
  oldest_at: string
  /** When the latest of them was captured. */
  newest_at: string
  /** The latest of them. */
  latest_id: string
}

/** One dead letter of an operation, with its outcome. */
export interface DeadLetterOperationItem {
  /** The dead letter. */
  id: string
  outcome: 'waiting' | 'done' | 'skipped' | 'failed'
  code: string | null
  redriven_as: string | null
}

/** A one-time signed callback, with its status and its last outcome. */
export interface Schedule {
  id: string
  status: 'pending' | 'fired' | 'cancelled' | 'failed'
  name: string | null
  workflow_id: string | null
  callback_url: string
  /** The exact text that was sent. */
  callback_payload: unknown
  /** When it is called; the past means now. */
  fire_at: string
  dlq_on_failure: boolean
  agent_id: string
  /** The number of calls since fire_at was set. */
  attempts: number
  next_attempt_at: string | null
  last_error: string | null
  last_status_code: number | null
  fired_at: string | null
  retry_of: string | null
  redrive_of: string | null
  retried_as: string | null
  dead_letter_id: string | null
  /** When it was created. */
  created_at: string
  /** When it last changed. */
  updated_at: string
}

/** One attempt to deliver, with its outcome. */
export interface Attempt {
  /** 1, 2 or 3. */
  attempt: number
  /** The webhook-id header, the same on every retry. */
  webhook_id: string
  /** When it began. */
  started_at: string
  duration_ms: number
  status_code: number | null
  error: string | null
}

/** A question to people: what is asked, who may decide, and the decision. */
export interface Checkpoint {
  id: string
  status: 'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled'
  title: string
  prompt: string | null
  /** A page where a person with an approval key decides it; the URL itself holds no key. */
  approval_url: string
  callback_url: string | null
  /** The exact text that was sent, or null. */
  callback_payload: unknown
  timeout_action: 'auto_reject' | 'dlq'
  /** When the timeout is due. */
  expires_at: string
  agent_id: string
  workflow_id: string | null
  reason: string | null
  resolved_by: string | null
  resolved_at: string | null
  callback: CheckpointCallback
  /** When it was created. */
  created_at: string
  /** When it last changed. */
  updated_at: string
  answer_schema: Record<string, unknown> | null
  answer: Record<string, unknown> | null
  /** Approvals that it needs. */
  required_approvals: number
  /** Rejections that it needs. */
  required_rejections: number
  /** Approvals so far. */
  approvals: number
  /** Rejections so far. */
  rejections: number
  approvers: string[] | null
  escalate: Escalation[] | null
  /** Steps of `escalate` taken so far. */
  escalated: number
  /** How many comments there are. */
  comments: number
  /** An approver may change the payload of the effect. */
  editable: boolean
  /** The payload that the votes so far are for, when an approver changed it; else null. */
  edited_payload: unknown
  edited_payload_hash: string | null
  /** The payload as it was approved, when an approver changed it; else null. */
  effective_payload: unknown
  permit_expires_at: string | null
  /** How many effects may start under the approval. */
  uses: number
  /** How many of these are left, including the effect that it was asked for. */
  uses_left: number
  effect_id: string | null
  effect: AboutEffect | null
  /** The payload of the effect, the exact text; null without one. */
  payload: unknown
  payload_hash: string | null
}

/** The state of the delivery of the decision. */
export interface CheckpointCallback {
  status: 'none' | 'pending' | 'delivered' | 'failed'
  attempts: number
  last_error: string | null
  redrive_of: string | null
  dead_letter_id: string | null
}

/** A step of an escalation: who else may decide, and after how many seconds. */
export interface Escalation {
  after_seconds: number
  approvers: string[] | null
}

/** The effect that a checkpoint decides. */
export interface AboutEffect {
  /** The type of that effect. */
  type: string
  /** Its key. */
  key: string
  note: string | null
}

/** A comment on a checkpoint. */
export interface Comment {
  /** cmt_… */
  id: string
  /** The id of an agent or of an approval key, or admin. */
  author: string
  author_label: string | null
  text: string
  /** When it was made. */
  at: string
}

/** A checkpoint as an approval key sees it. */
export interface Approval {
  checkpoint_id: string
  title: string
  prompt: string | null
  /** The callback_payload, the exact text that was sent, or null. */
  payload: unknown
  /** The agent that asks. */
  agent: {
    /** The agent that asks. */
    agent_id: string
    name: string
  }
  status: 'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled'
  /** When it was created. */
  created_at: string
  /** When the timeout is due. */
  expires_at: string
  reason: string | null
  resolved_by: string | null
  resolved_at: string | null
  answer_schema: Record<string, unknown> | null
  answer: Record<string, unknown> | null
  /** Approvals that it needs. */
  required_approvals: number
  /** Rejections that it needs. */
  required_rejections: number
  /** Approvals so far. */
  approvals: number
  /** Rejections so far. */
  rejections: number
  approvers: string[] | null
  escalate: Escalation[] | null
  /** Steps of `escalate` taken so far. */
  escalated: number
  /** How many comments there are. */
  comments: number
  /** An approver may change the payload of the effect. */
  editable: boolean
  /** The payload that the votes so far are for, when an approver changed it; else null. */
  edited_payload: unknown
  edited_payload_hash: string | null
  /** The payload as it was approved, when an approver changed it; else null. */
  effective_payload: unknown
  permit_expires_at: string | null
  /** How many effects may start under the approval. */
  uses: number
  /** How many of these are left, including the effect that it was asked for. */
  uses_left: number
  effect_id: string | null
  effect: AboutEffect | null
  /** The payload of the effect, the exact text; null without one. */
  effect_payload: unknown
  effect_payload_hash: string | null
  /** This key is an approver. */
  may_decide: boolean
  voted: 'approved' | 'rejected' | null
  frozen_at: string | null
}

/** The vote of one approver. */
export interface Vote {
  /** The id of an approval key, or admin. */
  voter: string
  voter_label: string | null
  decision: 'approved' | 'rejected'
  /** False once the payload was changed after it; its voter may vote again. */
  counts: boolean
  /** True when it changed the payload. */
  edited: boolean
  payload_hash: string | null
  reason: string | null
  answer: Record<string, unknown> | null
  permit_expires_at: string | null
  /** The uses that it allows; of several, the lowest counts. */
  uses: number
  /** When it was cast. */
  at: string
}

/** An inbox as its creation answers it. */
export interface CreatedInbox {
  id: string
  /** The secret part of the URL. */
  token: string
  /** The URL that anybody may send to, without a key. */
  url: string
  /** Empty when none was given. */
  label: string
  workflowId: string | null
  /** It accepts no messages from then on. */
  expiresAt: string
}

/** An inbox as lists show it. */
export interface ListedInbox {
  id: string
  /** The secret part of the URL. */
  token: string
  /** The URL that anybody may send to, without a key. */
  url: string
  /** Empty when none was given. */
  label: string
  workflowId: string | null
  /** Messages that are kept. */
  messageCount: number
  /** It accepts no messages from then on. */
  expiresAt: string
}

/** An inbox with its latest messages. */
export interface InboxDetail {
  inbox: Inbox
  messages: Message[]
}

/** A public URL that keeps whatever is sent to it. */
export interface Inbox {
  id: string
  /** The secret part of the URL. */
  token: string
  /** The URL that anybody may send to, without a key. */
  url: string
  /** Empty when none was given. */
  label: string
  forwardUrl: string | null
  workflowId: string | null
  /** Messages that are kept. */
  messageCount: number
  /** When it was created. */
  createdAt: string
  /** It accepts no messages from then on. */
  expiresAt: string
}

/** A request that came to an inbox. */
export interface Message {
  id: string
  method: string
  /** The path after the token in the URL, empty when there is none. */
  path: string
  /** Names in lower case; repeats are joined by a comma. */
  headers: Record<string, string>
  /** Name to value, or to an array of them when the name came more than once. */
  query: Record<string, string | string[]>
  /** JSON as it came, else a string, else (when the bytes are not UTF-8) null. */
  body: unknown
  /** The exact bytes. */
  bodyBase64: string
  preview: string | null
  /** Empty when none was sent. */
  contentType: string
  sourceIp: string
  /** When it came. */
  createdAt: string
  forward: Forward | null
}

/** The state of the forward of a message. */
export interface Forward {
  status: 'pending' | 'delivered' | 'failed'
  statusCode: number | null
  error: string | null
  durationMs: number | null
  attemptedAt: string | null
}

/** A hit that is within the limit. */
export interface RateLimitAllowed {
  allowed: boolean
  /** Hits in the window, this check included. */
  count: number
  /** Hits that the limit still allows. */
  remaining: number
  /** The end of the window. */
  resetAt: string
  /** As it was sent with the last check; 0 when that is not known. */
  limit: number
}

/** A hit that is past the limit. */
export interface RateLimitBlocked {
  allowed: boolean
  /** Hits in the window, this check included. */
  count: number
  /** Hits that the limit still allows. */
  remaining: number
  /** The end of a fixed window; for a sliding one, when the same check would pass. */
  resetAt: string
  /** Seconds until then, at least 1. */
  retryAfter: number
  /** As it was sent with the last check; 0 when that is not known. */
  limit: number
}

/** The state of a key against the limit of its last check. */
export interface RateLimitStatus {
  key: string
  /** Hits in the window; 0 when it is over. */
  count: number
  /** Hits that the limit still allows. */
  remaining: number
  /** The end of the window; now when that is not known. */
  resetAt: string
  windowExpired: boolean
  /** As it was sent with the last check; 0 when that is not known. */
  limit: number
}

/** The outcome of a reset. */
export interface RateLimitReset {
  key: string
  /** False when no window was running. */
  reset: boolean
}

/** A counter that is running. */
export interface RateLimitCounter {
  key: string
  algorithm: 'fixed_window' | 'sliding_window'
  /** As it was sent with the last check; 0 when that is not known. */
  limit: number
  /** Hits in the window. */
  count: number
  /** Hits that the limit still allows. */
  remaining: number
  /** The end of the window. */
  resetAt: string
  /** Length of the window. */
  windowSeconds: number
}

/**
 * An effect as its claim or start answers it, with the token of the lease and the checkpoint that it
 * waits for.
 */
export interface ClaimedEffect {
  id: string
  status:
    | 'awaiting_approval'
    | 'approved'
    | 'ready'
    | 'running'
    | 'unknown'
    | 'succeeded'
    | 'failed'
    | 'rejected'
  type: string
  key: string
  note: string | null
  on_unknown: 'hold' | 'ask' | 'retry'
  /** The SHA-256 of the payload that was proposed, in hex. */
  payload_hash: string
  effective_hash: string | null
  checkpoint_id: string | null
  permit_expires_at: string | null
  refused_as: 'rejected' | 'expired' | 'cancelled' | null
  question_id: string | null
  /** The agent that claimed it. */
  agent_id: string
  held_by: string | null
  /** The number of leases so far: the target may refuse a lower one. */
  fence: number
  /** How long the last lease was granted for; the default for the next one. */
  lease_seconds: number
  lease_until: string | null
  error: string | null
  resolved_by: string | null
  workflow_id: string | null
  finished_at: string | null
  /** When it was claimed. */
  created_at: string
  /** When it last changed. */
  updated_at: string
  /** The exact text that was sent; null once it was removed. */
  payload: unknown
  /** The exact text that an approver put in its place, or null. */
  effective_payload: unknown
  /** The exact text that the holder of the lease reported, or null. */
  result: unknown
  lease_token: string | null
  checkpoint: EffectApproval | null
}

/** The approval that it waits for, or null. */
export interface EffectApproval {
  /** The checkpoint. */
  id: string
  status: string
  title: string
  /** A page where a person with an approval key decides it. */
  approval_url: string
  /** When its timeout is due. */
  expires_at: string
}

/** An effect as lists show it: without payload and result. */
export interface ListedEffect {
  id: string
  status:
    | 'awaiting_approval'
    | 'approved'
    | 'ready'
    | 'running'
    | 'unknown'
    | 'succeeded'
    | 'failed'
    | 'rejected'
  type: string
  key: string
  note: string | null
  on_unknown: 'hold' | 'ask' | 'retry'
  /** The SHA-256 of the payload that was proposed, in hex. */
  payload_hash: string
  effective_hash: string | null
  checkpoint_id: string | null
  permit_expires_at: string | null
  refused_as: 'rejected' | 'expired' | 'cancelled' | null
  question_id: string | null
  /** The agent that claimed it. */
  agent_id: string
  held_by: string | null
  /** The number of leases so far: the target may refuse a lower one. */
  fence: number
  /** How long the last lease was granted for; the default for the next one. */
  lease_seconds: number
  lease_until: string | null
  error: string | null
  resolved_by: string | null
  workflow_id: string | null
  finished_at: string | null
  /** When it was claimed. */
  created_at: string
  /** When it last changed. */
  updated_at: string
}

/** Something that is done at most once: its payload, its approval, its lease and its result. */
export interface Effect {
  id: string
  status:
    | 'awaiting_approval'
    | 'approved'
    | 'ready'
    | 'running'
    | 'unknown'
    | 'succeeded'
    | 'failed'
    | 'rejected'
  type: string
  key: string
  note: string | null
  on_unknown: 'hold' | 'ask' | 'retry'
  /** The SHA-256 of the payload that was proposed, in hex. */
  payload_hash: string
  effective_hash: string | null
  checkpoint_id: string | null
  permit_expires_at: string | null
  refused_as: 'rejected' | 'expired' | 'cancelled' | null
  question_id: string | null
  /** The agent that claimed it. */
  agent_id: string
  held_by: string | null
  /** The number of leases so far: the target may refuse a lower one. */
  fence: number
  /** How long the last lease was granted for; the default for the next one. */
  lease_seconds: number
  lease_until: string | null
  error: string | null
  resolved_by: string | null
  workflow_id: string | null
  finished_at: string | null
  /** When it was claimed. */
  created_at: string
  /** When it last changed. */
  updated_at: string
  /** The exact text that was sent; null once it was removed. */
  payload: unknown
  /** The exact text that an approver put in its place, or null. */
  effective_payload: unknown
  /** The exact text that the holder of the lease reported, or null. */
  result: unknown
}

/** The conditions under which the effects of a type may start. */
export interface EffectPolicy {
  type: string
  /** required: an effect that asks for no approval still gets one. */
  approval: 'optional' | 'required'
  /** The minimum number of approvals. */
  required_approvals: number
  approvers: string[] | null
  lease_seconds_max: number | null
  /** When it was first set. */
  created_at: string
  /** When it was last set. */
  updated_at: string
}

/** A workflow with a page of its events. */
export interface WorkflowTimeline {
  workflow_id: string
  /** Its events, including those removed since. */
  events: number
  /** How many things it waits for now. */
  waiting: number
  /** How many failures nobody has dealt with. */
  failing: number
  /** The first event. */
  first_at: string
  /** The latest event. */
  last_at: string
  /** The number of the latest event. */
  last_seq: number
  /** The type of the latest event. */
  last_type: string
  items: JournalEvent[]
  /** Pass it as after to continue. */
  next_after: number
  /** True when further events follow. */
  more: boolean
}

/** A change that happened, as the journal keeps it. */
export interface JournalEvent {
  /** evt_… */
  id: string
  /** Its number: starts at 1, rises by 1, without gaps, per tenant. */
  seq: number
  /** Such as schedule.fired. */
  type: string
  /** The thing that an event is about. */
  subject: { kind: string; id: string }
  workflow_id: string | null
  workflow_seq: number | null
  agent_id: string | null
  /** admin, the id of an agent, approval_key:…, anonymous, operator, or service for the clock. */
  actor: string
  request_id: string | null
  /** When it happened. */
  at: string
  /** Members depend on the type; never a payload. */
  data: Record<string, unknown>
}

/** The events of a workflow, in numbers. */
export interface Workflow {
  workflow_id: string
  /** Its events, including those removed since. */
  events: number
  /** How many things it waits for now. */
  waiting: number
  /** How many failures nobody has dealt with. */
  failing: number
  /** The first event. */
  first_at: string
  /** The latest event. */
  last_at: string
  /** The number of the latest event. */
  last_seq: number
  /** The type of the latest event. */
  last_type: string
}

/** Events that are delivered to a URL or an address, and their progress. */
export interface Subscription {
  id: string
  /** unconfirmed: the holder of the address has not confirmed it yet, by the link in the email. */
  status: 'unconfirmed' | 'active' | 'paused'
  paused_reason: 'requested' | 'gone' | 'failing' | 'unsubscribed' | null
  name: string | null
  format: 'standard' | 'slack' | 'mail'
  url: string | null
  to: string | null
  types: string[]
  workflow_id: string | null
  /** The number of the last event that was delivered, or skipped. */
  after: number
  /** Events that have happened since, of all types; 0 for an active one that has delivered all that it is for. */
  behind: number
  /** Attempts made so far to deliver the next event. */
  attempts: number
  next_attempt_at: string | null
  last_error: string | null
  last_status_code: number | null
  last_attempt_at: string | null
  delivered_at: string | null
  /** When it was created. */
  created_at: string
  /** When it was last changed. */
  updated_at: string
}

/** One attempt to deliver an event. */
export interface SubscriptionAttempt {
  /** The number of this attempt among all of the subscription, from 0. */
  number: number
  event_id: string
  event_seq: number
  event_type: string
  /** The number of this attempt to deliver the event, from 1. */
  attempt: number
  /** The webhook-id header, the same on every retry. */
  webhook_id: string
  /** When it began. */
  started_at: string
  duration_ms: number
  status_code: number | null
  error: string | null
}

/** Events with everything needed to check them without the service. */
export interface SealBundle {
  /** waystation-seal-bundle/1 */
  format: string
  /** The name of the journal, and of the key that signs: waystation/ten_…. */
  origin: string
  /** How many events the tree has: the number, seq, of its last. */
  size: number
  /** The root of the tree, base64. */
  root: string
  /** The checkpoint as a signed note, c2sp.org/tlog-checkpoint. */
  note: string
  /** Public keys, name+hash+key; the one that signs comes first, then its predecessors. */
  keys: string[]
  workflow_id: string | null
  /** The events of the bundle are those after this one. */
  after: number
  edge: string[] | null
  consistency: {
    from: number
    /** Hashes, base64, in the order of RFC 6962. */
    proof: string[]
  } | null
  next_after: number | null
  events: Array<{ event: SealedEvent; proof: string[] | null }>
}

/** An event as it was sealed. */
export interface SealedEvent {
  id: string
  seq: number
  type: string
  /** The thing that an event is about. */
  subject: { kind: string; id: string }
  workflow_id: string | null
  workflow_seq: number | null
  agent_id: string | null
  actor: string
  request_id: string | null
  at: string
  /** Depends on the type of the event. */
  data: Record<string, unknown>
}

/** A proof that a journal only grew. */
export interface SealConsistency {
  from: number
  /** The root of the tree of `from` events, base64. */
  from_root: string
  /** Hashes, base64, in the order of RFC 6962. */
  proof: string[]
  /** The name of the journal, and of the key that signs: waystation/ten_…. */
  origin: string
  /** How many events the tree has: the number, seq, of its last. */
  size: number
  /** The root of the tree, base64. */
  root: string
  /** The checkpoint as a signed note, c2sp.org/tlog-checkpoint. */
  note: string
  /** Public keys, name+hash+key; the one that signs comes first, then its predecessors. */
  keys: string[]
}

/** A proof that an event is in the journal. */
export interface SealProof {
  event: SealedEvent | null
  /** Its number; its place among the leaves is one less. */
  seq: number
  /** The hash that is sealed, base64; also of an event that retention has removed. */
  leaf_hash: string
  /** Hashes, base64, in the order of RFC 6962. */
  proof: string[]
  /** The name of the journal, and of the key that signs: waystation/ten_…. */
  origin: string
  /** How many events the tree has: the number, seq, of its last. */
  size: number
  /** The root of the tree, base64. */
  root: string
  /** The checkpoint as a signed note, c2sp.org/tlog-checkpoint. */
  note: string
  /** Public keys, name+hash+key; the one that signs comes first, then its predecessors. */
  keys: string[]
}

/** The signed checkpoint of the journal. */
export interface SealCheckpoint {
  /** The name of the journal, and of the key that signs: waystation/ten_…. */
  origin: string
  /** How many events the tree has: the number, seq, of its last. */
  size: number
  /** The root of the tree, base64. */
  root: string
  /** The checkpoint as a signed note, c2sp.org/tlog-checkpoint. */
  note: string
  /** Public keys, name+hash+key; the one that signs comes first, then its predecessors. */
  keys: string[]
}

/** A checkpoint that the service keeps. */
export interface SealKeptCheckpoint {
  /** How many events the tree has: the number, seq, of its last. */
  size: number
  /** The root of the tree, base64. */
  root: string
  /** The checkpoint as a signed note, c2sp.org/tlog-checkpoint. */
  note: string
  /** When it was signed. */
  created_at: string
}

/** The event that was waited for, or none. */
export interface Awaited {
  event: JournalEvent | null
  /** Pass it as after to continue. */
  after: number
}

/** The work that a tick did, in numbers. */
export interface TickSummary {
  /** Numbers of schedules. */
  schedules: { due: number; fired: number; retrying: number; failed: number }
  /** Numbers of checkpoints. */
  checkpoints: { rejected: number; expired: number; callbacks: number }
  /** Numbers of dlq. */
  dlq: { locks_released: number }
  /** Numbers of effects. */
  effects: { ran_out: number }
  /** Numbers of expired. */
  expired: { kv_keys: number; inboxes: number; idempotency_keys: number }
  tenants_purged: number
  duration_ms: number
}

/** How far a test clock was moved, and what happened on the way. */
export interface Advanced {
  /** The time of the service. */
  now: string
  /** How far the time was moved. */
  advanced_seconds: number
  /** False when 20 s were not enough: advanced_seconds says how far it got. To continue, advance by the rest, which may be 0. */
  done: boolean
  /** How many events of each type happened, for the tenant of the key. */
  counts: Record<string, number>
  /** These events in their order, the first 1000. GET /v1/events has the rest. */
  events: JournalEvent[]
}

/** The time of a service with a test clock. */
export interface TestClock {
  /** The time of the service. */
  now: string
  /** How far it is ahead of real time. */
  offset_seconds: number
}

/** The process answers. */
export interface Liveness {
  status: 'alive'
}

/** The service can do its work. */
export interface Readiness {
  status: 'ready'
  version?: string
  engine?: 'sqlite' | 'postgres'
  schema_version?: number
  /** Present while the database is a restored copy that the operator has not released: nothing due is sent, and no effect starts. */
  quarantined_since?: string
  /** PostgreSQL: heard when changes on other nodes are signalled to this one, polled when it looks for them. */
  other_nodes?: 'heard' | 'polled'
  durability?: Record<string, string | number>
}

/** Parameters, body and answer of each operation. */
export interface Operations {
  createTenant: {
    params: object
    query: object
    body: {
      /** Unique regardless of case; no control characters; counted after trimming. */
      name: string
      owner_email: string
      /** One that is open to sign-ups: free and pro unless configured, plus unlimited on loopback. Any other is refused with the list of those that are open. The default is free unless configured. */
      plan?: string | undefined
    }
    answer: CreatedTenant
  }
  deleteTenant: {
    params: {
      /** The tenant that the admin key belongs to; any other is refused with 403. */
      tenant_id: string
    }
    query: object
    body: { confirm: 'DELETE ALL DATA' }
    answer: DeletedTenant
  }
  getTenant: {
    params: {
      /** The tenant that the admin key belongs to, or me; any other is refused with 403. */
      tenant_id: string
    }
    query: object
    body: undefined
    answer: Tenant
  }
  freezeTenant: {
    params: {
      /** The tenant that the admin key belongs to; any other is refused with 403. */
      tenant_id: string
    }
    query: object
    body: {
      /** Shown to the agents that are refused. */
      reason?: string | undefined
    }
    answer: Tenant
  }
  restoreTenant: {
    params: {
      /** The tenant that the admin key belongs to; any other is refused with 403. */
      tenant_id: string
    }
    query: object
    body: object
    answer: Tenant
  }
  resumeTenant: {
    params: {
      /** The tenant that the admin key belongs to; any other is refused with 403. */
      tenant_id: string
    }
    query: object
    body: {
      /** The `frozen_at` of the freeze that you mean: 409 when another one is in force. */
      frozen_at?: string | undefined
    }
    answer: Tenant
  }
  rotateSigningSecret: {
    params: {
      /** The tenant that the admin key belongs to; any other is refused with 403. */
      tenant_id: string
    }
    query: object
    body: object
    answer: TenantWithSecret
  }
  rotateTenantKey: {
    params: {
      /** The tenant that the admin key belongs to; any other is refused with 403. */
      tenant_id: string
    }
    query: object
    body: {
      /** How long the old key still works; 0, the default, ends it at once. */
      grace_seconds?: number | undefined
    }
    answer: RotatedTenant
  }
  getUsage: {
    params: {
      /** The tenant that the admin key belongs to, or me; any other is refused with 403. */
      tenant_id: string
    }
    query: {
      /** The first step is the one that contains this instant; default a day, or 30 days, before to. */
      from?: string | undefined
      /** Before this instant; default now. At most 35 days after from. */
      to?: string | undefined
      /** hour (the default) or day, in UTC. */
      step?: 'hour' | 'day' | undefined
    }
    body: undefined
    answer: {
      /** The start of the first step. */
      from: string
      /** The end of what is counted. */
      to: string
      step: 'hour' | 'day'
      items: UsageStep[]
    }
  }
  createAgent: {
    params: object
    query: object
    body: {
      name: string
      /** For people. */
      description?: string | undefined
      /** An http or https URL. */
      callback_base_url?: string | undefined
    }
    answer: CreatedAgent
  }
  listAgents: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: Agent[]; next_cursor: string | null }
  }
  deleteAgent: {
    params: {
      /** The agent, by its name. */
      agent_id: string
    }
    query: object
    body: undefined
    answer: undefined
  }
  getAgent: {
    params: {
      /** The agent, by its name. */
      agent_id: string
    }
    query: object
    body: undefined
    answer: Agent
  }
  updateAgent: {
    params: {
      /** The agent, by its name. */
      agent_id: string
    }
    query: object
    body: {
      /** full: it may do everything that agents may. read: it changes nothing. propose: each of its effects waits for an approval. */
      mode: 'full' | 'read' | 'propose'
    }
    answer: Agent
  }
  pauseAgent: {
    params: {
      /** The agent, by its name. */
      agent_id: string
    }
    query: object
    body: {
      /** Shown to the agent when it is refused. */
      reason?: string | undefined
    }
    answer: Agent
  }
  resumeAgent: {
    params: {
      /** The agent, by its name. */
      agent_id: string
    }
    query: object
    body: object
    answer: Agent
  }
  rotateAgentKey: {
    params: {
      /** The agent, by its name. */
      agent_id: string
    }
    query: object
    body: {
      /** How long the old key still works; 0, the default, ends it at once. */
      grace_seconds?: number | undefined
    }
    answer: RotatedAgent
  }
  createApprovalKey: {
    params: object
    query: object
    body: {
      /** Binds the key to this checkpoint. */
      checkpoint_id?: string | undefined
      /** For people: who has it. Votes and comments show it. */
      label?: string | undefined
      /** When it expires, in the future. Default: never. */
      expires_at?: string | undefined
    }
    answer: CreatedApprovalKey
  }
  listApprovalKeys: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: ApprovalKey[]; next_cursor: string | null }
  }
  deleteApprovalKey: {
    params: {
      /** The approval key, apk_…. */
      approval_key_id: string
    }
    query: object
    body: undefined
    answer: undefined
  }
  deleteValue: {
    params: {
      /** Names that begin with __ are reserved, except your own __agent.<agent_id>. */
      namespace: string
      /** 1 to 512 bytes of UTF-8, percent-encoded once. */
      key: string
    }
    query: object
    body: undefined
    answer: undefined
  }
  getValue: {
    params: {
      /** Names that begin with __ are reserved, except your own __agent.<agent_id>. */
      namespace: string
      /** 1 to 512 bytes of UTF-8, percent-encoded once. */
      key: string
    }
    query: object
    body: undefined
    answer: Entry
  }
  putValue: {
    params: {
      /** Names that begin with __ are reserved, except your own __agent.<agent_id>. */
      namespace: string
      /** 1 to 512 bytes of UTF-8, percent-encoded once. */
      key: string
    }
    query: object
    body: {
      /** Any JSON, at most 256 KiB; comes back as the same text. */
      value: unknown
      /** Without it the key does not expire. */
      ttl_seconds?: number | undefined
      /** Write only over this version; 0 means only if absent. */
      cas_version?: number | undefined
    }
    answer: PutResult
  }
  getNamespace: {
    params: {
      /** Names that begin with __ are reserved, except your own __agent.<agent_id>. */
      namespace: string
    }
    query: object
    body: undefined
    answer: Namespace
  }
  updateNamespace: {
    params: {
      /** Names that begin with __ are reserved, except your own __agent.<agent_id>. */
      namespace: string
    }
    query: object
    body: {
      /** True: each put, delete and expiry of a key leaves an event. */
      events: boolean
    }
    answer: Namespace
  }
  getNamespaceKey: {
    params: {
      /** Names that begin with __ are reserved, except your own __agent.<agent_id>. */
      namespace: string
      /** 1 to 512 bytes of UTF-8, percent-encoded once. */
      key: string
    }
    query: object
    body: undefined
    answer: Entry
  }
  listKeys: {
    params: {
      /** Names that begin with __ are reserved, except your own __agent.<agent_id>. */
      namespace: string
    }
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
      /** Only keys that start with this text. */
      prefix?: string | undefined
    }
    body: undefined
    answer: { items: ListedKey[]; next_cursor: string | null }
  }
  listNamespaceKeys: {
    params: {
      /** Names that begin with __ are reserved, except your own __agent.<agent_id>. */
      namespace: string
    }
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
      /** Only keys that start with this text. */
      prefix?: string | undefined
    }
    body: undefined
    answer: { items: ListedKey[]; next_cursor: string | null }
  }
  listNamespaces: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: Namespace[]; next_cursor: string | null }
  }
  appendEntry: {
    params: object
    query: object
    body: {
      /** The action that was done. */
      action: string
      /** Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none. */
      workflow_id?: string | undefined
      /** The actor; default the agent's id, or admin. */
      actor?: string | undefined
      /** At most 64 KiB; comes back as the same text. */
      metadata?: object | null | undefined
    }
    answer: AuditEntry
  }
  listEntries: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
      workflow_id?: string | undefined
      action?: string | undefined
      /** Actions that begin with this text. */
      action_prefix?: string | undefined
      actor?: string | undefined
      /** Entries that this agent appended. */
      agent_id?: string | undefined
      /** Entries from this instant on. */
      from?: string | undefined
      /** Entries before this instant. */
      to?: string | undefined
    }
    body: undefined
    answer: { items: AuditEntry[]; next_cursor: string | null }
  }
  getEntry: {
    params: {
      /** The entry, log_…. */
      id: string
    }
    query: object
    body: undefined
    answer: AuditEntry
  }
  suggestEntries: {
    params: {
      /** The filter to suggest texts for. */
      field: 'workflow_id' | 'action' | 'actor' | 'agent_id'
    }
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
      /** Only texts that begin with this one. */
      prefix?: string | undefined
    }
    body: undefined
    answer: { items: AuditSuggestion[]; next_cursor: string | null }
  }
  cancelOperation: {
    params: {
      /** The operation, dop_…. */
      id: string
    }
    query: object
    body: undefined
    answer: DeadLetterOperation
  }
  captureItem: {
    params: object
    query: object
    body: {
      /** Any JSON; comes back as the same text. */
      payload: unknown
      /** The cause of the failure, at most 64 KiB. */
      error: string
      /** Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none. */
      workflow_id?: string | undefined
      /** The duration of a claim; default 300. */
      lock_seconds?: number | undefined
    }
    answer: DeadLetter
  }
  listItems: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
      status?: 'failed' | 'claimed' | 'resolved' | 'archived' | undefined
      source?: 'agent' | 'schedule' | 'checkpoint' | undefined
      /** The schedule or checkpoint that it came from. */
      source_id?: string | undefined
      /** The exact cause. */
      cause?: string | undefined
      workflow_id?: string | undefined
      /** Captured from this instant on. */
      from?: string | undefined
      /** Captured before this instant. */
      to?: string | undefined
    }
    body: undefined
    answer: { items: ListedDeadLetter[]; next_cursor: string | null }
  }
  claimItem: {
    params: {
      /** The dead letter, dlq_…. */
      id: string
    }
    query: object
    body: {
      /** The duration of the lock from now; default that of the item. */
      lock_seconds?: number | undefined
    }
    answer: ClaimedDeadLetter
  }
  claimOldestItem: {
    params: object
    query: object
    body: {
      /** The duration of the lock from now; default that of the item. */
      lock_seconds?: number | undefined
    }
    answer: ClaimedDeadLetter | undefined
  }
  deleteItem: {
    params: {
      /** The dead letter, dlq_…. */
      id: string
    }
    query: object
    body: undefined
    answer: undefined
  }
  getItem: {
    params: {
      /** The dead letter, dlq_…. */
      id: string
    }
    query: object
    body: undefined
    answer: DeadLetter
  }
  discardItems: {
    params: object
    query: object
    body: {
      /** Which dead letters; {} means every failed one. */
      filter: {
        status?: 'failed' | undefined
        source?: 'agent' | 'schedule' | 'checkpoint' | undefined
        /** The schedule or checkpoint that it came from. */
        source_id?: string | undefined
        /** The exact cause. */
        cause?: string | undefined
        /** The exact workflow. */
        workflow_id?: string | undefined
        /** Captured from this instant on. */
        from?: string | undefined
        /** Captured before this instant. */
        to?: string | undefined
        /** Only these, in whatever status they are unless `status` is given. */
        ids?: string[] | undefined
      }
      /** How many at most; default 5,000. */
      max?: number | undefined
      /** How many a second; default as fast as is fair. */
      per_second?: number | undefined
      /** Only count those that match. */
      dry_run?: boolean | undefined
    }
    answer: MatchedDeadLetters | DeadLetterOperation
  }
  extendItem: {
    params: {
      /** The dead letter, dlq_…. */
      id: string
    }
    query: object
    body: {
      /** The duration of the lock from now; default that of the item. */
      lock_seconds?: number | undefined
      /** The token that the claim returned; when sent, it must be the current one. */
      lock_token?: string | undefined
    }
    answer: ExtendedDeadLetter
  }
  failItem: {
    params: {
      /** The dead letter, dlq_…. */
      id: string
    }
    query: object
    body: {
      /** The token that the claim returned; when sent, it must be the current one. */
      lock_token?: string | undefined
    }
    answer: DeadLetter
  }
  getOperation: {
    params: {
      /** The operation, dop_…. */
      id: string
    }
    query: object
    body: undefined
    answer: DeadLetterOperation
  }
  listCauses: {
    params: object
    query: {
      /** Default failed. */
      status?: 'failed' | 'claimed' | 'resolved' | 'archived' | undefined
    }
    body: undefined
    answer: {
      items: DeadLetterCause[]
      /** True when there are older dead letters, or further causes, that are not counted. */
      truncated: boolean
    }
  }
  listOperationItems: {
    params: {
      /** The operation, dop_…. */
      id: string
    }
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: DeadLetterOperationItem[]; next_cursor: string | null }
  }
  listOperations: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: DeadLetterOperation[]; next_cursor: string | null }
  }
  redriveItem: {
    params: {
      /** The dead letter, dlq_…. */
      id: string
    }
    query: object
    body: undefined
    answer: DeadLetter
  }
  redriveItems: {
    params: object
    query: object
    body: {
      /** Which dead letters; {} means every failed one. */
      filter: {
        status?: 'failed' | 'archived' | undefined
        source?: 'agent' | 'schedule' | 'checkpoint' | undefined
        /** The schedule or checkpoint that it came from. */
        source_id?: string | undefined
        /** The exact cause. */
        cause?: string | undefined
        /** The exact workflow. */
        workflow_id?: string | undefined
        /** Captured from this instant on. */
        from?: string | undefined
        /** Captured before this instant. */
        to?: string | undefined
        /** Only these, in whatever status they are unless `status` is given. */
        ids?: string[] | undefined
      }
      /** How many at most; default 5,000. */
      max?: number | undefined
      /** How many a second; default as fast as is fair. */
      per_second?: number | undefined
      /** Only count those that match. */
      dry_run?: boolean | undefined
    }
    answer: MatchedDeadLetters | DeadLetterOperation
  }
  releaseItem: {
    params: {
      /** The dead letter, dlq_…. */
      id: string
    }
    query: object
    body: {
      /** The token that the claim returned; when sent, it must be the current one. */
      lock_token?: string | undefined
    }
    answer: DeadLetter
  }
  resolveItem: {
    params: {
      /** The dead letter, dlq_…. */
      id: string
    }
    query: object
    body: {
      /** The token that the claim returned; when sent, it must be the current one. */
      lock_token?: string | undefined
    }
    answer: DeadLetter
  }
  cancelSchedule: {
    params: {
      /** The schedule, sch_…. */
      id: string
    }
    query: object
    body: undefined
    answer: undefined
  }
  getSchedule: {
    params: {
      /** The schedule, sch_…. */
      id: string
    }
    query: object
    body: undefined
    answer: Schedule
  }
  updateSchedule: {
    params: {
      /** The schedule, sch_…. */
      id: string
    }
    query: object
    body: {
      /** An http or https URL, or a path that is resolved against the agent's callback_base_url. */
      callback_url?: string | undefined
      /** Any JSON, at most 256 KiB; sent byte for byte. */
      callback_payload?: unknown
      /** When it is called; the past means now. */
      fire_at?: string | undefined
      /** Default false. True: after the last failure a dead letter is kept. */
      dlq_on_failure?: boolean | undefined
      /** A name for people, shown in lists and not sent; empty for none. */
      name?: string | undefined
      /** Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none. */
      workflow_id?: string | undefined
    }
    answer: Schedule
  }
  createSchedule: {
    params: object
    query: object
    body: {
      /** An http or https URL, or a path that is resolved against the agent's callback_base_url. */
      callback_url: string
      /** Any JSON, at most 256 KiB; sent byte for byte. */
      callback_payload: unknown
      /** When it is called; the past means now. */
      fire_at: string
      /** Default false. True: after the last failure a dead letter is kept. */
      dlq_on_failure?: boolean | undefined
      /** A name for people, shown in lists and not sent; empty for none. */
      name?: string | undefined
      /** Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none. */
      workflow_id?: string | undefined
    }
    answer: Schedule
  }
  listSchedules: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
      status?: 'pending' | 'fired' | 'cancelled' | 'failed' | undefined
      /** Only those of this workflow. */
      workflow_id?: string | undefined
    }
    body: undefined
    answer: { items: Schedule[]; next_cursor: string | null }
  }
  listScheduleAttempts: {
    params: {
      /** The schedule, sch_…. */
      id: string
    }
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: Attempt[]; next_cursor: string | null }
  }
  retrySchedule: {
    params: {
      /** The schedule, sch_…. */
      id: string
    }
    query: object
    body: undefined
    answer: Schedule
  }
  approveCheckpoint: {
    params: {
      /** The checkpoint, chk_…. */
      id: string
    }
    query: object
    body: {
      /** Sent to the agent. */
      reason?: string | undefined
      /** Fits the `answer_schema` of the checkpoint. */
      answer?: object | null | undefined
      /** The payload of the effect as it is approved, where it is `editable`. Default: as it is now. Not null, unless null was proposed. */
      effective_payload?: unknown
      /** For an effect: the hash of the payload that the approver saw, `edited_payload_hash`, or `payload_hash` where nobody had changed it. 409 when the payload is now a different one. */
      expected_hash?: string | undefined
      /** For an effect: until when it may start under the approval. Default: no limit. */
      expires_at?: string | undefined
      /** For an effect: how many with the same bytes may start under the approval; default 1. */
      uses?: number | undefined
    }
    answer: Checkpoint
  }
  cancelCheckpoint: {
    params: {
      /** The checkpoint, chk_…. */
      id: string
    }
    query: object
    body: undefined
    answer: undefined
  }
  getCheckpoint: {
    params: {
      /** The checkpoint, chk_…. */
      id: string
    }
    query: {
      /** Seconds to hold the request while the checkpoint is pending. */
      wait?: number | undefined
    }
    body: undefined
    answer: Checkpoint
  }
  createCheckpoint: {
    params: object
    query: object
    body: {
      /** The question. */
      title: string
      /** At most 32 KiB of plain text. */
      prompt?: string | undefined
      callback_url: string | null
      /** Any JSON, at most 256 KiB; sent with the decision. */
      callback_payload?: unknown
      /** auto_reject, the default, or dlq. */
      timeout_action?: 'auto_reject' | 'dlq' | undefined
      timeout_seconds?: number | undefined
      /** With timeout_seconds, the earlier one counts; without either, 24 hours from now. */
      expires_at?: string | undefined
      /** Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none. */
      workflow_id?: string | undefined
      /** A flat JSON Schema of the answer that an approval must carry: at most 20 fields of type string, number, integer or boolean. */
      answer_schema?: object | null | undefined
      /** Approvals by different voters that it needs; default 1. */
      required_approvals?: number | undefined
      /** Rejections by different voters that it needs; default 1. */
      required_rejections?: number | undefined
      /** Ids of the approval keys that may decide, or admin. Default: anybody with a key for it. */
      approvers?: string[] | undefined
      /** While nobody has decided, these may also decide after that many seconds; a step without approvers lets anybody with a key decide. */
      escalate?: Array<{ after_seconds: number; approvers?: string[] | undefined }> | undefined
    }
    answer: Checkpoint
  }
  listCheckpoints: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
      status?: 'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled' | undefined
      /** Only those of this workflow. */
      workflow_id?: string | undefined
    }
    body: undefined
    answer: { items: Checkpoint[]; next_cursor: string | null }
  }
  createComment: {
    params: {
      /** The checkpoint, chk_…. */
      id: string
    }
    query: object
    body: {
      /** Plain text. */
      text: string
    }
    answer: Comment
  }
  listComments: {
    params: {
      /** The checkpoint, chk_…. */
      id: string
    }
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: Comment[]; next_cursor: string | null }
  }
  getApproval: {
    params: {
      /** The checkpoint, chk_…. */
      checkpoint_id: string
    }
    query: {
      /** Seconds to hold the request while the checkpoint is pending. */
      wait?: number | undefined
    }
    body: undefined
    answer: Approval
  }
  listCheckpointAttempts: {
    params: {
      /** The checkpoint, chk_…. */
      id: string
    }
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: Attempt[]; next_cursor: string | null }
  }
  listVotes: {
    params: {
      /** The checkpoint, chk_…. */
      id: string
    }
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: Vote[]; next_cursor: string | null }
  }
  rejectCheckpoint: {
    params: {
      /** The checkpoint, chk_…. */
      id: string
    }
    query: object
    body: {
      /** Sent to the agent. */
      reason?: string | undefined
    }
    answer: Checkpoint
  }
  revokeApproval: {
    params: {
      /** The checkpoint, chk_…. */
      id: string
    }
    query: object
    body: undefined
    answer: Checkpoint
  }
  createInbox: {
    params: object
    query: object
    body: {
      /** For humans. */
      label?: string | undefined
      /** An http or https URL that each message is sent on to, once. */
      forwardUrl?: string | undefined
      /** Seconds; default 86400, at most what the plan allows. */
      ttl?: number | undefined
      /** Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none. */
      workflowId?: string | undefined
    }
    answer: CreatedInbox
  }
  listInboxes: {
    params: object
    query: {
      /** Items, default 50; more than 100 counts as 100. */
      limit?: number | undefined
      /** Items to skip. */
      offset?: number | undefined
      /** Only those of this workflow. */
      workflowId?: string | undefined
    }
    body: undefined
    answer: {
      items: ListedInbox[]
      /** The number of all of them; for a workflow, at most 10,000 are counted. */
      total: number
    }
  }
  deleteInbox: {
    params: {
      /** The inbox, inb_…. */
      id: string
    }
    query: object
    body: undefined
    answer: { deleted: boolean }
  }
  getInbox: {
    params: {
      /** The inbox, inb_…. */
      id: string
    }
    query: object
    body: undefined
    answer: InboxDetail
  }
  listMessages: {
    params: {
      /** The inbox, inb_…. */
      id: string
    }
    query: {
      /** Id of the last message seen, which may be gone by now. */
      after?: string | undefined
      /** Items, default 50; more than 100 counts as 100. */
      limit?: number | undefined
      /** Seconds to hold the request while there is no message. */
      wait?: number | undefined
    }
    body: undefined
    answer: { items: Message[]; nextAfter: string | null }
  }
  replayMessage: {
    params: {
      /** The inbox, inb_…. */
      id: string
      /** The message, msg_…. */
      message_id: string
    }
    query: object
    body: undefined
    answer: Message
  }
  searchMessages: {
    params: {
      /** The inbox, inb_…. */
      id: string
    }
    query: {
      /** The text. */
      q: string
      /** nextBefore of the previous page: only older messages. */
      before?: string | undefined
      /** Items, default 50; more than 100 counts as 100. */
      limit?: number | undefined
    }
    body: undefined
    answer: { items: Message[]; nextBefore: string | null }
  }
  checkRateLimit: {
    params: object
    query: object
    body: {
      /** Names the counter: 1 to 256 bytes of UTF-8. */
      key: string
      /** The most hits in a window, rounded down. */
      limit: number
      /** Length of the window. Either windowSeconds or window is required; both mean the same. */
      windowSeconds?: number | undefined
      /** Length of the window. Either windowSeconds or window is required; both mean the same. */
      window?: number | undefined
      /** fixed_window, the default, starts at the first hit; sliding_window has no edges. */
      algorithm?: 'fixed_window' | 'sliding_window' | 'fixed-window' | 'sliding-window' | undefined
      /** The number of hits, from 1 (the default) to limit. */
      cost?: number | undefined
    }
    answer: RateLimitAllowed | RateLimitBlocked
  }
  checkRateLimitByQuery: {
    params: object
    query: {
      /** Names the counter: 1 to 256 bytes of UTF-8. */
      key: string
      /** The most hits in a window, rounded down. */
      limit: number
      /** Length of the window. Either windowSeconds or window is required; both mean the same. */
      windowSeconds?: number | undefined
      /** Length of the window. Either windowSeconds or window is required; both mean the same. */
      window?: number | undefined
      /** fixed_window, the default, starts at the first hit; sliding_window has no edges. */
      algorithm?: 'fixed_window' | 'sliding_window' | 'fixed-window' | 'sliding-window' | undefined
      /** The number of hits, from 1 (the default) to limit. */
      cost?: number | undefined
    }
    body: undefined
    answer: RateLimitAllowed | RateLimitBlocked
  }
  getRateLimit: {
    params: {
      /** The counter: 1 to 256 bytes of UTF-8, percent-encoded once. */
      key: string
    }
    query: object
    body: undefined
    answer: RateLimitStatus
  }
  getRateLimitNamedReset: {
    params: object
    query: object
    body: undefined
    answer: RateLimitStatus
  }
  resetRateLimit: {
    params: object
    query: object
    body: {
      /** Names the counter: 1 to 256 bytes of UTF-8. */
      key: string
    }
    answer: RateLimitReset
  }
  listRateLimits: {
    params: object
    query: {
      /** Items, default 50; more than 100 counts as 100. */
      limit?: number | undefined
      /** Items to skip. */
      offset?: number | undefined
      /** Only counters whose key starts with this text, among the 10,000 that end first. */
      prefix?: string | undefined
    }
    body: undefined
    answer: {
      items: RateLimitCounter[]
      /** The number of counters, counted to 10,000. */
      total: number
    }
  }
  claimEffect: {
    params: object
    query: object
    body: {
      /** The kind of the effect, such as refund. */
      type: string
      /** Makes it unique within its type, such as an order number. */
      key: string
      /** Any JSON, at most 256 KiB: exactly what is done. */
      payload: unknown
      /** For people; not bound to the effect. */
      note?: string | undefined
      /** How long the lease holds; default that of the previous one, or 60. */
      lease_seconds?: number | undefined
      /** Random text of your own, so that a repeat after a lost answer gets the same lease. */
      lease_token?: string | undefined
      /** When the lease runs out: hold (default) waits for an admin; ask opens a checkpoint; retry frees it, for idempotent work. */
      on_unknown?: 'hold' | 'ask' | 'retry' | undefined
      /** Asks a person first, who sees exactly these bytes. */
      approval?:
        | {
            /** The question. */
            title?: string | undefined
            /** Instead of a title: the approval of another effect of the same type and bytes, which has a use left. */
            checkpoint_id?: string | undefined
            /** At most 32 KiB of plain text. */
            prompt?: string | undefined
            /** Where the decision is sent; default nowhere: the agent waits for it. */
            callback_url?: string | undefined
            /** auto_reject, the default, or dlq. */
            timeout_action?: 'auto_reject' | 'dlq' | undefined
            timeout_seconds?: number | undefined
            /** With timeout_seconds, the earlier one counts; without either, 24 hours from now. */
            expires_at?: string | undefined
            /** An approver may change the payload; default false. */
            editable?: boolean | undefined
            /** A flat JSON Schema of the answer that the approval must carry, at most 16 KiB. */
            answer_schema?: Record<string, unknown> | undefined
            /** Approvals by different voters that it needs; default 1. */
            required_approvals?: number | undefined
            /** Rejections by different voters that it needs; default 1. */
            required_rejections?: number | undefined
            /** Ids of the approval keys that may decide, or admin. Default: anybody with a key for it. */
            approvers?: string[] | undefined
            /** While nobody has decided, these may also decide after that many seconds; a step without approvers lets anybody with a key decide. */
            escalate?: Array<{ after_seconds: number; approvers?: string[] | undefined }> | undefined
          }
        | undefined
      /** Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none. */
      workflow_id?: string | undefined
    }
    answer: ClaimedEffect
  }
  listEffects: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
      status?:
        | 'awaiting_approval'
        | 'approved'
        | 'ready'
        | 'running'
        | 'unknown'
        | 'succeeded'
        | 'failed'
        | 'rejected'
        | undefined
      /** Only effects of this type. */
      type?: string | undefined
      /** Only effects with this key: at most one of each type, in the order of their types. */
      key?: string | undefined
      /** Only those of this workflow. */
      workflow_id?: string | undefined
    }
    body: undefined
    answer: { items: ListedEffect[]; next_cursor: string | null }
  }
  extendEffect: {
    params: {
      /** The effect, eff_…. */
      id: string
    }
    query: object
    body: {
      /** The token of the lease. */
      lease_token: string
      /** How long the lease holds; default that of the previous one, or 60. */
      lease_seconds?: number | undefined
    }
    answer: Effect
  }
  failEffect: {
    params: {
      /** The effect, eff_…. */
      id: string
    }
    query: object
    body: {
      /** The token of the lease. */
      lease_token: string
      /** Why it did not happen. */
      error: string
      /** True: it did not happen, and may be started again. Default false: final. */
      retry?: boolean | undefined
    }
    answer: Effect
  }
  getEffect: {
    params: {
      /** The effect, eff_…. */
      id: string
    }
    query: {
      /** Seconds to hold the request while the effect waits for its approval, or runs. */
      wait?: number | undefined
    }
    body: undefined
    answer: Effect
  }
  resolveEffect: {
    params: {
      /** The effect, eff_…. */
      id: string
    }
    query: object
    body: {
      /** succeeded: it happened. failed: it did not, and will not. retry: it did not, and may be started. */
      outcome: 'succeeded' | 'failed' | 'retry'
      /** Any JSON, at most 256 KiB; returned to every repeat. */
      result?: unknown
      /** Why it did not happen. */
      error?: string | undefined
      /** The `fence` of the effect that you looked at: 409 when it has another one now. */
      fence?: number | undefined
    }
    answer: Effect
  }
  startEffect: {
    params: {
      /** The effect, eff_…. */
      id: string
    }
    query: object
    body: {
      /** The SHA-256 of the bytes that you are about to act on, in hex: any other bytes are refused. */
      payload_hash?: string | undefined
      /** How long the lease holds; default that of the previous one, or 60. */
      lease_seconds?: number | undefined
      /** Random text of your own, so that a repeat after a lost answer gets the same lease. */
      lease_token?: string | undefined
    }
    answer: ClaimedEffect
  }
  succeedEffect: {
    params: {
      /** The effect, eff_…. */
      id: string
    }
    query: object
    body: {
      /** The token of the lease. */
      lease_token: string
      /** Any JSON, at most 256 KiB; returned to every repeat. */
      result?: unknown
    }
    answer: Effect
  }
  deleteEffectPolicy: {
    params: {
      /** A type of effects, or * for those without a policy. */
      type: string
    }
    query: object
    body: undefined
    answer: undefined
  }
  getEffectPolicy: {
    params: {
      /** A type of effects, or * for those without a policy. */
      type: string
    }
    query: object
    body: undefined
    answer: EffectPolicy
  }
  setEffectPolicy: {
    params: {
      /** A type of effects, or * for those without a policy. */
      type: string
    }
    query: object
    body: {
      /** required: an effect that asks for no approval still gets one. */
      approval: 'optional' | 'required'
      /** The minimum number of approvals; default 1. */
      required_approvals?: number | undefined
      /** Those who may approve; default anybody with a key for it. */
      approvers?: string[] | undefined
      /** The longest lease; default any. */
      lease_seconds_max?: number | undefined
    }
    answer: EffectPolicy
  }
  listEffectPolicies: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: EffectPolicy[]; next_cursor: string | null }
  }
  getWorkflow: {
    params: {
      /** The workflow_id that its events carry, percent-encoded once. */
      workflow_id: string
    }
    query: {
      /** Events with a higher number; default 0, from the oldest. */
      after?: number | undefined
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
    }
    body: undefined
    answer: WorkflowTimeline
  }
  listWorkflows: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
      /** Ids that begin with this text. */
      prefix?: string | undefined
      /** waiting: something in it waits. failed: a failure in it is open. idle: neither. */
      status?: 'waiting' | 'failed' | 'idle' | undefined
    }
    body: undefined
    answer: { items: Workflow[]; next_cursor: string | null }
  }
  createSubscription: {
    params: object
    query: object
    body: {
      /** An http or https URL. Either url or to is required. */
      url?: string | undefined
      /** An email address, where the service has an SMTP server. */
      to?: string | undefined
      /** Event types, exact or all of a noun: `schedule.failed`, `checkpoint.*`. */
      types: string[]
      /** Only events of this workflow. */
      workflow_id?: string | undefined
      /** standard, the default: the event as GET /v1/events shows it. slack: a message for people. */
      format?: 'standard' | 'slack' | undefined
      /** A name for people, shown in lists; empty for none. */
      name?: string | undefined
      /** True: nothing is delivered until it is false again. */
      paused?: boolean | undefined
    }
    answer: Subscription
  }
  listSubscriptions: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: Subscription[]; next_cursor: string | null }
  }
  deleteSubscription: {
    params: {
      /** The subscription, sub_…. */
      id: string
    }
    query: object
    body: undefined
    answer: undefined
  }
  getSubscription: {
    params: {
      /** The subscription, sub_…. */
      id: string
    }
    query: object
    body: undefined
    answer: Subscription
  }
  updateSubscription: {
    params: {
      /** The subscription, sub_…. */
      id: string
    }
    query: object
    body: {
      /** An http or https URL; not for a subscription that sends emails. */
      url?: string | undefined
      /** Event types, exact or all of a noun: `schedule.failed`, `checkpoint.*`. */
      types?: string[] | undefined
      workflow_id?: string | null | undefined
      /** A name for people, shown in lists; empty for none. */
      name?: string | undefined
      /** True: nothing is delivered until it is false again. */
      paused?: boolean | undefined
    }
    answer: Subscription
  }
  listSubscriptionAttempts: {
    params: {
      /** The subscription, sub_…. */
      id: string
    }
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: SubscriptionAttempt[]; next_cursor: string | null }
  }
  replaySubscription: {
    params: {
      /** The subscription, sub_…. */
      id: string
    }
    query: object
    body: {
      /** The number of an event: what comes after it is delivered, with the same webhook-ids. 0: all that are kept. */
      after: number
    }
    answer: Subscription
  }
  confirmMail: {
    params: object
    query: object
    body: {
      /** The last part of the link. */
      token: string
    }
    answer: { confirmed: boolean }
  }
  unsubscribeMail: {
    params: object
    query: object
    body: {
      /** The last part of the link. */
      token: string
    }
    answer: { unsubscribed: boolean }
  }
  getBundle: {
    params: object
    query: {
      /** A workflow, by its id. */
      workflow_id?: string | undefined
      /** The size of a checkpoint that you kept: the bundle proves that it continues from there. */
      from?: number | undefined
      /** Only events after this number; default 0. Where retention has removed more, the bundle begins after those. */
      after?: number | undefined
    }
    body: undefined
    answer: SealBundle
  }
  getConsistencyProof: {
    params: object
    query: {
      /** The size of the earlier checkpoint. */
      from: number
      /** The size of the later checkpoint; default all events. */
      to?: number | undefined
    }
    body: undefined
    answer: SealConsistency
  }
  getInclusionProof: {
    params: object
    query: {
      /** The event, by its id, evt_…, or its number, seq. */
      event: string
      /** The proof is for the tree of this many events; default all. */
      size?: number | undefined
    }
    body: undefined
    answer: SealProof
  }
  getSeal: {
    params: object
    query: {
      /** A workflow, by its id. */
      workflow_id?: string | undefined
    }
    body: undefined
    answer: SealCheckpoint
  }
  listSealCheckpoints: {
    params: object
    query: {
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** next_cursor of the previous page. */
      cursor?: string | undefined
    }
    body: undefined
    answer: { items: SealKeptCheckpoint[]; next_cursor: string | null }
  }
  listEvents: {
    params: object
    query: {
      /** The number of the last event seen; default 0, the oldest. */
      after?: number | undefined
      /** Events of this workflow. */
      workflow_id?: string | undefined
      /** About this subject: its id, or kind:id. */
      subject?: string | undefined
      /** This type, or all types of a noun: schedule.*. */
      type?:
        | 'audit.appended'
        | 'dlq.created'
        | 'tenant.created'
        | 'tenant.key_rotated'
        | 'tenant.keys_revoked'
        | 'tenant.signing_secret_rotated'
        | 'tenant.plan_changed'
        | 'tenant.storage_changed'
        | 'tenant.deleted'
        | 'tenant.frozen'
        | 'tenant.resumed'
        | 'tenant.restored'
        | 'agent.created'
        | 'agent.key_rotated'
        | 'agent.mode_changed'
        | 'agent.paused'
        | 'agent.resumed'
        | 'agent.deleted'
        | 'approval_key.created'
        | 'approval_key.revoked'
        | 'kv.put'
        | 'kv.deleted'
        | 'kv.expired'
        | 'kv.events_enabled'
        | 'kv.events_disabled'
        | 'dlq.claimed'
        | 'dlq.extended'
        | 'dlq.released'
        | 'dlq.lock_expired'
        | 'dlq.archived'
        | 'dlq.reopened'
        | 'dlq.resolved'
        | 'dlq.deleted'
        | 'dlq_operation.created'
        | 'dlq_operation.succeeded'
        | 'dlq_operation.cancelled'
        | 'schedule.created'
        | 'schedule.updated'
        | 'schedule.workflow_left'
        | 'schedule.workflow_joined'
        | 'schedule.cancelled'
        | 'schedule.attempted'
        | 'schedule.fired'
        | 'schedule.failed'
        | 'schedule.retried'
        | 'checkpoint.created'
        | 'checkpoint.voted'
        | 'checkpoint.escalated'
        | 'checkpoint.commented'
        | 'checkpoint.approved'
        | 'checkpoint.rejected'
        | 'checkpoint.expired'
        | 'checkpoint.cancelled'
        | 'checkpoint.revoked'
        | 'callback.attempted'
        | 'callback.delivered'
        | 'callback.failed'
        | 'callback.redriven'
        | 'approval_key.used'
        | 'inbox.created'
        | 'inbox.deleted'
        | 'message.received'
        | 'message.forwarded'
        | 'message.forward_failed'
        | 'message.replayed'
        | 'effect.claimed'
        | 'effect.proposed'
        | 'effect.approved'
        | 'effect.rejected'
        | 'effect.started'
        | 'effect.extended'
        | 'effect.succeeded'
        | 'effect.failed'
        | 'effect.retried'
        | 'effect.unknown'
        | 'effect.resolved'
        | 'effect_policy.updated'
        | 'effect_policy.deleted'
        | 'subscription.created'
        | 'subscription.confirmed'
        | 'subscription.updated'
        | 'subscription.paused'
        | 'subscription.resumed'
        | 'subscription.replayed'
        | 'subscription.deleted'
        | 'seal.restored'
        | 'seal.checkpoint'
        | 'audit.*'
        | 'dlq.*'
        | 'tenant.*'
        | 'agent.*'
        | 'approval_key.*'
        | 'kv.*'
        | 'dlq_operation.*'
        | 'schedule.*'
        | 'checkpoint.*'
        | 'callback.*'
        | 'inbox.*'
        | 'message.*'
        | 'effect.*'
        | 'effect_policy.*'
        | 'subscription.*'
        | 'seal.*'
        | undefined
      /** Items per page, default 50; more than 200 counts as 200. */
      limit?: number | undefined
      /** Seconds to hold the request while there is no event. */
      wait?: number | undefined
    }
    body: undefined
    answer: {
      items: JournalEvent[]
      /** Pass it as after to continue. */
      next_after: number
    }
  }
  waitForEvent: {
    params: object
    query: object
    body: {
      /** Alternatives: waits for an event that matches all members of one of them. */
      any: Array<{
        type?:
          | 'audit.appended'
          | 'dlq.created'
          | 'tenant.created'
          | 'tenant.key_rotated'
          | 'tenant.keys_revoked'
          | 'tenant.signing_secret_rotated'
          | 'tenant.plan_changed'
          | 'tenant.storage_changed'
          | 'tenant.deleted'
          | 'tenant.frozen'
          | 'tenant.resumed'
          | 'tenant.restored'
          | 'agent.created'
          | 'agent.key_rotated'
          | 'agent.mode_changed'
          | 'agent.paused'
          | 'agent.resumed'
          | 'agent.deleted'
          | 'approval_key.created'
          | 'approval_key.revoked'
          | 'kv.put'
          | 'kv.deleted'
          | 'kv.expired'
          | 'kv.events_enabled'
          | 'kv.events_disabled'
          | 'dlq.claimed'
          | 'dlq.extended'
          | 'dlq.released'
          | 'dlq.lock_expired'
          | 'dlq.archived'
          | 'dlq.reopened'
          | 'dlq.resolved'
          | 'dlq.deleted'
          | 'dlq_operation.created'
          | 'dlq_operation.succeeded'
          | 'dlq_operation.cancelled'
          | 'schedule.created'
          | 'schedule.updated'
          | 'schedule.workflow_left'
          | 'schedule.workflow_joined'
          | 'schedule.cancelled'
          | 'schedule.attempted'
          | 'schedule.fired'
          | 'schedule.failed'
          | 'schedule.retried'
          | 'checkpoint.created'
          | 'checkpoint.voted'
          | 'checkpoint.escalated'
          | 'checkpoint.commented'
          | 'checkpoint.approved'
          | 'checkpoint.rejected'
          | 'checkpoint.expired'
          | 'checkpoint.cancelled'
          | 'checkpoint.revoked'
          | 'callback.attempted'
          | 'callback.delivered'
          | 'callback.failed'
          | 'callback.redriven'
          | 'approval_key.used'
          | 'inbox.created'
          | 'inbox.deleted'
          | 'message.received'
          | 'message.forwarded'
          | 'message.forward_failed'
          | 'message.replayed'
          | 'effect.claimed'
          | 'effect.proposed'
          | 'effect.approved'
          | 'effect.rejected'
          | 'effect.started'
          | 'effect.extended'
          | 'effect.succeeded'
          | 'effect.failed'
          | 'effect.retried'
          | 'effect.unknown'
          | 'effect.resolved'
          | 'effect_policy.updated'
          | 'effect_policy.deleted'
          | 'subscription.created'
          | 'subscription.confirmed'
          | 'subscription.updated'
          | 'subscription.paused'
          | 'subscription.resumed'
          | 'subscription.replayed'
          | 'subscription.deleted'
          | 'seal.restored'
          | 'seal.checkpoint'
          | 'audit.*'
          | 'dlq.*'
          | 'tenant.*'
          | 'agent.*'
          | 'approval_key.*'
          | 'kv.*'
          | 'dlq_operation.*'
          | 'schedule.*'
          | 'checkpoint.*'
          | 'callback.*'
          | 'inbox.*'
          | 'message.*'
          | 'effect.*'
          | 'effect_policy.*'
          | 'subscription.*'
          | 'seal.*'
          | null
          | undefined
        subject?: string | null | undefined
        workflow_id?: string | null | undefined
      }>
      /** The number of the last event seen; default: begins now. */
      after?: number | undefined
      /** Seconds to hold the request while no event has come; default 0. */
      wait_seconds?: number | undefined
    }
    answer: Awaited
  }
  tick: {
    params: object
    query: object
    body: object
    answer: TickSummary
  }
  advanceClock: {
    params: object
    query: object
    body: {
      /** How far to move it, to the millisecond. 259200 is three days; 0 only finishes what is due now. */
      seconds: number
    }
    answer: Advanced
  }
  getClock: {
    params: object
    query: object
    body: undefined
    answer: TestClock
  }
  livez: {
    params: object
    query: object
    body: undefined
    answer: Liveness
  }
  openapi: {
    params: object
    query: object
    body: undefined
    answer: Record<string, unknown>
  }
  readyz: {
    params: object
    query: {
      /** Adds version, engine, schema version and durability settings. */
      verbose?: string | undefined
    }
    body: undefined
    answer: Readiness
  }
}

export interface OperationSpec {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** Takes an Idempotency-Key. */
  readonly creates?: true
  /** Answers `{success, data}`. */
  readonly wrapped?: true
  /** An answer may have no body. */
  readonly empty?: true
  /** A member of every answer with a body. */
  readonly has?: string
}

export const operations: Readonly<Record<keyof Operations, OperationSpec>> = {
  createTenant: { method: 'POST', path: '/v1/tenants', creates: true, has: 'tenant_id' },
  deleteTenant: { method: 'DELETE', path: '/v1/tenants/{tenant_id}', has: 'tenant_id' },
  getTenant: { method: 'GET', path: '/v1/tenants/{tenant_id}', has: 'tenant_id' },
  freezeTenant: { method: 'POST', path: '/v1/tenants/{tenant_id}/freeze', has: 'tenant_id' },
  restoreTenant: { method: 'POST', path: '/v1/tenants/{tenant_id}/restore', has: 'tenant_id' },
  resumeTenant: { method: 'POST', path: '/v1/tenants/{tenant_id}/resume', has: 'tenant_id' },
  rotateSigningSecret: {
    method: 'POST',
    path: '/v1/tenants/{tenant_id}/rotate-signing-secret',
    has: 'tenant_id',
  },
  rotateTenantKey: { method: 'POST', path: '/v1/tenants/{tenant_id}/rotate-key', has: 'tenant_id' },
  getUsage: { method: 'GET', path: '/v1/tenants/{tenant_id}/usage', has: 'from' },
  createAgent: { method: 'POST', path: '/v1/agents', creates: true, has: 'agent_id' },
  listAgents: { method: 'GET', path: '/v1/agents', has: 'items' },
  deleteAgent: { method: 'DELETE', path: '/v1/agents/{agent_id}', empty: true },
  getAgent: { method: 'GET', path: '/v1/agents/{agent_id}', has: 'agent_id' },
  updateAgent: { method: 'PATCH', path: '/v1/agents/{agent_id}', has: 'agent_id' },
  pauseAgent: { method: 'POST', path: '/v1/agents/{agent_id}/pause', has: 'agent_id' },
  resumeAgent: { method: 'POST', path: '/v1/agents/{agent_id}/resume', has: 'agent_id' },
  rotateAgentKey: { method: 'POST', path: '/v1/agents/{agent_id}/rotate-key', has: 'agent_id' },
  createApprovalKey: { method: 'POST', path: '/v1/approval-keys', creates: true, has: 'approval_key_id' },
  listApprovalKeys: { method: 'GET', path: '/v1/approval-keys', has: 'items' },
  deleteApprovalKey: { method: 'DELETE', path: '/v1/approval-keys/{approval_key_id}', empty: true },
  deleteValue: { method: 'DELETE', path: '/v1/kv/{namespace}/{key}', empty: true },
  getValue: { method: 'GET', path: '/v1/kv/{namespace}/{key}', has: 'namespace' },
  putValue: { method: 'PUT', path: '/v1/kv/{namespace}/{key}', has: 'namespace' },
  getNamespace: { method: 'GET', path: '/v1/namespaces/{namespace}', has: 'namespace' },
  updateNamespace: { method: 'PUT', path: '/v1/namespaces/{namespace}', has: 'namespace' },
  getNamespaceKey: { method: 'GET', path: '/v1/namespaces/{namespace}/keys/{key}', has: 'namespace' },
  listKeys: { method: 'GET', path: '/v1/kv/{namespace}', has: 'items' },
  listNamespaceKeys: { method: 'GET', path: '/v1/namespaces/{namespace}/keys', has: 'items' },
  listNamespaces: { method: 'GET', path: '/v1/namespaces', has: 'items' },
  appendEntry: { method: 'POST', path: '/v1/audit', creates: true, has: 'id' },
  listEntries: { method: 'GET', path: '/v1/audit', has: 'items' },
  getEntry: { method: 'GET', path: '/v1/audit/{id}', has: 'id' },
  suggestEntries: { method: 'GET', path: '/v1/audit/suggestions/{field}', has: 'items' },
  cancelOperation: { method: 'POST', path: '/v1/dlq/operations/{id}/cancel', has: 'id' },
  captureItem: { method: 'POST', path: '/v1/dlq', creates: true, has: 'id' },
  listItems: { method: 'GET', path: '/v1/dlq', has: 'items' },
  claimItem: { method: 'POST', path: '/v1/dlq/{id}/claim', has: 'id' },
  claimOldestItem: { method: 'POST', path: '/v1/dlq/claim', empty: true, has: 'id' },
  deleteItem: { method: 'DELETE', path: '/v1/dlq/{id}', empty: true },
  getItem: { method: 'GET', path: '/v1/dlq/{id}', has: 'id' },
  discardItems: { method: 'POST', path: '/v1/dlq/discard', creates: true, has: 'matched' },
  extendItem: { method: 'POST', path: '/v1/dlq/{id}/extend', has: 'id' },
  failItem: { method: 'POST', path: '/v1/dlq/{id}/fail', has: 'id' },
  getOperation: { method: 'GET', path: '/v1/dlq/operations/{id}', has: 'id' },
  listCauses: { method: 'GET', path: '/v1/dlq/causes', has: 'items' },
  listOperationItems: { method: 'GET', path: '/v1/dlq/operations/{id}/items', has: 'items' },
  listOperations: { method: 'GET', path: '/v1/dlq/operations', has: 'items' },
  redriveItem: { method: 'POST', path: '/v1/dlq/{id}/redrive', creates: true, has: 'id' },
  redriveItems: { method: 'POST', path: '/v1/dlq/redrive', creates: true, has: 'matched' },
  releaseItem: { method: 'POST', path: '/v1/dlq/{id}/release', has: 'id' },
  resolveItem: { method: 'POST', path: '/v1/dlq/{id}/resolve', has: 'id' },
  cancelSchedule: { method: 'DELETE', path: '/v1/schedules/{id}', empty: true },
  getSchedule: { method: 'GET', path: '/v1/schedules/{id}', has: 'id' },
  updateSchedule: { method: 'PATCH', path: '/v1/schedules/{id}', has: 'id' },
  createSchedule: { method: 'POST', path: '/v1/schedules', creates: true, has: 'id' },
  listSchedules: { method: 'GET', path: '/v1/schedules', has: 'items' },
  listScheduleAttempts: { method: 'GET', path: '/v1/schedules/{id}/attempts', has: 'items' },
  retrySchedule: { method: 'POST', path: '/v1/schedules/{id}/retry', creates: true, has: 'id' },
  approveCheckpoint: { method: 'POST', path: '/v1/checkpoints/{id}/approve', has: 'id' },
  cancelCheckpoint: { method: 'DELETE', path: '/v1/checkpoints/{id}', empty: true },
  getCheckpoint: { method: 'GET', path: '/v1/checkpoints/{id}', has: 'id' },
  createCheckpoint: { method: 'POST', path: '/v1/checkpoints', creates: true, has: 'id' },
  listCheckpoints: { method: 'GET', path: '/v1/checkpoints', has: 'items' },
  createComment: { method: 'POST', path: '/v1/checkpoints/{id}/comments', creates: true, has: 'id' },
  listComments: { method: 'GET', path: '/v1/checkpoints/{id}/comments', has: 'items' },
  getApproval: { method: 'GET', path: '/v1/approvals/{checkpoint_id}', has: 'checkpoint_id' },
  listCheckpointAttempts: { method: 'GET', path: '/v1/checkpoints/{id}/attempts', has: 'items' },
  listVotes: { method: 'GET', path: '/v1/checkpoints/{id}/votes', has: 'items' },
  rejectCheckpoint: { method: 'POST', path: '/v1/checkpoints/{id}/reject', has: 'id' },
  revokeApproval: { method: 'POST', path: '/v1/checkpoints/{id}/revoke', has: 'id' },
  createInbox: { method: 'POST', path: '/api/webhook', creates: true, wrapped: true, has: 'id' },
  listInboxes: { method: 'GET', path: '/api/webhook', wrapped: true, has: 'items' },
  deleteInbox: { method: 'DELETE', path: '/api/webhook/{id}', wrapped: true, has: 'deleted' },
  getInbox: { method: 'GET', path: '/api/webhook/{id}', wrapped: true, has: 'inbox' },
  listMessages: { method: 'GET', path: '/api/webhook/{id}/messages', wrapped: true, has: 'items' },
  replayMessage: {
    method: 'POST',
    path: '/api/webhook/{id}/messages/{message_id}/replay',
    creates: true,
    wrapped: true,
    has: 'id',
  },
  searchMessages: { method: 'GET', path: '/api/webhook/{id}/search', wrapped: true, has: 'items' },
  checkRateLimit: { method: 'POST', path: '/api/rate-limit/check', wrapped: true, has: 'allowed' },
  checkRateLimitByQuery: { method: 'GET', path: '/api/rate-limit/check', wrapped: true, has: 'allowed' },
  getRateLimit: { method: 'GET', path: '/api/rate-limit/{key}', wrapped: true, has: 'key' },
  getRateLimitNamedReset: { method: 'GET', path: '/api/rate-limit/reset', wrapped: true, has: 'key' },
  resetRateLimit: { method: 'POST', path: '/api/rate-limit/reset', wrapped: true, has: 'key' },
  listRateLimits: { method: 'GET', path: '/api/rate-limit', wrapped: true, has: 'items' },
  claimEffect: { method: 'POST', path: '/v1/effects', has: 'id' },
  listEffects: { method: 'GET', path: '/v1/effects', has: 'items' },
  extendEffect: { method: 'POST', path: '/v1/effects/{id}/extend', has: 'id' },
  failEffect: { method: 'POST', path: '/v1/effects/{id}/fail', has: 'id' },
  getEffect: { method: 'GET', path: '/v1/effects/{id}', has: 'id' },
  resolveEffect: { method: 'POST', path: '/v1/effects/{id}/resolve', has: 'id' },
  startEffect: { method: 'POST', path: '/v1/effects/{id}/start', has: 'id' },
  succeedEffect: { method: 'POST', path: '/v1/effects/{id}/succeed', has: 'id' },
  deleteEffectPolicy: { method: 'DELETE', path: '/v1/effect-policies/{type}', empty: true },
  getEffectPolicy: { method: 'GET', path: '/v1/effect-policies/{type}', has: 'type' },
  setEffectPolicy: { method: 'PUT', path: '/v1/effect-policies/{type}', has: 'type' },
  listEffectPolicies: { method: 'GET', path: '/v1/effect-policies', has: 'items' },
  getWorkflow: { method: 'GET', path: '/v1/workflows/{workflow_id}', has: 'workflow_id' },
  listWorkflows: { method: 'GET', path: '/v1/workflows', has: 'items' },
  createSubscription: { method: 'POST', path: '/v1/subscriptions', creates: true, has: 'id' },
  listSubscriptions: { method: 'GET', path: '/v1/subscriptions', has: 'items' },
  deleteSubscription: { method: 'DELETE', path: '/v1/subscriptions/{id}', empty: true },
  getSubscription: { method: 'GET', path: '/v1/subscriptions/{id}', has: 'id' },
  updateSubscription: { method: 'PATCH', path: '/v1/subscriptions/{id}', has: 'id' },
  listSubscriptionAttempts: { method: 'GET', path: '/v1/subscriptions/{id}/attempts', has: 'items' },
  replaySubscription: { method: 'POST', path: '/v1/subscriptions/{id}/replay', has: 'id' },
  confirmMail: { method: 'POST', path: '/v1/mail/confirm', has: 'confirmed' },
  unsubscribeMail: { method: 'POST', path: '/v1/mail/unsubscribe', has: 'unsubscribed' },
  getBundle: { method: 'GET', path: '/v1/seal/bundle', has: 'format' },
  getConsistencyProof: { method: 'GET', path: '/v1/seal/consistency', has: 'from' },
  getInclusionProof: { method: 'GET', path: '/v1/seal/proof', has: 'event' },
  getSeal: { method: 'GET', path: '/v1/seal', has: 'origin' },
  listSealCheckpoints: { method: 'GET', path: '/v1/seal/checkpoints', has: 'items' },
  listEvents: { method: 'GET', path: '/v1/events', has: 'items' },
  waitForEvent: { method: 'POST', path: '/v1/wait', has: 'event' },
  tick: { method: 'POST', path: '/v1/tick', has: 'schedules' },
  advanceClock: { method: 'POST', path: '/v1/clock/advance', has: 'now' },
  getClock: { method: 'GET', path: '/v1/clock', has: 'now' },
  livez: { method: 'GET', path: '/livez', has: 'status' },
  openapi: { method: 'GET', path: '/openapi.json' },
  readyz: { method: 'GET', path: '/readyz', has: 'status' },
}

/** The kind of failure that a code is, for scripts: the command line has an exit code for each. */
export type ExitClass =
  | 'conflict'
  | 'forbidden'
  | 'limited'
  | 'not_found'
  | 'unavailable'
  | 'unexpected'
  | 'usage'

export const error_rows: Readonly<Record<ErrorCode, { readonly next: string; readonly exit: ExitClass }>> = {
  DELETE_REQUIRES_CONFIRM: { next: 'Send exactly the body {"confirm": "DELETE ALL DATA"}.', exit: 'usage' },
  INVALID_JSON: { next: 'Check what the client really sends, and send valid JSON.', exit: 'usage' },
  VALIDATION_FAILED: {
    next: 'Correct what details.issues names, then send the request again.',
    exit: 'usage',
  },
  UNAUTHORIZED: {
    next: 'Use a valid key, or ask the operator. The same request fails again.',
    exit: 'forbidden',
  },
  QUOTA_EXCEEDED: {
    next: 'Remove what is not needed, or ask the operator for a larger plan. A monthly quota starts again with the next month.',
    exit: 'limited',
  },
  AGENT_PAUSED: {
    next: 'Stop changing things and wait. The admin resumes the agent; until then the same request fails again.',
    exit: 'forbidden',
  },
  AGENT_READ_ONLY: {
    next: 'Only read, or ask the admin for another mode. The same request fails again.',
    exit: 'forbidden',
  },
  EFFECT_APPROVAL_REQUIRED: {
    next: 'POST the effect again, without a checkpoint_id: that asks for its approval.',
    exit: 'forbidden',
  },
  EFFECT_REJECTED: {
    next: 'Do not do it. If it is still wanted, ask for a new approval; a refused effect needs another key.',
    exit: 'forbidden',
  },
  FORBIDDEN: {
    next: 'Use a key of the kind that may do this, or ask the operator. The same request fails again.',
    exit: 'forbidden',
  },
  NAMESPACE_FORBIDDEN: { next: 'Choose a namespace or key that does not begin with __.', exit: 'forbidden' },
  NOT_AN_APPROVER: {
    next: 'Ask one of its approvers, or wait until it is escalated to you.',
    exit: 'forbidden',
  },
  TENANT_FROZEN: {
    next: 'Stop changing things and wait. The admin resumes the tenant; until then the same request fails again.',
    exit: 'forbidden',
  },
  TENANT_PENDING_DELETION: {
    next: 'Restore the tenant with its admin key, or stop: nothing else works.',
    exit: 'forbidden',
  },
  AGENT_NOT_FOUND: { next: 'List the agents to find the right name.', exit: 'not_found' },
  APPROVAL_KEY_NOT_FOUND: { next: 'List the approval keys to find the right id.', exit: 'not_found' },
  AUDIT_ENTRY_NOT_FOUND: { next: 'List the entries to find the right id.', exit: 'not_found' },
  CHECKPOINT_NOT_FOUND: { next: 'List the checkpoints to find the right id.', exit: 'not_found' },
  DLQ_NOT_FOUND: { next: 'List the dead letters to find the right id.', exit: 'not_found' },
  EFFECT_NOT_FOUND: { next: 'List the effects to find the right id.', exit: 'not_found' },
  EFFECT_POLICY_NOT_FOUND: { next: 'List the policies to find the right type.', exit: 'not_found' },
  INBOX_NOT_FOUND: { next: 'List the inboxes to find the right id, or create a new one.', exit: 'not_found' },
  KEY_NOT_FOUND: {
    next: 'Treat the key as absent, put a first value, or list the keys that exist.',
    exit: 'not_found',
  },
  LINK_NOT_FOUND: { next: 'Ask for a new subscription; its email will have a new link.', exit: 'not_found' },
  MESSAGE_NOT_FOUND: { next: 'List the messages of the inbox to find the right id.', exit: 'not_found' },
  OPERATION_NOT_FOUND: { next: 'List the operations to find the right id.', exit: 'not_found' },
  ROUTE_NOT_FOUND: {
    next: 'Check the path and the address of the service, and that the service is as new as the client.',
    exit: 'not_found',
  },
  SCHEDULE_NOT_FOUND: { next: 'List the schedules to find the right id.', exit: 'not_found' },
  SEAL_EVENT_NOT_FOUND: {
    next: 'Give the number of the event, seq, or leave out the size.',
    exit: 'not_found',
  },
  SEAL_SIZE_UNKNOWN: {
    next: 'Compare the size with details.size. If you have a checkpoint of that size, events are missing.',
    exit: 'not_found',
  },
  SUBSCRIPTION_NOT_FOUND: { next: 'List the subscriptions to find the right id.', exit: 'not_found' },
  WORKFLOW_NOT_FOUND: {
    next: 'List the workflows by the beginning of the id. A workflow exists from its first event on.',
    exit: 'not_found',
  },
  METHOD_NOT_ALLOWED: {
    next: 'Use a method that the Allow header lists, and check that the service is as new as the client.',
    exit: 'unexpected',
  },
  REQUEST_TIMEOUT: {
    next: 'Send the request again, over a faster connection or with a smaller body.',
    exit: 'unavailable',
  },
  AGENT_ID_TAKEN: { next: 'Choose another name, or rotate the key of the existing agent.', exit: 'conflict' },
  ALREADY_CLAIMED: { next: 'Claim another one, or wait until locked_until.', exit: 'conflict' },
  ALREADY_VOTED: {
    next: 'Wait for the votes of others; read the checkpoint to see how many are missing.',
    exit: 'conflict',
  },
  CHECKPOINT_ALREADY_RESOLVED: {
    next: 'Read the checkpoint to see who decided what, and act on that.',
    exit: 'conflict',
  },
  CLOCK_ADVANCING: {
    next: 'Wait until the other request has ended. Tests that move the time in parallel each need their own service.',
    exit: 'conflict',
  },
  EFFECT_APPROVERS_GONE: {
    next: 'Have an admin set the policy again, with approval keys that exist.',
    exit: 'conflict',
  },
  EFFECT_IN_FLIGHT: {
    next: 'Wait until its lease ends and ask again: the answer then says what became of it.',
    exit: 'conflict',
  },
  EFFECT_NOT_HELD: {
    next: 'Stop: do not carry out the effect. Read it to see what became of it. A new claim takes a new lease_token.',
    exit: 'conflict',
  },
  EFFECT_UNKNOWN: {
    next: 'Look at the target of the effect, and have an admin resolve it: succeeded, failed or retry.',
    exit: 'conflict',
  },
  IDEMPOTENCY_IN_PROGRESS: {
    next: 'Wait for Retry-After seconds, then repeat the same request to get its answer.',
    exit: 'conflict',
  },
  INVALID_STATE: { next: 'Read it again, and decide by its current status.', exit: 'conflict' },
  LOCK_NOT_HELD: {
    next: 'Stop working on it: somebody else is working on it. Claim it again when its lock is free.',
    exit: 'conflict',
  },
  TENANT_NAME_TAKEN: { next: 'Choose another name.', exit: 'conflict' },
  TOO_MANY_COMMENTS: { next: 'Decide it, or continue the discussion elsewhere.', exit: 'conflict' },
  TOO_MANY_NAMESPACES: { next: 'Turn off the events of another namespace.', exit: 'conflict' },
  TOO_MANY_OPERATIONS: { next: 'Wait until one has ended, or cancel one.', exit: 'conflict' },
  VERSION_MISMATCH: {
    next: 'Read the value again, decide by what it says now, and write with the version that you read.',
    exit: 'conflict',
  },
  VOTE_DIFFERS: { next: 'Read the request again; approve what it now says, or reject it.', exit: 'conflict' },
  INBOX_EXPIRED: { next: 'Create a new inbox, and send to its URL.', exit: 'not_found' },
  PAYLOAD_TOO_LARGE: {
    next: 'Send less: store large data elsewhere, and send a reference to it.',
    exit: 'usage',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    next: 'Send JSON without compression, and check that nothing on the way changes the request.',
    exit: 'unexpected',
  },
  ANSWER_INVALID: {
    next: 'Correct the answer as details.issues says, and approve again. Nothing was changed.',
    exit: 'usage',
  },
  EFFECT_KEY_REUSED: {
    next: 'Send the exact bytes that were sent first, or use another key for another effect.',
    exit: 'usage',
  },
  IDEMPOTENCY_KEY_REUSED: { next: 'Use a new Idempotency-Key for a new request.', exit: 'usage' },
  NOT_EDITABLE: {
    next: 'Approve it as it is, or reject it and say in the reason what should be asked instead.',
    exit: 'usage',
  },
  RATE_LIMITED: { next: 'Wait for Retry-After seconds, then send the request again.', exit: 'limited' },
  INTERNAL: {
    next: 'Repeat it once, a creation with the same Idempotency-Key. If it fails again, report the request id to the operator.',
    exit: 'unexpected',
  },
  SEAL_BROKEN: {
    next: 'Ask the operator of the service to compare the database with a backup.',
    exit: 'unexpected',
  },
  OUTCOME_UNKNOWN: {
    next: 'It may or may not have happened. Repeat it with the same Idempotency-Key, or read the current state first.',
    exit: 'unavailable',
  },
  QUARANTINED: {
    next: 'Wait until the operator has run `admin release`; until then the same request fails again.',
    exit: 'unavailable',
  },
  UNAVAILABLE: { next: 'Wait for Retry-After seconds, then send the request again.', exit: 'unavailable' },
  STORAGE_FULL: { next: 'Ask the operator to free disk space. Reads still work.', exit: 'unavailable' },
}
