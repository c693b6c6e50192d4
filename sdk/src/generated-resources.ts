// Made from openapi.json by scripts/clients.ts: do not edit.

import { type Body, ifMatch, listOf, offsetListOf, type Query, split } from './options.ts'
import type { Pages } from './pages.ts'
import type { CallOptions, CreateOptions, Transport } from './transport.ts'
import type {
  Advanced,
  Agent,
  Approval,
  ApprovalKey,
  Attempt,
  AuditEntry,
  AuditSuggestion,
  Checkpoint,
  ClaimedDeadLetter,
  ClaimedEffect,
  Comment,
  CreatedAgent,
  CreatedApprovalKey,
  CreatedInbox,
  CreatedTenant,
  DeadLetter,
  DeadLetterOperation,
  DeadLetterOperationItem,
  DeletedTenant,
  Effect,
  EffectPolicy,
  Entry,
  ExtendedDeadLetter,
  InboxDetail,
  ListedDeadLetter,
  ListedEffect,
  ListedInbox,
  ListedKey,
  Liveness,
  MatchedDeadLetters,
  Message,
  Namespace,
  Operations,
  PutResult,
  RateLimitAllowed,
  RateLimitBlocked,
  RateLimitCounter,
  RateLimitReset,
  RateLimitStatus,
  Readiness,
  RotatedAgent,
  RotatedTenant,
  Schedule,
  SealBundle,
  SealCheckpoint,
  SealConsistency,
  SealKeptCheckpoint,
  SealProof,
  Subscription,
  SubscriptionAttempt,
  Tenant,
  TenantWithSecret,
  TestClock,
  TickSummary,
  Vote,
  Workflow,
  WorkflowTimeline,
} from './types.ts'

class Resource {
  /** @internal */
  protected readonly transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.transport = transport
  }
}

export class Tenants extends Resource {
  /**
   * Create a tenant. Needs no key. The admin key and the signing secret are shown in this answer only.
   * Throws TENANT_NAME_TAKEN, FORBIDDEN, RATE_LIMITED.
   */
  create(body: Body<'createTenant'>, options: CreateOptions = {}): Promise<CreatedTenant> {
    return this.transport.call('createTenant', { body }, options)
  }

  /** Read the tenant and its use of its quotas. `me` is the tenant of the key. */
  get(tenant_id: string, options: CallOptions = {}): Promise<Tenant> {
    return this.transport.call('getTenant', { params: { tenant_id } }, options)
  }

  /**
   * Schedule the tenant for deletion, 30 days from now. Needs `confirm: "DELETE ALL DATA"`. All data of
   * the tenant is removed after 30 days. Throws DELETE_REQUIRES_CONFIRM.
   */
  delete(tenant_id: string, body: Body<'deleteTenant'>, options: CallOptions = {}): Promise<DeletedTenant> {
    return this.transport.call('deleteTenant', { params: { tenant_id }, body }, options)
  }

  /**
   * Stop everything: agents may change nothing, and only subscriptions deliver. Takes effect on all
   * nodes within a second. A tenant that is already frozen stays as it is.
   */
  freeze(tenant_id: string, given: Body<'freezeTenant'> & CallOptions = {}): Promise<Tenant> {
    const [body, options] = split(given)
    return this.transport.call('freezeTenant', { params: { tenant_id }, body }, options)
  }

  /**
   * Cancel the deletion. Possible within 30 days of the deletion. Keys and data are as they were. Throws
   * INVALID_STATE.
   */
  restore(tenant_id: string, options: CallOptions = {}): Promise<Tenant> {
    return this.transport.call('restoreTenant', { params: { tenant_id } }, options)
  }

  /**
   * End the freeze. Locks, leases and timeouts are moved by the time that the tenant was frozen; what
   * fell due runs now. `frozen_at` is still set in the answer when there is so much to move that it
   * takes a few more seconds. With `frozen_at` in the body, a different freeze is left alone: 409.
   * Throws INVALID_STATE.
   */
  resume(tenant_id: string, given: Body<'resumeTenant'> & CallOptions = {}): Promise<Tenant> {
    const [body, options] = split(given)
    return this.transport.call('resumeTenant', { params: { tenant_id }, body }, options)
  }

  /**
   * Get a new signing secret; the old one also signs for another 24 hours. Both secrets sign for 24
   * hours: verify callbacks with both.
   */
  rotateSigningSecret(tenant_id: string, options: CallOptions = {}): Promise<TenantWithSecret> {
    return this.transport.call('rotateSigningSecret', { params: { tenant_id } }, options)
  }

  /** Get a new admin key. The old key stops working at once, or after `grace_seconds`. */
  rotateKey(tenant_id: string, given: Body<'rotateTenantKey'> & CallOptions = {}): Promise<RotatedTenant> {
    const [body, options] = split(given)
    return this.transport.call('rotateTenantKey', { params: { tenant_id }, body }, options)
  }

  /**
   * Count the calls of each hour or day, by feature. Calls and failures of each step, by feature. Every
   * step of the range is listed, even one without calls.
   */
  usage(tenant_id: string, given: Query<'getUsage'> = {}): Promise<Operations['getUsage']['answer']> {
    const [query, options] = split(given)
    return this.transport.call('getUsage', { params: { tenant_id }, query }, options)
  }
}

export class Agents extends Resource {
  /**
   * Create an agent and its key. The key is shown in this answer only. Throws AGENT_ID_TAKEN,
   * QUOTA_EXCEEDED.
   */
  create(body: Body<'createAgent'>, options: CreateOptions = {}): Promise<CreatedAgent> {
    return this.transport.call('createAgent', { body }, options)
  }

  /** List agents, newest first. Keys are masked. */
  list(query: Query<'listAgents'> = {}): Pages<Agent> {
    return listOf(this.transport, 'listAgents', {}, query)
  }

