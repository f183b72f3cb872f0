"""The streams of plain calls, for asyncio: internal to the client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

import grpc.aio

from ..connection import AsyncConnection
from ..duplex import METHOD
from ..errors import TimecacheError, broken, cancelled, stopping
from ..sharing import Call, Metadata, SharedStream
from ..v1 import data_pb2
from .tasks import Task

__all__ = ["Stream"]


class Stream(SharedStream):
    """A stream of calls on one namespace. For one event loop.

    A task sends what was added in a turn of the loop, another one reads.
    """

    def __init__(self, connection: AsyncConnection, namespace: str, metadata: Metadata) -> None:
        """Begins it. Raises UsageError on a channel that is closed."""
        super().__init__(namespace)
        self._connection = connection
        open_call = connection.stubs.channel.stream_stream(
            METHOD.decode(), response_deserializer=data_pb2.ExecuteResponse.FromString
        )
        self._call = open_call(metadata=(*metadata, ("x-request-id", self.request_id)))
        self._loop = asyncio.get_running_loop()
        self._wanted: asyncio.Future[None] | None = None  # What the task that sends waits for.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._writer = Task(self._write, "timecached-calls-send")
        Task(self._read, "timecached-calls")

    async def exchange(
        self, data: bytes, give_up_at: float | None, timeout: float | None
    ) -> data_pb2.OperationResult:
        """Sends an encoded Operation, and waits for its result.

        Raises NotSent, or the TimecacheError that the stream has ended with: the same for all.
        """
        if self.over:
            raise self.refusal
        call = Call(data, give_up_at, timeout, self._loop.create_future())
        self.waiting.append(call)
        self._send()
        if give_up_at is not None and give_up_at < self._timer_at:
            self._set_timer(give_up_at)
        try:
            await call.waiting
        except asyncio.CancelledError:
            self.give_up(call)
            self._end_if_over()
            raise
        return call.result()

    def retire(self) -> None:
        """Takes no more calls, and ends when there are none."""
        _wake(self.unsent())
        self._end_if_over()

    def _end_if_over(self) -> None:
        if self.over and not self.is_awaited:
            self._call.cancel()

    # There is one timer for all calls: most of them have the same timeout, and are answered.
    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_later(at - time.monotonic(), self._expire)

    def _expire(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        now, first = time.monotonic(), float("inf")
        for call in [*self.waiting, *(call for calls, _ in self.sent for call in calls)]:
            if call.give_up_at is None or call.outcome is not None:
                continue
            if call.give_up_at > now:
                first = min(first, call.give_up_at)
            elif self.expire(call):
                self.retire()
            _wake([call] if call.outcome is not None else ())
        if first < self._timer_at:
            self._set_timer(first)

    def _send(self) -> None:
        if self.waiting and self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)

    async def _read(self) -> None:
        call = self._call
        try:
            with self._connection.errors():
                while (response := await call.read()) is not grpc.aio.EOF:
                    _wake(self.answered(response))
                    self._end_if_over()
                    self._send()
            end = stopping()
        except TimecacheError as error:
            end = error
        except asyncio.CancelledError:
            end = cancelled("the stream was ended")
        except Exception as error:
            end = broken(error)
        call.cancel()
        self._writer.cancel()
        if self._timer is not None:
            self._timer.cancel()
        _wake(self.ended(end))

    async def _write(self) -> None:
        try:
            await self._call.wait_for_connection()
            # Where this fails, ``write`` would say so in the place of what the server has said.
            inner = getattr(self._call, "_cython_call", None)
            send = getattr(inner, "send_serialized_message", self._call.write)
            while True:
                message = self.next_message()
                if message is not None:
                    await send(message)
                else:
                    self._wanted = self._loop.create_future()
                    await self._wanted
        except Exception:
            pass  # The task that reads gets the status.


def _wake(calls: Iterable[Call]) -> None:
    for call in calls:
        if not call.waiting.done():
            call.waiting.set_result(None)
