"""Every operation of the contract, and the caller's next step after each code."""

# Made from openapi.json by scripts/clients.ts: do not edit.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .types import ExitClass


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    creates: bool = False
    """Takes an Idempotency-Key."""
    wrapped: bool = False
    """Answers ``{success, data}``."""
    empty: bool = False
    """An answer may have no body."""
    has: str | None = None
    """A member of every answer with a body."""


operations: Final[Mapping[str, Operation]] = {
    "createTenant": Operation("POST", "/v1/tenants", creates=True, has="tenant_id"),
    "getTenant": Operation("GET", "/v1/tenants/{tenant_id}", has="tenant_id"),
    "deleteTenant": Operation("DELETE", "/v1/tenants/{tenant_id}", has="tenant_id"),
    "freezeTenant": Operation("POST", "/v1/tenants/{tenant_id}/freeze", has="tenant_id"),
    "restoreTenant": Operation("POST", "/v1/tenants/{tenant_id}/restore", has="tenant_id"),
    "resumeTenant": Operation("POST", "/v1/tenants/{tenant_id}/resume", has="tenant_id"),
    "rotateSigningSecret": Operation("POST", "/v1/tenants/{tenant_id}/rotate-signing-secret", has="tenant_id"),
    "rotateTenantKey": Operation("POST", "/v1/tenants/{tenant_id}/rotate-key", has="tenant_id"),
    "getUsage": Operation("GET", "/v1/tenants/{tenant_id}/usage", has="from"),
    "createAgent": Operation("POST", "/v1/agents", creates=True, has="agent_id"),
    "listAgents": Operation("GET", "/v1/agents", has="items"),
    "getAgent": Operation("GET", "/v1/agents/{agent_id}", has="agent_id"),
    "updateAgent": Operation("PATCH", "/v1/agents/{agent_id}", has="agent_id"),
    "deleteAgent": Operation("DELETE", "/v1/agents/{agent_id}", empty=True),
    "pauseAgent": Operation("POST", "/v1/agents/{agent_id}/pause", has="agent_id"),
    "resumeAgent": Operation("POST", "/v1/agents/{agent_id}/resume", has="agent_id"),
    "rotateAgentKey": Operation("POST", "/v1/agents/{agent_id}/rotate-key", has="agent_id"),
    "createApprovalKey": Operation("POST", "/v1/approval-keys", creates=True, has="approval_key_id"),
    "listApprovalKeys": Operation("GET", "/v1/approval-keys", has="items"),
    "deleteApprovalKey": Operation("DELETE", "/v1/approval-keys/{approval_key_id}", empty=True),
    "getValue": Operation("GET", "/v1/kv/{namespace}/{key}", has="namespace"),
    "putValue": Operation("PUT", "/v1/kv/{namespace}/{key}", has="namespace"),
    "deleteValue": Operation("DELETE", "/v1/kv/{namespace}/{key}", empty=True),
    "listKeys": Operation("GET", "/v1/kv/{namespace}", has="items"),
    "getNamespace": Operation("GET", "/v1/namespaces/{namespace}", has="namespace"),
    "updateNamespace": Operation("PUT", "/v1/namespaces/{namespace}", has="namespace"),
    "getNamespaceKey": Operation("GET", "/v1/namespaces/{namespace}/keys/{key}", has="namespace"),
    "listNamespaceKeys": Operation("GET", "/v1/namespaces/{namespace}/keys", has="items"),
    "listNamespaces": Operation("GET", "/v1/namespaces", has="items"),
    "appendEntry": Operation("POST", "/v1/audit", creates=True, has="id"),
    "listEntries": Operation("GET", "/v1/audit", has="items"),
    "getEntry": Operation("GET", "/v1/audit/{id}", has="id"),
    "suggestEntries": Operation("GET", "/v1/audit/suggestions/{field}", has="items"),
    "captureItem": Operation("POST", "/v1/dlq", creates=True, has="id"),
    "listItems": Operation("GET", "/v1/dlq", has="items"),
    "discardItems": Operation("POST", "/v1/dlq/discard", creates=True, has="matched"),
    "redriveItem": Operation("POST", "/v1/dlq/{id}/redrive", creates=True, has="id"),
    "redriveItems": Operation("POST", "/v1/dlq/redrive", creates=True, has="matched"),
    "cancelOperation": Operation("POST", "/v1/dlq/operations/{id}/cancel", has="id"),
    "claimItem": Operation("POST", "/v1/dlq/{id}/claim", has="id"),
    "claimOldestItem": Operation("POST", "/v1/dlq/claim", empty=True, has="id"),
    "getItem": Operation("GET", "/v1/dlq/{id}", has="id"),
    "deleteItem": Operation("DELETE", "/v1/dlq/{id}", empty=True),
    "extendItem": Operation("POST", "/v1/dlq/{id}/extend", has="id"),
    "failItem": Operation("POST", "/v1/dlq/{id}/fail", has="id"),
    "getOperation": Operation("GET", "/v1/dlq/operations/{id}", has="id"),
    "listCauses": Operation("GET", "/v1/dlq/causes", has="items"),
    "listOperationItems": Operation("GET", "/v1/dlq/operations/{id}/items", has="items"),
    "listOperations": Operation("GET", "/v1/dlq/operations", has="items"),
    "releaseItem": Operation("POST", "/v1/dlq/{id}/release", has="id"),
    "resolveItem": Operation("POST", "/v1/dlq/{id}/resolve", has="id"),
    "createSchedule": Operation("POST", "/v1/schedules", creates=True, has="id"),
    "listSchedules": Operation("GET", "/v1/schedules", has="items"),
    "retrySchedule": Operation("POST", "/v1/schedules/{id}/retry", creates=True, has="id"),
    "getSchedule": Operation("GET", "/v1/schedules/{id}", has="id"),
    "updateSchedule": Operation("PATCH", "/v1/schedules/{id}", has="id"),
    "cancelSchedule": Operation("DELETE", "/v1/schedules/{id}", empty=True),
    "listScheduleAttempts": Operation("GET", "/v1/schedules/{id}/attempts", has="items"),
    "createCheckpoint": Operation("POST", "/v1/checkpoints", creates=True, has="id"),
    "listCheckpoints": Operation("GET", "/v1/checkpoints", has="items"),
    "createComment": Operation("POST", "/v1/checkpoints/{id}/comments", creates=True, has="id"),
    "listComments": Operation("GET", "/v1/checkpoints/{id}/comments", has="items"),
    "approveCheckpoint": Operation("POST", "/v1/checkpoints/{id}/approve", has="id"),
    "getCheckpoint": Operation("GET", "/v1/checkpoints/{id}", has="id"),
    "cancelCheckpoint": Operation("DELETE", "/v1/checkpoints/{id}", empty=True),
    "listCheckpointAttempts": Operation("GET", "/v1/checkpoints/{id}/attempts", has="items"),
    "listVotes": Operation("GET", "/v1/checkpoints/{id}/votes", has="items"),
    "rejectCheckpoint": Operation("POST", "/v1/checkpoints/{id}/reject", has="id"),
    "revokeApproval": Operation("POST", "/v1/checkpoints/{id}/revoke", has="id"),
    "getApproval": Operation("GET", "/v1/approvals/{checkpoint_id}", has="checkpoint_id"),
    "createInbox": Operation("POST", "/api/webhook", creates=True, wrapped=True, has="id"),
    "listInboxes": Operation("GET", "/api/webhook", wrapped=True, has="items"),
    "replayMessage": Operation("POST", "/api/webhook/{id}/messages/{message_id}/replay", creates=True, wrapped=True, has="id"),
    "getInbox": Operation("GET", "/api/webhook/{id}", wrapped=True, has="inbox"),
    "deleteInbox": Operation("DELETE", "/api/webhook/{id}", wrapped=True, has="deleted"),
    "listMessages": Operation("GET", "/api/webhook/{id}/messages", wrapped=True, has="items"),
    "searchMessages": Operation("GET", "/api/webhook/{id}/search", wrapped=True, has="items"),
    "waitForEvent": Operation("POST", "/v1/wait", has="event"),
    "tick": Operation("POST", "/v1/tick", has="schedules"),
    "openapi": Operation("GET", "/openapi.json"),
    "checkRateLimit": Operation("POST", "/api/rate-limit/check", wrapped=True, has="allowed"),
    "getRateLimit": Operation("GET", "/api/rate-limit/{key}", wrapped=True, has="key"),
    "resetRateLimit": Operation("POST", "/api/rate-limit/reset", wrapped=True, has="key"),
    "listRateLimits": Operation("GET", "/api/rate-limit", wrapped=True, has="items"),
    "claimEffect": Operation("POST", "/v1/effects", has="id"),
    "listEffects": Operation("GET", "/v1/effects", has="items"),
    "extendEffect": Operation("POST", "/v1/effects/{id}/extend", has="id"),
    "failEffect": Operation("POST", "/v1/effects/{id}/fail", has="id"),
    "getEffect": Operation("GET", "/v1/effects/{id}", has="id"),
    "resolveEffect": Operation("POST", "/v1/effects/{id}/resolve", has="id"),
    "startEffect": Operation("POST", "/v1/effects/{id}/start", has="id"),
    "succeedEffect": Operation("POST", "/v1/effects/{id}/succeed", has="id"),
    "getEffectPolicy": Operation("GET", "/v1/effect-policies/{type}", has="type"),
    "setEffectPolicy": Operation("PUT", "/v1/effect-policies/{type}", has="type"),
    "deleteEffectPolicy": Operation("DELETE", "/v1/effect-policies/{type}", empty=True),
    "listEffectPolicies": Operation("GET", "/v1/effect-policies", has="items"),
    "getWorkflow": Operation("GET", "/v1/workflows/{workflow_id}", has="workflow_id"),
    "listWorkflows": Operation("GET", "/v1/workflows", has="items"),
    "createSubscription": Operation("POST", "/v1/subscriptions", creates=True, has="id"),
    "listSubscriptions": Operation("GET", "/v1/subscriptions", has="items"),
    "getSubscription": Operation("GET", "/v1/subscriptions/{id}", has="id"),
    "updateSubscription": Operation("PATCH", "/v1/subscriptions/{id}", has="id"),
    "deleteSubscription": Operation("DELETE", "/v1/subscriptions/{id}", empty=True),
    "listSubscriptionAttempts": Operation("GET", "/v1/subscriptions/{id}/attempts", has="items"),
    "replaySubscription": Operation("POST", "/v1/subscriptions/{id}/replay", has="id"),
    "getBundle": Operation("GET", "/v1/seal/bundle", has="format"),
    "getConsistencyProof": Operation("GET", "/v1/seal/consistency", has="from"),
    "getInclusionProof": Operation("GET", "/v1/seal/proof", has="event"),
    "getSeal": Operation("GET", "/v1/seal", has="origin"),
    "listSealCheckpoints": Operation("GET", "/v1/seal/checkpoints", has="items"),
    "listEvents": Operation("GET", "/v1/events", has="items"),
    "advanceClock": Operation("POST", "/v1/clock/advance", has="now"),
    "getClock": Operation("GET", "/v1/clock", has="now"),
    "livez": Operation("GET", "/livez", has="status"),
    "readyz": Operation("GET", "/readyz", has="status"),
}

