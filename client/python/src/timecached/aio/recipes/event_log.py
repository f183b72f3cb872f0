"""A log of recent events, written and read by many clients, for asyncio."""

from __future__ import annotations

from datetime import datetime, timedelta

from ...errors import TimecacheError
from ...operation import MAX_OPERATIONS, Operation
from ...reasons import ErrorReason
from ...recipe_types import (
    LogEvent,
    Page,
    Position,
    decode_events,
    event_record,
    new_id,
    prefix_of,
    to_micros,
)
from ...types import BytesLike, Duration, to_bytes
from ..client import Client

_ALL_OF_IT = 2**64 - 1  # An offset behind every event of a chunk.


class EventLog:
    """A log of recent events, in chunks of time.

    ::

        log = EventLog(client, "audit", chunk=60, chunks=61)
        now = datetime.now(timezone.utc)
        await log.append(now, "alice logged in")
        last_hour = await log.read(now - timedelta(hours=1), now)

    The entry NAME/N of the client's namespace has the events from N x chunk on, and lives for
    chunks x chunk. An old chunk expires as any entry; a watch on ``key_prefix`` archives it
    (``decode_events``).

    Guarantee: an event can be read for at least (chunks - 1) x chunk after its time, if it is
    appended at its time: the clocks of the writers and of the server must agree; their difference
    shortens this time. Each event comes once, also if ``append`` was repeated. ``read_new`` gives
    each event that is appended at most one chunk after its time exactly once, in whatever order
    writers are; later ones only ``read`` gives.

    A call without an answer may have happened. The client repeats an ``append`` where its
    connection was lost; after another error append the same event again, with its id: readers
    recognise it by that.

    Cost: ``append`` is one round trip, and sends the event and 20 B. Reading transfers whole
    chunks, as many as fit into a response (3 MiB) for each round trip; so ``read_new`` transfers at
    least two chunks. A chunk has room for the namespace's max_value_bytes; beyond that ``append``
    is FailedPreconditionError (VALUE_TOO_LARGE): take shorter chunks, or several logs.
    """

    def __init__(
        self, client: Client, name: BytesLike, *, chunk: Duration = 10.0, chunks: int = 61
    ) -> None:
        """Makes it; no call.

        - `chunk`: the period that the events of one entry cover, at least 1 ms.
        - `chunks`: how many of them are kept, 2 to 4,096. The namespace's max_ttl must be at least
          chunks x chunk.
        """
        # An event that comes twice is read once.
        self._client = client.with_options(repeatable=True)
        self._prefix = prefix_of(name)
        self._chunk = chunk if isinstance(chunk, timedelta) else timedelta(seconds=chunk)
        self._chunks = chunks

    @property
    def key_prefix(self) -> bytes:
        """What the keys of its chunks begin with, for ``Client.watch``."""
        return self._prefix

    async def append(self, time: datetime, data: BytesLike, *, id: int | None = None) -> int:
        """Adds an event. Returns its id: `id`, of ``new_id``; None: a new one.

        `time`: with a time zone; with a resolution of 1 us.
        """
        event = LogEvent(time, to_bytes(data), new_id() if id is None else id)
        key, ttl = self._key(self._chunk_of(time)), self._chunk * self._chunks
        await self._client.append(key, event_record(event), ttl=ttl)
        return event.id

    async def read(self, begin: datetime, end: datetime) -> Page:
        """The events from `begin` on and before `end`.

        may_have_missed: `begin` is more than (chunks - 1) x chunk before `end`. DataLossError: an
        entry is no chunk.
        """
        if begin >= end:
            return Page((), False)
        last = self._chunk_of(end - timedelta(microseconds=1))
        oldest = last - self._chunks + 1
        wanted = self._chunk_of(begin)
        values = await self._get(max(wanted, oldest - 1), last)
        events = [event for value in values for event in decode_events(value)]
        events = [event for event in events if begin <= event.time < end]
        return Page(tuple(sorted(events, key=lambda event: event.time)), wanted < oldest)

    def position_at(self, time: datetime) -> Position:
        """The position from which ``read_new`` starts with the events of this time's chunk."""
        return Position(self._chunk_of(time), 0, _ALL_OF_IT)

    async def read_new(self, position: Position, now: datetime) -> tuple[Page, Position]:
        """The events since `position`, up to the chunk of `now`, and the position after them.

        may_have_missed: the last call was more than (chunks - 1) x chunk ago.
        """
        last = max(self._chunk_of(now), position.chunk)
        oldest = last - self._chunks + 1
        # A chunk more may still live, and the one before the position's may have got late events.
        first = max(position.chunk - 1, oldest - 1)
        values = await self._get(first, last)
        read = {position.chunk: position.offset, position.chunk - 1: position.previous_offset}
        events: list[LogEvent] = []
        for number, value in enumerate(values, first):
            events += decode_events(value, read.get(number, 0))
        previous = len(values[-2]) if len(values) > 1 else 0
        after = Position(last, len(values[-1]), previous)
        return Page(tuple(events), position.chunk < oldest), after

    def _chunk_of(self, time: datetime) -> int:
        return to_micros(time) // (self._chunk // timedelta(microseconds=1))

    def _key(self, chunk: int) -> bytes:
        return self._prefix + str(chunk).encode()

    # The values of these chunks; empty for missing ones.
    async def _get(self, first: int, last: int) -> list[bytes]:
        values = {chunk: b"" for chunk in range(first, last + 1)}
        wanted = list(values)
        while wanted:
            # What does not fit into a response fits into a later one: each has one at least.
            asked, wanted = wanted[:MAX_OPERATIONS], wanted[MAX_OPERATIONS:]
            results = await self._client.execute([Operation.get(self._key(n)) for n in asked])
            for number, result in zip(asked, results, strict=True):
                if isinstance(result, TimecacheError):
                    if result.reason != ErrorReason.MAX_RESPONSE_BYTES:
                        raise result
                    wanted.append(number)
                elif result is not None:
                    values[number] = result.value
        return list(values.values())
