"""A watch on what expires, for asyncio."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from ..connection import AsyncConnection, Endpoints
from ..errors import TimecacheError, cancelled
from ..types import ChangeBatch, WatchBatch
from ..watching import WatchState
from .tasks import Condition, Stream

B = TypeVar("B", WatchBatch, ChangeBatch)
W = TypeVar("W")


class _Watching(Generic[B]):
    """What watches have in common, whatever they bring."""

    def __init__(
        self,
        endpoints: Endpoints[AsyncConnection],
        metadata: Callable[[], Awaitable[Any]],
        state: WatchState,
    ) -> None:
        """For Client.watch and its like."""
        self._endpoints = endpoints
        self._failover = endpoints.failover()
        self._connection = endpoints.current  # Of the last stream.
        self._metadata = metadata
        self._state = state
        self._changed = Condition()
        self._stream: Stream | None = None
        self._next_attempt_at = 0.0
        self._end: TimecacheError | None = None
        self._closed = False

    def __aiter__(self: W) -> W:
        return self

    async def __anext__(self) -> B:
        try:
            return await self.next()
        except TimecacheError:
            if self._closed:
                raise StopAsyncIteration from None
            raise

    async def __aenter__(self: W) -> W:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the watch: a ``next`` that waits raises CallCancelledError, an iteration ends."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            if self._stream is not None:
                self._stream.close()

    async def next(self, timeout: float | None = None) -> B:
        """The next batch, waited for no longer than `timeout` seconds.

        TimeoutError: nothing came; the watch goes on, as it does if this is cancelled.
        CallCancelledError: after ``close``. Any other TimecacheError is the watch's end.
        """
        give_up_at = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._closed:
                raise cancelled("the watch was closed")
            if self._end is not None:
                raise self._end
            if self._stream is None:
                self._connection = self._endpoints.current
            try:
                with self._connection.errors():
                    stream = self._stream or await self._open(give_up_at)
                    message = None if stream is None else await stream.take(give_up_at)
            except TimecacheError as error:
                self._break(error)
            else:
                if message is not None:
                    batch: Any = self._state.accept(message)
                    return cast("B", batch)
                self._break(None)

    # None: it was closed meanwhile.
    async def _open(self, give_up_at: float | None) -> Stream | None:
        attempt_at = self._next_attempt_at
        until = attempt_at if give_up_at is None else min(give_up_at, attempt_at)
        with self._changed:
            if await self._changed.wait_for(lambda: self._closed, until - time.monotonic()):
                return None
        if until < attempt_at and time.monotonic() < attempt_at:
            raise TimeoutError("no connection within the timeout")
        await self._connection.wait(give_up_at)
        metadata = await self._metadata()
        self._state.show(metadata)
        with self._changed:
            if self._closed:
                return None
            call = self._state.open(self._connection.stubs.data, metadata)
            self._stream = Stream(call, self._state.silence_max(self._endpoints.size))
            return self._stream

    def _break(self, error: TimecacheError | None) -> None:
        with self._changed:
            if self._stream is not None:
                self._stream.close()
                self._stream = None
            if self._closed:
                return
        self._endpoints.move_on(self._connection, error)
        try:
            pause = self._state.ended(error, self._failover)
            self._next_attempt_at = time.monotonic() + pause
        except TimecacheError as end:
            self._end = end


class Watcher(_Watching[WatchBatch]):
    """A watch on the deaths in one or more namespaces; made by Client.watch.

    ``async for batch in watcher`` until ``close``. Reconnects by itself, and goes on behind the
    last batch that it has returned: every event comes exactly once, or is counted in ``lost``.
    Only where there is nothing to go on with, as the server was restarted without its state or
    the namespace made anew, does it begin with the oldest event that is retained, and says
    ``log_changed``. To go on in another process, store each batch's ``resume_token`` once it is
    handled.

    A break is: UNAVAILABLE, a server that stops, a connection that is lost, silence_max, and a
    token that the server does not take any more where the client has another one by now. Anything
    else that the server says ends the watch with its TimecacheError, and so does a break before
    the first batch, unless wait_for_server. With a lead time, or in a group, there is no place to
    go on from: what is going to die comes again, what was not settled is given out again.

    For one task at a time. The first batch of each namespace comes at once: from then on the watch
    stands. Holds at most one unread message (about 1 MiB, more only for a larger value).
    """


class ChangeWatcher(_Watching[ChangeBatch]):
    """A watch on puts, renewals and removals; made by Client.watch_changes.

    As Watcher in all, but that its batches are ChangeBatches: ``async for batch in watcher``.
    """
