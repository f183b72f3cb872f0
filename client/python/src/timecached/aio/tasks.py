"""What the client for asyncio runs and waits with: tasks. Internal to the client.

``timecached.tasks`` has the same names for threads: the sources of this package are those of the
blocking client, too, with its names in place of these (see hatch_build.py).
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import time
from asyncio import Future
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, Generic, TypeVar

import grpc.aio

from ..errors import ClosedError, TimecacheError, silent
from ..tracing import forget_context

__all__ = [
    "SURVIVED",
    "Condition",
    "Event",
    "Future",
    "Requests",
    "Stream",
    "Task",
    "call_handler",
    "check_handler",
    "new_future",
    "settle",
    "sleep",
]

T = TypeVar("T")

SURVIVED: type[BaseException] = Exception
"""What a worker survives of its handler and its listeners. A task that is cancelled ends."""

sleep = asyncio.sleep

_running: set[asyncio.Task[Any]] = set()


class Task:
    """Runs a function by the side of what made it."""

    def __init__(self, function: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Begins at once."""
        context = contextvars.copy_context()
        context.run(forget_context)
        self._task = context.run(asyncio.create_task, function(), name=name)
        # The event loop alone would let it be collected.
        _running.add(self._task)
        self._task.add_done_callback(_running.discard)

    async def join(self) -> None:
        """Waits for its end."""
        await asyncio.wait([self._task])

    def cancel(self) -> None:
        """Ends it where it waits."""
        self._task.cancel()


class Condition:
    """As threading.Condition. Tasks of one event loop change places only where they wait, so there
    is nothing to lock."""

    def __init__(self) -> None:
        self._waiting: set[Future[None]] = set()

    def __enter__(self) -> Condition:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        pass

    def notify_all(self) -> None:
        """Lets all that wait look again."""
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """What `predicate` returns: something true, or after so many seconds whatever it is."""
        until = None if timeout is None else time.monotonic() + timeout
        while not (result := predicate()):
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                break
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                await (waiting if left is None else asyncio.wait([waiting], timeout=left))
            finally:
                self._waiting.discard(waiting)
        return result


class Event:
    """As threading.Event."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._set = False

    def set(self) -> None:
        """Lets all that wait go on."""
        self._set = True
        self._changed.notify_all()

    def is_set(self) -> bool:
        """Whether it is."""
        return self._set

    async def wait(self, timeout: float | None = None) -> bool:
        """Waits for it, for no longer than so many seconds; whether it is set."""
        return await self._changed.wait_for(self.is_set, timeout)


def new_future() -> Future[Any]:
    """One whose error need not be looked at: the others have the same."""
    future = asyncio.get_running_loop().create_future()
    future.add_done_callback(_look_at_error)
    return future


def _look_at_error(done: Future[Any]) -> None:
    if not done.cancelled():
        done.exception()


def settle(outcomes: Iterable[tuple[Future[Any], Any]]) -> None:
    """Gives each a result, or a TimecacheError, unless it was cancelled."""
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, TimecacheError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


class Requests(Generic[T]):
    """What a stream sends: put by one, taken by gRPC; None is the end."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[T | None] = asyncio.Queue()
        self.put = self._queue.put_nowait

    async def stream(self) -> AsyncIterator[T]:
        """All of them, for gRPC."""
        while (request := await self._queue.get()) is not None:
            yield request


class Stream:
    """The messages of a call, each waited for with limits. For one task at a time."""

    def __init__(self, call: Any, silence_max: float | None) -> None:
        """`silence_max`: seconds without a message after which it is taken for broken."""
        self._call = call
        self._silence_max = silence_max
        self._read: asyncio.Future[Any] | None = None
        self._waiting_since = 0.0

    async def take(self, until: float | None) -> Any:
        """The next message; None at the end. TimeoutError: none came `until` then (monotonic).

        To cancel this loses nothing. Raises what the call raises, and ``silent()``.
        """
        if self._read is None:
            self._read = asyncio.ensure_future(self._call.read())
            self._waiting_since = time.monotonic()
        read = self._read
        limits = [] if until is None else [until]
        if self._silence_max is not None:
            limits.append(self._waiting_since + self._silence_max)
        left = min(limits) - time.monotonic() if limits else None
        done, _ = await asyncio.wait([read], timeout=left)
        if not done:
            if until is not None and time.monotonic() >= until:
                raise TimeoutError("nothing came within the timeout")
            raise silent()
        self._read = None
        if read.cancelled():
            # The call was cancelled, not this task: with its channel.
            raise ClosedError
        message = read.result()
        return None if message is grpc.aio.EOF else message

    def close(self) -> None:
        """Ends the call."""
        self._call.cancel()
        if self._read is not None:
            # If it has failed already: who does not ask does not want to know.
            self._read.add_done_callback(_look_at_error)
            self._read.cancel()
            self._read = None


def check_handler(handler: Callable[[Any], Any]) -> None:
    """Takes every function: a coroutine function, and one that does not wait."""


async def call_handler(handler: Callable[[Any], Any], event: Any) -> Any:
    """What it returns. In a task of its own: one that is cancelled from within has failed."""

    async def answer() -> Any:
        said = handler(event)
        return await said if inspect.isawaitable(said) else said

    task = asyncio.ensure_future(answer())
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
    if task.cancelled():
        raise RuntimeError("the handler was cancelled")
    return task.result()
