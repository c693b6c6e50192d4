"""Verifies that a callback is from the service. Standard Webhooks 1.0.0, symmetric signatures (v1)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Union, cast

from ._json import parse_json
from ._settings import hidden

VerificationFailure = Literal["malformed", "too_old", "too_new", "no_match", "too_large"]
"""malformed: a header is missing or not in its form. too_old, too_new: its time is further away than tolerated: a replay, or a
clock that is wrong. no_match: none of its signatures matches any of the secrets."""


class HasItems(Protocol):
    """A mapping of names to texts, as frameworks have it."""

    def items(self) -> Iterable[tuple[Any, Any]]: ...


Headers = Union[HasItems, Iterable[tuple[Any, Any]]]
"""What frameworks give: a mapping of names to texts, or pairs of names and values, as str or bytes."""

body_bytes_max_default = 1_048_576
tolerance_seconds_default = 300
secret_prefix = "whsec_"
signatures_max = 16
"""A header with more is not one of ours."""
_names = ("webhook-id", "webhook-timestamp", "webhook-signature", "x-waystation-event", "x-waystation-attempt")


class CallbackVerificationError(Exception):
    """The callback must not be trusted."""

    def __init__(self, reason: VerificationFailure) -> None:
        super().__init__(f"The callback must not be trusted: {reason}.")
        self.reason: VerificationFailure = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.reason,), self.__dict__)


@dataclass(frozen=True)
class VerifiedCallback:
    id: str
    """The same on every retry: remember it to do everything once."""
    event: str | None
    """``schedule.fired``, ``checkpoint.approved`` or ``checkpoint.rejected``; None when the header was not there. It is not
    signed, and neither is `attempt`: the decision of a checkpoint is in the body, too."""
    attempt: int | None
    """1, 2 or 3; None when the header was not there."""
    timestamp_seconds: int
    """When this attempt was sent, whole seconds since the Unix epoch."""
    text: str
    """The exact body."""
    body: Any
    """The body, parsed."""


def verify_callback(
    headers: Headers,
    body: str | bytes,
    secret: str | Sequence[str],
    *,
    tolerance_seconds: float = tolerance_seconds_default,
    now_ms: float | None = None,
    body_bytes_max: int = body_bytes_max_default,
) -> VerifiedCallback:
    """The callback, when one of its signatures was made with one of the secrets; otherwise CallbackVerificationError.
    Give both secrets while one rotates. Raises TypeError or ValueError for a mistake of set-up.

    body: the exact body, not parsed.
    tolerance_seconds: how far the time of the attempt may be from now.
    now_ms: since the Unix epoch; default the current time.
    body_bytes_max: a larger body is refused.
    """
    # No report of an error that a stranger can cause shows them.
    secret = hidden(secret) if isinstance(secret, str) else [hidden(one) for one in secret]
    if not isinstance(cast("object", body), (str, bytes, bytearray, memoryview)):
        raise TypeError("body must be the exact body, text or bytes, not parsed")
    found = _texts_of(headers)
    id = found.get("webhook-id", "")
    timestamp = found.get("webhook-timestamp", "")
    signatures = _signatures_of(found.get("webhook-signature", ""))
    if not id or not re.fullmatch(r"[0-9]{1,12}", timestamp) or not signatures:
        raise CallbackVerificationError("malformed")
    now_seconds = int((time.time() * 1_000 if now_ms is None else now_ms) // 1_000)
    age_seconds = now_seconds - int(timestamp)
    # Written this way, a limit of NaN refuses everything.
    if not age_seconds <= tolerance_seconds:
        raise CallbackVerificationError("too_old")
    if not -age_seconds <= tolerance_seconds:
        raise CallbackVerificationError("too_new")
    exact = body.encode() if isinstance(body, str) else bytes(body)
    if not len(exact) <= body_bytes_max:
        raise CallbackVerificationError("too_large")
    signed = f"{id}.{timestamp}.".encode() + exact
    if not _is_signed(signed, signatures, [secret] if isinstance(secret, str) else secret):
        raise CallbackVerificationError("no_match")
    text = exact.decode("utf-8", "replace")
    attempt = found.get("x-waystation-attempt", "")
    return VerifiedCallback(
        id=id,
        event=found.get("x-waystation-event"),
        attempt=int(attempt) if re.fullmatch(r"[0-9]{1,9}", attempt) else None,
        timestamp_seconds=int(timestamp),
        text=text,
        body=parse_json(text),
    )


def _is_signed(signed: bytes, signatures: Sequence[str], secrets: Sequence[str]) -> bool:
    """Compares every pair to its end, so that the time does not depend on which one matches."""
    matches = False
    for secret in secrets:
        digest = hmac.new(_secret_bytes(secret), signed, hashlib.sha256).digest()
        expected = base64.b64encode(digest)
        for signature in signatures:
            matches = hmac.compare_digest(signature.encode("utf-8", "replace"), expected) or matches
    return matches


def _secret_bytes(secret: str) -> bytes:
    """Raises TypeError or ValueError for a secret in the wrong form: a mistake of set-up, not of the sender."""
    # One of bytes comes here as a number, byte by byte.
    if not isinstance(cast("object", secret), str):
        raise TypeError("a signing secret must be a str")
    text = hidden(secret.removeprefix(secret_prefix))
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError("a signing secret is whsec_ and base64")
    return key


def _signatures_of(header: str) -> list[str]:
    """Those of version 1; others are there for receivers that know them."""
    listed = header.split(" ")[:signatures_max]
    return [signature[3:] for signature in listed if signature.startswith("v1,")]


def _texts_of(headers: Headers) -> dict[str, str]:
    """By their names in lower case; the values of one that came more than once are joined."""
    has_items = hasattr(headers, "items")
    pairs = cast("HasItems", headers).items() if has_items else cast("Iterable[tuple[Any, Any]]", headers)
    found: dict[str, str] = {}
    for name, value in pairs:
        if _text_of(name).lower() not in _names or value is None:
            continue
        values = [value] if isinstance(value, (str, bytes)) else list(value)
        text = ", ".join(_text_of(one) for one in values)
        lower = _text_of(name).lower()
        found[lower] = f"{found[lower]}, {text}" if lower in found else text
    return found


def _text_of(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
