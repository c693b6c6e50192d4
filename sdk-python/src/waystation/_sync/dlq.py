"""client.dlq"""

# Made of ../_async/dlq.py by scripts/clients.ts: do not edit.

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, overload

from .._signal import Signal
from .._values import CallOptions, CreateOptions, WorkContext, WorkSummary
from ..types import ClaimedDeadLetter, DeadLetterOperation, DeadLetterDiscardFilter, MatchedDeadLetters, DeadLetterRedriveFilter
from . import resources
from .look import patient
from .platform import settled
from .work import WorkOptions, work_on

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack

look_again_ms = 500
"""The pause between two looks at an operation."""


class Dlq(resources.Dlq):
    @overload
    def redrive_many(
        self,
        *,
        filter: DeadLetterRedriveFilter,
        max: int | None = None,
        per_second: float | None = None,
        dry_run: Literal[True],
        **options: Unpack[CreateOptions],
    ) -> MatchedDeadLetters: ...

    @overload
    def redrive_many(
        self,
        *,
        filter: DeadLetterRedriveFilter,
        max: int | None = None,
        per_second: float | None = None,
        dry_run: Literal[False] | None = None,
        **options: Unpack[CreateOptions],
    ) -> DeadLetterOperation: ...

    @overload
    def redrive_many(
        self,
        *,
        filter: DeadLetterRedriveFilter,
        max: int | None = None,
        per_second: float | None = None,
        dry_run: bool | None = None,
        **options: Unpack[CreateOptions],
    ) -> DeadLetterOperation | MatchedDeadLetters: ...

    def redrive_many(
        self,
        *,
        filter: DeadLetterRedriveFilter,
        max: int | None = None,
        per_second: float | None = None,
        dry_run: bool | None = None,
        **options: Unpack[CreateOptions],
    ) -> DeadLetterOperation | MatchedDeadLetters:
        """Sends many items again: the operation, or with `dry_run` how many match. Raises TOO_MANY_OPERATIONS."""
        return super().redrive_many(filter=filter, max=max, per_second=per_second, dry_run=dry_run, **options)

    @overload
    def discard_many(
        self,
        *,
        filter: DeadLetterDiscardFilter,
        max: int | None = None,
        per_second: float | None = None,
        dry_run: Literal[True],
        **options: Unpack[CreateOptions],
    ) -> MatchedDeadLetters: ...

    @overload
    def discard_many(
        self,
        *,
        filter: DeadLetterDiscardFilter,
        max: int | None = None,
        per_second: float | None = None,
        dry_run: Literal[False] | None = None,
        **options: Unpack[CreateOptions],
    ) -> DeadLetterOperation: ...

    @overload
    def discard_many(
        self,
        *,
        filter: DeadLetterDiscardFilter,
        max: int | None = None,
        per_second: float | None = None,
        dry_run: bool | None = None,
        **options: Unpack[CreateOptions],
    ) -> DeadLetterOperation | MatchedDeadLetters: ...

    def discard_many(
        self,
        *,
        filter: DeadLetterDiscardFilter,
        max: int | None = None,
        per_second: float | None = None,
        dry_run: bool | None = None,
        **options: Unpack[CreateOptions],
    ) -> DeadLetterOperation | MatchedDeadLetters:
        """Archives many failed items: the operation, or with `dry_run` how many match. Raises TOO_MANY_OPERATIONS."""
        return super().discard_many(filter=filter, max=max, per_second=per_second, dry_run=dry_run, **options)

    def wait_for_operation(
        self,
        id: str,
        *,
        on_progress: Callable[[DeadLetterOperation], object] | None = None,
        **options: Unpack[CallOptions],
    ) -> DeadLetterOperation:
        """Waits until the operation has succeeded or was cancelled; a signal ends the wait. `on_progress` gets each look."""
        call = patient(options)
        while True:
            operation = self.operation(id, **call)
            if on_progress:
                settled(on_progress(operation))
            if operation["status"] != "running":
                return operation
            self._transport.platform.sleep(look_again_ms, options.get("signal"))

    def work(
        self,
        handler: Callable[[ClaimedDeadLetter, WorkContext], object],
        *,
        concurrency: int = 1,
        lock_seconds: int | None = None,
        signal: Signal | None = None,
        claims_max: int = 10,
        idle_ms_max: float = 30_000,
        stop_when_empty: bool = False,
        on_error: Callable[[Exception, ClaimedDeadLetter | None], object] | None = None,
    ) -> WorkSummary:
        """Claims items one after the other, oldest first, extends their locks, and resolves each when `handler` is done with
        it. When the handler raises, the item is released for another try; for GiveUp, and after `claims_max` claims, it is
        archived. Goes on until the signal is aborted, and returns once the items in progress are settled.

        concurrency: items at the same time, 1 to 100.
        lock_seconds: how long each lock holds without being extended; default that of the item.
        signal: ends the work: nothing more is claimed, and the handlers' signals are aborted.
        idle_ms_max: the longest wait while there is nothing to do, or nothing succeeds.
        stop_when_empty: ends the work once nothing is left to claim.
        on_error: called with every error; its item is None when the claim failed.
        """
        options = WorkOptions(
            concurrency, lock_seconds, signal, claims_max, idle_ms_max, stop_when_empty, on_error
        )
        return work_on(self, self._transport.platform, handler, options)
