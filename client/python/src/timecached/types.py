"""What calls take and give: plain, immutable values.

Keys and values are bytes. Where one is given, a str stands for its UTF-8. Times are aware
datetimes in UTC, on the server's clock, with a resolution of a microsecond; durations are
timedeltas, and where one is given, a number stands for seconds.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any, TypeAlias, TypeVar

from google.protobuf.duration_pb2 import Duration as DurationProto
from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from .v1 import data_pb2, watch_pb2

T = TypeVar("T")

BytesLike: TypeAlias = bytes | bytearray | memoryview | str
"""A key or value: bytes, or a str that stands for its UTF-8."""

Duration: TypeAlias = timedelta | float
"""A timedelta, or seconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def to_bytes(value: BytesLike) -> bytes:
    """The bytes that a key or value stands for. TypeError: it is neither bytes nor str."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"expected bytes or str, not {type(value).__name__}")


def to_names(names: Iterable[T]) -> list[T]:
    """A list of names. TypeError: it is one name, whose letters were not meant."""
    if isinstance(names, (str, bytes)):
        raise TypeError(f"expected a list of names, not {names!r}")
    return list(names)


def encode_json(value: Any) -> bytes:
    """A value as compact JSON in UTF-8, to put; ``Entry.json`` reads it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def to_duration(value: Duration) -> DurationProto:
    """As it goes on the wire. Exact for a timedelta; a number is rounded to a nanosecond."""
    if isinstance(value, timedelta):
        nanos = 1000 * ((value.days * 86400 + value.seconds) * 1_000_000 + value.microseconds)
    elif isinstance(value, (int, float)):
        nanos = round(value * 1_000_000_000)
    else:
        raise TypeError(f"expected a timedelta or seconds, not {value!r}")
    seconds, rest = divmod(abs(nanos), 1_000_000_000)
    sign = 1 if nanos >= 0 else -1
    return DurationProto(seconds=sign * seconds, nanos=sign * rest)


def from_duration(value: DurationProto) -> timedelta:
    """The timedelta, whose resolution is a microsecond."""
    return timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


