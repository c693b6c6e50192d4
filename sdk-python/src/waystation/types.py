"""What calls take and answer. Answers are plain dicts, spelled as on the wire: a member that is newer than this
package is there, too."""

# Made from openapi.json by scripts/clients.ts: do not edit.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

ErrorCode = Literal[
    "DELETE_REQUIRES_CONFIRM",
    "INVALID_JSON",
    "VALIDATION_FAILED",
    "UNAUTHORIZED",
    "QUOTA_EXCEEDED",
    "AGENT_PAUSED",
    "AGENT_READ_ONLY",
    "EFFECT_APPROVAL_REQUIRED",
    "EFFECT_REJECTED",
    "FORBIDDEN",
    "NAMESPACE_FORBIDDEN",
    "NOT_AN_APPROVER",
    "TENANT_FROZEN",
    "TENANT_PENDING_DELETION",
    "AGENT_NOT_FOUND",
    "APPROVAL_KEY_NOT_FOUND",
    "AUDIT_ENTRY_NOT_FOUND",
    "CHECKPOINT_NOT_FOUND",
    "DLQ_NOT_FOUND",
    "EFFECT_NOT_FOUND",
    "EFFECT_POLICY_NOT_FOUND",
    "INBOX_NOT_FOUND",
    "KEY_NOT_FOUND",
    "LINK_NOT_FOUND",
    "MESSAGE_NOT_FOUND",
    "OPERATION_NOT_FOUND",
    "ROUTE_NOT_FOUND",
    "SCHEDULE_NOT_FOUND",
    "SEAL_EVENT_NOT_FOUND",
    "SEAL_SIZE_UNKNOWN",
    "SUBSCRIPTION_NOT_FOUND",
    "WORKFLOW_NOT_FOUND",
    "METHOD_NOT_ALLOWED",
    "REQUEST_TIMEOUT",
    "AGENT_ID_TAKEN",
    "ALREADY_CLAIMED",
    "ALREADY_VOTED",
    "CHECKPOINT_ALREADY_RESOLVED",
    "CLOCK_ADVANCING",
    "EFFECT_APPROVERS_GONE",
    "EFFECT_IN_FLIGHT",
    "EFFECT_NOT_HELD",
    "EFFECT_UNKNOWN",
    "IDEMPOTENCY_IN_PROGRESS",
    "INVALID_STATE",
    "LOCK_NOT_HELD",
    "TENANT_NAME_TAKEN",
    "TOO_MANY_COMMENTS",
    "TOO_MANY_NAMESPACES",
    "TOO_MANY_OPERATIONS",
    "VERSION_MISMATCH",
    "VOTE_DIFFERS",
    "INBOX_EXPIRED",
    "PAYLOAD_TOO_LARGE",
    "UNSUPPORTED_MEDIA_TYPE",
    "ANSWER_INVALID",
    "EFFECT_KEY_REUSED",
    "IDEMPOTENCY_KEY_REUSED",
    "NOT_EDITABLE",
    "RATE_LIMITED",
    "INTERNAL",
    "SEAL_BROKEN",
    "OUTCOME_UNKNOWN",
    "QUARANTINED",
    "UNAVAILABLE",
    "STORAGE_FULL",
]
"""Why a request was refused."""

ExitClass = Literal["conflict", "forbidden", "limited", "not_found", "unavailable", "unexpected", "usage"]
"""The kind of failure that a code is, for scripts: the command line has an exit code for each."""

class AboutEffect(TypedDict):
    """The effect that a checkpoint decides."""

    type: str
    """The type of that effect."""
    key: str
    """Its key."""
    note: str | None
    """The note of its agent, for people."""


class Advanced(TypedDict):
    """How far a test clock was moved, and what happened on the way."""

    now: str
    """The time of the service."""
    advanced_seconds: float
    """How far the time was moved."""
    done: bool
    """False when 20 s were not enough: advanced_seconds says how far it got. To continue, advance by the rest, which
    may be 0.
    """
    counts: dict[str, int]
    """How many events of each type happened, for the tenant of the key."""
    events: list[JournalEvent]
    """These events in their order, the first 1000. GET /v1/events has the rest."""


class Agent(TypedDict):
    """A program that calls the service with a key of its own."""

    agent_id: str
    name: str
    """The same as agent_id."""
    description: str | None
    callback_base_url: str | None
    """The URL against which a callback_url that starts with / is resolved."""
    api_key: str | None
    """Masked: svc_agt_****x7Qa. Null after the operator has revoked all keys of the tenant, until a rotation."""
    created_at: str
    """When it was created."""
    mode: Literal["full", "read", "propose"]
    """full, read (it changes nothing) or propose (each of its effects waits for an approval)."""
    paused_at: str | None
    """When it was paused; null while it is not."""
    paused_reason: str | None


class Approval(TypedDict):
    """A checkpoint as an approval key sees it."""

    checkpoint_id: str
    title: str
    prompt: str | None
    payload: Any
    """The callback_payload, the exact text that was sent, or null."""
    agent: ApprovalAgent
    status: Literal["pending", "approved", "rejected", "expired", "cancelled"]
    created_at: str
    """When it was created."""
    expires_at: str
    """When the timeout is due."""
    reason: str | None
    resolved_by: str | None
    """admin, approval_key:<id>, timeout or agent:<id>."""
    resolved_at: str | None
    """When it was settled."""
    answer_schema: dict[str, Any] | None
    """The JSON Schema of the answer; null: none is asked for."""
    answer: dict[str, Any] | None
    """The answer of the approval; it fits the schema."""
    required_approvals: int
    """Approvals that it needs."""
    required_rejections: int
    """Rejections that it needs."""
    approvals: int
    """Approvals so far."""
    rejections: int
    """Rejections so far."""
    approvers: list[str] | None
    """Ids of approval keys, or admin; null: anybody with a key for it."""
    escalate: list[Escalation] | None
    """Who else may decide, and after how many seconds."""
    escalated: int
    """Steps of `escalate` taken so far."""
    comments: int
    """How many comments there are."""
    editable: bool
    """An approver may change the payload of the effect."""
    edited_payload: Any
    """The payload that the votes so far are for, when an approver changed it; else null."""
    edited_payload_hash: str | None
    """The SHA-256 of the bytes of `edited_payload`, in hex; null without one. An edit may name it in `expected_hash`.
    """
    effective_payload: Any
    """The payload as it was approved, when an approver changed it; else null."""
    permit_expires_at: str | None
    """Until when the effect may start under the approval; null: no limit."""
    uses: int
    """How many effects may start under the approval."""
    uses_left: int
    """How many of these are left, including the effect that it was asked for."""
    effect_id: str | None
    """The effect that it was asked for."""
    effect: AboutEffect | None
    effect_payload: Any
    """The payload of the effect, the exact text; null without one."""
    effect_payload_hash: str | None
    """The SHA-256 of the bytes of this payload as it was proposed, in hex; null without one, and once it was removed.
    """
    may_decide: bool
    """This key is an approver."""
    voted: Literal["approved", "rejected"] | None
    """The vote of this key, where votes are counted."""
    frozen_at: str | None
    """When the tenant was frozen: a resume moves `expires_at` by the frozen time. Null while it is not."""


