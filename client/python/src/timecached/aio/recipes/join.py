"""Joins of streams by id, for asyncio."""

from __future__ import annotations

from collections.abc import Iterable

from ...operation import Operation
from ...recipe_types import IncompleteJoin, Joined, member_of, prefix_of
from ...types import (
    BytesLike,
    Duration,
    ExpiredEvent,
    ExpiryCause,
    GatheredParts,
    GatherResult,
    to_bytes,
    to_names,
)
from ..client import Client


class Join:
    """Joins tuples of several sources that have the same id: Storm's SingleJoinBolt.

    ::

        people = Join(client, "people", ["gender", "age"])
        await people.add("7", "gender", "female")  # None yet.
        row = await people.add("7", "age", "42")   # Joined(b"7", (b"female", b"42"))

    The tuples of an id wait in the entry NAME/ID of the client's namespace.

    Guarantee: each id ends in exactly one of two ways. It is *complete*: the row is returned to
    exactly one call, the one that added the last tuple. Or it has *failed by time-out*: one event
    has the tuples that came (``incomplete``). A tuple that comes after the end starts a new row of
    the id, which fails alone.

    A call without an answer may have happened: add it again. If it completed the row, then the row
    was lost with the answer, and the repetition fails alone, by time-out; so an application that
    must not lose a row keeps its tuples until the row is handled.

    Cost: one round trip for a tuple, in a pipeline or ``execute`` by ``operation`` a share of one;
    O(its size) and, for the last one, O(the row's). A waiting row takes its tuples, the names of
    all sources, and about 40 B: use short names.
    """

    def __init__(
        self,
        client: Client,
        name: BytesLike,
        sources: Iterable[BytesLike],
        *,
        ttl: Duration | None = None,
    ) -> None:
        """Makes it; no call.

        - `sources`: the streams to join: 1 to 1,024 different names of 1 to 256 B. All joins of one
          name must have the same ones.
        - `ttl`: how long an id waits for its last tuple, from its first one on. None: the
          namespace's ttl.
        """
        self._client = client
        self._prefix = prefix_of(name)
        self._sources = [to_bytes(source) for source in to_names(sources)]
        self._ttl = ttl

    @property
    def key_prefix(self) -> bytes:
        """What the keys of its rows begin with, for ``Client.watch``."""
        return self._prefix

    async def add(self, id: BytesLike, source: BytesLike, tuple: BytesLike) -> Joined | None:
        """The row, if this tuple completes it.

        `id`: of several fields by ``join_id``. AlreadyExistsError (PART_EXISTS): this source has
        added another tuple for the id, which is kept. The same one again changes nothing.
        """
        gathered = await self._client.gather(
            self._prefix + to_bytes(id), source, tuple, expected_names=self._sources, ttl=self._ttl
        )
        return self._row(to_bytes(id), gathered)

    def operation(
        self, id: BytesLike, source: BytesLike, tuple: BytesLike
    ) -> Operation[Joined | None]:
        """``add`` for a pipeline or ``execute``."""
        return Operation.gather(
            self._prefix + to_bytes(id), source, tuple, expected_names=self._sources, ttl=self._ttl
        ).map(lambda gathered: self._row(to_bytes(id), gathered))

    def incomplete(self, event: ExpiredEvent) -> IncompleteJoin | None:
        """The row whose failure this event of a watch or group reports; None for other keys.

        An eviction or rotation fails a row, too.
        """
        id = member_of(self._prefix, event.key)
        if id is None or event.parts is None or event.cause is ExpiryCause.EXPIRING:
            return None
        return IncompleteJoin(id, self._sorted(event.parts))

    def _row(self, id: bytes, gathered: GatherResult) -> Joined | None:
        if gathered.parts is None:
            return None
        return Joined(id, tuple(each or b"" for each in self._sorted(gathered.parts)))

    def _sorted(self, parts: GatheredParts) -> tuple[bytes | None, ...]:
        by_name = parts.as_dict()
        return tuple(by_name.get(source) for source in self._sources)
