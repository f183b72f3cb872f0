import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LimitPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LIMIT_POLICY_UNSPECIFIED: _ClassVar[LimitPolicy]
    LIMIT_POLICY_REJECT: _ClassVar[LimitPolicy]
    LIMIT_POLICY_EVICT_OLDEST: _ClassVar[LimitPolicy]

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DURABILITY_UNSPECIFIED: _ClassVar[Durability]
    DURABILITY_MEMORY: _ClassVar[Durability]
    DURABILITY_ASYNC: _ClassVar[Durability]
    DURABILITY_SYNC: _ClassVar[Durability]

class RestartPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESTART_POLICY_UNSPECIFIED: _ClassVar[RestartPolicy]
    RESTART_POLICY_FIRE: _ClassVar[RestartPolicy]
    RESTART_POLICY_PAUSE: _ClassVar[RestartPolicy]
LIMIT_POLICY_UNSPECIFIED: LimitPolicy
LIMIT_POLICY_REJECT: LimitPolicy
LIMIT_POLICY_EVICT_OLDEST: LimitPolicy
DURABILITY_UNSPECIFIED: Durability
DURABILITY_MEMORY: Durability
DURABILITY_ASYNC: Durability
DURABILITY_SYNC: Durability
RESTART_POLICY_UNSPECIFIED: RestartPolicy
RESTART_POLICY_FIRE: RestartPolicy
RESTART_POLICY_PAUSE: RestartPolicy

class NamespaceOptions(_message.Message):
    __slots__ = ("ttl", "num_buckets", "max_ttl", "sliding", "max_entries", "max_bytes", "limit_policy", "max_value_bytes", "event_retention", "event_retention_bytes", "num_shards", "dead_letter_namespace", "max_operations_per_second", "max_backlog_bytes", "unused_group_ttl", "durability", "restart_policy")
    TTL_FIELD_NUMBER: _ClassVar[int]
    NUM_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    MAX_TTL_FIELD_NUMBER: _ClassVar[int]
    SLIDING_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_POLICY_FIELD_NUMBER: _ClassVar[int]
    MAX_VALUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    EVENT_RETENTION_FIELD_NUMBER: _ClassVar[int]
    EVENT_RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    NUM_SHARDS_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MAX_OPERATIONS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    MAX_BACKLOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    UNUSED_GROUP_TTL_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    RESTART_POLICY_FIELD_NUMBER: _ClassVar[int]
    ttl: _duration_pb2.Duration
    num_buckets: int
    max_ttl: _duration_pb2.Duration
    sliding: bool
    max_entries: int
    max_bytes: int
    limit_policy: LimitPolicy
    max_value_bytes: int
    event_retention: _duration_pb2.Duration
    event_retention_bytes: int
    num_shards: int
    dead_letter_namespace: str
    max_operations_per_second: int
    max_backlog_bytes: int
    unused_group_ttl: _duration_pb2.Duration
    durability: Durability
    restart_policy: RestartPolicy
    def __init__(self, ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., num_buckets: _Optional[int] = ..., max_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., sliding: _Optional[bool] = ..., max_entries: _Optional[int] = ..., max_bytes: _Optional[int] = ..., limit_policy: _Optional[_Union[LimitPolicy, str]] = ..., max_value_bytes: _Optional[int] = ..., event_retention: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., event_retention_bytes: _Optional[int] = ..., num_shards: _Optional[int] = ..., dead_letter_namespace: _Optional[str] = ..., max_operations_per_second: _Optional[int] = ..., max_backlog_bytes: _Optional[int] = ..., unused_group_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., durability: _Optional[_Union[Durability, str]] = ..., restart_policy: _Optional[_Union[RestartPolicy, str]] = ...) -> None: ...

