"""Lists: item by item, or page by page. The first request is made when the first item is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from .._values import CallOptions, Page
from .transport import AsyncTransport, Input

T = TypeVar("T")


class AsyncPages(Generic[T]):
    """``async for item in pages``, ``async for page in pages.pages()``, or ``await pages.page()``."""

    def __init__(self, first: str | None, read: Callable[[str | None], Awaitable[Page[T]]]) -> None:
        self._first = first
        self._read = read

    async def page(self) -> Page[T]:
        """One page: the first, or the one after the ``cursor`` that was given."""
        return await self._read(self._first)

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Every page."""
        cursor = self._first
        while True:
            page = await self._read(cursor)
            yield page
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item


def list_of(
    transport: AsyncTransport, name: str, params: Mapping[str, str], query: Mapping[str, object], options: CallOptions
) -> AsyncPages[Any]:
    """A list under /v1."""

    async def read(cursor: str | None) -> Page[Any]:
        given = Input(params=params, query={**query, "cursor": cursor})
        answer = await transport.call(name, given, options)
        return Page(answer["items"], answer["next_cursor"])

    first = query.get("cursor")
    return AsyncPages(first if isinstance(first, str) else None, read)


def offset_list_of(
    transport: AsyncTransport, name: str, params: Mapping[str, str], query: Mapping[str, object], options: CallOptions
) -> AsyncPages[Any]:
    """A list under /api. Its cursor is the number of items before the page."""

    async def read(cursor: str | None) -> Page[Any]:
        offset = int(cursor or 0)
        given = Input(params=params, query={**query, "offset": offset})
        answer = await transport.call(name, given, options)
        following = offset + len(answer["items"])
        has_more = len(answer["items"]) > 0 and following < answer["total"]
        return Page(answer["items"], str(following) if has_more else None)

    first = query.get("offset")
    return AsyncPages(None if first is None else str(first), read)
