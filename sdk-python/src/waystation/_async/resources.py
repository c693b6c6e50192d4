"""The resources of the client, each with a method for every operation."""

# Made from openapi.json by scripts/clients.ts: do not edit.

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from .._values import NOT_GIVEN, CallOptions, CreateOptions, NotGiven, fields, if_match
from ..types import (
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
    DeadLetterCauses,
    DeadLetterDiscardFilter,
    DeadLetterOperation,
    DeadLetterOperationItem,
    DeadLetterRedriveFilter,
    DeletedTenant,
    Deletion,
    Effect,
    EffectApprovalRequest,
    EffectPolicy,
    Entry,
    EscalationStep,
    ExtendedDeadLetter,
    InboxDetail,
    ListedDeadLetter,
    ListedEffect,
    ListedInbox,
    ListedKey,
    Liveness,
    MatchedDeadLetters,
    Message,
    MessageSearchPage,
    Namespace,
    PutResult,
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
    UsageReport,
    Vote,
    Workflow,
    WorkflowTimeline,
)
from .pages import AsyncPages, list_of, offset_list_of
from .transport import AsyncTransport, Input

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncResource:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport


class AsyncTenants(AsyncResource):
    async def create(
        self,
        *,
        name: str,
        owner_email: str,
        plan: str | None = None,
        **options: Unpack[CreateOptions],
    ) -> CreatedTenant:
        """Create a tenant. Needs no key. The admin key and the signing secret are shown in this answer only. Raises
        TENANT_NAME_TAKEN, FORBIDDEN, RATE_LIMITED.

        name: Unique regardless of case; no control characters; counted after trimming.
        plan: One that is open to sign-ups: free and pro unless configured, plus unlimited on loopback. Any other is
            refused with the list of those that are open. The default is free unless configured.
        """
        given_ = Input(body=fields({"name": name, "owner_email": owner_email}, {"plan": plan}))
        answer_: CreatedTenant = await self._transport.call("createTenant", given_, options)
        return answer_

    async def get(self, tenant_id: str, **options: Unpack[CallOptions]) -> Tenant:
        """Read the tenant and its use of its quotas. `me` is the tenant of the key.

        tenant_id: The tenant that the admin key belongs to, or me; any other is refused with 403.
        """
        given_ = Input(params={"tenant_id": tenant_id})
        answer_: Tenant = await self._transport.call("getTenant", given_, options)
        return answer_

    async def delete(
        self,
        tenant_id: str,
        *,
        confirm: Literal["DELETE ALL DATA"],
        **options: Unpack[CallOptions],
    ) -> DeletedTenant:
        """Schedule the tenant for deletion, 30 days from now. Needs `confirm: "DELETE ALL DATA"`. All data of the
        tenant is removed after 30 days. Raises DELETE_REQUIRES_CONFIRM.

        tenant_id: The tenant that the admin key belongs to; any other is refused with 403.
        """
        given_ = Input(params={"tenant_id": tenant_id}, body=fields({"confirm": confirm}))
        answer_: DeletedTenant = await self._transport.call("deleteTenant", given_, options)
        return answer_

    async def freeze(self, tenant_id: str, *, reason: str | None = None, **options: Unpack[CallOptions]) -> Tenant:
        """Stop everything: agents may change nothing, and only subscriptions deliver. Takes effect on all nodes
        within a second. A tenant that is already frozen stays as it is.

        tenant_id: The tenant that the admin key belongs to; any other is refused with 403.
        reason: Shown to the agents that are refused.
        """
        given_ = Input(params={"tenant_id": tenant_id}, body=fields({}, {"reason": reason}))
        answer_: Tenant = await self._transport.call("freezeTenant", given_, options)
        return answer_

    async def restore(self, tenant_id: str, **options: Unpack[CallOptions]) -> Tenant:
        """Cancel the deletion. Possible within 30 days of the deletion. Keys and data are as they were. Raises
        INVALID_STATE.

        tenant_id: The tenant that the admin key belongs to; any other is refused with 403.
        """
        given_ = Input(params={"tenant_id": tenant_id})
        answer_: Tenant = await self._transport.call("restoreTenant", given_, options)
        return answer_

    async def resume(
        self,
        tenant_id: str,
        *,
        frozen_at: str | datetime | None = None,
        **options: Unpack[CallOptions],
    ) -> Tenant:
        """End the freeze. Locks, leases and timeouts are moved by the time that the tenant was frozen; what fell due
        runs now. `frozen_at` is still set in the answer when there is so much to move that it takes a few more
        seconds. With `frozen_at` in the body, a different freeze is left alone: 409. Raises INVALID_STATE.

        tenant_id: The tenant that the admin key belongs to; any other is refused with 403.
        frozen_at: The `frozen_at` of the freeze that you mean: 409 when another one is in force.
        """
        given_ = Input(params={"tenant_id": tenant_id}, body=fields({}, {"frozen_at": frozen_at}))
        answer_: Tenant = await self._transport.call("resumeTenant", given_, options)
        return answer_

    async def rotate_signing_secret(self, tenant_id: str, **options: Unpack[CallOptions]) -> TenantWithSecret:
        """Get a new signing secret; the old one also signs for another 24 hours. Both secrets sign for 24 hours:
        verify callbacks with both.

        tenant_id: The tenant that the admin key belongs to; any other is refused with 403.
        """
        given_ = Input(params={"tenant_id": tenant_id})
        answer_: TenantWithSecret = await self._transport.call("rotateSigningSecret", given_, options)
        return answer_

    async def rotate_key(
        self,
        tenant_id: str,
        *,
        grace_seconds: int | None = None,
        **options: Unpack[CallOptions],
    ) -> RotatedTenant:
        """Get a new admin key. The old key stops working at once, or after `grace_seconds`.

        tenant_id: The tenant that the admin key belongs to; any other is refused with 403.
        grace_seconds: How long the old key still works; 0, the default, ends it at once.
        """
        given_ = Input(params={"tenant_id": tenant_id}, body=fields({}, {"grace_seconds": grace_seconds}))
        answer_: RotatedTenant = await self._transport.call("rotateTenantKey", given_, options)
        return answer_

    async def usage(
        self,
        tenant_id: str,
        *,
        from_: str | datetime | None = None,
        to: str | datetime | None = None,
        step: Literal["hour", "day"] | None = None,
        **options: Unpack[CallOptions],
    ) -> UsageReport:
        """Count the calls of each hour or day, by feature. Calls and failures of each step, by feature. Every step of
        the range is listed, even one without calls.

        tenant_id: The tenant that the admin key belongs to, or me; any other is refused with 403.
        from_: The first step is the one that contains this instant; default a day, or 30 days, before to.
        to: Before this instant; default now. At most 35 days after from.
        step: hour (the default) or day, in UTC.
        """
        given_ = Input(params={"tenant_id": tenant_id}, query=fields({}, {"from": from_, "to": to, "step": step}))
        answer_: UsageReport = await self._transport.call("getUsage", given_, options)
        return answer_


