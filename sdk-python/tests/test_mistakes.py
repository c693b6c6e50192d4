"""Functions of the caller that are wrong, and results that have no JSON."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import httpx
import pytest
from driver import Driver

from waystation import (
    AsyncWaystation,
    EffectError,
    EffectFailedError,
    EffectInFlightError,
    EffectRejectedError,
    EffectUnknownError,
    EffectUnrecordedError,
    NotDone,
    Signal,
    Waystation,
    WaystationError,
)

at = "http://service.example"
effect: dict[str, Any] = {
    "id": "eff_1", "type": "refund", "key": "1", "status": "running", "fence": 1, "lease_seconds": 60,
    "payload": 1, "payload_hash": "h", "effective_hash": None, "effective_payload": None, "result": None,
    "lease_token": "t", "checkpoint": None,
}  # fmt: skip


def answering(driver: Driver, calls: list[str]) -> None:
    """A service that has one dead letter and gives every lease."""
    items = [{"id": "dlq_1", "payload": 1, "claims": 1, "lock_token": "t", "lock_seconds": 60}]

    def answer(request: httpx.Request) -> httpx.Response:
        verb = request.url.path.rpartition("/")[2]
        calls.append(verb)
        if verb == "claim" and "/dlq/" in request.url.path:
            return httpx.Response(200, json={"item": None}) if not items else httpx.Response(200, json=items.pop())
        return httpx.Response(200, json=effect)

    driver.network.always = answer


class TestTheSyncClient:
    """A function that has to be awaited never runs there, and nothing may look as if it had."""

    def sync(self) -> tuple[Any, list[str]]:
        calls: list[str] = []

        def answer(request: httpx.Request) -> httpx.Response:
            calls.append(request.url.path)
            if "dlq" in request.url.path:
                item = {"id": "dlq_1", "payload": 1, "claims": 1, "lock_token": "t", "lock_seconds": 60}
                return httpx.Response(200, json=item)
            return httpx.Response(200, json=effect)

        return Waystation(at, http_client=httpx.Client(transport=httpx.MockTransport(answer))), calls

    def test_refuses_an_async_work_before_it_claims_the_effect(self) -> None:
        client, calls = self.sync()

        async def work(permit: Any) -> str:
            return "never"

        with pytest.raises(TypeError, match="AsyncWaystation"):
            client.effects.once(work, type="refund", key="1", payload=1)
        assert calls == []

    def test_records_no_success_for_a_work_that_returns_what_has_to_be_awaited(self) -> None:
        client, calls = self.sync()

        async def work() -> str:
            return "never"

        with pytest.raises(TypeError, match="AsyncWaystation"):
            client.effects.once(lambda permit: work(), type="refund", key="1", payload=1)
        assert calls == ["/v1/effects", "/v1/effects/eff_1/extend"]

    def test_refuses_an_async_handler_before_it_claims_an_item(self) -> None:
        client, calls = self.sync()

        async def handle(item: Any, context: Any) -> None:
            pass

        with pytest.raises(TypeError, match="AsyncWaystation"):
            client.dlq.work(handle)
        assert calls == []

    def test_refuses_an_object_that_is_called_like_an_async_function(self) -> None:
        client, calls = self.sync()

        class Refund:
            async def __call__(self, *given: Any) -> str:
                return "never"

        for work in (Refund(), partial(Refund())):
            with pytest.raises(TypeError, match="AsyncWaystation"):
                client.effects.once(work, type="refund", key="1", payload=1)
            with pytest.raises(TypeError, match="AsyncWaystation"):
                client.dlq.work(work)
        assert calls == []

    def test_releases_an_item_whose_handler_returns_what_has_to_be_awaited(self) -> None:
        client, calls = self.sync()
        signal = Signal()

        async def handle() -> None:
            pass

        summary = client.dlq.work(
            lambda item, context: handle(), signal=signal, on_error=lambda error, item: signal.abort()
        )
        assert (summary.resolved, summary.released) == (0, 1)
        assert calls == ["/v1/dlq/claim", "/v1/dlq/dlq_1/release"]

    def test_refuses_an_async_change(self) -> None:
        client, calls = self.sync()

        async def change(value: Any) -> int:
            return 1

        with pytest.raises(TypeError, match="AsyncWaystation"):
            client.kv.update("state", "x", change)
        assert not [path for path in calls if path.endswith("put")]


def yielding(*given: Any) -> Any:
    yield "never"


async def yielding_async(*given: Any) -> Any:
    yield "never"


class Yielding:
    def __call__(self, *given: Any) -> Any:
        yield "never"


@pytest.mark.parametrize(
    "function",
    [yielding, yielding_async, Yielding(), Yielding().__call__, partial(yielding, 1)],
    ids=["a function", "an async function", "an object", "a method", "a partial"],
)
def test_a_function_with_a_yield_is_refused_before_anything_is_claimed(driver: Driver, function: Any) -> None:
    calls: list[str] = []
    answering(driver, calls)
    client = driver.lossy(at)
    with pytest.raises(TypeError, match="yield"):
        client.effects.once(function, type="refund", key="1", payload=1)
    with pytest.raises(TypeError, match="yield"):
        client.dlq.work(function, stop_when_empty=True)
    assert calls == []


@pytest.mark.parametrize("given", [None, "refund", {"type": "refund"}], ids=["None", "a text", "a dict"])
def test_what_cannot_be_called_is_refused_before_anything_is_claimed(driver: Driver, given: Any) -> None:
    calls: list[str] = []
    answering(driver, calls)
    client = driver.lossy(at)
    with pytest.raises(TypeError, match="takes a function"):
        client.effects.once(given, type="refund", key="1", payload=1)
    with pytest.raises(TypeError, match="takes a function"):
        client.dlq.work(given, stop_when_empty=True)
    with pytest.raises(TypeError, match="takes a function"):
        client.kv.update("state", "runs", given)
    assert calls == []


misspelt: dict[str, Callable[[Any], object]] = {
    "ttl_second": lambda client: client.kv.put("state", "k", 1, ttl_second=60),
    "prefixes": lambda client: client.kv.list("state", prefixes="a").page(),
    "metadat": lambda client: client.audit.append(action="paid", metadat={}),
    "timeout_second": lambda client: client.checkpoints.ask(title="Deploy?", timeout_second=60),
    "lock_second": lambda client: client.dlq.claim("dlq_1", lock_second=60),
    "wait": lambda client: client.effects.wait_for("eff_1", wait=5),
    "folow": lambda client: client.inboxes.messages("inb_1", folow=True),
    "idempotency_key": lambda client: client.kv.put("state", "k", 1, idempotency_key="a"),
}


@pytest.mark.parametrize("name", misspelt)
def test_an_argument_that_a_call_does_not_take_is_refused_and_nothing_is_sent(driver: Driver, name: str) -> None:
    client: Any = driver.watched(at)
    with pytest.raises(TypeError, match=f"there is no argument '{name}'"):
        misspelt[name](client)
    assert driver.network.seen == []


class Odd(Mapping[str, int]):
    def __getitem__(self, name: str) -> int:
        raise KeyError(name)

    def __iter__(self) -> Any:
        raise RuntimeError("no members")

    def __len__(self) -> int:
        return 1


unfit: list[Callable[[], Any]] = [
    lambda: {1, 2},
    lambda: float("nan"),
    lambda: datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
    Odd,
]


@pytest.mark.parametrize("make", unfit)
def test_a_result_that_cannot_be_encoded_is_recorded_as_having_happened(driver: Driver, make: Any) -> None:
    calls: list[str] = []
    answering(driver, calls)
    client = driver.watched(at)
    with pytest.raises(EffectUnrecordedError) as raised:
        client.effects.once(driver.handler(lambda permit: make()), type="refund", key="1", payload=1)
    assert raised.value.has_succeeded
    assert calls == ["effects", "succeed"]


def test_a_status_of_a_newer_service_is_not_taken_for_done(driver: Driver) -> None:
    client = driver.lossy(at)
    newer = {"id": "eff_1", "status": "withdrawn", "result": None}
    driver.network.always = lambda request: httpx.Response(200, json=newer)
    with pytest.raises(WaystationError) as raised:
        client.effects.once(driver.handler(lambda permit: 1), type="refund", key="1", payload=1)
    assert raised.value.code == "UNEXPECTED_ANSWER"


class TestWork:
    def test_ends_with_an_error_that_no_other_try_mends(self, driver: Driver) -> None:
        client = driver.watched(at)

        def closed(request: httpx.Request) -> httpx.Response:
            raise RuntimeError("Cannot send a request, as the client has been closed.")

        driver.network.always = closed
        with pytest.raises(RuntimeError, match="has been closed"):
            client.dlq.work(driver.handler(lambda item, context: None))
        assert len(driver.network.seen) == 1

    def test_ends_with_a_parser_that_fails_instead_of_claiming_all_items(self, driver: Driver) -> None:
        def parse(text: str) -> Any:
            raise ValueError("not what I wanted")

        client = driver.watched(at, parse_json=parse)
        calls: list[str] = []
        answering(driver, calls)
        with pytest.raises(ValueError, match="not what I wanted"):
            client.dlq.work(driver.handler(lambda item, context: None))
        assert calls == ["claim"]


def refusal(**details: Any) -> WaystationError:
    return WaystationError("EFFECT_IN_FLIGHT", "No.", 409, details, None, 7)


effect_errors: list[EffectError | NotDone] = [
    EffectRejectedError("eff_1", "refund", "1", refusal(status="expired", checkpoint_id="chk_1")),
    EffectInFlightError("eff_1", "refund", "1", refusal(agent_id="payer", lease_until="2026-11-23T00:00:00.000Z")),
    EffectUnknownError(None, "refund", "1", refusal(checkpoint_id=None)),
    EffectFailedError("eff_1", "refund", "1", "card declined"),
    EffectUnrecordedError("eff_1", "refund", "1", {"a": 1}, True),
    NotDone("card declined", retry=True),
]


@pytest.mark.parametrize("error", effect_errors, ids=lambda error: type(error).__name__)
def test_errors_of_effects_survive_pickle(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


class Refused(Exception):
    """Goes into a pickle, and does not come out of it."""

    def __init__(self, charge: str, reason: str) -> None:
        super().__init__(reason)


@pytest.mark.parametrize(
    "result",
    [threading.Lock(), lambda: None, [Refused("ch_1", "no")]],
    ids=["a lock", "a function", "an error"],
)
def test_that_it_has_happened_survives_pickle_with_a_result_that_cannot(result: object) -> None:
    error = EffectUnrecordedError("eff_1", "refund", "1", result, True)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.has_succeeded, again.result) == (EffectUnrecordedError, True, repr(result))
    assert copy.copy(error).result is error.result is result


def test_the_async_client_says_that_it_needs_asyncio() -> None:
    # As under trio.
    call = AsyncWaystation(at).kv.get("state", "x")
    with pytest.raises(RuntimeError, match="needs a running event loop of asyncio"):
        call.send(None)


def test_the_refusal_of_a_proxy_by_httpx_is_raised_as_it_is(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:port")
    with pytest.raises(httpx.InvalidURL):
        driver.client(at).health.live()


def test_a_name_that_no_address_has_room_for_is_refused_without_a_try(driver: Driver) -> None:
    client = driver.watched(at)
    with pytest.raises(ValueError, match="no valid address"):
        client.kv.get("state", "k" * 70_000)
    with pytest.raises(ValueError, match="no valid address"):
        client.audit.list(action="a" * 70_000).page()
    assert driver.network.seen == []
