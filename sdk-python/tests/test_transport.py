"""Tries, their rules and their errors, on both clients. Nothing listens: the answers are made up."""

from __future__ import annotations

import pickle
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
from driver import Called, Driver, least_answer

from waystation import (
    Aborted,
    CallbackVerificationError,
    Signal,
    WaystationError,
    WaystationNetworkError,
    WaystationTimeoutError,
    has_code,
)
from waystation._operations import operations
from waystation._retries import retries as rules

at = "http://service.example"


def refusal(status: int, code: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    return httpx.Response(status, json={"error": {"code": code, "message": "No.", **more}}, headers=headers)


def ok(name: str = "getValue") -> httpx.Response:
    return least_answer(name, id="x")


def send(driver: Driver, client: Any, name: str, **given: Any) -> Any:
    """Any operation, as its method would send it."""
    from waystation._async.transport import Input as AsyncInput
    from waystation._sync.transport import Input

    params = {part: "x" for part in ("id", "key", "namespace", "tenant_id", "agent_id", "approval_key_id", "type")}
    params |= {part: "x" for part in ("checkpoint_id", "message_id", "workflow_id", "field")}
    made = (AsyncInput if driver.kind.is_async else Input)(params=params, **given)
    return Called(driver, client._owner._transport).call(name, made, {})


changing = [name for name, operation in operations.items() if operation.method != "GET"]


@pytest.mark.parametrize("name", changing)
def test_a_lost_answer_is_followed_by_another_try_only_where_the_rules_say_so(driver: Driver, name: str) -> None:
    client = driver.lossy(at)
    rule = rules.get(name)
    creates = operations[name].creates
    driver.network.next = ["lose_request", ok(name)]
    if creates or (rule and rule.safe and rule.with_ is None):
        answer = send(driver, client, name, body={})
        assert answer is None if operations[name].has is None else answer["id"] == "x"
        first, second = driver.network.seen
        assert first.headers.get("idempotency-key") == second.headers.get("idempotency-key")
        assert ("idempotency-key" in first.headers) == creates
    else:
        with pytest.raises(WaystationNetworkError) as raised:
            send(driver, client, name, body={})
        assert raised.value.may_have_arrived
        assert len(driver.network.seen) == 1
    assert creates or rule, "an operation that changes something has a rule"


@pytest.mark.parametrize("name", [name for name, rule in rules.items() if rule.with_])
def test_with_its_member_a_call_is_sent_again(driver: Driver, name: str) -> None:
    client = driver.lossy(at)
    driver.network.next = ["lose_request", ok(name)]
    assert send(driver, client, name, body={str(rules[name].with_): "x"})["id"] == "x"


@pytest.mark.parametrize("name", [name for name, rule in rules.items() if rule.without])
def test_with_its_condition_a_call_is_not_sent_again(driver: Driver, name: str) -> None:
    client = driver.lossy(at)
    driver.network.next = ["lose_request", ok(name)]
    member = rules[name].without[0]
    given: dict[str, Any] = {"headers": {member: '"1"'}} if member.startswith("if-") else {"body": {member: "x"}}
    with pytest.raises(WaystationNetworkError):
        send(driver, client, name, **given)


def test_an_edit_to_null_is_not_sent_again(driver: Driver) -> None:
    client = driver.lossy(at)
    driver.network.next = ["lose_request", ok("approveCheckpoint")]
    with pytest.raises(WaystationNetworkError):
        send(driver, client, "approveCheckpoint", body={"effective_payload": None})


done_rules = [(name, done) for name, rule in rules.items() for done in rule.done]


@pytest.mark.parametrize(("name", "done"), done_rules)
def test_a_repeat_that_is_refused_because_of_the_first_counts_as_success(driver: Driver, name: str, done: Any) -> None:
    client = driver.lossy(at)
    details = {"status": done.status, "decision": done.decision}
    rule = rules[name]
    body = {str(rule.with_): "x"} if rule.with_ else None
    driver.network.next = ["lose_request", refusal(409, done.code, details=details)]
    if done.read:
        driver.network.next.append(httpx.Response(200, json={"id": "read"}))
    answer = send(driver, client, name, body=body)
    assert answer == ({"id": "read"} if done.read else done.answer)
    driver.network.next = [refusal(409, done.code, details=details)]
    with pytest.raises(WaystationError):
        send(driver, client, name, body=body)


def test_an_approval_key_that_may_not_read_gets_the_refusal(driver: Driver) -> None:
    client = driver.lossy(at)
    settled = refusal(409, "CHECKPOINT_ALREADY_RESOLVED", details={"status": "approved"})
    driver.network.next = ["lose_request", settled, refusal(403, "FORBIDDEN")]
    with pytest.raises(WaystationError, match="CHECKPOINT_ALREADY_RESOLVED"):
        client.checkpoints.approve("x")


@pytest.mark.parametrize(
    "date", ["Mon, 23 Nov 99999999999999999999 00:00:00 GMT", "Mon, 23 Nov 2026 00:00:00 +99999999999999999999"]
)
def test_a_retry_after_with_numbers_that_no_date_has_is_passed_over(driver: Driver, date: str) -> None:
    client = driver.lossy(at)
    driver.network.next = [refusal(429, "RATE_LIMITED", {"retry-after": date}), ok()]
    assert client.kv.get("n", "k") is not None
    assert driver.network.slept_ms == [125]


def test_the_waits_grow_and_keep_to_retry_after(driver: Driver) -> None:
    client = driver.lossy(at, retries=6)
    driver.network.next = ["refuse"] * 6 + [ok()]
    client.kv.get("a", "b")
    assert driver.network.slept_ms == [125, 250, 500, 1_000, 2_000, 4_000]
    driver.network.slept_ms.clear()
    driver.network.next = [refusal(429, "RATE_LIMITED", {"retry-after": "7"}), ok()]
    client.kv.get("a", "b")
    assert driver.network.slept_ms == [7_125]
    date = {"date": "Mon, 23 Nov 2026 00:00:00 GMT", "retry-after": "Mon, 23 Nov 2026 00:00:09 GMT"}
    driver.network.slept_ms.clear()
    driver.network.next = [refusal(503, "UNAVAILABLE", date), ok()]
    client.kv.get("a", "b")
    assert driver.network.slept_ms == [9_125]
    driver.network.next = [refusal(429, "RATE_LIMITED", {"retry-after": "61"})]
    with pytest.raises(WaystationError) as raised:
        client.kv.get("a", "b")
    assert raised.value.retry_after_seconds == 61


def test_what_certainly_had_no_effect_is_sent_again(driver: Driver) -> None:
    client = driver.lossy(at)
    for failure in ("refuse", refusal(429, "RATE_LIMITED"), refusal(503, "UNAVAILABLE")):
        driver.network.next = [failure, httpx.Response(200, json={"id": "x"})]
        assert client.dlq.claim("x") == {"id": "x"}
    of_gateways = [httpx.Response(status, text="gateway") for status in (504, 520, 524, 530)]
    for failure in (refusal(503, "OUTCOME_UNKNOWN"), refusal(502, "X"), refusal(504, "UNAVAILABLE"), *of_gateways):
        driver.network.next = [failure, httpx.Response(200, json={"id": "x"})]
        with pytest.raises(WaystationError):
            client.dlq.claim("x")
        driver.network.next.clear()
    for answer in of_gateways:
        driver.network.next = [answer, httpx.Response(200, json={"value": 1, "namespace": "a"})]
        assert client.kv.get("a", "b")["value"] == 1


def test_the_uncertain_error_wins(driver: Driver) -> None:
    client = driver.lossy(at, retries=2)
    driver.network.next = ["lose_request", "refuse", "refuse"]
    with pytest.raises(WaystationNetworkError) as raised:
        client.audit.append(action="x")
    assert raised.value.may_have_arrived
    driver.network.next = ["lose_request", "refuse", "refuse"]
    with pytest.raises(WaystationNetworkError) as raised:
        client.audit.get("x")
    assert not raised.value.may_have_arrived


def test_the_refusal_of_a_repeat_does_not_hide_that_the_first_try_may_have_had_its_effect(driver: Driver) -> None:
    client = driver.lossy(at)
    refusals = [(401, "UNAUTHORIZED"), (403, "TENANT_FROZEN"), (409, "INVALID_STATE"), (422, "IDEMPOTENCY_KEY_REUSED")]
    for status, code in refusals:
        driver.network.next = ["lose_request", refusal(status, code)]
        with pytest.raises(WaystationNetworkError) as raised:
            client.audit.append(action="x")
        assert raised.value.may_have_arrived
        assert has_code(raised.value.__cause__, code)
        driver.network.next = ["lose_request", refusal(status, code)]
        with pytest.raises(WaystationError):
            client.audit.get("x")
    driver.network.next = [refusal(503, "OUTCOME_UNKNOWN"), refusal(403, "TENANT_FROZEN")]
    with pytest.raises(WaystationError, match="OUTCOME_UNKNOWN") as unknown:
        client.kv.put("n", "k", 1)
    assert has_code(unknown.value.__cause__, "TENANT_FROZEN")


def test_a_quarantine_is_a_refusal(driver: Driver) -> None:
    client = driver.lossy(at)
    effect = {"type": "t", "key": "k", "payload": 1}
    driver.network.always = lambda request: refusal(503, "QUARANTINED")
    with pytest.raises(WaystationError, match="QUARANTINED"):
        client.effects.claim(**effect)
    with pytest.raises(WaystationError, match="QUARANTINED"):
        client.effects.once(driver.handler(lambda permit: 1), **effect)
    assert (len(driver.network.seen), driver.network.slept_ms) == (2, [])


def test_what_a_settled_call_led_to_may_not_be_readable(driver: Driver) -> None:
    client = driver.lossy(at)
    archived = {"error": {"code": "INVALID_STATE", "message": "m", "details": {"status": "archived"}}}
    driver.network.next = ["lose_request", httpx.Response(409, json=archived), *["refuse"] * 5]
    with pytest.raises(WaystationNetworkError) as raised:
        client.dlq.fail("dlq_1", lock_token="t")
    assert raised.value.may_have_arrived


def test_a_running_first_try_is_waited_for_under_its_key(driver: Driver) -> None:
    client = driver.lossy(at)
    driver.network.next = [refusal(409, "IDEMPOTENCY_IN_PROGRESS"), ok()]
    client.audit.append(action="x", idempotency_key="mine")
    assert [request.headers["idempotency-key"] for request in driver.network.seen] == ["mine", "mine"]


def test_no_answer_of_the_service(driver: Driver) -> None:
    client = driver.lossy(at)
    for answer in (httpx.Response(200, text="<html>"), httpx.Response(302, text=""), httpx.Response(200, json=[1])):
        driver.network.next = [answer]
        with pytest.raises(WaystationError) as raised:
            client.kv.get("a", "b")
        assert raised.value.code == "UNEXPECTED_ANSWER"
        assert raised.value.exit == "unexpected"


@pytest.mark.parametrize("name", set(operations) - {"openapi"})
def test_json_of_something_before_the_service_is_unexpected(driver: Driver, name: str) -> None:
    client = driver.lossy(at)
    answers = [httpx.Response(200, json=body) for body in ({}, {"success": True}, {"success": True, "data": {}})]
    answers.append(httpx.Response(304))
    for answer in answers if operations[name].empty else [*answers, httpx.Response(204)]:
        driver.network.next = [answer]
        with pytest.raises(WaystationError) as raised:
            send(driver, client, name)
        assert raised.value.code == "UNEXPECTED_ANSWER"


def test_errors_say_what_there_is_and_survive_pickle(driver: Driver) -> None:
    client = driver.lossy(at)
    issues = [{"path": "/key", "message": "is too long"}]
    driver.network.next = [refusal(400, "VALIDATION_FAILED", details={"issues": issues}, request_id="req_1")]
    with pytest.raises(WaystationError) as raised:
        client.kv.get("a", "b")
    for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):
        assert str(error) == "VALIDATION_FAILED: No. (/key is too long)"
        assert (error.status, error.request_id, error.details) == (400, "req_1", {"issues": issues})
        assert error.next and has_code(error, "VALIDATION_FAILED") and not has_code(error, "KEY_NOT_FOUND")
    others = (WaystationNetworkError(True, at), WaystationTimeoutError(5), CallbackVerificationError("malformed"))
    errors: tuple[Any, ...] = (raised.value, *others)
    for error in errors:
        # As add_note() of Python 3.11 leaves them.
        error.__notes__ = ["of the step before"]
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("retries", [-1, 21])
def test_retries_have_limits(driver: Driver, retries: int) -> None:
    with pytest.raises(ValueError, match="retries must be from 0 to 20"):
        driver.client(at, retries=retries)
    with pytest.raises(ValueError, match="retries must be from 0 to 20"):
        driver.lossy(at).kv.get("a", "b", retries=retries)


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://x/?a=1", "http://x/#a", "http://u:p@x", "http://u@x", ""])
def test_addresses_that_are_refused(driver: Driver, url: str) -> None:
    with pytest.raises(ValueError, match="url must be"):
        driver.client(url)


