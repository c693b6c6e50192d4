"""A signal ends calls and waits from another thread, task or handler."""

from __future__ import annotations

import heapq
import itertools
import math
import os
import sys
import threading
from collections.abc import Callable

from ._settings import elapsed_ms


class Aborted(Exception):
    """The call or wait was ended by its signal."""


class Latch:
    """Opened once, for one thread that waits. Also by a handler of a signal of the operating system, which runs in the midst of
    that thread: a threading.Event has a lock that the thread may hold at that moment."""

    def __init__(self) -> None:
        self._closed = threading.Lock()
        self._closed.acquire()

    def open(self) -> None:
        try:
            self._closed.release()
        except RuntimeError:
            # It is open already.
            pass

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """True when it was opened, False after so long."""
        most_seconds = -1 if timeout_seconds is None else min(max(0, timeout_seconds), threading.TIMEOUT_MAX)
        return self._closed.acquire(timeout=most_seconds)


class Signal:
    """Ends the calls and waits that were given it: ``signal.abort()``, from any thread, or from a handler of ``signal.signal``.
    They raise its reason.

    Async callers may as well cancel the task.
    """

    def __init__(self) -> None:
        # A handler may run in the thread that holds it, between any two steps: each step here leaves things in order.
        self._lock = threading.RLock()
        self._reasons: dict[None, BaseException] = {}
        self._listeners: dict[int, Callable[[], None]] = {}
        self._numbers = itertools.count()

    @classmethod
    def timeout(cls, ms: float) -> Signal:
        """A signal that is aborted after this time."""
        if math.isnan(ms):
            raise ValueError("ms must be a number")
        signal = cls()
        timers = _timers.get(None) or _timers.setdefault(None, _Timers())
        timers.add(signal, ms)
        return signal

    @property
    def aborted(self) -> bool:
        return self.reason is not None

    @property
    def reason(self) -> BaseException | None:
        """None as long as it is not aborted."""
        return self._reasons.get(None)

    def abort(self, reason: BaseException | None = None) -> None:
        """Without a reason it is an Aborted. A second abort changes nothing. All listeners are called before the error of one
        is raised."""
        given = reason if reason is not None else Aborted("The call was aborted.")
        with self._lock:
            if self._reasons.setdefault(None, given) is not given:
                return
            taken = [self._listeners.pop(number, None) for number in list(self._listeners)]
        failed: list[Exception] = []
        for listener in taken:
            try:
                if listener is not None:
                    listener()
            except Exception as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def raise_if_aborted(self) -> None:
        reason = self.reason
        if reason is not None:
            raise reason

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Blocks this thread until it is aborted: True, or for so long: False."""
        latch = Latch()
        forget = self.listen(latch.open)
        try:
            return latch.wait(timeout_seconds)
        finally:
            forget()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls it once, when it is aborted, or at once if it is; from the thread that aborts. Returns what stops that."""
        with self._lock:
            number = next(self._numbers)
            self._listeners[number] = listener
            # Aborted before, or by a handler that ran before it was there to be called.
            is_left = self.aborted and self._listeners.pop(number, None) is not None
        if is_left:
            listener()
        return lambda: self._forget(number)

    def _forget(self, number: int) -> None:
        with self._lock:
            self._listeners.pop(number, None)


class _Timers:
    """Aborts signals at their time, all of them from one thread, which ends with the last one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, float, Signal]] = []
        self._added = 0
        self._runs = False

    def add(self, signal: Signal, ms: float) -> None:
        with self._changed:
            self._added += 1
            heapq.heappush(self._due, (elapsed_ms() + ms, self._added, ms, signal))
            self._changed.notify()
            if not self._runs:
                threading.Thread(target=self._run, name="waystation-signals", daemon=True).start()
                self._runs = True

    def _run(self) -> None:
        while found := self._next():
            ms, signal = found
            try:
                signal.abort(Aborted(f"The time of the signal, {ms:g} ms, is over."))
            except Exception as error:
                # Of a listener: the other signals go on.
                sys.excepthook(type(error), error, error.__traceback__)

    def _next(self) -> tuple[float, Signal] | None:
        """Waits for the next one that is due; None when there is none any more."""
        with self._changed:
            while True:
                while self._due and self._due[0][3].aborted:
                    heapq.heappop(self._due)
                if not self._due:
                    self._runs = False
                    return None
                left_ms = self._due[0][0] - elapsed_ms()
                if left_ms <= 0:
                    _, _, ms, signal = heapq.heappop(self._due)
                    return ms, signal
                self._changed.wait(min(left_ms / 1_000, threading.TIMEOUT_MAX))


# Made by the first signal with a time: gevent and eventlet may patch locks after this import, and one of before is none
# between greenlets.
_timers: dict[None, _Timers] = {}

if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads.
    os.register_at_fork(after_in_child=_timers.clear)


def follow(parent: Signal | None, child: Signal) -> Callable[[], None]:
    """Aborts the child with the parent. Returns what stops that."""
    if parent is None:
        return lambda: None
    return parent.listen(lambda: child.abort(parent.reason))