class ApprovalAgent(TypedDict):
    """The agent that asks."""

    agent_id: str
    """The agent that asks."""
    name: str


class ApprovalKey(TypedDict):
    """A key with which a person decides checkpoints, masked."""

    approval_key_id: str
    checkpoint_id: str | None
    """The one checkpoint it may decide; null for all of the tenant."""
    label: str | None
    approval_key: str
    """In full at creation only, afterwards masked: svc_apr_****x7Qa."""
    created_at: str
    """When it was created."""
    expires_at: str | None
    """It is refused from then on; null: it does not expire."""
    last_used_at: str | None
    """When it was last used, to the minute; null: never."""


class Attempt(TypedDict):
    """One attempt to deliver, with its outcome."""

    attempt: int
    """1, 2 or 3."""
    webhook_id: str
    """The webhook-id header, the same on every retry."""
    started_at: str
    """When it began."""
    duration_ms: int
    status_code: int | None
    """What the receiver answered; null when it did not."""
    error: str | None
    """null, or dns, refused, timeout, tls, blocked, too_large, status, interrupted."""


class AuditEntry(TypedDict):
    """An entry of the audit log, which never changes."""

    id: str
    seq: int
    """Starts at 1, rises by 1, without gaps, per tenant."""
    action: str
    workflow_id: str | None
    actor: str
    metadata: Any
    """The exact text that was sent, or null."""
    agent_id: str | None
    """The agent whose key appended it; null for the admin key."""
    request_id: str
    created_at: str
    """Server time; never earlier than that of the previous entry."""


class AuditSuggestion(TypedDict):
    """A text that a field has in the log."""

    value: str


class Awaited(TypedDict):
    """The event that was waited for, or none."""

    event: JournalEvent | None
    after: int
    """Pass it as after to continue."""


class Checkpoint(TypedDict):
    """A question to people: what is asked, who may decide, and the decision."""

    id: str
    status: Literal["pending", "approved", "rejected", "expired", "cancelled"]
    title: str
    prompt: str | None
    approval_url: str
    """A page where a person with an approval key decides it; the URL itself holds no key."""
    callback_url: str | None
    """Null: the decision is sent nowhere."""
    callback_payload: Any
    """The exact text that was sent, or null."""
    timeout_action: Literal["auto_reject", "dlq"]
    expires_at: str
    """When the timeout is due."""
    agent_id: str
    workflow_id: str | None
    """Null when it belongs to none."""
    reason: str | None
    resolved_by: str | None
    """admin, approval_key:<id>, timeout or agent:<id>."""
    resolved_at: str | None
    """When it was settled."""
    callback: CheckpointCallback
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""
    answer_schema: dict[str, Any] | None
    """The JSON Schema of the answer; null: none is asked for."""
    answer: dict[str, Any] | None
    """The answer of the approval; it fits the schema."""
    required_approvals: int
    """Approvals that it needs."""
    required_rejections: int
    """Rejections that it needs."""
    approvals: int
    """Approvals so far."""
    rejections: int
    """Rejections so far."""
    approvers: list[str] | None
    """Ids of approval keys, or admin; null: anybody with a key for it."""
    escalate: list[Escalation] | None
    """Who else may decide, and after how many seconds."""
    escalated: int
    """Steps of `escalate` taken so far."""
    comments: int
    """How many comments there are."""
    editable: bool
    """An approver may change the payload of the effect."""
    edited_payload: Any
    """The payload that the votes so far are for, when an approver changed it; else null."""
    edited_payload_hash: str | None
    """The SHA-256 of the bytes of `edited_payload`, in hex; null without one. An edit may name it in `expected_hash`.
    """
    effective_payload: Any
    """The payload as it was approved, when an approver changed it; else null."""
    permit_expires_at: str | None
    """Until when the effect may start under the approval; null: no limit."""
    uses: int
    """How many effects may start under the approval."""
    uses_left: int
    """How many of these are left, including the effect that it was asked for."""
    effect_id: str | None
    """The effect that it was asked for."""
    effect: AboutEffect | None
    payload: Any
    """The payload of the effect, the exact text; null without one."""
    payload_hash: str | None
    """The SHA-256 of the bytes of this payload as it was proposed, in hex; null without one, and once it was removed.
    """


class CheckpointCallback(TypedDict):
    """The state of the delivery of the decision."""

    status: Literal["none", "pending", "delivered", "failed"]
    attempts: int
    last_error: str | None
    redrive_of: str | None
    """The dead letter for which it was sent again."""
    dead_letter_id: str | None
    """The dead letter that its last failure left; it may have been removed."""


class ClaimedDeadLetter(TypedDict):
    """A dead letter with the token of the lock that the call got."""

    id: str
    status: Literal["failed", "claimed", "resolved", "archived"]
    error: str
    cause: str
    """The first line of the error with ids and numbers masked: failures with the same cause have the same text."""
    workflow_id: str | None
    source: Literal["agent", "schedule", "checkpoint"]
    source_id: str | None
    """The schedule or checkpoint that gave up."""
    agent_id: str | None
    lock_seconds: int
    locked_by: str | None
    """The agent that holds the lock."""
    locked_until: str | None
    """When the lock expires and the item is failed again."""
    claims: int
    """The number of claims."""
    created_at: str
    """When it was captured."""
    updated_at: str
    """When it last changed."""
    resolved_at: str | None
    """When it was resolved."""
    redriven_as: str | None
    """The schedule, or the checkpoint, that was sent again for it."""
    payload: Any
    """The exact text that was sent."""
    lock_token: str
    """Send it with extend, release, fail and resolve to be sure that the lock is still yours."""


