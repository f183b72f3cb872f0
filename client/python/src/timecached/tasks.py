"""What the blocking client runs and waits with: threads. Internal to the client.

``timecached.aio.tasks`` has the same names for asyncio; what uses them is written once, there.
"""

from __future__ import annotations

import inspect
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from threading import Condition, Event
from typing import Any, Generic, TypeVar

from .errors import TimecacheError, silent
from .tracing import forget_context

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

SURVIVED: type[BaseException] = BaseException
"""What a worker survives of its handler and its listeners: what ends a thread, as sys.exit does,
would leave those waiting that count on it."""

sleep = time.sleep


class Task(threading.Thread):
    """Runs a function by the side of what made it."""

    def __init__(self, function: Callable[[], None], name: str) -> None:
        """Begins at once."""
        super().__init__(target=function, name=name, daemon=True)
        self.start()

    def run(self) -> None:
        """For the thread itself."""
        forget_context()
        super().run()

    def cancel(self) -> None:
        """A thread cannot be: it ends by itself."""


def new_future() -> Future[Any]:
    """One that is not done."""
    return Future()


def settle(outcomes: Iterable[tuple[Future[Any], Any]]) -> None:
    """Gives each a result, or a TimecacheError, unless it was cancelled."""
    for future, outcome in outcomes:
        if not future.set_running_or_notify_cancel():
            continue
        if isinstance(outcome, TimecacheError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


class Requests(Generic[T]):
    """What a stream sends: put by one, taken by gRPC; None is the end."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self.put = self._queue.put

    def stream(self) -> Iterator[T]:
        """All of them, for gRPC."""
        return iter(self._queue.get, None)


class Stream:
    """The messages of a call, each waited for with limits. For one thread at a time.

    A thread reads one message ahead. It does not hold this object: without it the call ends.
    """

    def __init__(self, call: Any, silence_max: float | None) -> None:
        """`silence_max`: seconds without a message after which it is taken for broken."""
        self._silence_max = silence_max
        self._reading = _Reading(call)
        self._waiting_since = time.monotonic()  # Since when there has been room for a message.
        Task(self._reading.read, "timecached-watch")

    def __del__(self) -> None:
        self.close()

    def take(self, until: float | None) -> Any:
        """The next message; None at the end. TimeoutError: none came `until` then (monotonic).

        Raises what the call raises, and ``silent()``.
        """
        limits = [] if until is None else [until]
        if self._silence_max is not None:
            limits.append(self._waiting_since + self._silence_max)
        left = max(0.0, min(limits) - time.monotonic()) if limits else None
        reading = self._reading
        with reading.changed:
            if not reading.changed.wait_for(reading.has_something, left):
                if until is not None and time.monotonic() >= until:
                    raise TimeoutError("nothing came within the timeout")
                raise silent()
            message, reading.message = reading.message, None
            self._waiting_since = time.monotonic()
            reading.changed.notify_all()
        if message is None and reading.error is not None:
            raise reading.error
        return message

    def close(self) -> None:
        """Ends the call."""
        self._reading.close()


class _Reading:
    def __init__(self, call: Any) -> None:
        self.call = call
        self.changed = Condition()
        self.message: Any = None
        self.ended = False
        self.error: Exception | None = None

    def has_something(self) -> bool:
        return self.message is not None or self.ended

    def read(self) -> None:
        try:
            for message in self.call:
                with self.changed:
                    self.message = message
                    self.changed.notify_all()
                    self.changed.wait_for(lambda: self.message is None or self.ended)
                    if self.ended:
                        return
        except Exception as error:
            self.error = error
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def close(self) -> None:
        self.call.cancel()
        with self.changed:
            self.ended = True
            self.changed.notify_all()


def check_handler(handler: Callable[[Any], Any]) -> None:
    """TypeError: it is a coroutine function."""
    if inspect.iscoroutinefunction(handler):
        raise TypeError("a coroutine function as a handler is for timecached.aio")


def call_handler(handler: Callable[[Any], Any], event: Any) -> Any:
    """What it returns."""
    return handler(event)
