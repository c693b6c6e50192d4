"""Lists: item by item, or page by page. The first request is made when the first item is read."""

# Made of ../_async/pages.py by scripts/clients.ts: do not edit.

from __future__ import annotations

from collections.abc import Iterator, Callable, Mapping
from typing import Any, Generic, TypeVar

from .._values import CallOptions, Page
from .transport import Transport, Input

T = TypeVar("T")


class Pages(Generic[T]):
    """``for item in pages``, ``for page in pages.pages()``, or ``pages.page()``."""

    def __init__(self, first: str | None, read: Callable[[str | None], Page[T]]) -> None:
        self._first = first
        self._read = read

    def page(self) -> Page[T]:
        """One page: the first, or the one after the ``cursor`` that was given."""
        return self._read(self._first)

    def pages(self) -> Iterator[Page[T]]:
        """Every page."""
        cursor = self._first
        while True:
            page = self._read(cursor)
            yield page
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            for item in page.items:
                yield item


def list_of(
    transport: Transport, name: str, params: Mapping[str, str], query: Mapping[str, object], options: CallOptions
) -> Pages[Any]:
    """A list under /v1."""

    def read(cursor: str | None) -> Page[Any]:
        given = Input(params=params, query={**query, "cursor": cursor})
        answer = transport.call(name, given, options)
        return Page(answer["items"], answer["next_cursor"])

    first = query.get("cursor")
    return Pages(first if isinstance(first, str) else None, read)


def offset_list_of(
    transport: Transport, name: str, params: Mapping[str, str], query: Mapping[str, object], options: CallOptions
) -> Pages[Any]:
    """A list under /api. Its cursor is the number of items before the page."""

    def read(cursor: str | None) -> Page[Any]:
        offset = int(cursor or 0)
        given = Input(params=params, query={**query, "offset": offset})
        answer = transport.call(name, given, options)
        following = offset + len(answer["items"])
        has_more = len(answer["items"]) > 0 and following < answer["total"]
        return Page(answer["items"], str(following) if has_more else None)

    first = query.get("offset")
    return Pages(None if first is None else str(first), read)