class ClaimedEffect(TypedDict):
    """An effect as its claim or start answers it, with the token of the lease and the checkpoint that it waits for."""

    id: str
    status: Literal["awaiting_approval", "approved", "ready", "running", "unknown", "succeeded", "failed", "rejected"]
    type: str
    key: str
    note: str | None
    on_unknown: Literal["hold", "ask", "retry"]
    payload_hash: str
    """The SHA-256 of the payload that was proposed, in hex."""
    effective_hash: str | None
    """The same for the payload that an approver put in its place."""
    checkpoint_id: str | None
    """Its approval; null when it needs none."""
    permit_expires_at: str | None
    """Until when the approval lets it start."""
    refused_as: Literal["rejected", "expired", "cancelled"] | None
    """How the approval of a rejected effect ended."""
    question_id: str | None
    """The checkpoint that asks a person what became of it; null when none is open."""
    agent_id: str
    """The agent that claimed it."""
    held_by: str | None
    """The agent that has, or had, the last lease."""
    fence: int
    """The number of leases so far: the target may refuse a lower one."""
    lease_seconds: int
    """How long the last lease was granted for; the default for the next one."""
    lease_until: str | None
    """When the last lease ends, or ran out; null once it was settled."""
    error: str | None
    """The error of the last report that it did not happen."""
    resolved_by: str | None
    """The person who decided what became of it: admin or approval_key:<id>."""
    workflow_id: str | None
    """Null when it belongs to none."""
    finished_at: str | None
    """When it ended."""
    created_at: str
    """When it was claimed."""
    updated_at: str
    """When it last changed."""
    payload: Any
    """The exact text that was sent; null once it was removed."""
    effective_payload: Any
    """The exact text that an approver put in its place, or null."""
    result: Any
    """The exact text that the holder of the lease reported, or null."""
    lease_token: str | None
    """Shown once, with a lease: send it with extend, succeed and fail."""
    checkpoint: EffectApproval | None


class Comment(TypedDict):
    """A comment on a checkpoint."""

    id: str
    """cmt_…"""
    author: str
    """The id of an agent or of an approval key, or admin."""
    author_label: str | None
    """The label of the key: who has it."""
    text: str
    at: str
    """When it was made."""


class CreatedAgent(TypedDict):
    """An agent with its key in full, as only its creation answers it."""

    agent_id: str
    name: str
    """The same as agent_id."""
    description: str | None
    callback_base_url: str | None
    """The URL against which a callback_url that starts with / is resolved."""
    api_key: str
    """In full, in this answer only."""
    created_at: str
    """When it was created."""
    mode: Literal["full", "read", "propose"]
    """full, read (it changes nothing) or propose (each of its effects waits for an approval)."""
    paused_at: str | None
    """When it was paused; null while it is not."""
    paused_reason: str | None


class CreatedApprovalKey(TypedDict):
    """An approval key in full, as only its creation answers it."""

    approval_key_id: str
    checkpoint_id: str | None
    """The one checkpoint it may decide; null for all of the tenant."""
    label: str | None
    approval_key: str
    """In full at creation only, afterwards masked: svc_apr_****x7Qa."""
    created_at: str
    """When it was created."""
    expires_at: str | None
    """It is refused from then on; null: it does not expire."""
    last_used_at: str | None
    """When it was last used, to the minute; null: never."""
    approval_url: str | None
    """For a bound key: a page to decide the checkpoint, with the key in its fragment."""


class CreatedInbox(TypedDict):
    """An inbox as its creation answers it."""

    id: str
    token: str
    """The secret part of the URL."""
    url: str
    """The URL that anybody may send to, without a key."""
    label: str
    """Empty when none was given."""
    workflowId: str | None
    """Null when it belongs to none."""
    expiresAt: str
    """It accepts no messages from then on."""


class _CreatedTenant(TypedDict):
    tenant_id: str
    name: str
    plan: str
    quota: Quota
    owner_email: str
    status: Literal["active", "pending_deletion"]
    purge_at: str | None
    """When all data of this tenant is purged; null while it is active."""
    created_at: str
    """When it was created."""
    frozen_at: str | None
    """When it was frozen; null while it is not."""
    frozen_reason: str | None
    resumed_at: str | None
    """When it was resumed, while locks, leases and timeouts are still being moved by the frozen time."""
    admin_key: str
    """Shown in this answer only."""
    signing_secret: str
    """Standard Webhooks secret that signs callbacks. Shown in this answer only."""


class CreatedTenant(_CreatedTenant, total=False):
    """A tenant with its admin key and signing secret, as only its creation answers them."""

    quarantined_since: str
    """In the answer of GET while the service is a restored copy that its operator has not released: nothing due is
    sent, and no effect starts.
    """


class DeadLetter(TypedDict):
    """Work that failed for good and is kept until somebody resolves it."""

    id: str
    status: Literal["failed", "claimed", "resolved", "archived"]
    error: str
    cause: str
    """The first line of the error with ids and numbers masked: failures with the same cause have the same text."""
    workflow_id: str | None
    source: Literal["agent", "schedule", "checkpoint"]
    source_id: str | None
    """The schedule or checkpoint that gave up."""
    agent_id: str | None
    lock_seconds: int
    locked_by: str | None
    """The agent that holds the lock."""
    locked_until: str | None
    """When the lock expires and the item is failed again."""
    claims: int
    """The number of claims."""
    created_at: str
    """When it was captured."""
    updated_at: str
    """When it last changed."""
    resolved_at: str | None
    """When it was resolved."""
    redriven_as: str | None
    """The schedule, or the checkpoint, that was sent again for it."""
    payload: Any
    """The exact text that was sent."""


class DeadLetterCause(TypedDict):
    """Dead letters of one cause and source, counted."""

    cause: str
    source: Literal["agent", "schedule", "checkpoint"]
    count: int
    """Dead letters of this cause and source."""
    oldest_at: str
    """When the oldest of them was captured."""
    newest_at: str
    """When the latest of them was captured."""
    latest_id: str
    """The latest of them."""


class DeadLetterCauses(TypedDict):
    """The causes of dead letters, the most frequent first."""

    items: list[DeadLetterCause]
    truncated: bool
    """True when there are older dead letters, or further causes, that are not counted."""


_DeadLetterDiscardFilterOptional = TypedDict("_DeadLetterDiscardFilterOptional", {"from": "str | datetime"}, total=False)


class DeadLetterDiscardFilter(_DeadLetterDiscardFilterOptional, total=False):
    """Which dead letters; {} means every failed one."""

    status: Literal["failed"]
    source: Literal["agent", "schedule", "checkpoint"]
    source_id: str
    """The schedule or checkpoint that it came from."""
    cause: str
    """The exact cause."""
    workflow_id: str
    """The exact workflow."""
    to: str | datetime
    """Captured before this instant."""
    ids: Sequence[str]
    """Only these, in whatever status they are unless `status` is given."""


class DeadLetterOperation(TypedDict):
    """A redrive or discard of many dead letters, with how far it is."""

    id: str
    verb: Literal["redrive", "discard"]
    status: Literal["running", "succeeded", "cancelled"]
    filter: DeadLetterOperationFilter
    matched: int
    """Dead letters that matched when it began."""
    done: int
    failed: int
    """Those that could not be sent again."""
    skipped: int
    """Those that were claimed, or no longer matched, when their turn came."""
    max: int
    per_second: float | None
    """Null: as fast as is fair."""
    more: bool
    """True when further dead letters may match: `max` was reached, or the search ended early."""
    looked_until: str | None
    """Set when the search ended early, at items captured then: pass it as `from` to let the next operation continue
    there. Null when there were no further items, or `max` was reached.
    """
    waiting_for: str | None
    """The quota that it waits for; it continues once there is room."""
    created_at: str
    """When it began."""
    updated_at: str
    """When it last changed."""
    finished_at: str | None
    """When it succeeded or was cancelled."""