@pytest.mark.parametrize("key", ["", " ", "a\nb", "\u20ac"])
def test_a_key_that_no_header_holds_is_not_shown(driver: Driver, key: str) -> None:
    with pytest.raises(ValueError, match="^key must be a text on one line that is not empty$"):
        driver.client(at, key=key)


def test_the_key_is_shown_to_nobody_who_prints_the_client(driver: Driver) -> None:
    client = driver.lossy(at, key="svc_agt_secret")._owner
    driver.network.next = ["lose_request"]
    with pytest.raises(WaystationNetworkError) as raised:
        driver.lossy(at, key="svc_agt_secret", retries=0).dlq.claim("x")
    shown = [client, vars(client), vars(client._transport), raised.value, raised.value.__cause__]
    assert not [text for text in map(repr, shown) if "svc_agt_secret" in text]


def test_headers(driver: Driver) -> None:
    client = driver.lossy(at, key="svc_agt_1\n", agent_id="payer", workflow_id="n\u00e4cht")
    driver.network.next = [ok(), ok()]
    client.kv.get("a", "b", request_id="request-1", if_version=3)
    headers = driver.network.seen[0].headers
    assert headers["authorization"] == "Bearer svc_agt_1"
    assert (headers["x-agent-id"], headers["x-request-id"]) == ("payer", "request-1")
    assert headers["if-match"] == '"3"'
    raw = dict(driver.network.seen[0].headers.raw)
    assert raw[b"x-workflow-id"] == "n\u00e4cht".encode()
    client.in_workflow("other").kv.get("a", "b")
    assert driver.network.seen[1].headers["x-workflow-id"] == "other"
    for bad in ("", " a", "a\n", "x" * 257):
        with pytest.raises(ValueError, match="workflow_id"):
            client.in_workflow(bad)
    with pytest.raises(ValueError, match="idempotency_key must be 1 to 255"):
        client.audit.append(action="x", idempotency_key="x" * 256)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_a_path_does_not_keep_is_refused(driver: Driver, name: str) -> None:
    with pytest.raises(ValueError, match="key must"):
        driver.lossy(at).kv.get("state", name)


