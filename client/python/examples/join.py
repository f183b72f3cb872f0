"""A join of two streams by id: impressions and clicks, each pair within a minute.

usage: join.py [ADDRESS]

Each tuple is one call. The call that brings the second one of a pair gets both; what stays alone
expires with the tuple that came.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

import timecached
from timecached import aio

STREAMS = ("impression", "click")
WINDOW = timedelta(minutes=1)


class Join:
    """Rows of several streams, put together by their id."""

    def __init__(self, client: aio.Client, namespace: str) -> None:
        self._client = client
        self._rows = client.namespace(namespace)

    async def prepare(self) -> None:
        """Makes the namespace if it is not there."""
        try:
            await self._client.create_namespace(
                self._rows.namespace_name, timecached.NamespaceOptions(ttl=WINDOW)
            )
        except timecached.AlreadyExistsError:
            pass

    async def add(self, row: str, stream: str, value: bytes) -> dict[bytes, bytes] | None:
        """All tuples of the row, if this was the last one. The same tuple may be added again."""
        result = await self._rows.gather(row, stream, value, expected_names=STREAMS)
        return None if result.parts is None else result.parts.as_dict()

    async def incomplete(self) -> AsyncIterator[tuple[str, dict[bytes, bytes]]]:
        """Rows that were not complete in time, with the tuples that came."""
        async with self._rows.watch() as watcher:
            async for batch in watcher:
                for event in batch.events:
                    if event.parts is not None:
                        yield event.key_text, event.parts.as_dict()


async def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7171"
    async with aio.Client(address) as client:
        join = Join(client, "ads")
        await join.prepare()
        print(await join.add("ad-1", "impression", b"page 7"))
        print(await join.add("ad-1", "click", b"button 3"))


if __name__ == "__main__":
    asyncio.run(main())