_DeadLetterOperationFilterRequired = TypedDict("_DeadLetterOperationFilterRequired", {"from": "str | None"})


class DeadLetterOperationFilter(_DeadLetterOperationFilterRequired):
    """The dead letters that an operation is for."""

    status: Literal["failed", "claimed", "resolved", "archived"] | None
    source: Literal["agent", "schedule", "checkpoint"] | None
    source_id: str | None
    cause: str | None
    workflow_id: str | None
    to: str | None
    """Captured before this instant."""
    ids_count: int | None
    """How many ids were named; null when none were."""


class DeadLetterOperationItem(TypedDict):
    """One dead letter of an operation, with its outcome."""

    id: str
    """The dead letter."""
    outcome: Literal["waiting", "done", "skipped", "failed"]
    code: str | None
    """The error code of one that was skipped or has failed."""
    redriven_as: str | None
    """The schedule, or the checkpoint, that is sent again."""


_DeadLetterRedriveFilterOptional = TypedDict("_DeadLetterRedriveFilterOptional", {"from": "str | datetime"}, total=False)


class DeadLetterRedriveFilter(_DeadLetterRedriveFilterOptional, total=False):
    """Which dead letters; {} means every failed one."""

    status: Literal["failed", "archived"]
    source: Literal["agent", "schedule", "checkpoint"]
    source_id: str
    """The schedule or checkpoint that it came from."""
    cause: str
    """The exact cause."""
    workflow_id: str
    """The exact workflow."""
    to: str | datetime
    """Captured before this instant."""
    ids: Sequence[str]
    """Only these, in whatever status they are unless `status` is given."""


class DeletedTenant(TypedDict):
    """The tenant that is scheduled for deletion."""

    tenant_id: str
    status: Literal["active", "pending_deletion"]
    purge_at: str | None
    """When all data of this tenant is purged; null while it is active."""


class Deletion(TypedDict):
    """The inbox was deleted."""

    deleted: bool


class Effect(TypedDict):
    """Something that is done at most once: its payload, its approval, its lease and its result."""

    id: str
    status: Literal["awaiting_approval", "approved", "ready", "running", "unknown", "succeeded", "failed", "rejected"]
    type: str
    key: str
    note: str | None
    on_unknown: Literal["hold", "ask", "retry"]
    payload_hash: str
    """The SHA-256 of the payload that was proposed, in hex."""
    effective_hash: str | None
    """The same for the payload that an approver put in its place."""
    checkpoint_id: str | None
    """Its approval; null when it needs none."""
    permit_expires_at: str | None
    """Until when the approval lets it start."""
    refused_as: Literal["rejected", "expired", "cancelled"] | None
    """How the approval of a rejected effect ended."""
    question_id: str | None
    """The checkpoint that asks a person what became of it; null when none is open."""
    agent_id: str
    """The agent that claimed it."""
    held_by: str | None
    """The agent that has, or had, the last lease."""
    fence: int
    """The number of leases so far: the target may refuse a lower one."""
    lease_seconds: int
    """How long the last lease was granted for; the default for the next one."""
    lease_until: str | None
    """When the last lease ends, or ran out; null once it was settled."""
    error: str | None
    """The error of the last report that it did not happen."""
    resolved_by: str | None
    """The person who decided what became of it: admin or approval_key:<id>."""
    workflow_id: str | None
    """Null when it belongs to none."""
    finished_at: str | None
    """When it ended."""
    created_at: str
    """When it was claimed."""
    updated_at: str
    """When it last changed."""
    payload: Any
    """The exact text that was sent; null once it was removed."""
    effective_payload: Any
    """The exact text that an approver put in its place, or null."""
    result: Any
    """The exact text that the holder of the lease reported, or null."""


class EffectApproval(TypedDict):
    """The approval that it waits for, or null."""

    id: str
    """The checkpoint."""
    status: str
    title: str
    approval_url: str
    """A page where a person with an approval key decides it."""
    expires_at: str
    """When its timeout is due."""


class EffectApprovalRequest(TypedDict, total=False):
    """Asks a person first, who sees exactly these bytes."""

    title: str
    """The question."""
    checkpoint_id: str
    """Instead of a title: the approval of another effect of the same type and bytes, which has a use left."""
    prompt: str
    """At most 32 KiB of plain text."""
    callback_url: str
    """Where the decision is sent; default nowhere: the agent waits for it."""
    timeout_action: Literal["auto_reject", "dlq"]
    """auto_reject, the default, or dlq."""
    timeout_seconds: int
    expires_at: str | datetime
    """With timeout_seconds, the earlier one counts; without either, 24 hours from now."""
    editable: bool
    """An approver may change the payload; default false."""
    answer_schema: Mapping[str, object]
    """A flat JSON Schema of the answer that the approval must carry, at most 16 KiB."""
    required_approvals: int
    """Approvals by different voters that it needs; default 1."""
    required_rejections: int
    """Rejections by different voters that it needs; default 1."""
    approvers: Sequence[str]
    """Ids of the approval keys that may decide, or admin. Default: anybody with a key for it."""
    escalate: Sequence[EscalationStep]
    """While nobody has decided, these may also decide after that many seconds; a step without approvers lets anybody
    with a key decide.
    """


class EffectPolicy(TypedDict):
    """The conditions under which the effects of a type may start."""

    type: str
    approval: Literal["optional", "required"]
    """required: an effect that asks for no approval still gets one."""
    required_approvals: int
    """The minimum number of approvals."""
    approvers: list[str] | None
    """Ids of approval keys, or admin; null: anybody with a key for it."""
    lease_seconds_max: int | None
    """The longest lease; a longer one is shortened to it."""
    created_at: str
    """When it was first set."""
    updated_at: str
    """When it was last set."""


class Entry(TypedDict):
    """A value under a key, with its version."""

    namespace: str
    key: str
    value: Any
    """The exact text that was put."""
    version: int
    """Starts at 1, rises by 1, never repeats for a key."""
    expires_at: str | None
    """The key is absent from then on; null: it does not expire."""
    updated_at: str
    """When this version was written."""


class Escalation(TypedDict):
    """A step of an escalation: who else may decide, and after how many seconds."""

    after_seconds: int
    approvers: list[str] | None


class _EscalationStep(TypedDict):
    after_seconds: int


class EscalationStep(_EscalationStep, total=False):
    """Who else may decide, and after how many seconds."""

    approvers: Sequence[str]


class EventFilter(TypedDict, total=False):
    """Events that match all of these."""

    type: EventType | None
    subject: str | None
    """About this subject: its id, or kind:id."""
    workflow_id: str | None
    """Events of this workflow."""


