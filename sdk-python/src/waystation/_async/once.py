"""effects.once: one call that claims an effect, does it under its lease, and records what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from .._effect_errors import (
    EffectFailedError,
    EffectInFlightError,
    EffectRejectedError,
    EffectUnknownError,
    EffectUnrecordedError,
    NotDone,
)
from .._errors import FailedTry, WaystationError, WaystationNetworkError, WaystationTimeoutError, has_code
from .._json import RawJson, encode_json
from .._outcome import is_outcome_unknown, refusal_of
from .._signal import Signal, follow
from .._values import CallOptions, Permit, ThrownMeans
from ..types import ClaimedEffect, Effect, EffectApproval, EffectApprovalRequest
from .events import AsyncEventWait
from .lock import AsyncKeptLock, Lock
from .platform import check_function, finished, settled
from .transport import AsyncTransport

if TYPE_CHECKING:
    from .effects import AsyncEffects
    from .platform import MaybeAwaitable

R = TypeVar("R")
A = TypeVar("A")

share = 1 / 3
error_characters_max = 4_096
extensions_max = 3
"""Extensions of a lease whose answer was late, before it is released."""
late_max = 6
"""Leases in a row that came too late; each pause before the next is twice as long."""
late_ms_first = 250
given_up_seconds = 1
"""Left of a lease that is given up without a report."""


@dataclass(frozen=True)
class Given:
    """The arguments of effects.once."""

    type: str
    key: str
    payload: object
    note: str | None
    lease_seconds: int | None
    on_unknown: Literal["hold", "ask", "retry"] | None
    approval: EffectApprovalRequest | None
    workflow_id: str | None
    if_in_flight: Literal["wait", "raise"]
    if_unknown: Literal["wait", "raise"]
    on_waiting: Callable[[EffectApproval], MaybeAwaitable[object]] | None
    on_raise: ThrownMeans | Callable[[Exception], ThrownMeans]
    signal: Signal | None
    timeout_ms: float | None
    retries: int


@dataclass(frozen=True)
class Lease:
    effect: ClaimedEffect
    lease_token: str
    asked_at: float

    @property
    def ms(self) -> float:
        """As the service gave it: a policy may have cut it."""
        return self.effect["lease_seconds"] * 1_000

    @property
    def about(self) -> tuple[str, str, str]:
        return self.effect["id"], self.effect["type"], self.effect["key"]


class _Late(Exception):
    """The failure of a lease that is not extended any more."""


class AsyncOnce(Generic[R]):
    def __init__(
        self,
        effects: AsyncEffects,
        transport: AsyncTransport,
        given: Given,
        work: Callable[[Permit], MaybeAwaitable[R]],
    ) -> None:
        check_function(work)
        self._effects = effects
        self._transport = transport
        self._platform = transport.platform
        # The payload as it is now: its owner may change it while an approval is waited for.
        self._given = replace(given, payload=RawJson(encode_json(given.payload)))
        self._work = work
        # A report is sent although the caller wants no more.
        self._report: CallOptions = {"timeout_ms": given.timeout_ms, "retries": given.retries}
        # The same for what only frees a lease early: one try.
        self._tidy: CallOptions = {"timeout_ms": given.timeout_ms, "retries": 0}
        self._call: CallOptions = {
            "timeout_ms": given.timeout_ms,
            "retries": given.retries,
            "signal": given.signal,
        }
        self._shown: str | None = None

    async def run(self) -> R:
        late = 0
        while True:
            following = await self._next()
            if not isinstance(following, Lease):
                return cast("R", _result_of(following))
            lease = await self._confirmed(following)
            if lease is not None:
                return await self._do(lease)
            late += 1
            if late == late_max:
                raise _too_late(following.ms)
            await self._platform.sleep(late_ms_first * 2**late, self._given.signal)

    async def _next(self) -> Lease | Effect:
        """Returns a lease, or the effect that is over."""
        given = self._given
        while True:
            # Of this try alone: a repeat of the request gets the same lease, and a later call does not.
            lease_token = self._platform.uuid()
            asked_at = self._platform.now_ms()

            async def claim(options: CallOptions, token: str = lease_token) -> ClaimedEffect:
                return await self._effects.claim(
                    type=given.type,
                    key=given.key,
                    payload=given.payload,
                    note=given.note,
                    lease_seconds=given.lease_seconds,
                    lease_token=token,
                    on_unknown=given.on_unknown,
                    approval=given.approval,
                    workflow_id=given.workflow_id,
                    **options,
                )

            claimed = await self._refusable(self._leased, lease_token, claim)
            if claimed is None:
                continue
            if claimed["status"] == "running":
                return Lease(claimed, lease_token, asked_at)
            if claimed["status"] == "awaiting_approval":
                await self._approval(claimed)
            elif claimed["status"] != "approved":
                # It is over, whatever else it has: its members are those of an effect.
                return cast("Effect", claimed)
            else:
                lease = await self._start(claimed["id"], lease_token)
                if lease is not None:
                    return lease

    async def _approval(self, effect: ClaimedEffect) -> None:
        checkpoint = effect["checkpoint"]
        if checkpoint and self._shown != checkpoint["id"]:
            self._shown = checkpoint["id"]
            if self._given.on_waiting:
                await settled(self._given.on_waiting(checkpoint))
        await self._effects.wait_for(effect["id"], **self._call)

    async def _start(self, id: str, lease_token: str) -> Lease | None:
        """None when it has changed meanwhile."""
        asked_at = self._platform.now_ms()

        async def start(options: CallOptions) -> ClaimedEffect:
            return await self._effects.start(
                id, lease_token=lease_token, lease_seconds=self._given.lease_seconds or None, **options
            )

        async def started(token: str, ask: Callable[[CallOptions], Awaitable[ClaimedEffect]]) -> ClaimedEffect | None:
            try:
                return await self._leased(token, ask, id)
            except WaystationError as error:
                if has_code(error, "INVALID_STATE"):
                    return None
                raise

        effect = await self._refusable(started, lease_token, start)
        return None if effect is None else Lease(effect, lease_token, asked_at)

    async def _leased(
        self,
        lease_token: str,
        ask: Callable[[CallOptions], Awaitable[ClaimedEffect]],
        known_id: str | None = None,
    ) -> ClaimedEffect | None:
        """Asks for a lease. One that the service gave, and whose answer never came, is released: nothing was begun. None when
        it had run out before that: it can be asked for again. `known_id`: of the effect, where it is known before."""
        signal = self._given.signal
        if signal:
            signal.raise_if_aborted()
        try:
            return await ask(self._call)
        except BaseException as thrown:
            error = _telling(thrown)
        if isinstance(error, WaystationError) and has_code(error, "EFFECT_UNKNOWN"):
            # Of the token of this try alone, so the lease of another is left as it is.
            if await self._released(str((error.details or {}).get("effect_id")), lease_token):
                return None
        elif (signal and signal.aborted) or _may_be_leased(error):
            await finished(self._undone(lease_token, ask, known_id))
        raise error

    async def _undone(
        self, lease_token: str, ask: Callable[[CallOptions], Awaitable[ClaimedEffect]], known_id: str | None
    ) -> bool:
        """Releases the lease that the service may have given. True when it did."""
        id = known_id
        try:
            # The repeat has the same token: it answers that very lease.
            asked = await ask(self._tidy)
            id = None if asked["lease_token"] is None else asked["id"]
        except WaystationError:
            # A freeze refuses it, and neither reads nor the release.
            id = known_id or await self._id()
        except Exception:
            pass
        return id is not None and await self._released(id, lease_token)

    async def _id(self) -> str | None:
        """Of the effect with this type and key; None when there is none, or no answer."""
        try:
            page = await self._effects.list(type=self._given.type, key=self._given.key, **self._tidy).page()
        except Exception:
            return None
        return page.items[0]["id"] if page.items else None

    async def _released(self, id: str, lease_token: str) -> bool:
        try:
            await self._effects.fail(
                id,
                lease_token=lease_token,
                error="It was stopped before it was begun.",
                retry=True,
                **self._tidy,
            )
        except Exception:
            return False
        return True

    async def _refusable(
        self,
        ask: Callable[[str, Callable[[CallOptions], Awaitable[ClaimedEffect]]], Awaitable[ClaimedEffect | None]],
        lease_token: str,
        request: Callable[[CallOptions], Awaitable[ClaimedEffect]],
    ) -> ClaimedEffect | None:
        """None when there is another answer by now."""
        given = self._given
        try:
            return await ask(lease_token, request)
        except WaystationError as error:
            id = str((error.details or {}).get("effect_id") or "")
            about = (id or None, given.type, given.key)
            if has_code(error, "EFFECT_REJECTED"):
                raise EffectRejectedError(*about, error) from error
            if has_code(error, "EFFECT_IN_FLIGHT"):
                if given.if_in_flight == "raise":
                    raise EffectInFlightError(*about, error) from error
            elif has_code(error, "EFFECT_UNKNOWN"):
                if given.if_unknown == "raise":
                    raise EffectUnknownError(*about, error) from error
            else:
                raise
            is_running = has_code(error, "EFFECT_IN_FLIGHT")
        if is_running:
            await self._effects.wait_for(id, **self._call)
        else:
            await self._known(id)
        return None

    async def _known(self, id: str) -> None:
        """Waits until somebody has said what became of it."""
        wait = AsyncEventWait(self._transport, [{"subject": id}], None, None, self._call)
        await wait.begun()
        # It may have changed before the wait began.
        effect = await self._effects.get(id, **self._call)
        if effect["status"] == "unknown":
            await wait.first()

    async def _confirmed(self, given: Lease) -> Lease | None:
        """None when the lease, whose answer came late, is lost: nothing was begun, and it is free again."""
        signal = self._given.signal
        lease = given
        extensions = 0
        while True:
            if signal and signal.aborted:
                await finished(self._free(lease, "It was stopped before it was begun."))
                signal.raise_if_aborted()
            asked_at = self._platform.now_ms()
            since_ms = asked_at - lease.asked_at
            if since_ms < given.ms * share:
                return lease
            try:
                # After its whole time another may have it, whatever an extension has answered.
                if since_ms >= given.ms or extensions == extensions_max:
                    raise _Late
                await self._extend(lease, self._call)
            except BaseException as error:
                await finished(self._free(lease, "Its lease came too late: it was not begun."))
                if isinstance(error, _Late) or has_code(refusal_of(error), "EFFECT_NOT_HELD"):
                    return None
                raise
            lease = replace(lease, asked_at=asked_at)
            extensions += 1

    async def _extend(self, lease: Lease, options: CallOptions, lease_seconds: int | None = None) -> Effect:
        seconds = lease.effect["lease_seconds"] if lease_seconds is None else lease_seconds
        return await self._effects.extend(
            lease.effect["id"], lease_token=lease.lease_token, lease_seconds=seconds, **options
        )

    async def _free(self, lease: Lease, error: str) -> bool:
        try:
            await self._effects.fail(
                lease.effect["id"], lease_token=lease.lease_token, error=error, retry=True, **self._report
            )
        except Exception:
            return False
        return True

    async def _do(self, lease: Lease) -> R:
        stop = Signal()
        lock = self._lock(lease, stop)
        try:
            return await self._under(lease, lock, stop)
        finally:
            # An interrupt may come between any two steps: nothing may go on extending a lease that nobody works under.
            lock.leave()

    async def _under(self, lease: Lease, lock: AsyncKeptLock, stop: Signal) -> R:
        effect = lease.effect
        forget = follow(self._given.signal, stop)
        try:
            lock.begin()
        except BaseException:
            # Of the system, such as of one that gives no thread for it.
            forget()
            await finished(self._free(lease, "It was stopped before it was begun."))
            raise
        changed = effect["effective_hash"] is not None
        permit = Permit(
            id=effect["id"],
            payload=effect["effective_payload"] if changed else effect["payload"],
            payload_hash=effect["effective_hash"] or effect["payload_hash"],
            fence=effect["fence"],
            signal=stop,
            effect=cast("Effect", effect),
        )
        try:
            result: R = await settled(self._work(permit))
        except BaseException as error:
            forget()
            await finished(self._raised(lease, lock, error))
            raise
        forget()
        return await finished(self._succeed(lease, lock, result))

    def _lock(self, lease: Lease, stop: Signal) -> AsyncKeptLock:
        async def extend(options: CallOptions) -> Any:
            return await self._extend(lease, options)

        async def ignore(_: Exception) -> None:
            return None

        return AsyncKeptLock(
            self._platform, Lock(lease.ms, lease.asked_at, share, extend, ignore, lambda reason: stop.abort(reason))
        )

    async def _succeed(self, lease: Lease, lock: AsyncKeptLock, result: R) -> R:
        """Also when the lease was lost: it has happened."""
        await lock.stop()
        id = lease.effect["id"]
        token = lease.lease_token
        try:
            recorded = await self._effects.succeed(id, lease_token=token, result=result, **self._report)
            return cast("R", recorded["result"])
        except Exception as error:
            # That it happened is worth more than its result.
            has_succeeded = False
            if _is_unfit(error):
                try:
                    await self._effects.succeed(id, lease_token=token, **self._report)
                    has_succeeded = True
                except Exception:
                    pass
            raise EffectUnrecordedError(*lease.about, result, has_succeeded) from error

    async def _raised(self, lease: Lease, lock: AsyncKeptLock, error: BaseException) -> bool:
        """True when the service has taken what there was to say. Of a report that gets lost nobody knows: the lease runs out."""
        await lock.stop()
        means = _meaning_of(error, self._given.on_raise)
        try:
            if means == "unknown":
                # Nobody works under it any more, so that what follows on its end need not wait.
                if lease.ms > given_up_seconds * 1_000:
                    await self._extend(lease, self._tidy, given_up_seconds)
                return True
            await self._effects.fail(
                lease.effect["id"],
                lease_token=lease.lease_token,
                error=_text_of(error),
                retry=means == "retry",
                **self._report,
            )
        except Exception:
            return False
        return True


def _too_late(lease_ms: float) -> WaystationTimeoutError:
    return WaystationTimeoutError(
        lease_ms,
        f"Every lease of {lease_ms:g} ms came too late to be used, and nothing was begun: ask for a longer one with "
        "lease_seconds.",
    )


_telling_codes = ("EFFECT_IN_FLIGHT", "EFFECT_REJECTED", "EFFECT_UNKNOWN", "INVALID_STATE")
"""Refusals that say what has become of the effect."""


def _telling(error: BaseException) -> BaseException:
    """A repeat under the token of a lease answers that lease; such a refusal of it says that there is none any more."""
    refusal = refusal_of(error)
    return refusal if refusal is not None and refusal.code in _telling_codes else error


def _may_be_leased(error: BaseException) -> bool:
    """True when the service may have given a lease without the caller learning of it."""
    if isinstance(error, WaystationError):
        return error.status < 400 or error.status == 500 or is_outcome_unknown(error)
    return not isinstance(error, WaystationNetworkError) or error.may_have_arrived


def _meaning_of(
    error: BaseException, on_raise: ThrownMeans | Callable[[Exception], ThrownMeans]
) -> ThrownMeans:
    if isinstance(error, NotDone):
        return "retry" if error.retry else "failed"
    if not isinstance(error, Exception):
        # The task was cancelled, or the program interrupted.
        return "unknown"
    try:
        means = on_raise(error) if callable(on_raise) else on_raise
    except Exception:
        return "unknown"
    return means if means in ("failed", "retry") else "unknown"


def _result_of(effect: Effect) -> object:
    if effect["status"] == "failed":
        raise EffectFailedError(effect["id"], effect["type"], effect["key"], effect["error"])
    if effect["status"] != "succeeded":
        message = f"The effect is {effect['status']}, which this version does not know."
        raise WaystationError("UNEXPECTED_ANSWER", message, 200, None, None, None)
    return effect["result"]


def _is_unfit(error: Exception) -> bool:
    """A result that is not JSON, whatever its encoding has raised, or too large."""
    refusal = refusal_of(error)
    if refusal is None:
        return not isinstance(error, FailedTry)
    return refusal.status in (400, 413)


def _text_of(error: BaseException) -> str:
    """As the service takes it: not empty, without NUL and halves of characters."""
    try:
        text = str(error) or type(error).__name__
    except Exception:
        text = ""
    fit = "".join(
        "\ufffd" if character == "\0" or 0xD800 <= ord(character) < 0xE000 else character
        for character in text[:error_characters_max]
    )
    return fit or "It raised an error without a text."
