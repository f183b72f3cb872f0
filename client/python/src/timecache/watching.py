"""What a watch and a worker know and decide, whatever they wait with: internal to the client."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import grpc

from .channel import MAX_MESSAGE_BYTES, Backoff
from .errors import TimecacheError, UnavailableError
from .reasons import ErrorReason
from .types import (
    Ack,
    BytesLike,
    Duration,
    ExpiredEvent,
    Nack,
    PutBack,
    Settle,
    Settlement,
    WatchBatch,
    event_from,
    from_timestamp,
    to_bytes,
    to_duration,
)
from .v1 import watch_pb2

_LOG = logging.getLogger("timecache")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reconnecting:
    """How a watch deals with breaks."""

    wait_for_server: bool = False
    min_pause: float = 0.1
    max_pause: float = 1.0
    silence_max: float | None = None
    on_break: Callable[[TimecacheError], object] | None = None


def stopping() -> TimecacheError:
    """For a stream that the server has closed in good order."""
    return UnavailableError(grpc.StatusCode.UNAVAILABLE, "the server is stopping")


def silent() -> TimecacheError:
    """For a stream that brings nothing."""
    return UnavailableError(grpc.StatusCode.UNAVAILABLE, "the server fell silent")


@dataclasses.dataclass(slots=True)
class _Position:
    watermark: datetime | None = None
    resume_token: bytes = b""
    broken: bool = False
    log_changed: bool = False


class WatchState:
    """Where a watch is, what it asks for, and what the end of a stream means."""

    def __init__(
        self,
        *,
        namespaces: Iterable[str],
        group: str | None = None,
        lead_time: Duration | None = None,
        from_earliest: bool = False,
        resume_tokens: Mapping[str, bytes] | None = None,
        key_prefix: BytesLike = b"",
        keys_only: bool = False,
        fail_on_loss: bool = False,
        heartbeat_interval: Duration | None = None,
        max_in_flight: int | None = None,
        reconnecting: Reconnecting,
    ) -> None:
        """Of one of three kinds: with `group`, with `lead_time`, or with neither."""
        self.reconnecting = reconnecting
        self._group = group
        self._lead_time = lead_time
        self._from_earliest = from_earliest
        self._fail_on_loss = fail_on_loss
        self._key_prefix = to_bytes(key_prefix)
        self._max_in_flight = max_in_flight
        self._common: dict[str, Any] = {
            "namespaces": list(namespaces),
            "keys_only": keys_only,
            "max_message_bytes": MAX_MESSAGE_BYTES,
        }
        if heartbeat_interval is not None:
            self._common["heartbeat_interval"] = to_duration(heartbeat_interval)
        self._positions = {name: _Position() for name in self._common["namespaces"]}
        for name, token in (resume_tokens or {}).items():
            self._positions.setdefault(name, _Position()).resume_token = token
        self._backoff = Backoff(reconnecting.min_pause, reconnecting.max_pause)
        self._established = False

    def open(self, stub: Any, metadata: Any) -> Any:
        """Begins a stream where the last one has ended."""
        if self._lead_time is not None:
            return stub.WatchExpiring(
                watch_pb2.WatchExpiringRequest(
                    lead_time=to_duration(self._lead_time),
                    key_prefix=self._key_prefix,
                    **self._common,
                ),
                metadata=metadata,
            )
        if self._group is not None:
            # One that has to be made again leaves nothing out.
            return stub.ConsumeExpired(
                watch_pb2.ConsumeExpiredRequest(
                    group=self._group,
                    start=_start(self._established or self._from_earliest),
                    max_in_flight=self._max_in_flight,
                    **self._common,
                ),
                metadata=metadata,
            )
        # Namespaces without a token all begin alike: where one needs all of its log, another that
        # has not begun gets more than was asked, never less.
        positions = self._positions.values()
        from_earliest = self._from_earliest or any(p.log_changed for p in positions)
        return stub.WatchExpired(
            watch_pb2.WatchExpiredRequest(
                start=_start(from_earliest),
                resume_tokens=[p.resume_token for p in positions if p.resume_token],
                fail_on_loss=self._fail_on_loss,
                key_prefix=self._key_prefix,
                **self._common,
            ),
            metadata=metadata,
        )

    def accept(self, message: Any) -> WatchBatch:
        """Moves on behind a message."""
        self._established = True
        self._backoff.reset()
        position = self._positions.setdefault(message.namespace, _Position())
        batch = WatchBatch(
            namespace=message.namespace,
            events=tuple(map(event_from, message.events)),
            watermark=from_timestamp(message.watermark),
            lost=getattr(message, "lost", 0),
            resume_token=getattr(message, "resume_token", b""),
            reconnected=position.broken,
            log_changed=position.log_changed,
            missed_after=position.watermark if position.log_changed else None,
        )
        position.broken = position.log_changed = False
        position.watermark = batch.watermark
        position.resume_token = batch.resume_token
        return batch

    def ended(self, error: TimecacheError | None) -> float:
        """How long to pause before the next stream. Raises: the watch is at its end.

        `error`: None where the server has closed the stream in good order.
        """
        if error is not None and self._begin_anew(error):
            return 0
        if not self._is_break(error):
            raise error if error is not None else stopping()
        for position in self._positions.values():
            position.broken = self._established
        if self.reconnecting.on_break is not None:
            self.reconnecting.on_break(error if error is not None else stopping())
        return self._backoff.next()

    # Whether the server has refused the token of a namespace, which has another log now, and the
    # watch may begin that one anew. Each time a token goes, so that this comes to an end.
    def _begin_anew(self, error: TimecacheError) -> bool:
        if self._fail_on_loss or error.reason not in (
            ErrorReason.LOG_CHANGED,
            ErrorReason.RESUME_POINT_AHEAD,
        ):
            return False
        position = self._positions.get(error.metadata.get("namespace", ""))
        if position is None or not position.resume_token:
            return False
        position.resume_token = b""
        position.log_changed = True
        return True

    # A server that ends the stream with a reason of its own means it, but where that passes.
    def _is_break(self, error: TimecacheError | None) -> bool:
        if not self._established and not self.reconnecting.wait_for_server:
            return False
        return (
            error is None
            or error.is_connection_lost
            or error.reason in (ErrorReason.MAX_WATCHERS, ErrorReason.MAX_EXPIRING_WATCHERS)
        )


def _start(from_earliest: bool) -> watch_pb2.WatchStart:
    return watch_pb2.WATCH_START_EARLIEST if from_earliest else watch_pb2.WATCH_START_UNSPECIFIED


def to_settlement(settlement: Settlement) -> watch_pb2.Settlement:
    """As it goes on the wire."""
    message = watch_pb2.Settlement(event_id=settlement.event_id, attempt=settlement.attempt)
    how = settlement.how
    if isinstance(how, Nack):
        message.nack.delay.CopyFrom(to_duration(how.delay))
    elif isinstance(how, PutBack):
        message.put_back.SetInParent()
        if how.ttl is not None:
            message.put_back.ttl.CopyFrom(to_duration(how.ttl))
    elif isinstance(how, Ack):
        message.ack.SetInParent()
    else:
        raise TypeError(f"expected Ack(), Nack() or PutBack(), not {how!r}")
    return message


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
    stale: int = 0
    """Settled too late: the event had been given to another member, or was done."""
    unsettled: int = 0
    """Not settled: refused, or not delivered. The event is given out again."""
    lost: int = 0
    """Events that the group lost, as this worker was told."""


class WorkerState:
    """Which events a worker has, and what becomes of them. Not thread-safe."""

    def __init__(self, retry_delay: Duration) -> None:
        """`retry_delay`: of the Nack for a handler that raised."""
        self.retry_delay = retry_delay
        self.counters = WorkerCounters()
        # Every event that is waiting or with a handler, or that a handler is done with for good
        # and the server does not know yet; and its newest attempt. What is given out again
        # meanwhile is not handled twice.
        self._attempts: dict[int, int] = {}
        # Of these, what was given out again since its handler was done.
        self._given_again: set[int] = set()

    def take(self, batch: WatchBatch) -> list[ExpiredEvent]:
        """What is new in a batch."""
        self.counters.lost += batch.lost
        new = []
        for event in batch.events:
            if event.event_id in self._attempts:
                self._given_again.add(event.event_id)
            else:
                new.append(event)
            self._attempts[event.event_id] = event.attempt
        return new

    def held(self) -> int:
        """How many events this worker holds."""
        return len(self._attempts)

    def drop(self, events: Iterable[ExpiredEvent]) -> None:
        """Forgets events that were not begun: with the stream's end they are given out again."""
        for event in events:
            self._attempts.pop(event.event_id, None)
            self._given_again.discard(event.event_id)

    def begin(self, event: ExpiredEvent) -> ExpiredEvent:
        """The event as it is to be handled."""
        attempt = self._attempts[event.event_id]
        if attempt == event.attempt:
            return event
        return dataclasses.replace(event, attempt=attempt)

    def end(self, event: ExpiredEvent, how: Settle | None, raised: bool = False) -> Settlement:
        """What a handler has said, or that it raised."""
        self.counters.handled += 1
        if raised:
            self.counters.raised += 1
            how = Nack(self.retry_delay)
        attempt = self._attempts[event.event_id]
        self._given_again.discard(event.event_id)
        # It may come again before the answer to this.
        if isinstance(how, Nack):
            del self._attempts[event.event_id]
        return Settlement(event.event_id, attempt, Ack() if how is None else how)

    def settled(
        self, settlement: Settlement, error: TimecacheError | None, repeated: bool
    ) -> tuple[Settlement | None, TimecacheError | None]:
        """The server's answer; returns what to settle in its place and what to tell, if anything.

        `repeated`: an attempt that was not answered may have settled it.
        """
        how = settlement.how
        stale = error is not None and error.reason == ErrorReason.STALE_ATTEMPT
        gone = error is not None and error.reason == ErrorReason.EVENT_NOT_UNSETTLED
        if error is not None and not stale and not gone:
            retry = Nack(self.retry_delay)
            if isinstance(how, Ack) or how == retry:
                self.dropped(settlement)
                return None, error
            self._forget(settlement)
            return Settlement(settlement.event_id, settlement.attempt, retry), error
        given_again = settlement.event_id in self._given_again
        if error is not None and given_again and not isinstance(how, Nack):
            # It was given to this worker again, as by a server that was restarted, which counts
            # attempts anew: nobody else would settle it.
            self._given_again.discard(settlement.event_id)
            attempt = self._attempts[settlement.event_id]
            return Settlement(settlement.event_id, attempt, how), None
        self._forget(settlement)
        counters = self.counters
        if stale or (gone and not repeated):
            counters.stale += 1
        elif isinstance(how, Ack):
            counters.acked += 1
        elif isinstance(how, Nack):
            counters.nacked += 1
        else:
            counters.put_back += 1
        return None, None

    def dropped(self, settlement: Settlement) -> None:
        """It did not reach the server, or was refused for good."""
        self.counters.unsettled += 1
        self._forget(settlement)

    # From here on the event is handled when it comes again. One with a Nack was forgotten when
    # that was said: what there is now is the event's next attempt.
    def _forget(self, settlement: Settlement) -> None:
        if not isinstance(settlement.how, Nack):
            self._attempts.pop(settlement.event_id, None)
            self._given_again.discard(settlement.event_id)


def tell(on_error: Callable[[Exception], object] | None, error: Exception) -> None:
    """Hands an error that a worker survives to its owner, or to the log."""
    if on_error is None:
        _LOG.warning("a worker goes on after an error", exc_info=error)
        return
    try:
        on_error(error)
    except Exception:
        _LOG.exception("on_error has failed")


def may_pass(error: TimecacheError) -> bool:
    """Whether settlements that failed so are worth another attempt."""
    return error.is_connection_lost or error.code is grpc.StatusCode.DEADLINE_EXCEEDED
