"""Many operations without waiting for each answer, for asyncio."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar

from ..channel import Backoff, Settings
from ..connection import AsyncConnection, Endpoints
from ..errors import TimecacheError, broken, cancelled, late, stopping
from ..operation import MAX_OPERATIONS, Operation
from ..tracing import CallSpan, call_span, current_context, stamp
from ..v1 import data_pb2
from .tasks import Condition, Event, Future, Requests, Task, new_future, settle

T = TypeVar("T")
_Batch = list[tuple[Operation[Any], Future[Any]]]


@dataclasses.dataclass(slots=True)
class _Sent:
    """A request without an answer."""

    batch: _Batch
    span: CallSpan | None = None


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
    client's timeout. Where the connection is lost, it goes on, and does again what was sent and not
    answered, as RetryPolicy says, if all of that is safe to repeat; else it has ended: make a new
    one. It goes on to the owner of a cluster where a node that is not the owner refuses it.
    For one event loop.
    """

    def __init__(
        self,
        endpoints: Endpoints[AsyncConnection],
        settings: Settings,
        metadata: Callable[[], Awaitable[Any]],
        batch_operations_max: int,
        batch_bytes_max: int,
        requests_in_flight_max: int,
    ) -> None:
        """For Client.pipeline."""
        self._endpoints = endpoints
        self._failover = endpoints.failover()
        self._settings = settings
        self._operations_max = min(max(1, batch_operations_max), MAX_OPERATIONS)
        self._bytes_max = batch_bytes_max
        self._in_flight_max = max(1, requests_in_flight_max)
        self._metadata = metadata
        self._context = current_context()  # Requests are a part of what has made the pipeline.
        self._backoff = Backoff(settings.retry.min_pause, settings.retry.max_pause)
        self._attempts_left = settings.retry.max_attempts  # Since the last answer.
        self._maybe_applied = False
        self._changed = Condition()
        self._batch: _Batch = []
        self._batch_bytes = 0
        self._in_flight: collections.deque[_Sent] = collections.deque()
        self._requests: Requests[data_pb2.ExecuteRequest] = Requests()
        self._end: TimecacheError | None = None
        self._closing = False
        self._reader: Task | None = None
        self._call: Any = None
        self._connection = endpoints.current  # Of the last call.
        # When the last answer came, or the first request went out since nothing was in flight.
        self._progress_at = 0.0
        self._answering = False  # Callbacks run: no answer is read meanwhile.
        self._over = Event()

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

    async def add(self, operation: Operation[T]) -> Future[T]:
        """Takes an operation, waiting for room; its result comes in the future.

        Raises the TimecacheError that the stream has ended with, and ValueError after ``close``.
        """
        future: Future[T] = new_future()
        size = operation.message.ByteSize()
        with self._changed:
            if len(self._in_flight) >= self._in_flight_max:
                await self._changed.wait_for(self._takes)
            if self._end is not None:
                raise self._end
            if self._closing:
                raise ValueError("the pipeline is closed")
            if self._batch and self._batch_bytes + size > self._bytes_max:
                self._flush()
            self._batch.append((operation, future))
            self._batch_bytes += size
            if not self._in_flight or len(self._batch) >= self._operations_max:
                self._flush()
        return future

    def flush(self) -> None:
        """Sends what has been added."""
        with self._changed:
            self._flush()

    async def close(self) -> None:
        """Sends what has been added, waits for all results, and ends the stream.

        Raises the TimecacheError that it has ended with, but not after ``cancel``. May be called
        again.
        """
        with self._changed:
            self._flush()
            self._closing = True
            self._progress_at = time.monotonic()
            self._changed.notify_all()
        self._requests.put(None)
        if self._reader is not None:
            await self._reader.join()
        if self._end is not None and self._end.message != _CANCELLED:
            raise self._end

    def cancel(self) -> None:
        """Ends the stream at once: what is in flight gets CallCancelledError."""
        self._stop(cancelled(_CANCELLED))

    def _takes(self) -> bool:
        over = self._end is not None or self._closing
        return over or len(self._in_flight) < self._in_flight_max

    def _flush(self) -> None:
        if not self._batch or self._end is not None:
            return
        if self._reader is None:
            self._reader = Task(self._read, "timecached-pipeline")
            if self._settings.timeout is not None:
                Task(self._watch, "timecached-pipeline-watch")
        if not self._in_flight:
            self._progress_at = time.monotonic()
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        sent = _Sent(batch)
        self._in_flight.append(sent)
        self._send(sent)

    def _send(self, sent: _Sent) -> None:
        request = data_pb2.ExecuteRequest(
            namespace=self._settings.namespace,
            operations=[operation.message for operation, _ in sent.batch],
        )
        if sent.span is None:
            address = self._endpoints.current.address
            sent.span = call_span("data.Pipeline", request, self._settings, address, self._context)
        if self._settings.trace_entries:
            stamp(request, sent.span, self._settings)
        self._requests.put(request)

    # Looks about once in a timeout: answers need not wake it.
    async def _watch(self) -> None:
        timeout = self._settings.timeout
        assert timeout is not None
        left = timeout
        while not await self._over.wait(left):
            with self._changed:
                left = timeout
                if (self._in_flight or self._closing) and not self._answering:
                    left += self._progress_at - time.monotonic()
            if left <= 0:
                error = late(timeout)
                self._endpoints.move_on(self._connection, error)
                self._stop(error)

    async def _read(self) -> None:
        end: TimecacheError | None = cancelled(_CANCELLED)
        try:
            while (pause := await self._stream()) is not None:
                with self._changed:
                    await self._changed.wait_for(lambda: self._end is not None, pause)
                    self._send_again()
            end = None
        except TimecacheError as error:
            end = error
        except Exception as error:
            end = broken(error)
        finally:
            if end is not None:
                self._ended(end)
            self._over.set()

    # How long to pause before the next one; None: it has ended in good order.
    async def _stream(self) -> float | None:
        connection = self._connection = self._endpoints.current
        try:
            with connection.errors():
                await self._open(connection)
                async for response in self._call:
                    self._answered(response)
            with self._changed:
                if self._closing and not self._in_flight and not self._batch:
                    return None
            raise stopping()
        except TimecacheError as error:
            self._maybe_applied = error.maybe_applied = self._maybe_applied or error.maybe_applied
            with self._changed:
                if self._end is not None:
                    raise
            self._endpoints.move_on(connection, error)
            # A node that loses the ownership answers what it has read, and does no more.
            pause = self._failover.pause(error)
            if pause is None:
                pause = self._pause_to_repeat(error)
            if pause is None:
                raise
            with self._changed:
                for sent in self._in_flight:
                    if sent.span is not None:
                        sent.span.retry(error, pause, self._endpoints.current.address)
            return pause

    # None: what is in flight must not be done again.
    def _pause_to_repeat(self, error: TimecacheError) -> float | None:
        self._attempts_left -= 1
        if self._attempts_left <= 0 or not error.is_connection_lost:
            return None
        with self._changed:
            safe = self._settings.repeatable or all(
                operation.is_safe() for sent in self._in_flight for operation, _ in sent.batch
            )
        return self._backoff.next() if safe else None

    def _send_again(self) -> None:
        self._requests.put(None)
        self._requests = Requests()
        for sent in self._in_flight:
            self._send(sent)
        if self._closing or self._end is not None:
            self._requests.put(None)

    async def _open(self, connection: AsyncConnection) -> None:
        await connection.wait(None)
        metadata = await self._metadata()
        call = connection.stubs.data.Pipeline(self._requests.stream(), metadata=metadata)
        with self._changed:
            self._call = call
            if self._end is not None:
                call.cancel()

    def _answered(self, response: data_pb2.ExecuteResponse) -> None:
        with self._changed:
            if self._end is not None:
                return
            if not self._in_flight or len(self._in_flight[0].batch) != len(response.results):
                raise ValueError("an answer to no request")
            sent = self._in_flight.popleft()
            self._failover.reset()
            self._backoff.reset()
            self._attempts_left = self._settings.retry.max_attempts
            if not self._in_flight:
                self._flush()
            self._answering = True
            self._changed.notify_all()
        if sent.span is not None:
            sent.span.end()
        settle(
            (future, operation.outcome(result))
            for (operation, future), result in zip(sent.batch, response.results, strict=True)
        )
        with self._changed:
            self._answering = False
            self._progress_at = time.monotonic()

    def _stop(self, error: TimecacheError) -> None:
        self._ended(error)
        if self._call is not None:
            self._call.cancel()
        elif self._reader is not None:
            self._reader.cancel()

    def _ended(self, error: TimecacheError) -> None:
        with self._changed:
            if self._end is None:
                self._end = error
            spans = [sent.span for sent in self._in_flight if sent.span is not None]
            batches = [*(sent.batch for sent in self._in_flight), self._batch]
            self._in_flight.clear()
            self._batch = []
            self._changed.notify_all()
        self._over.set()
        self._requests.put(None)
        for span in spans:
            span.end(error)
        settle((future, error) for batch in batches for _, future in batch)


_CANCELLED = "the pipeline was cancelled"
