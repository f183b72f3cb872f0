"""What recipes give, and the keys, ids and records of both of their forms."""

from __future__ import annotations

import dataclasses
import secrets
import struct
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

import grpc

from .errors import DataLossError, FailedPreconditionError
from .reasons import ErrorReason
from .types import BytesLike, to_bytes

__all__ = [
    "Contents",
    "IncompleteJoin",
    "Item",
    "Joined",
    "LogEvent",
    "Page",
    "Position",
    "decode_events",
    "fold_array",
    "join_id",
    "new_id",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One of an Array."""

    id: int
    """Unique in the array."""
    value: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Contents:
    """What an Array has."""

    items: tuple[Item, ...]
    """In the order in which they were added."""
    version: int
    """The entry's; 0: there is none."""
    stored_bytes: int
    """The entry's size."""
    compact_bytes: int
    """Its size after a compaction."""


@dataclasses.dataclass(frozen=True, slots=True)
class Joined:
    """A row of a Join."""

    id: bytes
    tuples: tuple[bytes, ...]
    """One of each source, in the order of the sources."""


@dataclasses.dataclass(frozen=True, slots=True)
class IncompleteJoin:
    """A row that was not complete in time."""

    id: bytes
    tuples: tuple[bytes | None, ...]
    """Those that came, in the order of the sources."""


@dataclasses.dataclass(frozen=True, slots=True)
class LogEvent:
    """One of an EventLog."""

    time: datetime
    data: bytes
    id: int
    """Identifies it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """Events that were read."""

    events: tuple[LogEvent, ...]
    """Ordered by chunk; within a chunk in ``read`` by time, in ``read_new`` by arrival."""
    may_have_missed: bool
    """Requested events may have expired."""


@dataclasses.dataclass(frozen=True, slots=True)
class Position:
    """A reader's position in an EventLog: plain numbers, which may be stored."""

    chunk: int
    """The newest one that was read."""
    offset: int
    """Bytes of it that were read."""
    previous_offset: int
    """The same of the chunk before."""


def join_id(fields: Iterable[BytesLike]) -> bytes:
    """An id of several fields: two are equal only if all of their fields are."""
    data = [to_bytes(field) for field in fields]
    return b"".join(b"%d:%b" % (len(field), field) for field in data)


def new_id() -> int:
    """A random number of 64 bits, not 0: two are equal with a probability of 2^-64."""
    return secrets.randbelow(2**64 - 1) + 1


def prefix_of(name: BytesLike) -> bytes:
    """What the keys of a structure begin with. For the client itself."""
    return to_bytes(name) + b"/"


def member_of(prefix: bytes, key: BytesLike) -> bytes | None:
    """The member of a key; None if it is not of this structure. For the client itself."""
    data = to_bytes(key)
    return data[len(prefix) :] if data.startswith(prefix) else None


_UNMET = (ErrorReason.KEY_EXISTS, ErrorReason.KEY_NOT_FOUND, ErrorReason.VERSION_MISMATCH)


def require_unmet(error: FailedPreconditionError) -> None:
    """Raises it again, unless a condition of the call did not hold. For the client itself."""
    if error.reason not in _UNMET:
        raise error


# --- records: numbers are little-endian, and bytes behind their length ---

_ID = struct.Struct("<Q")
_SIZE = struct.Struct("<I")
_EVENT = struct.Struct("<QqI")
_ADDED, _REMOVED = b"+", b"-"


def item_record(item: Item) -> bytes:
    """For the client itself."""
    return _ADDED + _ID.pack(item.id) + _SIZE.pack(len(item.value)) + item.value


def removal_record(id: int) -> bytes:
    """For the client itself."""
    return _REMOVED + _ID.pack(id)


def fold_array(value: bytes, version: int = 0) -> Contents:
    """Decodes the value of an Array's entry, as an ExpiredEvent has it. DataLossError: it is none.

    `version`: of the entry.
    """
    items: dict[int, Item | None] = {}
    at = 0
    while at < len(value):
        kind, end = value[at : at + 1], at + 1 + _ID.size
        fits = end <= len(value) and kind in (_ADDED, _REMOVED)
        begin = end + _SIZE.size
        if fits and kind == _ADDED:
            fits = begin <= len(value)
            end = begin + _SIZE.unpack_from(value, end)[0] if fits else begin
        if not fits or end > len(value):
            raise _unreadable("no array", at, value)
        (id,) = _ID.unpack_from(value, at + 1)
        # Later records of an id are repetitions of earlier calls, unless they remove it.
        if kind == _REMOVED:
            items[id] = None
        elif id not in items:
            items[id] = Item(id, value[begin:end])
        at = end
    left = tuple(item for item in items.values() if item is not None)
    size = sum(1 + _ID.size + _SIZE.size + len(item.value) for item in left)
    return Contents(left, version, len(value), size)


def event_record(event: LogEvent) -> bytes:
    """For the client itself."""
    return _EVENT.pack(event.id, to_micros(event.time), len(event.data)) + event.data


def decode_events(value: bytes, offset: int = 0) -> list[LogEvent]:
    """The events in a chunk of an EventLog. DataLossError: the value is none.

    `offset`: only those that begin there or behind it.
    """
    events: list[LogEvent] = []
    ids: set[int] = set()
    at = 0
    while at < len(value):
        begin = at + _EVENT.size
        if begin > len(value):
            raise _unreadable("no chunk of events", at, value)
        id, micros, size = _EVENT.unpack_from(value, at)
        if begin + size > len(value):
            raise _unreadable("no chunk of events", at, value)
        # Repeated events were read the first time.
        if id not in ids and at >= offset:
            time = _EPOCH + timedelta(microseconds=micros)
            events.append(LogEvent(time, value[begin : begin + size], id))
        ids.add(id)
        at = begin + size
    return events


def to_micros(time: datetime) -> int:
    """Microseconds since 1970. ValueError: a datetime without a time zone."""
    if time.tzinfo is None:
        raise ValueError("a datetime without a time zone says no moment")
    return (time - _EPOCH) // timedelta(microseconds=1)


def _unreadable(what: str, at: int, value: bytes) -> DataLossError:
    message = f"the value is {what}: byte {at} of {len(value)} begins no whole record"
    return DataLossError(grpc.StatusCode.DATA_LOSS, message, maybe_applied=False)
