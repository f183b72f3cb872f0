"""What administration takes and gives: namespaces, groups and the server, as plain values.

As in ``types``: times are aware datetimes in UTC on the server's clock, durations timedeltas.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from .types import (
    BytesLike,
    ExpiredEvent,
    GroupPosition,
    WatchStart,
    event_from,
    from_duration,
    from_timestamp,
    to_bytes,
    to_duration,
    to_timestamp,
)
from .v1 import groups_pb2, namespaces_pb2, server_pb2


class LimitPolicy(enum.Enum):
    """What happens to a put that would pass max_entries or max_bytes."""

    REJECT = 1
    EVICT_OLDEST = 2


class Durability(enum.Enum):
    """What a namespace survives.

    ASYNC and SYNC need a server with a journal, REPLICATED one in a cluster.
    """

    MEMORY = 1
    ASYNC = 2
    SYNC = 3
    REPLICATED = 4


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
    max_life: timedelta | None = None
    """Longest life of an entry since its create_time, whatever renews it or is put over it.

    0: no bound. Default 0.
    """
    idempotency_window: timedelta | None = None
    """How long the answer to a call with an idempotency_id is remembered.

    0: no call may have one. Default 0.
    """
    idempotency_max_ids: int | None = None
    """How many answers are. Default 100,000."""
    change_retention: timedelta | None = None
    """How long puts, renewals and removals stay readable for ``watch_changes``: 1 ms to 7 days.

    0: they are not kept, and cost nothing. Default 0.
    """
    change_retention_bytes: int | None = None
    """Memory for them; beyond it the oldest are dropped: 1 MiB to 64 GiB. Default 64 MiB."""
    num_partitions: int | None = None
    """Partitions, each with entries, events and groups of its own, and its share of the limits.

    1 to 64. Fixed at creation. Keys of an atomic batch must be in one: those with the same text
    in {}, as order:{42} and lock:{42}, are. Default: the server's default_partitions, 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeathBar:
    """Entries that die after `begin`, and at or before `end`."""

    begin: datetime
    end: datetime
    entries: int
    bytes: int
    """Of their keys and values."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeathsAhead:
    """What of a namespace dies when, unless it is renewed, removed or put anew until then."""

    server_time: datetime
    """What lives then is counted."""
    later_entries: int
    """What dies after the last bar."""
    later_bytes: int
    bars: tuple[DeathBar, ...] = ()
    """In order of time, of equal length, from the next death on."""


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
    expired_while_down: int
    changes_retained: int
    changes_retained_bytes: int


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
    warnings: tuple[str, ...] = ()
    """Of ``create_namespace`` and ``update_namespace``: what is allowed and probably not meant, a
    sentence each."""


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
    retry_delay: timedelta | None = None
    """How long an event waits after its first attempt that counted, if the Nack names no delay, or
    it was not settled in time; after each further one retry_multiplier times as long, up to
    max_retry_delay; each shortened at random by up to retry_jitter_percent. Default 0."""
    retry_multiplier: int | None = None
    """Default 2."""
    max_retry_delay: timedelta | None = None
    """Default 7 days."""
    retry_jitter_percent: int | None = None
    """Default 0."""
    paused: bool | None = None
    """Nothing is given out until this is false again. Default False."""
    key_prefix: BytesLike | None = None
    """Only events whose keys begin with this are the group's: at most 256 B. Fixed when the group
    is made. Default empty: all."""
    single_active: bool | None = None
    """The oldest member gets all events, in order of death as far as attempts do not fail; the next
    one once its stream has ended. ``fetch_expired`` is refused. Default False."""
    retry_delays: tuple[timedelta, ...] | None = None
    """The waits after the first, the second, ... attempt that counted, in place of retry_delay,
    retry_multiplier and max_retry_delay; then the last one again: at most 32, each up to 7 days.
    Default (): none."""


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
    returned: int
    extended: int
    suspects: int
    terminated: int
    fetched: int


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
class SeekResult:
    """What ``seek_group`` did."""

    unsettled: int
    """Events that the group is to deliver now, those that it kept included."""
    dropped: int
    """Events that drop_unsettled has dropped."""


class UnsettledState(enum.Enum):
    """What an unsettled event waits for."""

    READY = 1
    """To be delivered."""
    BLOCKED_BY_KEY = 2
    """For an earlier event of its key to be settled."""
    IN_FLIGHT = 3
    """For a member, or a caller of ``fetch_expired``, to settle it."""
    DELAYED = 4
    """For its next attempt."""
    DEAD_LETTERING = 5
    """To become a dead letter."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnsettledEvent:
    """An event that a group has not settled, as it was when its page was made."""

    event: ExpiredEvent
    """With event_id, attempt (0: not delivered yet), returns, last_reason, and a delivery_token by
    which an operator settles it, whoever holds it."""
    state: UnsettledState | None
    """None: one that this client is too old to know."""
    member_id: int
    """In flight: GroupMember.id of who holds it; 0: a caller of ``fetch_expired``."""
    since: datetime | None
    """In flight: since when."""
    due: datetime | None
    """In flight: when it times out. Delayed: when it may be delivered. Dead-lettering: when that is
    tried next."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupMember:
    """A stream that is a member of a group."""

    id: int
    """In its group, as long as the server runs. Never 0."""
    principal: str
    """Who called; "anonymous" without access rules."""
    peer: str
    """Where from, as gRPC names it: "ipv4:10.0.0.7:41234"."""
    since: datetime | None
    in_flight: int
    """Events that it holds."""
    max_in_flight: int
    """How many it has asked for at most."""
    window: int
    """How many it may hold now: fewer if it let events time out."""
    unresponsive: bool
    """It let an event time out, and has settled none since."""
    active: bool
    """Whether it is the one that gets events, in a group that is single_active; else True."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotKey:
    """A key, and how it is used."""

    key: bytes
    reads_per_second: float
    """Operations on it that change nothing, estimated."""
    writes_per_second: float
    """Others, estimated."""
    value_bytes: int
    """Of its value, at the last operation of the sample that saw one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotKeys:
    """The keys of a namespace that are used most, by a sample of its operations."""

    window: timedelta
    """The time that the sample covers."""
    sampled: int
    """The operations in it."""
    operations_per_second: float
    """All operations on the namespace, estimated."""
    keys: tuple[HotKey, ...] = ()
    """The most used first. Those of fewer than four operations in the sample are left out."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Permission:
    """A pattern of namespaces, and what a caller may do there."""

    pattern: str
    """As in the access rules: "orders", "team-a.*", "*"."""
    verbs: tuple[str, ...]
    """Such as "READ"."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CallerInfo:
    """A caller, as the server sees it."""

    principal: str
    """Its name; "anonymous" without access rules."""
    peer: str
    """Where the call came from, as gRPC names it: "ipv4:10.0.0.7:41234"."""
    permissions: tuple[Permission, ...]
    """Empty without access rules, where every caller may do everything."""
    access_rules: bool
    """Whether the server has access rules."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConnectionInfo:
    """A connection of a client."""

    id: int
    """As long as the server runs. Never 0."""
    peer: str
    """Where from: "10.0.0.7:41234", or "unix" with the process: "unix:pid=4711"."""
    since: datetime | None
    principal: str
    """Of its last call; empty: it has made none."""
    open_calls: int
    """Calls and streams that are open."""
    calls: int
    """Calls and streams that have begun."""
    idle: timedelta | None
    """Since its last call began or ended. None: it has made none."""
    user_agent: str
    """Of its last call."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlowCall:
    """A call that took long."""

    time: datetime | None
    """When it ended."""
    method: str
    """Such as "timecache.v1.TimeCacheService/Put"."""
    namespace: str
    """Empty: it is not about one."""
    duration: timedelta | None
    code: str
    """The name of its gRPC code: "OK"."""
    operations: int
    """How many it had."""
    principal: str
    peer: str
    request_id: str
    """The client's, or the server's own."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlowCalls:
    """The server's last calls that took long."""

    calls: tuple[SlowCall, ...]
    """At most 256, the latest first."""
    threshold: timedelta | None
    """Calls that took longer are among them. None: it is turned off."""


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
    """In a cluster, the topic."""
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
    """Of all pieces together; in a cluster an estimate, but in the last one."""
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
    clock_offset: timedelta | None
    """How far the machine's wall clock is ahead of `now`; None with a virtual clock."""

    @property
    def has_journal(self) -> bool:
        """Whether durable namespaces are possible."""
        return self.journal is not None


