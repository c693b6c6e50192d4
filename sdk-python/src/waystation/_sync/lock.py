"""The lock of a dead letter, or the lease of an effect, while its work is done."""

# Made of ../_async/lock.py by scripts/clients.ts: do not edit.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._errors import WaystationTimeoutError
from .._outcome import is_permanent, retry_after_ms
from .._signal import Aborted, Signal
from .._values import CallOptions
from .platform import Background, Platform

extend_ms_max = 10_000
"""An extension without an answer for this long, or for a quarter of the lock, is tried again."""


def extend_timeout_ms(lock_ms: float) -> float:
    return min(extend_ms_max, lock_ms / 4)


@dataclass(frozen=True)
class Lock:
    lock_ms: float
    asked_at: float
    """When it was asked for, by the clock here."""
    share: float
    """The part of its time after which it is extended."""
    extend: Callable[[CallOptions], Any]
    """Lets it end ``lock_ms`` from now."""
    on_error: Callable[[Exception], None]
    on_lost: Callable[[BaseException], None]


class KeptLock:
    """Extends a new lock at every `share` of its time, and at every tenth while the service does not answer. `on_lost` is
    called when an extension is refused for good, and when the time is over here without one: whatever the service answers
    later, another agent may have the item from then on.

    An interrupt may meet its caller anywhere: `begin()` stands in a `try` whose `finally` calls `leave()`."""

    def __init__(self, platform: Platform, lock: Lock) -> None:
        self._platform = platform
        self._lock = lock
        self._over = Signal()
        self._lost = False
        self._expires_at = lock.asked_at + lock.lock_ms
        self._keeping: Background | None = None

    def begin(self) -> None:
        self._keeping = Background(self._keep)

    def stop(self) -> bool:
        """Stops the extensions. True when the lock was lost."""
        self._over.abort()
        if self._keeping is not None:
            self._keeping.join()
        return self._lost

    def leave(self) -> None:
        """Stops the extensions, and does not wait for that. Once they have stopped it does nothing."""
        self._over.abort()

    def _keep(self) -> None:
        lock = self._lock
        timeout_ms = extend_timeout_ms(lock.lock_ms)
        # Some of its time may have gone before its answer came.
        wait_ms = lock.lock_ms * lock.share - (self._platform.now_ms() - lock.asked_at)
        try:
            while True:
                self._pause(wait_ms)
                if self._left_ms() <= 0:
                    return self._lose(self._expired())
                asked_at = self._platform.now_ms()
                try:
                    lock.extend(
                        {
                            "timeout_ms": max(1, min(timeout_ms, self._left_ms())),
                            "retries": 0,
                            "signal": self._over,
                        }
                    )
                except Exception as error:
                    self._over.raise_if_aborted()
                    if is_permanent(error):
                        return self._lose(error)
                    lock.on_error(error)
                    wait_ms = max(lock.lock_ms / 10, retry_after_ms(error))
                    continue
                self._expires_at = asked_at + lock.lock_ms
                wait_ms = lock.lock_ms * lock.share
        except Aborted:
            return

    def _pause(self, wait_ms: float) -> None:
        self._platform.sleep(max(0, min(wait_ms, self._left_ms())), self._over)

    def _left_ms(self) -> float:
        return self._expires_at - self._platform.now_ms()

    def _expired(self) -> WaystationTimeoutError:
        return WaystationTimeoutError(
            self._lock.lock_ms, "The lock expired: there was no answer in time to extend it."
        )

    def _lose(self, reason: Exception) -> None:
        self._lost = True
        try:
            self._lock.on_lost(reason)
        except Exception as error:
            # Of a listener of the caller: it must not end in the place of what the work has done.
            self._lock.on_error(error)
        self._lock.on_error(reason)
