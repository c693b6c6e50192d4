"""client.events and client.wait"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

from .._values import CallOptions, EventsPage, WaitOptions, fields
from ..types import EventFilter, EventType, JournalEvent
from .look import held_seconds, patient, pause_after
from .transport import AsyncTransport, Input

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncEvents:
    """What happened in the tenant."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        type: EventType | None = None,
        subject: str | None = None,
        workflow_id: str | None = None,
        after: int | None = None,
        limit: int | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncEventList:
        """The events so far, oldest first. `after`: the number of the last event seen; default: the oldest event."""
        query = fields({}, {"type": type, "subject": subject, "workflow_id": workflow_id, "limit": limit})

        async def read(start: int | None) -> EventsPage:
            given = Input(query={**query, "after": start})
            answer = await self._transport.call("listEvents", given, options)
            return EventsPage(answer["items"], answer["next_after"])

        return AsyncEventList(after, read)

    async def position(self, **options: Unpack[CallOptions]) -> int:
        """The number of the last event so far: the `after` for what comes from now on."""
        any_event: EventFilter = {}
        given = Input(body={"any": [any_event], "wait_seconds": 0})
        answer = await self._transport.call("waitForEvent", given, options)
        after: int = answer["after"]
        return after

    async def follow(
        self,
        *,
        type: EventType | None = None,
        subject: str | None = None,
        workflow_id: str | None = None,
        after: int | None = None,
        limit: int | None = None,
        **options: Unpack[WaitOptions],
    ) -> AsyncIterator[JournalEvent]:
        """Events as they come, oldest first, until the signal is aborted. Nothing is missed: each request goes on where the
        one before ended. Without `after` it begins now. An unavailable service is tried again for about a minute, unless
        `retries` says otherwise."""
        wait = held_seconds(options.get("wait_seconds"))
        call = patient(options)
        query = fields({}, {"type": type, "subject": subject, "workflow_id": workflow_id, "limit": limit})
        start = await self.position(**call) if after is None else after
        platform = self._transport.platform
        while True:
            asked_at = platform.now_ms()
            given = Input(query={**query, "after": start, "wait": wait}, held_ms=wait * 1_000)
            answer = await self._transport.call("listEvents", given, call)
            for event in answer["items"]:
                yield event
            has_moved = answer["next_after"] > start
            start = answer["next_after"]
            if not answer["items"] and not has_moved:
                await pause_after(platform, asked_at, call.get("signal"))


class AsyncEventList:
    """``async for event in events``, ``async for page in events.pages()``, or ``await events.page()``."""

    def __init__(self, first: int | None, read: Callable[[int | None], Awaitable[EventsPage]]) -> None:
        self._first = first
        self._read = read

    async def page(self) -> EventsPage:
        """One page: the first, or the one behind the `after` that was given."""
        return await self._read(self._first)

    async def pages(self) -> AsyncIterator[EventsPage]:
        """Every page."""
        after = self._first
        while True:
            page = await self._read(after)
            if not page.items and page.next_after == (after or 0):
                return
            yield page
            after = page.next_after

    async def __aiter__(self) -> AsyncIterator[JournalEvent]:
        async for page in self.pages():
            for event in page.items:
                yield event


class AsyncEventWait:
    """A wait for whichever of several events comes first: `first` waits for it, and an iteration goes over one after the
    other. Nothing is sent before `begun`, `first` or the iteration."""

    def __init__(
        self,
        transport: AsyncTransport,
        any: Sequence[EventFilter],
        after: int | None,
        wait_seconds: int | None,
        options: CallOptions,
    ) -> None:
        self._transport = transport
        self._any = any
        self._after = after
        self._wait = held_seconds(wait_seconds)
        self._call = patient(options)

    async def begun(self) -> int:
        """The number that it begins behind: that of the last event by now, or the `after` that was given. Every event that
        happens afterwards is found: call it before you start what you wait for."""
        if self._after is None:
            # Before anything is waited for: a first request that is lost must not begin later when it is sent again.
            answer = await self._ask({"any": self._any, "wait_seconds": 0}, 0)
            begun: int = answer["after"] if answer["event"] is None else answer["event"]["seq"] - 1
            # Another caller may have been answered first: everybody has that beginning.
            if self._after is None:
                self._after = begun
        return self._after

    async def first(self) -> JournalEvent:
        """The first event behind where it begins."""
        return await self._following(await self.begun())

    # async only
    def __await__(self) -> Generator[Any, None, JournalEvent]:
        """As `first`."""
        return self.first().__await__()

    # end

    async def __aiter__(self) -> AsyncIterator[JournalEvent]:
        after = await self.begun()
        while True:
            event = await self._following(after)
            yield event
            after = event["seq"]

    async def _following(self, after: int) -> JournalEvent:
        platform = self._transport.platform
        while True:
            asked_at = platform.now_ms()
            body: dict[str, object] = {"any": self._any, "wait_seconds": self._wait, "after": after}
            answer = await self._ask(body, self._wait * 1_000)
            if answer["event"] is not None:
                event: JournalEvent = answer["event"]
                return event
            has_moved = answer["after"] > after
            after = answer["after"]
            if not has_moved:
                await pause_after(platform, asked_at, self._call.get("signal"))

    async def _ask(self, body: dict[str, object], held_ms: float) -> Any:
        return await self._transport.call("waitForEvent", Input(body=body, held_ms=held_ms), self._call)
