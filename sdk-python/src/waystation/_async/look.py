"""Requests that the service holds while there is nothing to report, one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from .._settings import retries_max
from .._signal import Signal
from .._values import CallOptions, check_options, limited, wait_options
from .platform import AsyncPlatform

T = TypeVar("T")

wait_seconds_default = 50
"""How long the service holds a waiting request; it accepts 55 at most."""
wait_seconds_max = 55
look_again_ms = 1_000
"""A service with too many waiting requests answers at once. The next request then follows after this, and a little more."""


def held_seconds(given: int | None) -> int:
    """How long the service holds a request."""
    seconds = wait_seconds_default if given is None else given
    limited("wait_seconds", seconds, 0, wait_seconds_max)
    return seconds


def patient(options: CallOptions) -> CallOptions:
    """The options of a call that waits for hours: more retries by default, and nothing that calls do not take."""
    check_options(options, wait_options)
    retries = options.get("retries")
    return {
        "signal": options.get("signal"),
        "timeout_ms": options.get("timeout_ms"),
        "request_id": options.get("request_id"),
        "retries": retries_max if retries is None else retries,
    }


def is_at_once(platform: AsyncPlatform, asked_at: float) -> bool:
    """True for an answer that the service did not hold back."""
    return platform.now_ms() - asked_at < look_again_ms


async def pause_after(platform: AsyncPlatform, asked_at: float, signal: Signal | None) -> None:
    """For an answer that came at once although there was nothing."""
    if is_at_once(platform, asked_at):
        await platform.sleep(look_again_ms + platform.random() * look_again_ms, signal)


async def look_until(
    platform: AsyncPlatform, look: Callable[[], Awaitable[T]], is_done: Callable[[T], bool], signal: Signal | None
) -> T:
    """Looks until it is done."""
    while True:
        asked_at = platform.now_ms()
        seen = await look()
        if is_done(seen):
            return seen
        await pause_after(platform, asked_at, signal)
