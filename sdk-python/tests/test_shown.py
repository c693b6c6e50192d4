"""What reports of errors show: Sentry and others send the local variables of each frame."""

from __future__ import annotations

import enum
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
from driver import Driver

from waystation import (
    AsyncWaystation,
    CallbackVerificationError,
    Signal,
    Waystation,
    WaystationError,
    WaystationNetworkError,
    WaystationTimeoutError,
    verify_callback,
)
from waystation._settings import hidden

key = "svc_agt_not_to_be_shown"


secret = "whsec_bm90IHRvIGJlIHNob3du"


def shown(call: Callable[[], object], kind: type[BaseException]) -> str:
    with pytest.raises(kind) as raised:
        call()
    return "".join(traceback.TracebackException.from_exception(raised.value, capture_locals=True).format())


def shown_below(raised: pytest.ExceptionInfo[Any]) -> str:
    """Without the first frame, which is that of the test and has the secret itself."""
    reported = traceback.TracebackException(raised.type, raised.value, raised.tb.tb_next, capture_locals=True)
    return "".join(reported.format())


class Ending(BaseHTTPRequestHandler):
    """Takes a request and answers nothing."""

    def do_GET(self) -> None:
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def ending() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Ending)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.mark.parametrize("with_signal", [False, True])
def test_no_frame_of_a_failed_call_shows_the_key(driver: Driver, ending: str, with_signal: bool) -> None:
    signal = Signal() if with_signal else None
    made_up = driver.lossy("http://service.example", key=key, retries=0)
    refused = httpx.Response(404, json={"error": {"code": "KEY_NOT_FOUND", "message": "No."}})
    driver.network.next = [refused, "refuse", httpx.ReadTimeout("x")]
    texts = [
        shown(lambda: made_up.kv.get("state", "seen", signal=signal), kind)
        for kind in (WaystationError, WaystationNetworkError, WaystationTimeoutError)
    ]
    real = driver.client(ending, key=key, retries=0)
    texts.append(shown(lambda: real.kv.get("state", "seen", signal=signal), WaystationNetworkError))
    for text in texts:
        # The variables are there, and so is what the request was for.
        assert "/v1/kv/state/seen" in text
        assert key not in text


@pytest.mark.parametrize(
    "given",
    [
        {"url": "ftp://service.example"},
        {"url": "http://service.example", "key": f"{key}\n{key}"},
        {"url": "http://service.example", "retries": -1},
        {"url": "http://service.example", "workflow_id": ""},
    ],
    ids=["url", "key", "retries", "workflow_id"],
)
def test_no_frame_of_a_client_that_cannot_be_made_shows_the_key(driver: Driver, given: dict[str, Any]) -> None:
    kind: Any = AsyncWaystation if driver.kind.is_async else Waystation

    with pytest.raises(ValueError) as raised:
        kind(**{"key": key, **given})
    text = shown_below(raised)
    assert "key = <hidden>" in text
    assert key not in text


def test_no_frame_of_a_call_that_cannot_be_sent_shows_the_key(driver: Driver) -> None:
    client = driver.lossy("http://service.example", key=key, agent_id="billing")
    text = shown(lambda: client.kv.get("state", "seen", request_id="not visible"), ValueError)
    assert "'authorization': <hidden>" in text
    # Nobody is kept from the id of an agent.
    assert "'x-agent-id': 'billing'" in text
    assert key not in text


@pytest.mark.parametrize("wrong", [5, b"svc_agt_x"])
def test_a_key_that_is_not_a_text_is_refused(driver: Driver, wrong: Any) -> None:
    kind: Any = AsyncWaystation if driver.kind.is_async else Waystation
    with pytest.raises((TypeError, AttributeError)):
        kind("http://service.example", key=wrong)


def test_no_frame_of_httpx_shows_the_key_when_a_proxy_is_not_reached(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    client = driver.client("http://service.example", key=key, retries=0)
    text = shown(lambda: client.kv.get("state", "seen"), WaystationNetworkError)
    assert "(b'authorization', <hidden>)" in text
    assert key not in text


@pytest.mark.parametrize("show", [repr, lambda value: repr(value[:40])], ids=["whole", "cut"])
def test_what_is_hidden_shows_nothing_of_itself(show: Callable[[Any], str]) -> None:
    # Rich and structlog cut a text that is longer than they want before they show it, and Elastic takes the str() of bytes.
    value = hidden(f"Bearer {key}")
    assert (show(value), show(value.encode()), str(value.encode())) == ("<hidden>", "<hidden>", "<hidden>")
    assert (value[7:], value.encode()[7:], value.encode()[0]) == (key, key.encode(), ord("B"))


class Keys(str, enum.Enum):
    agent = key


class Masked(str):
    def __str__(self) -> str:
        return "***"


@pytest.mark.parametrize("given", [key, f" {key}\n", Keys.agent, Masked(key)])
def test_a_hidden_key_is_sent_as_it_is(driver: Driver, given: str) -> None:
    client = driver.lossy("http://service.example", key=given, agent_id="billing")
    driver.network.next = [httpx.Response(200, json={"status": "alive"})]
    client.health.live()
    headers = driver.network.seen[0].headers
    assert [headers["authorization"], headers["x-agent-id"]] == [f"Bearer {key}", "billing"]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    ("given", "signature", "kind"),
    [
        (secret, "", CallbackVerificationError),
        (secret, "v1,YQ==", CallbackVerificationError),
        (f"{secret}!", "v1,YQ==", ValueError),
    ],
    ids=["malformed", "no_match", "set-up"],
)
def test_no_frame_of_a_callback_that_is_refused_shows_the_secret(
    given: str, signature: str, kind: type[Exception], several: bool
) -> None:
    headers = {"webhook-id": "1", "webhook-timestamp": str(int(time.time())), "webhook-signature": signature}
    with pytest.raises(kind) as raised:
        verify_callback(headers, b"{}", [given] if several else given)
    text = shown_below(raised)
    assert "<hidden>" in text
    assert secret.removeprefix("whsec_") not in text
