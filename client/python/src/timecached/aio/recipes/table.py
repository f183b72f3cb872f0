"""A set whose members expire, for asyncio."""

from __future__ import annotations

from ...recipe_types import member_of, prefix_of
from ...types import BytesLike, Duration, to_bytes
from ..client import Client


class Table:
    """A set whose members expire, in the client's namespace.

    ::

        online = Table(client, "online", ttl=60)
        await online.add("alice")
        who = await online.members()

    Each member is an entry, NAME/MEMBER, so that no second entry needs updating. No name of a table
    or other structure in a namespace may be another one's name followed by a '/'.

    Guarantee: ``add``, ``remove`` and ``contains`` of one member are atomic, from whatever client.
    ``members`` has each member that is in the table during the whole of it exactly once, and others
    at most once. Members expire one by one, each with an event (``member_of``).

    A call without an answer may have happened. A repeated one has the same effect; only its result
    may be wrong because the first attempt was applied.

    Cost: one round trip and O(1) for each call. ``members`` scans: O(entries of the namespace), so
    give a table whose listing matters a namespace of its own.
    """

    def __init__(self, client: Client, name: BytesLike, *, ttl: Duration | None = None) -> None:
        """Makes it; no call.

        `ttl`: how long a member stays without being added again: 1 ms to the namespace's max_ttl.
        None: the namespace's ttl.
        """
        self._client = client
        self._prefix = prefix_of(name)
        self._ttl = ttl

    @property
    def key_prefix(self) -> bytes:
        """What the keys of its members begin with, for ``Client.watch``."""
        return self._prefix

    async def add(self, member: BytesLike) -> bool:
        """Adds a member, or renews its time to live. Returns whether it is new."""
        key = self._prefix + to_bytes(member)
        put = await self._client.put(key, b"", ttl=self._ttl, return_previous=True)
        return put.previous is None

    async def remove(self, member: BytesLike) -> bool:
        """Returns whether it was in the table."""
        return bool(await self._client.remove(self._prefix + to_bytes(member)))

    async def contains(self, member: BytesLike) -> bool:
        """Never renews."""
        return await self._client.contains(self._prefix + to_bytes(member))

    async def members(self) -> list[bytes]:
        """All members, in bytewise order."""
        entries = self._client.scan(self._prefix, keys_only=True)
        return sorted([entry.key[len(self._prefix) :] async for entry in entries])

    def member_of(self, key: BytesLike) -> bytes | None:
        """The member whose entry has this key, as of an ExpiredEvent; None: it is not of this."""
        return member_of(self._prefix, key)