  /**
   * Read an agent, its key masked. Needs the admin key or the key of any agent of the tenant. Throws
   * AGENT_NOT_FOUND.
   */
  get(agent_id: string, options: CallOptions = {}): Promise<Agent> {
    return this.transport.call('getAgent', { params: { agent_id } }, options)
  }

  /** Change what an agent may do. Takes effect on all nodes within a second. Throws AGENT_NOT_FOUND. */
  update(agent_id: string, body: Body<'updateAgent'>, options: CallOptions = {}): Promise<Agent> {
    return this.transport.call('updateAgent', { params: { agent_id }, body }, options)
  }

  /**
   * Remove an agent; its keys stop working, its records stay. Its keys are refused on all nodes within a
   * second. Its values, entries and schedules stay, under its id. Throws AGENT_NOT_FOUND.
   */
  delete(agent_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteAgent', { params: { agent_id } }, options)
  }

  /**
   * Stop one agent: it may change nothing. Takes effect on all nodes within a second. An agent that is
   * already paused stays as it is. Throws AGENT_NOT_FOUND.
   */
  pause(agent_id: string, given: Body<'pauseAgent'> & CallOptions = {}): Promise<Agent> {
    const [body, options] = split(given)
    return this.transport.call('pauseAgent', { params: { agent_id }, body }, options)
  }

  /**
   * Resume a paused agent. Takes effect on all nodes within a second. An agent that is not paused stays
   * as it is. Throws AGENT_NOT_FOUND.
   */
  resume(agent_id: string, options: CallOptions = {}): Promise<Agent> {
    return this.transport.call('resumeAgent', { params: { agent_id } }, options)
  }

  /**
   * Get a new key for an agent. The old key stops working at once, or after `grace_seconds`. Throws
   * AGENT_NOT_FOUND.
   */
  rotateKey(agent_id: string, given: Body<'rotateAgentKey'> & CallOptions = {}): Promise<RotatedAgent> {
    const [body, options] = split(given)
    return this.transport.call('rotateAgentKey', { params: { agent_id }, body }, options)
  }
}

export class ApprovalKeys extends Resource {
  /**
   * Create a key that may approve and reject checkpoints, and nothing else. With `checkpoint_id` the key
   * can decide only that checkpoint, and the answer has the URL of a page for it. The key is shown in
   * this answer only. Throws CHECKPOINT_NOT_FOUND, QUOTA_EXCEEDED.
   */
  create(given: Body<'createApprovalKey'> & CreateOptions = {}): Promise<CreatedApprovalKey> {
    const [body, options] = split(given)
    return this.transport.call('createApprovalKey', { body }, options)
  }

  /**
   * List approval keys, newest first, masked. Includes those bound to a checkpoint. Each has the time
   * when it was last used.
   */
  list(query: Query<'listApprovalKeys'> = {}): Pages<ApprovalKey> {
    return listOf(this.transport, 'listApprovalKeys', {}, query)
  }

  /**
   * Revoke an approval key. The key is refused on all nodes within a second. Throws
   * APPROVAL_KEY_NOT_FOUND.
   */
  delete(approval_key_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteApprovalKey', { params: { approval_key_id } }, options)
  }
}

export class Kv extends Resource {
  /**
   * Read a value and its version. The value is the exact JSON text that was put. With `If-None-Match`,
   * 304 while the version is the same. Throws KEY_NOT_FOUND, VERSION_MISMATCH, NAMESPACE_FORBIDDEN.
   */
  get(
    namespace: string,
    key: string,
    { if_version, ...options }: CallOptions & { if_version?: number | undefined } = {},
  ): Promise<Entry> {
    return this.transport.call(
      'getValue',
      { params: { namespace, key }, headers: ifMatch(if_version) },
      options,
    )
  }

  /**
   * Write a value, or only if its version is the expected one. Compare and set with `cas_version`,
   * `If-Match` or `If-None-Match`: 409, or 412 for the headers, when the version differs. `ttl_seconds`
   * counts from now. Throws VERSION_MISMATCH, NAMESPACE_FORBIDDEN, QUOTA_EXCEEDED.
   */
  put(
    namespace: string,
    key: string,
    value: Body<'putValue'>['value'],
    given: Omit<Body<'putValue'>, 'value'> & CallOptions = {},
  ): Promise<PutResult> {
    const [body, options] = split(given)
    return this.transport.call('putValue', { params: { namespace, key }, body: { ...body, value } }, options)
  }

  /**
   * Remove a key. With `If-Match`, only that version. Version numbers continue when the key is written
   * again. Throws KEY_NOT_FOUND, VERSION_MISMATCH, NAMESPACE_FORBIDDEN.
   */
  delete(
    namespace: string,
    key: string,
    { if_version, ...options }: CallOptions & { if_version?: number | undefined } = {},
  ): Promise<undefined> {
    return this.transport.call(
      'deleteValue',
      { params: { namespace, key }, headers: ifMatch(if_version) },
      options,
    )
  }

  /**
   * List the keys of a namespace in bytewise order. Keys with their versions, without values. `prefix`
   * narrows the list. Throws NAMESPACE_FORBIDDEN.
   */
  list(namespace: string, query: Query<'listKeys'> = {}): Pages<ListedKey> {
    return listOf(this.transport, 'listKeys', { namespace }, query)
  }
}

export class Namespaces extends Resource {
  /**
   * Read the settings of a namespace. Works even for one that holds no key. An agent may ask about those
   * that it may read. Throws NAMESPACE_FORBIDDEN.
   */
  settings(namespace: string, options: CallOptions = {}): Promise<Namespace> {
    return this.transport.call('getNamespace', { params: { namespace } }, options)
  }

  /**
   * Turn events for the changes of keys in a namespace on or off. Answers once every node applies it:
   * after a second where nodes share a PostgreSQL. At most 100 namespaces of a tenant leave events.
   * Throws NAMESPACE_FORBIDDEN, TOO_MANY_NAMESPACES, QUOTA_EXCEEDED.
   */
  update(namespace: string, body: Body<'updateNamespace'>, options: CallOptions = {}): Promise<Namespace> {
    return this.transport.call('updateNamespace', { params: { namespace }, body }, options)
  }

