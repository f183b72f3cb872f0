"""Calls that settle events of one group at the same time go together: internal to the client."""

from __future__ import annotations

import collections
import threading
import time
from typing import Any

from ..errors import InvalidArgumentError, TimecacheError, cancelled, late_call, miscounted
from ..operation import MAX_OPERATIONS
from ..sharing import CALL_BYTES_MAX, MESSAGE_BYTES_MAX
from ..tracing import NO_CALL, is_traced
from ..v1 import watch_pb2
from .calls import Calls
from .tasks import Event, Task

_Group = tuple[str, str]

_METHOD = "data.SettleExpired"
# Most settlements of a request: as many as operations.
_SETTLEMENTS_MAX = MAX_OPERATIONS


class _Call:
    __slots__ = ("done", "give_up_at", "outcome", "request", "sent", "size")

    def __init__(
        self, request: watch_pb2.SettleExpiredRequest, size: int, give_up_at: float
    ) -> None:
        self.request = request
        self.size = size
        self.give_up_at = give_up_at
        self.sent = False
        self.done = Event()
        self.outcome: Any = None  # Results or an error; None: it has to go alone.


class Settles:
    """The calls of a client that settle events. Thread-safe.

    A call goes at once, unless a request of its group is under way: with the next one then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Of the groups with a request under way: the calls that wait.
        self._waiting: dict[_Group, collections.deque[_Call]] = {}

    async def results(self, client: Calls, request: watch_pb2.SettleExpiredRequest) -> Any:
        """Those of a request, which goes with others unless it has options of its own."""
        settings = client._settings
        size = request.ByteSize()
        # A request without a deadline might hold up all others of its group.
        if (
            not settings.batching
            or settings.timeout is None
            or settings.metadata
            or settings.repeatable
            or is_traced(settings)
            or len(request.settlements) > _SETTLEMENTS_MAX
            or size > CALL_BYTES_MAX
        ):
            return (await client._call(_METHOD, request)).results
        group = request.namespace, request.group
        call = _Call(request, size, time.monotonic() + settings.timeout)
        with self._lock:
            waiting = self._waiting.get(group)
            if waiting is None:
                self._waiting[group] = collections.deque()
            else:
                waiting.append(call)
        if waiting is not None:
            return await self._result(client, call, waiting)
        try:
            return await _send(client, request, call.give_up_at)
        finally:
            self._next(client, group)

    async def _result(self, client: Calls, call: _Call, waiting: collections.deque[_Call]) -> Any:
        try:
            await call.done.wait(call.give_up_at - time.monotonic())
        finally:
            with self._lock:
                if not call.sent:
                    waiting.remove(call)
        if not call.done.is_set():
            raise late_call(maybe_applied=call.sent)
        if call.outcome is None:
            return await _send(client, call.request, call.give_up_at)
        if isinstance(call.outcome, TimecacheError):
            raise call.outcome.for_call("")
        return call.outcome

    # After each request: what waits goes, or the next call does by itself.
    def _next(self, client: Calls, group: _Group) -> None:
        with self._lock:
            if not self._waiting[group]:
                del self._waiting[group]
                return
        try:
            Task(lambda: self._send_waiting(client, group), "timecached-settle")
        except RuntimeError:  # No thread can be started: each goes alone.
            with self._lock:
                calls = self._waiting.pop(group)
                for call in calls:
                    call.sent = True
                    call.done.set()

    async def _send_waiting(self, client: Calls, group: _Group) -> None:
        try:
            while calls := self._take(group):
                await _send_together(client, group, calls)
        finally:
            self._next(client, group)

    def _take(self, group: _Group) -> list[_Call]:
        calls: list[_Call] = []
        count = size = 0
        with self._lock:
            waiting = self._waiting[group]
            while waiting and size < MESSAGE_BYTES_MAX:
                count += len(waiting[0].request.settlements)
                if count > _SETTLEMENTS_MAX:
                    break
                size += waiting[0].size
                waiting[0].sent = True
                calls.append(waiting.popleft())
        return calls


async def _send(client: Calls, request: watch_pb2.SettleExpiredRequest, give_up_at: float) -> Any:
    response = await client._attempts(_METHOD, request, None, 1, give_up_at, NO_CALL)
    return response.results


async def _send_together(client: Calls, group: _Group, calls: list[_Call]) -> None:
    request = watch_pb2.SettleExpiredRequest(namespace=group[0], group=group[1])
    for call in calls:
        request.settlements.extend(call.request.settlements)
    results: Any = ()
    failure: TimecacheError | None = cancelled("the request was ended")
    try:
        results = await _send(client, request, max(call.give_up_at for call in calls))
        failure = None
        if len(results) != len(request.settlements):
            failure = miscounted(len(request.settlements), len(results))
    except TimecacheError as error:
        failure = error
    finally:
        # What the server refuses may be one call's fault, and nothing was settled.
        alone = isinstance(failure, InvalidArgumentError) and len(calls) > 1
        begin = 0
        for call in calls:
            end = begin + len(call.request.settlements)
            if not alone:
                call.outcome = failure or results[begin:end]
            call.done.set()
            begin = end