class AsyncAgents(AsyncResource):
    async def create(
        self,
        *,
        name: str,
        description: str | None = None,
        callback_base_url: str | None = None,
        **options: Unpack[CreateOptions],
    ) -> CreatedAgent:
        """Create an agent and its key. The key is shown in this answer only. Raises AGENT_ID_TAKEN, QUOTA_EXCEEDED.

        description: For people.
        callback_base_url: An http or https URL.
        """
        given_ = Input(
            body=fields({"name": name}, {"description": description, "callback_base_url": callback_base_url}),
        )
        answer_: CreatedAgent = await self._transport.call("createAgent", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[Agent]:
        """List agents, newest first. Keys are masked.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listAgents", {}, given_, options)

    async def get(self, agent_id: str, **options: Unpack[CallOptions]) -> Agent:
        """Read an agent, its key masked. Needs the admin key or the key of any agent of the tenant. Raises
        AGENT_NOT_FOUND.

        agent_id: The agent, by its name.
        """
        given_ = Input(params={"agent_id": agent_id})
        answer_: Agent = await self._transport.call("getAgent", given_, options)
        return answer_

    async def update(
        self,
        agent_id: str,
        *,
        mode: Literal["full", "read", "propose"],
        **options: Unpack[CallOptions],
    ) -> Agent:
        """Change what an agent may do. Takes effect on all nodes within a second. Raises AGENT_NOT_FOUND.

        agent_id: The agent, by its name.
        mode: full: it may do everything that agents may. read: it changes nothing. propose: each of its effects waits
            for an approval.
        """
        given_ = Input(params={"agent_id": agent_id}, body=fields({"mode": mode}))
        answer_: Agent = await self._transport.call("updateAgent", given_, options)
        return answer_

    async def delete(self, agent_id: str, **options: Unpack[CallOptions]) -> None:
        """Remove an agent; its keys stop working, its records stay. Its keys are refused on all nodes within a
        second. Its values, entries and schedules stay, under its id. Raises AGENT_NOT_FOUND.

        agent_id: The agent, by its name.
        """
        given_ = Input(params={"agent_id": agent_id})
        await self._transport.call("deleteAgent", given_, options)

    async def pause(self, agent_id: str, *, reason: str | None = None, **options: Unpack[CallOptions]) -> Agent:
        """Stop one agent: it may change nothing. Takes effect on all nodes within a second. An agent that is already
        paused stays as it is. Raises AGENT_NOT_FOUND.

        agent_id: The agent, by its name.
        reason: Shown to the agent when it is refused.
        """
        given_ = Input(params={"agent_id": agent_id}, body=fields({}, {"reason": reason}))
        answer_: Agent = await self._transport.call("pauseAgent", given_, options)
        return answer_

    async def resume(self, agent_id: str, **options: Unpack[CallOptions]) -> Agent:
        """Resume a paused agent. Takes effect on all nodes within a second. An agent that is not paused stays as it
        is. Raises AGENT_NOT_FOUND.

        agent_id: The agent, by its name.
        """
        given_ = Input(params={"agent_id": agent_id})
        answer_: Agent = await self._transport.call("resumeAgent", given_, options)
        return answer_

    async def rotate_key(
        self,
        agent_id: str,
        *,
        grace_seconds: int | None = None,
        **options: Unpack[CallOptions],
    ) -> RotatedAgent:
        """Get a new key for an agent. The old key stops working at once, or after `grace_seconds`. Raises
        AGENT_NOT_FOUND.

        agent_id: The agent, by its name.
        grace_seconds: How long the old key still works; 0, the default, ends it at once.
        """
        given_ = Input(params={"agent_id": agent_id}, body=fields({}, {"grace_seconds": grace_seconds}))
        answer_: RotatedAgent = await self._transport.call("rotateAgentKey", given_, options)
        return answer_


class AsyncApprovalKeys(AsyncResource):
    async def create(
        self,
        *,
        checkpoint_id: str | None = None,
        label: str | None = None,
        expires_at: str | datetime | None = None,
        **options: Unpack[CreateOptions],
    ) -> CreatedApprovalKey:
        """Create a key that may approve and reject checkpoints, and nothing else. With `checkpoint_id` the key can
        decide only that checkpoint, and the answer has the URL of a page for it. The key is shown in this answer
        only. Raises CHECKPOINT_NOT_FOUND, QUOTA_EXCEEDED.

        checkpoint_id: Binds the key to this checkpoint.
        label: For people: who has it. Votes and comments show it.
        expires_at: When it expires, in the future. Default: never.
        """
        given_ = Input(body=fields({}, {"checkpoint_id": checkpoint_id, "label": label, "expires_at": expires_at}))
        answer_: CreatedApprovalKey = await self._transport.call("createApprovalKey", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[ApprovalKey]:
        """List approval keys, newest first, masked. Includes those bound to a checkpoint. Each has the time when it
        was last used.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listApprovalKeys", {}, given_, options)

    async def delete(self, approval_key_id: str, **options: Unpack[CallOptions]) -> None:
        """Revoke an approval key. The key is refused on all nodes within a second. Raises APPROVAL_KEY_NOT_FOUND.

        approval_key_id: The approval key, apk_….
        """
        given_ = Input(params={"approval_key_id": approval_key_id})
        await self._transport.call("deleteApprovalKey", given_, options)


class AsyncKv(AsyncResource):
    async def get(
        self,
        namespace: str,
        key: str,
        *,
        if_version: int | None = None,
        **options: Unpack[CallOptions],
    ) -> Entry:
        """Read a value and its version. The value is the exact JSON text that was put. With `If-None-Match`, 304
        while the version is the same. Raises KEY_NOT_FOUND, VERSION_MISMATCH, NAMESPACE_FORBIDDEN.

        namespace: Names that begin with __ are reserved, except your own __agent.<agent_id>.
        key: 1 to 512 bytes of UTF-8, percent-encoded once.
        if_version: only if this version is the stored one.
        """
        given_ = Input(params={"namespace": namespace, "key": key}, headers=if_match(if_version))
        answer_: Entry = await self._transport.call("getValue", given_, options)
        return answer_

    async def put(
        self,
        namespace: str,
        key: str,
        value: object,
        *,
        ttl_seconds: int | None = None,
        cas_version: int | None = None,
        **options: Unpack[CallOptions],
    ) -> PutResult:
        """Write a value, or only if its version is the expected one. Compare and set with `cas_version`, `If-Match`
        or `If-None-Match`: 409, or 412 for the headers, when the version differs. `ttl_seconds` counts from now.
        Raises VERSION_MISMATCH, NAMESPACE_FORBIDDEN, QUOTA_EXCEEDED.

        namespace: Names that begin with __ are reserved, except your own __agent.<agent_id>.
        key: 1 to 512 bytes of UTF-8, percent-encoded once.
        value: Any JSON, at most 256 KiB; comes back as the same text.
        ttl_seconds: Without it the key does not expire.
        cas_version: Write only over this version; 0 means only if absent.
        """
        given_ = Input(
            params={"namespace": namespace, "key": key},
            body=fields({"value": value}, {"ttl_seconds": ttl_seconds, "cas_version": cas_version}),
        )
        answer_: PutResult = await self._transport.call("putValue", given_, options)
        return answer_

    async def delete(
        self,
        namespace: str,
        key: str,
        *,
        if_version: int | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        """Remove a key. With `If-Match`, only that version. Version numbers continue when the key is written again.
        Raises KEY_NOT_FOUND, VERSION_MISMATCH, NAMESPACE_FORBIDDEN.

        namespace: Names that begin with __ are reserved, except your own __agent.<agent_id>.
        key: 1 to 512 bytes of UTF-8, percent-encoded once.
        if_version: only if this version is the stored one.
        """
        given_ = Input(params={"namespace": namespace, "key": key}, headers=if_match(if_version))
        await self._transport.call("deleteValue", given_, options)

    def list(
        self,
        namespace: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        prefix: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[ListedKey]:
        """List the keys of a namespace in bytewise order. Keys with their versions, without values. `prefix` narrows
        the list. Raises NAMESPACE_FORBIDDEN.

        namespace: Names that begin with __ are reserved, except your own __agent.<agent_id>.
        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        prefix: Only keys that start with this text.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor, "prefix": prefix})
        return list_of(self._transport, "listKeys", {"namespace": namespace}, given_, options)


class AsyncNamespaces(AsyncResource):
    async def settings(self, namespace: str, **options: Unpack[CallOptions]) -> Namespace:
        """Read the settings of a namespace. Works even for one that holds no key. An agent may ask about those that
        it may read. Raises NAMESPACE_FORBIDDEN.

        namespace: Names that begin with __ are reserved, except your own __agent.<agent_id>.
        """
        given_ = Input(params={"namespace": namespace})
        answer_: Namespace = await self._transport.call("getNamespace", given_, options)
        return answer_

    async def update(self, namespace: str, *, events: bool, **options: Unpack[CallOptions]) -> Namespace:
        """Turn events for the changes of keys in a namespace on or off. Answers once every node applies it: after a
        second where nodes share a PostgreSQL. At most 100 namespaces of a tenant leave events. Raises
        NAMESPACE_FORBIDDEN, TOO_MANY_NAMESPACES, QUOTA_EXCEEDED.

        namespace: Names that begin with __ are reserved, except your own __agent.<agent_id>.
        events: True: each put, delete and expiry of a key leaves an event.
        """
        given_ = Input(params={"namespace": namespace}, body=fields({"events": events}))
        answer_: Namespace = await self._transport.call("updateNamespace", given_, options)
        return answer_

    async def get(
        self,
        namespace: str,
        key: str,
        *,
        if_version: int | None = None,
        **options: Unpack[CallOptions],
    ) -> Entry:
        """Read a value and its version in any namespace. Needs the admin key, and reads the private namespaces of
        agents as well. Raises KEY_NOT_FOUND, VERSION_MISMATCH, NAMESPACE_FORBIDDEN.

        namespace: Names that begin with __ are reserved, except your own __agent.<agent_id>.
        key: 1 to 512 bytes of UTF-8, percent-encoded once.
        if_version: only if this version is the stored one.
        """
        given_ = Input(params={"namespace": namespace, "key": key}, headers=if_match(if_version))
        answer_: Entry = await self._transport.call("getNamespaceKey", given_, options)
        return answer_

    def keys(
        self,
        namespace: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        prefix: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[ListedKey]:
        """List the keys of any namespace, in bytewise order. Needs the admin key, and reads the private namespaces of
        agents as well. Without values. Raises NAMESPACE_FORBIDDEN.

        namespace: Names that begin with __ are reserved, except your own __agent.<agent_id>.
        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        prefix: Only keys that start with this text.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor, "prefix": prefix})
        return list_of(self._transport, "listNamespaceKeys", {"namespace": namespace}, given_, options)

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[Namespace]:
        """List the namespaces that hold a key or leave events, in bytewise order. An agent sees those that it may
        read; the admin key also sees the private ones of all agents.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listNamespaces", {}, given_, options)


class AsyncAudit(AsyncResource):
    async def append(
        self,
        *,
        action: str,
        workflow_id: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, object] | NotGiven | None = NOT_GIVEN,
        **options: Unpack[CreateOptions],
    ) -> AuditEntry:
        """Append an entry. Entries are numbered without gaps and never change. `metadata` is kept as the exact text.
        Raises QUOTA_EXCEEDED.

        action: The action that was done.
        workflow_id: Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none.
        actor: The actor; default the agent's id, or admin.
        metadata: At most 64 KiB; comes back as the same text.
        """
        given_ = Input(
            body=fields({"action": action, "metadata": metadata}, {"workflow_id": workflow_id, "actor": actor}),
        )
        answer_: AuditEntry = await self._transport.call("appendEntry", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        workflow_id: str | None = None,
        action: str | None = None,
        action_prefix: str | None = None,
        actor: str | None = None,
        agent_id: str | None = None,
        from_: str | datetime | None = None,
        to: str | datetime | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[AuditEntry]:
        """List entries, newest first. All given filters must match. A page may be short, or even empty, before the
        end: continue while there is a `next_cursor`.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        action_prefix: Actions that begin with this text.
        agent_id: Entries that this agent appended.
        from_: Entries from this instant on.
        to: Entries before this instant.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor, "workflow_id": workflow_id, "action": action, "action_prefix": action_prefix, "actor": actor, "agent_id": agent_id, "from": from_, "to": to})
        return list_of(self._transport, "listEntries", {}, given_, options)

    async def get(self, id: str, **options: Unpack[CallOptions]) -> AuditEntry:
        """Read an entry. As it was appended: entries never change. Raises AUDIT_ENTRY_NOT_FOUND.

        id: The entry, log_….
        """
        given_ = Input(params={"id": id})
        answer_: AuditEntry = await self._transport.call("getEntry", given_, options)
        return answer_

    def suggestions(
        self,
        field: Literal["workflow_id", "action", "actor", "agent_id"],
        *,
        limit: int | None = None,
        cursor: str | None = None,
        prefix: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[AuditSuggestion]:
        """List the texts that a field has in the log, in bytewise order. Values to filter the list by, each once,
        however many entries have it. For agent_id: the existing agents.

        field: The filter to suggest texts for.
        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        prefix: Only texts that begin with this one.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor, "prefix": prefix})
        return list_of(self._transport, "suggestEntries", {"field": field}, given_, options)


class AsyncDlq(AsyncResource):
    async def create(
        self,
        *,
        payload: object,
        error: str,
        workflow_id: str | None = None,
        lock_seconds: int | None = None,
        **options: Unpack[CreateOptions],
    ) -> DeadLetter:
        """Record a failure. The payload is kept as the exact text. `cause` groups it with others that failed the same
        way. Raises QUOTA_EXCEEDED.

        payload: Any JSON; comes back as the same text.
        error: The cause of the failure, at most 64 KiB.
        workflow_id: Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none.
        lock_seconds: The duration of a claim; default 300.
        """
        given_ = Input(
            body=fields({"payload": payload, "error": error}, {"workflow_id": workflow_id, "lock_seconds": lock_seconds}),
        )
        answer_: DeadLetter = await self._transport.call("captureItem", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["failed", "claimed", "resolved", "archived"] | None = None,
        source: Literal["agent", "schedule", "checkpoint"] | None = None,
        source_id: str | None = None,
        cause: str | None = None,
        workflow_id: str | None = None,
        from_: str | datetime | None = None,
        to: str | datetime | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[ListedDeadLetter]:
        """List dead letters, newest first, without payloads. All given filters must match. A page may be short, or
        even empty, before the end: continue while there is a `next_cursor`.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        source_id: The schedule or checkpoint that it came from.
        cause: The exact cause.
        from_: Captured from this instant on.
        to: Captured before this instant.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor, "status": status, "source": source, "source_id": source_id, "cause": cause, "workflow_id": workflow_id, "from": from_, "to": to})
        return list_of(self._transport, "listItems", {}, given_, options)

    async def discard_many(
        self,
        *,
        filter: DeadLetterDiscardFilter,
        max: int | None = None,
        per_second: float | None = None,
        dry_run: bool | None = None,
        **options: Unpack[CreateOptions],
    ) -> MatchedDeadLetters | DeadLetterOperation:
        """Archive many failed items. Archives the failed items that match, oldest first. Returns at once; the
        operation runs in the background. With `dry_run` it only counts. Raises QUOTA_EXCEEDED,
        TOO_MANY_OPERATIONS.

        filter: Which dead letters; {} means every failed one.
        max: How many at most; default 5,000.
        per_second: How many a second; default as fast as is fair.
        dry_run: Only count those that match.
        """
        given_ = Input(body=fields({"filter": filter}, {"max": max, "per_second": per_second, "dry_run": dry_run}))
        answer_: MatchedDeadLetters | DeadLetterOperation = await self._transport.call("discardItems", given_, options)
        return answer_

    async def redrive(self, id: str, **options: Unpack[CreateOptions]) -> DeadLetter:
        """Send what failed again. A schedule is sent again as a new schedule, and the callback of a decision as
        itself; the item is then resolved, and `redriven_as` names what is sent. An item that an agent recorded can
        be claimed again. Raises DLQ_NOT_FOUND, ALREADY_CLAIMED, INVALID_STATE, QUOTA_EXCEEDED.

        id: The dead letter, dlq_….
        """
        given_ = Input(params={"id": id})
        answer_: DeadLetter = await self._transport.call("redriveItem", given_, options)
        return answer_

    async def redrive_many(
        self,
        *,
        filter: DeadLetterRedriveFilter,
        max: int | None = None,
        per_second: float | None = None,
        dry_run: bool | None = None,
        **options: Unpack[CreateOptions],
    ) -> MatchedDeadLetters | DeadLetterOperation:
        """Send many items again. Redrives the failed items that match, or with `status` the archived ones, oldest
        first. Returns at once; the operation runs in the background, and waits while a quota is full. With
        `dry_run` it only counts. Raises QUOTA_EXCEEDED, TOO_MANY_OPERATIONS.

        filter: Which dead letters; {} means every failed one.
        max: How many at most; default 5,000.
        per_second: How many a second; default as fast as is fair.
        dry_run: Only count those that match.
        """
        given_ = Input(body=fields({"filter": filter}, {"max": max, "per_second": per_second, "dry_run": dry_run}))
        answer_: MatchedDeadLetters | DeadLetterOperation = await self._transport.call("redriveItems", given_, options)
        return answer_

    async def cancel_operation(self, id: str, **options: Unpack[CallOptions]) -> DeadLetterOperation:
        """Cancel an operation; items already handled stay as they are. Cancelling an operation that has ended changes
        nothing. Raises OPERATION_NOT_FOUND.

        id: The operation, dop_….
        """
        given_ = Input(params={"id": id})
        answer_: DeadLetterOperation = await self._transport.call("cancelOperation", given_, options)
        return answer_

    async def claim(
        self,
        id: str,
        *,
        lock_seconds: int | None = None,
        **options: Unpack[CallOptions],
    ) -> ClaimedDeadLetter:
        """Lock a failed item. However many callers try, exactly one gets the lock. It expires after `lock_seconds`.
        Raises DLQ_NOT_FOUND, ALREADY_CLAIMED, INVALID_STATE.

        id: The dead letter, dlq_….
        lock_seconds: The duration of the lock from now; default that of the item.
        """
        given_ = Input(params={"id": id}, body=fields({}, {"lock_seconds": lock_seconds}))
        answer_: ClaimedDeadLetter = await self._transport.call("claimItem", given_, options)
        return answer_

    async def claim_oldest(
        self,
        *,
        lock_seconds: int | None = None,
        **options: Unpack[CallOptions],
    ) -> ClaimedDeadLetter | None:
        """Lock the oldest failed item; 204 when there is none. However many callers try, each gets a different item.
        The lock expires after `lock_seconds`.

        lock_seconds: The duration of the lock from now; default that of the item.
        """
        given_ = Input(body=fields({}, {"lock_seconds": lock_seconds}))
        answer_: ClaimedDeadLetter | None = await self._transport.call("claimOldestItem", given_, options)
        return answer_

    async def get(self, id: str, **options: Unpack[CallOptions]) -> DeadLetter:
        """Read a dead letter. Includes its payload, as the exact text that was captured. Raises DLQ_NOT_FOUND.

        id: The dead letter, dlq_….
        """
        given_ = Input(params={"id": id})
        answer_: DeadLetter = await self._transport.call("getItem", given_, options)
        return answer_

    async def delete(self, id: str, **options: Unpack[CallOptions]) -> None:
        """Remove a dead letter for good. Works in any status. Raises DLQ_NOT_FOUND.

        id: The dead letter, dlq_….
        """
        given_ = Input(params={"id": id})
        await self._transport.call("deleteItem", given_, options)

    async def extend(
        self,
        id: str,
        *,
        lock_seconds: int | None = None,
        lock_token: str | None = None,
        **options: Unpack[CallOptions],
    ) -> ExtendedDeadLetter:
        """Extend the lock to lock_seconds from now. The lock then ends `lock_seconds` from now. Raises DLQ_NOT_FOUND,
        INVALID_STATE, LOCK_NOT_HELD, TENANT_FROZEN, AGENT_PAUSED, AGENT_READ_ONLY.

        id: The dead letter, dlq_….
        lock_seconds: The duration of the lock from now; default that of the item.
        lock_token: The token that the claim returned; when sent, it must be the current one.
        """
        given_ = Input(params={"id": id}, body=fields({}, {"lock_seconds": lock_seconds, "lock_token": lock_token}))
        answer_: ExtendedDeadLetter = await self._transport.call("extendItem", given_, options)
        return answer_

    async def fail(self, id: str, *, lock_token: str | None = None, **options: Unpack[CallOptions]) -> DeadLetter:
        """Give up on the item; it is archived. Only for the agent that holds the lock. An archived item can be sent
        again by a redrive. Raises DLQ_NOT_FOUND, INVALID_STATE, LOCK_NOT_HELD, TENANT_FROZEN, AGENT_PAUSED,
        AGENT_READ_ONLY.

        id: The dead letter, dlq_….
        lock_token: The token that the claim returned; when sent, it must be the current one.
        """
        given_ = Input(params={"id": id}, body=fields({}, {"lock_token": lock_token}))
        answer_: DeadLetter = await self._transport.call("failItem", given_, options)
        return answer_

    async def operation(self, id: str, **options: Unpack[CallOptions]) -> DeadLetterOperation:
        """Read the progress of an operation. Poll it until its status is no longer `running`. Raises
        OPERATION_NOT_FOUND.

        id: The operation, dop_….
        """
        given_ = Input(params={"id": id})
        answer_: DeadLetterOperation = await self._transport.call("getOperation", given_, options)
        return answer_

    async def causes(
        self,
        *,
        status: Literal["failed", "claimed", "resolved", "archived"] | None = None,
        **options: Unpack[CallOptions],
    ) -> DeadLetterCauses:
        """Group dead letters by cause, most frequent first. Ids and numbers are masked in a cause, so that failures
        of one kind are counted together.

        status: Default failed.
        """
        given_ = Input(query=fields({}, {"status": status}))
        answer_: DeadLetterCauses = await self._transport.call("listCauses", given_, options)
        return answer_

    def operation_items(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[DeadLetterOperationItem]:
        """List the items of an operation with their outcomes, in the order they are handled. An item waits, is done,
        was skipped, or has failed with an error code. Raises OPERATION_NOT_FOUND.

        id: The operation, dop_….
        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listOperationItems", {"id": id}, given_, options)

    def operations(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[DeadLetterOperation]:
        """List operations on many dead letters, newest first. Those that are running, and those that ended within the
        last 7 days.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listOperations", {}, given_, options)

    async def release(self, id: str, *, lock_token: str | None = None, **options: Unpack[CallOptions]) -> DeadLetter:
        """Release the lock; the item is failed again. Only for the agent that holds the lock. Any agent may then
        claim the item. Raises DLQ_NOT_FOUND, INVALID_STATE, LOCK_NOT_HELD, TENANT_FROZEN, AGENT_PAUSED,
        AGENT_READ_ONLY.

        id: The dead letter, dlq_….
        lock_token: The token that the claim returned; when sent, it must be the current one.
        """
        given_ = Input(params={"id": id}, body=fields({}, {"lock_token": lock_token}))
        answer_: DeadLetter = await self._transport.call("releaseItem", given_, options)
        return answer_

    async def resolve(self, id: str, *, lock_token: str | None = None, **options: Unpack[CallOptions]) -> DeadLetter:
        """Mark the item as resolved. Works from any status; a repeat changes nothing. Raises DLQ_NOT_FOUND,
        INVALID_STATE, LOCK_NOT_HELD, TENANT_FROZEN, AGENT_PAUSED, AGENT_READ_ONLY.

        id: The dead letter, dlq_….
        lock_token: The token that the claim returned; when sent, it must be the current one.
        """
        given_ = Input(params={"id": id}, body=fields({}, {"lock_token": lock_token}))
        answer_: DeadLetter = await self._transport.call("resolveItem", given_, options)
        return answer_


class AsyncSchedules(AsyncResource):
    async def create(
        self,
        *,
        callback_url: str,
        callback_payload: object,
        fire_at: str | datetime,
        dlq_on_failure: bool | None = None,
        name: str | None = None,
        workflow_id: str | None = None,
        **options: Unpack[CreateOptions],
    ) -> Schedule:
        """Schedule one signed callback. At `fire_at` the payload is sent byte for byte, signed according to Standard
        Webhooks, at least once and up to three times until the receiver answers 2xx. Raises QUOTA_EXCEEDED.

        callback_url: An http or https URL, or a path that is resolved against the agent's callback_base_url.
        callback_payload: Any JSON, at most 256 KiB; sent byte for byte.
        fire_at: When it is called; the past means now.
        dlq_on_failure: Default false. True: after the last failure a dead letter is kept.
        name: A name for people, shown in lists and not sent; empty for none.
        workflow_id: Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none.
        """
        given_ = Input(
            body=fields({"callback_url": callback_url, "callback_payload": callback_payload, "fire_at": fire_at}, {"dlq_on_failure": dlq_on_failure, "name": name, "workflow_id": workflow_id}),
        )
        answer_: Schedule = await self._transport.call("createSchedule", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["pending", "fired", "cancelled", "failed"] | None = None,
        workflow_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[Schedule]:
        """List schedules, newest first. Can be filtered by status and workflow.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        workflow_id: Only those of this workflow.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor, "status": status, "workflow_id": workflow_id})
        return list_of(self._transport, "listSchedules", {}, given_, options)

    async def retry(self, id: str, **options: Unpack[CreateOptions]) -> Schedule:
        """Send a failed or fired schedule again, now, as a new schedule. The new one has the same URL, payload and
        settings. It resolves the dead letter that the failure left, if any. Raises SCHEDULE_NOT_FOUND,
        INVALID_STATE, ALREADY_CLAIMED, QUOTA_EXCEEDED.

        id: The schedule, sch_….
        """
        given_ = Input(params={"id": id})
        answer_: Schedule = await self._transport.call("retrySchedule", given_, options)
        return answer_

    async def get(self, id: str, **options: Unpack[CallOptions]) -> Schedule:
        """Read a schedule. Includes its status and its last outcome. Raises SCHEDULE_NOT_FOUND.

        id: The schedule, sch_….
        """
        given_ = Input(params={"id": id})
        answer_: Schedule = await self._transport.call("getSchedule", given_, options)
        return answer_

    async def update(
        self,
        id: str,
        *,
        callback_url: str | None = None,
        callback_payload: object | NotGiven = NOT_GIVEN,
        fire_at: str | datetime | None = None,
        dlq_on_failure: bool | None = None,
        name: str | None = None,
        workflow_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Schedule:
        """Change a pending schedule; a new fire_at starts the attempts again. Only the given fields change. The
        schedule must still be pending. Raises SCHEDULE_NOT_FOUND, INVALID_STATE, QUOTA_EXCEEDED.

        id: The schedule, sch_….
        callback_url: An http or https URL, or a path that is resolved against the agent's callback_base_url.
        callback_payload: Any JSON, at most 256 KiB; sent byte for byte.
        fire_at: When it is called; the past means now.
        dlq_on_failure: Default false. True: after the last failure a dead letter is kept.
        name: A name for people, shown in lists and not sent; empty for none.
        workflow_id: Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none.
        """
        given_ = Input(
            params={"id": id},
            body=fields({"callback_payload": callback_payload}, {"callback_url": callback_url, "fire_at": fire_at, "dlq_on_failure": dlq_on_failure, "name": name, "workflow_id": workflow_id}),
        )
        answer_: Schedule = await self._transport.call("updateSchedule", given_, options)
        return answer_

    async def cancel(self, id: str, **options: Unpack[CallOptions]) -> None:
        """Cancel a pending schedule. The callback is no longer sent, and the schedule no longer counts against the
        quota. Raises SCHEDULE_NOT_FOUND, INVALID_STATE.

        id: The schedule, sch_….
        """
        given_ = Input(params={"id": id})
        await self._transport.call("cancelSchedule", given_, options)

    def attempts(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[Attempt]:
        """List the callback attempts of a schedule, newest first. Each has its status code, or the reason why there
        is none. Raises SCHEDULE_NOT_FOUND.

        id: The schedule, sch_….
        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listScheduleAttempts", {"id": id}, given_, options)


class AsyncCheckpoints(AsyncResource):
    async def create(
        self,
        *,
        title: str,
        callback_url: str | None,
        prompt: str | None = None,
        callback_payload: object | NotGiven = NOT_GIVEN,
        timeout_action: Literal["auto_reject", "dlq"] | None = None,
        timeout_seconds: int | None = None,
        expires_at: str | datetime | None = None,
        workflow_id: str | None = None,
        answer_schema: Mapping[str, object] | NotGiven | None = NOT_GIVEN,
        required_approvals: int | None = None,
        required_rejections: int | None = None,
        approvers: Sequence[str] | None = None,
        escalate: Sequence[EscalationStep] | None = None,
        **options: Unpack[CreateOptions],
    ) -> Checkpoint:
        """Ask a human. A person decides it with the admin key or an approval key. The decision is sent to
        `callback_url`, and the agent can wait for it. Without a decision the timeout settles it. Raises
        QUOTA_EXCEEDED.

        title: The question.
        callback_url: An http or https URL, or a path that is resolved against the agent's callback_base_url; null for
            no callback.
        prompt: At most 32 KiB of plain text.
        callback_payload: Any JSON, at most 256 KiB; sent with the decision.
        timeout_action: auto_reject, the default, or dlq.
        expires_at: With timeout_seconds, the earlier one counts; without either, 24 hours from now.
        workflow_id: Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none.
        answer_schema: A flat JSON Schema of the answer that an approval must carry: at most 20 fields of type string,
            number, integer or boolean.
        required_approvals: Approvals by different voters that it needs; default 1.
        required_rejections: Rejections by different voters that it needs; default 1.
        approvers: Ids of the approval keys that may decide, or admin. Default: anybody with a key for it.
        escalate: While nobody has decided, these may also decide after that many seconds; a step without approvers
            lets anybody with a key decide.
        """
        given_ = Input(
            body=fields({"title": title, "callback_url": callback_url, "callback_payload": callback_payload, "answer_schema": answer_schema}, {"prompt": prompt, "timeout_action": timeout_action, "timeout_seconds": timeout_seconds, "expires_at": expires_at, "workflow_id": workflow_id, "required_approvals": required_approvals, "required_rejections": required_rejections, "approvers": approvers, "escalate": escalate}),
        )
        answer_: Checkpoint = await self._transport.call("createCheckpoint", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["pending", "approved", "rejected", "expired", "cancelled"] | None = None,
        workflow_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[Checkpoint]:
        """List checkpoints, newest first. Can be filtered by status and workflow.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        workflow_id: Only those of this workflow.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor, "status": status, "workflow_id": workflow_id})
        return list_of(self._transport, "listCheckpoints", {}, given_, options)

    async def comment(self, id: str, *, text: str, **options: Unpack[CreateOptions]) -> Comment:
        """Comment on a checkpoint. Open to the agent that asked, its approvers and the admin, even once it is
        settled. A comment decides nothing. Raises CHECKPOINT_NOT_FOUND, NOT_AN_APPROVER, TOO_MANY_COMMENTS,
        QUOTA_EXCEEDED.

        id: The checkpoint, chk_….
        text: Plain text.
        """
        given_ = Input(params={"id": id}, body=fields({"text": text}))
        answer_: Comment = await self._transport.call("createComment", given_, options)
        return answer_

    def comments(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[Comment]:
        """List the comments on a checkpoint, oldest first. Open to all who may read the checkpoint: every agent of
        the tenant, the admin, and approval keys that are not bound to another one. Raises CHECKPOINT_NOT_FOUND.

        id: The checkpoint, chk_….
        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listComments", {"id": id}, given_, options)

    async def approve(
        self,
        id: str,
        *,
        reason: str | None = None,
        answer: Mapping[str, object] | NotGiven | None = NOT_GIVEN,
        effective_payload: object | NotGiven = NOT_GIVEN,
        expected_hash: str | None = None,
        expires_at: str | datetime | None = None,
        uses: int | None = None,
        **options: Unpack[CallOptions],
    ) -> Checkpoint:
        """Approve; the agent is called back. Needs the admin key or an approval key. Where more approvals are
        required, the checkpoint stays `pending`. Raises CHECKPOINT_NOT_FOUND, CHECKPOINT_ALREADY_RESOLVED,
        ALREADY_VOTED, NOT_AN_APPROVER, VOTE_DIFFERS, ANSWER_INVALID, NOT_EDITABLE.

        id: The checkpoint, chk_….
        reason: Sent to the agent.
        answer: Fits the `answer_schema` of the checkpoint.
        effective_payload: The payload of the effect as it is approved, where it is `editable`. Default: as it is now.
            Not null, unless null was proposed.
        expected_hash: For an effect: the hash of the payload that the approver saw, `edited_payload_hash`, or
            `payload_hash` where nobody had changed it. 409 when the payload is now a different one.
        expires_at: For an effect: until when it may start under the approval. Default: no limit.
        uses: For an effect: how many with the same bytes may start under the approval; default 1.
        """
        given_ = Input(
            params={"id": id},
            body=fields({"answer": answer, "effective_payload": effective_payload}, {"reason": reason, "expected_hash": expected_hash, "expires_at": expires_at, "uses": uses}),
        )
        answer_: Checkpoint = await self._transport.call("approveCheckpoint", given_, options)
        return answer_

    async def get(self, id: str, *, wait: int | None = None, **options: Unpack[CallOptions]) -> Checkpoint:
        """Read a checkpoint, or wait until it is settled. With `wait`, the answer comes when the checkpoint is
        settled, or after that many seconds. Raises CHECKPOINT_NOT_FOUND.

        id: The checkpoint, chk_….
        wait: Seconds to hold the request while the checkpoint is pending.
        """
        given_ = Input(params={"id": id}, query=fields({}, {"wait": wait}), held_ms=(wait or 0) * 1_000)
        answer_: Checkpoint = await self._transport.call("getCheckpoint", given_, options)
        return answer_

    async def cancel(self, id: str, **options: Unpack[CallOptions]) -> None:
        """Cancel a checkpoint that you created. Only for the agent that created it. No decision is sent. Raises
        CHECKPOINT_NOT_FOUND, CHECKPOINT_ALREADY_RESOLVED.

        id: The checkpoint, chk_….
        """
        given_ = Input(params={"id": id})
        await self._transport.call("cancelCheckpoint", given_, options)

    def attempts(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[Attempt]:
        """List the attempts to send the decision, newest first. Each has its status code, or the reason why there is
        none. Raises CHECKPOINT_NOT_FOUND.

        id: The checkpoint, chk_….
        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listCheckpointAttempts", {"id": id}, given_, options)

    def votes(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[Vote]:
        """List the votes on a checkpoint, by voter. A checkpoint has votes when it has an answer_schema, approvers or
        an effect, or needs several votes. An approval key sees the votes on what it may decide. Raises
        CHECKPOINT_NOT_FOUND.

        id: The checkpoint, chk_….
        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listVotes", {"id": id}, given_, options)

    async def reject(self, id: str, *, reason: str | None = None, **options: Unpack[CallOptions]) -> Checkpoint:
        """Reject; the agent is called back. Needs the admin key or an approval key. Where more rejections are
        required, the checkpoint stays `pending`. Raises CHECKPOINT_NOT_FOUND, CHECKPOINT_ALREADY_RESOLVED,
        ALREADY_VOTED, NOT_AN_APPROVER.

        id: The checkpoint, chk_….
        reason: Sent to the agent.
        """
        given_ = Input(params={"id": id}, body=fields({}, {"reason": reason}))
        answer_: Checkpoint = await self._transport.call("rejectCheckpoint", given_, options)
        return answer_

    async def revoke(self, id: str, **options: Unpack[CallOptions]) -> Checkpoint:
        """Revoke the approval of an effect. Needs the admin key, or an approval key that may decide it. No effect
        starts under it any more, and those that had not started end as rejected. One that is running may finish.
        `permit_expires_at` is the time of the revocation. Raises CHECKPOINT_NOT_FOUND, NOT_AN_APPROVER,
        INVALID_STATE.

        id: The checkpoint, chk_….
        """
        given_ = Input(params={"id": id})
        answer_: Checkpoint = await self._transport.call("revokeApproval", given_, options)
        return answer_


class AsyncApprovals(AsyncResource):
    async def get(self, checkpoint_id: str, *, wait: int | None = None, **options: Unpack[CallOptions]) -> Approval:
        """Read a checkpoint with an approval key, or wait until it is settled. With `wait`, the answer comes when the
        checkpoint is settled, or after that many seconds. Raises CHECKPOINT_NOT_FOUND.

        checkpoint_id: The checkpoint, chk_….
        wait: Seconds to hold the request while the checkpoint is pending.
        """
        given_ = Input(
            params={"checkpoint_id": checkpoint_id},
            query=fields({}, {"wait": wait}),
            held_ms=(wait or 0) * 1_000,
        )
        answer_: Approval = await self._transport.call("getApproval", given_, options)
        return answer_


class AsyncInboxes(AsyncResource):
    async def create(
        self,
        *,
        label: str | None = None,
        forward_url: str | None = None,
        ttl: float | None = None,
        workflow_id: str | None = None,
        **options: Unpack[CreateOptions],
    ) -> CreatedInbox:
        """Create an inbox. Its URL accepts any request without a key, until `ttl` seconds have passed. Raises
        QUOTA_EXCEEDED.

        label: For humans.
        forward_url: An http or https URL that each message is sent on to, once.
        ttl: Seconds; default 86400, at most what the plan allows.
        workflow_id: Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none.
        """
        given_ = Input(
            body=fields({}, {"label": label, "forwardUrl": forward_url, "ttl": ttl, "workflowId": workflow_id}),
        )
        answer_: CreatedInbox = await self._transport.call("createInbox", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        workflow_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[ListedInbox]:
        """List inboxes that have not expired, newest first. Only those that have not expired.

        limit: Items, default 50; more than 100 counts as 100.
        offset: Items to skip.
        workflow_id: Only those of this workflow.
        """
        given_ = fields({}, {"limit": limit, "offset": offset, "workflowId": workflow_id})
        return offset_list_of(self._transport, "listInboxes", {}, given_, options)

    async def replay(self, id: str, message_id: str, **options: Unpack[CreateOptions]) -> Message:
        """Forward a message once more. It is sent to the `forwardUrl` of its inbox, as it came. The answer is the
        message with its forward pending. Raises INBOX_NOT_FOUND, MESSAGE_NOT_FOUND, INVALID_STATE.

        id: The inbox, inb_….
        message_id: The message, msg_….
        """
        given_ = Input(params={"id": id, "message_id": message_id})
        answer_: Message = await self._transport.call("replayMessage", given_, options)
        return answer_

    async def get(self, id: str, **options: Unpack[CallOptions]) -> InboxDetail:
        """Read an inbox and its latest 50 messages, newest first. Messages are shown with their exact bytes. Raises
        INBOX_NOT_FOUND.

        id: The inbox, inb_….
        """
        given_ = Input(params={"id": id})
        answer_: InboxDetail = await self._transport.call("getInbox", given_, options)
        return answer_

    async def delete(self, id: str, **options: Unpack[CallOptions]) -> Deletion:
        """Delete an inbox and its messages. Its URL answers 404 from then on. Raises INBOX_NOT_FOUND.

        id: The inbox, inb_….
        """
        given_ = Input(params={"id": id})
        answer_: Deletion = await self._transport.call("deleteInbox", given_, options)
        return answer_

    async def search(
        self,
        id: str,
        *,
        q: str,
        before: str | None = None,
        limit: int | None = None,
        **options: Unpack[CallOptions],
    ) -> MessageSearchPage:
        """Search the messages of an inbox, newest first. Searches method, path, query and body as they came, ignoring
        case. A page looks at 500 messages or 1 MiB at most, so it may be short, or empty, before the end: continue
        with `nextBefore` until that is null. Raises INBOX_NOT_FOUND.

        id: The inbox, inb_….
        q: The text.
        before: nextBefore of the previous page: only older messages.
        limit: Items, default 50; more than 100 counts as 100.
        """
        given_ = Input(params={"id": id}, query=fields({"q": q}, {"before": before, "limit": limit}))
        answer_: MessageSearchPage = await self._transport.call("searchMessages", given_, options)
        return answer_


class AsyncRateLimit(AsyncResource):
    async def status(self, key: str, **options: Unpack[CallOptions]) -> RateLimitStatus:
        """Read a counter without counting. A counter named `check` or `reset` cannot be read here: those are other
        paths.

        key: The counter: 1 to 256 bytes of UTF-8, percent-encoded once.
        """
        given_ = Input(params={"key": key})
        answer_: RateLimitStatus = await self._transport.call("getRateLimit", given_, options)
        return answer_

    async def reset(self, key: str, **options: Unpack[CallOptions]) -> RateLimitReset:
        """End the window of a counter. The next hit begins a new window.

        key: Names the counter: 1 to 256 bytes of UTF-8.
        """
        given_ = Input(body=fields({"key": key}))
        answer_: RateLimitReset = await self._transport.call("resetRateLimit", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        prefix: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[RateLimitCounter]:
        """List the running counters, those that end first at the top. A fixed window ends at its `resetAt`, a sliding
        counter with its second bucket. Can be filtered by the beginning of the key.

        limit: Items, default 50; more than 100 counts as 100.
        offset: Items to skip.
        prefix: Only counters whose key starts with this text, among the 10,000 that end first.
        """
        given_ = fields({}, {"limit": limit, "offset": offset, "prefix": prefix})
        return offset_list_of(self._transport, "listRateLimits", {}, given_, options)


class AsyncEffects(AsyncResource):
    async def claim(
        self,
        *,
        type: str,
        key: str,
        payload: object,
        note: str | None = None,
        lease_seconds: int | None = None,
        lease_token: str | None = None,
        on_unknown: Literal["hold", "ask", "retry"] | None = None,
        approval: EffectApprovalRequest | None = None,
        workflow_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> ClaimedEffect:
        """Claim the right to do something once. The pair of type and key is unique; the payload is bound to it byte
        for byte. 201: you have the lease. 202: it waits for its approval. 200: it is approved, or it has ended,
        with its result. A repeat returns its current state. Raises EFFECT_IN_FLIGHT, EFFECT_UNKNOWN,
        EFFECT_NOT_HELD, EFFECT_KEY_REUSED, EFFECT_REJECTED, EFFECT_APPROVAL_REQUIRED, EFFECT_APPROVERS_GONE,
        QUOTA_EXCEEDED, INVALID_STATE, CHECKPOINT_NOT_FOUND, QUARANTINED.

        type: The kind of the effect, such as refund.
        key: Makes it unique within its type, such as an order number.
        payload: Any JSON, at most 256 KiB: exactly what is done.
        note: For people; not bound to the effect.
        lease_seconds: How long the lease holds; default that of the previous one, or 60.
        lease_token: Random text of your own, so that a repeat after a lost answer gets the same lease.
        on_unknown: When the lease runs out: hold (default) waits for an admin; ask opens a checkpoint; retry frees
            it, for idempotent work.
        approval: Asks a person first, who sees exactly these bytes.
        workflow_id: Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none.
        """
        given_ = Input(
            body=fields({"type": type, "key": key, "payload": payload}, {"note": note, "lease_seconds": lease_seconds, "lease_token": lease_token, "on_unknown": on_unknown, "approval": approval, "workflow_id": workflow_id}),
        )
        answer_: ClaimedEffect = await self._transport.call("claimEffect", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["awaiting_approval", "approved", "ready", "running", "unknown", "succeeded", "failed", "rejected"] | None = None,
        type: str | None = None,
        key: str | None = None,
        workflow_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[ListedEffect]:
        """List effects, newest first. Leaves out payloads and results. With `type` and `key`, only the effect of that
        pair.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        type: Only effects of this type.
        key: Only effects with this key: at most one of each type, in the order of their types.
        workflow_id: Only those of this workflow.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor, "status": status, "type": type, "key": key, "workflow_id": workflow_id})
        return list_of(self._transport, "listEffects", {}, given_, options)

    async def extend(
        self,
        id: str,
        *,
        lease_token: str,
        lease_seconds: int | None = None,
        **options: Unpack[CallOptions],
    ) -> Effect:
        """Extend the lease to lease_seconds from now. Only for the holder of the lease. Its fence stays the same.
        Raises EFFECT_NOT_FOUND, EFFECT_NOT_HELD.

        id: The effect, eff_….
        lease_token: The token of the lease.
        lease_seconds: How long the lease holds; default that of the previous one, or 60.
        """
        given_ = Input(params={"id": id}, body=fields({"lease_token": lease_token}, {"lease_seconds": lease_seconds}))
        answer_: Effect = await self._transport.call("extendEffect", given_, options)
        return answer_

    async def fail(
        self,
        id: str,
        *,
        lease_token: str,
        error: str,
        retry: bool | None = None,
        **options: Unpack[CallOptions],
    ) -> Effect:
        """Report that it did not happen. Without `retry` this is final; with it, the effect may be started again. A
        repeat gets the same answer. Raises EFFECT_NOT_FOUND, EFFECT_NOT_HELD.

        id: The effect, eff_….
        lease_token: The token of the lease.
        error: Why it did not happen.
        retry: True: it did not happen, and may be started again. Default false: final.
        """
        given_ = Input(params={"id": id}, body=fields({"lease_token": lease_token, "error": error}, {"retry": retry}))
        answer_: Effect = await self._transport.call("failEffect", given_, options)
        return answer_

    async def get(self, id: str, *, wait: int | None = None, **options: Unpack[CallOptions]) -> Effect:
        """Read an effect, or wait until it is decided or has ended. With `wait`, the answer comes when the effect
        neither waits for its approval nor runs, or after that many seconds. Raises EFFECT_NOT_FOUND.

        id: The effect, eff_….
        wait: Seconds to hold the request while the effect waits for its approval, or runs.
        """
        given_ = Input(params={"id": id}, query=fields({}, {"wait": wait}), held_ms=(wait or 0) * 1_000)
        answer_: Effect = await self._transport.call("getEffect", given_, options)
        return answer_

    async def resolve(
        self,
        id: str,
        *,
        outcome: Literal["succeeded", "failed", "retry"],
        result: object | NotGiven = NOT_GIVEN,
        error: str | None = None,
        fence: int | None = None,
        **options: Unpack[CallOptions],
    ) -> Effect:
        """Decide what became of an effect with an unknown outcome. Look at its target first. An effect that is free
        again, or approved, may also be closed. A repeat gets the same answer. With `fence`, a lease granted in the
        meantime is left alone: 409, with the current `fence` in the details. Raises EFFECT_NOT_FOUND,
        INVALID_STATE.

        id: The effect, eff_….
        outcome: succeeded: it happened. failed: it did not, and will not. retry: it did not, and may be started.
        result: Any JSON, at most 256 KiB; returned to every repeat.
        error: Why it did not happen.
        fence: The `fence` of the effect that you looked at: 409 when it has another one now.
        """
        given_ = Input(
            params={"id": id},
            body=fields({"outcome": outcome, "result": result}, {"error": error, "fence": fence}),
        )
        answer_: Effect = await self._transport.call("resolveEffect", given_, options)
        return answer_

    async def start(
        self,
        id: str,
        *,
        payload_hash: str | None = None,
        lease_seconds: int | None = None,
        lease_token: str | None = None,
        **options: Unpack[CallOptions],
    ) -> ClaimedEffect:
        """Start an effect that is approved, or free again. Of any number of callers exactly one gets the lease.
        Raises EFFECT_NOT_FOUND, EFFECT_IN_FLIGHT, EFFECT_UNKNOWN, EFFECT_NOT_HELD, EFFECT_KEY_REUSED,
        EFFECT_REJECTED, EFFECT_APPROVAL_REQUIRED, INVALID_STATE, QUARANTINED.

        id: The effect, eff_….
        payload_hash: The SHA-256 of the bytes that you are about to act on, in hex: any other bytes are refused.
        lease_seconds: How long the lease holds; default that of the previous one, or 60.
        lease_token: Random text of your own, so that a repeat after a lost answer gets the same lease.
        """
        given_ = Input(
            params={"id": id},
            body=fields({}, {"payload_hash": payload_hash, "lease_seconds": lease_seconds, "lease_token": lease_token}),
        )
        answer_: ClaimedEffect = await self._transport.call("startEffect", given_, options)
        return answer_

    async def succeed(
        self,
        id: str,
        *,
        lease_token: str,
        result: object | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> Effect:
        """Report that it happened. Accepted even after the lease has run out, until somebody has started it again or
        resolved it. A repeat gets the same answer. Raises EFFECT_NOT_FOUND, EFFECT_NOT_HELD.

        id: The effect, eff_….
        lease_token: The token of the lease.
        result: Any JSON, at most 256 KiB; returned to every repeat.
        """
        given_ = Input(params={"id": id}, body=fields({"lease_token": lease_token, "result": result}))
        answer_: Effect = await self._transport.call("succeedEffect", given_, options)
        return answer_


class AsyncEffectPolicies(AsyncResource):
    async def get(self, type: str, **options: Unpack[CallOptions]) -> EffectPolicy:
        """Read the policy for a type of effects. Answers 404 while there is none for this type. Raises
        EFFECT_POLICY_NOT_FOUND.

        type: A type of effects, or * for those without a policy.
        """
        given_ = Input(params={"type": type})
        answer_: EffectPolicy = await self._transport.call("getEffectPolicy", given_, options)
        return answer_

    async def set(
        self,
        type: str,
        *,
        approval: Literal["optional", "required"],
        required_approvals: int | None = None,
        approvers: Sequence[str] | None = None,
        lease_seconds_max: int | None = None,
        **options: Unpack[CallOptions],
    ) -> EffectPolicy:
        """Set the minimum that effects of a type need. Applies from now on: effects that are under way keep what they
        began with. Fields left out get their defaults. Raises QUOTA_EXCEEDED.

        type: A type of effects, or * for those without a policy.
        approval: required: an effect that asks for no approval still gets one.
        required_approvals: The minimum number of approvals; default 1.
        approvers: Those who may approve; default anybody with a key for it.
        lease_seconds_max: The longest lease; default any.
        """
        given_ = Input(
            params={"type": type},
            body=fields({"approval": approval}, {"required_approvals": required_approvals, "approvers": approvers, "lease_seconds_max": lease_seconds_max}),
        )
        answer_: EffectPolicy = await self._transport.call("setEffectPolicy", given_, options)
        return answer_

    async def delete(self, type: str, **options: Unpack[CallOptions]) -> None:
        """Delete the policy for a type of effects. Effects of this type then need only what their claims ask for.
        Raises EFFECT_POLICY_NOT_FOUND.

        type: A type of effects, or * for those without a policy.
        """
        given_ = Input(params={"type": type})
        await self._transport.call("deleteEffectPolicy", given_, options)

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[EffectPolicy]:
        """List the policies for effects, by type. A type without a policy is not listed.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listEffectPolicies", {}, given_, options)


class AsyncWorkflows(AsyncResource):
    async def get(
        self,
        workflow_id: str,
        *,
        after: int | None = None,
        limit: int | None = None,
        **options: Unpack[CallOptions],
    ) -> WorkflowTimeline:
        """Read a workflow: what happened, oldest first, and what is open. Continue with `next_after` while `more` is
        true. Raises WORKFLOW_NOT_FOUND.

        workflow_id: The workflow_id that its events carry, percent-encoded once.
        after: Events with a higher number; default 0, from the oldest.
        limit: Items per page, default 50; more than 200 counts as 200.
        """
        given_ = Input(params={"workflow_id": workflow_id}, query=fields({}, {"after": after, "limit": limit}))
        answer_: WorkflowTimeline = await self._transport.call("getWorkflow", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        prefix: str | None = None,
        status: Literal["waiting", "failed", "idle"] | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[Workflow]:
        """List workflows, the latest activity first. With `prefix` they come in the order of their ids.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        prefix: Ids that begin with this text.
        status: waiting: something in it waits. failed: a failure in it is open. idle: neither.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor, "prefix": prefix, "status": status})
        return list_of(self._transport, "listWorkflows", {}, given_, options)


class AsyncSubscriptions(AsyncResource):
    async def create(
        self,
        *,
        types: Sequence[str],
        url: str | None = None,
        to: str | None = None,
        workflow_id: str | None = None,
        format: Literal["standard", "slack"] | None = None,
        name: str | None = None,
        paused: bool | None = None,
        **options: Unpack[CreateOptions],
    ) -> Subscription:
        """Deliver events to a URL or an address, from now on. Events are delivered in order, at least once, signed as
        callbacks are, with retries over about three days. An address is first asked by one email to confirm. The
        URL or address is shown masked from now on. Raises QUOTA_EXCEEDED.

        types: Event types, exact or all of a noun: `schedule.failed`, `checkpoint.*`.
        url: An http or https URL. Either url or to is required.
        to: An email address, where the service has an SMTP server.
        workflow_id: Only events of this workflow.
        format: standard, the default: the event as GET /v1/events shows it. slack: a message for people.
        name: A name for people, shown in lists; empty for none.
        paused: True: nothing is delivered until it is false again.
        """
        given_ = Input(
            body=fields({"types": types}, {"url": url, "to": to, "workflow_id": workflow_id, "format": format, "name": name, "paused": paused}),
        )
        answer_: Subscription = await self._transport.call("createSubscription", given_, options)
        return answer_

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[Subscription]:
        """List subscriptions, newest first. URLs and addresses are masked.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listSubscriptions", {}, given_, options)

    async def get(self, id: str, **options: Unpack[CallOptions]) -> Subscription:
        """Read a subscription: its progress, and the outcome of its last attempt. `behind` is the number of events
        that have happened since the last one that was delivered or skipped. Raises SUBSCRIPTION_NOT_FOUND.

        id: The subscription, sub_….
        """
        given_ = Input(params={"id": id})
        answer_: Subscription = await self._transport.call("getSubscription", given_, options)
        return answer_

    async def update(
        self,
        id: str,
        *,
        url: str | None = None,
        types: Sequence[str] | None = None,
        workflow_id: str | NotGiven | None = NOT_GIVEN,
        name: str | None = None,
        paused: bool | None = None,
        **options: Unpack[CallOptions],
    ) -> Subscription:
        """Change, pause or resume a subscription; the event that failed is tried again at once. Only the given fields
        change. Raises SUBSCRIPTION_NOT_FOUND, INVALID_STATE, QUOTA_EXCEEDED.

        id: The subscription, sub_….
        url: An http or https URL; not for a subscription that sends emails.
        types: Event types, exact or all of a noun: `schedule.failed`, `checkpoint.*`.
        workflow_id: Only events of this workflow.
        name: A name for people, shown in lists; empty for none.
        paused: True: nothing is delivered until it is false again.
        """
        given_ = Input(
            params={"id": id},
            body=fields({"workflow_id": workflow_id}, {"url": url, "types": types, "name": name, "paused": paused}),
        )
        answer_: Subscription = await self._transport.call("updateSubscription", given_, options)
        return answer_

    async def delete(self, id: str, **options: Unpack[CallOptions]) -> None:
        """Delete a subscription. Nothing more is delivered. Raises SUBSCRIPTION_NOT_FOUND.

        id: The subscription, sub_….
        """
        given_ = Input(params={"id": id})
        await self._transport.call("deleteSubscription", given_, options)

    def attempts(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[SubscriptionAttempt]:
        """List the last attempts to deliver, newest first. At most the last 100. Raises SUBSCRIPTION_NOT_FOUND.

        id: The subscription, sub_….
        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listSubscriptionAttempts", {"id": id}, given_, options)

    async def replay(self, id: str, *, after: int, **options: Unpack[CallOptions]) -> Subscription:
        """Deliver the events after a number again, or skip those before it. Events keep their webhook-ids, so that a
        receiver can tell which it already has. Raises SUBSCRIPTION_NOT_FOUND.

        id: The subscription, sub_….
        after: The number of an event: what comes after it is delivered, with the same webhook-ids. 0: all that are
            kept.
        """
        given_ = Input(params={"id": id}, body=fields({"after": after}))
        answer_: Subscription = await self._transport.call("replaySubscription", given_, options)
        return answer_


class AsyncSeal(AsyncResource):
    async def bundle(
        self,
        *,
        workflow_id: str | None = None,
        from_: int | None = None,
        after: int | None = None,
        **options: Unpack[CallOptions],
    ) -> SealBundle:
        """Get everything needed to check a workflow, or the journal, offline. With `workflow_id`, the events of that
        workflow, each with its proof; without it, all events, from which the root can be recomputed. Check it with
        `waystation verify` or `examples/verify_bundle.py`. Raises SEAL_SIZE_UNKNOWN, SEAL_BROKEN, STORAGE_FULL.

        workflow_id: A workflow, by its id.
        from_: The size of a checkpoint that you kept: the bundle proves that it continues from there.
        after: Only events after this number; default 0. Where retention has removed more, the bundle begins after
            those.
        """
        given_ = Input(query=fields({}, {"workflow_id": workflow_id, "from": from_, "after": after}))
        answer_: SealBundle = await self._transport.call("getBundle", given_, options)
        return answer_

    async def consistency(
        self,
        *,
        from_: int,
        to: int | None = None,
        **options: Unpack[CallOptions],
    ) -> SealConsistency:
        """Prove that the journal continues from an earlier checkpoint. The tree of `to` events begins with the tree
        of `from` events: no earlier event was changed. Raises SEAL_SIZE_UNKNOWN, SEAL_BROKEN, STORAGE_FULL.

        from_: The size of the earlier checkpoint.
        to: The size of the later checkpoint; default all events.
        """
        given_ = Input(query=fields({"from": from_}, {"to": to}))
        answer_: SealConsistency = await self._transport.call("getConsistencyProof", given_, options)
        return answer_

    async def proof(self, *, event: str, size: int | None = None, **options: Unpack[CallOptions]) -> SealProof:
        """Prove that an event is in the journal. The event is named by its id or its number. The proof is against the
        checkpoint of `size` events, or the current one. Raises SEAL_EVENT_NOT_FOUND, SEAL_SIZE_UNKNOWN,
        SEAL_BROKEN, STORAGE_FULL.

        event: The event, by its id, evt_…, or its number, seq.
        size: The proof is for the tree of this many events; default all.
        """
        given_ = Input(query=fields({"event": event}, {"size": size}))
        answer_: SealProof = await self._transport.call("getInclusionProof", given_, options)
        return answer_

    async def get(self, *, workflow_id: str | None = None, **options: Unpack[CallOptions]) -> SealCheckpoint:
        """Seal the journal and return its checkpoint, a signed note. Keep `note` somewhere else: it reveals any later
        change to the events before it. With `workflow_id` the note also states how many events that workflow has.
        Raises SEAL_BROKEN, STORAGE_FULL.

        workflow_id: A workflow, by its id.
        """
        given_ = Input(query=fields({}, {"workflow_id": workflow_id}))
        answer_: SealCheckpoint = await self._transport.call("getSeal", given_, options)
        return answer_

    def checkpoints(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncPages[SealKeptCheckpoint]:
        """List the checkpoints of each hour, newest first. They remain when retention removes events. Compare them
        with those that you have kept: one that the service keeps itself proves nothing against the service.

        limit: Items per page, default 50; more than 200 counts as 200.
        cursor: next_cursor of the previous page.
        """
        given_ = fields({}, {"limit": limit, "cursor": cursor})
        return list_of(self._transport, "listSealCheckpoints", {}, given_, options)


class AsyncClock(AsyncResource):
    async def advance(self, seconds: float, **options: Unpack[CallOptions]) -> Advanced:
        """Move the time of a service with a test clock, and do all that falls due on the way. Only with CLOCK=test;
        other services answer 404 ROUTE_NOT_FOUND. Time moves from one due time to the next, and everything due is
        finished, for every tenant, before it moves on. The answer lists what happened to the tenant of the key.
        Raises ROUTE_NOT_FOUND, CLOCK_ADVANCING, QUARANTINED.

        seconds: How far to move it, to the millisecond. 259200 is three days; 0 only finishes what is due now.
        """
        given_ = Input(body=fields({"seconds": seconds}))
        answer_: Advanced = await self._transport.call("advanceClock", given_, options)
        return answer_

    async def get(self, **options: Unpack[CallOptions]) -> TestClock:
        """Read the time of a service with a test clock. Only with CLOCK=test; other services answer 404
        ROUTE_NOT_FOUND. Raises ROUTE_NOT_FOUND.
        """
        given_ = Input()
        answer_: TestClock = await self._transport.call("getClock", given_, options)
        return answer_


class AsyncHealth(AsyncResource):
    async def live(self, **options: Unpack[CallOptions]) -> Liveness:
        """Check that the process answers, and nothing else. For a process supervisor. It does not ask the database."""
        given_ = Input()
        answer_: Liveness = await self._transport.call("livez", given_, options)
        return answer_

    async def ready(self, *, verbose: bool | None = None, **options: Unpack[CallOptions]) -> Readiness:
        """Check that the database answers, the schema is right and no drain has begun. For a load balancer: 503 while
        the service cannot do its work. With `verbose` it adds versions and settings. Raises UNAVAILABLE.

        verbose: Adds version, engine, schema version and durability settings.
        """
        given_ = Input(query=fields({}, {"verbose": "true" if verbose else None}))
        answer_: Readiness = await self._transport.call("readyz", given_, options)
        return answer_


class AsyncResources:
    """The client with its resources."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self.tenants = AsyncTenants(transport)
        self.agents = AsyncAgents(transport)
        self.approval_keys = AsyncApprovalKeys(transport)
        self.kv = AsyncKv(transport)
        self.namespaces = AsyncNamespaces(transport)
        self.audit = AsyncAudit(transport)
        self.dlq = AsyncDlq(transport)
        self.schedules = AsyncSchedules(transport)
        self.checkpoints = AsyncCheckpoints(transport)
        self.approvals = AsyncApprovals(transport)
        self.inboxes = AsyncInboxes(transport)
        self.rate_limit = AsyncRateLimit(transport)
        self.effects = AsyncEffects(transport)
        self.effect_policies = AsyncEffectPolicies(transport)
        self.workflows = AsyncWorkflows(transport)
        self.subscriptions = AsyncSubscriptions(transport)
        self.seal = AsyncSeal(transport)
        self.clock = AsyncClock(transport)
        self.health = AsyncHealth(transport)

    async def tick(self, **options: Unpack[CallOptions]) -> TickSummary:
        """Do all the work that is due, and answer when it is done. For an external timer, with the cron secret. The
        service does the same on its own. Raises UNAUTHORIZED, QUARANTINED.
        """
        given_ = Input()
        answer_: TickSummary = await self._transport.call("tick", given_, options)
        return answer_

    async def openapi(self, **options: Unpack[CallOptions]) -> dict[str, Any]:
        """This API as an OpenAPI 3.1 document. With the address of this service as its server. `x-errors` says what
        to do about each error code.
        """
        given_ = Input()
        answer_: dict[str, Any] = await self._transport.call("openapi", given_, options)
        return answer_
