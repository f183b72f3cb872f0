"""What a worker knows and decides, whatever it waits with: internal to the client."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import grpc

from .errors import TimecacheError
from .operation import set_life
from .reasons import ErrorReason
from .types import (
    Ack,
    Duration,
    ExpiredEvent,
    Extend,
    Nack,
    PutBack,
    Settle,
    Settlement,
    Terminate,
    WatchBatch,
    to_duration,
)
from .v1 import watch_pb2

T = TypeVar("T")

_LOG = logging.getLogger("timecached")

_MAX_IN_FLIGHT = 65_536
"""Most events that the server lets a member hold."""


def in_flight(max_in_flight: int | None, concurrency: int) -> int:
    """How many events a worker holds, by default."""
    return min(2 * concurrency, _MAX_IN_FLIGHT) if max_in_flight is None else max_in_flight


def to_settlement(settlement: Settlement) -> watch_pb2.Settlement:
    """As it goes on the wire."""
    message = watch_pb2.Settlement(delivery_token=settlement.delivery_token)
    how = settlement.how
    if isinstance(how, Nack):
        message.nack.SetInParent()
        message.nack.reason = how.reason
        if how.delay is not None:
            message.nack.delay.CopyFrom(to_duration(how.delay))
    elif isinstance(how, PutBack):
        message.put_back.SetInParent()
        set_life(message.put_back, how.ttl, how.expire_at, how.allow_past)
    elif isinstance(how, Terminate):
        message.terminate.SetInParent()
        message.terminate.reason = how.reason
    elif isinstance(how, Extend):
        message.extend.SetInParent()
    elif isinstance(how, Ack):
        message.ack.SetInParent()
    else:
        raise TypeError(f"expected Ack(), Nack(), PutBack() or Terminate(), not {how!r}")
    return message


def check_answer(event: ExpiredEvent, how: Settle | None) -> None:
    """What the server would not understand is the handler's error, too: raises it."""
    if isinstance(how, Extend):
        raise TypeError("a handler that needs longer goes on: its worker extends by itself")
    if how is not None:
        to_settlement(Settlement.of(event, how))


def describe(group: str, event: ExpiredEvent) -> str:
    """Which event of which group, for people."""
    return (
        f"namespace {event.namespace!r}, group {group!r}, key {event.key!r}, "
        f"attempt {event.attempt}"
    )


@dataclasses.dataclass(slots=True)
class WorkerCounters:
    """What a worker has done since its start."""

    handled: int = 0
    """Handlers that have returned, or raised."""
    raised: int = 0
    """Of these, that have raised."""
    acked: int = 0
    """Settled by Ack."""
    nacked: int = 0
    """Given back by Nack, or for a handler that raised."""
    put_back: int = 0
    """Settled by PutBack, put or let go."""
    terminated: int = 0
    """Given up by Terminate."""
    stale: int = 0
    """Settled too late: the event had been given to another member, was done, or its group gone."""
    unsettled: int = 0
    """Not settled: refused, or not delivered. The event is given out again."""
    lost: int = 0
    """Events that the group lost, as the server has said to this worker."""
    extended: int = 0
    """Times that it got another ack_timeout for an event."""


@dataclasses.dataclass(slots=True, eq=False)
class Held:
    """An event in a worker's hands, from its arrival until the server knows what became of it."""

    event: ExpiredEvent
    """As it was last given out."""
    arrived: float
    """When it came first, monotonic."""
    extended: float
    """From when its ack_timeout runs, at the earliest."""
    returned: bool = False
    """Whether a Nack was said: what comes again is to be handled again."""
    over: bool = False
    """Whether the server has said that this worker does not hold it any more."""

    @property
    def name(self) -> tuple[int, bytes]:
        """What the event keeps in every delivery."""
        return _name(self.event)


def _name(event: ExpiredEvent) -> tuple[int, bytes]:
    return event.version, event.key


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Owed:
    """A settlement that the server has not answered yet."""

    held: Held
    settlement: Settlement


