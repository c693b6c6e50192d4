"""A program of a strict project: everything here passes mypy --strict and pyright in its strict mode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timezone
from decimal import Decimal
from typing import TypeVar

import httpx

from waystation import (
    AsyncPages,
    AsyncWaystation,
    CallbackVerificationError,
    CallOptions,
    CreateOptions,
    EffectRejectedError,
    ExactFloat,
    Page,
    Pages,
    Permit,
    RateLimitResult,
    RawJson,
    Signal,
    ThrownMeans,
    Waystation,
    WaystationError,
    WaystationNetworkError,
    WaystationTimeoutError,
    WorkContext,
    WorkSummary,
    has_code,
    verify_callback,
)
from waystation.types import AuditEntry, Checkpoint, ClaimedDeadLetter, Entry, JournalEvent, ListedKey, PutResult

client = Waystation("http://x", key=None, http_client=httpx.Client(), timeout_ms=1_000, parse_json=lambda text: text)
options: CallOptions = {"signal": Signal(), "retries": 3}
create: CreateOptions = {"idempotency_key": "mine", "timeout_ms": 5.5}


def state() -> None:
    entry: Entry = client.kv.get("state", "run", **options)
    version: int = entry["version"]
    put: PutResult = client.kv.put("state", "run", {"rows": [1, Decimal("1.10"), RawJson("1e400")]}, cas_version=version)
    found: Entry | None = client.kv.find("state", put["key"])
    runs = client.kv.update("state", "runs", lambda count: count + 1, default=0, tries=3)
    if runs is not None:
        print(runs["version"], found)
    keys: Pages[ListedKey] = client.kv.list("state", prefix="r", limit=10)
    for key in keys:
        print(key["key"].upper())
    page: Page[ListedKey] = keys.page()
    cursor: str | None = page.next_cursor
    print(cursor, ExactFloat("1.10").decimal())


def features() -> None:
    audited: AuditEntry = client.audit.append(action="x", metadata={"a": 1}, **create)
    client.audit.append(action="x", metadata=None)
    client.schedules.create(
        callback_url="http://x", callback_payload=None, fire_at=datetime.now(timezone.utc), dlq_on_failure=True
    )
    client.agents.update("payer", mode="read")
    client.subscriptions.update("sub", workflow_id=None)
    checked: RateLimitResult = client.rate_limit.check("bank", limit=10, window_seconds=60)
    if not checked["allowed"]:
        print(checked.get("retryAfter", 1.0) + 1)
    asked: Checkpoint = client.checkpoints.ask(
        title="Pay?", escalate=[{"after_seconds": 60}], answer_schema={"type": "object"}, wait_seconds=20
    )
    print(asked["reason"], audited["seq"] + 1)
    matched: int = client.dlq.redrive_many(filter={"status": "failed"}, dry_run=True)["matched"]
    status: str = client.dlq.redrive_many(filter={"ids": ["a"]})["status"]
    first: JournalEvent = client.wait(any=[{"type": "kv.*"}, {"subject": "x"}]).first()
    print(matched, status, first["data"])


def received() -> None:
    for message in client.inboxes.messages("inb_1", follow=True):
        names = message["query"].get("name", [])
        print(message["headers"].get("x-event", "").lower(), [names] if isinstance(names, str) else names)


def handle(item: ClaimedDeadLetter, context: WorkContext) -> None:
    print(item["payload"], context.signal.aborted)


def told(error: Exception, item: ClaimedDeadLetter | None) -> None:
    print(error, item)


def meant(error: Exception) -> ThrownMeans:
    return "unknown" if isinstance(error, OSError) else "failed"


def refund(permit: Permit) -> int:
    return len(permit.id)


def work() -> None:
    summary: WorkSummary = client.dlq.work(handle, stop_when_empty=True, on_error=lambda error, item: print(error, item))
    receipt: int = client.effects.once(refund, type="refund", key="1", payload={"a": 1}, approval={"title": "?"})
    client.effects.once(refund, type="refund", key="1", payload=1, on_raise=lambda error: "failed")
    client.effects.once(refund, type="refund", key="1", payload=1, on_raise=meant)
    client.dlq.work(handle, on_error=told)
    print(summary.resolved + receipt)


def errors() -> None:
    try:
        client.dlq.resolve("x")
    except WaystationError as error:
        if error.code == "DLQ_NOT_FOUND" or has_code(error, "INVALID_STATE", "LOCK_NOT_HELD"):
            details: Mapping[str, object] | None = error.details
            print(details, error.next, error.exit == "not_found", error.retry_after_seconds)
    except WaystationNetworkError as error:
        print(error.may_have_arrived, error.url)
    except WaystationTimeoutError as error:
        print(error.waited_ms)
    except EffectRejectedError as error:
        print(error.status == "expired")


def callback(headers: Mapping[str, str], body: bytes) -> str:
    try:
        return verify_callback(headers, body, ["whsec_a", "whsec_b"], tolerance_seconds=60).id
    except CallbackVerificationError as error:
        return error.reason


R = TypeVar("R")


async def audited(agent: AsyncWaystation, work: Callable[[Permit], R | Awaitable[R]]) -> R:
    return await agent.effects.once(work, type="refund", key="1", payload=1)


async def asynchronous() -> None:
    async with AsyncWaystation("http://x") as agent:
        pages: AsyncPages[AuditEntry] = agent.audit.list(workflow_id="x")
        async for entry in pages:
            print(entry["action"])
        actions: list[str] = [entry["action"] async for entry in agent.audit.list()]
        put: PutResult = await agent.kv.put("a", "b", actions)
        event: JournalEvent = await agent.wait(any=[{"subject": "x"}])
        async for later in agent.events.follow(after=event["seq"]):
            print(later["type"], put)

        async def charge(permit: Permit) -> str:
            return permit.payload_hash

        receipt: str = await agent.effects.once(charge, type="refund", key="1", payload=1)
        other: int = await agent.effects.once(refund, type="refund", key="1", payload=1)
        inferred = await agent.effects.once(charge, type="refund", key="1", payload=1)
        inferred_too = await agent.effects.once(refund, type="refund", key="1", payload=1)
        print(receipt.upper(), other + 1, inferred.upper(), inferred_too + 1)
