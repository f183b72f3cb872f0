"""How calls fail: TimecacheError, and a subclass for each code."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from .reasons import ErrorReason

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CallCancelledError",
    "ClosedError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "FieldViolation",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "TimecacheError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
]

_DETAILS_KEY = "grpc-status-details-bin"
_REQUEST_ID_KEY = "x-request-id"
_CODES = {code.value[0]: code for code in grpc.StatusCode}


@dataclasses.dataclass(frozen=True, slots=True)
class FieldViolation:
    """A field of a request that the server refused, and what is wrong with it."""

    field: str
    """Its path in the request: ``options.ttl``."""
    description: str


class TimecacheError(Exception):
    """A call failed: by the server's word, or on the way to it.

    ``maybe_applied`` says whether it may have been done all the same.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        reason: str | None = None,
        metadata: Mapping[str, str] | None = None,
        violations: Iterable[FieldViolation] = (),
        retry_delay: timedelta | None = None,
        request_id: str | None = None,
        maybe_applied: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        """The gRPC code."""
        self.message = message
        """What the server, or gRPC, said. For people: it may change."""
        self.reason = reason
        """Why the server refused: the name of an ErrorReason. None: not the server's own error."""
        self.metadata: Mapping[str, str] = dict(metadata or {})
        """What else the server said, e.g. which ``namespace``: see errors.proto."""
        self.violations: tuple[FieldViolation, ...] = tuple(violations)
        """The fields that an INVALID_ARGUMENT is about."""
        self.retry_delay = retry_delay
        """How long the server says to wait before the call is tried again."""
        self.request_id = request_id
        """The call's id in the server's log: the client's own, or the server's."""
        self.maybe_applied = (
            _can_be_applied(code, message, reason) if maybe_applied is None else maybe_applied
        )
        """Whether the request can have reached the server and been done. False: it was not, by any
        of the call's attempts: the server refused it, or there was no connection to send it on."""

    @property
    def field(self) -> str | None:
        """The path of the first field that the server refused."""
        return self.violations[0].field if self.violations else None

    @property
    def is_connection_lost(self) -> bool:
        """Whether there was no connection, it broke, or the server is stopping."""
        if self.code is grpc.StatusCode.UNAVAILABLE:
            return True
        return self.reason is None and self.code in (
            grpc.StatusCode.INTERNAL,
            grpc.StatusCode.UNKNOWN,
            grpc.StatusCode.CANCELLED,
        )

    @property
    def is_not_connected(self) -> bool:
        """Whether there was no connection, so that nothing was sent."""
        return (
            self.code is grpc.StatusCode.UNAVAILABLE
            and self.reason is None
            and _NOT_CONNECTED.search(self.message) is not None
        )

    @property
    def is_throttled(self) -> bool:
        """Whether the server, or a proxy, ended the call to slow this client down (RST_STREAM with
        ENHANCE_YOUR_CALM): the same later may succeed."""
        return (
            self.code is grpc.StatusCode.RESOURCE_EXHAUSTED
            and self.reason is None
            and "larger than max" not in self.message
        )

    def __str__(self) -> str:
        head = self.code.name if self.reason is None else f"{self.code.name} ({self.reason})"
        return f"{head}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (
            self.code,
            self.message,
            {
                "reason": self.reason,
                "metadata": self.metadata,
                "violations": self.violations,
                "retry_delay": self.retry_delay,
                "request_id": self.request_id,
                "maybe_applied": self.maybe_applied,
            },
        )

    def for_call(self, request_id: str) -> TimecacheError:
        """The same error, of one of the calls that it ends; with that call's id, if it has one."""
        make, arguments = self.__reduce__()
        error: TimecacheError = make(*arguments)
        error.request_id = request_id or self.request_id
        error.__cause__ = self.__cause__
        return error

    def about(self, what: str) -> TimecacheError:
        """The same error, whose message says what it is about."""
        make, (code, message, said) = self.__reduce__()
        error: TimecacheError = make(code, f"{what}: {message}", said)
        error.__cause__ = self
        return error


class InvalidArgumentError(TimecacheError):
    """INVALID_ARGUMENT: a field is malformed or out of its range; ``field`` says which."""


class NotFoundError(TimecacheError):
    """NOT_FOUND: no such namespace, group, or event to settle."""


class AlreadyExistsError(TimecacheError):
    """ALREADY_EXISTS: a namespace, group or part of that name."""


class FailedPreconditionError(TimecacheError):
    """FAILED_PRECONDITION: a condition does not hold; ``reason`` says which."""


class AbortedError(TimecacheError):
    """ABORTED: another operation of an atomic ``execute`` failed (NOT_APPLIED); of recipes, others
    were at it at the same time: try again."""


class DataLossError(TimecacheError):
    """DATA_LOSS: a value is not what it should be: of recipes only."""


class OutOfRangeError(TimecacheError):
    """OUT_OF_RANGE: a place in the log of events that is not, or not yet, there."""


class ResourceExhaustedError(TimecacheError):
    """RESOURCE_EXHAUSTED: a limit, which ``reason`` names."""


class UnauthenticatedError(TimecacheError):
    """UNAUTHENTICATED: the server does not know who calls."""


class PermissionDeniedError(TimecacheError):
    """PERMISSION_DENIED: the caller may not do that."""


class UnavailableError(TimecacheError):
    """UNAVAILABLE: no server there, or it is stopping."""


class DeadlineExceededError(TimecacheError):
    """DEADLINE_EXCEEDED: no answer in time."""


