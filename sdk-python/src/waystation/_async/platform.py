"""The environment of the client: HTTP, clock, waits, background work. Its twin for threads is beside it, in `_sync`."""

from __future__ import annotations

import asyncio
import random
import sys
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, Union, cast

import httpx

from .._forks import GivenClient, Process, process
from .._functions import check_runs
from .._outcome import NeverSent, Received, Steps
from .._settings import elapsed_ms
from .._signal import Signal

T = TypeVar("T")
MaybeAwaitable = Union[T, Awaitable[T]]

limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
"""Requests that the service holds must not keep the extension of a lock from being sent."""
grace_seconds = 10
"""Work that must not be cut off goes on for this long when the caller's task is cancelled."""


class AsyncConnections:
    """The httpx client of each event loop: connections end with the loop that opened them, so a second `asyncio.run` needs
    its own. And of each process: a child that went on with the connections of its parent would read other answers for its own."""

    def __init__(self, given: httpx.AsyncClient | None) -> None:
        self._given = given
        self._use = GivenClient()
        # Those of a parent are kept: a connection of uvloop that is let go takes itself off the epoll that its loop shares.
        self._own: dict[tuple[Process, int], Opened] = {}
        self._closed = False
        if given is None:
            self._certificates = httpx.create_ssl_context()

    def __reduce__(self) -> NoReturn:
        """Of a pickle, into which a task for another process or machine takes a client by its arguments or its closure."""
        raise TypeError("A client of Waystation cannot be pickled: make one where it is used, from its url and key.")

    def client(self) -> httpx.AsyncClient:
        """Raises RuntimeError once it is closed, and for a given client that the parent of this process has used."""
        if self._given is not None:
            self._use.use()
            return self._given
        if self._closed:
            raise RuntimeError("The client is closed.")
        here = _here()
        found = self._own.get(here)
        if found is None:
            for known, opened in list(self._own.items()):
                if known[0] == here[0] and opened.loop.is_closed():
                    self._own.pop(known, None)
            client = httpx.AsyncClient(limits=limits, verify=self._certificates)
            found = self._own[here] = Opened(running_loop(), client)
        return found.client

    async def until_end_of_loop(self) -> None:
        """Closes the connections of this loop when it ends, as `asyncio.run` ends one. To be called before they are used."""
        opened = self._own.get(_here())
        if opened is not None and opened.closing is None:
            opened.closing = _closing(opened)
            await opened.closing.__anext__()

    async def aclose(self) -> None:
        """Closes the connections of this loop, unless the client was given. Those of other loops end with them."""
        self._closed = True
        opened = self._own.get(_here())
        if opened is not None:
            await opened.client.aclose()
            if opened.closing is not None:
                await opened.closing.aclose()


def _here() -> tuple[Process, int]:
    """This process and loop. A loop that is held keeps its id."""
    return process(), id(running_loop())


def running_loop() -> asyncio.AbstractEventLoop:
    """Raises RuntimeError where none runs, as under trio."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError("AsyncWaystation needs a running event loop of asyncio, not of trio.") from None


@dataclass
class Opened:
    loop: asyncio.AbstractEventLoop
    client: httpx.AsyncClient
    closing: AsyncGenerator[None, None] | None = None


async def _closing(opened: Opened) -> AsyncGenerator[None, None]:
    """A loop that ends closes the generators that it has begun, while connections can still be closed. It refers to what refers
    to it, so that a client which the last task lets go is closed then, too, and not by a task that comes too late."""
    try:
        yield
    finally:
        opened.closing = None
        # Without a loop at the end of the program, as nest_asyncio leaves those that it ran, nothing can be closed any more.
        if opened.loop.is_running():
            await opened.client.aclose()


class AsyncPlatform:
    """Tests give their own."""

    def __init__(self, connections: AsyncConnections) -> None:
        self._connections = connections

    @property
    def client(self) -> httpx.AsyncClient:
        """That of this loop."""
        running_loop()
        return self._connections.client()

    def now_ms(self) -> float:
        """By a clock that is never set back."""
        return elapsed_ms()

    def wall_ms(self) -> float:
        return time.time() * 1_000

    def random(self) -> float:
        """0 up to 1, for jitter alone."""
        return random.random()

    def uuid(self) -> str:
        """Cannot be guessed."""
        return str(uuid.uuid4())

    async def sleep(self, ms: float, signal: Signal | None = None) -> None:
        """Raises the signal's reason when it is aborted."""
        if signal is None:
            await asyncio.sleep(ms / 1_000)
            return
        aborted = asyncio.Event()
        forget = _listen(signal, aborted.set)
        try:
            await asyncio.wait_for(aborted.wait(), ms / 1_000)
        except asyncio.TimeoutError:
            pass
        finally:
            forget()
        signal.raise_if_aborted()

    async def send(self, request: httpx.Request, timeout_ms: float, signal: Signal | None) -> Received:
        """Raises TimedOut, NeverSent, the signal's reason, and what httpx raises."""
        steps = Steps()

        def each_step(name: str, info: dict[str, Any]) -> Awaitable[None] | None:
            steps.note(name, info)
            return _nothing() if _is_awaited(name) else None

        request.extensions["trace"] = each_step
        task = asyncio.ensure_future(self._send(request, steps))
        task.add_done_callback(_seen)
        forget = _listen(signal, task.cancel) if signal else lambda: None
        try:
            done, _ = await asyncio.wait({task}, timeout=timeout_ms / 1_000)
            if signal:
                signal.raise_if_aborted()
            if not done:
                raise steps.timed_out(request)
            return task.result()
        finally:
            forget()
            steps.give_up()
            task.cancel()

    async def _send(self, request: httpx.Request, steps: Steps) -> Received:
        client = self.client
        await self._connections.until_end_of_loop()
        try:
            response = await client.send(request, follow_redirects=False)
        except httpx.HTTPError as error:
            if steps.never_sent(error):
                raise NeverSent(error) from error
            raise
        text = response.content.decode("utf-8", "replace")
        return Received(response.status_code, response.headers, text)


