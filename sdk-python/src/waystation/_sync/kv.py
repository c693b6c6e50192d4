"""client.kv and client.namespaces: exact values, and updates."""

# Made of ../_async/kv.py by scripts/clients.ts: do not edit.

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .._errors import WaystationError, has_code
from .._json import member_text, parse_json
from .._outcome import Answer
from .._values import CallOptions, if_match, limited
from ..types import Entry, PutResult
from . import resources
from .platform import check_function, settled
from .transport import Input

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack

V = TypeVar("V")

contention_ms_first = 100
"""The wait after the first conflict of an update is at most this, and at most twice as long after each further one."""
contention_ms_max = 3_000


class Kv(resources.Kv):
    def find(self, namespace: str, key: str, **options: Unpack[CallOptions]) -> Entry | None:
        """None when there is no such key."""
        try:
            return self.get(namespace, key, **options)
        except WaystationError as error:
            if has_code(error, "KEY_NOT_FOUND"):
                return None
            raise

    def get_if_changed(
        self, namespace: str, key: str, version: int, **options: Unpack[CallOptions]
    ) -> Entry | None:
        """None as long as `version` is still the stored one; nothing is transferred then."""
        given = Input(params={"namespace": namespace, "key": key}, headers={"if-none-match": f'"{version}"'})
        answer = self._transport.send("getValue", given, options)
        entry: Entry | None = None if answer.status == 304 else self._transport.parse("getValue", answer)
        return entry

    def get_text(
        self, namespace: str, key: str, *, if_version: int | None = None, **options: Unpack[CallOptions]
    ) -> Entry:
        """As `get`, with the value as the exact JSON text that was put."""
        given = Input(params={"namespace": namespace, "key": key}, headers=if_match(if_version))
        return _with_text(self._transport.send("getValue", given, options))

    @overload
    def update(
        self,
        namespace: str,
        key: str,
        change: Callable[[V], V | None],
        *,
        default: V,
        ttl_seconds: int | None = None,
        tries: int = 10,
        **options: Unpack[CallOptions],
    ) -> PutResult | Entry | None: ...

    @overload
    def update(
        self,
        namespace: str,
        key: str,
        change: Callable[[Any], object],
        *,
        default: Any = None,
        ttl_seconds: int | None = None,
        tries: int = 10,
        **options: Unpack[CallOptions],
    ) -> PutResult | Entry | None: ...

    def update(
        self,
        namespace: str,
        key: str,
        change: Callable[[Any], object],
        *,
        default: Any = None,
        ttl_seconds: int | None = None,
        tries: int = 10,
        **options: Unpack[CallOptions],
    ) -> PutResult | Entry | None:
        """Puts what `change` makes of the value, unless another writer was faster: then `change` is called again with the new
        value. It gets `default` for a key that is absent. When it returns None, nothing is written, and the result is the
        entry as it was, None when there is none; ``RawJson("null")`` writes null. Raises VERSION_MISMATCH after `tries`.
        """

        check_function(change)

        def of_entry(entry: Entry | None) -> object:
            return change(_fresh(default) if entry is None else entry["value"])

        return self.update_entry(namespace, key, of_entry, ttl_seconds=ttl_seconds, tries=tries, **options)

    def update_entry(
        self,
        namespace: str,
        key: str,
        change: Callable[[Entry | None], object],
        *,
        ttl_seconds: int | None = None,
        tries: int = 10,
        **options: Unpack[CallOptions],
    ) -> PutResult | Entry | None:
        """As `update`, for a `change` that gets the whole entry: None for a key that is absent."""
        check_function(change)
        limited("tries", tries, 1, float("inf"))
        tried = 1
        while True:
            entry = self.find(namespace, key, **options)
            value: object = settled(change(entry))
            if value is None:
                return entry
            version = 0 if entry is None else entry["version"]
            try:
                return self.put(
                    namespace, key, value, ttl_seconds=ttl_seconds, cas_version=version, **options
                )
            except WaystationError as error:
                if not has_code(error, "VERSION_MISMATCH") or tried >= tries:
                    raise
            most_ms = min(contention_ms_max, contention_ms_first * 2 ** (tried - 1))
            platform = self._transport.platform
            platform.sleep(platform.random() * most_ms, options.get("signal"))
            tried += 1


class Namespaces(resources.Namespaces):
    """With the admin key: every agent's keys and values, to be read."""

    def get_text(self, namespace: str, key: str, **options: Unpack[CallOptions]) -> Entry:
        """As `get`, with the value as the exact JSON text that was put."""
        given = Input(params={"namespace": namespace, "key": key})
        return _with_text(self._transport.send("getNamespaceKey", given, options))


def _fresh(default: Any) -> Any:
    """A change that alters what it gets must not alter the default of its next try."""
    return copy.deepcopy(default) if type(default) in (dict, list) else default


def _with_text(answer: Answer) -> Entry:
    entry: Entry = parse_json(answer.text)
    entry["value"] = member_text(answer.text, "value")
    return entry
