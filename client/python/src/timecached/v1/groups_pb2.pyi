import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GroupOptions(_message.Message):
    __slots__ = ("ack_timeout", "max_attempts", "max_backlog_bytes", "unused_ttl")
    ACK_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_BACKLOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    UNUSED_TTL_FIELD_NUMBER: _ClassVar[int]
    ack_timeout: _duration_pb2.Duration
    max_attempts: int
    max_backlog_bytes: int
    unused_ttl: _duration_pb2.Duration
    def __init__(self, ack_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_attempts: _Optional[int] = ..., max_backlog_bytes: _Optional[int] = ..., unused_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GroupStatistics(_message.Message):
    __slots__ = ("members", "backlog", "backlog_bytes", "in_flight", "oldest_unsettled", "delivered", "redelivered", "acked", "nacked", "put_back", "timed_out", "dead_lettered", "dead_letter_failures", "lost", "unresponsive_members", "dead_letters_dropped", "in_flight_bytes", "dead_letters_denied", "unused_since", "returned", "extended", "suspects")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    OLDEST_UNSETTLED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    REDELIVERED_FIELD_NUMBER: _ClassVar[int]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    NACKED_FIELD_NUMBER: _ClassVar[int]
    PUT_BACK_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERED_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FAILURES_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    UNRESPONSIVE_MEMBERS_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_DROPPED_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_BYTES_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_DENIED_FIELD_NUMBER: _ClassVar[int]
    UNUSED_SINCE_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    EXTENDED_FIELD_NUMBER: _ClassVar[int]
    SUSPECTS_FIELD_NUMBER: _ClassVar[int]
    members: int
    backlog: int
    backlog_bytes: int
    in_flight: int
    oldest_unsettled: _timestamp_pb2.Timestamp
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
    unused_since: _timestamp_pb2.Timestamp
    returned: int
    extended: int
    suspects: int
    def __init__(self, members: _Optional[int] = ..., backlog: _Optional[int] = ..., backlog_bytes: _Optional[int] = ..., in_flight: _Optional[int] = ..., oldest_unsettled: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., delivered: _Optional[int] = ..., redelivered: _Optional[int] = ..., acked: _Optional[int] = ..., nacked: _Optional[int] = ..., put_back: _Optional[int] = ..., timed_out: _Optional[int] = ..., dead_lettered: _Optional[int] = ..., dead_letter_failures: _Optional[int] = ..., lost: _Optional[int] = ..., unresponsive_members: _Optional[int] = ..., dead_letters_dropped: _Optional[int] = ..., in_flight_bytes: _Optional[int] = ..., dead_letters_denied: _Optional[int] = ..., unused_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., returned: _Optional[int] = ..., extended: _Optional[int] = ..., suspects: _Optional[int] = ...) -> None: ...

class Group(_message.Message):
    __slots__ = ("name", "namespace", "options", "statistics", "created_by")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    options: GroupOptions
    statistics: GroupStatistics
    created_by: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ..., options: _Optional[_Union[GroupOptions, _Mapping]] = ..., statistics: _Optional[_Union[GroupStatistics, _Mapping]] = ..., created_by: _Optional[str] = ...) -> None: ...

class CreateGroupRequest(_message.Message):
    __slots__ = ("namespace", "name", "options", "from_earliest")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    FROM_EARLIEST_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    options: GroupOptions
    from_earliest: bool
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., options: _Optional[_Union[GroupOptions, _Mapping]] = ..., from_earliest: _Optional[bool] = ...) -> None: ...

class CreateGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: Group
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ...) -> None: ...

class GetGroupRequest(_message.Message):
    __slots__ = ("namespace", "name", "include_statistics")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_STATISTICS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    include_statistics: bool
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., include_statistics: _Optional[bool] = ...) -> None: ...

class GetGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: Group
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token", "include_statistics")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_STATISTICS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    include_statistics: bool
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., include_statistics: _Optional[bool] = ...) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("groups", "next_page_token")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[Group]
    next_page_token: str
    def __init__(self, groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateGroupRequest(_message.Message):
    __slots__ = ("group", "update_mask")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    group: Group
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: Group
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ...) -> None: ...

class DeleteGroupRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteGroupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
