"""Forks of the process: a child has a copy of all that its parent holds, and must not use the connections among it."""

from __future__ import annotations

import os

Process = tuple[int, int]

_forks = 0


def process() -> Process:
    """This process: another value than that of each of its parents. The id alone may be that of a parent which has ended, and a
    fork by C, as uWSGI has it, is not counted."""
    return os.getpid(), _forks


def _count() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)


class GivenClient:
    """Notes in which process an `http_client` of the caller is used."""

    def __init__(self) -> None:
        self._used_in: Process | None = None

    def use(self) -> None:
        """Raises RuntimeError in a child of the process that has used it: both would read the answers of one connection."""
        here = process()
        if self._used_in not in (None, here):
            raise RuntimeError(
                "The http_client was used before this process was forked, so its connections are those of the parent: "
                "make a client in each process."
            )
        self._used_in = here
