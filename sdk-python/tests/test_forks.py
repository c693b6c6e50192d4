"""Connections belong to a process and, in asyncio, to an event loop: a client that is older than either goes on with new ones."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from waystation import AsyncWaystation, Waystation

names = ("a", "b", "c", "d")
rounds = 20
can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.fixture
def client(url: str, tenant: dict[str, str]) -> Iterator[Waystation]:
    with Waystation(url, key=tenant["api_key"], retries=0) as client:
        yield client


@pytest.fixture
def async_client(url: str, tenant: dict[str, str]) -> AsyncWaystation:
    return AsyncWaystation(url, key=tenant["api_key"], retries=0)


def forked(work: Callable[[], object]) -> int:
    """A child that does the work: its process. It ends with 0 when the work raised nothing."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    return process


def codes_of(processes: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]


def read_own(client: Waystation, name: str) -> None:
    for _ in range(rounds):
        assert client.kv.get("forks", name)["value"] == name


@can_fork
def test_children_and_their_parent_read_their_own_answers(client: Waystation) -> None:
    for name in names:
        client.kv.put("forks", name, name)
    children = [forked(lambda name=name: read_own(client, name)) for name in names]  # type: ignore[misc]
    read_own(client, names[0])
    assert codes_of(children) == [0, 0, 0, 0]


@can_fork
def test_a_child_of_a_child_has_connections_of_its_own(client: Waystation) -> None:
    for name in names:
        client.kv.put("forks", name, name)

    def child() -> None:
        read_own(client, "a")
        children = [forked(lambda name=name: read_own(client, name)) for name in names]  # type: ignore[misc]
        read_own(client, "a")
        assert codes_of(children) == [0, 0, 0, 0]

    assert codes_of([forked(child)]) == [0]


@can_fork
def test_a_workflow_of_a_client_has_new_connections_too(client: Waystation) -> None:
    for name in names:
        client.kv.put("forks", name, name)
    other = client.in_workflow("forks")
    read_own(other, "a")
    children = [forked(lambda name=name: read_own(other, name)) for name in names]  # type: ignore[misc]
    assert codes_of(children) == [0, 0, 0, 0]


@can_fork
def test_an_http_client_that_the_parent_has_used_is_refused_in_a_child(url: str, tenant: dict[str, str]) -> None:
    with httpx.Client() as http:
        client = Waystation(url, key=tenant["api_key"], http_client=http)
        client.kv.put("forks", "given", 1)

        def refused() -> None:
            with pytest.raises(RuntimeError, match="was used before this process was forked"):
                client.kv.get("forks", "given")

        assert codes_of([forked(refused)]) == [0]
        assert client.kv.get("forks", "given")["value"] == 1


@can_fork
def test_an_http_client_that_was_not_used_yet_is_taken_by_a_child(url: str, tenant: dict[str, str]) -> None:
    with httpx.Client() as http:
        client = Waystation(url, key=tenant["api_key"], http_client=http)
        assert codes_of([forked(lambda: client.kv.put("forks", "given", 1))]) == [0]


def test_a_client_that_is_closed_sends_nothing(client: Waystation) -> None:
    client.close()
    with pytest.raises(RuntimeError, match="The client is closed"):
        client.health.live()


@can_fork
def test_a_client_that_is_closed_is_closed_in_a_child(client: Waystation) -> None:
    client.close()

    def refused() -> None:
        with pytest.raises(RuntimeError, match="The client is closed"):
            client.health.live()

    assert codes_of([forked(refused)]) == [0]


def test_one_event_loop_after_another_uses_a_client(async_client: AsyncWaystation) -> None:
    async def written(number: int) -> object:
        await async_client.kv.put("forks", "loop", number)
        return (await async_client.kv.get("forks", "loop"))["value"]

    assert [asyncio.run(written(number)) for number in range(4)] == [0, 1, 2, 3]


def test_event_loops_of_several_threads_use_a_client_at_once(async_client: AsyncWaystation) -> None:
    errors: list[BaseException] = []

    async def read_own_name(name: str) -> None:
        await async_client.kv.put("forks", name, name)
        for _ in range(rounds):
            assert (await async_client.kv.get("forks", name))["value"] == name

    def run(name: str) -> None:
        try:
            asyncio.run(read_own_name(name))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@can_fork
def test_event_loops_of_children_have_connections_of_their_own(async_client: AsyncWaystation) -> None:
    async def written(name: str) -> None:
        await async_client.kv.put("forks", name, name)
        for _ in range(rounds):
            assert (await async_client.kv.get("forks", name))["value"] == name

    asyncio.run(written("a"))
    children = [forked(lambda name=name: asyncio.run(written(name))) for name in names]  # type: ignore[misc]
    assert codes_of(children) == [0, 0, 0, 0]


def test_an_async_client_that_is_closed_sends_nothing(async_client: AsyncWaystation) -> None:
    async def close() -> Any:
        await async_client.health.live()
        await async_client.aclose()
        with pytest.raises(RuntimeError, match="The client is closed"):
            await async_client.health.live()

    asyncio.run(close())