def test_a_parser_of_the_caller(driver: Driver) -> None:
    client = driver.lossy(at, parse_json=lambda text: {"text": text})
    driver.network.next = [httpx.Response(200, text='{"namespace": "a", "value": 1.10}')]
    assert client.kv.get("a", "b") == {"text": '{"namespace": "a", "value": 1.10}'}


class Slow(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(30)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def slow() -> Any:
    server = HTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"


def test_a_member_that_is_newer_than_the_package_is_in_the_answer(driver: Driver) -> None:
    client = driver.lossy(at)
    driver.network.next = [httpx.Response(200, json={"id": "x", "newer": {"a": [1]}})]
    assert client.audit.get("x") == {"id": "x", "newer": {"a": [1]}}


def test_each_try_ends_at_its_time(driver: Driver, slow: str) -> None:
    client = driver.client(slow)
    with pytest.raises(WaystationTimeoutError, match=r"No answer within 100 ms\."):
        client.kv.get("a", "b", timeout_ms=100, retries=1)


def test_a_signal_ends_a_call_in_progress(driver: Driver, slow: str) -> None:
    client = driver.client(slow)
    began = time.monotonic()
    with pytest.raises(Aborted, match="300 ms"):
        client.kv.get("a", "b", signal=Signal.timeout(300))
    assert time.monotonic() - began < 20


def test_nobody_listens(driver: Driver) -> None:
    client = driver.client("http://127.0.0.1:9", retries=0)
    with pytest.raises(WaystationNetworkError, match="No answer from http://127.0.0.1:9: ") as raised:
        client.kv.get("a", "b")
    assert not raised.value.may_have_arrived
    assert isinstance(raised.value.__cause__, httpx.ConnectError)
