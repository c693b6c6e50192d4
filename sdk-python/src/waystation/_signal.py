"""A signal ends calls and waits from another thread, task or handler."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Aborted(Exception):
    """The call or wait was ended by its signal."""


class Signal:
    """Ends the calls and waits that were given it: ``signal.abort()``, from any thread. They raise its reason.

    Async callers may as well cancel the task.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._reason: BaseException | None = None
        self._listeners: dict[int, Callable[[], None]] = {}
        self._next = 0

    @classmethod
    def timeout(cls, ms: float) -> Signal:
        """One that is aborted by itself after this time."""
        signal = cls()
        reason = Aborted(f"The time of the signal, {ms:g} ms, is over.")
        timer = threading.Timer(ms / 1_000, signal.abort, [reason])
        timer.daemon = True
        timer.start()
        signal.listen(timer.cancel)
        return signal

    @property
    def aborted(self) -> bool:
        return self._event.is_set()

    @property
    def reason(self) -> BaseException | None:
        """None as long as it is not aborted."""
        return self._reason

    def abort(self, reason: BaseException | None = None) -> None:
        """Without a reason it is an Aborted. A second abort changes nothing."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason if reason is not None else Aborted("The call was aborted.")
            self._event.set()
            listeners = list(self._listeners.values())
            self._listeners.clear()
        for listener in listeners:
            listener()

    def raise_if_aborted(self) -> None:
        if self._reason is not None:
            raise self._reason

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Blocks this thread until it is aborted: True, or for so long: False."""
        return self._event.wait(timeout_seconds)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls it once, when it is aborted, or at once if it is; from the thread that aborts. Returns what stops that."""
        with self._lock:
            if self._reason is None:
                number = self._next
                self._next += 1
                self._listeners[number] = listener
                return lambda: self._forget(number)
        listener()
        return lambda: None

    def _forget(self, number: int) -> None:
        with self._lock:
            self._listeners.pop(number, None)


def follow(parent: Signal | None, child: Signal) -> Callable[[], None]:
    """Aborts the child with the parent. Returns what stops that."""
    if parent is None:
        return lambda: None
    return parent.listen(lambda: child.abort(parent.reason))
