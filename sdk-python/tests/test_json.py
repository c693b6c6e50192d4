"""JSON that keeps every number, and the texts that are sent."""

from __future__ import annotations

import copy
import pickle
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal

import pytest

from waystation import ExactFloat, RawJson
from waystation._json import encode_json, member_text, parse_json

exact = [
    "0", "-0", "1.10", "1e400", "-1E-400", "0.30000000000000004", "123456789012345678901234567890",
    "0.1", "1e5", "1E+5", "-0.0", "9" * 6_000, '"\\ud800"', "[]", "{}", "null", "true",
]  # fmt: skip


@pytest.mark.parametrize("text", exact)
def test_what_is_read_is_written_as_it_was(text: str) -> None:
    assert encode_json(parse_json(text)) == text
    assert encode_json(parse_json(f'{{"a":[{text}]}}')) == f'{{"a":[{text}]}}'


def test_an_integer_of_any_length_is_written() -> None:
    assert encode_json(10**6_000) == "1" + "0" * 6_000
    assert encode_json(-(10**6_000)) == "-1" + "0" * 6_000
    assert encode_json(True) == "true"


def test_an_exact_float_is_a_float() -> None:
    number = parse_json("1.10")
    assert isinstance(number, float) and isinstance(number, ExactFloat)
    assert (number, number + 1, number.text, number.decimal()) == (1.1, 2.1, "1.10", Decimal("1.10"))
    for same in (pickle.loads(pickle.dumps(number)), copy.deepcopy(number)):
        assert (same, same.text) == (1.1, "1.10")


def test_values_of_python() -> None:
    when = datetime(2026, 11, 23, 1, 2, 3, tzinfo=timezone(timedelta(hours=1)))
    assert encode_json({"at": when, "d": Decimal("1.0"), "raw": RawJson("1e400"), "t": (1, "\u00e4\n")}) == (
        '{"at":"2026-11-23T00:02:03.000Z","d":1.0,"raw":1e400,"t":[1,"\u00e4\\n"]}'
    )


@pytest.mark.parametrize("value", [{1, 2}, object(), b"x", {1: 2}, [print]])
def test_what_has_no_json_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        encode_json(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), datetime(2026, 1, 1)])
def test_numbers_and_times_without_json_are_refused(value: object) -> None:
    with pytest.raises(ValueError):
        encode_json(value)


class NoOffset(tzinfo):
    """Leaves the offset open: such a time is as good as one without a zone."""

    def utcoffset(self, when: datetime | None) -> None:
        return None


@pytest.mark.parametrize(
    "when",
    [
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
        datetime(2026, 1, 1, tzinfo=NoOffset()),
    ],
    ids=["after the year 9999", "before the year 1", "without an offset"],
)
def test_a_time_that_utc_does_not_have_is_refused(when: datetime) -> None:
    with pytest.raises(ValueError):
        encode_json({"at": when})


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append({"again": value})
    with pytest.raises(ValueError, match="contains itself"):
        encode_json(value)
    with pytest.raises(ValueError, match="too deeply"):
        RawJson("[" * 200_000 + "]" * 200_000)


@pytest.mark.parametrize("text", ["", "{", "NaN", "Infinity", "1 2", "'a'"])
def test_raw_json_is_json(text: str) -> None:
    with pytest.raises(ValueError):
        RawJson(text)


def test_the_text_of_a_member_is_exact() -> None:
    text = ' { "a" : 1.10 , "value" : {"b" : [1, "}" ] } , "c" : "x\\"y" } '
    assert member_text(text, "value") == '{"b" : [1, "}" ] }'
    assert member_text(text, "a") == "1.10"
    assert member_text(text, "c") == '"x\\"y"'
    assert member_text(text, "d") is None
    assert member_text('{"a":1,"a":2}', "a") == "2"
    assert member_text("{}", "a") is None