class NamespaceStatistics(_message.Message):
    __slots__ = ("entries", "bytes", "memory_bytes", "live_buckets", "expired", "evicted", "rotated", "events_retained", "events_retained_bytes", "watchers", "watermark", "lateness_p50", "lateness_p99", "lateness_max", "bound_violations", "rate_limited", "puts", "hits", "misses", "events_reclaimed", "backlog_bytes", "backlog_limit_bytes", "groups_expired", "appends", "combines", "gathers", "expired_while_down")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    LIVE_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    EVICTED_FIELD_NUMBER: _ClassVar[int]
    ROTATED_FIELD_NUMBER: _ClassVar[int]
    EVENTS_RETAINED_FIELD_NUMBER: _ClassVar[int]
    EVENTS_RETAINED_BYTES_FIELD_NUMBER: _ClassVar[int]
    WATCHERS_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LATENESS_P50_FIELD_NUMBER: _ClassVar[int]
    LATENESS_P99_FIELD_NUMBER: _ClassVar[int]
    LATENESS_MAX_FIELD_NUMBER: _ClassVar[int]
    BOUND_VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMITED_FIELD_NUMBER: _ClassVar[int]
    PUTS_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    MISSES_FIELD_NUMBER: _ClassVar[int]
    EVENTS_RECLAIMED_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    GROUPS_EXPIRED_FIELD_NUMBER: _ClassVar[int]
    APPENDS_FIELD_NUMBER: _ClassVar[int]
    COMBINES_FIELD_NUMBER: _ClassVar[int]
    GATHERS_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_WHILE_DOWN_FIELD_NUMBER: _ClassVar[int]
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
    watermark: _timestamp_pb2.Timestamp
    lateness_p50: _duration_pb2.Duration
    lateness_p99: _duration_pb2.Duration
    lateness_max: _duration_pb2.Duration
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
    def __init__(self, entries: _Optional[int] = ..., bytes: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., live_buckets: _Optional[int] = ..., expired: _Optional[int] = ..., evicted: _Optional[int] = ..., rotated: _Optional[int] = ..., events_retained: _Optional[int] = ..., events_retained_bytes: _Optional[int] = ..., watchers: _Optional[int] = ..., watermark: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lateness_p50: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., lateness_p99: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., lateness_max: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., bound_violations: _Optional[int] = ..., rate_limited: _Optional[int] = ..., puts: _Optional[int] = ..., hits: _Optional[int] = ..., misses: _Optional[int] = ..., events_reclaimed: _Optional[int] = ..., backlog_bytes: _Optional[int] = ..., backlog_limit_bytes: _Optional[int] = ..., groups_expired: _Optional[int] = ..., appends: _Optional[int] = ..., combines: _Optional[int] = ..., gathers: _Optional[int] = ..., expired_while_down: _Optional[int] = ...) -> None: ...

class Namespace(_message.Message):
    __slots__ = ("name", "options", "statistics", "bucket_width")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    BUCKET_WIDTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    options: NamespaceOptions
    statistics: NamespaceStatistics
    bucket_width: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., options: _Optional[_Union[NamespaceOptions, _Mapping]] = ..., statistics: _Optional[_Union[NamespaceStatistics, _Mapping]] = ..., bucket_width: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class CreateNamespaceRequest(_message.Message):
    __slots__ = ("name", "options")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    options: NamespaceOptions
    def __init__(self, name: _Optional[str] = ..., options: _Optional[_Union[NamespaceOptions, _Mapping]] = ...) -> None: ...

class CreateNamespaceResponse(_message.Message):
    __slots__ = ("namespace", "warnings")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class GetNamespaceRequest(_message.Message):
    __slots__ = ("name", "include_statistics")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_STATISTICS_FIELD_NUMBER: _ClassVar[int]
    name: str
    include_statistics: bool
    def __init__(self, name: _Optional[str] = ..., include_statistics: _Optional[bool] = ...) -> None: ...

class GetNamespaceResponse(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ...) -> None: ...

class ListNamespacesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "include_statistics")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_STATISTICS_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    include_statistics: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., include_statistics: _Optional[bool] = ...) -> None: ...

class ListNamespacesResponse(_message.Message):
    __slots__ = ("namespaces", "next_page_token")
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedCompositeFieldContainer[Namespace]
    next_page_token: str
    def __init__(self, namespaces: _Optional[_Iterable[_Union[Namespace, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "update_mask")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateNamespaceResponse(_message.Message):
    __slots__ = ("namespace", "warnings")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class DeleteNamespaceRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteNamespaceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RotateNamespaceRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RotateNamespaceResponse(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: int
    def __init__(self, entries: _Optional[int] = ...) -> None: ...
