"""A list that is read often and changed by many, for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import grpc

from ...errors import AbortedError, FailedPreconditionError
from ...reasons import ErrorReason
from ...recipe_types import (
    Contents,
    Item,
    fold_array,
    item_record,
    new_id,
    removal_record,
    require_unmet,
)
from ...types import BytesLike, Duration, to_bytes
from ..client import Client

_REWRITES_MAX = 16


class Array:
    """A list that many clients change, under one key of the client's namespace.

    ::

        hosts = Array(client, "hosts")
        id = await hosts.add("10.0.0.7")
        for item in (await hosts.read()).items:
            ...
        await hosts.remove(id)

    ``add`` and ``remove`` append their change to the entry, and readers fold the changes: neither
    reads nor rewrites the list, and no lock is needed. ``update`` changes it as a whole, by
    version. It expires as a whole; ``fold_array`` reads the value of the event.

    Guarantee: no concurrent change is lost. An id is in the list at most once, where it was first
    added, so that ``add`` and ``remove`` may be repeated: the client does so by itself when a
    connection is lost.

    A call without an answer may have been applied. Repeat ``add`` and ``remove`` with the same id,
    ``add`` only until the item is removed; a removed id must not be added again. After an
    ``update`` without an answer, ``read`` shows whether it was applied.

    Cost: ``add`` and ``remove`` are one round trip, send the item, or 9 B, and cost O(that).
    ``read`` and ``compact`` transfer everything that was appended since the last compaction, 13 B
    and the value for an item that was added. A change that finds the entry at the namespace's
    max_value_bytes compacts it, once; then it is FailedPreconditionError (VALUE_TOO_LARGE).
    """

    def __init__(
        self,
        client: Client,
        key: BytesLike,
        *,
        ttl: Duration | None = None,
        renew: bool = True,
    ) -> None:
        """Makes it; no call.

        - `ttl`: the array's own time to live. None: the namespace's.
        - `renew`: whether ``add`` and ``update`` renew it; otherwise it counts from the creation.
        """
        self._client = client
        self._repeating = client.with_options(repeatable=True)
        self._key = to_bytes(key)
        self._ttl = ttl
        self._renew = renew

    async def add(self, value: BytesLike, *, id: int | None = None) -> int:
        """Adds a value at the end. Returns its id: `id`, of ``new_id``; None: a new one."""
        item = Item(new_id() if id is None else id, to_bytes(value))
        await self._append(item_record(item), ttl=self._ttl, touch=self._renew)
        return item.id

    async def remove(self, id: int) -> None:
        """Removes an item. An id that is not in the list is no error."""
        try:
            await self._append(removal_record(id), if_present=True)
        except FailedPreconditionError as error:
            if error.reason != ErrorReason.KEY_NOT_FOUND:
                raise

    async def read(self) -> Contents:
        """Reads the list. DataLossError: the entry is no array."""
        entry = await self._client.get(self._key)
        return fold_array(b"") if entry is None else fold_array(entry.value, entry.version)

    async def update(self, change: Callable[[list[Item]], Iterable[Item]]) -> None:
        """Reads the list, lets `change` make another of it, and stores that if it is unchanged.

        If the entry has changed meanwhile, begins anew, up to 16 times: then AbortedError. So it
        may call `change` several times, which gives new items an id by ``new_id``.
        """
        await self._rewrite(change, self._renew)

    async def compact(self) -> None:
        """Rewrites the entry without removed items; it keeps its deadline.

        Worth the transfer when stored_bytes is a multiple of compact_bytes. AbortedError as in
        ``update``.
        """
        await self._rewrite(lambda items: items, renew=False)

    # A record that comes twice is folded once.
    async def _append(self, record: bytes, **options: Any) -> None:
        try:
            await self._repeating.append(self._key, record, **options)
        except FailedPreconditionError as error:
            if error.reason != ErrorReason.VALUE_TOO_LARGE:
                raise
            await self.compact()
            await self._repeating.append(self._key, record, **options)

    async def _rewrite(self, change: Callable[[list[Item]], Iterable[Item]], renew: bool) -> None:
        for _ in range(_REWRITES_MAX):
            contents = await self.read()
            items = list(change(list(contents.items)))
            if not contents.version and not items:
                return
            keep = contents.version != 0 and not renew
            try:
                await self._client.put(
                    self._key,
                    b"".join(map(item_record, items)),
                    ttl=None if keep else self._ttl,
                    keep_deadline=keep,
                    if_absent=not contents.version,
                    if_version=contents.version or None,
                )
                return
            except FailedPreconditionError as error:
                require_unmet(error)
        raise AbortedError(
            grpc.StatusCode.ABORTED,
            f"the array {self._key!r} was changed {_REWRITES_MAX} times while it was rewritten",
            maybe_applied=False,
        )
