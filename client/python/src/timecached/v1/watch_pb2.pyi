import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WatchStart(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WATCH_START_UNSPECIFIED: _ClassVar[WatchStart]
    WATCH_START_NOW: _ClassVar[WatchStart]
    WATCH_START_EARLIEST: _ClassVar[WatchStart]

class ExpiryCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPIRY_CAUSE_UNSPECIFIED: _ClassVar[ExpiryCause]
    EXPIRY_CAUSE_EXPIRED: _ClassVar[ExpiryCause]
    EXPIRY_CAUSE_EVICTED: _ClassVar[ExpiryCause]
    EXPIRY_CAUSE_ROTATED: _ClassVar[ExpiryCause]
    EXPIRY_CAUSE_EXPIRING: _ClassVar[ExpiryCause]

class DeadLetterReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEAD_LETTER_REASON_UNSPECIFIED: _ClassVar[DeadLetterReason]
    DEAD_LETTER_REASON_NACKED: _ClassVar[DeadLetterReason]
    DEAD_LETTER_REASON_TIMED_OUT: _ClassVar[DeadLetterReason]
WATCH_START_UNSPECIFIED: WatchStart
WATCH_START_NOW: WatchStart
WATCH_START_EARLIEST: WatchStart
EXPIRY_CAUSE_UNSPECIFIED: ExpiryCause
EXPIRY_CAUSE_EXPIRED: ExpiryCause
EXPIRY_CAUSE_EVICTED: ExpiryCause
EXPIRY_CAUSE_ROTATED: ExpiryCause
EXPIRY_CAUSE_EXPIRING: ExpiryCause
DEAD_LETTER_REASON_UNSPECIFIED: DeadLetterReason
DEAD_LETTER_REASON_NACKED: DeadLetterReason
DEAD_LETTER_REASON_TIMED_OUT: DeadLetterReason

class WatchExpiredRequest(_message.Message):
    __slots__ = ("namespaces", "start", "resume_tokens", "fail_on_loss", "key_prefix", "keys_only", "heartbeat_interval", "max_message_bytes")
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FAIL_ON_LOSS_FIELD_NUMBER: _ClassVar[int]
    KEY_PREFIX_FIELD_NUMBER: _ClassVar[int]
    KEYS_ONLY_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    start: WatchStart
    resume_tokens: _containers.RepeatedScalarFieldContainer[bytes]
    fail_on_loss: bool
    key_prefix: bytes
    keys_only: bool
    heartbeat_interval: _duration_pb2.Duration
    max_message_bytes: int
    def __init__(self, namespaces: _Optional[_Iterable[str]] = ..., start: _Optional[_Union[WatchStart, str]] = ..., resume_tokens: _Optional[_Iterable[bytes]] = ..., fail_on_loss: _Optional[bool] = ..., key_prefix: _Optional[bytes] = ..., keys_only: _Optional[bool] = ..., heartbeat_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_message_bytes: _Optional[int] = ...) -> None: ...

class ConsumeExpiredRequest(_message.Message):
    __slots__ = ("namespaces", "group", "start", "max_in_flight", "keys_only", "heartbeat_interval", "max_message_bytes")
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    KEYS_ONLY_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    group: str
    start: WatchStart
    max_in_flight: int
    keys_only: bool
    heartbeat_interval: _duration_pb2.Duration
    max_message_bytes: int
    def __init__(self, namespaces: _Optional[_Iterable[str]] = ..., group: _Optional[str] = ..., start: _Optional[_Union[WatchStart, str]] = ..., max_in_flight: _Optional[int] = ..., keys_only: _Optional[bool] = ..., heartbeat_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_message_bytes: _Optional[int] = ...) -> None: ...

class WatchExpiringRequest(_message.Message):
    __slots__ = ("namespaces", "lead_time", "key_prefix", "keys_only", "heartbeat_interval", "max_message_bytes")
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    LEAD_TIME_FIELD_NUMBER: _ClassVar[int]
    KEY_PREFIX_FIELD_NUMBER: _ClassVar[int]
    KEYS_ONLY_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    lead_time: _duration_pb2.Duration
    key_prefix: bytes
    keys_only: bool
    heartbeat_interval: _duration_pb2.Duration
    max_message_bytes: int
    def __init__(self, namespaces: _Optional[_Iterable[str]] = ..., lead_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., key_prefix: _Optional[bytes] = ..., keys_only: _Optional[bool] = ..., heartbeat_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_message_bytes: _Optional[int] = ...) -> None: ...

class ExpiredEvent(_message.Message):
    __slots__ = ("namespace", "key", "value", "version", "put_time", "deadline", "death_time", "delivered_at", "cause", "event_id", "attempt", "omitted_value_bytes", "parts", "returns", "create_time", "own_ttl", "dead_letter")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PUT_TIME_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    DEATH_TIME_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_AT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OMITTED_VALUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    RETURNS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    OWN_TTL_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    value: bytes
    version: int
    put_time: _timestamp_pb2.Timestamp
    deadline: _timestamp_pb2.Timestamp
    death_time: _timestamp_pb2.Timestamp
    delivered_at: _timestamp_pb2.Timestamp
    cause: ExpiryCause
    event_id: int
    attempt: int
    omitted_value_bytes: int
    parts: GatheredParts
    returns: int
    create_time: _timestamp_pb2.Timestamp
    own_ttl: _duration_pb2.Duration
    dead_letter: DeadLetter
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., version: _Optional[int] = ..., put_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., death_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., delivered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cause: _Optional[_Union[ExpiryCause, str]] = ..., event_id: _Optional[int] = ..., attempt: _Optional[int] = ..., omitted_value_bytes: _Optional[int] = ..., parts: _Optional[_Union[GatheredParts, _Mapping]] = ..., returns: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., own_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., dead_letter: _Optional[_Union[DeadLetter, _Mapping]] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("group", "attempts", "reason", "time")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    group: str
    attempts: int
    reason: DeadLetterReason
    time: _timestamp_pb2.Timestamp
    def __init__(self, group: _Optional[str] = ..., attempts: _Optional[int] = ..., reason: _Optional[_Union[DeadLetterReason, str]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GatheredParts(_message.Message):
    __slots__ = ("parts", "expected_parts", "expected_names")
    PARTS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_PARTS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_NAMES_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[GatheredPart]
    expected_parts: int
    expected_names: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, parts: _Optional[_Iterable[_Union[GatheredPart, _Mapping]]] = ..., expected_parts: _Optional[int] = ..., expected_names: _Optional[_Iterable[bytes]] = ...) -> None: ...

class GatheredPart(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: bytes
    value: bytes
    def __init__(self, name: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class WatchExpiredResponse(_message.Message):
    __slots__ = ("namespace", "events", "watermark", "lost", "resume_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    events: _containers.RepeatedCompositeFieldContainer[ExpiredEvent]
    watermark: _timestamp_pb2.Timestamp
    lost: int
    resume_token: bytes
    def __init__(self, namespace: _Optional[str] = ..., events: _Optional[_Iterable[_Union[ExpiredEvent, _Mapping]]] = ..., watermark: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lost: _Optional[int] = ..., resume_token: _Optional[bytes] = ...) -> None: ...

class ConsumeExpiredResponse(_message.Message):
    __slots__ = ("namespace", "events", "watermark", "lost")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    events: _containers.RepeatedCompositeFieldContainer[ExpiredEvent]
    watermark: _timestamp_pb2.Timestamp
    lost: int
    def __init__(self, namespace: _Optional[str] = ..., events: _Optional[_Iterable[_Union[ExpiredEvent, _Mapping]]] = ..., watermark: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lost: _Optional[int] = ...) -> None: ...

class WatchExpiringResponse(_message.Message):
    __slots__ = ("namespace", "events", "watermark")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    events: _containers.RepeatedCompositeFieldContainer[ExpiredEvent]
    watermark: _timestamp_pb2.Timestamp
    def __init__(self, namespace: _Optional[str] = ..., events: _Optional[_Iterable[_Union[ExpiredEvent, _Mapping]]] = ..., watermark: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Settlement(_message.Message):
    __slots__ = ("event_id", "attempt", "ack", "nack", "put_back", "extend", "returns")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    NACK_FIELD_NUMBER: _ClassVar[int]
    PUT_BACK_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    RETURNS_FIELD_NUMBER: _ClassVar[int]
    event_id: int
    attempt: int
    ack: Ack
    nack: Nack
    put_back: PutBack
    extend: Extend
    returns: int
    def __init__(self, event_id: _Optional[int] = ..., attempt: _Optional[int] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ..., nack: _Optional[_Union[Nack, _Mapping]] = ..., put_back: _Optional[_Union[PutBack, _Mapping]] = ..., extend: _Optional[_Union[Extend, _Mapping]] = ..., returns: _Optional[int] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Nack(_message.Message):
    __slots__ = ("delay",)
    DELAY_FIELD_NUMBER: _ClassVar[int]
    delay: _duration_pb2.Duration
    def __init__(self, delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class PutBack(_message.Message):
    __slots__ = ("ttl", "expire_at", "allow_past")
    TTL_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_AT_FIELD_NUMBER: _ClassVar[int]
    ALLOW_PAST_FIELD_NUMBER: _ClassVar[int]
    ttl: _duration_pb2.Duration
    expire_at: _timestamp_pb2.Timestamp
    allow_past: bool
    def __init__(self, ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., expire_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., allow_past: _Optional[bool] = ...) -> None: ...

class Extend(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SettleExpiredRequest(_message.Message):
    __slots__ = ("namespace", "group", "settlements")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SETTLEMENTS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    group: str
    settlements: _containers.RepeatedCompositeFieldContainer[Settlement]
    def __init__(self, namespace: _Optional[str] = ..., group: _Optional[str] = ..., settlements: _Optional[_Iterable[_Union[Settlement, _Mapping]]] = ...) -> None: ...

class SettleResult(_message.Message):
    __slots__ = ("error", "version")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    error: _status_pb2.Status
    version: int
    def __init__(self, error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class SettleExpiredResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[SettleResult]
    def __init__(self, results: _Optional[_Iterable[_Union[SettleResult, _Mapping]]] = ...) -> None: ...