class CallCancelledError(TimecacheError):
    """CANCELLED: the call, watch or pipeline was ended by its owner, or by the server."""


class ClosedError(CallCancelledError):
    """The client was closed, before the call or during it."""

    def __init__(self, maybe_applied: bool = False) -> None:
        super().__init__(
            grpc.StatusCode.CANCELLED, "the client is closed", maybe_applied=maybe_applied
        )

    @property
    def is_connection_lost(self) -> bool:
        """Never: it does not come back."""
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        return ClosedError, (self.maybe_applied,)

    def about(self, what: str) -> TimecacheError:
        """As it is."""
        return self


class UnimplementedError(TimecacheError):
    """UNIMPLEMENTED: the server has no such method."""


class InternalError(TimecacheError):
    """INTERNAL: a bug, or a connection that broke."""


# What gRPC says of a call that it never had a connection for. It has no code of its own.
_NOT_CONNECTED = re.compile(
    r"failed to connect to all addresses|(DNS|name) (resolution|query|resolver) (failed|error)"
    r"|errors resolving"
    r"|empty address list",
    re.IGNORECASE,
)


def _can_be_applied(code: grpc.StatusCode, message: str, reason: str | None) -> bool:
    if reason is not None:
        # The server refuses before it does anything; but for what it did not foresee, and where
        # it has lost the ownership while the call waited.
        return reason in (ErrorReason.INTERNAL_ERROR, "OWNERSHIP_LOST")
    if code is grpc.StatusCode.UNAVAILABLE:
        return _NOT_CONNECTED.search(message) is None
    return code is not grpc.StatusCode.UNIMPLEMENTED


_CLASSES: dict[grpc.StatusCode, type[TimecacheError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.ABORTED: AbortedError,
    grpc.StatusCode.DATA_LOSS: DataLossError,
    grpc.StatusCode.OUT_OF_RANGE: OutOfRangeError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.CANCELLED: CallCancelledError,
    grpc.StatusCode.UNIMPLEMENTED: UnimplementedError,
    grpc.StatusCode.INTERNAL: InternalError,
}


def _make(code: grpc.StatusCode, message: str, said: dict[str, Any]) -> TimecacheError:
    return _CLASSES.get(code, TimecacheError)(code, message, **said)


def error_from_status(status: status_pb2.Status, request_id: str | None = None) -> TimecacheError:
    """The error in a google.rpc.Status."""
    said: dict[str, Any] = {"request_id": request_id}
    info = error_details_pb2.ErrorInfo()
    bad = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    for detail in status.details:
        if detail.Unpack(info):
            said["reason"] = info.reason
            said["metadata"] = dict(info.metadata)
        elif detail.Unpack(bad):
            said["violations"] = [
                FieldViolation(v.field, v.description) for v in bad.field_violations
            ]
        elif detail.Unpack(retry):
            said["retry_delay"] = retry.retry_delay.ToTimedelta()
    return _make(_CODES.get(status.code, grpc.StatusCode.UNKNOWN), status.message, said)


def error_from_rpc(error: grpc.RpcError) -> TimecacheError:
    """The error that a call of gRPC's, of either kind, has raised."""
    call: Any = error
    request_id = None
    for key, value in call.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            try:
                status = status_pb2.Status.FromString(value)
                if status.code == call.code().value[0]:
                    return error_from_status(status, _request_id(call))
            except (DecodeError, OverflowError):
                # A proxy has garbled them: what gRPC itself says is still an error of ours.
                continue
        elif key == _REQUEST_ID_KEY:
            request_id = value
    return _make(call.code(), call.details() or "", {"request_id": request_id})


def _request_id(call: Any) -> str | None:
    for key, value in call.trailing_metadata() or ():
        if key == _REQUEST_ID_KEY:
            return str(value)
    return None


def cancelled(message: str) -> TimecacheError:
    """For what its owner has ended."""
    return CallCancelledError(grpc.StatusCode.CANCELLED, message)


def stopping() -> TimecacheError:
    """For a stream that the server has closed in good order."""
    return UnavailableError(grpc.StatusCode.UNAVAILABLE, "the server is stopping")


def silent() -> TimecacheError:
    """For a stream that brings nothing."""
    return UnavailableError(grpc.StatusCode.UNAVAILABLE, "the server fell silent")


def late(timeout: float) -> TimecacheError:
    """For a stream that is waited for in vain."""
    return DeadlineExceededError(
        grpc.StatusCode.DEADLINE_EXCEEDED, f"no answer within {timeout:g} s"
    )


def late_call(maybe_applied: bool) -> TimecacheError:
    """For a plain call that is late, as gRPC says it."""
    return DeadlineExceededError(
        grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", maybe_applied=maybe_applied
    )


def unreadable(error: Exception) -> TimecacheError:
    """For an answer that is none to its operation."""
    failure = InternalError(grpc.StatusCode.INTERNAL, f"the answer cannot be read: {error!r}")
    failure.__cause__ = error
    return failure


def miscounted(expected: int, results: int) -> TimecacheError:
    """For an answer with another number of results than there were requests in the call."""
    return InternalError(
        grpc.StatusCode.INTERNAL,
        f"{results} results for {expected}: is the server of this version?",
    )


def broken(error: Exception) -> TimecacheError:
    """For a stream that something unforeseen has ended."""
    failure = InternalError(grpc.StatusCode.INTERNAL, f"the stream cannot go on: {error!r}")
    failure.__cause__ = error
    return failure
