"""The errors of a call: refused by the service, no answer, no answer in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ._operations import error_rows
from .types import ErrorCode, ExitClass

Code = ErrorCode | Literal["UNEXPECTED_ANSWER"]

# Of an answer that was not the service's, and of a code that is newer than this package.
_unexpected: tuple[str, ExitClass] = (
    "Check the address of the service, and what stands between here and the service.",
    "unexpected",
)


class WaystationError(Exception):
    """The service, or something in front of it, refused the call."""

    def __init__(
        self,
        code: Code,
        message: str,
        status: int,
        details: Mapping[str, Any] | None,
        request_id: str | None,
        retry_after_seconds: float | None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code: Code = code
        """UNEXPECTED_ANSWER: the answer was not the service's, such as a page of a proxy."""
        self.status = status
        self.details = details
        """Details of the code, e.g. ``current_version`` of VERSION_MISMATCH; None where it has none."""
        self.request_id = request_id
        """Finds the request in the service's log; None when the answer named none."""
        self.retry_after_seconds = retry_after_seconds
        """The Retry-After header; None without one."""
        self._message = message

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.code, self._message, self.status, self.details, self.request_id, self.retry_after_seconds)
        return (type(self), given, self.__dict__)

    @property
    def next(self) -> str:
        """The caller's next step, in a sentence or two."""
        return error_rows.get(self.code, _unexpected)[0]

    @property
    def exit(self) -> ExitClass:
        """The kind of failure, for scripts: the command line exits by it."""
        return error_rows.get(self.code, _unexpected)[1]


class WaystationNetworkError(Exception):
    """No answer: the connection was refused, lost or not possible. ``__cause__`` is what httpx raised, or the refusal of a
    repeat: the first try may still have had its effect."""

    def __init__(self, may_have_arrived: bool, url: str) -> None:
        super().__init__(f"No answer from {url}: it could not be reached, or the connection was lost before its answer.")
        self.may_have_arrived = may_have_arrived
        """False when the request certainly never reached the service."""
        self.url = url
        """The address of the service."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.may_have_arrived, self.url), self.__dict__)


class WaystationTimeoutError(Exception):
    """No answer within the time given; the request may have had its effect. ``__cause__`` is the refusal of a repeat, if any."""

    def __init__(self, waited_ms: float, message: str | None = None) -> None:
        super().__init__(message or f"No answer within {waited_ms:g} ms.")
        self.waited_ms = waited_ms

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.waited_ms, str(self)), self.__dict__)


FailedTry = WaystationError | WaystationNetworkError | WaystationTimeoutError


def has_code(error: object, *codes: Code) -> bool:
    """True for a refusal with one of these codes: ``if not has_code(error, "KEY_NOT_FOUND"): raise``."""
    return isinstance(error, WaystationError) and error.code in codes
