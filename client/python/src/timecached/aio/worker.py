"""Working off a consumer group's events, for asyncio."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING

from ..channel import Backoff
from ..errors import TimecacheError
from ..extending import Extending
from ..tracing import consumer_span
from ..types import Duration, ExpiredEvent, Settle
from ..watching import Reconnecting, WatchState
from ..working import (
    Held,
    Listeners,
    Owed,
    WorkerCounters,
    WorkerState,
    check_answer,
    may_pass,
)
from .tasks import SURVIVED, Condition, Event, Task, call_handler, check_handler
from .watcher import Watcher

if TYPE_CHECKING:
    from .client import Client

_SETTLE_MAX = 256


class GroupWorker:
    """A member of a consumer group that calls a handler for each event; made by Client.worker.

    ::

        async with client.worker("billing", charge, concurrency=8) as worker:
            await worker.wait()

    At least once: an event comes again, perhaps to another worker, when its handler said Nack or
    raised, when it was not settled within the group's ack_timeout, and when the connection broke
    before it was settled. Events of one key come one after the other. In one worker an event is
    never with two handlers at once. For what it holds, in a handler's hands or waiting for one, the
    worker asks for more time whenever a third of the ack_timeout is over, up to `extend_max`.

    Reconnects by itself, as Watcher does; settlements are sent again until they arrive. What ends
    a Watcher ends the worker: ``wait`` then raises it. Its methods belong to one event loop. The
    handler may be a plain function, too: it must not wait.
    """

    def __init__(
        self,
        client: Client,
        group: str,
        handler: Callable[[ExpiredEvent], Awaitable[Settle | None] | Settle | None],
        *,
        concurrency: int,
        max_in_flight: int,
        from_earliest: bool,
        keys_only: bool,
        retry_delay: Duration | None,
        extend_max: Duration,
        stop_timeout: float,
        reconnecting: Reconnecting,
        listeners: Listeners,
    ) -> None:
        """For Client.worker."""
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        check_handler(handler)
        self._group = group
        self._handler = handler
        self._concurrency = concurrency
        self._max_in_flight = max_in_flight
        self._stop_timeout = stop_timeout
        self._listeners = dataclasses.replace(listeners, survived=SURVIVED)
        timeout = client._settings.timeout
        timeout = 5.0 if timeout is None else min(timeout, 5.0)
        self._client = client._with(timeout=timeout, traced=False, batching=False)
        self._state = WorkerState(retry_delay)
        self._extending = Extending(self._state, extend_max)
        self._queue: collections.deque[Held] = collections.deque()
        self._owed: collections.deque[Owed] = collections.deque()
        self._changed = Condition()
        self._started = False
        self._stopping = False
        self._giving_up = False
        self._settled = Event()
        self._given_up: Exception | None = None
        self._handlers_left = self._concurrency
        self._tasks_left = self._concurrency + 1  # These, and the reader.
        self._end: Exception | None = None
        self._pauses = (reconnecting.min_pause, reconnecting.max_pause)
        self._watcher = Watcher(
            client._endpoints,
            client._metadata,
            WatchState(
                namespaces=[client.namespace_name],
                group=group,
                from_earliest=from_earliest,
                max_in_flight=max_in_flight,
                keys_only=keys_only,
                max_message_bytes=client._max_message_bytes,
                reconnecting=dataclasses.replace(reconnecting, on_break=self._lose_unbegun),
            ),
        )

    @property
    def counters(self) -> WorkerCounters:
        """What it has done since its start."""
        return self._state.counters

    def start(self) -> GroupWorker:
        """Begins. Further calls do nothing."""
        with self._changed:
            if self._started:
                return self
            self._started = True
        tasks = [self._read, self._settle, self._extend, *[self._handle] * self._concurrency]
        for task in tasks:
            Task(task, "timecached-worker")
        return self

    async def __aenter__(self) -> GroupWorker:
        return self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.request_stop()
        try:
            await self.wait()
        except Exception:
            if kind is None:
                raise

    def request_stop(self) -> None:
        """Begins no further event; does not wait. What was not begun goes to others."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    async def stop(self) -> None:
        """Stops: as ``request_stop`` and ``wait``."""
        self.request_stop()
        await self.wait()

    async def wait(self, timeout: float | None = None) -> None:
        """Waits for the end: handlers have returned, and what they said is with the server.

        Raises what ended the worker, if it was not stopped, or why settlements did not arrive
        within stop_timeout. TimeoutError: it has not ended within `timeout` seconds. To cancel this
        does not stop the worker.
        """
        self.start()
        with self._changed:
            if not await self._changed.wait_for(lambda: self._tasks_left == 0, timeout):
                raise TimeoutError("the worker goes on")
            if self._end is not None:
                raise self._end

    async def _read(self) -> None:
        end: Exception | None = None
        try:
            async for batch in self._watcher:
                if batch.lost:
                    self._listeners.report_loss(self._group, batch.lost)
                with self._changed:
                    # After a stop they wait, too, and go to others when the stream ends.
                    self._queue.extend(self._state.take(batch))
                    self._changed.notify_all()
                    await self._changed.wait_for(
                        lambda: self._stopping or self._state.count() < self._max_in_flight
                    )
        except SURVIVED as error:
            end = _as_exception(error)
        finally:
            with self._changed:
                if not self._stopping:
                    self._end = end
                self._stopping = True
                self._tasks_left -= 1
                self._changed.notify_all()

    # With the stream's end the server has given them out again.
    def _lose_unbegun(self, why: TimecacheError) -> None:
        with self._changed:
            self._state.drop(self._queue)
            self._queue.clear()
            stopping = self._stopping
        # What a new stream would bring is for others.
        if stopping:
            self._watcher.close()
        self._listeners.report_break(why)

    async def _handle(self) -> None:
        try:
            await self._handle_all()
        except SURVIVED as error:
            self._fail(error)
        finally:
            with self._changed:
                self._handlers_left -= 1
                last = self._handlers_left == 0
                self._changed.notify_all()
            try:
                if last:
                    await self._finish()
            except SURVIVED as error:
                self._fail(error)
            finally:
                with self._changed:
                    self._tasks_left -= 1
                    self._changed.notify_all()

    # By what nobody has foreseen: it must not leave those waiting that count on the task.
    def _fail(self, error: BaseException) -> None:
        with self._changed:
            if self._end is None:
                self._end = _as_exception(error)
            self._stopping = True
            self._changed.notify_all()

    async def _handle_all(self) -> None:
        while True:
            with self._changed:
                await self._changed.wait_for(lambda: self._stopping or self._queue)
                if self._stopping:
                    return
                held = self._queue.popleft()
                event = self._state.begin(held)
            how, raised = await self._call_handler(event)
            with self._changed:
                owed = self._state.failed(held) if raised else self._state.end(held, how)
                self._owed.append(owed)
                self._changed.notify_all()

    # What it has said, and whether it has raised.
    async def _call_handler(self, event: ExpiredEvent) -> tuple[Settle | None, bool]:
        try:
            with consumer_span(event, self._group) as span:
                how = await call_handler(self._handler, event)
                check_answer(event, how)
                span.settled(how)
            return how, False
        except SURVIVED as error:
            self._listeners.report_handler(self._group, event, _as_exception(error))
            return None, True

    # The stream stays open until all is settled: with its end the server gives out again what is
    # not.
    async def _finish(self) -> None:
        try:
            if not await self._settled.wait(self._stop_timeout):
                with self._changed:
                    self._giving_up = True
                    self._changed.notify_all()
                await self._settled.wait()
            with self._changed:
                if self._end is None:
                    self._end = self._given_up
        finally:
            self._watcher.close()

    async def _settle(self) -> None:
        try:
            await self._settle_all()
        except SURVIVED as error:
            self._fail(error)
        finally:
            with self._changed:
                self._settled.set()
                self._changed.notify_all()

    async def _settle_all(self) -> None:
        while True:
            with self._changed:
                await self._changed.wait_for(lambda: self._owed or self._handlers_left == 0)
                if not self._owed:
                    return
                size = min(len(self._owed), _SETTLE_MAX)
                batch = [self._owed.popleft() for _ in range(size)]
            await self._send(batch)

    async def _send(self, batch: list[Owed]) -> None:
        backoff = Backoff(*self._pauses)
        repeated = False
        while True:
            try:
                results = await self._client.settle(
                    self._group, [owed.settlement for owed in batch]
                )
            except SURVIVED as caught:
                # Also what a token function raises.
                error = _as_exception(caught)
                self._listeners.report(error)
                if may_pass(error) and await self._pause(backoff.next()):
                    repeated = True
                    continue
                with self._changed:
                    for owed in batch:
                        self._state.dropped(owed)
                    if self._giving_up:
                        self._given_up = error
                    self._changed.notify_all()
                return
            for owed, result in zip(batch, results, strict=True):
                failure = result if isinstance(result, TimecacheError) else None
                with self._changed:
                    instead, problem = self._state.settled(owed, failure, repeated)
                    if instead is not None:
                        self._owed.appendleft(instead)
                    self._changed.notify_all()
                if problem is not None:
                    self._listeners.report_unsettled(self._group, owed, problem)
            return

    async def _extend(self) -> None:
        try:
            await self._extend_all()
        except SURVIVED as error:
            self._fail(error)

    # Until all is settled.
    async def _extend_all(self) -> None:
        with self._changed:
            await self._changed.wait_for(lambda: self._settled.is_set() or self._state.count())
        while not self._settled.is_set() and not self._extending.ended:
            try:
                await self._look_at_held()
            except SURVIVED as caught:
                # Also what a token function raises. The watch reports a break.
                error = _as_exception(caught)
                lost = isinstance(error, TimecacheError) and error.is_connection_lost
                if not lost and not self._settled.is_set():
                    self._listeners.report(error)
            await self._settled.wait(self._extending.pause())

    async def _look_at_held(self) -> None:
        with self._changed:
            wants_ack_timeout = self._extending.wants_ack_timeout()
        if wants_ack_timeout:
            ack_timeout: timedelta | None = None
            # A failure is not reported: it is read again, and the default is assumed meanwhile.
            with contextlib.suppress(TimecacheError):
                ack_timeout = (await self._client.get_group(self._group)).options.ack_timeout
            self._extending.knows_ack_timeout(ack_timeout)
        with self._changed:
            due = self._extending.due()
        if not due:
            return
        results = await self._client.settle(self._group, [asked for _, asked in due])
        for (held, asked), result in zip(due, results, strict=True):
            failure = result if isinstance(result, TimecacheError) else None
            with self._changed:
                problem = self._extending.answered(held, asked, failure)
            if problem is not None:
                self._listeners.report(problem)

    # False if there is no time left for another attempt.
    async def _pause(self, seconds: float) -> bool:
        with self._changed:
            return not await self._changed.wait_for(lambda: self._giving_up, timeout=seconds)


def _as_exception(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else RuntimeError(repr(error))
