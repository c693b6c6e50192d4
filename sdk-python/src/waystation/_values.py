"""Values that calls take and return beside those of the contract, the same for both clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeAlias, TypedDict, TypeVar

from ._signal import Signal
from .types import Effect, JournalEvent, RateLimitAllowed

T = TypeVar("T")


class NotGiven(Enum):
    """The default of an argument for which None means the null of JSON."""

    NOT_GIVEN = "NOT_GIVEN"

    def __repr__(self) -> str:
        return "NOT_GIVEN"

    def __bool__(self) -> Literal[False]:
        return False


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


class CallOptions(TypedDict, total=False):
    """Options that every call takes by name."""

    signal: Signal | None
    """Ends the call, its waits between tries included, with the signal's reason."""
    timeout_ms: float | None
    """How long each try may take; default that of the client."""
    retries: int | None
    """How often a try that failed is followed by another one; default that of the client."""
    request_id: str | None
    """Sent as X-Request-Id, to find the call in the service's log: 8 to 64 of ``A-Za-z0-9_.-``."""


class CreateOptions(CallOptions, total=False):
    """Options of calls that create something."""

    idempotency_key: str | None
    """One is made for each call unless given. Give your own to be safe over restarts of your program, too."""


class WaitOptions(CallOptions, total=False):
    """Options of methods that wait for hours."""

    wait_seconds: int | None
    """How long the service holds each request, at most 55; default 50."""


class AskOptions(WaitOptions, total=False):
    idempotency_key: str | None


call_options: Final = CallOptions.__optional_keys__
create_options: Final = CreateOptions.__optional_keys__
wait_options: Final = WaitOptions.__optional_keys__
ask_options: Final = AskOptions.__optional_keys__


def check_options(given: Mapping[str, object], taken: frozenset[str]) -> None:
    """Raises TypeError for a name that a call does not take: a ttl_second that was dropped would keep a value for good."""
    for name in given:
        if name not in taken:
            raise TypeError(f"there is no argument {name!r}")


class RateLimitResult(RateLimitAllowed, total=False):
    """Of a check, allowed or blocked."""

    retryAfter: float
    """Seconds until the same check would pass, at least 1. Of a blocked check alone."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: str | None
    """Give it as ``cursor`` to begin after this page; None on the last."""


@dataclass(frozen=True)
class EventsPage:
    """One page of events."""

    items: list[JournalEvent]
    next_after: int
    """Give it as ``after`` to go on. A page may be short, or empty, before the end."""


@dataclass
class WorkSummary:
    """How many items ended in which way."""

    resolved: int = 0
    released: int = 0
    failed: int = 0
    """Archived."""
    lost: int = 0
    """The service could not be reached, or another agent had the lock by then."""


@dataclass(frozen=True)
class WorkContext:
    """Of a handler of ``dlq.work``."""

    signal: Signal
    """Aborted when the lock was lost (stop then: another agent may have the item) or when the work ends."""


class GiveUp(Exception):
    """Raised by a handler of ``dlq.work`` to archive the item: another try makes no sense."""


@dataclass(frozen=True)
class Permit:
    """The right to do an effect, for the work of ``effects.once``."""

    id: str
    """The id of the effect, the same however often it is started: an idempotency key for the target."""
    payload: Any
    """Says what to do: your payload, or the one that an approver has put in its place."""
    payload_hash: str
    """Of these bytes: SHA-256 in hex."""
    fence: int
    """Grows with every lease of the effect: the target may refuse a lower one."""
    signal: Signal
    """Aborted when the lease was lost, and with the signal of the call: stop then."""
    effect: Effect


ThrownMeans: TypeAlias = Literal["failed", "retry", "unknown"]
"""The meaning of an error of ``work``: it did not happen; it did not, and may be started again; nobody knows."""


def fields(exact: Mapping[str, object], optional: Mapping[str, object] | None = None) -> dict[str, object]:
    """The members of a request: of `exact` those that are given, None being null; of `optional` those that are not None."""
    sent = {name: value for name, value in exact.items() if value is not NOT_GIVEN}
    for name, value in (optional or {}).items():
        if value is not None and value is not NOT_GIVEN:
            sent[name] = value
    return sent


def if_match(version: int | None) -> dict[str, str]:
    """The header of a condition on the stored version."""
    return {} if version is None else {"if-match": f'"{version}"'}


def limited(name: str, value: float, least: float, most: float) -> None:
    """Raises ValueError outside of the limits."""
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}")
