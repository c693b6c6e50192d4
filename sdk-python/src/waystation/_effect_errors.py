"""The reasons for which effects.once did not do it."""

from __future__ import annotations

import json
import pickle
from typing import Any, Literal, cast

from ._errors import WaystationError


class EffectError(Exception):
    """Of effects.once: `work` was not called, or what came of it could not be recorded."""

    def __init__(self, effect_id: str | None, type: str, key: str, happened: str) -> None:
        super().__init__(f"The effect {type} {json.dumps(key, ensure_ascii=False)} {happened}")
        self.effect_id = effect_id or None
        """None when there is none: no use of the approval was left for it."""
        self.type = type
        self.key = key

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self.__class__, self.args, self.__dict__))


def _again(kind: type[EffectError], args: tuple[Any, ...], members: dict[str, Any]) -> EffectError:
    """From a pickle."""
    error = kind.__new__(kind, *args)
    error.__dict__.update({name: given.value if isinstance(given, _Result) else given for name, given in members.items()})
    return error


class _Result:
    """What `work` returned, on its way to another process. What no pickle takes, such as a lock or a connection, and what
    cannot be read from one, such as an error made with more than its message, goes as its repr: the error says that it has
    happened, and must arrive."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        shown = repr(self.value)
        try:
            return (_arrived, (pickle.dumps(self.value), shown))
        except Exception:
            return (_Result, (shown,))


def _arrived(pickled: bytes, shown: str) -> _Result:
    try:
        return _Result(pickle.loads(pickled))
    except Exception:
        return _Result(shown)


class EffectRejectedError(EffectError):
    """Its approval was refused, for ever."""

    def __init__(self, effect_id: str | None, type: str, key: str, error: WaystationError) -> None:
        details = error.details or {}
        super().__init__(effect_id, type, key, f"was not approved ({details.get('status')}).")
        self.status = cast('Literal["rejected", "expired", "cancelled", "used_up"]', details.get("status"))
        """How: by a person, by the end of its time, by a cancellation, or no use of the approval was left."""
        self.checkpoint_id: str | None = details.get("checkpoint_id")


class EffectInFlightError(EffectError):
    """Somebody has its lease."""

    def __init__(self, effect_id: str | None, type: str, key: str, error: WaystationError) -> None:
        details = error.details or {}
        self.agent_id = cast("str", details.get("agent_id"))
        self.lease_until = cast("str", details.get("lease_until"))
        """RFC 3339."""
        self.retry_after_seconds = error.retry_after_seconds
        super().__init__(effect_id, type, key, f"is being done by {self.agent_id} until {self.lease_until}.")


class EffectUnknownError(EffectError):
    """A lease ran out without a report: a person has to look whether it has happened."""

    def __init__(self, effect_id: str | None, type: str, key: str, error: WaystationError) -> None:
        super().__init__(effect_id, type, key, "may or may not have happened: nobody has reported it.")
        self.checkpoint_id: str | None = (error.details or {}).get("checkpoint_id")
        """Asks the person; None with ``on_unknown="hold"``."""


class EffectFailedError(EffectError):
    """It was recorded as failed, for ever."""

    def __init__(self, effect_id: str | None, type: str, key: str, reason: str | None) -> None:
        super().__init__(effect_id, type, key, "has failed" if reason is None else f"has failed: {reason}")
        self.reason = reason
        """As it was reported, or as a person has said; None without a word."""


class EffectUnrecordedError(EffectError):
    """`work` has ended, and its result was not recorded. ``__cause__`` is the error of the report."""

    def __init__(self, effect_id: str | None, type: str, key: str, result: Any, has_succeeded: bool) -> None:
        super().__init__(effect_id, type, key, "was done, and its result was not recorded.")
        self.result = result
        """As `work` returned it; after a pickle that could not take it, its repr."""
        self.has_succeeded = has_succeeded
        """True when it was recorded that it has happened: the result alone is missing."""

    def __reduce__(self) -> tuple[Any, ...]:
        members = {**self.__dict__, "result": _Result(self.result)}
        return (_again, (self.__class__, self.args, members))


class NotDone(Exception):
    """Raised by `work` of effects.once when the effect surely did not happen, such as after the target has refused it:
    recorded as failed for good or, with `retry`, free to be started again. Any other error leaves it unknown."""

    def __init__(self, message: str, *, retry: bool = False) -> None:
        super().__init__(message)
        self.retry = retry
