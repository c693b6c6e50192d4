"""verify_callback beside the official package of Standard Webhooks: both judge each callback alike."""

from __future__ import annotations

import base64
import json
import time
from datetime import datetime, timezone
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from waystation import CallbackVerificationError, verify_callback

secret = "whsec_" + base64.b64encode(bytes(range(32))).decode()
other_secret = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()
body = '{"checkpoint_id":"chk_1","decision":"approved","amount":1.10}'


def signed(at_seconds: float | None = None, text: str = body, with_secret: str = secret) -> dict[str, str]:
    at = datetime.fromtimestamp(time.time() if at_seconds is None else at_seconds, timezone.utc)
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(with_secret).sign("msg_1", at, text),
        "x-waystation-event": "checkpoint.approved",
        "x-waystation-attempt": "2",
    }


def test_a_callback_of_the_service_is_verified() -> None:
    found = verify_callback(signed(), body.encode(), secret)
    assert (found.id, found.event, found.attempt, found.text) == ("msg_1", "checkpoint.approved", 2, body)
    assert found.body == json.loads(body)
    assert abs(found.timestamp_seconds - time.time()) < 60


def cases() -> dict[str, tuple[dict[str, str], str]]:
    """Made when they are judged: the tests may have begun long ago."""
    now = time.time()
    return {
        "good": (signed(), body),
        "another body": (signed(), body + " "),
        "another secret": (signed(with_secret=other_secret), body),
        "too old": (signed(now - 400), body),
        "too new": (signed(now + 400), body),
        "nearly too old": (signed(now - 240), body),
        "no signature": ({**signed(), "webhook-signature": ""}, body),
        "another version": ({**signed(), "webhook-signature": signed()["webhook-signature"].replace("v1,", "v2,")}, body),
        "two signatures": ({**signed(), "webhook-signature": "v1,AAAA " + signed()["webhook-signature"]}, body),
        "two versions": ({**signed(), "webhook-signature": "v1a,AAAA " + signed()["webhook-signature"]}, body),
        "half a signature": ({**signed(), "webhook-signature": signed()["webhook-signature"][:23]}, body),
        "no id": ({**signed(), "webhook-id": ""}, body),
        "another id": ({**signed(), "webhook-id": "msg_2"}, body),
        "another time": ({**signed(), "webhook-timestamp": str(int(now) - 7)}, body),
        "a time that is none": ({**signed(), "webhook-timestamp": "now"}, body),
    }


@pytest.mark.parametrize("name", cases())
def test_each_callback_is_judged_as_by_the_official_package(name: str) -> None:
    headers, text = cases()[name]
    try:
        Webhook(secret).verify(text, headers)
        theirs = True
    except WebhookVerificationError:
        theirs = False
    try:
        verify_callback(headers, text, secret)
        ours = True
    except CallbackVerificationError:
        ours = False
    assert ours == theirs == (name in ("good", "nearly too old", "two signatures", "two versions"))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("too old", "too_old"), ("too new", "too_new"), ("no id", "malformed"), ("a time that is none", "malformed"),
        ("another body", "no_match"), ("no signature", "malformed"),
    ],
)  # fmt: skip
def test_the_reason_is_said(name: str, reason: str) -> None:
    headers, text = cases()[name]
    with pytest.raises(CallbackVerificationError) as raised:
        verify_callback(headers, text, secret)
    assert raised.value.reason == reason


def test_both_secrets_while_one_rotates() -> None:
    assert verify_callback(signed(with_secret=other_secret), body, [secret, other_secret]).id == "msg_1"


class CaseInsensitive(dict[str, str]):
    """As frameworks give headers."""


@pytest.mark.parametrize(
    "headers",
    [
        {name.title(): value for name, value in signed().items()},
        {name: [value] for name, value in signed().items()},
        list(signed().items()),
        [(name.encode(), value.encode()) for name, value in signed().items()],
        CaseInsensitive(signed()),
        {**signed(), "content-length": 61, "x-forwarded-for": None},
    ],
)
def test_headers_of_any_framework(headers: Any) -> None:
    assert verify_callback(headers, body.encode(), secret).id == "msg_1"


def test_a_large_body_is_refused_and_limits_of_time_are_kept() -> None:
    now = time.time()
    headers = signed(now - 100)
    with pytest.raises(CallbackVerificationError, match="too_large"):
        verify_callback(headers, body, secret, body_bytes_max=10)
    with pytest.raises(CallbackVerificationError, match="too_old"):
        verify_callback(headers, body, secret, tolerance_seconds=50)
    with pytest.raises(CallbackVerificationError, match="too_old"):
        verify_callback(headers, body, secret, tolerance_seconds=float("nan"))
    assert verify_callback(headers, body, secret, tolerance_seconds=0, now_ms=(int(now) - 100) * 1_000 + 999)


def test_mistakes_of_set_up_give_no_verdict() -> None:
    with pytest.raises(ValueError, match="whsec_"):
        verify_callback(signed(), body, "whsec_")
    with pytest.raises(ValueError, match="whsec_"):
        verify_callback(signed(), body, "not base64!")
    parsed: Any = {"parsed": True}
    with pytest.raises(TypeError, match="not parsed"):
        verify_callback(signed(), parsed, secret)
    # As a store of secrets may hand it out.
    as_bytes: Any = secret.encode()
    for given in (as_bytes, [as_bytes]):
        with pytest.raises(TypeError, match="signing secret must be a str"):
            verify_callback(signed(), body, given)


def test_the_published_example() -> None:
    """Of the specification of Standard Webhooks."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    found = verify_callback(
        headers, '{"test": 2432232314}', "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", now_ms=1614265330_000
    )
    assert (found.body, found.event, found.attempt) == ({"test": 2432232314}, None, None)
