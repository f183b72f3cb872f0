"""Being told what expired, for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

import grpc.aio

from ..connection import AsyncConnection
from ..errors import ClosedError, TimecacheError, cancelled, silent
from ..types import WatchBatch
from ..watching import WatchState


class Watcher:
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
    go on from: what is going to die is told again, what was not settled is given out again.

    For one task at a time. The first batch of each namespace comes at once: from then on the watch
    stands. Holds at most one unread message (about 1 MiB, more only for a larger value).
    """

    def __init__(
        self,
        connection: AsyncConnection,
        stub: Any,
        metadata: Callable[[], Awaitable[Any]],
        state: WatchState,
    ) -> None:
        """For Client.watch and its like."""
        self._connection = connection
        self._stub = stub
        self._metadata = metadata
        self._state = state
        self._call: Any = None
        self._read: asyncio.Future[Any] | None = None
        self._waiting_since = 0.0
        self._pause = 0.0
        self._end: TimecacheError | None = None
        self._closed = False

    def __aiter__(self) -> Watcher:
        return self

    async def __anext__(self) -> WatchBatch:
        try:
            return await self.next()
        except TimecacheError:
            if self._closed:
                raise StopAsyncIteration from None
            raise

    async def __aenter__(self) -> Watcher:
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
        self._closed = True
        self._drop_call()

    async def next(self, timeout: float | None = None) -> WatchBatch:
        """The next batch, waited for no longer than `timeout` seconds.

        TimeoutError: nothing came; the watch goes on, as it does if this is cancelled.
        CallCancelledError: after ``close``. Any other TimecacheError is the watch's end.
        """
        loop = asyncio.get_running_loop()
        give_up_at = None if timeout is None else loop.time() + timeout
        silence = self._state.reconnecting.silence_max
        while True:
            if self._closed:
                raise cancelled("the watch was closed")
            if self._end is not None:
                raise self._end
            if self._pause > 0:
                await self._await_attempt(give_up_at)
                continue
            if self._call is None and not await self._open(timeout):
                continue
            if self._read is None:
                self._read = asyncio.ensure_future(self._call.read())
                self._waiting_since = loop.time()
            silent_at = None if silence is None else self._waiting_since + silence
            limits = [limit - loop.time() for limit in (give_up_at, silent_at) if limit is not None]
            done, _ = await asyncio.wait([self._read], timeout=min(limits) if limits else None)
            if not done:
                if silent_at is None or loop.time() < silent_at:
                    raise TimeoutError("nothing came within the timeout")
                self._break(silent())
                continue
            if self._read is None:
                continue  # Closed meanwhile.
            read, self._read = self._read, None
            try:
                with self._connection.errors():
                    message = read.result()
            except TimecacheError as error:
                self._break(error)
            except asyncio.CancelledError:
                # The call was cancelled, not this task: with its channel.
                self._break(ClosedError())
            else:
                if message is not grpc.aio.EOF:
                    return self._state.accept(message)
                self._break(None)

    async def _await_attempt(self, give_up_at: float | None) -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        left = self._pause if give_up_at is None else give_up_at - before
        await asyncio.sleep(max(0.0, min(self._pause, left, 0.1)))
        self._pause -= loop.time() - before
        if give_up_at is not None and loop.time() >= give_up_at and self._pause > 0:
            raise TimeoutError("no connection within the timeout")

    # False if it was closed, or there is no stream to be had.
    async def _open(self, timeout: float | None) -> bool:
        try:
            with self._connection.errors():
                await self._connection.wait(None if timeout is None else time.monotonic() + timeout)
                metadata = await self._metadata()
                self._state.show(metadata)
                if self._closed:
                    return False
                self._call = self._state.open(self._stub, metadata)
        except TimecacheError as error:
            self._break(error)
            return False
        return True

    def _drop_call(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None
        if self._read is not None:
            # If it has failed already: who does not ask does not want to know.
            self._read.add_done_callback(lambda read: read.cancelled() or read.exception())
            self._read.cancel()
            self._read = None

    def _break(self, error: TimecacheError | None) -> None:
        self._drop_call()
        if self._closed:
            return
        try:
            self._pause = self._state.ended(error)
        except TimecacheError as end:
            self._end = end
