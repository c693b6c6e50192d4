"""Forks of the process: a child has a copy of all that its parent holds, and must not use the connections among it."""

from __future__ import annotations

import os

_forks = 0


def forks() -> int:
    """How many forks lie between this process and the first of its line: another number than that of each of its parents."""
    return _forks


def _count() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)


class GivenClient:
    """Notes in which process an `http_client` of the caller is used."""

    def __init__(self) -> None:
        self._used_in: int | None = None

    def use(self) -> None:
        """Raises RuntimeError in a child of the process that has used it: both would read the answers of one connection."""
        here = forks()
        if self._used_in not in (None, here):
            raise RuntimeError(
                "The http_client was used before this process was forked, so its connections are those of the parent: "
                "make a client in each process."
            )
        self._used_in = here
