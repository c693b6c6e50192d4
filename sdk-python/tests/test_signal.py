"""Signals that are aborted by a handler of the operating system's, which runs in the midst of the thread that it meets."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from waystation import Signal
from waystation._signal import Latch


def interrupted(at: int, handler: Callable[[], None], work: Callable[[], object]) -> bool:
    """Does the work, and calls the handler before the step of this number in the signals and in threading, as the operating
    system may. False when there are not so many. Fails when it does not end."""
    steps = iter(range(at + 1))
    reached: list[bool] = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(("_signal.py", "threading.py")):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(steps, None) == at:
            reached.append(True)
            handler()
        return trace

    def run() -> None:
        # Python 3.12.1 traces steps only when a frame has asked for them before this.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(trace)
        try:
            work()
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), f"it stands still after the handler at step {at}"
    return reached == [True]


def at_each_step(make: Callable[[Signal, list[str]], Callable[[], object]]) -> list[tuple[Signal, list[str]]]:
    """A fresh signal for each step of the work at which a handler aborts it: the signal, and what has called back."""
    found: list[tuple[Signal, list[str]]] = []
    while True:
        signal = Signal()
        called: list[str] = []
        if not interrupted(len(found), lambda: signal.abort(KeyError("handler")), make(signal, called)):  # noqa: B023
            return found
        found.append((signal, called))


def test_a_listener_is_called_once_wherever_a_handler_aborts() -> None:
    ended = at_each_step(lambda signal, called: lambda: signal.listen(lambda: called.append("one")))
    assert len(ended) > 20
    assert [called for _, called in ended] == [["one"]] * len(ended)


def test_a_wait_ends_wherever_a_handler_aborts() -> None:
    ended = at_each_step(lambda signal, called: lambda: called.append(str(signal.wait(0))))
    assert len(ended) > 20
    assert all(signal.aborted for signal, _ in ended)
    assert (ended[0][1], {text for _, called in ended for text in called}) == (["True"], {"True", "False"})


def test_one_of_two_aborts_counts_wherever_a_handler_aborts() -> None:
    def make(signal: Signal, called: list[str]) -> Callable[[], object]:
        signal.listen(lambda: called.append(str(signal.reason)))
        return lambda: signal.abort(KeyError("thread"))

    ended = at_each_step(make)
    assert len(ended) > 20
    assert [called for _, called in ended] == [[str(signal.reason)] for signal, _ in ended]
    assert {str(signal.reason) for signal, _ in ended} == {"'handler'", "'thread'"}


def test_what_is_forgotten_is_called_once_at_most_wherever_a_handler_aborts() -> None:
    def make(signal: Signal, called: list[str]) -> Callable[[], object]:
        forget = signal.listen(lambda: called.append("one"))
        return forget

    ended = at_each_step(make)
    assert all(called in ([], ["one"]) for _, called in ended)


def test_a_timeout_without_a_number_is_refused_and_the_others_come() -> None:
    with pytest.raises(ValueError, match="ms must be a number"):
        Signal.timeout(float("nan"))
    assert Signal.timeout(1).wait(10)


def test_a_timeout_comes_while_a_test_holds_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # As freezegun does.
    for clock in ("time", "monotonic", "perf_counter"):
        monkeypatch.setattr(time, clock, lambda: 1_000.0)
    assert Signal.timeout(1).wait(10)


@pytest.mark.parametrize("opened", [0, 1, 2])
def test_a_latch_may_be_opened_again(opened: int) -> None:
    latch = Latch()
    for _ in range(opened):
        latch.open()
    assert latch.wait(0) is (opened > 0)


def test_a_signal_with_a_time_uses_the_locks_that_threading_has_by_then() -> None:
    # gunicorn loads an application before gevent or eventlet patches them, and one of before is none between greenlets.
    program = """
import threading
from waystation import Signal
made, real = [], threading.Condition
threading.Condition = lambda *given: made.append(given) or real(*given)
assert Signal.timeout(1).wait(60)
assert () in made, made
"""
    subprocess.run([sys.executable, "-c", program], check=True)
