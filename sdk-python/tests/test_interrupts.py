"""Interrupts of the sync client (Ctrl-C), wherever they meet it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import httpx
import pytest

from waystation import Signal, Waystation, WaystationNetworkError
from waystation._sync.platform import all_of


class SoftTimeLimit(Exception):
    """As Celery and RQ raise theirs: in a handler of signals, in the midst of whatever the program does."""


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, SoftTimeLimit])
def test_the_call_after_an_interrupted_one_has_connections_of_its_own(
    monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    # An interrupt may leave a lock of httpx held for ever: the next caller of the same connections stands still.
    used: list[httpx.Client] = []

    def send(self: httpx.Client, request: httpx.Request, **_: Any) -> httpx.Response:
        used.append(self)
        if len(used) == 2:
            raise interrupt
        return httpx.Response(200, json={"id": "log_1"})

    monkeypatch.setattr(httpx.Client, "send", send)
    with Waystation("http://service.example") as client:
        client.audit.get("log_1")
        with pytest.raises(interrupt):
            client.audit.get("log_1")
        client.audit.get("log_1")
        client.audit.get("log_1")
    assert used[0] is used[1] is not used[2] is used[3]
    used[1].close()
    with httpx.Client() as given:
        used.clear()
        own = Waystation("http://service.example", http_client=given)
        own.audit.get("log_1")
        with pytest.raises(interrupt):
            own.audit.get("log_1")
        own.audit.get("log_1")
        assert used == [given] * 3


def test_a_call_of_another_thread_does_not_wait_for_an_interrupted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    locks: dict[httpx.Client, threading.Lock] = {}
    main = threading.get_ident()
    sends, interrupted = threading.Event(), threading.Event()
    came_on: list[bool] = []

    def send(self: httpx.Client, request: httpx.Request, **_: Any) -> httpx.Response:
        lock = locks.setdefault(self, threading.Lock())
        if threading.get_ident() == main:
            assert sends.wait(60)
            # As of the pool of httpx, met between two steps that belong together.
            lock.acquire()
            interrupted.set()
            raise KeyboardInterrupt
        sends.set()
        assert interrupted.wait(60)
        came_on.append(lock.acquire(timeout=0.1))
        return httpx.Response(200, json={"id": "log_1"})

    monkeypatch.setattr(httpx.Client, "send", send)
    with Waystation("http://service.example") as client:
        other = threading.Thread(target=client.audit.get, args=["log_1"])
        other.start()
        with pytest.raises(KeyboardInterrupt):
            client.audit.get("log_1")
        other.join()
    assert came_on == [True]


def test_the_call_after_one_that_failed_has_the_same_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[httpx.Client] = []

    def send(self: httpx.Client, request: httpx.Request, **_: Any) -> httpx.Response:
        used.append(self)
        if len(used) == 1:
            raise httpx.ReadError("reset")
        return httpx.Response(200, json={"id": "log_1"})

    monkeypatch.setattr(httpx.Client, "send", send)
    with Waystation("http://service.example", retries=0) as client:
        with pytest.raises(WaystationNetworkError):
            client.audit.get("log_1")
        client.audit.get("log_1")
    assert used[0] is used[1]


def test_all_that_runs_beside_is_waited_for() -> None:
    main = threading.get_ident()
    order: list[str] = []
    raised, over = threading.Event(), threading.Event()

    def waits() -> bool:
        frame: FrameType | None = sys._current_frames()[main]
        # In threading, called by all_of, which starts no thread any more.
        within = [frame.f_code.co_filename]
        while frame := frame.f_back:
            within.append(frame.f_code.co_name)
        return within[0].endswith("threading.py") and "all_of" in within and "__init__" not in within

    def until_it_waits() -> None:
        while not waits() and not raised.wait(0.001):
            pass

    def work() -> None:
        until_it_waits()
        os.kill(os.getpid(), signal.SIGINT)
        assert ended.wait(60)
        until_it_waits()
        order.append("work")
        over.set()

    ended = Signal()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            all_of([work, lambda: None], ended)
    finally:
        order.append("interrupt")
        raised.set()
        signal.signal(signal.SIGINT, before)
    assert over.wait(60)
    assert order == ["work", "interrupt"]


class InterruptAt:
    """Interrupts this thread at one line of what the client runs in it, and of the start of a thread."""

    def __init__(self, step: int) -> None:
        self._left = step
        self.has_met = False

    def __enter__(self) -> InterruptAt:
        sys.settrace(self._enters)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enters(self, frame: FrameType, event: str, *_: object) -> Any:
        file = frame.f_code.co_filename
        if file.endswith("/threading.py"):
            caller = frame.f_back
            if frame.f_code.co_name == "wait" and caller is not None and caller.f_code.co_name == "start":
                self._step()
            return None
        is_of_client = "/_sync/" in file and not file.endswith(("transport.py", "resources.py"))
        return self._at if is_of_client else None

    def _at(self, _: FrameType, event: str, *__: object) -> Any:
        if event == "line":
            self._step()
        return self._at

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0 and not self.has_met:
            self.has_met = True
            raise KeyboardInterrupt


class Service(httpx.BaseTransport):
    """Gives one lease and one item, and refuses nothing but a second report."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/v1/effects":
            return httpx.Response(201, json=effect)
        if path == "/v1/dlq/claim":
            return httpx.Response(200, json=item)
        # The connection is lost: a release that would end the extensions by their refusal does not arrive.
        if path.endswith(("/fail", "/release")):
            raise httpx.ReadError("reset")
        return httpx.Response(200, json={**effect, **item, "result": None})


effect: dict[str, Any] = {
    **{"id": "eff_1", "type": "t", "key": "k", "status": "running", "lease_token": "t", "lease_seconds": 300},
    **{"effective_hash": None, "payload": 1, "payload_hash": "h", "fence": 1, "checkpoint": None},
}
item: dict[str, Any] = {"id": "dlq_1", "lock_token": "t", "lock_seconds": 300, "claims": 1, "payload": 1}


def once(client: Waystation) -> None:
    client.effects.once(lambda _: None, type="t", key="k", payload=1, retries=0)


def work(client: Waystation) -> None:
    signal = Signal()
    client.dlq.work(lambda *_: signal.abort(), signal=signal)


def extending() -> list[threading.Thread]:
    """The threads that extend a lease or a lock."""

    def files(frame: FrameType | None) -> Iterator[str]:
        while frame:
            yield frame.f_code.co_filename
            frame = frame.f_back

    frames = sys._current_frames()
    return [
        thread
        for thread in threading.enumerate()
        if any(file.endswith("/_sync/lock.py") for file in files(frames.get(thread.ident or 0)))
    ]


@pytest.mark.parametrize("act", [once, work])
def test_no_interrupt_leaves_a_thread_that_goes_on_extending(act: Callable[[Waystation], None]) -> None:
    # It would hold the lease or the lock for as long as the program runs, with nobody working under it.
    left_at: list[int] = []
    left: list[threading.Thread] = []
    for step in range(1_000):
        with httpx.Client(transport=Service()) as given, InterruptAt(step) as interrupt:
            try:
                act(Waystation("http://service.example", http_client=given, retries=0))
            except KeyboardInterrupt:
                pass
        for thread in extending():
            if thread in left:
                continue
            thread.join(0.2)
            if thread.is_alive():
                left_at.append(step)
                left.append(thread)
        if not interrupt.has_met:
            break
    assert left_at == []
    assert step > 50
