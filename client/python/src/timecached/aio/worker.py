"""Working off a consumer group's events, for asyncio."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING

from ..channel import Backoff
from ..errors import TimecacheError
from ..extending import Extending
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
        retry_delay: Duration,
        extend_max: Duration,
        stop_timeout: float,
        reconnecting: Reconnecting,
        listeners: Listeners,
    ) -> None:
        """For Client.worker."""
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self._group = group
        self._handler = handler
        self._concurrency = concurrency
        self._max_in_flight = max_in_flight
        self._stop_timeout = stop_timeout
        self._listeners = listeners
        timeout = client._settings.timeout
        self._client = client.with_options(timeout=5.0 if timeout is None else min(timeout, 5.0))
        self._state = WorkerState(retry_delay)
        self._extending = Extending(self._state, extend_max)
        self._queue: collections.deque[Held] = collections.deque()
        self._owed: collections.deque[Owed] = collections.deque()
        self._changed = asyncio.Condition()
        self._stopping = False
        self._giving_up = False
        self._handlers_left = 0
        self._main: asyncio.Task[None] | None = None
        self._pauses = (reconnecting.min_pause, reconnecting.max_pause)
        self._watcher = Watcher(
            client._connection,
            client._stubs.data,
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
        if self._main is None:
            self._main = asyncio.create_task(self._run())
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
        if kind is None:
            await self.wait()
        elif self._main is not None:
            await asyncio.wait([self._main])

    def request_stop(self) -> None:
        """Begins no further event; does not wait. What was not begun goes to others."""
        self._stopping = True
        if self._main is not None and not self._main.done():
            self._wake_soon()

    async def stop(self) -> None:
        """Stops: as ``request_stop`` and ``wait``."""
        self.request_stop()
        await self.wait()

    async def wait(self) -> None:
        """Waits for the end: handlers have returned, and what they said is with the server.

        Raises what ended the worker, if it was not stopped, or why settlements did not arrive
        within stop_timeout. To cancel this does not stop the worker.
        """
        self.start()
        assert self._main is not None
        await asyncio.shield(self._main)

    async def _run(self) -> None:
        reader = asyncio.create_task(self._read())
        settler = asyncio.create_task(self._settle())
        extender = asyncio.create_task(self._extend())
        self._handlers_left = self._concurrency
        handlers = [asyncio.create_task(self._handle()) for _ in range(self._concurrency)]
        try:
            await asyncio.gather(*handlers)
            # The stream stays open until all is settled: with its end the server gives out again
            # what is not.
            failure = await self._finish(settler)
        finally:
            self._watcher.close()
            for task in (*handlers, settler, extender):
                task.cancel()
        end = await reader
        if end is not None:
            raise end
        if failure is not None:
            raise failure

    async def _finish(self, settler: asyncio.Task[Exception | None]) -> Exception | None:
        done, _ = await asyncio.wait([settler], timeout=self._stop_timeout)
        if not done:
            self._giving_up = True
            await self._wake()
        return await settler

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _wake_soon(self) -> None:
        task = asyncio.ensure_future(self._wake())
        self._waking = task  # Or it might be collected before it runs.

    async def _read(self) -> Exception | None:
        """What ended the watch, if the worker was not stopping."""
        end: Exception | None = None
        try:
            async for batch in self._watcher:
                if batch.lost:
                    self._listeners.tell_loss(self._group, batch.lost)
                async with self._changed:
                    # After a stop they wait, too, and go to others when the stream ends.
                    self._queue.extend(self._state.take(batch))
                    self._changed.notify_all()
                    await self._changed.wait_for(
                        lambda: self._stopping or self._state.count() < self._max_in_flight
                    )
        except Exception as error:
            end = None if self._stopping else error
        self._stopping = True
        await self._wake()
        return end

    # With the stream's end the server has given them out again.
    def _lose_unbegun(self, why: TimecacheError) -> None:
        self._state.drop(self._queue)
        self._queue.clear()
        # What a new stream would bring is for others.
        if self._stopping:
            self._watcher.close()
        self._listeners.tell_break(why)

    async def _handle(self) -> None:
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._stopping or self._queue)
                if self._stopping:
                    break
                held = self._queue.popleft()
            event = self._state.begin(held)
            try:
                how = await self._call_handler(event)
                owed = self._state.end(held, how)
            except Exception as error:
                self._listeners.tell_handler(self._group, event, error)
                owed = self._state.failed(held)
            async with self._changed:
                self._owed.append(owed)
                self._changed.notify_all()
        async with self._changed:
            self._handlers_left -= 1
            self._changed.notify_all()

    # In a task of its own: a handler that is cancelled from within has failed, no more.
    async def _call_handler(self, event: ExpiredEvent) -> Settle | None:
        task = asyncio.ensure_future(self._answer(event))
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
        if task.cancelled():
            raise RuntimeError("the handler was cancelled")
        how = task.result()
        check_answer(event, how)
        return how

    async def _answer(self, event: ExpiredEvent) -> Settle | None:
        answer = self._handler(event)
        return await answer if inspect.isawaitable(answer) else answer

    async def _settle(self) -> Exception | None:
        """Why some were given up, if so."""
        given_up: Exception | None = None
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._owed or self._handlers_left == 0)
                if not self._owed:
                    return given_up
                size = min(len(self._owed), _SETTLE_MAX)
                batch = [self._owed.popleft() for _ in range(size)]
            given_up = await self._send(batch) or given_up
            await self._wake()

    async def _send(self, batch: list[Owed]) -> Exception | None:
        backoff = Backoff(*self._pauses)
        repeated = False
        while True:
            batch, unsettled = self._state.without_gone(batch)
            for owed in unsettled:
                self._listeners.tell_unsettled(self._group, owed)
            try:
                results = await self._client.settle(
                    self._group, [owed.settlement for owed in batch]
                )
            except Exception as error:
                self._listeners.tell(error)
                if may_pass(error) and not self._giving_up:
                    repeated = True
                    await self._pause(backoff.next())
                    continue
                for owed in batch:
                    self._state.dropped(owed)
                return error if self._giving_up else None
            for owed, result in zip(batch, results, strict=True):
                failure = result if isinstance(result, TimecacheError) else None
                instead, told = self._state.settled(owed, failure, repeated)
                if told is not None:
                    self._listeners.tell_unsettled(self._group, owed, told)
                if instead is not None:
                    self._owed.appendleft(instead)
            return None

    # Until it is cancelled, when all is settled.
    async def _extend(self) -> None:
        async with self._changed:
            await self._changed.wait_for(self._state.count)
        while not self._extending.ended:
            try:
                await self._look_at_held()
            except Exception as error:
                # A break is told by the watch.
                if not isinstance(error, TimecacheError) or not error.is_connection_lost:
                    self._listeners.tell(error)
            await asyncio.sleep(self._extending.pause())

    async def _look_at_held(self) -> None:
        if self._extending.wants_ack_timeout():
            ack_timeout: timedelta | None = None
            # That it fails is not told: it is read again, and the default is assumed meanwhile.
            with contextlib.suppress(TimecacheError):
                ack_timeout = (await self._client.get_group(self._group)).options.ack_timeout
            self._extending.knows_ack_timeout(ack_timeout)
        due = self._extending.due()
        if not due:
            return
        results = await self._client.settle(self._group, [asked for _, asked in due])
        for (held, asked), result in zip(due, results, strict=True):
            failure = result if isinstance(result, TimecacheError) else None
            told = self._extending.answered(held, asked, failure)
            if told is not None:
                self._listeners.tell(told)

    async def _pause(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not self._giving_up and loop.time() < until:
            await asyncio.sleep(min(0.05, until - loop.time()))
