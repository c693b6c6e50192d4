"""client.rate_limit"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Literal

from .._errors import WaystationTimeoutError
from .._values import CallOptions, RateLimitResult, fields
from . import resources
from .transport import Input

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack

spread_ms_max = 1_000
"""Spreads the callers that wait for the same window."""


class AsyncRateLimit(resources.AsyncRateLimit):
    async def check(
        self,
        key: str,
        *,
        limit: float,
        window_seconds: float,
        algorithm: Literal["fixed_window", "sliding_window"] | None = None,
        cost: int | None = None,
        **options: Unpack[CallOptions],
    ) -> RateLimitResult:
        """Counts a hit. A blocked check is a result, not an error: `allowed` is False, and `retryAfter` says when to try again.

        limit: most hits in a window; at least 1.
        algorithm: fixed_window, the default, begins at the first hit; sliding_window has no edges.
        cost: how many hits this is; default 1.
        """
        body = fields(
            {"limit": limit, "windowSeconds": window_seconds, "key": key}, {"algorithm": algorithm, "cost": cost}
        )
        answer: RateLimitResult = await self._transport.call("checkRateLimit", Input(body=body), options)
        return answer

    async def wait(
        self,
        key: str,
        *,
        limit: float,
        window_seconds: float,
        algorithm: Literal["fixed_window", "sliding_window"] | None = None,
        cost: int | None = None,
        max_wait_ms: float = float("inf"),
        **options: Unpack[CallOptions],
    ) -> RateLimitResult:
        """Checks until it is allowed, and waits for `retryAfter` in between. Raises WaystationTimeoutError instead of waiting
        for longer than `max_wait_ms` in all."""
        platform = self._transport.platform
        if math.isnan(max_wait_ms):
            raise ValueError("max_wait_ms must be a number")
        waited_ms = 0.0
        while True:
            result = await self.check(
                key, limit=limit, window_seconds=window_seconds, algorithm=algorithm, cost=cost, **options
            )
            if result["allowed"]:
                return result
            retry_after = result.get("retryAfter", 1)
            left_ms = max_wait_ms - waited_ms
            if retry_after * 1_000 > left_ms:
                raise _still_blocked(waited_ms, retry_after, left_ms)
            wait_ms = min(retry_after * 1_000 + platform.random() * spread_ms_max, left_ms)
            await platform.sleep(wait_ms, options.get("signal"))
            waited_ms += wait_ms


def _still_blocked(waited_ms: float, retry_after: float, left_ms: float) -> WaystationTimeoutError:
    left = f"only {left_ms / 1_000:g} s are" if left_ms > 0 else "no time is"
    return WaystationTimeoutError(waited_ms, f"Still blocked for {retry_after:g} s, and {left} left to wait.")
