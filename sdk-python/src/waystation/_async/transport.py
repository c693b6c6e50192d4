"""One call: the request, its tries and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import httpx

from .._errors import FailedTry, WaystationError, WaystationNetworkError, WaystationTimeoutError, has_code
from .._json import encode_json
from .._operations import Operation, operations
from .._outcome import Answer, NeverSent, TimedOut, afterwards, answer_of, is_outcome_unknown, is_transient
from .._retries import retries as rules
from .._settings import (
    Settings,
    hidden,
    idempotency_key_characters_max,
    path_of,
    query_of,
    retries_max,
    timeout_ms_max,
    visible,
)
from .._signal import Signal
from .._values import CallOptions, CreateOptions, call_options, check_options, create_options, limited
from .platform import AsyncPlatform

backoff_ms_first = 250
"""The wait before a second try is between 0 and this, before each further one twice as much."""
backoff_ms_max = 8_000
retry_after_seconds_max = 60
"""When Retry-After is longer than this, the error is raised instead of waiting."""


@dataclass(frozen=True)
class Input:
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, object] = field(default_factory=dict[str, object])
    body: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    held_ms: float = 0
    """The service holds the answer back for up to this long."""


@dataclass(frozen=True)
class Request:
    operation: Operation
    url: str
    headers: list[tuple[bytes, bytes]] = field(repr=False)
    """With the key: reports of errors, such as those of Sentry, show the local variables of each frame."""
    content: bytes | None
    timeout_ms: float
    signal: Signal | None
    repeatable: bool
    """May be sent again although it may have had its effect."""
    conditional: bool
    """Asks for another version than the one that is known."""


class AsyncTransport:
    def __init__(self, settings: Settings, platform: AsyncPlatform) -> None:
        self._settings = settings
        self.platform = platform

    async def call(self, name: str, given: Input, options: CallOptions) -> Any:
        """The parsed answer of one operation; None without a body."""
        return self.parse(name, await self.send(name, given, options))

    def parse(self, name: str, answer: Answer) -> Any:
        if answer.text == "":
            return None
        body = self._settings.parse_json(answer.text)
        return body["data"] if operations[name].wrapped else body

    async def send(self, name: str, given: Input, options: CallOptions) -> Answer:
        """Tries until there is an answer, or it makes no sense or is not safe to try again."""
        request = self._request(name, given, options)
        retries = options.get("retries")
        if retries is None:
            retries = self._settings.retries
        limited("retries", retries, 0, retries_max)
        unknown: FailedTry | None = None
        tried = 0
        while True:
            outcome = await self._try(request)
            if isinstance(outcome, Answer):
                return outcome
            if unknown is not None:
                settled = await self._settled(name, given, options, outcome, unknown)
                if settled is not None:
                    return settled
            is_unknown = is_outcome_unknown(outcome)
            if is_unknown:
                unknown = outcome
            wait_ms = self._wait_after(outcome, tried)
            if tried >= retries or wait_ms is None or (is_unknown and not request.repeatable):
                # The last try had no effect, but an earlier one may have had it: its error counts.
                raise outcome if request.operation.method == "GET" or unknown is None else afterwards(unknown, outcome)
            await self.platform.sleep(wait_ms, request.signal)
            tried += 1

    def _request(self, name: str, given: Input, options: CallOptions) -> Request:
        settings = self._settings
        operation = operations[name]
        check_options(options, create_options if operation.creates else call_options)
        rule = rules.get(name)
        repeatable = operation.method == "GET" or operation.creates
        if rule is not None and not repeatable:
            repeatable = rule.is_safe(given.body, given.headers)
        timeout_ms = options.get("timeout_ms")
        if timeout_ms is None:
            timeout_ms = settings.timeout_ms
        limited("timeout_ms", timeout_ms, 1, timeout_ms_max)
        return Request(
            operation,
            f"{settings.url}{path_of(operation.path, given.params)}{query_of(given.query)}",
            self._headers(operation.creates, given, options),
            None if given.body is None else encode_json(given.body).encode(),
            min(timeout_ms + given.held_ms, timeout_ms_max),
            options.get("signal"),
            repeatable,
            "if-none-match" in given.headers,
        )

    def _headers(self, creates: bool, given: Input, options: CallOptions) -> list[tuple[bytes, bytes]]:
        settings = self._settings
        headers = {"accept": "application/json", **given.headers}
        if settings.key is not None:
            headers["authorization"] = hidden(f"Bearer {settings.key}")
            if settings.agent_id is not None:
                headers["x-agent-id"] = settings.agent_id
        request_id = options.get("request_id")
        if request_id is not None:
            headers["x-request-id"] = visible("request_id", request_id, 64)
        if creates:
            own = cast("CreateOptions", options).get("idempotency_key")
            headers["idempotency-key"] = (
                self.platform.uuid()
                if own is None
                else visible("idempotency_key", own, idempotency_key_characters_max)
            )
        if given.body is not None:
            headers["content-type"] = "application/json"
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        if settings.workflow_id is not None:
            encoded.append((b"x-workflow-id", settings.workflow_id))
        return encoded

    async def _try(self, request: Request) -> Answer | FailedTry:
        """Returns the error of a failed try; an aborted call raises."""
        if request.signal:
            request.signal.raise_if_aborted()
        platform = self.platform
        # It may be made here, and httpx may refuse a setting of the environment, such as NO_PROXY: no other try mends that.
        client = platform.client
        try:
            sent = client.build_request(
                request.operation.method, request.url, headers=request.headers, content=request.content, timeout=None
            )
        except httpx.InvalidURL as error:
            # Nothing was sent, and no other try mends it.
            raise ValueError(f"the request has no valid address: {error}") from error
        try:
            received = await platform.send(sent, request.timeout_ms, request.signal)
        except (TimedOut, httpx.TimeoutException):
            return WaystationTimeoutError(request.timeout_ms)
        except (NeverSent, httpx.HTTPError, httpx.InvalidURL) as error:
            failed = WaystationNetworkError(not isinstance(error, NeverSent), self._settings.url)
            failed.__cause__ = error.reason if isinstance(error, NeverSent) else error
            return failed
        return answer_of(received, request.operation, platform.wall_ms(), conditional=request.conditional)

    def _wait_after(self, error: FailedTry, tried: int) -> float | None:
        """Ms; None when another try makes no sense. Full jitter, never earlier than Retry-After."""
        if not is_transient(error):
            return None
        least_seconds = (error.retry_after_seconds or 0) if isinstance(error, WaystationError) else 0
        if least_seconds > retry_after_seconds_max:
            return None
        backoff_ms = min(backoff_ms_max, backoff_ms_first * 2.0**tried)
        return least_seconds * 1_000 + self.platform.random() * backoff_ms

    async def _settled(
        self, name: str, given: Input, options: CallOptions, error: FailedTry, unknown: FailedTry
    ) -> Answer | None:
        """Returns the answer of the earlier try when the refusal of the repeat shows that it had its effect."""
        rule = rules.get(name)
        if rule is None or not isinstance(error, WaystationError):
            return None
        done = next((done for done in rule.done if done.is_said_by(error)), None)
        if done is None:
            return None
        if done.read is None:
            text = "" if done.answer is None else encode_json({"success": True, "data": done.answer})
            return Answer(200, text)
        try:
            # A read takes no Idempotency-Key.
            return await self.send(done.read, Input(params=given.params), options)
        except (WaystationError, WaystationNetworkError, WaystationTimeoutError) as failed:
            # An approval key may settle a checkpoint that it may not read; the refusal has its status.
            raised: FailedTry = error if has_code(failed, "FORBIDDEN") else afterwards(unknown, failed)
        raise raised
