"""Being told what expired."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .connection import Connection
from .errors import TimecacheError, cancelled, silent
from .types import WatchBatch
from .watching import WatchState


class Watcher:
    """A watch on the deaths in one or more namespaces; made by Client.watch.

    ``for batch in watcher`` until ``close``. Reconnects by itself, and goes on behind the last
    batch that it has returned: every event comes exactly once, or is counted in ``lost``. Only
    where there is nothing to go on with, as the server was restarted without its state or the
    namespace made anew, does it begin with the oldest event that is retained, and says
    ``log_changed``. To go on in another process, store each batch's ``resume_token`` once it is
    handled.

    A break is: UNAVAILABLE, a server that stops, a connection that is lost, silence_max, and a
    token that the server does not take any more where the client has another one by now. Anything
    else that the server says ends the watch with its TimecacheError, and so does a break before
    the first batch, unless wait_for_server. With a lead time, or in a group, there is no place to
    go on from: what is going to die is told again, what was not settled is given out again.

    For one thread at a time; ``close`` may be called by any. The first batch of each namespace
    comes at once: from then on the watch stands. Holds at most two unread messages (about 1 MiB
    each, more only for a larger value). Costs a thread.
    """

    def __init__(
        self, connection: Connection, stub: Any, metadata: Callable[[], Any], state: WatchState
    ) -> None:
        """For Client.watch and its like."""
        self._connection = connection
        self._stub = stub
        self._metadata = metadata
        self._state = state
        self._stream: _Stream | None = None
        self._next_attempt_at = 0.0
        self._end: TimecacheError | None = None
        self._closed = threading.Event()
        self._lock = threading.Lock()

    def __iter__(self) -> Watcher:
        return self

    def __next__(self) -> WatchBatch:
        try:
            return self.next()
        except TimecacheError:
            if self._closed.is_set():
                raise StopIteration from None
            raise

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Ends the watch: a ``next`` that waits raises CallCancelledError, an iteration ends."""
        self._closed.set()
        with self._lock:
            if self._stream is not None:
                self._stream.close()

    def next(self, timeout: float | None = None) -> WatchBatch:
        """The next batch, waited for no longer than `timeout` seconds.

        TimeoutError: nothing came; the watch goes on. CallCancelledError: after ``close``. Any
        other TimecacheError is the watch's end.
        """
        give_up_at = None if timeout is None else time.monotonic() + timeout
        silence = self._state.reconnecting.silence_max
        while True:
            if self._closed.is_set():
                raise cancelled("the watch was closed")
            if self._end is not None:
                raise self._end
            if self._stream is None:
                self._await_attempt(give_up_at)
                if not self._open(give_up_at):
                    continue
            assert self._stream is not None
            silent_at = None if silence is None else self._stream.waiting_since + silence
            limits = [limit for limit in (give_up_at, silent_at) if limit is not None]
            try:
                with self._connection.errors():
                    message = self._stream.take(min(limits) if limits else None)
            except TimeoutError:
                if silent_at is None or time.monotonic() < silent_at:
                    raise TimeoutError("nothing came within the timeout") from None
                self._break(silent())
            except TimecacheError as error:
                self._break(error)
            else:
                if message is not None:
                    return self._state.accept(message)
                self._break(None)

    def _await_attempt(self, give_up_at: float | None) -> None:
        pause = self._next_attempt_at - time.monotonic()
        if pause <= 0:
            return
        if give_up_at is not None and give_up_at < self._next_attempt_at:
            self._closed.wait(max(0.0, give_up_at - time.monotonic()))
            if not self._closed.is_set():
                raise TimeoutError("no connection within the timeout")
        self._closed.wait(pause)

    # False if it was closed, or there is no stream to be had.
    def _open(self, give_up_at: float | None) -> bool:
        try:
            with self._connection.errors():
                self._connection.wait(give_up_at)
                metadata = self._metadata()
                self._state.show(metadata)
                with self._lock:
                    if self._closed.is_set():
                        return False
                    self._stream = _Stream(self._state.open(self._stub, metadata))
        except TimecacheError as error:
            self._break(error)
            return False
        return True

    def _break(self, error: TimecacheError | None) -> None:
        with self._lock:
            if self._stream is not None:
                self._stream.close()
                self._stream = None
        if self._closed.is_set():
            return
        try:
            self._next_attempt_at = time.monotonic() + self._state.ended(error)
        except TimecacheError as end:
            self._end = end


class _Stream:
    """Reads a call on a thread of its own, one message ahead, so that a wait can have a limit."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._changed = threading.Condition()
        self._message: Any = None
        self._ended = False
        self._error: Exception | None = None
        self._closed = False
        self.waiting_since = time.monotonic()
        """Since when there has been room for a message."""
        threading.Thread(target=self._read, name="timecached-watch", daemon=True).start()

    def _read(self) -> None:
        error: Exception | None = None
        try:
            for message in self._call:
                with self._changed:
                    self._message = message
                    self._changed.notify_all()
                    while self._message is not None and not self._closed:
                        self._changed.wait()
                    if self._closed:
                        break
        except Exception as caught:
            error = caught
        with self._changed:
            self._ended = True
            self._error = error
            self._changed.notify_all()

    def take(self, until: float | None) -> Any:
        """The next message; None at the end of the stream. TimeoutError, what the call raised."""
        with self._changed:
            while self._message is None and not self._ended:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                self._changed.wait(left)
            if self._message is None:
                if self._error is not None:
                    raise self._error
                return None
            message, self._message = self._message, None
            self.waiting_since = time.monotonic()
            self._changed.notify_all()
            return message

    def close(self) -> None:
        self._call.cancel()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
