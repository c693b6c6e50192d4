"""A task that is cancelled, by asyncio once or by anyio again and again: what is in progress is settled first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx
import pytest

from waystation import AsyncWaystation, Signal
from waystation._async import platform

effect: dict[str, Any] = {
    "id": "eff_1", "type": "refund", "key": "1", "status": "running", "fence": 1, "lease_seconds": 60,
    "payload": 1, "payload_hash": "h", "effective_hash": None, "effective_payload": None, "result": "done",
    "lease_token": "t", "checkpoint": None,
}  # fmt: skip
item = {"id": "dlq_1", "payload": 1, "claims": 1, "lock_token": "t", "lock_seconds": 60}


class Service:
    """Answers every request; the first one of the verb `held` when it is told to. `done` are the verbs that it has answered."""

    def __init__(self, held: str | None = None) -> None:
        self.held = held
        self.reached = asyncio.Event()
        self.go = asyncio.Event()
        self.done: list[str] = []

    async def answer(self, request: httpx.Request) -> httpx.Response:
        verb = request.url.path.rpartition("/")[2]
        if verb == self.held and not self.reached.is_set():
            self.reached.set()
            await self.go.wait()
        else:
            # A request takes a moment: a task that is cancelled all the time does not get through one.
            await asyncio.sleep(0.01)
        self.done.append(verb)
        return httpx.Response(200, json=item if request.url.path.startswith("/v1/dlq") else effect)

    def client(self) -> AsyncWaystation:
        http = httpx.AsyncClient(transport=httpx.MockTransport(self.answer))
        return AsyncWaystation("http://service.example", http_client=http)


async def by_asyncio(run: Callable[[], Awaitable[object]], service: Service, reached: asyncio.Event) -> None:
    task = asyncio.ensure_future(run())
    await reached.wait()
    task.cancel()
    await asyncio.sleep(0.05)
    service.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_anyio(run: Callable[[], Awaitable[object]], service: Service, reached: asyncio.Event) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await reached.wait()
        asyncio.get_running_loop().call_later(0.05, service.go.set)
        group.cancel_scope.cancel()


Cancel = Callable[[Callable[[], Awaitable[object]], Service, asyncio.Event], Awaitable[None]]
both = pytest.mark.parametrize("cancel", [by_asyncio, by_anyio])


@both
class TestOnce:
    def test_that_reports_records_what_has_happened(self, cancel: Cancel) -> None:
        async def main() -> None:
            service = Service("succeed")
            client = service.client()

            async def run() -> None:
                await client.effects.once(lambda permit: "done", type="refund", key="1", payload=1)

            await cancel(run, service, service.reached)
            assert service.done == ["effects", "succeed"]

        asyncio.run(main())

    def test_that_works_gives_its_lease_up(self, cancel: Cancel) -> None:
        async def main() -> None:
            service, began = Service(), asyncio.Event()
            client = service.client()

            async def work(permit: Any) -> None:
                began.set()
                await asyncio.sleep(600)

            async def run() -> None:
                await client.effects.once(work, type="refund", key="1", payload=1)

            await cancel(run, service, began)
            assert service.done == ["effects", "extend"]

        asyncio.run(main())

    def test_that_asks_for_its_lease_releases_it(self, cancel: Cancel) -> None:
        async def main() -> None:
            service = Service("effects")
            client = service.client()

            async def run() -> None:
                await client.effects.once(lambda permit: "never", type="refund", key="1", payload=1)

            await cancel(run, service, service.reached)
            assert service.done == ["effects", "fail"]

        asyncio.run(main())


@both
class TestWork:
    def test_that_settles_an_item_settles_it(self, cancel: Cancel) -> None:
        async def main() -> None:
            service = Service("resolve")
            client = service.client()

            async def run() -> None:
                await client.dlq.work(lambda item, context: None)

            await cancel(run, service, service.reached)
            assert service.done == ["claim", "resolve"]

        asyncio.run(main())

    def test_that_claims_an_item_releases_it(self, cancel: Cancel) -> None:
        async def main() -> None:
            service = Service("claim")
            client = service.client()
            handled: list[Any] = []

            async def run() -> None:
                await client.dlq.work(lambda item, context: handled.append(item))

            await cancel(run, service, service.reached)
            assert (service.done, handled) == (["claim", "release"], [])

        asyncio.run(main())

    def test_that_handles_items_cancels_the_handlers_and_releases_them(self, cancel: Cancel) -> None:
        async def main() -> None:
            service, began = Service(), asyncio.Event()
            client = service.client()
            ended: list[str] = []

            async def handle(item: Any, context: Any) -> None:
                try:
                    began.set()
                    await asyncio.sleep(600)
                finally:
                    await asyncio.sleep(0.02)
                    ended.append(item["id"])

            async def run() -> None:
                await client.dlq.work(handle, concurrency=2)

            await cancel(run, service, began)
            assert ended == ["dlq_1"] * (len(service.done) // 2)
            assert service.done.count("claim") == service.done.count("release") >= 1

        asyncio.run(main())


def test_a_report_that_is_not_answered_is_given_up_after_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "grace_seconds", 0.05)

    async def main() -> None:
        service = Service("succeed")
        client = service.client()
        given: Any = {"type": "refund", "key": "1", "payload": 1}
        task = asyncio.ensure_future(client.effects.once(lambda permit: "done", **given))
        await service.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert service.done == ["effects"]

    asyncio.run(main())


def test_a_signal_of_a_loop_that_is_closed_is_aborted_without_an_error() -> None:
    signal = Signal()
    loop = asyncio.new_event_loop()

    async def wait() -> None:
        platform._listen(signal, lambda: None)

    loop.run_until_complete(wait())
    loop.close()
    signal.abort()
    assert signal.aborted