class NodeRole(enum.Enum):
    """What a node of a cluster does."""

    STANDBY = 1
    """It replays the journal."""
    TAKING_OVER = 2
    """It owns, and finishes the replay."""
    OWNER = 3
    """It serves."""
    GONE = 4
    """It has been silent for the cluster's failure_timeout."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterNode:
    """A node of a cluster, by its last heartbeat."""

    name: str
    address: str
    """"host:port" for clients."""
    version: str
    role: NodeRole | None
    """None: one that this client is too old to know."""
    since_heartbeat: timedelta | None
    lag_messages: int
    """Of the journal, that it had not replayed then."""
    caught_up: bool
    """Whether it may take over; true of the owner."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterSlot:
    """A partition of the journal with the namespaces in it, which has an owner of its own."""

    owner: str
    """The name of the node; empty: none owns it."""
    standby: str
    """The one that takes over if the owner is gone; empty: none."""
    standby_ready: bool
    moves_to: str
    """Empty: it stays."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TopicSetting:
    """A setting of a topic that can lose acknowledged writes, or stop the cluster."""

    topic: str
    setting: str
    """As Kafka names it: "min.insync.replicas"."""
    value: str
    wanted: str
    """In words: "2 or more"."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterInfo:
    """A cluster, as one of its nodes sees it."""

    name: str
    node: str
    """The one that answered."""
    nodes: tuple[ClusterNode, ...]
    """By name."""
    owner: str
    """The name of the node that owns; empty: none does, or each slot has its own."""
    claim: int
    """The identity of its takeover."""
    owner_since: datetime | None
    lease_left: timedelta | None
    """Of the node that answered, None unless it owns; negative: it has ended."""
    clock_skew: timedelta | None
    """How far its clock is ahead of the brokers'; negative: behind."""
    successor: str
    """The standby that a handover without a name goes to; empty: none can take over."""
    brokers: tuple[str, ...]
    """Kafka's, "host:port"."""
    wrong_settings: tuple[TopicSetting, ...]
    waits_for: str
    """What keeps the node that answered from taking over; empty: nothing."""
    slots: tuple[ClusterSlot, ...]
    """By number, where nodes share the ownership; else empty."""


