"""Every operation of the contract has its method on both clients, which asks with its method at its path."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from driver import Driver, least_answer

from waystation import AsyncWaystation, Waystation
from waystation._operations import operations

contract = json.loads((Path(__file__).parents[2] / "openapi.json").read_text())


def snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)


methods = {
    operation["operationId"]: (method.upper(), path, snake(operation["x-sdk"]["name"]))
    for path, found in contract["paths"].items()
    for method, operation in found.items()
    if "x-sdk" in operation
}


def arguments_of(function: Any) -> Iterator[tuple[str, Any, bool]]:
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            positional = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            yield name, [{"subject": "x"}] if name == "any" else "x", positional


def answer(name: str) -> httpx.Response:
    page: dict[str, Any] = {"items": [], "next_cursor": None, "total": 0, "nextAfter": None, "next_after": 0}
    page |= {"event": {"seq": 1}, "after": 0}
    return least_answer(name, **page)


@pytest.mark.parametrize("name", methods)
def test_an_operation_has_its_method(driver: Driver, name: str) -> None:
    method, path, called = methods[name]
    client = driver.lossy("http://service.example")
    driver.network.always = lambda request: answer(name)
    owner, _, verb = called.rpartition(".")
    resource = getattr(client, owner) if owner else client
    function = getattr(resource._owner, verb)
    given = list(arguments_of(function))
    result = getattr(resource, verb)(
        *[value for _, value, positional in given if positional],
        **{argument: value for argument, value, positional in given if not positional},
    )
    if hasattr(result, "_owner"):
        (result.page if hasattr(result._owner, "page") else result.begun)()
    (request,) = driver.network.seen
    assert (request.method, request.url.path) == (method, re.sub(r"\{\w+\}", "x", path))


def test_the_table_has_every_operation() -> None:
    assert set(operations) == set(methods)


def public(owner: Any) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


def test_both_clients_have_the_same_methods_with_the_same_arguments() -> None:
    sync, asynchronous = Waystation("http://x"), AsyncWaystation("http://x")
    assert public(sync) - {"close"} == public(asynchronous) - {"aclose"}
    for name in public(sync) - {"close", "wait", "in_workflow"}:
        one, other = getattr(sync, name), getattr(asynchronous, name)
        assert public(one) == public(other)
        for method in public(one) if not callable(one) else ():
            parameters = [list(inspect.signature(getattr(owner, method)).parameters) for owner in (one, other)]
            assert parameters[0] == parameters[1]