class EventSubject(TypedDict):
    """The thing that an event is about."""

    kind: str
    id: str


EventType = Literal[
    "audit.appended",
    "dlq.created",
    "tenant.created",
    "tenant.key_rotated",
    "tenant.keys_revoked",
    "tenant.signing_secret_rotated",
    "tenant.plan_changed",
    "tenant.storage_changed",
    "tenant.deleted",
    "tenant.frozen",
    "tenant.resumed",
    "tenant.restored",
    "agent.created",
    "agent.key_rotated",
    "agent.mode_changed",
    "agent.paused",
    "agent.resumed",
    "agent.deleted",
    "approval_key.created",
    "approval_key.revoked",
    "kv.put",
    "kv.deleted",
    "kv.expired",
    "kv.events_enabled",
    "kv.events_disabled",
    "dlq.claimed",
    "dlq.extended",
    "dlq.released",
    "dlq.lock_expired",
    "dlq.archived",
    "dlq.reopened",
    "dlq.resolved",
    "dlq.deleted",
    "dlq_operation.created",
    "dlq_operation.succeeded",
    "dlq_operation.cancelled",
    "schedule.created",
    "schedule.updated",
    "schedule.workflow_left",
    "schedule.workflow_joined",
    "schedule.cancelled",
    "schedule.attempted",
    "schedule.fired",
    "schedule.failed",
    "schedule.retried",
    "checkpoint.created",
    "checkpoint.voted",
    "checkpoint.escalated",
    "checkpoint.commented",
    "checkpoint.approved",
    "checkpoint.rejected",
    "checkpoint.expired",
    "checkpoint.cancelled",
    "checkpoint.revoked",
    "callback.attempted",
    "callback.delivered",
    "callback.failed",
    "callback.redriven",
    "approval_key.used",
    "inbox.created",
    "inbox.deleted",
    "message.received",
    "message.forwarded",
    "message.forward_failed",
    "message.replayed",
    "effect.claimed",
    "effect.proposed",
    "effect.approved",
    "effect.rejected",
    "effect.started",
    "effect.extended",
    "effect.succeeded",
    "effect.failed",
    "effect.retried",
    "effect.unknown",
    "effect.resolved",
    "effect_policy.updated",
    "effect_policy.deleted",
    "subscription.created",
    "subscription.confirmed",
    "subscription.updated",
    "subscription.paused",
    "subscription.resumed",
    "subscription.replayed",
    "subscription.deleted",
    "seal.restored",
    "seal.checkpoint",
    "audit.*",
    "dlq.*",
    "tenant.*",
    "agent.*",
    "approval_key.*",
    "kv.*",
    "dlq_operation.*",
    "schedule.*",
    "checkpoint.*",
    "callback.*",
    "inbox.*",
    "message.*",
    "effect.*",
    "effect_policy.*",
    "subscription.*",
    "seal.*",
]


class ExtendedDeadLetter(TypedDict):
    """A dead letter with the token of the lock that was extended."""

    id: str
    status: Literal["failed", "claimed", "resolved", "archived"]
    error: str
    cause: str
    """The first line of the error with ids and numbers masked: failures with the same cause have the same text."""
    workflow_id: str | None
    source: Literal["agent", "schedule", "checkpoint"]
    source_id: str | None
    """The schedule or checkpoint that gave up."""
    agent_id: str | None
    lock_seconds: int
    locked_by: str | None
    """The agent that holds the lock."""
    locked_until: str | None
    """When the lock expires and the item is failed again."""
    claims: int
    """The number of claims."""
    created_at: str
    """When it was captured."""
    updated_at: str
    """When it last changed."""
    resolved_at: str | None
    """When it was resolved."""
    redriven_as: str | None
    """The schedule, or the checkpoint, that was sent again for it."""
    payload: Any
    """The exact text that was sent."""
    lock_token: str | None
    """The one that was sent; null when none was."""


class FeatureUsage(TypedDict):
    """The calls of one feature."""

    feature: FeatureUsageFeature
    calls: int
    """Calls with a key of the tenant."""
    failures: int
    """Those that were answered 4xx or 5xx."""


FeatureUsageFeature = Literal[
    "tenants",
    "agents",
    "approval_keys",
    "kv",
    "audit",
    "dlq",
    "schedules",
    "checkpoints",
    "inboxes",
    "rate_limits",
    "effects",
    "workflows",
    "subscriptions",
    "seal",
    "events",
]


class Forward(TypedDict):
    """The state of the forward of a message."""

    status: Literal["pending", "delivered", "failed"]
    statusCode: int | None
    error: str | None
    """dns, refused, timeout, tls, blocked, too_large, status, interrupted or loop."""
    durationMs: int | None
    attemptedAt: str | None
    """When it was tried."""


class Inbox(TypedDict):
    """A public URL that keeps whatever is sent to it."""

    id: str
    token: str
    """The secret part of the URL."""
    url: str
    """The URL that anybody may send to, without a key."""
    label: str
    """Empty when none was given."""
    forwardUrl: str | None
    workflowId: str | None
    """Null when it belongs to none."""
    messageCount: int
    """Messages that are kept."""
    createdAt: str
    """When it was created."""
    expiresAt: str
    """It accepts no messages from then on."""


class InboxDetail(TypedDict):
    """An inbox with its latest messages."""

    inbox: Inbox
    messages: list[Message]


class JournalEvent(TypedDict):
    """A change that happened, as the journal keeps it."""

    id: str
    """evt_…"""
    seq: int
    """Its number: starts at 1, rises by 1, without gaps, per tenant."""
    type: str
    """Such as schedule.fired."""
    subject: EventSubject
    workflow_id: str | None
    workflow_seq: int | None
    """Its number in the workflow; null outside a workflow."""
    agent_id: str | None
    """The agent whose call caused it."""
    actor: str
    """admin, the id of an agent, approval_key:…, anonymous, operator, or service for the clock."""
    request_id: str | None
    at: str
    """When it happened."""
    data: dict[str, Any]
    """Members depend on the type; never a payload."""


class JournalEventPage(TypedDict):
    """A page of events, and where the next one begins."""

    items: list[JournalEvent]
    next_after: int
    """Pass it as after to continue."""


class ListedDeadLetter(TypedDict):
    """A dead letter as lists show it: without its payload."""

    id: str
    status: Literal["failed", "claimed", "resolved", "archived"]
    error: str
    cause: str
    """The first line of the error with ids and numbers masked: failures with the same cause have the same text."""
    workflow_id: str | None
    source: Literal["agent", "schedule", "checkpoint"]
    source_id: str | None
    """The schedule or checkpoint that gave up."""
    agent_id: str | None
    lock_seconds: int
    locked_by: str | None
    """The agent that holds the lock."""
    locked_until: str | None
    """When the lock expires and the item is failed again."""
    claims: int
    """The number of claims."""
    created_at: str
    """When it was captured."""
    updated_at: str
    """When it last changed."""
    resolved_at: str | None
    """When it was resolved."""
    redriven_as: str | None
    """The schedule, or the checkpoint, that was sent again for it."""


