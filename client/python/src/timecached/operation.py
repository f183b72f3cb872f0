"""Operations on entries, as values: what a batch or a pipeline is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Generic, TypeVar

from . import types
from .errors import TimecacheError, error_from_status, unreadable
from .types import (
    AppendResult,
    BytesLike,
    CombineResult,
    Duration,
    Entry,
    GatherResult,
    PutResult,
    RemoveResult,
    to_bytes,
    to_duration,
    to_names,
    to_timestamp,
)
from .v1 import data_pb2

T = TypeVar("T")
U = TypeVar("U")

MAX_OPERATIONS = 4096
"""Most operations of one request."""
MAX_REQUEST_BYTES = (16 << 20) + (64 << 10)
"""Most bytes of one request."""


_KINDS = ("put", "get", "remove", "contains", "touch", "append", "combine", "gather")
_METHODS = {kind: f"data.{kind.capitalize()}" for kind in _KINDS}


class Operation(Generic[T]):
    """An operation to be done: as the method of the same name of Client, with the same arguments.

    Immutable; holds its key and value. T is what it comes to.
    """

    __slots__ = ("_kind", "_message", "_parse")

    def __init__(self, kind: str, message: data_pb2.Operation, parse: Callable[[Any], T]) -> None:
        """For the functions below."""
        self._kind = kind
        self._message = message
        self._parse = parse

    def __repr__(self) -> str:
        return f"Operation.{self._kind}({getattr(self._message, self._kind).key!r})"

    @staticmethod
    def put(
        key: BytesLike,
        value: BytesLike,
        *,
        ttl: Duration | None = None,
        if_absent: bool = False,
        if_present: bool = False,
        if_version: int | None = None,
        return_previous: bool = False,
        keep_deadline: bool = False,
        expire_at: datetime | None = None,
        allow_past: bool = False,
        idempotency_id: BytesLike | None = None,
        traceparent: str | None = None,
    ) -> Operation[PutResult]:
        """As Client.put."""
        message = data_pb2.Operation()
        request = message.put
        request.key = to_bytes(key)
        _set_id(request, idempotency_id)
        _set_trace(request, traceparent)
        request.value = to_bytes(value)
        set_life(request, ttl, expire_at, allow_past)
        _set_condition(request, if_absent, if_present, if_version)
        if return_previous:
            request.return_previous = True
        if keep_deadline:
            request.keep_deadline = True
        return Operation("put", message, lambda r: PutResult(r.version, _previous(r, request.key)))

    @staticmethod
    def get(key: BytesLike, *, touch: bool | None = None) -> Operation[Entry | None]:
        """As Client.get."""
        message = data_pb2.Operation()
        request = message.get
        request.key = to_bytes(key)
        if touch is not None:
            request.touch = touch
        return Operation(
            "get",
            message,
            lambda r: types.entry_from(r.entry, request.key) if r.HasField("entry") else None,
        )

    @staticmethod
    def remove(
        key: BytesLike,
        *,
        if_version: int | None = None,
        return_previous: bool = False,
        idempotency_id: BytesLike | None = None,
    ) -> Operation[RemoveResult]:
        """As Client.remove."""
        message = data_pb2.Operation()
        request = message.remove
        request.key = to_bytes(key)
        _set_id(request, idempotency_id)
        if if_version is not None:
            request.if_version = if_version
        if return_previous:
            request.return_previous = True
        return Operation(
            "remove", message, lambda r: RemoveResult(r.removed, _previous(r, request.key))
        )

    @staticmethod
    def contains(
        key: BytesLike,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_version: int | None = None,
    ) -> Operation[bool]:
        """As Client.contains."""
        message = data_pb2.Operation()
        request = message.contains
        request.key = to_bytes(key)
        _set_condition(request, if_absent, if_present, if_version)
        return Operation("contains", message, lambda r: bool(r.contains))

    @staticmethod
    def touch(
        key: BytesLike,
        *,
        ttl: Duration | None = None,
        if_version: int | None = None,
        expire_at: datetime | None = None,
        allow_past: bool = False,
        namespace_ttl: bool = False,
    ) -> Operation[int | None]:
        """As Client.touch."""
        message = data_pb2.Operation()
        request = message.touch
        request.key = to_bytes(key)
        set_life(request, ttl, expire_at, allow_past)
        if if_version is not None:
            request.if_version = if_version
        if namespace_ttl:
            request.namespace_ttl = True
        return Operation("touch", message, lambda r: r.version if r.touched else None)

    @staticmethod
    def append(
        key: BytesLike,
        value: BytesLike,
        *,
        ttl: Duration | None = None,
        if_absent: bool = False,
        if_present: bool = False,
        if_version: int | None = None,
        touch: bool = False,
        idempotency_id: BytesLike | None = None,
        traceparent: str | None = None,
    ) -> Operation[AppendResult]:
        """As Client.append."""
        message = data_pb2.Operation()
        request = message.append
        request.key = to_bytes(key)
        _set_id(request, idempotency_id)
        _set_trace(request, traceparent)
        request.value = to_bytes(value)
        _set_ttl(request, ttl)
        _set_condition(request, if_absent, if_present, if_version)
        if touch:
            request.touch = True
        return Operation(
            "append", message, lambda r: AppendResult(r.version, r.value_bytes, r.created)
        )

    @staticmethod
    def combine(
        key: BytesLike,
        *,
        add: int | None = None,
        xor: int | None = None,
        initial: int = 0,
        remove_if_zero: bool = False,
        touch: bool = False,
        ttl: Duration | None = None,
        if_version: int | None = None,
        idempotency_id: BytesLike | None = None,
        traceparent: str | None = None,
    ) -> Operation[CombineResult]:
        """As Client.combine."""
        if (add is None) == (xor is None):
            raise ValueError("combine takes one of add and xor")
        message = data_pb2.Operation()
        request = message.combine
        request.key = to_bytes(key)
        _set_id(request, idempotency_id)
        _set_trace(request, traceparent)
        if add is not None:
            request.add = add
        else:
            assert xor is not None
            request.xor = xor
        request.initial = initial
        if remove_if_zero:
            request.remove_if_zero = True
        if touch:
            request.touch = True
        _set_ttl(request, ttl)
        if if_version is not None:
            request.if_version = if_version
        return Operation(
            "combine",
            message,
            lambda r: CombineResult(r.result, r.version, r.created, r.removed),
        )

    @staticmethod
    def gather(
        key: BytesLike,
        part: BytesLike,
        value: BytesLike,
        *,
        expected_parts: int | None = None,
        expected_names: Iterable[BytesLike] = (),
        touch: bool = False,
        ttl: Duration | None = None,
        keep_first: bool = False,
        remember: Duration | None = None,
        idempotency_id: BytesLike | None = None,
        traceparent: str | None = None,
    ) -> Operation[GatherResult]:
        """As Client.gather."""
        message = data_pb2.Operation()
        request = message.gather
        request.key = to_bytes(key)
        _set_id(request, idempotency_id)
        _set_trace(request, traceparent)
        request.part = to_bytes(part)
        request.value = to_bytes(value)
        if expected_parts is not None:
            request.expected_parts = expected_parts
        request.expected_names.extend(map(to_bytes, to_names(expected_names)))
        if touch:
            request.touch = True
        _set_ttl(request, ttl)
        if keep_first:
            request.keep_first = True
        if remember is not None:
            request.remember.CopyFrom(to_duration(remember))
        return Operation("gather", message, _gathered)

    def map(self, function: Callable[[T], U]) -> Operation[U]:
        """The same, whose result is what `function` makes of this one's."""
        return Operation(self._kind, self._message, lambda r: function(self._parse(r)))

    # --- for the client itself ---

    @property
    def kind(self) -> str:
        """The name of its RPC, in small letters."""
        return self._kind

    @property
    def message(self) -> data_pb2.Operation:
        """As it goes on the wire in a batch, without a namespace."""
        return self._message

    def is_safe(self, atomic: bool = False) -> bool:
        """Whether it may be repeated. `atomic`: with others that it must not fail another time."""
        request = getattr(self._message, self._kind)
        if self._kind == "get":
            return True
        if self._kind == "contains":
            return not (atomic and request.WhichOneof("precondition"))
        if self._kind == "touch":
            return not (atomic and request.HasField("if_version"))
        return bool(request.idempotency_id)

    @property
    def method(self) -> str:
        """Its RPC, by the names of stub and method."""
        return _METHODS[self._kind]

    @property
    def inner(self) -> Any:
        """As it goes on the wire alone, but for the namespace."""
        return getattr(self._message, self._kind)

    def encoded(self, request_id: str, traceparent: str) -> bytes:
        """As it goes on the wire with the calls of others."""
        data = self._message.SerializeToString()
        if request_id:
            data += delimited(b"\x4a", request_id.encode())
        if traceparent:
            data += delimited(b"\x52", traceparent.encode())
        return data

    def parse(self, response: Any) -> T:
        """What the response of its RPC says."""
        return self._parse(response)

    def outcome(self, result: data_pb2.OperationResult) -> T | TimecacheError:
        """What its result in a pipeline says; also of one that cannot be read."""
        try:
            return self.parse_result(result)
        except Exception as error:
            return unreadable(error)

    def parse_result(self, result: data_pb2.OperationResult) -> T | TimecacheError:
        """What its result in a batch says."""
        kind = result.WhichOneof("result")
        if kind == "error":
            return error_from_status(result.error)
        return self._parse(getattr(result, self._kind))


