"""The outcome of a try: a success, or an error, with the reasons for and against another try."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal, cast

import httpx

from ._errors import Code, FailedTry, WaystationError, WaystationNetworkError, WaystationTimeoutError
from ._json import parse_json
from ._operations import Operation


@dataclass(frozen=True)
class Received:
    """An answer of HTTP, read to its end."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True)
class Answer:
    """A success. `text` is empty when there is no body."""

    status: int
    text: str


class TimedOut(Exception):
    """The time of a try is over."""


class NeverSent(Exception):
    """The request certainly never reached the service."""

    def __init__(self, reason: httpx.HTTPError) -> None:
        super().__init__(reason)
        self.reason = reason


class Steps:
    """How far a request has come. httpx tells each step of it to its `trace`; a transport of the caller may tell none."""

    def __init__(self) -> None:
        self._connects = False
        self._tunnels = False
        self._given_up = False
        # The thread that sends and the one that gives up may come here together: the first decides.
        self._first: dict[None, Literal["sent", "given up"]] = {}

    def note(self, name: str, info: Mapping[str, Any]) -> None:
        """Raises TimedOut for a request that was given up, before anything of it is sent."""
        connects = name.endswith(("connect_tcp.started", "connect_unix_socket.started"))
        sends = name.endswith("send_request_headers.started")
        self._connects = self._connects or connects
        if sends and getattr(info.get("request"), "method", None) == b"CONNECT":
            # It asks a proxy for a connection alone.
            self._tunnels = True
        elif sends:
            self._first.setdefault(None, "sent")
        if self._given_up and (connects or sends):
            raise TimedOut

    def give_up(self) -> None:
        self._given_up = True
        self._first.setdefault(None, "given up")

    def timed_out(self, request: httpx.Request) -> TimedOut | NeverSent:
        """The request is given up because its time is over."""
        self.give_up()
        if self._connects and self._first[None] == "given up":
            return NeverSent(httpx.ConnectTimeout("There was no connection in time.", request=request))
        return TimedOut()

    def never_sent(self, error: httpx.HTTPError) -> bool:
        """True when the connection was never made. A transport of the caller may have sent the request before it failed so: that
        of httpx-aiohttp raises ConnectTimeout for a connection that ends in place of the answer, and tells no step."""
        if self._first.get(None) == "sent":
            return False
        if isinstance(error, _errors_of_no_connection):
            return self._connects
        # A proxy that does not answer CONNECT, or ends the connection, is a ReadTimeout, or a breach of the protocol.
        return self._tunnels or isinstance(error, httpx.UnsupportedProtocol)


_errors_of_no_connection = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
"""httpx raises them while it connects, the handshake of TLS included, and before it sends the request. A breach of the
protocol here may come after some of it was sent."""


def answer_of(
    received: Received, operation: Operation, now_ms: float, *, conditional: bool = False
) -> Answer | WaystationError:
    """`now_ms`: for a Retry-After that is a date, where the answer does not say its own. `conditional`: it was asked for another
    version than this."""
    status = received.status
    if (status == 304 and conditional) or (status == 204 and operation.empty):
        return Answer(status, "")
    body = _object(_parsed(received.text))
    error = _object(body.get("error")) if body is not None else None
    if error is not None and isinstance(error.get("code"), str):
        return _refusal(received, error, now_ms)
    # A blocked rate check is a result, although its status is 429.
    is_blocked = status == 429 and operation.wrapped
    if (200 <= status < 300 or is_blocked) and _is_of(operation, body):
        return Answer(status, received.text)
    return _refusal(
        received, {"code": "UNEXPECTED_ANSWER", "message": f"Status {status}, not from the service."}, now_ms
    )


def _is_of(operation: Operation, body: dict[str, Any] | None) -> bool:
    """True for an answer of this operation: something before the service may answer JSON, too."""
    data = _object(body.get("data")) if body is not None and operation.wrapped else body
    if operation.has is None:
        return data is not None and not operation.empty
    return data is not None and operation.has in data


