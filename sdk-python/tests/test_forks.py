"""Connections belong to a process and, in asyncio, to an event loop: a client that is older than either goes on with new ones."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from waystation import AsyncWaystation, Waystation
from waystation._async import platform

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


def c_fork() -> int:
    """A fork of which Python is not told, as uWSGI makes its workers unless it is set to tell."""
    forked: int = ctypes.PyDLL(None).fork()
    return forked


def forked(work: Callable[[], object], fork: Callable[[], int] = lambda: os.fork()) -> int:
    """A child that does the work: its process. It ends with 0 when the work raised nothing."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = fork()
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


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """Python complains of each connection that ends without being closed, at the latest when it is collected."""
    gc.collect()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(warning.message) for warning in warned if warning.category is ResourceWarning] == []


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
def test_children_of_a_fork_that_python_is_not_told_of_read_their_own_answers(client: Waystation) -> None:
    for name in names:
        client.kv.put("forks", name, name)
    go, going = os.pipe()

    def read_together(name: str) -> None:
        os.close(going)
        os.read(go, 1)
        read_own(client, name)

    children = [forked(lambda name=name: read_together(name), c_fork) for name in names]  # type: ignore[misc]
    os.close(going)
    read_own(client, names[0])
    os.close(go)
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


def test_an_event_loop_that_ends_leaves_no_connection_open(async_client: AsyncWaystation) -> None:
    async def written() -> None:
        await asyncio.gather(*(async_client.kv.put("forks", name, name) for name in names))

    with nothing_left_open():
        for _ in range(3):
            asyncio.run(written())


def test_an_async_client_that_is_not_closed_closes_its_connections_when_it_goes(url: str, tenant: dict[str, str]) -> None:
    async def written() -> None:
        await AsyncWaystation(url, key=tenant["api_key"], retries=0).kv.put("forks", "gone", 1)

    with nothing_left_open():
        asyncio.run(written())


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


@can_fork
def test_a_child_lets_go_of_no_connection_of_an_event_loop_of_its_parent(async_client: AsyncWaystation) -> None:
    """Both share what the loop waits on, and uvloop takes a connection off it that is let go: the parent would hear no more."""

    async def written(name: str) -> None:
        await async_client.kv.put("forks", name, name)

    def child() -> None:
        with nothing_left_open():
            asyncio.run(written("b"))

    async def parent() -> list[int]:
        await written("a")
        codes = codes_of([forked(child)])
        await written("c")
        return codes

    assert asyncio.run(parent()) == [0]


def test_an_async_client_that_is_closed_sends_nothing(async_client: AsyncWaystation) -> None:
    async def close() -> Any:
        await async_client.health.live()
        await async_client.aclose()
        with pytest.raises(RuntimeError, match="The client is closed"):
            await async_client.health.live()

    asyncio.run(close())


def test_a_program_whose_loop_was_never_shut_down_ends_without_a_word() -> None:
    # As nest_asyncio runs it: its generators are let go when no loop runs.
    loop = asyncio.new_event_loop()
    client = httpx.AsyncClient()
    closing = platform._closing(platform.Opened(loop, client))
    with pytest.raises(StopIteration):
        closing.__anext__().send(None)
    del closing
    gc.collect()
    assert not client.is_closed
    loop.close()
