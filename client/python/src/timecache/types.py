"""What calls take and give: plain, immutable values.

Keys and values are bytes. Where one is given, a str stands for its UTF-8. Times are aware
datetimes in UTC, on the server's clock, with a resolution of a microsecond; durations are
timedeltas, and where one is given, a number stands for seconds.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, TypeAlias, TypeVar

from google.protobuf.duration_pb2 import Duration as DurationProto
from google.protobuf.timestamp_pb2 import Timestamp

from .v1 import data_pb2, groups_pb2, namespaces_pb2, server_pb2, watch_pb2

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
    return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


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
    ``get`` and ``touch``, which leave the same entry if they are done twice. Not so ``put``,
    ``remove``, ``execute``, ``settle`` and least of all ``append``, ``combine`` and ``gather``:
    what failed may have been done.
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
    """In a group only: names the event in a Settlement."""
    attempt: int = 0
    """In a group only: how often it has been given out, this time included."""
    parts: GatheredParts | None = None
    """In place of a value: the parts that came of a ``gather`` that was never completed."""
    omitted_value_bytes: int = 0
    """The size of a value that was left out as too large for a message."""


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
    it, or the namespace made anew. What the old log still had to tell is lost, in number unknown;
    the watch goes on with the oldest event of the new one."""
    missed_after: datetime | None = None
    """With log_changed: the last watermark of the old log, if there was one."""


class Ack:
    """The event is done. What a handler that returns None says, too."""

    def __repr__(self) -> str:
        return "Ack()"


@dataclasses.dataclass(frozen=True, slots=True)
class Nack:
    """Give the event out again."""

    delay: Duration = 0
    """Until then: 0 to 7 days."""


@dataclasses.dataclass(frozen=True, slots=True)
class PutBack:
    """Put it back with its value and a fresh time to live, unless the key is there again."""

    ttl: Duration | None = None
    """The entry's own time to live. None: the namespace's."""


Settle: TypeAlias = Ack | Nack | PutBack
"""What to do with an event of a group."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settlement:
    """One event, settled."""

    event_id: int
    attempt: int
    how: Settle = dataclasses.field(default_factory=Ack)


class LimitPolicy(enum.Enum):
    """What happens to a put that would pass max_entries or max_bytes."""

    REJECT = 1
    EVICT_OLDEST = 2


class Durability(enum.Enum):
    """What a namespace survives; ASYNC and SYNC need a server with a journal."""

    MEMORY = 1
    ASYNC = 2
    SYNC = 3


class RestartPolicy(enum.Enum):
    """Whether the time counts for which the server is down."""

    FIRE = 1
    PAUSE = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class NamespaceOptions:
    """How a namespace behaves; namespaces.proto has ranges and defaults.

    None: the default where one is made, no change where it is updated. In answers all are set.
    """

    ttl: timedelta | None = None
    """Time to live of an entry that brings none of its own. Default 30 s."""
    num_buckets: int | None = None
    """An entry outlives its ttl by at most ttl / (num_buckets - 1). Default 101."""
    max_ttl: timedelta | None = None
    """Longest own time to live of an entry. Default 7 days, or ttl."""
    sliding: bool | None = None
    """Whether ``get`` renews the time to live."""
    max_entries: int | None = None
    """Most live entries. 0: no limit."""
    max_bytes: int | None = None
    """Most bytes of live keys and values. 0: no limit."""
    limit_policy: LimitPolicy | None = None
    """What happens at these two. Default REJECT."""
    max_value_bytes: int | None = None
    """Largest value: 1 B to 16 MiB. Default 1 MiB."""
    event_retention: timedelta | None = None
    """How long events stay readable. Default 5 min."""
    event_retention_bytes: int | None = None
    """Memory for them. Default 64 MiB."""
    num_shards: int | None = None
    """Parts of the map with a lock of their own. Fixed at creation."""
    dead_letter_namespace: str | None = None
    """Where events go that a group gave out max_attempts times in vain."""
    max_operations_per_second: int | None = None
    """0: no limit."""
    max_backlog_bytes: int | None = None
    """Memory for what all groups together have not settled."""
    unused_group_ttl: timedelta | None = None
    """How long a group that was made by use lives without a member. Default 7 days."""
    durability: Durability | None = None
    """What the namespace survives. Default MEMORY."""
    restart_policy: RestartPolicy | None = None
    """What a restart means for its entries. Default FIRE."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NamespaceStatistics:
    """What a namespace holds and has done; namespaces.proto describes each number."""

    entries: int
    bytes: int
    memory_bytes: int
    live_buckets: int
    expired: int
    evicted: int
    rotated: int
    events_retained: int
    events_retained_bytes: int
    watchers: int
    watermark: datetime | None
    lateness_p50: timedelta | None
    lateness_p99: timedelta | None
    lateness_max: timedelta | None
    bound_violations: int
    rate_limited: int
    puts: int
    hits: int
    misses: int
    events_reclaimed: int
    backlog_bytes: int
    backlog_limit_bytes: int
    groups_expired: int
    appends: int
    combines: int
    gathers: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Namespace:
    """A namespace."""

    name: str
    options: NamespaceOptions
    """In force."""
    bucket_width: timedelta
    """The most that an entry may outlive its ttl."""
    statistics: NamespaceStatistics | None = None
    """Where asked for."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupOptions:
    """How a consumer group behaves; groups.proto has the ranges. None as in NamespaceOptions."""

    ack_timeout: timedelta | None = None
    """How long a member has to settle an event. Default 30 s."""
    max_attempts: int | None = None
    """How often an event is given out before it is a dead letter. Default 5."""
    max_backlog_bytes: int | None = None
    """Memory for unsettled events. Default 256 MiB."""
    unused_ttl: timedelta | None = None
    """How long the group may be without a member. Zero: for ever."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupStatistics:
    """What a group holds and has done; groups.proto describes each number."""

    members: int
    backlog: int
    backlog_bytes: int
    in_flight: int
    oldest_unsettled: datetime | None
    delivered: int
    redelivered: int
    acked: int
    nacked: int
    put_back: int
    timed_out: int
    dead_lettered: int
    dead_letter_failures: int
    lost: int
    unresponsive_members: int
    dead_letters_dropped: int
    in_flight_bytes: int
    dead_letters_denied: int
    unused_since: datetime | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """A consumer group."""

    name: str
    namespace: str
    options: GroupOptions
    """In force."""
    created_by: str
    """The principal that made it."""
    statistics: GroupStatistics | None = None
    """Where asked for."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LimitUse:
    """A limit, and what counts towards it."""

    used: int
    max: int
    """0: no limit."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryShares:
    """What holds the memory that the server's max_memory_bytes counts."""

    entries_bytes: int
    retained_bytes: int
    """Events that logs retain; they give way to entries."""
    backlog_bytes: int
    """Events that only consumer groups, or messages in flight, hold."""


