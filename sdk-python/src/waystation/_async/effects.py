"""client.effects"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeVar

from .._settings import retries_max
from .._signal import Signal
from .._values import Permit, ThrownMeans, WaitOptions
from ..types import Effect, EffectApproval, EffectApprovalRequest
from . import resources
from .look import held_seconds, look_until, patient
from .once import AsyncOnce, Given
from .platform import MaybeAwaitable

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack

# async only
from typing import overload

# end
R = TypeVar("R")


class AsyncEffects(resources.AsyncEffects):
    # async only
    # Two, because mypy finds no R that makes `R | Awaitable[R]` of what an async function returns.
    @overload
    async def once(
        self,
        work: Callable[[Permit], Awaitable[R]],
        *,
        type: str,
        key: str,
        payload: object,
        note: str | None = None,
        lease_seconds: int | None = None,
        on_unknown: Literal["hold", "ask", "retry"] | None = None,
        approval: EffectApprovalRequest | None = None,
        workflow_id: str | None = None,
        if_in_flight: Literal["wait", "raise"] = "wait",
        if_unknown: Literal["wait", "raise"] = "raise",
        on_waiting: Callable[[EffectApproval], MaybeAwaitable[object]] | None = None,
        on_raise: ThrownMeans | Callable[[Exception], ThrownMeans] = "unknown",
        signal: Signal | None = None,
        timeout_ms: float | None = None,
        retries: int | None = None,
    ) -> R: ...

    @overload
    async def once(
        self,
        work: Callable[[Permit], MaybeAwaitable[R]],
        *,
        type: str,
        key: str,
        payload: object,
        note: str | None = None,
        lease_seconds: int | None = None,
        on_unknown: Literal["hold", "ask", "retry"] | None = None,
        approval: EffectApprovalRequest | None = None,
        workflow_id: str | None = None,
        if_in_flight: Literal["wait", "raise"] = "wait",
        if_unknown: Literal["wait", "raise"] = "raise",
        on_waiting: Callable[[EffectApproval], MaybeAwaitable[object]] | None = None,
        on_raise: ThrownMeans | Callable[[Exception], ThrownMeans] = "unknown",
        signal: Signal | None = None,
        timeout_ms: float | None = None,
        retries: int | None = None,
    ) -> R: ...

    # end

    async def once(
        self,
        work: Callable[[Permit], MaybeAwaitable[R]],
        *,
        type: str,
        key: str,
        payload: object,
        note: str | None = None,
        lease_seconds: int | None = None,
        on_unknown: Literal["hold", "ask", "retry"] | None = None,
        approval: EffectApprovalRequest | None = None,
        workflow_id: str | None = None,
        if_in_flight: Literal["wait", "raise"] = "wait",
        if_unknown: Literal["wait", "raise"] = "raise",
        on_waiting: Callable[[EffectApproval], MaybeAwaitable[object]] | None = None,
        on_raise: ThrownMeans | Callable[[Exception], ThrownMeans] = "unknown",
        signal: Signal | None = None,
        timeout_ms: float | None = None,
        retries: int | None = None,
    ) -> R:
        """Does something at most once, and returns its recorded result: claims the effect, waits for its approval, starts it,
        calls `work` while it keeps the lease, and records what came of it. A call for an effect that is over returns the
        recorded result without calling `work`. Raises EffectRejectedError, EffectFailedError, EffectUnknownError,
        EffectInFlightError (with ``if_in_flight="raise"``), EffectUnrecordedError, and what `work` raises.

        payload: bound by its exact JSON as it is at the call: build it with its members in the same order each time.
        if_in_flight: while another has the lease, wait or raise.
        if_unknown: while nobody knows whether it has happened, raise, or wait until somebody has said so.
        on_waiting: called once with the approval that it waits for, whose `approval_url` is for the person.
        on_raise: the meaning of an error of `work` that is not a NotDone: "unknown", the default: it may have happened;
            "failed", for good; "retry": it did not happen; or a function of the error that says which.
        signal: ends the wait, and is passed on to `work`.
        """
        given = Given(
            type=type,
            key=key,
            payload=payload,
            note=note,
            lease_seconds=lease_seconds,
            on_unknown=on_unknown,
            approval=approval,
            workflow_id=workflow_id,
            if_in_flight=if_in_flight,
            if_unknown=if_unknown,
            on_waiting=on_waiting,
            on_raise=on_raise,
            signal=signal,
            timeout_ms=timeout_ms,
            retries=retries_max if retries is None else retries,
        )
        once: AsyncOnce[R] = AsyncOnce(self, self._transport, given, work)
        return await once.run()

    async def wait_for(self, id: str, **options: Unpack[WaitOptions]) -> Effect:
        """Waits until it neither waits for its approval nor runs, however long that takes; a signal ends the wait. An
        unavailable service is tried again for about a minute, unless `retries` says otherwise."""
        wait = held_seconds(options.get("wait_seconds"))
        call = patient(options)

        async def look() -> Effect:
            return await self.get(id, wait=wait, **call)

        def is_done(effect: Effect) -> bool:
            return effect["status"] not in ("awaiting_approval", "running")

        return await look_until(self._transport.platform, look, is_done, call.get("signal"))