def from_timestamp(value: Timestamp) -> datetime:
    """The aware datetime, in UTC."""
    return _EPOCH + timedelta(0, value.seconds, value.nanos // 1000)


def to_timestamp(value: datetime) -> Timestamp:
    """As it goes on the wire. ValueError: a datetime without a time zone."""
    if value.tzinfo is None:
        raise ValueError("a datetime without a time zone says no moment")
    since = value - _EPOCH
    return Timestamp(seconds=since.days * 86400 + since.seconds, nanos=since.microseconds * 1000)


@dataclasses.dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a call that failed is tried again.

    Only one that is safe to repeat, and only where its connection was lost or the server is
    stopping; always within the call's timeout. Safe are the calls that change nothing, and
    ``get`` and ``touch``, which leave the same entry if they are done twice; and changes with an
    ``idempotency_id``. Not so ``put``, ``remove``, ``settle``, ``fetch_expired`` and least of all
    ``append``, ``combine`` and ``gather``: what failed may have been done. ``execute`` and what a
    pipeline has in flight are repeated if all their operations are safe; a read among them then
    sees what later ones have done.
    """

    max_attempts: int = 3
    """Attempts in all. 1: none is repeated."""
    min_pause: float = 0.05
    """Seconds. Pauses between attempts double from this, each shortened at random by up to half."""
    max_pause: float = 1.0
    """Seconds. The longest pause."""


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """One part of what a ``gather`` has collected."""

    name: bytes
    value: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class GatheredParts:
    """What has been collected under a key by ``gather``."""

    parts: tuple[Part, ...]
    """In the order in which they came."""
    expected_parts: int = 0
    """How many parts complete the key; 0 where ``expected_names`` says it."""
    expected_names: tuple[bytes, ...] = ()
    """The names that complete the key, in bytewise order."""

    def as_dict(self) -> dict[bytes, bytes]:
        """The parts' values by their names."""
        return {part.name: part.value for part in self.parts}


class _Text:
    """What a key and a value can be read as."""

    __slots__ = ()
    key: bytes
    value: bytes

    @property
    def key_text(self) -> str:
        """The key as text. UnicodeDecodeError: it is not UTF-8."""
        return self.key.decode()

    @property
    def text(self) -> str:
        """The value as text. UnicodeDecodeError: it is not UTF-8."""
        return self.value.decode()

    def json(self) -> Any:
        """The value, read as JSON. ValueError: it is none."""
        return json.loads(self.value)


@dataclasses.dataclass(frozen=True, slots=True)
class Entry(_Text):
    """A live entry."""

    key: bytes
    value: bytes
    """Empty where only keys were asked for."""
    version: int
    """Stands for the value: a renewed time to live leaves it as it is. Grows with every change."""
    put_time: datetime
    """When the time to live last began."""
    deadline: datetime
    """put_time + ttl. The entry dies at most one bucket width later, and never before."""
    parts: GatheredParts | None = None
    """In place of a value, where the key collects the parts of a ``gather``."""
    omitted_value_bytes: int = 0
    """The size of a value that was left out of a scan as too large for a message."""
    create_time: datetime | None = None
    """When the key began to be there: changes and renewals keep it. None: an older server."""
    own_ttl: timedelta | None = None
    """The entry's own time to live, which a renewal gives it again. None: the namespace's."""


@dataclasses.dataclass(frozen=True, slots=True)
class PutResult:
    """What a ``put`` did."""

    version: int
    """The new entry's."""
    previous: Entry | None = None
    """The replaced entry, if there was one and it was asked for."""


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveResult:
    """What a ``remove`` did. True where it removed something."""

    removed: bool
    """Whether the key was there."""
    previous: Entry | None = None
    """The removed entry, if there was one and it was asked for."""

    def __bool__(self) -> bool:
        return self.removed


@dataclasses.dataclass(frozen=True, slots=True)
class AppendResult:
    """What an ``append`` did."""

    version: int
    """The entry's new one."""
    value_bytes: int
    """The value's new length."""
    created: bool
    """Whether the key was not there."""


@dataclasses.dataclass(frozen=True, slots=True)
class CombineResult:
    """What a ``combine`` came to."""

    result: int
    version: int
    """The entry's new one; 0 if it was removed."""
    created: bool
    """Whether the key was not there, and is now."""
    removed: bool
    """Whether the result was 0 and the key is not there now."""


@dataclasses.dataclass(frozen=True, slots=True)
class GatherResult:
    """What a ``gather`` came to."""

    parts: GatheredParts | None
    """All of them, if this part was the last one: the key is gone then."""
    version: int
    """The entry's; 0 if it is complete."""
    count: int
    """How many parts are in."""
    duplicate: bool
    """Whether this part was in, with this value: nothing has changed."""


@dataclasses.dataclass(frozen=True, slots=True)
class SizeResult:
    """What a namespace holds."""

    entries: int
    """Live entries."""
    bytes: int
    """Bytes of their keys and values."""


class ExpiryCause(enum.Enum):
    """Why an entry died."""

    UNKNOWN = 0
    """A cause that this client is too old to know."""
    EXPIRED = 1
    """Its time was up."""
    EVICTED = 2
    """The namespace was full; may come before the deadline."""
    ROTATED = 3
    """Its bucket was killed by hand; may come before the deadline."""
    EXPIRING = 4
    """It is not dead: its time will be up at death_time (``watch_expiring``)."""


@dataclasses.dataclass(frozen=True, slots=True)
class ExpiredEvent(_Text):
    """An entry that died."""

    namespace: str
    key: bytes
    value: bytes
    """Empty with keys_only."""
    version: int
    """Tells a re-put of the same key from the value that died."""
    put_time: datetime
    deadline: datetime
    death_time: datetime
    """From here on no reader saw it."""
    delivered_at: datetime
    """When the server published it."""
    cause: ExpiryCause
    event_id: int = 0
    """In a group only: the event's number, for people to read."""
    attempt: int = 0
    """In a group only: the number of this attempt, from 1. One that ended with its member's stream
    does not count: the next one has the same number."""
    parts: GatheredParts | None = None
    """In place of a value: the parts that came of a ``gather`` that was never completed."""
    omitted_value_bytes: int = 0
    """The size of a value that was left out as too large for a message."""
    returns: int = 0
    """In a group only: how often its member's stream ended before it was settled."""
    create_time: datetime | None = None
    """When the key began to be there: changes and renewals keep it. None: an older server."""
    own_ttl: timedelta | None = None
    """The entry's own time to live, which PutBack gives it again. None: the namespace's."""
    delivery_token: bytes = b""
    """In a group only: names this delivery in a Settlement."""
    last_reason: str = ""
    """In a group only: the reason that the Nack of the last attempt that counted gave."""
    traceparent: str = ""
    """The W3C trace that the entry was to keep: see ``put``."""


class DeadLetterReason(enum.Enum):
    """How the last attempt at an event ended before it became a dead letter."""

    UNKNOWN = 0
    """A letter of an older server, or a reason that this client is too old to know."""
    NACKED = 1
    """By a Nack."""
    TIMED_OUT = 2
    """It was not settled in time."""
    TERMINATED = 3
    """Its member gave it up."""


@dataclasses.dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that a consumer group has given up, as its dead_letter_namespace has it."""

    event: ExpiredEvent
    """The event; ``event.namespace`` is where it died."""
    group: str
    """The group that gave it up."""
    attempts: int
    """How many attempts counted."""
    reason: DeadLetterReason
    """How the last of them ended."""
    time: datetime
    """When the letter was made."""
    reason_text: str = ""
    """What the member gave as its reason for the Nack or Terminate that ended it."""


@dataclasses.dataclass(frozen=True, slots=True)
class WatchBatch:
    """What died in one namespace, in order of death."""

    namespace: str
    events: tuple[ExpiredEvent, ...]
    """May be empty: a heartbeat."""
    watermark: datetime
    """What died at or before this has come, or is counted in ``lost``. Never goes back, but with
    ``log_changed``. In a group: all of that has been settled, too."""
    lost: int = 0
    """Events that this watch missed since the last batch or its resume token: exact."""
    resume_token: bytes = b""
    """Brings a later watch behind this batch. Store it once the batch is handled."""
    reconnected: bool = False
    """Whether this is the namespace's first batch after a break. For information."""
    log_changed: bool = False
    """Whether this is the first batch of another log: the server was restarted without what was in
    it, or the namespace made anew. What the old log had not delivered is lost, in number unknown;
    the watch goes on with the oldest event of the new one."""
    missed_after: datetime | None = None
    """With log_changed: the last watermark of the old log, if there was one."""
    delivered_watermark: datetime | None = None
    """In a group only: what died at or before this has been given to a member, by any of the
    group's streams and fetches, or settled, or counted in ``lost``: nothing more comes from before
    it, but what is given out again. Never goes back, unless the group is moved. 1970-01-01 while no
    moment is known."""


class WatchStart(enum.Enum):
    """Where a group begins, or goes on."""

    NOW = 1
    """With what dies from now on."""
    EARLIEST = 2
    """With the oldest event that is retained."""


GroupPosition: TypeAlias = WatchStart | datetime | bytes
"""A place in the log of a namespace: NOW, EARLIEST, the first retained event that died after an
aware datetime (1970 or later), or the event after the batch of a ``watch`` that had this
``resume_token``."""


@dataclasses.dataclass(frozen=True, slots=True)
class FetchedEvents:
    """What ``fetch_expired`` was given: each event to be settled within the ack_timeout."""

    events: tuple[ExpiredEvent, ...]
    """None where the wait ended without one."""
    watermark: datetime
    """What died at or before this has been settled, or is counted in ``lost``."""
    lost: int
    """Events that the group has lost, said to one member or caller: exact."""
    delivered_watermark: datetime
    """As in WatchBatch."""


class ChangeKind(enum.Enum):
    """What has happened to an entry."""

    UNKNOWN = 0
    """A kind that this client is too old to know."""
    PUT = 1
    """It has a new value: by a put, append, combine, gather or PutBack."""
    RENEWED = 2
    """It has a new deadline, and the value that it had."""
    REMOVED = 3
    """It is gone before its time: by a remove, a combine that came to 0, a complete gather."""


@dataclasses.dataclass(frozen=True, slots=True)
class ChangeEvent(_Text):
    """A change of an entry."""

    kind: ChangeKind
    key: bytes
    value: bytes
    """Of a PUT: its value now. Empty with keys_only."""
    version: int
    """Its version now; of a REMOVED the last one."""
    deadline: datetime | None
    """Its deadline now. None of a REMOVED."""
    time: datetime
    """When it happened: the order of the changes of one key, but not of several."""
    parts: GatheredParts | None = None
    """In place of a value, where the key collects the parts of a ``gather``."""
    omitted_value_bytes: int = 0
    """The size of a value that was left out as too large for a message."""


@dataclasses.dataclass(frozen=True, slots=True)
class ChangeBatch:
    """What has changed in one namespace; changes of one key are in their order."""

    namespace: str
    changes: tuple[ChangeEvent, ...]
    """May be empty: a heartbeat."""
    watermark: datetime
    """Changes from at or before this have come, or are counted in ``lost``. Never goes back, but
    with ``log_changed``."""
    lost: int = 0
    """Changes that this watch missed since the last batch or its resume token: exact."""
    resume_token: bytes = b""
    """Brings a later ``watch_changes`` behind this batch, until the server stops."""
    reconnected: bool = False
    """Whether this is the namespace's first batch after a break. For information."""
    log_changed: bool = False
    """Whether this is the first batch of another log, as after a restart of the server: changes in
    between are lost, in number unknown; scan, or drop what was built from them."""
    missed_after: datetime | None = None
    """With log_changed: the last watermark of the old log, if there was one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ack:
    """The event is done. What a handler that returns None says, too."""


@dataclasses.dataclass(frozen=True, slots=True)
class Nack:
    """Give the event out again."""

    delay: Duration | None = None
    """Until then: 0 to 7 days. None: as the group's retry_delay says."""
    reason: str = ""
    """Why, for people: comes with the next delivery, and is in the dead letter. At most 256 B."""


@dataclasses.dataclass(frozen=True, slots=True)
class Terminate:
    """Give the event up: it becomes a dead letter now, whatever its attempts.

    In a namespace without a dead_letter_namespace it is settled.
    """

    reason: str = ""
    """Why, for people: is in the dead letter. At most 256 B."""


@dataclasses.dataclass(frozen=True, slots=True)
class PutBack:
    """Put it back with its value and a fresh time to live, unless the key is there again."""

    ttl: Duration | None = None
    """The entry's own time to live. None: the one that it had, or else the namespace's."""
    expire_at: datetime | None = None
    """The deadline of this life, in place of now + ttl; as of ``put``."""
    allow_past: bool = False
    """An `expire_at` that is over is no error: the entry expires at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Extend:
    """The member needs longer: another ack_timeout from now. Workers send it by themselves."""


Settle: TypeAlias = Ack | Nack | PutBack | Terminate
"""What a handler may say of an event of a group."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settlement:
    """One event, settled, or extended."""

    delivery_token: bytes
    """From the event: of a delivery, or of ``list_unsettled``. One of the latter settles the event
    whoever holds it; to Extend, a member has to hold it."""
    how: Settle | Extend = dataclasses.field(default_factory=Ack)

    @staticmethod
    def of(event: ExpiredEvent, how: Settle | Extend | None = None) -> Settlement:
        """Of just this delivery of an event. None: Ack."""
        how = Ack() if how is None else how
        return Settlement(event.delivery_token, how)


# --- from the protos; for the client itself ---


def parts_from(message: watch_pb2.GatheredParts) -> GatheredParts:
    """For the client itself."""
    return GatheredParts(
        tuple(Part(part.name, part.value) for part in message.parts),
        message.expected_parts,
        tuple(message.expected_names),
    )


def entry_from(message: data_pb2.Entry, key: bytes | None = None) -> Entry:
    """For the client itself. `key`: of the operation whose result it is."""
    return Entry(
        message.key if key is None else key,
        message.value,
        message.version,
        from_timestamp(message.put_time),
        from_timestamp(message.deadline),
        parts_from(message.parts) if message.HasField("parts") else None,
        message.omitted_value_bytes,
        *_origin(message),
    )


def _origin(message: Any) -> tuple[datetime | None, timedelta | None]:
    return (
        from_timestamp(message.create_time) if message.HasField("create_time") else None,
        from_duration(message.own_ttl) if message.HasField("own_ttl") else None,
    )


_CAUSES = {cause.value: cause for cause in ExpiryCause}


def event_from(message: watch_pb2.ExpiredEvent) -> ExpiredEvent:
    """For the client itself."""
    return ExpiredEvent(
        message.namespace,
        message.key,
        message.value,
        message.version,
        from_timestamp(message.put_time),
        from_timestamp(message.deadline),
        from_timestamp(message.death_time),
        from_timestamp(message.delivered_at),
        _CAUSES.get(message.cause, ExpiryCause.UNKNOWN),
        message.event_id,
        message.attempt,
        parts_from(message.parts) if message.HasField("parts") else None,
        message.omitted_value_bytes,
        message.returns,
        *_origin(message),
        message.delivery_token,
        message.last_reason,
        message.traceparent,
    )


def fetched_from(message: watch_pb2.FetchExpiredResponse) -> FetchedEvents:
    """For the client itself."""
    return FetchedEvents(
        tuple(map(event_from, message.events)),
        from_timestamp(message.watermark),
        message.lost,
        from_timestamp(message.delivered_watermark),
    )


_KINDS = {kind.value: kind for kind in ChangeKind}


def change_from(message: watch_pb2.ChangeEvent) -> ChangeEvent:
    """For the client itself."""
    return ChangeEvent(
        _KINDS.get(message.kind, ChangeKind.UNKNOWN),
        message.key,
        message.value,
        message.version,
        from_timestamp(message.deadline) if message.HasField("deadline") else None,
        from_timestamp(message.time),
        parts_from(message.parts) if message.HasField("parts") else None,
        message.omitted_value_bytes,
    )


_REASONS = {reason.value: reason for reason in DeadLetterReason}


def decode_dead_letter(entry: Entry | ExpiredEvent) -> DeadLetter:
    """What an entry of a dead_letter_namespace holds; of one that expired, too.

    ValueError: it is no dead letter. Of the letter of an older server the reason is UNKNOWN, and
    the time that of its put.
    """
    # <namespace>/<group>/<event_id>, behind which #<partition> may stand.
    names = entry.key.split(b"/")
    event_id = names[-1].partition(b"#")[0]
    message = watch_pb2.ExpiredEvent()
    try:
        message.ParseFromString(entry.value)
    except DecodeError:
        message.Clear()
    if len(names) != 3 or not event_id.isdigit() or message.namespace.encode() != names[0]:
        raise ValueError(f"not a dead letter: {entry.key!r}")
    event = event_from(message)
    if not event.event_id:
        event = dataclasses.replace(event, event_id=int(event_id))
    if not message.HasField("dead_letter"):
        group, unknown = names[1].decode(), DeadLetterReason.UNKNOWN
        return DeadLetter(event, group, event.attempt, unknown, entry.put_time)
    letter = message.dead_letter
    return DeadLetter(
        event,
        letter.group,
        letter.attempts,
        _REASONS.get(letter.reason, DeadLetterReason.UNKNOWN),
        from_timestamp(letter.time),
        letter.reason_text,
    )
