"""Work that is cut short: a cancelled task, an interrupt, a lost lease, a service that is away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from driver import Driver

from waystation import (
    AsyncWaystation,
    EffectUnknownError,
    Permit,
    Signal,
    Waystation,
    WaystationError,
    WorkContext,
    has_code,
)
from waystation._sync.platform import Background
from waystation.types import ClaimedDeadLetter


def refusal(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"error": {"code": code, "message": "No."}})


@pytest.fixture
def key_of_agent(tenant: dict[str, str]) -> str:
    return tenant["api_key"]


def drain(url: str, api_key: str) -> None:
    with Waystation(url, key=api_key) as agent:
        while item := agent.dlq.claim_oldest():
            agent.dlq.resolve(item["id"], lock_token=item["lock_token"])


class TestACancelledTask:
    def test_leaves_the_effect_unknown_and_its_lease_short(self, url: str, key_of_agent: str, key: str) -> None:
        async def main() -> None:
            began = asyncio.Event()

            async def work(permit: Permit) -> None:
                began.set()
                await asyncio.sleep(600)

            async with AsyncWaystation(url, key=key_of_agent) as agent:
                given: dict[str, Any] = {"type": "refund", "key": key, "payload": 1, "on_unknown": "hold"}
                task = asyncio.ensure_future(agent.effects.once(work, **given))
                await began.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                (effect,) = [one async for one in agent.effects.list(type="refund", key=key)]
                ended = await asyncio.wait_for(agent.effects.wait_for(effect["id"]), 50)
                assert ended["status"] == "unknown"
                with pytest.raises(EffectUnknownError):
                    await agent.effects.once(work, **given)

        asyncio.run(main())

    def test_releases_the_items_of_dlq_work(self, url: str, key_of_agent: str) -> None:
        drain(url, key_of_agent)

        async def main() -> None:
            began: list[str] = []
            both = asyncio.Event()

            async def handle(item: ClaimedDeadLetter, context: WorkContext) -> None:
                began.append(item["id"])
                if len(began) == 2:
                    both.set()
                await asyncio.sleep(600)

            async with AsyncWaystation(url, key=key_of_agent) as agent:
                for number in range(2):
                    await agent.dlq.create(payload=number, error="x")
                task = asyncio.ensure_future(agent.dlq.work(handle, concurrency=2))
                await both.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert {(await agent.dlq.get(id))["status"] for id in began} == {"failed"}

        asyncio.run(main())
        drain(url, key_of_agent)

    def test_ends_a_wait_and_leaves_the_client_as_it_was(self, url: str, key_of_agent: str) -> None:
        async def main() -> None:
            async with AsyncWaystation(url, key=key_of_agent) as agent:
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(agent.wait(any=[{"subject": "nothing"}]).first(), 0.2)
                await agent.kv.put("state", "after", 1)

        asyncio.run(main())


class TestAnInterrupt:
    def test_releases_the_item_and_is_raised(self, url: str, key_of_agent: str) -> None:
        drain(url, key_of_agent)
        with Waystation(url, key=key_of_agent) as agent:
            id = agent.dlq.create(payload=1, error="x")["id"]

            def handle(item: ClaimedDeadLetter, context: WorkContext) -> None:
                raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                agent.dlq.work(handle)
            assert agent.dlq.get(id)["status"] == "failed"
        drain(url, key_of_agent)

    def test_leaves_an_effect_unknown(self, url: str, key_of_agent: str, key: str) -> None:
        with Waystation(url, key=key_of_agent) as agent:

            def work(permit: Permit) -> None:
                raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                agent.effects.once(work, type="refund", key=key, payload=1, on_unknown="hold", on_raise="failed")
            (effect,) = agent.effects.list(type="refund", key=key)
            assert agent.effects.wait_for(effect["id"])["status"] == "unknown"


class TestWithoutAThreadToKeepIt:
    """As in atexit from Python 3.12 on, or at a limit of processes."""

    @pytest.fixture(autouse=True)
    def no_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(work: Callable[[], None]) -> Background:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr("waystation._sync.lock.Background", refuse)

    def test_a_lease_is_released(self, url: str, key_of_agent: str, key: str) -> None:
        began: list[str] = []
        with Waystation(url, key=key_of_agent) as agent:
            with pytest.raises(RuntimeError, match="can't start new thread"):
                agent.effects.once(lambda permit: began.append(permit.id), type="refund", key=key, payload=1)
            (effect,) = agent.effects.list(type="refund", key=key)
            assert (effect["status"], began) == ("ready", [])

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_an_item_is_released_and_the_work_ends(self, url: str, key_of_agent: str, concurrency: int) -> None:
        drain(url, key_of_agent)
        handled: list[str] = []
        with Waystation(url, key=key_of_agent) as agent:
            id = agent.dlq.create(payload=1, error="x")["id"]
            with pytest.raises(RuntimeError, match="can't start new thread"):
                agent.dlq.work(lambda item, context: handled.append(item["id"]), concurrency=concurrency)
            assert (agent.dlq.get(id)["status"], handled) == ("failed", [])
        drain(url, key_of_agent)


class TestALostLease:
    def test_aborts_the_signal_and_what_happened_counts(
        self, driver: Driver, url: str, key_of_agent: str, key: str
    ) -> None:
        agent = driver.watched(url, key=key_of_agent)
        driver.network.always = lambda request: (
            refusal(409, "EFFECT_NOT_HELD") if request.url.path.endswith("/extend") else None
        )
        seen: list[Any] = []

        def work(permit: Permit) -> str:
            permit.signal.wait(60)
            seen.append(permit.signal.reason)
            return "done"

        given: dict[str, Any] = {"type": "refund", "key": key, "payload": 1, "lease_seconds": 6}
        assert agent.effects.once(driver.handler(work), **given) == "done"
        assert has_code(seen[0], "EFFECT_NOT_HELD")

    def test_is_extended_while_the_service_does_not_answer_until_its_time_is_over(
        self, driver: Driver, url: str, key_of_agent: str, key: str
    ) -> None:
        agent = driver.watched(url, key=key_of_agent)
        asked: list[str] = []

        def always(request: httpx.Request) -> httpx.Response | None:
            if not request.url.path.endswith("/extend"):
                return None
            asked.append(request.url.path)
            return refusal(503, "UNAVAILABLE")

        driver.network.always = always

        def work(permit: Permit) -> str:
            permit.signal.wait(60)
            assert str(permit.signal.reason).startswith("The lock expired")
            return "late"

        given: dict[str, Any] = {"type": "refund", "key": key, "payload": 1, "lease_seconds": 2, "on_unknown": "hold"}
        assert agent.effects.once(driver.handler(work), **given) == "late"
        assert len(asked) >= 3


class TestTheSignalOfACall:
    def test_of_once_reaches_the_work_whose_result_is_recorded(
        self, driver: Driver, url: str, key_of_agent: str, key: str
    ) -> None:
        agent = driver.client(url, key=key_of_agent)
        signal = Signal()
        reason = ValueError("enough")

        def work(permit: Permit) -> str:
            threading.Timer(0.1, lambda: signal.abort(reason)).start()
            permit.signal.wait(60)
            assert permit.signal.reason is reason
            return "done"

        given: dict[str, Any] = {"type": "refund", "key": key, "payload": 1}
        assert agent.effects.once(driver.handler(work), signal=signal, **given) == "done"
        with pytest.raises(ValueError, match="enough"):
            agent.effects.once(driver.handler(work), signal=signal, **given)

    def test_of_once_that_waits_ends_the_wait(self, driver: Driver, url: str, key_of_agent: str, key: str) -> None:
        agent = driver.client(url, key=key_of_agent)
        signal = Signal()
        with pytest.raises(ValueError, match="enough"):
            agent.effects.once(
                lambda permit: None,
                type="refund",
                key=key,
                payload=1,
                approval={"title": "?"},
                on_waiting=lambda checkpoint: signal.abort(ValueError("enough")),
                signal=signal,
            )


class TestAClaim:
    def test_that_is_refused_late_is_reported_and_the_work_goes_on(
        self, driver: Driver, url: str, key_of_agent: str
    ) -> None:
        drain(url, key_of_agent)
        agent = driver.watched(url, key=key_of_agent)
        agent.dlq.create(payload=1, error="x")
        driver.network.next = [refusal(503, "UNAVAILABLE")]
        errors: list[Any] = []
        summary = agent.dlq.work(
            driver.handler(lambda item, context: None),
            stop_when_empty=True,
            idle_ms_max=10,
            on_error=lambda error, item: errors.append((error.code, item)),
        )
        assert summary.resolved == 1
        assert errors == [("UNAVAILABLE", None)]

    def test_of_an_effect_whose_answer_is_lost_is_repeated_with_its_token(
        self, driver: Driver, url: str, key_of_agent: str, key: str
    ) -> None:
        agent = driver.watched(url, key=key_of_agent, retries=0)
        driver.network.next = ["lose_answer"]
        with pytest.raises(Exception, match="No answer"):
            agent.effects.once(driver.handler(lambda permit: "x"), type="refund", key=key, payload=1, retries=0)
        sent = [request.url.path.rpartition("/")[2] for request in driver.network.seen]
        assert sent == ["effects", "effects", "fail"]
        tokens = {request.content.partition(b'"lease_token":"')[2][:36] for request in driver.network.seen[:2]}
        assert len(tokens) == 1
        result = agent.effects.once(driver.handler(lambda permit: permit.fence), type="refund", key=key, payload=1)
        assert result == 2


def test_a_signal_says_its_reason_once_and_calls_back_once() -> None:
    signal = Signal()
    called: list[int] = []
    forget = signal.listen(lambda: called.append(1))
    signal.listen(lambda: called.append(2))
    forget()
    assert not signal.wait(0)
    signal.abort()
    signal.abort(WaystationError("INTERNAL", "x", 500, None, None, None))
    signal.listen(lambda: called.append(3))
    assert called == [2, 3]
    assert signal.aborted and type(signal.reason).__name__ == "Aborted"