class ListedEffect(TypedDict):
    """An effect as lists show it: without payload and result."""

    id: str
    status: Literal["awaiting_approval", "approved", "ready", "running", "unknown", "succeeded", "failed", "rejected"]
    type: str
    key: str
    note: str | None
    on_unknown: Literal["hold", "ask", "retry"]
    payload_hash: str
    """The SHA-256 of the payload that was proposed, in hex."""
    effective_hash: str | None
    """The same for the payload that an approver put in its place."""
    checkpoint_id: str | None
    """Its approval; null when it needs none."""
    permit_expires_at: str | None
    """Until when the approval lets it start."""
    refused_as: Literal["rejected", "expired", "cancelled"] | None
    """How the approval of a rejected effect ended."""
    question_id: str | None
    """The checkpoint that asks a person what became of it; null when none is open."""
    agent_id: str
    """The agent that claimed it."""
    held_by: str | None
    """The agent that has, or had, the last lease."""
    fence: int
    """The number of leases so far: the target may refuse a lower one."""
    lease_seconds: int
    """How long the last lease was granted for; the default for the next one."""
    lease_until: str | None
    """When the last lease ends, or ran out; null once it was settled."""
    error: str | None
    """The error of the last report that it did not happen."""
    resolved_by: str | None
    """The person who decided what became of it: admin or approval_key:<id>."""
    workflow_id: str | None
    """Null when it belongs to none."""
    finished_at: str | None
    """When it ended."""
    created_at: str
    """When it was claimed."""
    updated_at: str
    """When it last changed."""


class ListedInbox(TypedDict):
    """An inbox as lists show it."""

    id: str
    token: str
    """The secret part of the URL."""
    url: str
    """The URL that anybody may send to, without a key."""
    label: str
    """Empty when none was given."""
    workflowId: str | None
    """Null when it belongs to none."""
    messageCount: int
    """Messages that are kept."""
    expiresAt: str
    """It accepts no messages from then on."""


class ListedKey(TypedDict):
    """A key as lists show it: without its value."""

    key: str
    version: int
    """Starts at 1, rises by 1, never repeats for a key."""
    expires_at: str | None
    """The key is absent from then on; null: it does not expire."""
    updated_at: str
    """When this version was written."""


class Liveness(TypedDict):
    """The process answers."""

    status: Literal["alive"]


class _MatchedDeadLetters(TypedDict):
    matched: int
    """Dead letters that an operation would take, `max` at most."""


class MatchedDeadLetters(_MatchedDeadLetters, total=False):
    """The answer of a dry run: what an operation would take."""

    looked_until: str
    """Present when the search ended early, at items captured then: pass it as `from` to count those that follow."""


class Message(TypedDict):
    """A request that came to an inbox."""

    id: str
    method: str
    path: str
    """The path after the token in the URL, empty when there is none."""
    headers: dict[str, str]
    """Names in lower case; repeats are joined by a comma."""
    query: dict[str, str | list[str]]
    """Name to value, or to an array of them when the name came more than once."""
    body: Any
    """JSON as it came, else a string, else (when the bytes are not UTF-8) null."""
    bodyBase64: str
    """The exact bytes."""
    preview: str | None
    """The first line of the body that is not blank, at most 200 characters; for JSON its beginning, on one line."""
    contentType: str
    """Empty when none was sent."""
    sourceIp: str
    createdAt: str
    """When it came."""
    forward: Forward | None


class MessagePage(TypedDict):
    """Messages, oldest first."""

    items: list[Message]
    nextAfter: str | None
    """Pass it as after next time; null until a message has been seen."""


class MessageSearchPage(TypedDict):
    """Messages that were found, newest first."""

    items: list[Message]
    nextBefore: str | None
    """Pass it as before to continue; null at the end."""


class Namespace(TypedDict):
    """A namespace of keys and its settings."""

    namespace: str
    agent_id: str | None
    """The agent whose private namespace it is; null for a shared one."""
    events: bool
    """True when each change of a key in it leaves an event."""


class PutResult(TypedDict):
    """The version that a put wrote."""

    namespace: str
    key: str
    version: int
    """Starts at 1, rises by 1, never repeats for a key."""
    expires_at: str | None
    """The key is absent from then on; null: it does not expire."""


class Quota(TypedDict):
    """The quotas of a tenant, each with its use."""

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


class RateLimitAllowed(TypedDict):
    """A hit that is within the limit."""

    allowed: bool
    count: float
    """Hits in the window, this check included."""
    remaining: float
    """Hits that the limit still allows."""
    resetAt: str
    """The end of the window."""
    limit: float
    """As it was sent with the last check; 0 when that is not known."""


class RateLimitBlocked(TypedDict):
    """A hit that is past the limit."""

    allowed: bool
    count: float
    """Hits in the window, this check included."""
    remaining: float
    """Hits that the limit still allows."""
    resetAt: str
    """The end of a fixed window; for a sliding one, when the same check would pass."""
    retryAfter: int
    """Seconds until then, at least 1."""
    limit: float
    """As it was sent with the last check; 0 when that is not known."""


class RateLimitCounter(TypedDict):
    """A counter that is running."""

    key: str
    algorithm: Literal["fixed_window", "sliding_window"]
    limit: float
    """As it was sent with the last check; 0 when that is not known."""
    count: float
    """Hits in the window."""
    remaining: float
    """Hits that the limit still allows."""
    resetAt: str
    """The end of the window."""
    windowSeconds: float
    """Length of the window."""


class RateLimitReset(TypedDict):
    """The outcome of a reset."""

    key: str
    reset: bool
    """False when no window was running."""


class RateLimitStatus(TypedDict):
    """The state of a key against the limit of its last check."""

    key: str
    count: float
    """Hits in the window; 0 when it is over."""
    remaining: float
    """Hits that the limit still allows."""
    resetAt: str
    """The end of the window; now when that is not known."""
    windowExpired: bool
    limit: float
    """As it was sent with the last check; 0 when that is not known."""


class _Readiness(TypedDict):
    status: Literal["ready"]


class Readiness(_Readiness, total=False):
    """The service can do its work."""

    version: str
    engine: Literal["sqlite", "postgres"]
    schema_version: int
    quarantined_since: str
    """Present while the database is a restored copy that the operator has not released: nothing due is sent, and no
    effect starts.
    """
    other_nodes: Literal["heard", "polled"]
    """PostgreSQL: heard when changes on other nodes are signalled to this one, polled when it looks for them."""
    durability: dict[str, str | float]


