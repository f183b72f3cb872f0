"""The streams on which a client's plain calls go together: internal to the client.

A message has all calls that wait when it is made; while as many messages as ``in_flight_max`` are
not answered, calls wait for the next one. Each call is held by a caller that waits for it, so the
callers bound the memory. ``timecached.streams`` and ``timecached.aio.streams`` send and read.
"""

from __future__ import annotations

import collections
import secrets
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import grpc

from .errors import TimecacheError, late_call, miscounted
from .operation import MAX_OPERATIONS, delimited
from .reasons import ErrorReason
from .v1 import data_pb2

C = TypeVar("C")
S = TypeVar("S", bound="SharedStream")

Metadata = tuple[tuple[str, str | bytes], ...]

STREAMS_MAX = 64
"""Most streams of one client."""
CALL_BYTES_MAX = 64 << 10
"""Largest request that goes with others: a small call must not wait behind a large one."""
MESSAGE_BYTES_MAX = 1 << 20
"""A message of so many bytes takes no more calls."""

# From so many seconds of a round trip on, to a server that is far or that stores what it answers,
# several messages may be in flight: a call then waits less before it is sent. As many as the server
# stores together.
_ROUND_TRIP = 0.002
_IN_FLIGHT_MAX = 4
# After how many messages the shortest round trip is taken anew.
_WINDOW = 64


class NotSent(Exception):
    """The stream takes no more calls, and this one was not sent: it goes on the next one."""


class Call:
    """One call on a stream."""

    __slots__ = ("data", "give_up_at", "outcome", "timeout", "waiting")

    def __init__(
        self, data: bytes, give_up_at: float | None, timeout: float | None, waiting: Any
    ) -> None:
        """`data`: an encoded Operation. `waiting`: what its caller waits with."""
        self.data = data
        self.give_up_at = give_up_at
        self.timeout = timeout
        self.waiting = waiting
        self.outcome: data_pb2.OperationResult | Exception | None = None

    def result(self) -> data_pb2.OperationResult:
        """Its outcome, once there is one; raises that if it is an error."""
        outcome = self.outcome
        if type(outcome) is data_pb2.OperationResult:
            return outcome
        assert isinstance(outcome, Exception)
        raise outcome