  /**
   * Read a value and its version in any namespace. Needs the admin key, and reads the private namespaces
   * of agents as well. Throws KEY_NOT_FOUND, VERSION_MISMATCH, NAMESPACE_FORBIDDEN.
   */
  get(
    namespace: string,
    key: string,
    { if_version, ...options }: CallOptions & { if_version?: number | undefined } = {},
  ): Promise<Entry> {
    return this.transport.call(
      'getNamespaceKey',
      { params: { namespace, key }, headers: ifMatch(if_version) },
      options,
    )
  }

  /**
   * List the keys of any namespace, in bytewise order. Needs the admin key, and reads the private
   * namespaces of agents as well. Without values. Throws NAMESPACE_FORBIDDEN.
   */
  keys(namespace: string, query: Query<'listNamespaceKeys'> = {}): Pages<ListedKey> {
    return listOf(this.transport, 'listNamespaceKeys', { namespace }, query)
  }

  /**
   * List the namespaces that hold a key or leave events, in bytewise order. An agent sees those that it
   * may read; the admin key also sees the private ones of all agents.
   */
  list(query: Query<'listNamespaces'> = {}): Pages<Namespace> {
    return listOf(this.transport, 'listNamespaces', {}, query)
  }
}

export class Audit extends Resource {
  /**
   * Append an entry. Entries are numbered without gaps and never change. `metadata` is kept as the exact
   * text. Throws QUOTA_EXCEEDED.
   */
  append(body: Body<'appendEntry'>, options: CreateOptions = {}): Promise<AuditEntry> {
    return this.transport.call('appendEntry', { body }, options)
  }

  /**
   * List entries, newest first. All given filters must match. A page may be short, or even empty, before
   * the end: continue while there is a `next_cursor`.
   */
  list(query: Query<'listEntries'> = {}): Pages<AuditEntry> {
    return listOf(this.transport, 'listEntries', {}, query)
  }

  /** Read an entry. As it was appended: entries never change. Throws AUDIT_ENTRY_NOT_FOUND. */
  get(id: string, options: CallOptions = {}): Promise<AuditEntry> {
    return this.transport.call('getEntry', { params: { id } }, options)
  }

  /**
   * List the texts that a field has in the log, in bytewise order. Values to filter the list by, each
   * once, however many entries have it. For agent_id: the existing agents.
   */
  suggestions(
    field: 'workflow_id' | 'action' | 'actor' | 'agent_id',
    query: Query<'suggestEntries'> = {},
  ): Pages<AuditSuggestion> {
    return listOf(this.transport, 'suggestEntries', { field }, query)
  }
}

export class Dlq extends Resource {
  /**
   * Record a failure. The payload is kept as the exact text. `cause` groups it with others that failed
   * the same way. Throws QUOTA_EXCEEDED.
   */
  create(body: Body<'captureItem'>, options: CreateOptions = {}): Promise<DeadLetter> {
    return this.transport.call('captureItem', { body }, options)
  }

  /**
   * List dead letters, newest first, without payloads. All given filters must match. A page may be
   * short, or even empty, before the end: continue while there is a `next_cursor`.
   */
  list(query: Query<'listItems'> = {}): Pages<ListedDeadLetter> {
    return listOf(this.transport, 'listItems', {}, query)
  }

  /**
   * Archive many failed items. Archives the failed items that match, oldest first. Returns at once; the
   * operation runs in the background. With `dry_run` it only counts. Throws QUOTA_EXCEEDED,
   * TOO_MANY_OPERATIONS.
   */
  discardMany(
    body: Body<'discardItems'>,
    options: CreateOptions = {},
  ): Promise<MatchedDeadLetters | DeadLetterOperation> {
    return this.transport.call('discardItems', { body }, options)
  }

  /**
   * Send what failed again. A schedule is sent again as a new schedule, and the callback of a decision
   * as itself; the item is then resolved, and `redriven_as` names what is sent. An item that an agent
   * recorded can be claimed again. Throws DLQ_NOT_FOUND, ALREADY_CLAIMED, INVALID_STATE, QUOTA_EXCEEDED.
   */
  redrive(id: string, options: CreateOptions = {}): Promise<DeadLetter> {
    return this.transport.call('redriveItem', { params: { id } }, options)
  }

  /**
   * Send many items again. Redrives the failed items that match, or with `status` the archived ones,
   * oldest first. Returns at once; the operation runs in the background, and waits while a quota is
   * full. With `dry_run` it only counts. Throws QUOTA_EXCEEDED, TOO_MANY_OPERATIONS.
   */
  redriveMany(
    body: Body<'redriveItems'>,
    options: CreateOptions = {},
  ): Promise<MatchedDeadLetters | DeadLetterOperation> {
    return this.transport.call('redriveItems', { body }, options)
  }

  /**
   * Cancel an operation; items already handled stay as they are. Cancelling an operation that has ended
   * changes nothing. Throws OPERATION_NOT_FOUND.
   */
  cancelOperation(id: string, options: CallOptions = {}): Promise<DeadLetterOperation> {
    return this.transport.call('cancelOperation', { params: { id } }, options)
  }

  /**
   * Lock a failed item. However many callers try, exactly one gets the lock. It expires after
   * `lock_seconds`. Throws DLQ_NOT_FOUND, ALREADY_CLAIMED, INVALID_STATE.
   */
  claim(id: string, given: Body<'claimItem'> & CallOptions = {}): Promise<ClaimedDeadLetter> {
    const [body, options] = split(given)
    return this.transport.call('claimItem', { params: { id }, body }, options)
  }

  /**
   * Lock the oldest failed item; 204 when there is none. However many callers try, each gets a different
   * item. The lock expires after `lock_seconds`.
   */
  async claimOldest(given: Body<'claimOldestItem'> & CallOptions = {}): Promise<ClaimedDeadLetter | null> {
    const [body, options] = split(given)
    return (await this.transport.call('claimOldestItem', { body }, options)) ?? null
  }