class RotatedAgent(TypedDict):
    """An agent with its new key, and when the key before ends."""

    agent_id: str
    name: str
    """The same as agent_id."""
    description: str | None
    callback_base_url: str | None
    """The URL against which a callback_url that starts with / is resolved."""
    api_key: str
    """In full, in this answer only."""
    created_at: str
    """When it was created."""
    mode: Literal["full", "read", "propose"]
    """full, read (it changes nothing) or propose (each of its effects waits for an approval)."""
    paused_at: str | None
    """When it was paused; null while it is not."""
    paused_reason: str | None
    previous_key_expires_at: str | None
    """When the previous key stops working; null when it already has."""


class _RotatedTenant(TypedDict):
    tenant_id: str
    name: str
    plan: str
    quota: Quota
    owner_email: str
    status: Literal["active", "pending_deletion"]
    purge_at: str | None
    """When all data of this tenant is purged; null while it is active."""
    created_at: str
    """When it was created."""
    frozen_at: str | None
    """When it was frozen; null while it is not."""
    frozen_reason: str | None
    resumed_at: str | None
    """When it was resumed, while locks, leases and timeouts are still being moved by the frozen time."""
    admin_key: str
    """Shown in this answer only."""
    previous_key_expires_at: str | None
    """When the previous key stops working; null when it already has."""


class RotatedTenant(_RotatedTenant, total=False):
    """A tenant with its new admin key, and when the key before ends."""

    quarantined_since: str
    """In the answer of GET while the service is a restored copy that its operator has not released: nothing due is
    sent, and no effect starts.
    """


class Schedule(TypedDict):
    """A one-time signed callback, with its status and its last outcome."""

    id: str
    status: Literal["pending", "fired", "cancelled", "failed"]
    name: str | None
    """Null when it has none."""
    workflow_id: str | None
    """Null when it belongs to none."""
    callback_url: str
    callback_payload: Any
    """The exact text that was sent."""
    fire_at: str
    """When it is called; the past means now."""
    dlq_on_failure: bool
    agent_id: str
    attempts: int
    """The number of calls since fire_at was set."""
    next_attempt_at: str | None
    """When it is called next; null when no attempt is to come."""
    last_error: str | None
    last_status_code: int | None
    fired_at: str | None
    """When a receiver accepted it."""
    retry_of: str | None
    """The schedule that it repeats."""
    redrive_of: str | None
    """The dead letter that was resolved by sending it again."""
    retried_as: str | None
    """The schedule that repeats it."""
    dead_letter_id: str | None
    """The dead letter that its failure left; it may have been removed."""
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""


class SealBundle(TypedDict):
    """Events with everything needed to check them without the service."""

    format: str
    """waystation-seal-bundle/1"""
    origin: str
    """The name of the journal, and of the key that signs: waystation/ten_…."""
    size: int
    """How many events the tree has: the number, seq, of its last."""
    root: str
    """The root of the tree, base64."""
    note: str
    """The checkpoint as a signed note, c2sp.org/tlog-checkpoint."""
    keys: list[str]
    """Public keys, name+hash+key; the one that signs comes first, then its predecessors."""
    workflow_id: str | None
    after: int
    """The events of the bundle are those after this one."""
    edge: list[str] | None
    """For a bundle of the journal: the hashes of the complete parts of the tree of `after` events."""
    consistency: SealBundleConsistency | None
    next_after: int | None
    """Where the next part of the journal begins; null on the last."""
    events: list[SealBundleEvent]


_SealBundleConsistencyRequired = TypedDict("_SealBundleConsistencyRequired", {"from": "int"})


class SealBundleConsistency(_SealBundleConsistencyRequired):
    """Proves that the tree begins with the one of `from` events; in a part that ends before `from`, that the latter
    begins with this one.
    """

    proof: list[str]
    """Hashes, base64, in the order of RFC 6962."""


class SealBundleEvent(TypedDict):
    """An event of a bundle, with the proof that it is in the tree."""

    event: SealedEvent
    proof: list[str] | None
    """Hashes, base64, in the order of RFC 6962."""


class SealCheckpoint(TypedDict):
    """The signed checkpoint of the journal."""

    origin: str
    """The name of the journal, and of the key that signs: waystation/ten_…."""
    size: int
    """How many events the tree has: the number, seq, of its last."""
    root: str
    """The root of the tree, base64."""
    note: str
    """The checkpoint as a signed note, c2sp.org/tlog-checkpoint."""
    keys: list[str]
    """Public keys, name+hash+key; the one that signs comes first, then its predecessors."""


_SealConsistencyRequired = TypedDict("_SealConsistencyRequired", {"from": "int"})


class SealConsistency(_SealConsistencyRequired):
    """A proof that a journal only grew."""

    from_root: str
    """The root of the tree of `from` events, base64."""
    proof: list[str]
    """Hashes, base64, in the order of RFC 6962."""
    origin: str
    """The name of the journal, and of the key that signs: waystation/ten_…."""
    size: int
    """How many events the tree has: the number, seq, of its last."""
    root: str
    """The root of the tree, base64."""
    note: str
    """The checkpoint as a signed note, c2sp.org/tlog-checkpoint."""
    keys: list[str]
    """Public keys, name+hash+key; the one that signs comes first, then its predecessors."""


class SealKeptCheckpoint(TypedDict):
    """A checkpoint that the service keeps."""

    size: int
    """How many events the tree has: the number, seq, of its last."""
    root: str
    """The root of the tree, base64."""
    note: str
    """The checkpoint as a signed note, c2sp.org/tlog-checkpoint."""
    created_at: str
    """When it was signed."""


class SealProof(TypedDict):
    """A proof that an event is in the journal."""

    event: SealedEvent | None
    seq: int
    """Its number; its place among the leaves is one less."""
    leaf_hash: str
    """The hash that is sealed, base64; also of an event that retention has removed."""
    proof: list[str]
    """Hashes, base64, in the order of RFC 6962."""
    origin: str
    """The name of the journal, and of the key that signs: waystation/ten_…."""
    size: int
    """How many events the tree has: the number, seq, of its last."""
    root: str
    """The root of the tree, base64."""
    note: str
    """The checkpoint as a signed note, c2sp.org/tlog-checkpoint."""
    keys: list[str]
    """Public keys, name+hash+key; the one that signs comes first, then its predecessors."""


class SealedEvent(TypedDict):
    """An event as it was sealed."""

    id: str
    seq: int
    type: str
    subject: EventSubject
    workflow_id: str | None
    workflow_seq: int | None
    agent_id: str | None
    actor: str
    request_id: str | None
    at: str
    data: dict[str, Any]
    """Depends on the type of the event."""


