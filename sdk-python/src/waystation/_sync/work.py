"""dlq.work: a loop that claims items, calls the handler, extends the lock and settles the item."""

# Made of ../_async/work.py by scripts/clients.ts: do not edit.

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .._outcome import is_permanent, retry_after_ms
from .._signal import Aborted, Signal, follow
from .._values import CallOptions, GiveUp, WorkContext, WorkSummary, limited
from ..types import ClaimedDeadLetter
from .lock import KeptLock, Lock
from .platform import Background, Platform, all_of, settled

if TYPE_CHECKING:
    from .dlq import Dlq

concurrency_max = 100
idle_ms_first = 1_000
claim_grace_ms = 5_000
"""A claim in progress at the end may take this much longer: cut off, it could leave an item locked."""


@dataclass(frozen=True)
class WorkOptions:
    """The options of dlq.work."""

    concurrency: int
    lock_seconds: int | None
    signal: Signal | None
    claims_max: int
    idle_ms_max: float
    stop_when_empty: bool
    on_error: Callable[[BaseException, ClaimedDeadLetter | None], object] | None


def work_on(
    dlq: Dlq,
    platform: Platform,
    handler: Callable[[ClaimedDeadLetter, WorkContext], object],
    options: WorkOptions,
) -> WorkSummary:
    limited("concurrency", options.concurrency, 1, concurrency_max)
    limited("claims_max", options.claims_max, 1, float("inf"))
    limited("idle_ms_max", options.idle_ms_max, 0, float("inf"))
    ended, late, done = Signal(), Signal(), Signal()
    forget = follow(options.signal, ended)

    def grace() -> None:
        """Cuts off the claims that are still in progress some time after the end."""
        over = Signal()
        ended.listen(over.abort)
        done.listen(over.abort)
        try:
            platform.sleep(float("inf"), over)
        except Aborted:
            pass
        try:
            platform.sleep(claim_grace_ms, done)
            late.abort()
        except Aborted:
            pass

    worker = _Worker(dlq, platform, handler, options, ended, late)
    waiting = Background(grace)
    try:
        all_of([worker.run] * options.concurrency, ended)
    finally:
        forget()
        done.abort()
        waiting.join()
    return worker.summary


class _Worker:
    def __init__(
        self,
        dlq: Dlq,
        platform: Platform,
        handler: Callable[[ClaimedDeadLetter, WorkContext], object],
        options: WorkOptions,
        ended: Signal,
        late: Signal,
    ) -> None:
        self.summary = WorkSummary()
        self._counting = threading.Lock()
        self._dlq = dlq
        self._platform = platform
        self._handler = handler
        self._options = options
        self._ended = ended
        self._late = late
        """Aborted some time after `ended`."""

    def run(self) -> None:
        """One worker: item after item, with growing pauses while nothing succeeds."""
        failures = 0
        while not self._ended.aborted:
            wait_ms = 0.0
            succeeded = False
            try:
                # No retries: this loop has its own, which end with the work.
                item = self._dlq.claim_oldest(
                    lock_seconds=self._options.lock_seconds, retries=0, signal=self._late
                )
            except Exception as error:
                wait_ms = retry_after_ms(error)
                self._claim_failed(error)
            else:
                if item is None and self._options.stop_when_empty:
                    return
                succeeded = item is not None and self._handle(item)
            failures = 0 if succeeded else failures + 1
            if not succeeded:
                self._pause(failures, wait_ms)

    def _claim_failed(self, error: Exception) -> None:
        """A permanent error ends the work."""
        if self._ended.aborted:
            return
        if is_permanent(error):
            self._ended.abort(error)
            raise error
        self._report(error, None)

    def _handle(self, item: ClaimedDeadLetter) -> bool:
        """True when the item was resolved."""
        if self._ended.aborted:
            return self._settle(item, "release")
        stop = Signal()
        forget = follow(self._ended, stop)
        lock = self._keep(item, stop)
        raised: BaseException | None = None
        try:
            settled(self._handler(item, WorkContext(stop)))
        except BaseException as error:
            raised = error
        lost = lock.stop()
        forget()
        if raised is not None and not isinstance(raised, Exception):
            # The task was cancelled, or the program interrupted.
            self._ended.abort()
            if not lost:
                self._settle(item, "release")
            raise raised
        if raised is not None:
            self._report(raised, item)
        if lost:
            self._count("lost")
            return False
        if raised is None:
            return self._settle(item, "resolve")
        is_final = isinstance(raised, GiveUp) or item["claims"] >= self._options.claims_max
        return self._settle(item, "fail" if is_final else "release")

    def _keep(self, item: ClaimedDeadLetter, stop: Signal) -> KeptLock:
        lock_seconds = self._options.lock_seconds or item["lock_seconds"]

        def extend(options: CallOptions) -> Any:
            return self._dlq.extend(
                item["id"], lock_token=item["lock_token"], lock_seconds=lock_seconds, **options
            )

        def report(error: BaseException) -> None:
            self._report(error, item)

        def lose(reason: BaseException) -> None:
            stop.abort(reason)

        asked_at = self._platform.now_ms()
        return KeptLock(self._platform, Lock(lock_seconds * 1_000, asked_at, 1 / 2, extend, report, lose))

    def _settle(self, item: ClaimedDeadLetter, action: Literal["resolve", "fail", "release"]) -> bool:
        settle = {"resolve": self._dlq.resolve, "fail": self._dlq.fail, "release": self._dlq.release}[action]
        try:
            settle(item["id"], lock_token=item["lock_token"])
        except Exception as error:
            self._count("lost")
            self._report(error, item)
            return False
        counted: dict[str, Literal["resolved", "failed", "released"]] = {
            "resolve": "resolved",
            "fail": "failed",
            "release": "released",
        }
        self._count(counted[action])
        return action == "resolve"

    def _count(self, name: Literal["resolved", "released", "failed", "lost"]) -> None:
        with self._counting:
            setattr(self.summary, name, getattr(self.summary, name) + 1)

    def _pause(self, failures: int, least_ms: float) -> None:
        most_ms = min(self._options.idle_ms_max, idle_ms_first * 2 ** min(failures - 1, 20))
        try:
            self._platform.sleep(least_ms + self._platform.random() * most_ms, self._ended)
        except Exception:
            # The work has ended: its loop looks.
            pass

    def _report(self, error: BaseException, item: ClaimedDeadLetter | None) -> None:
        """A listener that raises must not end the work."""
        if self._options.on_error is None:
            return
        try:
            settled(self._options.on_error(error, item))
        except Exception:
            pass