  /** Read a dead letter. Includes its payload, as the exact text that was captured. Throws DLQ_NOT_FOUND. */
  get(id: string, options: CallOptions = {}): Promise<DeadLetter> {
    return this.transport.call('getItem', { params: { id } }, options)
  }

  /** Remove a dead letter for good. Works in any status. Throws DLQ_NOT_FOUND. */
  delete(id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteItem', { params: { id } }, options)
  }

  /**
   * Extend the lock to lock_seconds from now. The lock then ends `lock_seconds` from now. Throws
   * DLQ_NOT_FOUND, INVALID_STATE, LOCK_NOT_HELD, TENANT_FROZEN, AGENT_PAUSED, AGENT_READ_ONLY.
   */
  extend(id: string, given: Body<'extendItem'> & CallOptions = {}): Promise<ExtendedDeadLetter> {
    const [body, options] = split(given)
    return this.transport.call('extendItem', { params: { id }, body }, options)
  }

  /**
   * Give up on the item; it is archived. Only for the agent that holds the lock. An archived item can be
   * sent again by a redrive. Throws DLQ_NOT_FOUND, INVALID_STATE, LOCK_NOT_HELD, TENANT_FROZEN,
   * AGENT_PAUSED, AGENT_READ_ONLY.
   */
  fail(id: string, given: Body<'failItem'> & CallOptions = {}): Promise<DeadLetter> {
    const [body, options] = split(given)
    return this.transport.call('failItem', { params: { id }, body }, options)
  }

  /**
   * Read the progress of an operation. Poll it until its status is no longer `running`. Throws
   * OPERATION_NOT_FOUND.
   */
  operation(id: string, options: CallOptions = {}): Promise<DeadLetterOperation> {
    return this.transport.call('getOperation', { params: { id } }, options)
  }

  /**
   * Group dead letters by cause, most frequent first. Ids and numbers are masked in a cause, so that
   * failures of one kind are counted together.
   */
  causes(given: Query<'listCauses'> = {}): Promise<Operations['listCauses']['answer']> {
    const [query, options] = split(given)
    return this.transport.call('listCauses', { query }, options)
  }

  /**
   * List the items of an operation with their outcomes, in the order they are handled. An item waits, is
   * done, was skipped, or has failed with an error code. Throws OPERATION_NOT_FOUND.
   */
  operationItems(id: string, query: Query<'listOperationItems'> = {}): Pages<DeadLetterOperationItem> {
    return listOf(this.transport, 'listOperationItems', { id }, query)
  }

  /**
   * List operations on many dead letters, newest first. Those that are running, and those that ended
   * within the last 7 days.
   */
  operations(query: Query<'listOperations'> = {}): Pages<DeadLetterOperation> {
    return listOf(this.transport, 'listOperations', {}, query)
  }

  /**
   * Release the lock; the item is failed again. Only for the agent that holds the lock. Any agent may
   * then claim the item. Throws DLQ_NOT_FOUND, INVALID_STATE, LOCK_NOT_HELD, TENANT_FROZEN,
   * AGENT_PAUSED, AGENT_READ_ONLY.
   */
  release(id: string, given: Body<'releaseItem'> & CallOptions = {}): Promise<DeadLetter> {
    const [body, options] = split(given)
    return this.transport.call('releaseItem', { params: { id }, body }, options)
  }

  /**
   * Mark the item as resolved. Works from any status; a repeat changes nothing. Throws DLQ_NOT_FOUND,
   * INVALID_STATE, LOCK_NOT_HELD, TENANT_FROZEN, AGENT_PAUSED, AGENT_READ_ONLY.
   */
  resolve(id: string, given: Body<'resolveItem'> & CallOptions = {}): Promise<DeadLetter> {
    const [body, options] = split(given)
    return this.transport.call('resolveItem', { params: { id }, body }, options)
  }
}

export class Schedules extends Resource {
  /**
   * Schedule one signed callback. At `fire_at` the payload is sent byte for byte, signed according to
   * Standard Webhooks, at least once and up to three times until the receiver answers 2xx. Throws
   * QUOTA_EXCEEDED.
   */
  create(body: Body<'createSchedule'>, options: CreateOptions = {}): Promise<Schedule> {
    return this.transport.call('createSchedule', { body }, options)
  }

  /** List schedules, newest first. Can be filtered by status and workflow. */
  list(query: Query<'listSchedules'> = {}): Pages<Schedule> {
    return listOf(this.transport, 'listSchedules', {}, query)
  }

  /**
   * Send a failed or fired schedule again, now, as a new schedule. The new one has the same URL, payload
   * and settings. It resolves the dead letter that the failure left, if any. Throws SCHEDULE_NOT_FOUND,
   * INVALID_STATE, ALREADY_CLAIMED, QUOTA_EXCEEDED.
   */
  retry(id: string, options: CreateOptions = {}): Promise<Schedule> {
    return this.transport.call('retrySchedule', { params: { id } }, options)
  }

  /** Read a schedule. Includes its status and its last outcome. Throws SCHEDULE_NOT_FOUND. */
  get(id: string, options: CallOptions = {}): Promise<Schedule> {
    return this.transport.call('getSchedule', { params: { id } }, options)
  }

  /**
   * Change a pending schedule; a new fire_at starts the attempts again. Only the given fields change.
   * The schedule must still be pending. Throws SCHEDULE_NOT_FOUND, INVALID_STATE, QUOTA_EXCEEDED.
   */
  update(id: string, body: Body<'updateSchedule'>, options: CallOptions = {}): Promise<Schedule> {
    return this.transport.call('updateSchedule', { params: { id }, body }, options)
  }

  /**
   * Cancel a pending schedule. The callback is no longer sent, and the schedule no longer counts against
   * the quota. Throws SCHEDULE_NOT_FOUND, INVALID_STATE.
   */
  cancel(id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('cancelSchedule', { params: { id } }, options)
  }

