"""The settings of a client, and the texts that its headers may hold."""

from __future__ import annotations

import re
import sys
import time
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, SupportsIndex, cast, overload
from urllib.parse import quote, urlsplit

from ._json import encode_json, rfc3339

timeout_ms_default = 30_000
retries_default = 4
retries_max = 20
"""Also the default of methods that wait for hours: enough for about a minute without the service."""
timeout_ms_max = 2**31 - 1
idempotency_key_characters_max = 255


if sys.platform == "linux":

    def elapsed_ms() -> float:
        """By a clock that is never set back, and that goes on while the machine sleeps: leases do."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) * 1_000

elif sys.platform == "darwin":

    def elapsed_ms() -> float:
        """By a clock that is never set back, and that goes on while the machine sleeps: leases do."""
        return time.clock_gettime(time.CLOCK_MONOTONIC) * 1_000

else:

    def elapsed_ms() -> float:
        """By a clock that is never set back."""
        return time.monotonic() * 1_000


@dataclass(frozen=True)
class Settings:
    url: str
    key: str | None = field(repr=False)
    agent_id: str | None
    workflow_id: bytes | None
    """As a header carries it."""
    timeout_ms: float
    retries: int
    parse_json: Callable[[str], Any]


class Hidden(str):
    """Reports of errors, such as those of Sentry, show the local variables of each frame by their repr, and some cut it first."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<hidden>"

    def strip(self, chars: str | None = None, /) -> str:
        return Hidden(super().strip(chars))

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return HiddenBytes(super().encode(encoding, errors))

    def __getitem__(self, at: SupportsIndex | slice, /) -> str:
        return Hidden(super().__getitem__(at))


class HiddenBytes(bytes):
    """As httpx hands a header on: its frames show it where a proxy is not reached."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<hidden>"

    __str__ = __repr__

    @overload
    def __getitem__(self, at: SupportsIndex, /) -> int: ...

    @overload
    def __getitem__(self, at: slice, /) -> bytes: ...

    def __getitem__(self, at: SupportsIndex | slice, /) -> int | bytes:
        found = super().__getitem__(at)
        return HiddenBytes(found) if isinstance(found, bytes) else found


def hidden(value: str) -> str:
    """Anything but a text is left as it is, and refused where a text is needed."""
    # The str() of a member of an Enum is its name, and that of a class of the caller may be anything.
    return Hidden(str.__str__(value)) if isinstance(cast("object", value), str) else value


def base_of(url: str) -> str:
    """Raises ValueError unless it is an http or https URL, without a password."""
    refused = ValueError("url must be the http or https address of the service, and nothing more")
    try:
        parts = urlsplit(url)
        is_plain = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise refused from None
    if not is_plain or "@" in parts.netloc or "?" in url or "#" in url or re.search(r"\s", url):
        raise refused
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def header_text(name: str, value: str) -> str:
    """Without the line end of a file. Refuses what no header holds, in an error that does not show the key."""
    text = value.strip()
    if re.fullmatch(r"[\x20-\x7e\x80-\xff]+", text):
        return text
    raise ValueError(f"{name} must be a text on one line that is not empty")


def workflow_header(workflow_id: str) -> bytes:
    """The bytes of its UTF-8. Raises ValueError for what a header cannot hold."""
    # Control characters end a header, and white space at its ends is dropped on the way.
    odd = any(unicodedata.category(character) in ("Cc", "Cs") for character in workflow_id)
    if not 1 <= len(workflow_id) <= 256 or odd or workflow_id.strip(" ") != workflow_id:
        raise ValueError("workflow_id must be 1 to 256 characters on one line, without white space at its ends")
    return workflow_id.encode()


def visible(name: str, value: str, characters_max: int) -> str:
    """Visible ASCII: anything else would fail inside of httpx."""
    if re.fullmatch(r"[\x21-\x7e]+", value) and len(value) <= characters_max:
        return value
    raise ValueError(f"{name} must be 1 to {characters_max} characters of visible ASCII")


_unescaped = "!'()*-._~"


def path_of(path: str, params: Mapping[str, str]) -> str:
    def escaped(found: re.Match[str]) -> str:
        name = found[1]
        value = params[name]
        if not isinstance(cast("object", value), str) or value == "":
            raise ValueError(f"{name} must be a text that is not empty")
        # A dot segment would be resolved away (URL Standard, 4.4). %2e is none here: its percent sign is escaped.
        if value in (".", ".."):
            raise ValueError(f"{name} must not be {value}")
        return quote(value, safe=_unescaped)

    return re.sub(r"\{(\w+)\}", escaped, path)


def query_of(query: Mapping[str, object]) -> str:
    texts = [f"{name}={quote(_text_of(value), safe=_unescaped)}" for name, value in query.items() if value is not None]
    return "?" + "&".join(texts) if texts else ""


def _text_of(value: object) -> str:
    if isinstance(value, datetime):
        return rfc3339(value)
    return value if isinstance(value, str) else encode_json(value)
