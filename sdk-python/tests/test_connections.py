"""Connections, clocks, signals and types: what the client does beside its calls, on both clients."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import threading
import time
import typing
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from driver import Driver

from waystation import Aborted, AsyncWaystation, Signal, Waystation, WaystationNetworkError
from waystation._settings import elapsed_ms

at = "http://service.example"


class Held:
    """A service that answers `/v1/audit/hold` when it is told to, and everything else at once."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.waiting = threading.Semaphore(0)
        self.go = threading.Event()
        held = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                held.seen.append(self.path.rpartition("/")[2])
                held.waiting.release()
                if self.path.endswith("/hold"):
                    held.go.wait(60)
                self.send_response(200)
                self.send_header("content-length", "14")
                self.end_headers()
                self.wfile.write(b'{"id":"log_1"}')

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.go.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    held.close()


def test_requests_that_are_held_do_not_keep_others_waiting(driver: Driver, held: Held) -> None:
    client = driver.client(held.url, retries=0, timeout_ms=600_000)
    threads = [threading.Thread(target=client.audit.get, args=["hold"]) for _ in range(120)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert held.waiting.acquire(timeout=60), "all of them are at the service at the same time"
    assert client.audit.get("other") == {"id": "log_1"}
    held.go.set()
    for thread in threads:
        thread.join(60)


def test_a_call_that_was_ended_before_it_had_a_connection_is_never_sent(driver: Driver, held: Held) -> None:
    kind: Any = httpx.AsyncClient if driver.kind.is_async else httpx.Client
    one = kind(limits=httpx.Limits(max_connections=1), trust_env=False)
    client = driver.client(held.url, retries=0, http_client=one)
    first = threading.Thread(target=client.audit.get, args=["hold"])
    first.start()
    assert held.waiting.acquire(timeout=60)
    signal = Signal()
    threading.Timer(0.3, signal.abort).start()
    with pytest.raises(Aborted):
        client.audit.get("ended", signal=signal)
    held.go.set()
    first.join(60)
    assert client.audit.get("later") == {"id": "log_1"}
    assert held.seen == ["hold", "later"]
    driver.run(one.aclose()) if driver.kind.is_async else one.close()


def test_a_breach_of_the_protocol_may_have_had_its_effect(driver: Driver) -> None:
    client = driver.lossy(at)
    driver.network.next = [httpx.LocalProtocolError("the stream was closed")]
    with pytest.raises(WaystationNetworkError) as raised:
        client.dlq.claim("x")
    assert raised.value.may_have_arrived
    assert len(driver.network.seen) == 1


@pytest.mark.parametrize("of", [lambda client: client, lambda client: client.kv, lambda client: client.kv.get])
def test_a_client_says_why_it_cannot_be_pickled(of: Callable[[Any], object]) -> None:
    for client in (Waystation(at), AsyncWaystation(at), Waystation(at, http_client=httpx.Client())):
        with pytest.raises(TypeError, match=r"^A client .* cannot be pickled: make one .* from its url and key\.$"):
            pickle.dumps(of(client))
        assert copy.copy(client).kv is client.kv


@pytest.mark.parametrize("url", ["http://x:99999", "http://x:a", "http://[::1", "http://x:0"])
def test_a_port_or_address_that_is_none_is_refused(driver: Driver, url: str) -> None:
    with pytest.raises(ValueError, match="url must be"):
        driver.client(url)


def test_the_clock_of_leases_goes_on_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "linux":
        asked: list[int] = []
        monkeypatch.setattr(time, "clock_gettime", lambda clock: asked.append(clock) or 7.5)
        for client in (Waystation(at), AsyncWaystation(at)):
            assert client._transport.platform.now_ms() == 7_500
        assert asked == [time.CLOCK_BOOTTIME] * 2
    before = elapsed_ms()
    assert elapsed_ms() >= before


class TestASignal:
    def test_calls_every_listener_although_one_raises(self) -> None:
        signal = Signal()
        called: list[int] = []

        def fail() -> None:
            raise ValueError("of a listener")

        signal.listen(fail)
        signal.listen(lambda: called.append(1))
        with pytest.raises(ValueError, match="of a listener"):
            signal.abort()
        assert called == [1]

    def test_of_a_time_needs_no_thread_of_its_own(self) -> None:
        before = threading.active_count()
        signals = [Signal.timeout(3_600_000) for _ in range(50)]
        assert threading.active_count() <= before + 1
        soon = Signal.timeout(1)
        assert soon.wait(60)
        assert str(soon.reason) == "The time of the signal, 1 ms, is over."
        for signal in signals:
            signal.abort()

    def test_of_a_time_goes_on_after_a_listener_that_raises(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shown: list[type[BaseException]] = []
        monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: shown.append(kind))

        def fail() -> None:
            raise ValueError("of a listener")

        first = Signal.timeout(1)
        first.listen(fail)
        assert Signal.timeout(20).wait(60)
        assert first.aborted

    def test_whose_listener_raises_does_not_end_in_the_place_of_the_work(self, driver: Driver) -> None:
        calls: list[str] = []
        effect = {
            "id": "eff_1", "type": "t", "key": "k", "status": "running", "fence": 1, "lease_seconds": 1, "payload": 1,
            "payload_hash": "h", "effective_hash": None, "effective_payload": None, "result": "done",
            "lease_token": "t", "checkpoint": None,
        }  # fmt: skip

        def answer(request: httpx.Request) -> httpx.Response:
            calls.append(request.url.path.rpartition("/")[2])
            if calls[-1] == "extend":
                return httpx.Response(409, json={"error": {"code": "EFFECT_NOT_HELD", "message": "No."}})
            return httpx.Response(200, json=effect)

        driver.network.always = answer

        def work(permit: Any) -> str:
            def fail() -> None:
                raise ValueError("of a listener")

            permit.signal.listen(fail)
            assert permit.signal.wait(60)
            return "done"

        client = driver.watched(at)
        assert client.effects.once(driver.handler(work), type="t", key="k", payload=1) == "done"
        assert calls == ["effects", "extend", "succeed"]


def test_a_change_that_alters_the_default_has_a_fresh_one_for_its_next_try(driver: Driver) -> None:
    client = driver.lossy(at)
    puts: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(404, json={"error": {"code": "KEY_NOT_FOUND", "message": "No."}})
        puts.append(request.content)
        if len(puts) < 3:
            return httpx.Response(409, json={"error": {"code": "VERSION_MISMATCH", "message": "No."}})
        return httpx.Response(200, json={"namespace": "state", "version": 1})

    driver.network.always = answer

    def change(names: list[str]) -> list[str]:
        names.append("me")
        return names

    client.kv.update("state", "names", driver.handler(change), default=[])
    assert puts == [b'{"value":["me"],"cas_version":0}'] * 3


def test_a_wait_begins_once_for_all_that_ask(driver: Driver) -> None:
    client = driver.lossy(at)
    wait = client.wait(any=[{"subject": "x"}])
    answers = [7, 9]
    asked = threading.Barrier(2)

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"event": None, "after": answers.pop(0)})

    if driver.kind.is_async:
        import asyncio

        async def both() -> list[int]:
            return list(await asyncio.gather(wait._owner.begun(), wait._owner.begun()))

        driver.network.always = answer
        assert driver.run(both()) == [7, 7]
        return

    def together(request: httpx.Request) -> httpx.Response:
        asked.wait(60)
        return answer(request)

    driver.network.always = together
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(wait.begun())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found[0] == found[1] == wait.begun()


def test_the_types_of_every_method_can_be_read_at_run_time() -> None:
    """Frameworks make tools of functions by their types."""
    read = 0
    # Of Python 3.10 alone: typing has no names for these.
    missing = {} if sys.version_info >= (3, 11) else {"Unpack": type, "Self": typing.Any}
    for client in (Waystation(at), AsyncWaystation(at)):
        owners = [client, *(value for value in vars(client).values() if hasattr(value, "_transport"))]
        for owner in owners:
            for name, method in inspect.getmembers(owner, inspect.ismethod):
                if not name.startswith("_"):
                    assert "return" in typing.get_type_hints(method, localns=missing), name
                    read += 1
    assert read > 200
