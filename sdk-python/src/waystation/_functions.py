"""Functions that the caller gives. One that would never run must not look as if it had."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast


def check_runs(function: Callable[..., object]) -> None:
    """Raises TypeError, before anything is claimed for it, for what cannot be called, and for a function with a yield: a call of
    that runs nothing.
    """
    if not callable(function):
        raise TypeError("this takes a function")
    if any(inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body) for body in _bodies(function)):
        raise TypeError("a function with a yield does nothing when it is called: give one without")


def is_async(function: Callable[..., object]) -> bool:
    """True for a function that has to be awaited, and for an object that is called like one."""
    return any(inspect.iscoroutinefunction(body) for body in _bodies(function))


def _bodies(function: Callable[..., object]) -> tuple[Any, Any]:
    """The function itself, and what runs when it is an object that can be called."""
    found = cast("Any", function)
    while isinstance(found, functools.partial):
        found = cast("Any", found).func
    return found, getattr(cast("object", type(found)), "__call__", None)
