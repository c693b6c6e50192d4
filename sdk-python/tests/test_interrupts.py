"""Interrupts of the sync client (Ctrl-C), wherever they meet it."""

from __future__ import annotations

import os
import signal
import sys
import threading
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
