"""Many operations without waiting for each answer, for asyncio."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar

from ..channel import Settings
from ..connection import AsyncConnection
from ..errors import TimecacheError, broken, cancelled, late, stopping
from ..operation import MAX_OPERATIONS, Operation
from ..v1 import data_pb2

T = TypeVar("T")
_Batch = list[tuple[Operation[Any], "asyncio.Future[Any]"]]


class Pipeline:
    """A stream of operations on one namespace, and of their results; made by Client.pipeline.

    ::

        async with client.pipeline() as pipeline:
            futures = [await pipeline.add(Operation.put(key, value)) for key, value in entries]
        versions = [future.result().version for future in futures]

    Operations are done in the order in which they were added; each succeeds or fails by itself.
    What has been added is sent when nothing is in flight, when it makes a full request, or by
    ``flush``. ``add`` waits while requests_in_flight_max are unanswered, so memory is bounded.
    When the stream ends before an operation is answered, its future gets the stream's error, and
    whether it was done is not known. It ends with DeadlineExceededError if no answer comes for the
    client's timeout. A pipeline does not come back: make a new one. For one event loop.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        method: Any,
        settings: Settings,
        metadata: Callable[[], Awaitable[Any]],
        batch_operations_max: int,
        batch_bytes_max: int,
        requests_in_flight_max: int,
    ) -> None:
        """For Client.pipeline."""
        self._connection = connection
        self._settings = settings
        self._operations_max = min(max(1, batch_operations_max), MAX_OPERATIONS)
        self._bytes_max = batch_bytes_max
        self._in_flight_max = max(1, requests_in_flight_max)
        self._metadata = metadata
        self._method = method
        self._batch: _Batch = []
        self._batch_bytes = 0
        self._in_flight: collections.deque[_Batch] = collections.deque()
        self._requests: asyncio.Queue[data_pb2.ExecuteRequest | None] = asyncio.Queue()
        self._room = asyncio.Event()
        self._end: TimecacheError | None = None
        self._closing = False
        self._reader: asyncio.Task[None] | None = None
        self._call: Any = None
        # When the last answer came, or the first request went out since nothing was in flight.
        self._progress_at = 0.0
        self._watchdog: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Pipeline:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.cancel()
        await self.close()

    async def add(self, operation: Operation[T]) -> asyncio.Future[T]:
        """Takes an operation, waiting for room; its result comes in the future.

        Raises the TimecacheError that the stream has ended with, and ValueError after ``close``.
        """
        while True:
            if self._end is not None:
                raise self._end
            if self._closing:
                raise ValueError("the pipeline is closed")
            if len(self._in_flight) < self._in_flight_max:
                break
            self._room.clear()
            await self._room.wait()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        # Who does not look at it means the others.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        size = operation.message.ByteSize()
        if self._batch and self._batch_bytes + size > self._bytes_max:
            self.flush()
        self._batch.append((operation, future))
        self._batch_bytes += size
        if not self._in_flight or len(self._batch) >= self._operations_max:
            self.flush()
        return future

    def flush(self) -> None:
        """Sends what has been added."""
        if not self._batch or self._end is not None:
            return
        if self._reader is None:
            self._reader = asyncio.create_task(self._read())
        if not self._in_flight:
            self._progress_at = asyncio.get_running_loop().time()
        if self._watchdog is None:
            self._watch()
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        self._in_flight.append(batch)
        self._requests.put_nowait(
            data_pb2.ExecuteRequest(
                namespace=self._settings.namespace,
                operations=[operation.message for operation, _ in batch],
            )
        )

    async def close(self) -> None:
        """Sends what has been added, waits for all results, and ends the stream.

        Raises the TimecacheError that it has ended with, but not after ``cancel``. May be called
        again.
        """
        self.flush()
        self._closing = True
        if self._reader is not None:
            self._progress_at = asyncio.get_running_loop().time()
            if self._watchdog is None and self._end is None:
                self._watch()
        self._requests.put_nowait(None)
        if self._reader is not None:
            await self._reader
        if self._end is not None and self._end.message != _CANCELLED:
            raise self._end

    def cancel(self) -> None:
        """Ends the stream at once: what is in flight gets CallCancelledError."""
        self._stop(cancelled(_CANCELLED))

    def _stop(self, error: TimecacheError) -> None:
        self._ended(error)
        if self._call is not None:
            self._call.cancel()
        elif self._reader is not None:
            self._reader.cancel()

    # Looks about once in a timeout, while anything is in flight.
    def _watch(self) -> None:
        timeout = self._settings.timeout
        if timeout is not None:
            loop = asyncio.get_running_loop()
            self._watchdog = loop.call_at(self._progress_at + timeout, self._look, timeout)

    def _look(self, timeout: float) -> None:
        self._watchdog = None
        if self._end is not None or not (self._in_flight or self._closing):
            return
        if asyncio.get_running_loop().time() < self._progress_at + timeout:
            self._watch()
        else:
            self._stop(late(timeout))

    async def _send(self) -> AsyncIterator[data_pb2.ExecuteRequest]:
        while (request := await self._requests.get()) is not None:
            yield request

    async def _read(self) -> None:
        try:
            with self._connection.errors():
                await self._connection.wait(None)
                metadata = await self._metadata()
                self._call = self._method(self._send(), metadata=metadata)
                async for response in self._call:
                    self._answered(response)
            if not self._closing or self._in_flight or self._batch:
                self._ended(stopping())
        except TimecacheError as error:
            self._ended(error)
        except Exception as error:
            self._ended(broken(error))
        except asyncio.CancelledError:
            self._ended(cancelled(_CANCELLED))

    def _answered(self, response: data_pb2.ExecuteResponse) -> None:
        if self._end is not None:
            return
        if not self._in_flight or len(self._in_flight[0]) != len(response.results):
            raise ValueError("an answer to no request")
        batch = self._in_flight.popleft()
        for (operation, future), result in zip(batch, response.results, strict=True):
            outcome = operation.outcome(result)
            if future.done():
                continue
            if isinstance(outcome, TimecacheError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        self._progress_at = asyncio.get_running_loop().time()
        self._room.set()
        if not self._in_flight:
            self.flush()

    def _ended(self, error: TimecacheError) -> None:
        if self._end is None:
            self._end = error
        for batch in (*self._in_flight, self._batch):
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
        self._in_flight.clear()
        self._batch = []
        if self._watchdog is not None:
            self._watchdog.cancel()
        self._requests.put_nowait(None)
        self._room.set()


_CANCELLED = "the pipeline was cancelled"
