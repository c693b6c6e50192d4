"""client.inboxes"""

# Made of ../_async/inboxes.py by scripts/clients.ts: do not edit.

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from .._values import CallOptions, Page, WaitOptions, fields
from ..types import Message
from . import resources
from .look import held_seconds, is_at_once, patient, pause_after
from .transport import Transport, Input

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack


class Inboxes(resources.Inboxes):
    def messages(
        self,
        id: str,
        *,
        after: str | None = None,
        limit: int | None = None,
        follow: bool = False,
        **options: Unpack[WaitOptions],
    ) -> Messages:
        """All messages, oldest first. With `follow` the iteration waits for more and ends once the inbox has expired and
        everything was read; an unavailable service is then tried again for about a minute, unless `retries` says otherwise.
        `page()` reads what is there now; its `next_cursor` is the `after` of the next call.

        after: the id of the last message seen. Keep it, and go on from there after a restart.
        """
        wait = held_seconds(options.get("wait_seconds"))
        call: CallOptions = patient(options)
        if not follow:
            call["retries"] = options.get("retries")
        reading = Reading(self, self._transport, id, after, limit, wait if follow else 0, follow, call)
        return Messages(reading)


@dataclass(frozen=True)
class Reading:
    """What a list of messages was asked for."""

    inboxes: Inboxes
    transport: Transport
    id: str
    after: str | None
    limit: int | None
    wait: int
    """Seconds."""
    follow: bool
    call: CallOptions

    def read(self, after: str | None, wait: int) -> Page[Message]:
        query = fields({}, {"after": after, "limit": self.limit, "wait": wait or None})
        given = Input(params={"id": self.id}, query=query, held_ms=wait * 1_000)
        answer = self.transport.call("listMessages", given, self.call)
        return Page(answer["items"], answer["nextAfter"])

    def expires_ms(self) -> float:
        detail = self.inboxes.get(self.id, **self.call)
        expires_at = detail["inbox"]["expiresAt"].replace("Z", "+00:00")
        return datetime.fromisoformat(expires_at).timestamp() * 1_000

    def is_listed(self) -> bool:
        """True until it has expired by the clock of the service: the one here may be wrong."""
        offset = total = 0
        while True:
            given = Input(query={"limit": 100, "offset": offset})
            page = self.transport.call("listInboxes", given, self.call)
            if any(inbox["id"] == self.id for inbox in page["items"]):
                return True
            # Others that are gone since the page before have moved those behind them up, over its edge.
            may_skip = offset > 0 and page["total"] < total
            offset = 0 if may_skip else offset + len(page["items"])
            total = page["total"]
            if not may_skip and (not page["items"] or offset >= total):
                return False


class Messages:
    """Messages of an inbox, oldest first."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def page(self) -> Page[Message]:
        """What is there now."""
        return self._reading.read(self._reading.after, 0)

    def __iter__(self) -> Iterator[Message]:
        reading = self._reading
        platform = reading.transport.platform
        after = reading.after
        expires_ms: float | None = None
        over = False
        while True:
            asked_at = platform.now_ms()
            page = reading.read(after, 0 if over else reading.wait)
            for message in page.items:
                yield message
            after = page.next_cursor or after
            if page.items:
                continue
            # A message may have come between the empty page and the end, so one more read follows.
            if not reading.follow or over:
                return
            # The service holds no request for an inbox that has expired, whatever the clock here says.
            not_held = reading.wait > 0 and is_at_once(platform, asked_at)
            if not not_held and expires_ms is None:
                expires_ms = reading.expires_ms()
            may_be_over = not_held or (expires_ms is not None and expires_ms <= platform.wall_ms())
            over = may_be_over and not reading.is_listed()
            if not over:
                pause_after(platform, asked_at, reading.call.get("signal"))