class WorkerState:
    """Which events a worker has, and what becomes of them. Not thread-safe."""

    def __init__(
        self, retry_delay: Duration | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`retry_delay`: of the Nack for a handler that raised."""
        if retry_delay is not None and to_duration(retry_delay).ToNanoseconds() < 0:
            raise ValueError("retry_delay must not be negative")
        self.clock = clock
        self.counters = WorkerCounters()
        self._retry = Nack(retry_delay)
        # By name. What is given out again meanwhile is not handled twice.
        self._held: dict[tuple[int, bytes], Held] = {}

    def take(self, batch: WatchBatch) -> list[Held]:
        """What is new in a batch."""
        self.counters.lost += batch.lost
        new = []
        now = self.clock()
        for event in batch.events:
            known = self._held.get(_name(event))
            if known is not None and not known.returned:
                known.event, known.extended, known.over = event, now, False
                continue
            held = self._held[_name(event)] = Held(event, now, now)
            new.append(held)
        return new

    def held(self) -> Iterable[Held]:
        """What this worker holds."""
        return self._held.values()

    def count(self) -> int:
        """How many events this worker holds."""
        return len(self._held)

    def drop(self, unbegun: Iterable[Held]) -> None:
        """Forgets events that were not begun: with the stream's end they are given out again."""
        for held in unbegun:
            self._forget(held)

    def begin(self, held: Held) -> ExpiredEvent:
        """The event as it is to be handled."""
        return held.event

    def end(self, held: Held, how: Settle | None) -> Owed:
        """What a handler has said."""
        self.counters.handled += 1
        return _owe(held, Ack() if how is None else how)

    def failed(self, held: Held) -> Owed:
        """That a handler raised."""
        self.counters.raised += 1
        return self.end(held, self._retry)

    def settled(
        self, owed: Owed, error: TimecacheError | None, repeated: bool
    ) -> tuple[Owed | None, TimecacheError | None]:
        """The server's answer; returns what to settle in its place and what to report, if any.

        `repeated`: an attempt that was not answered may have settled it.
        """
        held, how = owed.held, owed.settlement.how
        stale = error is not None and error.reason == ErrorReason.STALE_ATTEMPT
        done = error is not None and error.reason == ErrorReason.EVENT_NOT_UNSETTLED
        if error is not None and not stale and not done:
            # It did not like how it was settled, or has no room for what is put back.
            if isinstance(how, Ack) or how == self._retry:
                self.dropped(owed)
                return None, error
            return _owe(held, self._retry), error
        again = held.event.delivery_token != owed.settlement.delivery_token
        if stale and again and not isinstance(how, Nack):
            # It was given to this worker again: nobody else would settle it.
            return _owe(held, how), None
        self._forget(held)
        counters = self.counters
        if stale or (done and not repeated):
            counters.stale += 1
            return None, error
        elif isinstance(how, Ack):
            counters.acked += 1
        elif isinstance(how, Nack):
            counters.nacked += 1
        elif isinstance(how, Terminate):
            counters.terminated += 1
        else:
            counters.put_back += 1
        return None, None

    def dropped(self, owed: Owed) -> None:
        """It did not reach the server, or was refused for good."""
        self.counters.unsettled += 1
        self._forget(owed.held)

    # From here on the event is handled when it comes again.
    def _forget(self, held: Held) -> None:
        if self._held.get(held.name) is held:
            del self._held[held.name]


def _owe(held: Held, how: Settle | Extend) -> Owed:
    held.returned = isinstance(how, Nack)
    return Owed(held, Settlement.of(held.event, how))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Listeners:
    """What a worker reports, to its owner's callbacks or else to the log."""

    on_break: Callable[[TimecacheError], object] | None
    on_error: Callable[[Exception], object] | None
    on_loss: Callable[[int], object] | None
    survived: type[BaseException] = Exception
    """What of theirs is logged, and no more."""

    def report_break(self, why: TimecacheError) -> None:
        """That the stream broke, which is an error that is survived, too."""
        if self.on_break is not None:
            self._call("on_break", self.on_break, why)
        self.report(why)

    def report(self, error: Exception) -> None:
        """An error that the worker survives."""
        if self.on_error is None:
            _LOG.warning("a worker goes on after an error", exc_info=error)
        else:
            self._call("on_error", self.on_error, error)

    def report_handler(self, group: str, event: ExpiredEvent, error: Exception) -> None:
        """What a handler has raised."""
        where = describe(group, event)
        if self.on_error is None:
            _LOG.warning("a handler has failed: %s", where, exc_info=error)
            return
        # Python 3.10 has none.
        note = getattr(error, "add_note", None)
        if note is not None:
            note(f"the handler of {where}")
        self._call("on_error", self.on_error, error)

    def report_unsettled(self, group: str, owed: Owed, error: TimecacheError) -> None:
        """That an event was handled, and is not settled as its handler has said."""
        how = type(owed.settlement.how).__name__
        where = describe(group, owed.held.event)
        self.report(error.about(f"handled, but its {how} was refused: {where}"))

    def report_loss(self, group: str, lost: int) -> None:
        """The number of events that the group has lost."""
        if self.on_loss is None:
            _LOG.warning("group %s has lost %d events", group, lost)
        else:
            self._call("on_loss", self.on_loss, lost)

    def _call(self, name: str, listener: Callable[[T], object], said: T) -> None:
        try:
            listener(said)
        except self.survived:
            _LOG.exception("%s has failed", name)


def may_pass(error: Exception) -> bool:
    """Whether settlements that failed so are worth another attempt."""
    if not isinstance(error, TimecacheError):
        return False
    # RESOURCE_EXHAUSTED: of all of them, as where the journal's disk is full.
    passing = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)
    return error.is_connection_lost or error.code in passing
