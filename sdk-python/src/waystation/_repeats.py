"""Repeats of a request whose outcome is unknown. Reads are repeated, and so is what carries an Idempotency-Key. The rules
of the other operations come from the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._errors import WaystationError


@dataclass(frozen=True)
class Done:
    """A refusal of the repeat which says that the first request had its effect."""

    code: str
    status: str | None = None
    """Only when ``details.status`` is this."""
    decision: str | None = None
    """Only when ``details.decision`` is this."""
    answer: object = None
    """The call then returns this."""
    read: str | None = None
    """The call then returns what this operation reads."""

    def is_said_by(self, error: WaystationError) -> bool:
        details = error.details or {}
        return (
            self.code == error.code
            and self.status in (None, details.get("status"))
            and self.decision in (None, details.get("decision"))
        )


@dataclass(frozen=True)
class Retry:
    """A rule as the contract has it."""

    why: str
    safe: bool = True
    with_: str | None = None
    """Safe with this member of the body alone."""
    without: tuple[str, ...] = ()
    """Safe without any of these members and headers."""
    done: tuple[Done, ...] = ()

    def is_safe(self, body: Mapping[str, Any] | None, headers: Mapping[str, str]) -> bool:
        if self.with_ is not None:
            return body is not None and body.get(self.with_) is not None
        # None is a value of its own where any JSON goes, such as the payload of an edit.
        sent = {*(body or {}), *headers}
        return self.safe and not any(name in sent for name in self.without)