  /**
   * List the callback attempts of a schedule, newest first. Each has its status code, or the reason why
   * there is none. Throws SCHEDULE_NOT_FOUND.
   */
  attempts(id: string, query: Query<'listScheduleAttempts'> = {}): Pages<Attempt> {
    return listOf(this.transport, 'listScheduleAttempts', { id }, query)
  }
}

export class Checkpoints extends Resource {
  /**
   * Ask a human. A person decides it with the admin key or an approval key. The decision is sent to
   * `callback_url`, and the agent can wait for it. Without a decision the timeout settles it. Throws
   * QUOTA_EXCEEDED.
   */
  create(body: Body<'createCheckpoint'>, options: CreateOptions = {}): Promise<Checkpoint> {
    return this.transport.call('createCheckpoint', { body }, options)
  }

  /** List checkpoints, newest first. Can be filtered by status and workflow. */
  list(query: Query<'listCheckpoints'> = {}): Pages<Checkpoint> {
    return listOf(this.transport, 'listCheckpoints', {}, query)
  }

  /**
   * Comment on a checkpoint. Open to the agent that asked, its approvers and the admin, even once it is
   * settled. A comment decides nothing. Throws CHECKPOINT_NOT_FOUND, NOT_AN_APPROVER, TOO_MANY_COMMENTS,
   * QUOTA_EXCEEDED.
   */
  comment(id: string, body: Body<'createComment'>, options: CreateOptions = {}): Promise<Comment> {
    return this.transport.call('createComment', { params: { id }, body }, options)
  }

  /**
   * List the comments on a checkpoint, oldest first. Open to all who may read the checkpoint: every
   * agent of the tenant, the admin, and approval keys that are not bound to another one. Throws
   * CHECKPOINT_NOT_FOUND.
   */
  comments(id: string, query: Query<'listComments'> = {}): Pages<Comment> {
    return listOf(this.transport, 'listComments', { id }, query)
  }

  /**
   * Approve; the agent is called back. Needs the admin key or an approval key. Where more approvals are
   * required, the checkpoint stays `pending`. Throws CHECKPOINT_NOT_FOUND, CHECKPOINT_ALREADY_RESOLVED,
   * ALREADY_VOTED, NOT_AN_APPROVER, VOTE_DIFFERS, ANSWER_INVALID, NOT_EDITABLE.
   */
  approve(id: string, given: Body<'approveCheckpoint'> & CallOptions = {}): Promise<Checkpoint> {
    const [body, options] = split(given)
    return this.transport.call('approveCheckpoint', { params: { id }, body }, options)
  }

  /**
   * Read a checkpoint, or wait until it is settled. With `wait`, the answer comes when the checkpoint is
   * settled, or after that many seconds. Throws CHECKPOINT_NOT_FOUND.
   */
  get(id: string, given: Query<'getCheckpoint'> = {}): Promise<Checkpoint> {
    const [query, options] = split(given)
    return this.transport.call(
      'getCheckpoint',
      { params: { id }, query, held_ms: (query.wait ?? 0) * 1_000 },
      options,
    )
  }

  /**
   * Cancel a checkpoint that you created. Only for the agent that created it. No decision is sent.
   * Throws CHECKPOINT_NOT_FOUND, CHECKPOINT_ALREADY_RESOLVED.
   */
  cancel(id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('cancelCheckpoint', { params: { id } }, options)
  }

  /**
   * List the attempts to send the decision, newest first. Each has its status code, or the reason why
   * there is none. Throws CHECKPOINT_NOT_FOUND.
   */
  attempts(id: string, query: Query<'listCheckpointAttempts'> = {}): Pages<Attempt> {
    return listOf(this.transport, 'listCheckpointAttempts', { id }, query)
  }

  /**
   * List the votes on a checkpoint, by voter. A checkpoint has votes when it has an answer_schema,
   * approvers or an effect, or needs several votes. An approval key sees the votes on what it may
   * decide. Throws CHECKPOINT_NOT_FOUND.
   */
  votes(id: string, query: Query<'listVotes'> = {}): Pages<Vote> {
    return listOf(this.transport, 'listVotes', { id }, query)
  }

  /**
   * Reject; the agent is called back. Needs the admin key or an approval key. Where more rejections are
   * required, the checkpoint stays `pending`. Throws CHECKPOINT_NOT_FOUND, CHECKPOINT_ALREADY_RESOLVED,
   * ALREADY_VOTED, NOT_AN_APPROVER.
   */
  reject(id: string, given: Body<'rejectCheckpoint'> & CallOptions = {}): Promise<Checkpoint> {
    const [body, options] = split(given)
    return this.transport.call('rejectCheckpoint', { params: { id }, body }, options)
  }

  /**
   * Revoke the approval of an effect. Needs the admin key, or an approval key that may decide it. No
   * effect starts under it any more, and those that had not started end as rejected. One that is running
   * may finish. `permit_expires_at` is the time of the revocation. Throws CHECKPOINT_NOT_FOUND,
   * NOT_AN_APPROVER, INVALID_STATE.
   */
  revoke(id: string, options: CallOptions = {}): Promise<Checkpoint> {
    return this.transport.call('revokeApproval', { params: { id } }, options)
  }
}

export class Approvals extends Resource {
  /**
   * Read a checkpoint with an approval key, or wait until it is settled. With `wait`, the answer comes
   * when the checkpoint is settled, or after that many seconds. Throws CHECKPOINT_NOT_FOUND.
   */
  get(checkpoint_id: string, given: Query<'getApproval'> = {}): Promise<Approval> {
    const [query, options] = split(given)
    return this.transport.call(
      'getApproval',
      { params: { checkpoint_id }, query, held_ms: (query.wait ?? 0) * 1_000 },
      options,
    )
  }
}

