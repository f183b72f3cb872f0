import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.rpc import status_pb2 as _status_pb2
from timecached.v1 import watch_pb2 as _watch_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PutCondition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUT_CONDITION_UNSPECIFIED: _ClassVar[PutCondition]
    PUT_CONDITION_IF_ABSENT: _ClassVar[PutCondition]
    PUT_CONDITION_IF_PRESENT: _ClassVar[PutCondition]
PUT_CONDITION_UNSPECIFIED: PutCondition
PUT_CONDITION_IF_ABSENT: PutCondition
PUT_CONDITION_IF_PRESENT: PutCondition

class Entry(_message.Message):
    __slots__ = ("key", "value", "version", "put_time", "deadline", "omitted_value_bytes", "parts", "create_time", "own_ttl")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PUT_TIME_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    OMITTED_VALUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    OWN_TTL_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    version: int
    put_time: _timestamp_pb2.Timestamp
    deadline: _timestamp_pb2.Timestamp
    omitted_value_bytes: int
    parts: _watch_pb2.GatheredParts
    create_time: _timestamp_pb2.Timestamp
    own_ttl: _duration_pb2.Duration
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., version: _Optional[int] = ..., put_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., omitted_value_bytes: _Optional[int] = ..., parts: _Optional[_Union[_watch_pb2.GatheredParts, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., own_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class PutRequest(_message.Message):
    __slots__ = ("namespace", "key", "value", "ttl", "condition", "if_version", "return_previous", "keep_deadline", "expire_at", "allow_past")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    RETURN_PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    KEEP_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_AT_FIELD_NUMBER: _ClassVar[int]
    ALLOW_PAST_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    value: bytes
    ttl: _duration_pb2.Duration
    condition: PutCondition
    if_version: int
    return_previous: bool
    keep_deadline: bool
    expire_at: _timestamp_pb2.Timestamp
    allow_past: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., condition: _Optional[_Union[PutCondition, str]] = ..., if_version: _Optional[int] = ..., return_previous: _Optional[bool] = ..., keep_deadline: _Optional[bool] = ..., expire_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., allow_past: _Optional[bool] = ...) -> None: ...

class PutResponse(_message.Message):
    __slots__ = ("version", "previous")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    version: int
    previous: Entry
    def __init__(self, version: _Optional[int] = ..., previous: _Optional[_Union[Entry, _Mapping]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("namespace", "key", "touch")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOUCH_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    touch: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., touch: _Optional[bool] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: Entry
    def __init__(self, entry: _Optional[_Union[Entry, _Mapping]] = ...) -> None: ...

class RemoveRequest(_message.Message):
    __slots__ = ("namespace", "key", "if_version", "return_previous")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    RETURN_PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    if_version: int
    return_previous: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., if_version: _Optional[int] = ..., return_previous: _Optional[bool] = ...) -> None: ...

class RemoveResponse(_message.Message):
    __slots__ = ("removed", "previous")
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    removed: bool
    previous: Entry
    def __init__(self, removed: _Optional[bool] = ..., previous: _Optional[_Union[Entry, _Mapping]] = ...) -> None: ...

class ContainsRequest(_message.Message):
    __slots__ = ("namespace", "key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ...) -> None: ...

class ContainsResponse(_message.Message):
    __slots__ = ("contains",)
    CONTAINS_FIELD_NUMBER: _ClassVar[int]
    contains: bool
    def __init__(self, contains: _Optional[bool] = ...) -> None: ...

class SizeRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class SizeResponse(_message.Message):
    __slots__ = ("entries", "bytes")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    entries: int
    bytes: int
    def __init__(self, entries: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class TouchRequest(_message.Message):
    __slots__ = ("namespace", "key", "ttl", "if_version", "expire_at", "allow_past")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_AT_FIELD_NUMBER: _ClassVar[int]
    ALLOW_PAST_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    ttl: _duration_pb2.Duration
    if_version: int
    expire_at: _timestamp_pb2.Timestamp
    allow_past: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., if_version: _Optional[int] = ..., expire_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., allow_past: _Optional[bool] = ...) -> None: ...

class TouchResponse(_message.Message):
    __slots__ = ("touched", "version")
    TOUCHED_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    touched: bool
    version: int
    def __init__(self, touched: _Optional[bool] = ..., version: _Optional[int] = ...) -> None: ...

class AppendRequest(_message.Message):
    __slots__ = ("namespace", "key", "value", "ttl", "condition", "if_version", "touch")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    TOUCH_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    value: bytes
    ttl: _duration_pb2.Duration
    condition: PutCondition
    if_version: int
    touch: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., condition: _Optional[_Union[PutCondition, str]] = ..., if_version: _Optional[int] = ..., touch: _Optional[bool] = ...) -> None: ...

class AppendResponse(_message.Message):
    __slots__ = ("version", "value_bytes", "created")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VALUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    version: int
    value_bytes: int
    created: bool
    def __init__(self, version: _Optional[int] = ..., value_bytes: _Optional[int] = ..., created: _Optional[bool] = ...) -> None: ...

class CombineRequest(_message.Message):
    __slots__ = ("namespace", "key", "add", "xor", "initial", "remove_if_zero", "touch", "ttl", "if_version")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    XOR_FIELD_NUMBER: _ClassVar[int]
    INITIAL_FIELD_NUMBER: _ClassVar[int]
    REMOVE_IF_ZERO_FIELD_NUMBER: _ClassVar[int]
    TOUCH_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    add: int
    xor: int
    initial: int
    remove_if_zero: bool
    touch: bool
    ttl: _duration_pb2.Duration
    if_version: int
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., add: _Optional[int] = ..., xor: _Optional[int] = ..., initial: _Optional[int] = ..., remove_if_zero: _Optional[bool] = ..., touch: _Optional[bool] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., if_version: _Optional[int] = ...) -> None: ...

class CombineResponse(_message.Message):
    __slots__ = ("result", "version", "created", "removed")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    result: int
    version: int
    created: bool
    removed: bool
    def __init__(self, result: _Optional[int] = ..., version: _Optional[int] = ..., created: _Optional[bool] = ..., removed: _Optional[bool] = ...) -> None: ...

class GatherRequest(_message.Message):
    __slots__ = ("namespace", "key", "part", "value", "expected_parts", "expected_names", "touch", "ttl")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_PARTS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_NAMES_FIELD_NUMBER: _ClassVar[int]
    TOUCH_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    part: bytes
    value: bytes
    expected_parts: int
    expected_names: _containers.RepeatedScalarFieldContainer[bytes]
    touch: bool
    ttl: _duration_pb2.Duration
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., part: _Optional[bytes] = ..., value: _Optional[bytes] = ..., expected_parts: _Optional[int] = ..., expected_names: _Optional[_Iterable[bytes]] = ..., touch: _Optional[bool] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GatherResponse(_message.Message):
    __slots__ = ("parts", "version", "count", "duplicate")
    PARTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    parts: _watch_pb2.GatheredParts
    version: int
    count: int
    duplicate: bool
    def __init__(self, parts: _Optional[_Union[_watch_pb2.GatheredParts, _Mapping]] = ..., version: _Optional[int] = ..., count: _Optional[int] = ..., duplicate: _Optional[bool] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("put", "get", "remove", "contains", "touch", "append", "combine", "gather")
    PUT_FIELD_NUMBER: _ClassVar[int]
    GET_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    CONTAINS_FIELD_NUMBER: _ClassVar[int]
    TOUCH_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    COMBINE_FIELD_NUMBER: _ClassVar[int]
    GATHER_FIELD_NUMBER: _ClassVar[int]
    put: PutRequest
    get: GetRequest
    remove: RemoveRequest
    contains: ContainsRequest
    touch: TouchRequest
    append: AppendRequest
    combine: CombineRequest
    gather: GatherRequest
    def __init__(self, put: _Optional[_Union[PutRequest, _Mapping]] = ..., get: _Optional[_Union[GetRequest, _Mapping]] = ..., remove: _Optional[_Union[RemoveRequest, _Mapping]] = ..., contains: _Optional[_Union[ContainsRequest, _Mapping]] = ..., touch: _Optional[_Union[TouchRequest, _Mapping]] = ..., append: _Optional[_Union[AppendRequest, _Mapping]] = ..., combine: _Optional[_Union[CombineRequest, _Mapping]] = ..., gather: _Optional[_Union[GatherRequest, _Mapping]] = ...) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("namespace", "operations")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    operations: _containers.RepeatedCompositeFieldContainer[Operation]
    def __init__(self, namespace: _Optional[str] = ..., operations: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ...) -> None: ...

class OperationResult(_message.Message):
    __slots__ = ("error", "put", "get", "remove", "contains", "touch", "append", "combine", "gather")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PUT_FIELD_NUMBER: _ClassVar[int]
    GET_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    CONTAINS_FIELD_NUMBER: _ClassVar[int]
    TOUCH_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    COMBINE_FIELD_NUMBER: _ClassVar[int]
    GATHER_FIELD_NUMBER: _ClassVar[int]
    error: _status_pb2.Status
    put: PutResponse
    get: GetResponse
    remove: RemoveResponse
    contains: ContainsResponse
    touch: TouchResponse
    append: AppendResponse
    combine: CombineResponse
    gather: GatherResponse
    def __init__(self, error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ..., put: _Optional[_Union[PutResponse, _Mapping]] = ..., get: _Optional[_Union[GetResponse, _Mapping]] = ..., remove: _Optional[_Union[RemoveResponse, _Mapping]] = ..., contains: _Optional[_Union[ContainsResponse, _Mapping]] = ..., touch: _Optional[_Union[TouchResponse, _Mapping]] = ..., append: _Optional[_Union[AppendResponse, _Mapping]] = ..., combine: _Optional[_Union[CombineResponse, _Mapping]] = ..., gather: _Optional[_Union[GatherResponse, _Mapping]] = ...) -> None: ...

class ExecuteResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[OperationResult]
    def __init__(self, results: _Optional[_Iterable[_Union[OperationResult, _Mapping]]] = ...) -> None: ...

class ScanRequest(_message.Message):
    __slots__ = ("namespace", "key_prefix", "keys_only", "max_message_bytes", "position")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_PREFIX_FIELD_NUMBER: _ClassVar[int]
    KEYS_ONLY_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key_prefix: bytes
    keys_only: bool
    max_message_bytes: int
    position: bytes
    def __init__(self, namespace: _Optional[str] = ..., key_prefix: _Optional[bytes] = ..., keys_only: _Optional[bool] = ..., max_message_bytes: _Optional[int] = ..., position: _Optional[bytes] = ...) -> None: ...

class ScanResponse(_message.Message):
    __slots__ = ("entries", "position")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[Entry]
    position: bytes
    def __init__(self, entries: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ..., position: _Optional[bytes] = ...) -> None: ...