def _is_awaited(step: str) -> bool:
    """Up to 1.0.2, httpcore does not await the trace of these steps to a SOCKS proxy, and refuses one that has to be awaited."""
    if not step.startswith(("socks.connect_tcp.", "socks.setup_socks5_connection.")):
        return True
    version = str(getattr(sys.modules.get("httpcore"), "__version__", ""))
    return not version.startswith("0.") and version not in ("1.0.0", "1.0.1", "1.0.2")


async def _nothing() -> None:
    pass


def _listen(signal: Signal, callback: Callable[[], object]) -> Callable[[], None]:
    """Calls back in the loop, from whichever thread the signal is aborted."""
    loop = asyncio.get_running_loop()

    def aborted() -> None:
        try:
            loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop is closed: nothing waits there any more.
            pass

    return signal.listen(aborted)


async def settled(value: MaybeAwaitable[T]) -> T:
    """The value that a function of the caller returned, which may be awaitable."""
    if isinstance(value, Awaitable):
        return await cast("Awaitable[T]", value)
    return value


def check_function(function: Callable[..., object]) -> None:
    """Raises TypeError for a function that would never run. Its twin for threads also refuses those that have to be awaited."""
    check_runs(function)


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """What came of work that must not be cut off. When the caller's task is cancelled meanwhile, the work goes on for some
    seconds, and CancelledError is raised after it."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(_seen)
    cancelled = await _end_of([task], grace_seconds)
    if cancelled:
        task.cancel()
        await _end_of([task])
        raise cancelled
    return task.result()


async def _end_of(
    tasks: Sequence[asyncio.Task[Any]], grace_seconds: float | None = None
) -> asyncio.CancelledError | None:
    """Waits for their end, also when the caller's task is cancelled, once or again and again: then for so long at most.
    Returns the first cancellation."""
    cancelled: asyncio.CancelledError | None = None
    until_ms: float | None = None
    while not all(task.done() for task in tasks):
        left_seconds = None if until_ms is None else (until_ms - elapsed_ms()) / 1_000
        if left_seconds is not None and left_seconds <= 0:
            break
        try:
            await asyncio.wait(tasks, timeout=left_seconds)
        except asyncio.CancelledError as error:
            if cancelled is None:
                cancelled = error
                until_ms = None if grace_seconds is None else elapsed_ms() + grace_seconds * 1_000
    return cancelled


def _seen(task: asyncio.Task[Any]) -> None:
    """Nobody may ask for the error of a task that was given up."""
    if not task.cancelled():
        task.exception()


class AsyncBackground:
    """Work that goes on beside its caller."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = asyncio.ensure_future(work())

    async def join(self) -> None:
        """Waits for its end, which comes soon: it was asked to end. Also when the caller's task is cancelled meanwhile."""
        cancelled = await _end_of([self._task])
        if cancelled:
            raise cancelled
        self._task.result()


async def all_of(works: Sequence[Callable[[], Coroutine[Any, Any, None]]], ended: Signal) -> None:
    """Runs them at the same time, waits for all, and raises the first error. When the caller's task is cancelled, each is
    cancelled, too, and may clean up first."""
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        ended.abort()
        for task in tasks:
            task.add_done_callback(_seen)
            task.cancel()
        await _end_of(tasks)
        raise
    for task in tasks:
        task.result()
