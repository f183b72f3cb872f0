import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CheckpointState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHECKPOINT_STATE_UNSPECIFIED: _ClassVar[CheckpointState]
    CHECKPOINT_STATE_IDLE: _ClassVar[CheckpointState]
    CHECKPOINT_STATE_WRITING: _ClassVar[CheckpointState]
    CHECKPOINT_STATE_WAITING: _ClassVar[CheckpointState]
CHECKPOINT_STATE_UNSPECIFIED: CheckpointState
CHECKPOINT_STATE_IDLE: CheckpointState
CHECKPOINT_STATE_WRITING: CheckpointState
CHECKPOINT_STATE_WAITING: CheckpointState

class GetServerRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BackupJournalRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BackupJournalResponse(_message.Message):
    __slots__ = ("total_bytes", "data")
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    total_bytes: int
    data: bytes
    def __init__(self, total_bytes: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class LimitUse(_message.Message):
    __slots__ = ("used", "max")
    USED_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    used: int
    max: int
    def __init__(self, used: _Optional[int] = ..., max: _Optional[int] = ...) -> None: ...

class MemoryShares(_message.Message):
    __slots__ = ("entries_bytes", "retained_bytes", "backlog_bytes")
    ENTRIES_BYTES_FIELD_NUMBER: _ClassVar[int]
    RETAINED_BYTES_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    entries_bytes: int
    retained_bytes: int
    backlog_bytes: int
    def __init__(self, entries_bytes: _Optional[int] = ..., retained_bytes: _Optional[int] = ..., backlog_bytes: _Optional[int] = ...) -> None: ...

class JournalStatus(_message.Message):
    __slots__ = ("directory", "disk_bytes", "waiting_bytes", "disk_full", "commits", "appends", "written_bytes", "commit_time", "commit_p99", "checkpoints", "checkpoint_state")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAITING_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_FULL_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    APPENDS_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_BYTES_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    COMMIT_P99_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_STATE_FIELD_NUMBER: _ClassVar[int]
    directory: str
    disk_bytes: int
    waiting_bytes: LimitUse
    disk_full: bool
    commits: int
    appends: int
    written_bytes: int
    commit_time: _duration_pb2.Duration
    commit_p99: _duration_pb2.Duration
    checkpoints: int
    checkpoint_state: CheckpointState
    def __init__(self, directory: _Optional[str] = ..., disk_bytes: _Optional[int] = ..., waiting_bytes: _Optional[_Union[LimitUse, _Mapping]] = ..., disk_full: _Optional[bool] = ..., commits: _Optional[int] = ..., appends: _Optional[int] = ..., written_bytes: _Optional[int] = ..., commit_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., commit_p99: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., checkpoints: _Optional[int] = ..., checkpoint_state: _Optional[_Union[CheckpointState, str]] = ...) -> None: ...

class GetServerResponse(_message.Message):
    __slots__ = ("version", "start_time", "now", "draining", "namespaces", "entries", "bytes", "watchers", "memory_bytes", "connections", "memory_shares", "journal", "clock_offset")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    WATCHERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_SHARES_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    CLOCK_OFFSET_FIELD_NUMBER: _ClassVar[int]
    version: str
    start_time: _timestamp_pb2.Timestamp
    now: _timestamp_pb2.Timestamp
    draining: bool
    namespaces: LimitUse
    entries: LimitUse
    bytes: LimitUse
    watchers: LimitUse
    memory_bytes: LimitUse
    connections: LimitUse
    memory_shares: MemoryShares
    journal: JournalStatus
    clock_offset: _duration_pb2.Duration
    def __init__(self, version: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., now: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., draining: _Optional[bool] = ..., namespaces: _Optional[_Union[LimitUse, _Mapping]] = ..., entries: _Optional[_Union[LimitUse, _Mapping]] = ..., bytes: _Optional[_Union[LimitUse, _Mapping]] = ..., watchers: _Optional[_Union[LimitUse, _Mapping]] = ..., memory_bytes: _Optional[_Union[LimitUse, _Mapping]] = ..., connections: _Optional[_Union[LimitUse, _Mapping]] = ..., memory_shares: _Optional[_Union[MemoryShares, _Mapping]] = ..., journal: _Optional[_Union[JournalStatus, _Mapping]] = ..., clock_offset: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