class Subscription(TypedDict):
    """Events that are delivered to a URL or an address, and their progress."""

    id: str
    status: Literal["unconfirmed", "active", "paused"]
    """unconfirmed: the holder of the address has not confirmed it yet, by the link in the email."""
    paused_reason: Literal["requested", "gone", "failing", "unsubscribed"] | None
    """requested: by an admin, even while unconfirmed, and it will stay paused; gone: the receiver answered 410;
    failing: an event could not be delivered for three days; unsubscribed: by the holder of the address.
    """
    name: str | None
    """Null when it has none."""
    format: Literal["standard", "slack", "mail"]
    url: str | None
    """Masked: https://hooks.slack.com/…aB3d. Null for emails."""
    to: str | None
    """The address of emails, masked: a…@example.com. Null for others."""
    types: list[str]
    workflow_id: str | None
    after: int
    """The number of the last event that was delivered, or skipped."""
    behind: int
    """Events that have happened since, of all types; 0 for an active one that has delivered all that it is for."""
    attempts: int
    """Attempts made so far to deliver the next event."""
    next_attempt_at: str | None
    """When the next event is tried; null when none waits."""
    last_error: str | None
    """The error of the last attempt; null when it succeeded."""
    last_status_code: int | None
    last_attempt_at: str | None
    """When the last attempt began."""
    delivered_at: str | None
    """When an event was last delivered."""
    created_at: str
    """When it was created."""
    updated_at: str
    """When it was last changed."""


class SubscriptionAttempt(TypedDict):
    """One attempt to deliver an event."""

    number: int
    """The number of this attempt among all of the subscription, from 0."""
    event_id: str
    event_seq: int
    event_type: str
    attempt: int
    """The number of this attempt to deliver the event, from 1."""
    webhook_id: str
    """The webhook-id header, the same on every retry."""
    started_at: str
    """When it began."""
    duration_ms: int
    status_code: int | None
    """What the receiver answered; null when it did not."""
    error: str | None
    """null, or dns, refused, timeout, tls, blocked, too_large, status."""


class _Tenant(TypedDict):
    tenant_id: str
    name: str
    plan: str
    quota: Quota
    owner_email: str
    status: Literal["active", "pending_deletion"]
    purge_at: str | None
    """When all data of this tenant is purged; null while it is active."""
    created_at: str
    """When it was created."""
    frozen_at: str | None
    """When it was frozen; null while it is not."""
    frozen_reason: str | None
    resumed_at: str | None
    """When it was resumed, while locks, leases and timeouts are still being moved by the frozen time."""


class Tenant(_Tenant, total=False):
    """An account: its plan, its use of its quotas, and its state."""

    quarantined_since: str
    """In the answer of GET while the service is a restored copy that its operator has not released: nothing due is
    sent, and no effect starts.
    """


class _TenantWithSecret(TypedDict):
    tenant_id: str
    name: str
    plan: str
    quota: Quota
    owner_email: str
    status: Literal["active", "pending_deletion"]
    purge_at: str | None
    """When all data of this tenant is purged; null while it is active."""
    created_at: str
    """When it was created."""
    frozen_at: str | None
    """When it was frozen; null while it is not."""
    frozen_reason: str | None
    resumed_at: str | None
    """When it was resumed, while locks, leases and timeouts are still being moved by the frozen time."""
    signing_secret: str
    """Standard Webhooks secret that signs callbacks. Shown in this answer only."""


class TenantWithSecret(_TenantWithSecret, total=False):
    """A tenant with its new signing secret."""

    quarantined_since: str
    """In the answer of GET while the service is a restored copy that its operator has not released: nothing due is
    sent, and no effect starts.
    """


class TestClock(TypedDict):
    """The time of a service with a test clock."""

    now: str
    """The time of the service."""
    offset_seconds: float
    """How far it is ahead of real time."""


class TickCheckpoints(TypedDict):
    """Numbers of checkpoints."""

    rejected: int
    expired: int
    callbacks: int


class TickDlq(TypedDict):
    """Numbers of dlq."""

    locks_released: int


class TickEffects(TypedDict):
    """Numbers of effects."""

    ran_out: int


class TickExpired(TypedDict):
    """Numbers of expired."""

    kv_keys: int
    inboxes: int
    idempotency_keys: int


class TickSchedules(TypedDict):
    """Numbers of schedules."""

    due: int
    fired: int
    retrying: int
    failed: int


class TickSummary(TypedDict):
    """The work that a tick did, in numbers."""

    schedules: TickSchedules
    checkpoints: TickCheckpoints
    dlq: TickDlq
    effects: TickEffects
    expired: TickExpired
    tenants_purged: int
    duration_ms: int


class Usage(TypedDict):
    """How much of a quota is used."""

    used: int
    limit: int | None


_UsageReportRequired = TypedDict("_UsageReportRequired", {"from": "str"})


class UsageReport(_UsageReportRequired):
    """Calls by the hour or day."""

    to: str
    """The end of what is counted."""
    step: Literal["hour", "day"]
    items: list[UsageStep]


class UsageStep(TypedDict):
    """The calls of one hour or day."""

    start_at: str
    """When the step begins."""
    calls: int
    """Calls with a key of the tenant."""
    failures: int
    """Those that were answered 4xx or 5xx."""
    features: list[FeatureUsage]


class Vote(TypedDict):
    """The vote of one approver."""

    voter: str
    """The id of an approval key, or admin."""
    voter_label: str | None
    """The label of the key: who has it."""
    decision: Literal["approved", "rejected"]
    counts: bool
    """False once the payload was changed after it; its voter may vote again."""
    edited: bool
    """True when it changed the payload."""
    payload_hash: str | None
    """SHA-256 of the payload that it is for, hexadecimal; null without one."""
    reason: str | None
    answer: dict[str, Any] | None
    """The answer that it carries."""
    permit_expires_at: str | None
    """The expiry that it sets for the approval; of several, the earliest counts."""
    uses: int
    """The uses that it allows; of several, the lowest counts."""
    at: str
    """When it was cast."""


class Workflow(TypedDict):
    """The events of a workflow, in numbers."""

    workflow_id: str
    events: int
    """Its events, including those removed since."""
    waiting: int
    """How many things it waits for now."""
    failing: int
    """How many failures nobody has dealt with."""
    first_at: str
    """The first event."""
    last_at: str
    """The latest event."""
    last_seq: int
    """The number of the latest event."""
    last_type: str
    """The type of the latest event."""


class WorkflowTimeline(TypedDict):
    """A workflow with a page of its events."""

    workflow_id: str
    events: int
    """Its events, including those removed since."""
    waiting: int
    """How many things it waits for now."""
    failing: int
    """How many failures nobody has dealt with."""
    first_at: str
    """The first event."""
    last_at: str
    """The latest event."""
    last_seq: int
    """The number of the latest event."""
    last_type: str
    """The type of the latest event."""
    items: list[JournalEvent]
    next_after: int
    """Pass it as after to continue."""
    more: bool
    """True when further events follow."""
