"""JSON that keeps every number: Python integers have all their digits, and a number that a float does not hold keeps its text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, cast


class RawJson:
    """JSON text that is sent as it stands, wherever a value is taken: ``RawJson("1e400")``."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        """Raises ValueError when the text is not JSON."""
        try:
            parse_json(text)
        except RecursionError:
            raise ValueError("the text is nested too deeply") from None
        self.text = text

    def __repr__(self) -> str:
        return f"RawJson({self.text!r})"


class ExactFloat(float):
    """A number of an answer that a float does not write as it came, such as ``1.10`` or ``1e400``: sent again, it has its text."""

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> ExactFloat:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        return (self.text,)

    def decimal(self) -> Decimal:
        """The number with all its digits."""
        return Decimal(self.text)


def parse_json(text: str) -> Any:
    """As json.loads, without rounding: a number that a float or int does not hold as it stands is an ExactFloat."""
    return json.loads(text, parse_float=_float_of, parse_int=_int_of, parse_constant=_refuse)


def _float_of(text: str) -> float:
    number = float(text)
    return number if repr(number) == text else ExactFloat(text)


def _int_of(text: str) -> int | float:
    if text == "-0":
        return ExactFloat(text)
    try:
        return int(text)
    except ValueError:
        # Python refuses to read more than a few thousand digits.
        return ExactFloat(text)


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def encode_json(value: object) -> str:
    """The shortest JSON of a value. A datetime becomes RFC 3339; a Decimal, an ExactFloat and a RawJson keep their text.

    Raises TypeError for what has no JSON, and ValueError for a number that is not finite, for a datetime without a zone, and for
    a value that contains itself.
    """
    try:
        return _encoded(value)
    except RecursionError:
        raise ValueError("the value contains itself, or is nested too deeply") from None


def _encoded(value: object) -> str:
    if value is None or isinstance(value, (bool, str)):
        return _plain(value)
    if isinstance(value, RawJson):
        return value.text
    if isinstance(value, ExactFloat):
        return value.text
    if isinstance(value, int):
        return int.__repr__(value) if value.bit_length() < 10_000 else _long(value)
    if isinstance(value, float):
        return json.dumps(value, allow_nan=False)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime):
        return _plain(rfc3339(value))
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value).items()
        return "{" + ",".join(f"{_name(name)}:{_encoded(member)}" for name, member in members) + "}"
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[object]", value)
        return "[" + ",".join(_encoded(item) for item in items) + "]"
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


def _plain(value: str | bool | None) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Half of a character has no bytes: it is sent as an escape.
    return text if _has_bytes(text) else json.dumps(value)


def _has_bytes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError("the name of a member must be a str")
    return _plain(name)


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueError(f"{value} is not a JSON number")
    return str(value)


def _long(value: int) -> str:
    """An integer with more digits than Python likes to print at once."""
    sign, left, parts = ("-" if value < 0 else ""), abs(value), list[str]()
    base = 10**1_000
    while left >= base:
        left, part = divmod(left, base)
        parts.append(f"{part:01000d}")
    return sign + str(left) + "".join(reversed(parts))


def rfc3339(value: datetime) -> str:
    """A time as the service takes it. Raises ValueError for one without a zone, and for one that UTC has no year for."""
    if value.utcoffset() is None:
        raise ValueError("a datetime must have a time zone")
    try:
        in_utc = value.astimezone(timezone.utc)
    except OverflowError:
        raise ValueError(f"{value} is outside of the years 1 to 9999 in UTC") from None
    return in_utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_decoder = json.JSONDecoder()
_space = " \t\n\r"


def member_text(text: str, name: str) -> str | None:
    """The exact text of a member of a JSON object, of the last one of that name; None when it has none."""
    found: str | None = None
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        member, end = _decoder.raw_decode(text, at)
        start = _skip(text, _skip(text, end) + 1)
        end = _end_of_value(text, start)
        if member == name:
            found = text[start:end]
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    while text[at] in _space:
        at += 1
    return at


_exact_decoder = json.JSONDecoder(parse_int=str, parse_float=str)


def _end_of_value(text: str, start: int) -> int:
    _, end = _exact_decoder.raw_decode(text, start)
    return end