class CheckpointState(enum.Enum):
    """What the journal does to become smaller."""

    IDLE = 1
    WRITING = 2
    """Live entries are written again."""
    WAITING = 3
    """They are; what was before them goes once no event from before is retained."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class JournalStatus:
    """The journal on the server's disk; counts are since the server's start."""

    directory: str
    disk_bytes: int
    waiting_bytes: LimitUse
    """Changes in memory that wait for the disk; beyond the limit they are refused."""
    disk_full: bool
    """Whether changes of durable namespaces are refused (DISK_FULL)."""
    commits: int
    appends: int
    written_bytes: int
    commit_time: timedelta
    """Of all commits together."""
    commit_p99: timedelta | None
    """99 % of commits took no longer, within a factor of two."""
    checkpoints: int
    """That are over."""
    checkpoint_state: CheckpointState | None
    """None: one that this client is too old to know."""


@dataclasses.dataclass(frozen=True, slots=True)
class BackupPiece:
    """A piece of a backup of the server's journal."""

    total_bytes: int
    """Of all pieces together."""
    data: bytes
    """At most 1 MiB, never empty."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerInfo:
    """The server; limits and the journal are None for who may not read all namespaces."""

    version: str
    start_time: datetime | None
    now: datetime | None
    draining: bool
    namespaces: LimitUse | None
    entries: LimitUse | None
    bytes: LimitUse | None
    watchers: LimitUse | None
    memory_bytes: LimitUse | None
    connections: LimitUse | None
    memory_shares: MemoryShares | None
    journal: JournalStatus | None
    """None, too, where there is none: all namespaces are of durability MEMORY."""

    @property
    def has_journal(self) -> bool:
        """Whether durable namespaces are possible."""
        return self.journal is not None


# --- from and to the protos; for the client itself ---

M = TypeVar("M")


def _field_types(cls: type[Any]) -> Mapping[str, Any]:
    """The type of each field, without "| None"."""
    hints = typing.get_type_hints(cls)
    plain = {}
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if isinstance(hint, types.UnionType):
            (hint,) = (part for part in hint.__args__ if part is not type(None))
        plain[field.name] = hint
    return plain


def from_proto(cls: type[M], message: Any) -> M:
    """Fills a dataclass from the fields of the same names."""
    values: dict[str, Any] = {}
    for name, kind in _field_types(cls).items():
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            continue
        if field.has_presence and not message.HasField(name):
            values[name] = None
            continue
        value = getattr(message, name)
        if kind is timedelta:
            value = from_duration(value)
        elif kind is datetime:
            value = from_timestamp(value)
        elif isinstance(kind, type) and issubclass(kind, enum.Enum):
            value = kind(value) if value in {item.value for item in kind} else None
        elif dataclasses.is_dataclass(kind) and isinstance(kind, type):
            value = from_proto(kind, value)
        values[name] = value
    return cls(**values)


def fill_options(message: Any, options: Any) -> list[str]:
    """Sets the options that are not None, and returns their names."""
    names = []
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if value is None:
            continue
        names.append(field.name)
        if message.DESCRIPTOR.fields_by_name[field.name].message_type is not None:
            getattr(message, field.name).CopyFrom(to_duration(value))
        else:
            setattr(message, field.name, value.value if isinstance(value, enum.Enum) else value)
    return names


def namespace_from(message: namespaces_pb2.Namespace) -> Namespace:
    """For the client itself."""
    return from_proto(Namespace, message)


def group_from(message: groups_pb2.Group) -> Group:
    """For the client itself."""
    return from_proto(Group, message)


def server_from(message: server_pb2.GetServerResponse) -> ServerInfo:
    """For the client itself."""
    return from_proto(ServerInfo, message)


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
    )