def delimited(tag: bytes, data: bytes) -> bytes:
    """For the client itself: a field of bytes, as it goes on the wire."""
    size = len(data)
    if size < 0x80:
        return b"%b%c%b" % (tag, size, data)
    length = bytearray()
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return tag + length + data


def _set_id(request: Any, idempotency_id: BytesLike | None) -> None:
    if idempotency_id is not None:
        request.idempotency_id = to_bytes(idempotency_id)


def _set_trace(request: Any, traceparent: str | None) -> None:
    if traceparent is not None:
        request.traceparent = traceparent


def _set_ttl(request: Any, ttl: Duration | None) -> None:
    if ttl is not None:
        request.ttl.CopyFrom(to_duration(ttl))


def set_life(
    request: Any, ttl: Duration | None, expire_at: datetime | None, allow_past: bool
) -> None:
    """For the client itself: how long an entry is to live, in a put, a touch or a put-back."""
    _set_ttl(request, ttl)
    if expire_at is not None:
        request.expire_at.CopyFrom(to_timestamp(expire_at))
    if allow_past:
        request.allow_past = True


def _set_condition(request: Any, if_absent: bool, if_present: bool, if_version: int | None) -> None:
    if if_absent + if_present + (if_version is not None) > 1:
        raise ValueError("at most one of if_absent, if_present and if_version")
    if if_absent:
        request.condition = data_pb2.PUT_CONDITION_IF_ABSENT
    elif if_present:
        request.condition = data_pb2.PUT_CONDITION_IF_PRESENT
    elif if_version is not None:
        request.if_version = if_version


def _previous(response: Any, key: bytes) -> Entry | None:
    return types.entry_from(response.previous, key) if response.HasField("previous") else None


def _gathered(response: data_pb2.GatherResponse) -> GatherResult:
    parts = types.parts_from(response.parts) if response.HasField("parts") else None
    return GatherResult(parts, response.version, response.count, response.duplicate)