class SharedStream:
    """The calls of one stream: those that wait, and those that were sent and not answered.

    One thread at a time makes and counts messages; calls are added and removed by any.
    """

    def __init__(self, namespace: str) -> None:
        self.request_id = secrets.token_hex(16)
        """Of calls that have none of their own."""
        self.over = False
        """Whether it takes no more calls."""
        self.refusal: Exception = NotSent()
        """What they get: the error with which it was refused before it had sent any."""
        self.in_flight_max = 1
        self.waiting: collections.deque[Call] = collections.deque()
        self.sent: collections.deque[tuple[list[Call], float]] = collections.deque()
        self.progress_at = time.monotonic()
        """When it was opened, was last answered, or sent something while nothing was in flight."""
        # ExecuteRequest's namespace and independent.
        self._head = delimited(b"\x0a", namespace.encode()) + b"\x20\x01"
        self._answers = 0
        self._shortest = float("inf")

    def retire(self) -> None:
        """Takes no more calls, and ends when none of those that it has is waited for."""
        raise NotImplementedError

    @property
    def is_idle(self) -> bool:
        """Whether it has no calls."""
        return not self.waiting and not self.sent

    @property
    def is_awaited(self) -> bool:
        """Whether a caller waits for the answer to what was sent."""
        return any(call.outcome is None for calls, _ in list(self.sent) for call in calls)

    @property
    def has_answered(self) -> bool:
        """Whether the server has taken it."""
        return self._answers > 0

    def next_message(self) -> bytes | None:
        """The next ExecuteRequest, of the calls that wait.

        None: there are none, or as many messages are in flight as there may be.
        """
        if not self.waiting or len(self.sent) >= self.in_flight_max:
            return None
        calls: list[Call] = []
        pieces = [self._head]
        size = 0
        while size < MESSAGE_BYTES_MAX and len(calls) < MAX_OPERATIONS:
            try:
                call = self.waiting.popleft()
            except IndexError:
                break
            calls.append(call)
            pieces.append(delimited(b"\x12", call.data))
            size += len(call.data)
        if not calls:
            return None
        now = time.monotonic()
        if not self.sent:
            self.progress_at = now
        self.sent.append((calls, now))
        return b"".join(pieces)

    def answered(self, response: data_pb2.ExecuteResponse) -> list[Call]:
        """The calls that a message answers, with their outcomes."""
        results = response.results
        calls, sent_at = self.sent[0]
        if len(results) != len(calls):
            raise miscounted(len(calls), len(results))
        self.sent.popleft()
        for call, result in zip(calls, results, strict=True):
            call.outcome = result
        now = self.progress_at = time.monotonic()
        if now - sent_at < self._shortest:
            self._shortest = now - sent_at
        self._answers += 1
        if self._answers % _WINDOW == 0:
            self.in_flight_max = _IN_FLIGHT_MAX if self._shortest >= _ROUND_TRIP else 1
            self._shortest = float("inf")
        return calls

    def ended(self, error: TimecacheError) -> list[Call]:
        """The calls that an error ends, with their outcomes: of what was sent first."""
        sent = [call for calls, _ in self.sent for call in calls]
        if not sent and not self.has_answered and not self.over:
            self.refusal = error
            error.maybe_applied = False
        self.over = True
        self.sent.clear()
        # Nothing of it was done, and another stream may do: it brings another token, or comes on
        # another connection than one that is past the server's max_connection_age.
        again = self.has_answered and (
            error.code is grpc.StatusCode.UNAUTHENTICATED or error.reason == ErrorReason.DRAINING
        )
        for call in sent:
            if call.outcome is None:  # Its caller may not yet know that it is late.
                call.outcome = NotSent() if again else error
        return [*sent, *self.unsent()]

    def unsent(self) -> list[Call]:
        """Removes the calls that wait, with their outcomes; the stream takes no more."""
        self.over = True
        calls = []
        while self.waiting:
            try:
                call = self.waiting.popleft()
            except IndexError:
                break
            call.outcome = self.refusal
            calls.append(call)
        return calls

    def give_up(self, call: Call) -> bool:
        """Removes a call whose caller waits no longer. False: it has been sent."""
        if call.outcome is None:
            call.outcome = _GIVEN_UP
        try:
            self.waiting.remove(call)
        except ValueError:
            return False
        return True

    def expire(self, call: Call) -> bool:
        """Ends a call that is late; whether the stream is to be retired.

        It is if no answer has come for half of the call's timeout: half, as the call may have
        waited for the answer to an earlier message first. To retire it harms no other call: what
        was not sent goes on another stream, and what was sent may still be answered.
        """
        if call.outcome is not None:
            return False
        sent = not self.give_up(call)
        call.outcome = late_call(maybe_applied=sent)
        waited = time.monotonic() - self.progress_at
        return self.over or waited >= (call.timeout or 0) / 2


_GIVEN_UP = NotSent()


class Streams(Generic[C, S]):
    """The streams of a client, by connection and namespace. Thread-safe."""

    def __init__(self, begin: Callable[[C, str, Metadata], S]) -> None:
        """`begin`: a stream on a connection for a namespace, with metadata."""
        self._begin = begin
        self._lock = threading.Lock()
        self._streams: dict[tuple[C, str], S] = {}

    def __del__(self) -> None:
        if sys.is_finalizing():
            return  # Threads have been stopped with their locks.
        for stream in self._streams.values():
            if not stream.over:
                stream.retire()

    def find(self, connection: C, namespace: str) -> S | None:
        """One that takes calls; None: it has to be opened."""
        stream = self._streams.get((connection, namespace))
        return None if stream is None or stream.over else stream

    def open(self, connection: C, namespace: str, metadata: Metadata) -> S | None:
        """The same, opened if need be; None: all that there may be have calls.

        Raises what gRPC raises, within ``Connection.errors``.
        """
        with self._lock:
            stream = self.find(connection, namespace)
            if stream is not None:
                return stream
            self._streams = {k: each for k, each in self._streams.items() if not each.over}
            if len(self._streams) >= STREAMS_MAX and not self._close_one():
                return None
            stream = self._begin(connection, namespace, metadata)
            self._streams[connection, namespace] = stream
            return stream

    def _close_one(self) -> bool:
        idle = [(each.progress_at, k) for k, each in self._streams.items() if each.is_idle]
        if not idle:
            return False
        self._streams.pop(min(idle, key=lambda each: each[0])[1]).retire()
        return True
