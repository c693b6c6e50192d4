"""Waits, follows and leases by a clock that the test moves, with answers that are made up."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from driver import Driver

from waystation import WaystationNetworkError, WaystationTimeoutError, has_code

at = "http://service.example"
lease_ms = 60_000


def refusal(status: int, code: str, **details: Any) -> httpx.Response:
    return httpx.Response(status, json={"error": {"code": code, "message": "No.", "details": details}})


class FakeEffects:
    """Gives a lease to each claim, after so many ms."""

    def __init__(self, driver: Driver, late_ms: list[float], extend_ms: list[float] | None = None) -> None:
        self.calls: list[str] = []
        self.tokens: list[str] = []
        self._network = driver.network
        self._late_ms = late_ms
        self._extend_ms = extend_ms or []
        driver.network.always = self._answer
        driver.network.endless_ms = lease_ms / 3

    def _answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        verb = request.url.path.rpartition("/")[2]
        self.calls.append(verb)
        effect = {"id": "eff_1", "type": "t", "key": "k", "status": "running", "fence": 1, "lease_seconds": 60}
        effect |= {"payload": 1, "payload_hash": "h", "effective_hash": None, "lease_token": body["lease_token"]}
        if verb == "effects":
            self.tokens.append(body["lease_token"])
            self._network.now_ms += self._late_ms.pop(0) if self._late_ms else 0
        if verb == "extend":
            self._network.now_ms += self._extend_ms.pop(0) if self._extend_ms else 0
        return httpx.Response(200, json={**effect, "result": body.get("result")})


def once(driver: Driver, **given: Any) -> Any:
    client = driver.lossy(at)
    return client.effects.once(driver.handler(lambda permit: "done"), type="t", key="k", payload=1, **given)


class TestALease:
    def test_that_comes_in_time_is_used(self, driver: Driver) -> None:
        fake = FakeEffects(driver, [lease_ms / 4])
        driver.network.endless_ms = lease_ms / 3 - lease_ms / 4
        assert once(driver) == "done"
        assert fake.calls == ["effects", "succeed"]

    def test_whose_answer_came_late_is_extended_before_the_work_begins(self, driver: Driver) -> None:
        fake = FakeEffects(driver, [lease_ms / 2])
        assert once(driver) == "done"
        assert fake.calls == ["effects", "extend", "succeed"]

    def test_whose_extension_came_late_is_extended_again(self, driver: Driver) -> None:
        fake = FakeEffects(driver, [lease_ms / 2], [lease_ms / 2])
        assert once(driver) == "done"
        assert fake.calls == ["effects", "extend", "extend", "succeed"]

    def test_that_is_over_by_then_is_released_and_asked_for_again_with_another_token(self, driver: Driver) -> None:
        fake = FakeEffects(driver, [lease_ms])
        assert once(driver) == "done"
        assert fake.calls == ["effects", "fail", "effects", "succeed"]
        assert len(set(fake.tokens)) == 2

    def test_that_comes_late_six_times_is_too_short(self, driver: Driver) -> None:
        fake = FakeEffects(driver, [lease_ms] * 10)
        with pytest.raises(WaystationTimeoutError, match="Every lease of 60000 ms came too late"):
            once(driver)
        assert fake.calls == ["effects", "fail"] * 6
        assert driver.network.slept_ms == [500, 1_000, 2_000, 4_000, 8_000]


@pytest.mark.parametrize("verb", ["effects", "start"])
def test_a_lease_whose_answer_was_lost_is_released_although_a_freeze_refuses_its_repeat(
    driver: Driver, verb: str
) -> None:
    calls: list[str] = []
    effect = {"id": "eff_1", "type": "t", "key": "k", "status": "approved", "lease_token": None}

    def answer(request: httpx.Request) -> httpx.Response:
        called = "list" if request.method == "GET" else request.url.path.rpartition("/")[2]
        calls.append(called)
        if called == "list":
            return httpx.Response(200, json={"items": [effect], "next_cursor": None})
        if called == verb and calls.count(verb) == 1:
            raise httpx.ReadError("the connection was closed")
        return refusal(403, "TENANT_FROZEN") if called == verb else httpx.Response(200, json=effect)

    driver.network.always = answer
    with pytest.raises(WaystationNetworkError) as raised:
        once(driver)
    assert raised.value.may_have_arrived and has_code(raised.value.__cause__, "TENANT_FROZEN")
    expected = {
        "effects": ["effects", "effects", "effects", "list", "fail"],
        "start": ["effects", "start", "start", "start", "fail"],
    }
    assert calls == expected[verb]


class FakeItem:
    """One dead letter, whose claim is answered after so many ms."""

    def __init__(self, driver: Driver, late_ms: float, extended: httpx.Response | None = None) -> None:
        self._driver = driver
        self.calls: list[str] = []
        self.errors: list[Exception] = []
        self.handled: list[list[str]] = []
        self._network = driver.network
        self._late_ms = late_ms
        self._extended = extended or httpx.Response(200, json={"id": "dlq_1"})
        driver.network.always = self._answer
        driver.network.endless_ms = lease_ms / 2
        self._work = driver.lossy(at, retries=0).dlq.work
        self._handler = driver.handler(lambda item, context: self.handled.append([*self.calls]))

    def handle(self, work: Callable[[Any], bool]) -> None:
        self.kept: list[bool] = []
        self._handler = self._driver.handler(lambda item, context: self.kept.append(work(context)))

    def work(self) -> dict[str, int]:
        ended = self._work(
            self._handler, lock_seconds=60, stop_when_empty=True, on_error=lambda error, _: self.errors.append(error)
        )
        return {name: count for name, count in vars(ended).items() if count > 0}

    def _answer(self, request: httpx.Request) -> httpx.Response:
        verb = request.url.path.rpartition("/")[2]
        self.calls.append(verb)
        if verb == "extend":
            return self._extended
        if verb == "claim" and self.calls.count("claim") > 1:
            return httpx.Response(204)
        if verb == "claim":
            self._network.now_ms += self._late_ms
        return httpx.Response(200, json={"id": "dlq_1", "claims": 1, "lock_token": "t", "lock_seconds": 60})


class TestAnItemWhoseClaim:
    def test_is_answered_in_time_keeps_its_lock(self, driver: Driver) -> None:
        fake = FakeItem(driver, lease_ms / 4)
        driver.network.endless_ms = lease_ms / 4
        assert fake.work() == {"resolved": 1}
        assert fake.handled == [["claim"]]

    def test_is_answered_late_has_its_lock_extended_before_the_handler_begins(self, driver: Driver) -> None:
        fake = FakeItem(driver, lease_ms / 2)
        assert fake.work() == {"resolved": 1}
        assert fake.handled == [["claim", "extend"]]

    def test_is_answered_after_its_lock_was_over_is_lost_and_not_handled(self, driver: Driver) -> None:
        fake = FakeItem(driver, lease_ms)
        assert fake.work() == {"lost": 1}
        assert (fake.handled, fake.calls) == ([], ["claim", "claim"])
        assert [type(error) for error in fake.errors] == [WaystationTimeoutError]

    @pytest.mark.parametrize("page", [(404, "<h1>No such backend</h1>"), (200, '{"ok": true}')])
    def test_is_extended_again_when_something_before_the_service_answers(
        self, driver: Driver, page: tuple[int, str]
    ) -> None:
        fake = FakeItem(driver, lease_ms / 4)
        answer, ended = driver.network.always, threading.Event()
        assert answer is not None
        pages = [httpx.Response(page[0], text=page[1])]

        def behind(request: httpx.Request) -> httpx.Response | None:
            answered = answer(request)
            if not request.url.path.endswith("/extend"):
                return answered
            if pages:
                return pages.pop()
            ended.set()
            return answered

        driver.network.always = behind
        fake.handle(lambda context: ended.wait(5) and not context.signal.aborted)
        assert (fake.work(), fake.kept) == ({"resolved": 1}, [True])
        assert fake.calls == ["claim", "extend", "extend", "resolve", "claim"]

    @pytest.mark.parametrize("page", [(404, "<h1>No such backend</h1>"), (302, ""), (200, '{"ok": true}')])
    def test_is_answered_by_something_before_the_service_is_claimed_again(
        self, driver: Driver, page: tuple[int, str]
    ) -> None:
        fake = FakeItem(driver, lease_ms / 4)
        driver.network.next = [httpx.Response(page[0], text=page[1]) for _ in range(2)]
        assert (fake.work(), len(fake.handled)) == ({"resolved": 1}, 1)
        assert [has_code(error, "UNEXPECTED_ANSWER") for error in fake.errors] == [True, True]
        assert driver.network.slept_ms[:2] == [500, 1_000]

    def test_is_answered_late_is_lost_when_the_extension_is_refused(self, driver: Driver) -> None:
        fake = FakeItem(driver, lease_ms / 2, refusal(409, "LOCK_NOT_HELD"))
        assert fake.work() == {"lost": 1}
        assert (fake.handled, fake.calls) == ([], ["claim", "extend", "claim"])
        assert [getattr(error, "code", None) for error in fake.errors] == ["LOCK_NOT_HELD"]


@pytest.mark.parametrize("code", ["TENANT_FROZEN", "AGENT_PAUSED"])
def test_work_goes_on_after_a_freeze_and_a_pause(driver: Driver, code: str) -> None:
    driver.network.next = [refusal(403, code), httpx.Response(204)]
    driver.network.endless_ms = lease_ms / 2
    errors: list[Exception] = []
    work = driver.lossy(at, retries=0).dlq.work
    handler = driver.handler(lambda item, context: None)
    work(handler, stop_when_empty=True, on_error=lambda error, _: errors.append(error))
    assert [getattr(error, "code", None) for error in errors] == [code]
    assert len(driver.network.seen) == 2


class TestAnInboxThatIsFollowed:
    def answers(
        self, driver: Driver, messages: list[list[str]], listed: list[bool], expires_at: str, held: bool = False
    ) -> list[str]:
        asked: list[str] = []

        def answer(request: httpx.Request) -> httpx.Response:
            path = request.url.path
            query = request.url.params
            asked.append(path.rpartition("/")[2] + (f"?wait={query['wait']}" if "wait" in query else ""))
            if path.endswith("/messages"):
                page = messages.pop(0) if messages else []
                if held and not page:
                    driver.network.now_ms += 1_000 * int(query.get("wait", 0))
                data: Any = {"items": [{"id": id} for id in page], "nextAfter": page[-1] if page else None}
            elif path.endswith("/ibx"):
                data = {"inbox": {"id": "ibx", "expiresAt": expires_at}, "messages": []}
            else:
                data = {"items": [{"id": "ibx"}] if listed.pop(0) else [], "total": 1}
            return httpx.Response(200, json={"success": True, "data": data})

        driver.network.always = answer
        return asked

    def test_ends_when_the_service_lists_it_no_more_after_one_more_read(self, driver: Driver) -> None:
        asked = self.answers(driver, [["a", "b"], [], ["c"], []], [False], "2020-01-01T00:00:00.000Z", held=True)
        client = driver.lossy(at)
        found = [message["id"] for message in client.inboxes.messages("ibx", follow=True)]
        assert found == ["a", "b", "c"]
        assert asked == ["messages?wait=50", "messages?wait=50", "ibx", "webhook", "messages", "messages"]

    def test_goes_on_although_our_clock_says_that_it_has_expired(self, driver: Driver) -> None:
        self.answers(driver, [[], ["a"], []], [True, False], "2020-01-01T00:00:00.000Z")
        client = driver.lossy(at)
        assert [message["id"] for message in client.inboxes.messages("ibx", follow=True)] == ["a"]
        assert driver.network.slept_ms[0] == 1_500

    def test_ends_although_our_clock_says_that_it_has_not_expired(self, driver: Driver) -> None:
        asked = self.answers(driver, [["a"], [], []], [True, False], "2099-01-01T00:00:00.000Z")
        client = driver.lossy(at)
        assert [message["id"] for message in client.inboxes.messages("ibx", follow=True)] == ["a"]
        assert asked == ["messages?wait=50", *["messages?wait=50", "webhook"] * 2, "messages"]

    def test_goes_on_when_another_is_gone_while_it_looks_whether_this_one_is_listed(self, driver: Driver) -> None:
        self.answers(driver, [[], ["a"], []], [False], "2020-01-01T00:00:00.000Z")
        messages = driver.network.always
        others = [{"id": f"other-{n}"} for n in range(100)]
        # The last of 101 is the hundredth once another is gone; in the end it is gone as well.
        pages = [(others, 101), ([], 100), ([*others[1:], {"id": "ibx"}], 100), (others[1:], 99)]
        offsets: list[str] = []

        def answer(request: httpx.Request) -> httpx.Response:
            if not request.url.path.endswith("/api/webhook"):
                assert messages is not None
                return messages(request)
            offsets.append(request.url.params["offset"])
            items, total = pages.pop(0)
            return httpx.Response(200, json={"success": True, "data": {"items": items, "total": total}})

        driver.network.always = answer
        client = driver.lossy(at)
        assert [message["id"] for message in client.inboxes.messages("ibx", follow=True)] == ["a"]
        assert offsets == ["0", "100", "0", "0"]

    def test_without_follow_ends_with_what_is_there(self, driver: Driver) -> None:
        asked = self.answers(driver, [["a"], []], [], "2099-01-01T00:00:00.000Z")
        client = driver.lossy(at)
        assert [message["id"] for message in client.inboxes.messages("ibx")] == ["a"]
        assert asked == ["messages", "messages"]


class TestAWait:
    def test_that_the_service_does_not_hold_asks_again_about_once_a_second(self, driver: Driver) -> None:
        answers = [{"event": None, "after": 7}] * 4 + [{"event": {"seq": 9}, "after": 9}]
        driver.network.always = lambda request: httpx.Response(200, json=answers.pop(0))
        wait = driver.lossy(at).wait(any=[{"subject": "x"}])
        assert wait.begun() == 7
        assert wait.first() == {"seq": 9}
        bodies = [json.loads(request.content) for request in driver.network.seen]
        assert [body.get("after") for body in bodies] == [None, 7, 7, 7, 7]
        assert [body["wait_seconds"] for body in bodies] == [0, 50, 50, 50, 50]
        assert driver.network.slept_ms == [1_500] * 3

    def test_outlives_a_service_that_is_away_for_a_minute(self, driver: Driver) -> None:
        driver.network.next = ["refuse"] * 20
        driver.network.always = lambda request: httpx.Response(200, json={"id": "x", "status": "approved"})
        assert driver.lossy(at).checkpoints.wait_for("x")["status"] == "approved"
        assert len(driver.network.slept_ms) == 20
        driver.network.next = ["refuse"] * 20
        with pytest.raises(Exception, match="No answer"):
            driver.lossy(at).checkpoints.wait_for("x", retries=2)

    @pytest.mark.parametrize("seconds", [-1, 56])
    def test_is_held_for_55_seconds_at_most(self, driver: Driver, seconds: int) -> None:
        client = driver.lossy(at)
        with pytest.raises(ValueError, match="wait_seconds must be from 0 to 55"):
            client.checkpoints.wait_for("x", wait_seconds=seconds)
        with pytest.raises(ValueError, match="wait_seconds must be from 0 to 55"):
            client.checkpoints.ask(title="Refund?", wait_seconds=seconds)
        assert driver.network.seen == []

    def test_without_a_number_for_its_end_is_refused(self, driver: Driver) -> None:
        client = driver.lossy(at)
        blocked = {"allowed": False, "count": 2, "remaining": 0, "resetAt": "", "retryAfter": 1}
        driver.network.next = [httpx.Response(429, json={"success": False, "data": blocked})] * 3
        with pytest.raises(ValueError, match="max_wait_ms must be a number"):
            client.rate_limit.wait("k", limit=1, window_seconds=1, max_wait_ms=float("nan"))
        assert driver.network.seen == []

    def test_for_a_rate_limit_ends_with_the_window_where_there_is_just_as_much_time(self, driver: Driver) -> None:
        client = driver.lossy(at)
        blocked = {"allowed": False, "count": 2, "remaining": 0, "resetAt": "", "retryAfter": 60}
        driver.network.next = [httpx.Response(429, json={"success": False, "data": blocked})]
        allowed = {"allowed": True, "count": 1, "remaining": 0, "resetAt": ""}
        driver.network.always = lambda request: httpx.Response(200, json={"success": True, "data": allowed})
        assert client.rate_limit.wait("k", limit=1, window_seconds=60, max_wait_ms=60_000)["allowed"]
        assert driver.network.slept_ms == [60_000]

    def test_gives_a_request_that_is_held_that_much_more_time(self, driver: Driver) -> None:
        waited: list[float] = []
        client = driver.lossy(at, timeout_ms=1_000)
        platform = client._owner._transport.platform
        send = platform.send

        def watched(request: Any, timeout_ms: float, signal: Any) -> Any:
            waited.append(timeout_ms)
            return send(request, timeout_ms, signal)

        platform.send = watched
        driver.network.always = lambda request: httpx.Response(200, json={"id": "x", "status": "approved"})
        client.checkpoints.wait_for("x", wait_seconds=20)
        client.checkpoints.get("x")
        assert waited == [21_000, 1_000]