# --- from and to the protos; for the client itself ---

M = TypeVar("M")


def _field_types(cls: type[Any]) -> Mapping[str, Any]:
    """The type of each field, without "| None"."""
    hints = typing.get_type_hints(cls)
    plain = {}
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if isinstance(hint, types.UnionType):
            hint = next(part for part in hint.__args__ if part is not type(None))
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
        if typing.get_origin(kind) is tuple:
            item = typing.get_args(kind)[0]
            if item is timedelta:
                value = tuple(map(from_duration, value))
            else:
                value = tuple(from_proto(item, each) if item is not str else each for each in value)
        elif kind is timedelta:
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
        if isinstance(value, (tuple, list)):
            getattr(message, field.name).extend(map(to_duration, value))
        elif field.name == "key_prefix":
            message.key_prefix = to_bytes(value)
        elif message.DESCRIPTOR.fields_by_name[field.name].message_type is not None:
            getattr(message, field.name).CopyFrom(to_duration(value))
        else:
            setattr(message, field.name, value.value if isinstance(value, enum.Enum) else value)
    return names


def namespace_from(message: namespaces_pb2.Namespace, warnings: Iterable[str] = ()) -> Namespace:
    """For the client itself."""
    return dataclasses.replace(from_proto(Namespace, message), warnings=tuple(warnings))


def deaths_from(message: namespaces_pb2.GetDeathsResponse) -> DeathsAhead:
    """For the client itself."""
    return DeathsAhead(
        server_time=from_timestamp(message.server_time),
        later_entries=message.later_entries,
        later_bytes=message.later_bytes,
        bars=tuple(from_proto(DeathBar, bar) for bar in message.bars),
    )


def group_from(message: groups_pb2.Group) -> Group:
    """For the client itself."""
    return from_proto(Group, message)


def fill_position(message: groups_pb2.GroupPosition, position: GroupPosition) -> None:
    """Says where a group is to be. TypeError: what is no position."""
    if isinstance(position, WatchStart):
        message.start = position.value  # type: ignore[assignment]
    elif isinstance(position, datetime):
        message.time.CopyFrom(to_timestamp(position))
    elif isinstance(position, bytes):
        message.resume_token = position
    else:
        raise TypeError(f"expected a WatchStart, a datetime or a resume_token, not {position!r}")


_STATES = {state.value: state for state in UnsettledState}


def unsettled_from(message: groups_pb2.UnsettledEvent) -> UnsettledEvent:
    """For the client itself."""
    return UnsettledEvent(
        event=event_from(message.event),
        state=_STATES.get(message.state),
        member_id=message.member_id,
        since=from_timestamp(message.since) if message.HasField("since") else None,
        due=from_timestamp(message.due) if message.HasField("due") else None,
    )


def server_from(message: server_pb2.GetServerResponse) -> ServerInfo:
    """For the client itself."""
    return from_proto(ServerInfo, message)


def cluster_from(message: server_pb2.GetClusterResponse) -> ClusterInfo:
    """For the client itself."""
    return from_proto(ClusterInfo, message)