export class Inboxes extends Resource {
  /**
   * Create an inbox. Its URL accepts any request without a key, until `ttl` seconds have passed. Throws
   * QUOTA_EXCEEDED.
   */
  create(given: Body<'createInbox'> & CreateOptions = {}): Promise<CreatedInbox> {
    const [body, options] = split(given)
    return this.transport.call('createInbox', { body }, options)
  }

  /** List inboxes that have not expired, newest first. Only those that have not expired. */
  list(query: Query<'listInboxes'> = {}): Pages<ListedInbox> {
    return offsetListOf(this.transport, 'listInboxes', {}, query)
  }

  /**
   * Forward a message once more. It is sent to the `forwardUrl` of its inbox, as it came. The answer is
   * the message with its forward pending. Throws INBOX_NOT_FOUND, MESSAGE_NOT_FOUND, INVALID_STATE.
   */
  replay(id: string, message_id: string, options: CreateOptions = {}): Promise<Message> {
    return this.transport.call('replayMessage', { params: { id, message_id } }, options)
  }

  /**
   * Read an inbox and its latest 50 messages, newest first. Messages are shown with their exact bytes.
   * Throws INBOX_NOT_FOUND.
   */
  get(id: string, options: CallOptions = {}): Promise<InboxDetail> {
    return this.transport.call('getInbox', { params: { id } }, options)
  }

  /** Delete an inbox and its messages. Its URL answers 404 from then on. Throws INBOX_NOT_FOUND. */
  delete(id: string, options: CallOptions = {}): Promise<Operations['deleteInbox']['answer']> {
    return this.transport.call('deleteInbox', { params: { id } }, options)
  }

  /**
   * Search the messages of an inbox, newest first. Searches method, path, query and body as they came,
   * ignoring case. A page looks at 500 messages or 1 MiB at most, so it may be short, or empty, before
   * the end: continue with `nextBefore` until that is null. Throws INBOX_NOT_FOUND.
   */
  search(id: string, given: Query<'searchMessages'>): Promise<Operations['searchMessages']['answer']> {
    const [query, options] = split(given)
    return this.transport.call('searchMessages', { params: { id }, query }, options)
  }
}

export class RateLimit extends Resource {
  /**
   * Count a hit and say whether it is within the limit. Counting and checking are one step, across all
   * nodes. A blocked hit gets 429, with the seconds until the next may pass.
   */
  check(
    key: Body<'checkRateLimit'>['key'],
    body: Omit<Body<'checkRateLimit'>, 'key'>,
    options: CallOptions = {},
  ): Promise<RateLimitAllowed | RateLimitBlocked> {
    return this.transport.call('checkRateLimit', { body: { ...body, key } }, options)
  }

  /**
   * Read a counter without counting. A counter named `check` or `reset` cannot be read here: those are
   * other paths.
   */
  status(key: string, options: CallOptions = {}): Promise<RateLimitStatus> {
    return this.transport.call('getRateLimit', { params: { key } }, options)
  }

  /** End the window of a counter. The next hit begins a new window. */
  reset(key: Body<'resetRateLimit'>['key'], options: CallOptions = {}): Promise<RateLimitReset> {
    return this.transport.call('resetRateLimit', { body: { key } }, options)
  }

  /**
   * List the running counters, those that end first at the top. A fixed window ends at its `resetAt`, a
   * sliding counter with its second bucket. Can be filtered by the beginning of the key.
   */
  list(query: Query<'listRateLimits'> = {}): Pages<RateLimitCounter> {
    return offsetListOf(this.transport, 'listRateLimits', {}, query)
  }
}

export class Effects extends Resource {
  /**
   * Claim the right to do something once. The pair of type and key is unique; the payload is bound to it
   * byte for byte. 201: you have the lease. 202: it waits for its approval. 200: it is approved, or it
   * has ended, with its result. A repeat returns its current state. Throws EFFECT_IN_FLIGHT,
   * EFFECT_UNKNOWN, EFFECT_NOT_HELD, EFFECT_KEY_REUSED, EFFECT_REJECTED, EFFECT_APPROVAL_REQUIRED,
   * EFFECT_APPROVERS_GONE, QUOTA_EXCEEDED, INVALID_STATE, CHECKPOINT_NOT_FOUND, QUARANTINED.
   */
  claim(body: Body<'claimEffect'>, options: CallOptions = {}): Promise<ClaimedEffect> {
    return this.transport.call('claimEffect', { body }, options)
  }

  /**
   * List effects, newest first. Leaves out payloads and results. With `type` and `key`, only the effect
   * of that pair.
   */
  list(query: Query<'listEffects'> = {}): Pages<ListedEffect> {
    return listOf(this.transport, 'listEffects', {}, query)
  }

  /**
   * Extend the lease to lease_seconds from now. Only for the holder of the lease. Its fence stays the
   * same. Throws EFFECT_NOT_FOUND, EFFECT_NOT_HELD.
   */
  extend(id: string, body: Body<'extendEffect'>, options: CallOptions = {}): Promise<Effect> {
    return this.transport.call('extendEffect', { params: { id }, body }, options)
  }

  /**
   * Report that it did not happen. Without `retry` this is final; with it, the effect may be started
   * again. A repeat gets the same answer. Throws EFFECT_NOT_FOUND, EFFECT_NOT_HELD.
   */
  fail(id: string, body: Body<'failEffect'>, options: CallOptions = {}): Promise<Effect> {
    return this.transport.call('failEffect', { params: { id }, body }, options)
  }

  /**
   * Read an effect, or wait until it is decided or has ended. With `wait`, the answer comes when the
   * effect neither waits for its approval nor runs, or after that many seconds. Throws EFFECT_NOT_FOUND.
   */
  get(id: string, given: Query<'getEffect'> = {}): Promise<Effect> {
    const [query, options] = split(given)
    return this.transport.call(
      'getEffect',
      { params: { id }, query, held_ms: (query.wait ?? 0) * 1_000 },
      options,
    )
  }