def is_transient(error: FailedTry) -> bool:
    """True when another try may succeed."""
    if not isinstance(error, WaystationError):
        return True
    return _is_unavailable(error) or error.status == 429 or error.code == "IDEMPOTENCY_IN_PROGRESS"


_passing_codes = ("REQUEST_TIMEOUT", "TENANT_FROZEN", "AGENT_PAUSED", "UNEXPECTED_ANSWER")
"""Refusals of a time: a freeze and a pause end with their resume, and something before the service, such as a proxy while the
service is replaced, knows nothing of it."""


def is_permanent(error: BaseException) -> bool:
    """True when every try will be refused until the key, the item or the request changes."""
    if not isinstance(error, WaystationError) or is_transient(error):
        return False
    return error.status < 500 and error.code not in _passing_codes


def is_outcome_unknown(error: FailedTry) -> bool:
    """True when the request may have had its effect without an answer."""
    if isinstance(error, WaystationNetworkError):
        return error.may_have_arrived
    if isinstance(error, WaystationTimeoutError):
        return True
    return _is_unavailable(error) and not (error.status == 503 and error.code == "UNAVAILABLE")


def afterwards(unknown: FailedTry, later: FailedTry) -> FailedTry:
    """The error of a try whose outcome is unknown, after a later try that had no effect. The refusal of a repeat says nothing
    about the first one: the key may have been revoked, or the tenant frozen, in between."""
    if isinstance(later, WaystationError) and later is not unknown and not is_transient(later):
        unknown.__cause__ = later
    return unknown


def refusal_of(error: BaseException) -> WaystationError | None:
    """The refusal that an error is, or that a repeat has met after a try whose outcome is unknown. None for others."""
    if isinstance(error, FailedTry) and isinstance(error.__cause__, WaystationError):
        return error.__cause__
    return error if isinstance(error, WaystationError) else None


def _is_unavailable(error: WaystationError) -> bool:
    """503 of the service or 502, 503, 504 of something before it, whose errors may look like ours. A quarantine is a refusal.
    Cloudflare has 520 to 530 of its own: 524 means that the request has arrived, 521 that it has not, and 520 may mean either."""
    is_of_gateway = 502 <= error.status <= 504 or 520 <= error.status <= 530
    return is_of_gateway and error.code != "QUARANTINED"


def retry_after_ms(error: BaseException) -> float:
    """The wait that the service asked for, 0 without one."""
    return (error.retry_after_seconds or 0) * 1_000 if isinstance(error, WaystationError) else 0


def _refusal(received: Received, error: dict[str, Any], now_ms: float) -> WaystationError:
    details = error.get("details")
    request_id = error.get("request_id")
    return WaystationError(
        cast("Code", error["code"]),
        f"{error.get('message')}{_issues_of(details)}",
        received.status,
        _object(details),
        request_id if isinstance(request_id, str) else received.headers.get("x-request-id"),
        _retry_after(received.headers, now_ms),
    )


def _retry_after(headers: Mapping[str, str], now_ms: float) -> float | None:
    """Seconds from now; it may be given as a date, too (RFC 9110, 10.2.3)."""
    given = headers.get("retry-after", "")
    if re.fullmatch(r"\d+(\.\d+)?", given, re.ASCII):
        return float(given)
    until_ms = _date_ms(given)
    if until_ms is None:
        return None
    sent_ms = _date_ms(headers.get("date", ""))
    return max(0, math.ceil((until_ms - (now_ms if sent_ms is None else sent_ms)) / 1_000))


def _date_ms(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() * 1_000
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def _issues_of(details: object) -> str:
    """The first broken rules of VALIDATION_FAILED, for the message."""
    issues = (_object(details) or {}).get("issues")
    found = cast("list[object]", issues)[:3] if isinstance(issues, list) else []
    objects = [one for one in map(_object, found) if one is not None]
    texts = [f"{issue.get('path')} {issue.get('message')}" for issue in objects]
    return f" ({'; '.join(texts)})" if texts else ""


def _object(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _parsed(text: str) -> Any:
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return None
