"""Tracks whether all work derived from a message was done in time, for asyncio."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any

from ...operation import Operation
from ...recipe_types import member_of, new_id, prefix_of
from ...types import BytesLike, CombineResult, Duration, ExpiredEvent, ExpiryCause, to_bytes
from ..client import Client

# In the number of a tree that is not tracked yet, or any more. A missing entry counts as this;
# ``track`` takes it away.
_UNTRACKED = 1


class Acker:
    """Tracks trees of tuples, each by its root's name: Storm's acker.

    ::

        acker = Acker(client, "acks")
        first = acker.new_id()
        await acker.track("message-7", [first])     # The spout, when it emits.
        a = acker.new_id()
        await acker.ack("message-7", first, [a])    # A bolt that emitted `a` for it.
        done = await acker.ack("message-7", a)      # The last one: true.

    One number for a tree, in the entry NAME/ROOT of the client's namespace: the xor of the ids of
    all tuples that were emitted or acknowledged, which is 0 when each has been both. Tuples may be
    acknowledged in any order, also before ``track``.

    Guarantee: a tracked tree ends in one of three ways. It is *done*: true is returned to exactly
    one call. It has *failed by time-out*: its entry expires, exactly once, at most a bucket width
    after its ttl (``failed_root``). Or ``fail`` has removed it. A lost or late acknowledgement
    fails its own tree, never another; one after the end creates an entry without a tree, which
    ``failed_root`` ignores. Ids are random: the probability that a tree counts as done by chance is
    2^-63.

    A call without an answer may have happened. ``track``: emit under a new root; the old one, if it
    is there, fails. ``ack``: do not repeat it, since twice is not at all. The tree is done, though
    no caller received that, or fails. A root that was tracked, and whose failure has not been
    delivered when the watch's watermark is beyond its time, is done.

    Cost: one round trip and O(1) for a call, a share of one in a pipeline or ``execute`` by the
    operations; about 40 B for a tree beside its name.
    """

    def __init__(self, client: Client, name: BytesLike, *, ttl: Duration | None = None) -> None:
        """Makes it; no call.

        `ttl`: how long a tree may take: 1 ms to the namespace's max_ttl. None: the namespace's.
        """
        self._client = client
        self._prefix = prefix_of(name)
        self._ttl = ttl

    @property
    def key_prefix(self) -> bytes:
        """What the keys of its trees begin with, for ``Client.watch``."""
        return self._prefix

    @staticmethod
    def new_id() -> int:
        """The id of a tuple: random, not 0, and even: the lowest bit says what is tracked."""
        while True:
            id = new_id() & ~_UNTRACKED
            if id:
                return id

    async def track(self, root: BytesLike, emitted: Iterable[int]) -> bool:
        """Begins a tree with the tuples that its source emits.

        True: all of them are acknowledged already. Call it once for each root: do not reuse the
        name of a root for at least twice the ttl.
        """
        return (await self._client.combine(**self._change(root, _UNTRACKED, emitted))).removed

    async def ack(self, root: BytesLike, tuple: int, emitted: Iterable[int] = ()) -> bool:
        """A tuple was processed; `emitted` were derived from it. True: the tree is now done."""
        return (await self._client.combine(**self._change(root, tuple, emitted))).removed

    async def fail(self, root: BytesLike) -> bool:
        """Gives up a tree. True: it existed, and no event follows. False: it is done, or failed."""
        return bool(await self._client.remove(self._prefix + to_bytes(root)))

    def track_operation(self, root: BytesLike, emitted: Iterable[int]) -> Operation[bool]:
        """``track`` for a pipeline or ``execute``."""
        return Operation.combine(**self._change(root, _UNTRACKED, emitted)).map(_is_done)

    def ack_operation(
        self, root: BytesLike, tuple: int, emitted: Iterable[int] = ()
    ) -> Operation[bool]:
        """``ack`` for a pipeline or ``execute``."""
        return Operation.combine(**self._change(root, tuple, emitted)).map(_is_done)

    def failed_root(self, event: ExpiredEvent) -> bytes | None:
        """The root of the tree whose failure this event of a watch or group reports.

        None for other keys, and for entries of late calls. An eviction or rotation fails a tree,
        too.
        """
        try:
            number = int(event.value)
        except ValueError:
            return None
        if event.cause is ExpiryCause.EXPIRING or number & _UNTRACKED:
            return None
        return member_of(self._prefix, event.key)

    def _change(self, root: BytesLike, first: int, emitted: Iterable[int]) -> dict[str, Any]:
        bits = functools.reduce(operator.xor, emitted, first)
        return {
            "key": self._prefix + to_bytes(root),
            "xor": (bits ^ 1 << 63) - (1 << 63),  # As a signed number.
            "initial": _UNTRACKED,
            "remove_if_zero": True,
            "ttl": self._ttl,
        }


def _is_done(combined: CombineResult) -> bool:
    return combined.removed