  /**
   * Decide what became of an effect with an unknown outcome. Look at its target first. An effect that is
   * free again, or approved, may also be closed. A repeat gets the same answer. With `fence`, a lease
   * granted in the meantime is left alone: 409, with the current `fence` in the details. Throws
   * EFFECT_NOT_FOUND, INVALID_STATE.
   */
  resolve(id: string, body: Body<'resolveEffect'>, options: CallOptions = {}): Promise<Effect> {
    return this.transport.call('resolveEffect', { params: { id }, body }, options)
  }

  /**
   * Start an effect that is approved, or free again. Of any number of callers exactly one gets the
   * lease. Throws EFFECT_NOT_FOUND, EFFECT_IN_FLIGHT, EFFECT_UNKNOWN, EFFECT_NOT_HELD,
   * EFFECT_KEY_REUSED, EFFECT_REJECTED, EFFECT_APPROVAL_REQUIRED, INVALID_STATE, QUARANTINED.
   */
  start(id: string, given: Body<'startEffect'> & CallOptions = {}): Promise<ClaimedEffect> {
    const [body, options] = split(given)
    return this.transport.call('startEffect', { params: { id }, body }, options)
  }

  /**
   * Report that it happened. Accepted even after the lease has run out, until somebody has started it
   * again or resolved it. A repeat gets the same answer. Throws EFFECT_NOT_FOUND, EFFECT_NOT_HELD.
   */
  succeed(id: string, body: Body<'succeedEffect'>, options: CallOptions = {}): Promise<Effect> {
    return this.transport.call('succeedEffect', { params: { id }, body }, options)
  }
}

export class EffectPolicies extends Resource {
  /**
   * Read the policy for a type of effects. Answers 404 while there is none for this type. Throws
   * EFFECT_POLICY_NOT_FOUND.
   */
  get(type: string, options: CallOptions = {}): Promise<EffectPolicy> {
    return this.transport.call('getEffectPolicy', { params: { type } }, options)
  }

  /**
   * Set the minimum that effects of a type need. Applies from now on: effects that are under way keep
   * what they began with. Fields left out get their defaults. Throws QUOTA_EXCEEDED.
   */
  set(type: string, body: Body<'setEffectPolicy'>, options: CallOptions = {}): Promise<EffectPolicy> {
    return this.transport.call('setEffectPolicy', { params: { type }, body }, options)
  }

  /**
   * Delete the policy for a type of effects. Effects of this type then need only what their claims ask
   * for. Throws EFFECT_POLICY_NOT_FOUND.
   */
  delete(type: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteEffectPolicy', { params: { type } }, options)
  }

  /** List the policies for effects, by type. A type without a policy is not listed. */
  list(query: Query<'listEffectPolicies'> = {}): Pages<EffectPolicy> {
    return listOf(this.transport, 'listEffectPolicies', {}, query)
  }
}

export class Workflows extends Resource {
  /**
   * Read a workflow: what happened, oldest first, and what is open. Continue with `next_after` while
   * `more` is true. Throws WORKFLOW_NOT_FOUND.
   */
  get(workflow_id: string, given: Query<'getWorkflow'> = {}): Promise<WorkflowTimeline> {
    const [query, options] = split(given)
    return this.transport.call('getWorkflow', { params: { workflow_id }, query }, options)
  }

  /** List workflows, the latest activity first. With `prefix` they come in the order of their ids. */
  list(query: Query<'listWorkflows'> = {}): Pages<Workflow> {
    return listOf(this.transport, 'listWorkflows', {}, query)
  }
}

export class Subscriptions extends Resource {
  /**
   * Deliver events to a URL or an address, from now on. Events are delivered in order, at least once,
   * signed as callbacks are, with retries over about three days. An address is first asked by one email
   * to confirm. The URL or address is shown masked from now on. Throws QUOTA_EXCEEDED.
   */
  create(body: Body<'createSubscription'>, options: CreateOptions = {}): Promise<Subscription> {
    return this.transport.call('createSubscription', { body }, options)
  }

  /** List subscriptions, newest first. URLs and addresses are masked. */
  list(query: Query<'listSubscriptions'> = {}): Pages<Subscription> {
    return listOf(this.transport, 'listSubscriptions', {}, query)
  }

  /**
   * Read a subscription: its progress, and the outcome of its last attempt. `behind` is the number of
   * events that have happened since the last one that was delivered or skipped. Throws
   * SUBSCRIPTION_NOT_FOUND.
   */
  get(id: string, options: CallOptions = {}): Promise<Subscription> {
    return this.transport.call('getSubscription', { params: { id } }, options)
  }

  /**
   * Change, pause or resume a subscription; the event that failed is tried again at once. Only the given
   * fields change. Throws SUBSCRIPTION_NOT_FOUND, INVALID_STATE, QUOTA_EXCEEDED.
   */
  update(id: string, body: Body<'updateSubscription'>, options: CallOptions = {}): Promise<Subscription> {
    return this.transport.call('updateSubscription', { params: { id }, body }, options)
  }

  /** Delete a subscription. Nothing more is delivered. Throws SUBSCRIPTION_NOT_FOUND. */
  delete(id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteSubscription', { params: { id } }, options)
  }

  /**
   * List the last attempts to deliver, newest first. At most the last 100. Throws
   * SUBSCRIPTION_NOT_FOUND.
   */
  attempts(id: string, query: Query<'listSubscriptionAttempts'> = {}): Pages<SubscriptionAttempt> {
    return listOf(this.transport, 'listSubscriptionAttempts', { id }, query)
  }

  /**
   * Deliver the events after a number again, or skip those before it. Events keep their webhook-ids, so
   * that a receiver can tell which it already has. Throws SUBSCRIPTION_NOT_FOUND.
   */
  replay(id: string, body: Body<'replaySubscription'>, options: CallOptions = {}): Promise<Subscription> {
    return this.transport.call('replaySubscription', { params: { id }, body }, options)
  }
}

