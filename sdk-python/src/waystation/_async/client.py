"""The client: one object with a resource for each feature. Most are generated; those below have methods of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

import httpx

from .._json import parse_json as exact_json
from .._settings import (
    Settings,
    base_of,
    header_text,
    hidden,
    retries_default,
    retries_max,
    timeout_ms_default,
    timeout_ms_max,
    workflow_header,
)
from .._values import CallOptions, limited
from ..types import EventFilter
from .checkpoints import AsyncCheckpoints
from .dlq import AsyncDlq
from .effects import AsyncEffects
from .events import AsyncEvents, AsyncEventWait
from .inboxes import AsyncInboxes
from .kv import AsyncKv, AsyncNamespaces
from .platform import AsyncConnections, AsyncPlatform
from .rate_limit import AsyncRateLimit
from .resources import AsyncResources
from .transport import AsyncTransport

if sys.version_info >= (3, 11):
    from typing import Self, Unpack
elif TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class AsyncWaystation(AsyncResources):
    """The client of a Waystation service. ``async with`` closes its connections; so does `aclose`."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        agent_id: str | None = None,
        workflow_id: str | None = None,
        timeout_ms: float = timeout_ms_default,
        retries: int = retries_default,
        http_client: httpx.AsyncClient | None = None,
        parse_json: Callable[[str], Any] = exact_json,
        _platform: Callable[[AsyncConnections], AsyncPlatform] = AsyncPlatform,
    ) -> None:
        """url: where the service is, without /v1: ``http://127.0.0.1:8420``.
        key: any key of the service, the cron secret for `tick` included; none is needed to sign up.
        agent_id: sent along with an agent's key, which must be this agent's.
        workflow_id: the workflow that every call belongs to, sent as X-Workflow-Id: 1 to 256 characters.
        timeout_ms: how long each try of a call may take.
        retries: how often a try that failed is followed by another one, at most 20.
        http_client: instead of one of its own: for proxies, certificates, tests. It is not closed with the client.
        parse_json: instead of one that keeps all numbers exact, for every answer.
        """
        key = None if key is None else hidden(key)
        limited("timeout_ms", timeout_ms, 1, timeout_ms_max)
        limited("retries", retries, 0, retries_max)
        self._settings = Settings(
            url=base_of(url),
            key=None if key is None else header_text("key", key),
            agent_id=None if agent_id is None else header_text("agent_id", agent_id),
            workflow_id=None if workflow_id is None else workflow_header(workflow_id),
            timeout_ms=timeout_ms,
            retries=retries,
            parse_json=parse_json,
        )
        self._own_client = http_client is None
        self._connections = AsyncConnections(http_client)
        self._open(_platform(self._connections))

    def _open(self, platform: AsyncPlatform) -> None:
        transport = AsyncTransport(self._settings, platform)
        super().__init__(transport)
        self.kv: AsyncKv = AsyncKv(transport)
        self.namespaces: AsyncNamespaces = AsyncNamespaces(transport)
        self.dlq: AsyncDlq = AsyncDlq(transport)
        self.checkpoints: AsyncCheckpoints = AsyncCheckpoints(transport)
        self.inboxes: AsyncInboxes = AsyncInboxes(transport)
        self.effects: AsyncEffects = AsyncEffects(transport)
        self.rate_limit: AsyncRateLimit = AsyncRateLimit(transport)
        self.events = AsyncEvents(transport)

    def wait(
        self,
        *,
        any: Sequence[EventFilter],
        after: int | None = None,
        wait_seconds: int | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncEventWait:
        """Waits for whichever of several events comes first, however long that takes; a signal ends the wait. It begins behind
        `after`; without `after` where the journal stands when `begun`, `first` or the iteration is called first: call `begun`
        before you start what you wait for.

        any: alternatives: waits for an event that matches all members of one of them. 1 to 16.
        """
        return AsyncEventWait(self._transport, any, after, wait_seconds, options)

    def in_workflow(self, workflow_id: str) -> AsyncWaystation:
        """The same client, whose calls belong to this workflow: what they create has it, unless they name another. It shares
        the connections, and ends with them."""
        other = self.__class__.__new__(self.__class__)
        other._settings = replace(self._settings, workflow_id=workflow_header(workflow_id))
        other._own_client = False
        other._connections = self._connections
        other._open(self._transport.platform)
        return other

    async def aclose(self) -> None:
        """Closes the connections, unless the `http_client` was given."""
        if self._own_client:
            await self._connections.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
