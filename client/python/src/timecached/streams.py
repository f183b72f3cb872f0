"""The streams of the blocking client's plain calls: internal to the client.

``timecached.aio.streams`` has the same names for asyncio.
"""

from __future__ import annotations

import _thread
import time
from collections.abc import Iterable
from typing import NoReturn

import grpc

from .connection import Connection
from .duplex import Duplex, Ended
from .errors import TimecacheError, broken, stopping
from .sharing import Call, Metadata, SharedStream
from .tasks import Task
from .v1 import data_pb2

__all__ = ["Stream"]

_parse = data_pb2.ExecuteResponse.FromString


class Stream(SharedStream):
    """A stream of calls on one namespace. Thread-safe.

    A call is sent by its caller's thread if no message is under way; one thread reads answers, and
    sends what has been added in the meantime.
    """

    def __init__(self, connection: Connection, namespace: str, metadata: Metadata) -> None:
        """Begins it. Raises Unsupported, and ValueError on a channel that is closed."""
        super().__init__(namespace)
        metadata = (*metadata, ("x-request-id", self.request_id))
        self._connection = connection
        self._call = Duplex(connection.stubs.channel, metadata)
        Task(self._run, "timecached-calls")

    def exchange(
        self, data: bytes, give_up_at: float | None, timeout: float | None
    ) -> data_pb2.OperationResult:
        """Sends an encoded Operation, and waits for its result.

        Raises NotSent, or the TimecacheError that the stream has ended with: the same for all.
        """
        waiting = _thread.allocate_lock()
        waiting.acquire()
        call = Call(data, give_up_at, timeout, waiting)
        self.waiting.append(call)
        if self.over and self.give_up(call):
            raise self.refusal
        try:
            self._send()
            left = -1.0 if give_up_at is None else max(0.0, give_up_at - time.monotonic())
            if not waiting.acquire(True, left) and self.expire(call):
                self.retire()
        except BaseException:  # As by a KeyboardInterrupt.
            self.give_up(call)
            raise
        return call.result()

    def retire(self) -> None:
        """Takes no more calls, and ends when there are none."""
        with self._call.sending:
            _wake(self.unsent())
            if not self.is_awaited:
                self._call.cancel()

    # Sends what waits. Where another thread just sends, that one looks again after it has released
    # the lock, so nothing is left behind.
    def _send(self) -> None:
        call = self._call
        while (
            self.waiting
            and call.can_send
            and len(self.sent) < self.in_flight_max
            and call.sending.acquire(False)
        ):
            try:
                message = self.next_message() if call.can_send else None
                if message is not None:
                    call.send(message, self.in_flight_max == 1)
            finally:
                call.sending.release()

    def _run(self) -> None:
        try:
            with self._connection.errors():
                self._read()
        except TimecacheError as error:
            end = error
        except Exception as error:
            end = broken(error)
        _wake(self.ended(end))

    def _read(self) -> NoReturn:
        call = self._call
        try:
            while True:
                message = call.read()
                answered = () if message is None else self.answered(_parse(message))
                if answered and self.sent:
                    with call.sending:
                        call.receive()
                elif answered and self.over:
                    call.cancel()
                self._send()
                _wake(answered)
        except Ended as error:
            if error.code() is grpc.StatusCode.OK:
                raise stopping() from error
            raise
        except Exception:
            self.over = True
            call.drain()
            raise


def _wake(calls: Iterable[Call]) -> None:
    for call in calls:
        call.waiting.release()