export class Seal extends Resource {
  /**
   * Get everything needed to check a workflow, or the journal, offline. With `workflow_id`, the events
   * of that workflow, each with its proof; without it, all events, from which the root can be
   * recomputed. Check it with `waystation verify` or `examples/verify_bundle.py`. Throws
   * SEAL_SIZE_UNKNOWN, SEAL_BROKEN, STORAGE_FULL.
   */
  bundle(given: Query<'getBundle'> = {}): Promise<SealBundle> {
    const [query, options] = split(given)
    return this.transport.call('getBundle', { query }, options)
  }

  /**
   * Prove that the journal continues from an earlier checkpoint. The tree of `to` events begins with the
   * tree of `from` events: no earlier event was changed. Throws SEAL_SIZE_UNKNOWN, SEAL_BROKEN,
   * STORAGE_FULL.
   */
  consistency(given: Query<'getConsistencyProof'>): Promise<SealConsistency> {
    const [query, options] = split(given)
    return this.transport.call('getConsistencyProof', { query }, options)
  }

  /**
   * Prove that an event is in the journal. The event is named by its id or its number. The proof is
   * against the checkpoint of `size` events, or the current one. Throws SEAL_EVENT_NOT_FOUND,
   * SEAL_SIZE_UNKNOWN, SEAL_BROKEN, STORAGE_FULL.
   */
  proof(given: Query<'getInclusionProof'>): Promise<SealProof> {
    const [query, options] = split(given)
    return this.transport.call('getInclusionProof', { query }, options)
  }

  /**
   * Seal the journal and return its checkpoint, a signed note. Keep `note` somewhere else: it reveals
   * any later change to the events before it. With `workflow_id` the note also states how many events
   * that workflow has. Throws SEAL_BROKEN, STORAGE_FULL.
   */
  get(given: Query<'getSeal'> = {}): Promise<SealCheckpoint> {
    const [query, options] = split(given)
    return this.transport.call('getSeal', { query }, options)
  }

  /**
   * List the checkpoints of each hour, newest first. They remain when retention removes events. Compare
   * them with those that you have kept: one that the service keeps itself proves nothing against the
   * service.
   */
  checkpoints(query: Query<'listSealCheckpoints'> = {}): Pages<SealKeptCheckpoint> {
    return listOf(this.transport, 'listSealCheckpoints', {}, query)
  }
}

export class Clock extends Resource {
  /**
   * Move the time of a service with a test clock, and do all that falls due on the way. Only with
   * CLOCK=test; other services answer 404 ROUTE_NOT_FOUND. Time moves from one due time to the next, and
   * everything due is finished, for every tenant, before it moves on. The answer lists what happened to
   * the tenant of the key. Throws ROUTE_NOT_FOUND, CLOCK_ADVANCING, QUARANTINED.
   */
  advance(seconds: Body<'advanceClock'>['seconds'], options: CallOptions = {}): Promise<Advanced> {
    return this.transport.call('advanceClock', { body: { seconds } }, options)
  }

  /**
   * Read the time of a service with a test clock. Only with CLOCK=test; other services answer 404
   * ROUTE_NOT_FOUND. Throws ROUTE_NOT_FOUND.
   */
  get(options: CallOptions = {}): Promise<TestClock> {
    return this.transport.call('getClock', {}, options)
  }
}

export class Health extends Resource {
  /**
   * Check that the process answers, and nothing else. For a process supervisor. It does not ask the
   * database.
   */
  live(options: CallOptions = {}): Promise<Liveness> {
    return this.transport.call('livez', {}, options)
  }

  /**
   * Check that the database answers, the schema is right and no drain has begun. For a load balancer:
   * 503 while the service cannot do its work. With `verbose` it adds versions and settings. Throws
   * UNAVAILABLE.
   */
  ready(
    given: Omit<Query<'readyz'>, 'verbose'> & { verbose?: boolean | undefined } = {},
  ): Promise<Readiness> {
    const [query, options] = split(given)
    return this.transport.call(
      'readyz',
      { query: { ...query, verbose: query.verbose ? 'true' : undefined } },
      options,
    )
  }
}

/** The client with its resources. */
export class Resources {
  readonly tenants: Tenants
  readonly agents: Agents
  readonly approvalKeys: ApprovalKeys
  readonly kv: Kv
  readonly namespaces: Namespaces
  readonly audit: Audit
  readonly dlq: Dlq
  readonly schedules: Schedules
  readonly checkpoints: Checkpoints
  readonly approvals: Approvals
  readonly inboxes: Inboxes
  readonly rateLimit: RateLimit
  readonly effects: Effects
  readonly effectPolicies: EffectPolicies
  readonly workflows: Workflows
  readonly subscriptions: Subscriptions
  readonly seal: Seal
  readonly clock: Clock
  readonly health: Health

  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
    this.tenants = new Tenants(transport)
    this.agents = new Agents(transport)
    this.approvalKeys = new ApprovalKeys(transport)
    this.kv = new Kv(transport)
    this.namespaces = new Namespaces(transport)
    this.audit = new Audit(transport)
    this.dlq = new Dlq(transport)
    this.schedules = new Schedules(transport)
    this.checkpoints = new Checkpoints(transport)
    this.approvals = new Approvals(transport)
    this.inboxes = new Inboxes(transport)
    this.rateLimit = new RateLimit(transport)
    this.effects = new Effects(transport)
    this.effectPolicies = new EffectPolicies(transport)
    this.workflows = new Workflows(transport)
    this.subscriptions = new Subscriptions(transport)
    this.seal = new Seal(transport)
    this.clock = new Clock(transport)
    this.health = new Health(transport)
  }

  /**
   * Do all the work that is due, and answer when it is done. For an external timer, with the cron
   * secret. The service does the same on its own. Throws UNAUTHORIZED, QUARANTINED.
   */
  tick(options: CallOptions = {}): Promise<TickSummary> {
    return this.#transport.call('tick', {}, options)
  }

  /**
   * This API as an OpenAPI 3.1 document. With the address of this service as its server. `x-errors` says
   * what to do about each error code.
   */
  openapi(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#transport.call('openapi', {}, options)
  }
}