error_rows: Final[Mapping[str, tuple[str, ExitClass]]] = {
    "DELETE_REQUIRES_CONFIRM": (
        "Send exactly the body {\"confirm\": \"DELETE ALL DATA\"}.",
        "usage",
    ),
    "INVALID_JSON": (
        "Check what the client really sends, and send valid JSON.",
        "usage",
    ),
    "VALIDATION_FAILED": (
        "Correct what details.issues names, then send the request again.",
        "usage",
    ),
    "UNAUTHORIZED": (
        "Use a valid key, or ask the operator. The same request fails again.",
        "forbidden",
    ),
    "QUOTA_EXCEEDED": (
        "Remove what is not needed, or ask the operator for a larger plan. A monthly quota starts again with the next month.",
        "limited",
    ),
    "AGENT_PAUSED": (
        "Stop changing things and wait. The admin resumes the agent; until then the same request fails again.",
        "forbidden",
    ),
    "AGENT_READ_ONLY": (
        "Only read, or ask the admin for another mode. The same request fails again.",
        "forbidden",
    ),
    "EFFECT_APPROVAL_REQUIRED": (
        "POST the effect again, without a checkpoint_id: that asks for its approval.",
        "forbidden",
    ),
    "EFFECT_REJECTED": (
        "Do not do it. If it is still wanted, ask for a new approval; a refused effect needs another key.",
        "forbidden",
    ),
    "FORBIDDEN": (
        "Use a key of the kind that may do this, or ask the operator. The same request fails again.",
        "forbidden",
    ),
    "NAMESPACE_FORBIDDEN": (
        "Choose a namespace or key that does not begin with __.",
        "forbidden",
    ),
    "NOT_AN_APPROVER": (
        "Ask one of its approvers, or wait until it is escalated to you.",
        "forbidden",
    ),
    "TENANT_FROZEN": (
        "Stop changing things and wait. The admin resumes the tenant; until then the same request fails again.",
        "forbidden",
    ),
    "TENANT_PENDING_DELETION": (
        "Restore the tenant with its admin key, or stop: nothing else works.",
        "forbidden",
    ),
    "AGENT_NOT_FOUND": (
        "List the agents to find the right name.",
        "not_found",
    ),
    "APPROVAL_KEY_NOT_FOUND": (
        "List the approval keys to find the right id.",
        "not_found",
    ),
    "AUDIT_ENTRY_NOT_FOUND": (
        "List the entries to find the right id.",
        "not_found",
    ),
    "CHECKPOINT_NOT_FOUND": (
        "List the checkpoints to find the right id.",
        "not_found",
    ),
    "DLQ_NOT_FOUND": (
        "List the dead letters to find the right id.",
        "not_found",
    ),
    "EFFECT_NOT_FOUND": (
        "List the effects to find the right id.",
        "not_found",
    ),
    "EFFECT_POLICY_NOT_FOUND": (
        "List the policies to find the right type.",
        "not_found",
    ),
    "INBOX_NOT_FOUND": (
        "List the inboxes to find the right id, or create a new one.",
        "not_found",
    ),
    "KEY_NOT_FOUND": (
        "Treat the key as absent, put a first value, or list the keys that exist.",
        "not_found",
    ),
    "LINK_NOT_FOUND": (
        "Ask for a new subscription; its email will have a new link.",
        "not_found",
    ),
    "MESSAGE_NOT_FOUND": (
        "List the messages of the inbox to find the right id.",
        "not_found",
    ),
    "OPERATION_NOT_FOUND": (
        "List the operations to find the right id.",
        "not_found",
    ),
    "ROUTE_NOT_FOUND": (
        "Check the path and the address of the service, and that the service is as new as the client.",
        "not_found",
    ),
    "SCHEDULE_NOT_FOUND": (
        "List the schedules to find the right id.",
        "not_found",
    ),
    "SEAL_EVENT_NOT_FOUND": (
        "Give the number of the event, seq, or leave out the size.",
        "not_found",
    ),
    "SEAL_SIZE_UNKNOWN": (
        "Compare the size with details.size. If you have a checkpoint of that size, events are missing.",
        "not_found",
    ),
    "SUBSCRIPTION_NOT_FOUND": (
        "List the subscriptions to find the right id.",
        "not_found",
    ),
    "WORKFLOW_NOT_FOUND": (
        "List the workflows by the beginning of the id. A workflow exists from its first event on.",
        "not_found",
    ),
    "METHOD_NOT_ALLOWED": (
        "Use a method that the Allow header lists, and check that the service is as new as the client.",
        "unexpected",
    ),
    "REQUEST_TIMEOUT": (
        "Send the request again, over a faster connection or with a smaller body.",
        "unavailable",
    ),
    "AGENT_ID_TAKEN": (
        "Choose another name, or rotate the key of the existing agent.",
        "conflict",
    ),
    "ALREADY_CLAIMED": (
        "Claim another one, or wait until locked_until.",
        "conflict",
    ),
    "ALREADY_VOTED": (
        "Wait for the votes of others; read the checkpoint to see how many are missing.",
        "conflict",
    ),
    "CHECKPOINT_ALREADY_RESOLVED": (
        "Read the checkpoint to see who decided what, and act on that.",
        "conflict",
    ),
    "CLOCK_ADVANCING": (
        "Wait until the other request has ended. Tests that move the time in parallel each need their own service.",
        "conflict",
    ),
    "EFFECT_APPROVERS_GONE": (
        "Have an admin set the policy again, with approval keys that exist.",
        "conflict",
    ),
    "EFFECT_IN_FLIGHT": (
        "Wait until its lease ends and ask again: the answer then says what became of it.",
        "conflict",
    ),
    "EFFECT_NOT_HELD": (
        "Stop: do not carry out the effect. Read it to see what became of it. A new claim takes a new lease_token.",
        "conflict",
    ),
    "EFFECT_UNKNOWN": (
        "Look at the target of the effect, and have an admin resolve it: succeeded, failed or retry.",
        "conflict",
    ),
    "IDEMPOTENCY_IN_PROGRESS": (
        "Wait for Retry-After seconds, then repeat the same request to get its answer.",
        "conflict",
    ),
    "INVALID_STATE": (
        "Read it again, and decide by its current status.",
        "conflict",
    ),
    "LOCK_NOT_HELD": (
        "Stop working on it: somebody else is working on it. Claim it again when its lock is free.",
        "conflict",
    ),
    "TENANT_NAME_TAKEN": (
        "Choose another name.",
        "conflict",
    ),
    "TOO_MANY_COMMENTS": (
        "Decide it, or continue the discussion elsewhere.",
        "conflict",
    ),
    "TOO_MANY_NAMESPACES": (
        "Turn off the events of another namespace.",
        "conflict",
    ),
    "TOO_MANY_OPERATIONS": (
        "Wait until one has ended, or cancel one.",
        "conflict",
    ),
    "VERSION_MISMATCH": (
        "Read the value again, decide by what it says now, and write with the version that you read.",
        "conflict",
    ),
    "VOTE_DIFFERS": (
        "Read the request again; approve what it now says, or reject it.",
        "conflict",
    ),
    "INBOX_EXPIRED": (
        "Create a new inbox, and send to its URL.",
        "not_found",
    ),
    "PAYLOAD_TOO_LARGE": (
        "Send less: store large data elsewhere, and send a reference to it.",
        "usage",
    ),
    "UNSUPPORTED_MEDIA_TYPE": (
        "Send JSON without compression, and check that nothing on the way changes the request.",
        "unexpected",
    ),
    "ANSWER_INVALID": (
        "Correct the answer as details.issues says, and approve again. Nothing was changed.",
        "usage",
    ),
    "EFFECT_KEY_REUSED": (
        "Send the exact bytes that were sent first, or use another key for another effect.",
        "usage",
    ),
    "IDEMPOTENCY_KEY_REUSED": (
        "Use a new Idempotency-Key for a new request.",
        "usage",
    ),
    "NOT_EDITABLE": (
        "Approve it as it is, or reject it and say in the reason what should be asked instead.",
        "usage",
    ),
    "RATE_LIMITED": (
        "Wait for Retry-After seconds, then send the request again.",
        "limited",
    ),
    "INTERNAL": (
        "Repeat it once, a creation with the same Idempotency-Key. If it fails again, report the request id to the operator.",
        "unexpected",
    ),
    "SEAL_BROKEN": (
        "Ask the operator of the service to compare the database with a backup.",
        "unexpected",
    ),
    "OUTCOME_UNKNOWN": (
        "It may or may not have happened. Repeat it with the same Idempotency-Key, or read the current state first.",
        "unavailable",
    ),
    "QUARANTINED": (
        "Wait until the operator has run `admin release`; until then the same request fails again.",
        "unavailable",
    ),
    "UNAVAILABLE": (
        "Wait for Retry-After seconds, then send the request again.",
        "unavailable",
    ),
    "STORAGE_FULL": (
        "Ask the operator to free disk space. Reads still work.",
        "unavailable",
    ),
}
