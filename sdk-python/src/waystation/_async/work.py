"""dlq.work: a loop that claims items, calls the handler, extends the lock and settles the item."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .._errors import FailedTry, WaystationTimeoutError
from .._outcome import is_permanent, retry_after_ms
from .._signal import Aborted, Signal, follow
from .._values import CallOptions, GiveUp, WorkContext, WorkSummary, limited
from ..types import ClaimedDeadLetter
from .lock import AsyncKeptLock, Lock, extend_timeout_ms
from .platform import AsyncBackground, AsyncPlatform, all_of, check_function, finished, settled

if TYPE_CHECKING:
    from .dlq import AsyncDlq
    from .platform import MaybeAwaitable

concurrency_max = 100
idle_ms_first = 1_000
claim_grace_ms = 5_000
"""A claim in progress at the end may take this much longer: cut off, it could leave an item locked."""
release_ms = 5_000
"""So long may the release of an item take after a cancellation or an interrupt."""
share = 1 / 2
"""The part of its time after which a lock is extended."""


@dataclass(frozen=True)
class WorkOptions:
    """The options of dlq.work."""

    concurrency: int
    lock_seconds: int | None
    signal: Signal | None
    claims_max: int
    idle_ms_max: float
    stop_when_empty: bool
    on_error: Callable[[Exception, ClaimedDeadLetter | None], MaybeAwaitable[object]] | None


@dataclass(frozen=True)
class Claimed:
    item: ClaimedDeadLetter | None = None
    asked_at: float = 0
    """When its lock was asked for."""
    is_empty: bool = False
    """Nothing is left to claim."""
    wait_ms: float = 0
    """Asked for by the service."""


async def work_on(
    dlq: AsyncDlq,
    platform: AsyncPlatform,
    handler: Callable[[ClaimedDeadLetter, WorkContext], MaybeAwaitable[object]],
    options: WorkOptions,
) -> WorkSummary:
    check_function(handler)
    limited("concurrency", options.concurrency, 1, concurrency_max)
    limited("claims_max", options.claims_max, 1, float("inf"))
    limited("idle_ms_max", options.idle_ms_max, 0, float("inf"))
    ended, late, done = Signal(), Signal(), Signal()
    forget = follow(options.signal, ended)

    async def grace() -> None:
        """Cuts off the claims that are still in progress some time after the end."""
        over = Signal()
        ended.listen(over.abort)
        done.listen(over.abort)
        try:
            await platform.sleep(float("inf"), over)
        except Aborted:
            pass
        try:
            await platform.sleep(claim_grace_ms, done)
            late.abort()
        except Aborted:
            pass

    worker = _Worker(dlq, platform, handler, options, ended, late)
    waiting: AsyncBackground | None = None
    try:
        # An interrupt may come while its thread starts.
        waiting = AsyncBackground(grace)
        await all_of([worker.run] * options.concurrency, ended)
    finally:
        forget()
        done.abort()
        if waiting is not None:
            await waiting.join()
    return worker.summary


class _Worker:
    def __init__(
        self,
        dlq: AsyncDlq,
        platform: AsyncPlatform,
        handler: Callable[[ClaimedDeadLetter, WorkContext], MaybeAwaitable[object]],
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

    async def run(self) -> None:
        """One worker: item after item, with growing pauses while nothing succeeds."""
        failures = 0
        while not self._ended.aborted:
            held: list[ClaimedDeadLetter] = []
            try:
                claimed = await finished(self._claim(held))
            except BaseException:
                # The task was cancelled as the answer came.
                for item in held:
                    await finished(self._settle(item, "release", release_ms))
                raise
            if claimed.is_empty and self._options.stop_when_empty:
                return
            succeeded = claimed.item is not None and await self._handle(claimed.item, claimed.asked_at)
            failures = 0 if succeeded else failures + 1
            if not succeeded:
                await self._pause(failures, claimed.wait_ms)

    async def _claim(self, held: list[ClaimedDeadLetter]) -> Claimed:
        """An item that comes after the end is released, and one whose lock is over by then is lost; `held` gets others."""
        asked_at = self._platform.now_ms()
        try:
            # No retries: this loop has its own, which end with the work.
            item = await self._dlq.claim_oldest(
                lock_seconds=self._options.lock_seconds, retries=0, signal=self._late
            )
        except Exception as error:
            await self._claim_failed(error)
            return Claimed(wait_ms=retry_after_ms(error))
        if item is None:
            return Claimed(is_empty=True)
        held.append(item)
        since = await self._confirmed(item, asked_at)
        if since is not None and not self._ended.aborted:
            return Claimed(item, since)
        held.clear()
        if since is not None:
            await self._settle(item, "release")
        return Claimed()

    async def _confirmed(self, item: ClaimedDeadLetter, claimed_at: float) -> float | None:
        """When the lock of the item was asked for, by a claim or an extension that was answered in time, or when the work has
        ended. None when it is lost: the handler must not begin."""
        lock_ms = self._lock_seconds(item) * 1_000
        asked_at = claimed_at
        while not self._ended.aborted:
            now = self._platform.now_ms()
            if now - asked_at < lock_ms * share:
                break
            try:
                # After its whole time another agent may have it, whatever an extension has answered.
                if now - asked_at >= lock_ms:
                    raise WaystationTimeoutError(lock_ms, "The lock expired before its claim was answered.")
                await self._extend(item, {"timeout_ms": extend_timeout_ms(lock_ms), "signal": self._ended})
            except Exception as error:
                if self._ended.aborted:
                    break
                self._count("lost")
                await self._report(error, item)
                return None
            asked_at = now
        return asked_at

    async def _claim_failed(self, error: Exception) -> None:
        """An error that no other try mends ends the work: a refusal, and what is not an outcome of a call at all."""
        if self._ended.aborted:
            return
        if is_permanent(error) or not isinstance(error, FailedTry):
            self._ended.abort(error)
            raise error
        await self._report(error, None)

    async def _handle(self, item: ClaimedDeadLetter, asked_at: float) -> bool:
        """True when the item was resolved."""
        if self._ended.aborted:
            return await finished(self._settle(item, "release"))
        stop = Signal()
        lock = self._lock(item, asked_at, stop)
        try:
            return await self._under(item, lock, stop)
        finally:
            # An interrupt may come between any two steps: nothing may go on extending the lock of an item that nobody handles.
            lock.leave()

    async def _under(self, item: ClaimedDeadLetter, lock: AsyncKeptLock, stop: Signal) -> bool:
        forget = follow(self._ended, stop)
        try:
            lock.begin()
        except BaseException:
            # Of the system, such as of one that gives no thread for it: no other item will fare better.
            forget()
            self._ended.abort()
            await finished(self._settle(item, "release", release_ms))
            raise
        raised: BaseException | None = None
        try:
            await settled(self._handler(item, WorkContext(stop)))
        except BaseException as error:
            raised = error
        forget()
        if raised is None or isinstance(raised, Exception):
            return await finished(self._handled(item, lock, raised))
        # The task was cancelled, or the program interrupted.
        self._ended.abort()
        await finished(self._dropped(item, lock))
        raise raised

    async def _dropped(self, item: ClaimedDeadLetter, lock: AsyncKeptLock) -> bool:
        """Releases an item whose handler was cut short. False when its lock was lost."""
        lost = await lock.stop()
        if not lost:
            await self._settle(item, "release", release_ms)
        return not lost

    async def _handled(self, item: ClaimedDeadLetter, lock: AsyncKeptLock, raised: Exception | None) -> bool:
        """Settles an item whose handler has ended. True when it was resolved."""
        lost = await lock.stop()
        if raised is not None:
            await self._report(raised, item)
        if lost:
            self._count("lost")
            return False
        if raised is None:
            return await self._settle(item, "resolve")
        is_final = isinstance(raised, GiveUp) or item["claims"] >= self._options.claims_max
        return await self._settle(item, "fail" if is_final else "release")

    def _lock_seconds(self, item: ClaimedDeadLetter) -> int:
        return self._options.lock_seconds or item["lock_seconds"]

    async def _extend(self, item: ClaimedDeadLetter, options: CallOptions) -> Any:
        return await self._dlq.extend(
            item["id"], lock_token=item["lock_token"], lock_seconds=self._lock_seconds(item), **options
        )

    def _lock(self, item: ClaimedDeadLetter, asked_at: float, stop: Signal) -> AsyncKeptLock:
        async def extend(options: CallOptions) -> Any:
            return await self._extend(item, options)

        async def report(error: Exception) -> None:
            await self._report(error, item)

        def lose(reason: BaseException) -> None:
            stop.abort(reason)

        lock_ms = self._lock_seconds(item) * 1_000
        return AsyncKeptLock(self._platform, Lock(lock_ms, asked_at, share, extend, report, lose))

    async def _settle(
        self, item: ClaimedDeadLetter, action: Literal["resolve", "fail", "release"], most_ms: float | None = None
    ) -> bool:
        """`most_ms`: there is this much time, and one try."""
        brief: CallOptions = {} if most_ms is None else {"timeout_ms": most_ms, "retries": 0}
        settle = {"resolve": self._dlq.resolve, "fail": self._dlq.fail, "release": self._dlq.release}[action]
        try:
            await settle(item["id"], lock_token=item["lock_token"], **brief)
        except Exception as error:
            self._count("lost")
            await self._report(error, item)
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

    async def _pause(self, failures: int, least_ms: float) -> None:
        most_ms = min(self._options.idle_ms_max, idle_ms_first * 2 ** min(failures - 1, 20))
        try:
            await self._platform.sleep(least_ms + self._platform.random() * most_ms, self._ended)
        except Exception:
            # The work has ended: its loop looks.
            pass

    async def _report(self, error: Exception, item: ClaimedDeadLetter | None) -> None:
        """A listener that raises must not end the work."""
        if self._options.on_error is None:
            return
        try:
            await settled(self._options.on_error(error, item))
        except Exception:
            pass
