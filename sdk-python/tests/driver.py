"""One way to call both clients: the calls of the async one run in a loop in a thread of its own, and return when it has
answered. A function that is given to it runs in yet another thread, so that it may call the client."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from waystation import AsyncWaystation, Waystation
from waystation._async.platform import AsyncPlatform
from waystation._operations import operations
from waystation._sync.platform import Platform


@dataclass(frozen=True)
class Kind:
    name: str
    is_async: bool


kinds = [Kind("sync", False), Kind("async", True)]


def least_answer(name: str, **members: Any) -> httpx.Response:
    """The least that a client takes for an answer of this operation, with these members of its body."""
    operation = operations[name]
    if operation.empty and operation.has is None:
        return httpx.Response(204)
    body = {operation.has or "openapi": None, **members}
    return httpx.Response(200, json={"success": True, "data": body} if operation.wrapped else body)


@dataclass
class Network:
    """What a client sees of the network: each request is passed on, unless a test says otherwise."""

    seen: list[httpx.Request] = field(default_factory=list[httpx.Request])
    slept_ms: list[float] = field(default_factory=list[float])
    next: list[Any] = field(default_factory=list[Any])
    """For the next requests: `lose_answer` passes the request on and then fails, `lose_request` only fails, `refuse` fails
    before anything is sent, a Response is answered."""
    now_ms: float = 0
    """The clock of a client whose waits are over at once: they move it."""
    endless_ms: float | None = None
    """A wait of this length ends by its signal alone, as one without an end does."""
    always: Callable[[httpx.Request], httpx.Response | None] | None = None
    """Answers every request that it knows."""

    def before(self, request: httpx.Request) -> tuple[httpx.Response | None, bool]:
        """The answer that is made up, if any, and True when the real one gets lost."""
        self.seen.append(request)
        given = self.next.pop(0) if self.next else None
        if isinstance(given, httpx.Response):
            return given, False
        if given == "refuse":
            given = httpx.ConnectError("the connection was refused")
        if isinstance(given, Exception):
            if isinstance(given, (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)):
                _tell_that_it_connects(request)
            raise given
        if given == "lose_request":
            raise httpx.ReadError("the connection was closed")
        if self.always is not None and given is None:
            return self.always(request), False
        return None, given == "lose_answer"


def _tell_that_it_connects(request: httpx.Request) -> None:
    """As httpx's own transport does before it fails."""
    told = request.extensions["trace"]("connection.connect_tcp.started", {})
    if told is not None:
        told.close()


class LossyTransport(httpx.BaseTransport):
    def __init__(self, network: Network) -> None:
        self._network = network
        self._real = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        made_up, is_lost = self._network.before(request)
        if made_up is not None:
            return made_up
        response = self._real.handle_request(request)
        if is_lost:
            response.read()
            raise httpx.ReadError("the connection was closed")
        return response

    def close(self) -> None:
        self._real.close()


class AsyncLossyTransport(httpx.AsyncBaseTransport):
    def __init__(self, network: Network) -> None:
        self._network = network
        self._real = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        made_up, is_lost = self._network.before(request)
        if made_up is not None:
            return made_up
        response = await self._real.handle_async_request(request)
        if is_lost:
            await response.aread()
            raise httpx.ReadError("the connection was closed")
        return response

    async def aclose(self) -> None:
        await self._real.aclose()


class Driver:
    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.network = Network()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._clients: list[Any] = []

    def client(self, url: str, **options: Any) -> Any:
        made: Any
        if self.kind.is_async:
            made = AsyncWaystation(url, **options)
        else:
            made = Waystation(url, **options)
        self._clients.append(made)
        return Called(self, made)

    def watched(self, url: str, **options: Any) -> Any:
        """A client at the network of this driver."""
        if self.kind.is_async:
            http: Any = httpx.AsyncClient(transport=AsyncLossyTransport(self.network))
        else:
            http = httpx.Client(transport=LossyTransport(self.network))
        return self.client(url, http_client=http, **options)

    def lossy(self, url: str, **options: Any) -> Any:
        """The same, whose waits are over at once."""
        network = self.network

        class Quick(Platform):
            def random(self) -> float:
                return 0.5

            def now_ms(self) -> float:
                return network.now_ms

            def sleep(self, ms: float, signal: Any = None) -> None:
                if ms in (network.endless_ms, float("inf")):
                    return super().sleep(3_600_000, signal)
                network.slept_ms.append(ms)
                network.now_ms += ms
                if signal:
                    signal.raise_if_aborted()

        class AsyncQuick(AsyncPlatform):
            def random(self) -> float:
                return 0.5

            def now_ms(self) -> float:
                return network.now_ms

            async def sleep(self, ms: float, signal: Any = None) -> None:
                if ms in (network.endless_ms, float("inf")):
                    return await super().sleep(3_600_000, signal)
                network.slept_ms.append(ms)
                network.now_ms += ms
                if signal:
                    signal.raise_if_aborted()

        return self.watched(url, _platform=AsyncQuick if self.kind.is_async else Quick, **options)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def handler(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """One that both clients take, and that may call them."""
        if not self.kind.is_async:
            return function

        async def called(*given: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(None, lambda: function(*given))

        return called

    def close(self) -> None:
        for client in self._clients:
            if self.kind.is_async:
                self.run(client.aclose())
            else:
                client.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class Called:
    """A client, a resource or a list of either kind, whose methods return their results."""

    def __init__(self, driver: Driver, owner: Any) -> None:
        self._driver = driver
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._owner, name)
        if callable(found):
            return lambda *given, **options: self._result(found(*given, **options))
        return Called(self._driver, found) if hasattr(found, "_transport") else found

    def __iter__(self) -> Iterator[Any]:
        if not self._driver.kind.is_async:
            yield from self._owner
            return
        yield from self._over(self._owner.__aiter__())

    def _over(self, iterator: AsyncIterator[Any]) -> Iterator[Any]:
        async def following() -> tuple[Any, bool]:
            try:
                return await iterator.__anext__(), True
            except StopAsyncIteration:
                return None, False

        while True:
            item, is_there = self._driver.run(following())
            if not is_there:
                return
            yield item

    def _result(self, result: Any) -> Any:
        if inspect.iscoroutine(result):
            return self._driver.run(result)
        if isinstance(result, AsyncIterator):
            return self._over(result)
        if type(result).__module__.startswith("waystation._"):
            is_data = type(result).__module__ == "waystation._values"
            return result if is_data else Called(self._driver, result)
        return result
