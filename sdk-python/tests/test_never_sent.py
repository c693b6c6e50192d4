"""A request that was certainly never sent: every call is tried again, and its error says that nothing has arrived."""

from __future__ import annotations

import inspect
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from driver import AsyncLossyTransport, Driver, LossyTransport

from waystation import Signal, WaystationNetworkError, WaystationTimeoutError

at = "http://service.example"


class Silent:
    """Takes connections, and says nothing after `first`. `ends`: it closes each once something was asked."""

    def __init__(self, first: bytes = b"", ends: bool = False) -> None:
        self._first = first
        self._ends = ends
        self._listens = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listens.getsockname()[1]}"
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            try:
                taken, _ = self._listens.accept()
            except OSError:
                return
            self._taken.append(taken)
            if self._first or self._ends:
                taken.recv(65_536)
                taken.sendall(self._first)
            if self._ends:
                taken.close()

    def close(self) -> None:
        self._listens.close()
        for taken in self._taken:
            taken.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    server = Silent()
    yield server
    server.close()


@pytest.fixture
def proxy() -> Iterator[Silent]:
    server = Silent(b"HTTP/1.1 200 Connection established\r\n\r\n")
    yield server
    server.close()


@pytest.fixture
def answers() -> Iterator[Silent]:
    server = Silent(b"HTTP/1.1 204 No Content\r\n\r\n")
    yield server
    server.close()


def through(driver: Driver, proxy: str) -> Any:
    """An http_client with this proxy."""
    transport: Any = httpx.AsyncHTTPTransport if driver.kind.is_async else httpx.HTTPTransport
    kind: Any = httpx.AsyncClient if driver.kind.is_async else httpx.Client
    return kind(transport=transport(proxy=httpx.Proxy(proxy)))


def unsent(client: Any, **options: Any) -> WaystationNetworkError:
    """The error of a call that is not sent again when its outcome is unknown."""
    with pytest.raises(WaystationNetworkError) as raised:
        client.rate_limit.check("k", limit=1, window_seconds=1, timeout_ms=150, **options)
    return raised.value


def test_a_connection_that_took_too_long_was_never_made(driver: Driver, silent: Silent) -> None:
    client = driver.client(f"https://{silent.address}", retries=0)
    for options in ({}, {"signal": Signal()}):
        error = unsent(client, **options)
        assert not error.may_have_arrived
        assert isinstance(error.__cause__, httpx.ConnectTimeout)


def test_the_same_behind_a_proxy_that_has_connected(driver: Driver, proxy: Silent) -> None:
    client = driver.client("https://service.example", retries=0, http_client=through(driver, f"http://{proxy.address}"))
    error = unsent(client)
    assert not error.may_have_arrived
    assert isinstance(error.__cause__, httpx.ConnectTimeout)


@pytest.mark.parametrize("ends", [False, True])
def test_the_same_behind_a_proxy_that_does_not_answer_connect(driver: Driver, ends: bool) -> None:
    proxy = Silent(ends=ends)
    client = driver.client("https://service.example", retries=0, http_client=through(driver, f"http://{proxy.address}"))
    for options in ({}, {"signal": Signal()}):
        assert not unsent(client, **options).may_have_arrived
    proxy.close()


def test_a_proxy_that_was_given_the_request_may_have_passed_it_on(driver: Driver, silent: Silent) -> None:
    client = driver.client(at, retries=0, http_client=through(driver, f"http://{silent.address}"))
    with pytest.raises(WaystationTimeoutError):
        client.rate_limit.check("k", limit=1, window_seconds=1, timeout_ms=150)


@pytest.mark.parametrize("error", [httpx.ConnectTimeout("x"), httpx.ConnectError("x"), httpx.ProxyError("x")])
def test_every_call_is_tried_again(driver: Driver, error: Exception) -> None:
    client = driver.lossy(at)
    allowed = {"allowed": True, "count": 1, "remaining": 0, "resetAt": ""}
    driver.network.next = [error, error, httpx.Response(200, json={"success": True, "data": allowed})]
    assert client.rate_limit.check("k", limit=1, window_seconds=1)["allowed"]
    assert len(driver.network.seen) == 3


@pytest.mark.parametrize(
    ("version", "step", "is_awaited"),
    [
        ("0.18.0", "socks.connect_tcp.started", False),
        ("1.0.2", "socks.setup_socks5_connection.complete", False),
        ("1.0.2", "socks.start_tls.started", True),
        ("1.0.3", "socks.connect_tcp.started", True),
        ("1.0.2", "connection.connect_tcp.started", True),
    ],
)
def test_each_httpcore_gets_a_trace_that_it_takes_to_a_socks_proxy(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, version: str, step: str, is_awaited: bool
) -> None:
    if driver.kind.is_async:
        traced: list[Any] = []

        def trace(request: httpx.Request) -> httpx.Response:
            traced.append(request.extensions["trace"](step, {}))
            return httpx.Response(200, json={"id": "x"})

        client = driver.lossy(at)
        monkeypatch.setattr("httpcore.__version__", version)
        driver.network.always = trace
        client.audit.get("x")
        assert [inspect.iscoroutine(one) for one in traced] == [is_awaited]
        for one in traced:
            if is_awaited:
                one.close()


@pytest.mark.parametrize("error", [httpx.ReadTimeout("x"), httpx.WriteTimeout("x"), httpx.PoolTimeout("x")])
def test_other_time_outs_leave_it_open(driver: Driver, error: Exception) -> None:
    client = driver.lossy(at)
    driver.network.next = [error]
    with pytest.raises(WaystationTimeoutError):
        client.rate_limit.check("k", limit=1, window_seconds=1)
    assert len(driver.network.seen) == 1


def test_an_effect_whose_claim_was_never_sent_needs_no_release(driver: Driver) -> None:
    client = driver.lossy(at)
    driver.network.next = [httpx.ConnectTimeout("x")] * 2
    with pytest.raises(WaystationNetworkError) as raised:
        client.effects.once(driver.handler(lambda permit: 1), type="t", key="k", payload=1, retries=1)
    assert not raised.value.may_have_arrived
    assert len(driver.network.seen) == 2


def test_a_transport_that_sends_again_by_itself_does_not_hide_its_first_try(driver: Driver, answers: Silent) -> None:
    """It has sent the request, got no answer, and finds nobody when it sends it again."""
    refused = httpx.ConnectError("the connection was refused")

    class Repeats(LossyTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            try:
                return super().handle_request(request)
            except httpx.ReadError:
                raise refused from None

    class AsyncRepeats(AsyncLossyTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            try:
                return await super().handle_async_request(request)
            except httpx.ReadError:
                raise refused from None

    is_async = driver.kind.is_async
    kind: Any = httpx.AsyncClient if is_async else httpx.Client
    transport: Any = AsyncRepeats if is_async else Repeats
    client = driver.client(f"http://{answers.address}", http_client=kind(transport=transport(driver.network)))
    driver.network.next = ["lose_answer"]
    error = unsent(client)
    assert error.may_have_arrived
    assert error.__cause__ is refused
    assert len(driver.network.seen) == 1


@pytest.mark.parametrize("error", [httpx.ConnectTimeout("x"), httpx.ConnectError("x"), httpx.ProxyError("x")])
def test_a_transport_that_tells_no_step_may_have_sent_it(driver: Driver, error: Exception) -> None:
    """That of httpx-aiohttp raises ConnectTimeout for a connection that ends in place of the answer."""
    seen: list[httpx.Request] = []

    def ends(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        raise error

    kind: Any = httpx.AsyncClient if driver.kind.is_async else httpx.Client
    client = driver.client(at, http_client=kind(transport=httpx.MockTransport(ends)))
    with pytest.raises((WaystationNetworkError, WaystationTimeoutError)) as raised:
        client.rate_limit.check("k", limit=1, window_seconds=1)
    assert not isinstance(raised.value, WaystationNetworkError) or raised.value.may_have_arrived
    assert len(seen) == 1
