"""What a watch knows and decides, whatever it waits with: internal to the client."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import grpc

from .channel import Backoff
from .connection import Failover
from .errors import TimecacheError, stopping
from .reasons import ErrorReason
from .types import (
    BytesLike,
    ChangeBatch,
    Duration,
    WatchBatch,
    change_from,
    event_from,
    from_timestamp,
    to_bytes,
    to_duration,
    to_names,
)
from .v1 import watch_pb2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reconnecting:
    """How a watch deals with breaks."""

    wait_for_server: bool = False
    min_pause: float = 0.1
    max_pause: float = 1.0
    silence_max: float | None = None
    on_break: Callable[[TimecacheError], object] | None = None


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
        changes: bool = False,
        max_message_bytes: int,
        reconnecting: Reconnecting,
    ) -> None:
        """Of one of four kinds: with `group`, `lead_time`, `changes`, or with none of these."""
        self.reconnecting = reconnecting
        self._group = group
        self._lead_time = lead_time
        self._changes = changes
        self._from_earliest = from_earliest
        self._fail_on_loss = fail_on_loss
        self._key_prefix = to_bytes(key_prefix)
        self._max_in_flight = max_in_flight
        self._common: dict[str, Any] = {
            "namespaces": to_names(namespaces),
            "keys_only": keys_only,
            "max_message_bytes": max_message_bytes,
        }
        if heartbeat_interval is not None:
            self._common["heartbeat_interval"] = to_duration(heartbeat_interval)
        self._positions = {name: _Position() for name in self._common["namespaces"]}
        for name, token in (resume_tokens or {}).items():
            self._positions.setdefault(name, _Position()).resume_token = token
        self._backoff = Backoff(reconnecting.min_pause, reconnecting.max_pause)
        self._established = False
        self._delivered = False  # On this stream.
        self._shown: Any = None  # What the last stream was opened with.
        self._refusal: TimecacheError | None = None  # Of just that, until there is another token.
        self._refused = False  # Since the last batch.

    def silence_max(self, addresses: int) -> float | None:
        """For how many seconds a stream may be silent: a node of a cluster that hangs is left."""
        if self.reconnecting.silence_max is not None or addresses == 1:
            return self.reconnecting.silence_max
        heartbeat = self._common.get("heartbeat_interval")
        return max(10.0, 4 * heartbeat.ToTimedelta().total_seconds() if heartbeat else 0)

    def show(self, metadata: Any) -> None:
        """Takes what the next stream will show to the server. Raises: it has refused just that.

        A server whose access rules change ends the streams whose token they do not have any more.
        """
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            if metadata == self._shown:
                raise refusal
            self._report_break(refusal)
        self._shown = metadata

    def open(self, stub: Any, metadata: Any) -> Any:
        """Begins a stream where the last one has ended."""
        self._delivered = False
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
                    start=start_of(self._established or self._from_earliest),
                    max_in_flight=self._max_in_flight,
                    **self._common,
                ),
                metadata=metadata,
            )
        # Namespaces without a token all begin alike: where one needs all of its log, another that
        # has not begun gets more than was asked, never less.
        positions = self._positions.values()
        from_earliest = self._from_earliest or any(p.log_changed for p in positions)
        fields: dict[str, Any] = {
            "start": start_of(from_earliest),
            "resume_tokens": [p.resume_token for p in positions if p.resume_token],
            "fail_on_loss": self._fail_on_loss,
            "key_prefix": self._key_prefix,
            **self._common,
        }
        if self._changes:
            return stub.WatchChanges(watch_pb2.WatchChangesRequest(**fields), metadata=metadata)
        return stub.WatchExpired(watch_pb2.WatchExpiredRequest(**fields), metadata=metadata)

    def accept(self, message: Any) -> WatchBatch | ChangeBatch:
        """Moves on behind a message."""
        self._established = self._delivered = True
        self._refused = False
        self._backoff.reset()
        position = self._positions.setdefault(message.namespace, _Position())
        common: dict[str, Any] = {
            "namespace": message.namespace,
            "watermark": from_timestamp(message.watermark),
            "lost": getattr(message, "lost", 0),
            "resume_token": getattr(message, "resume_token", b""),
            "reconnected": position.broken,
            "log_changed": position.log_changed,
            "missed_after": position.watermark if position.log_changed else None,
        }
        batch: WatchBatch | ChangeBatch
        if self._changes:
            batch = ChangeBatch(changes=tuple(map(change_from, message.changes)), **common)
        else:
            if self._group is not None and message.HasField("delivered_watermark"):
                common["delivered_watermark"] = from_timestamp(message.delivered_watermark)
            batch = WatchBatch(events=tuple(map(event_from, message.events)), **common)
        position.broken = position.log_changed = False
        position.watermark = batch.watermark
        position.resume_token = batch.resume_token
        return batch

    def ended(self, error: TimecacheError | None, failover: Failover) -> float:
        """How long to pause before the next stream. Raises: the watch is at its end.

        `error`: None where the server has closed the stream in good order.
        """
        if self._delivered:
            failover.reset()
        elif error is not None:
            # A watch that begins tries each address. Of a stream before the break was reported.
            first = not self._established and not self.reconnecting.wait_for_server
            if first or error.reason == ErrorReason.NOT_OWNER:
                elsewhere = failover.pause(error, error.is_connection_lost)
                if elsewhere is not None:
                    return elsewhere
        if error is not None and (self._begin_anew(error) or self._asks_for_token(error)):
            return 0
        if not self._is_break(error):
            raise error if error is not None else stopping()
        self._report_break(error if error is not None else stopping())
        pause = self._backoff.next()
        # A stream that is ended to slow its client down brings a batch first.
        throttled = error is not None and error.is_throttled
        return self.reconnecting.max_pause if throttled else pause

    def _report_break(self, error: TimecacheError) -> None:
        for position in self._positions.values():
            position.broken = self._established
        if self.reconnecting.on_break is not None:
            self.reconnecting.on_break(error)

    # Whether the server has refused the token, and the next attempt shows whether there is another
    # by now. Once for each stream that stood, so that this comes to an end.
    def _asks_for_token(self, error: TimecacheError) -> bool:
        if error.code is not grpc.StatusCode.UNAUTHENTICATED or self._refused:
            return False
        self._refused = True
        self._refusal = error
        return True

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
            or error.is_throttled
            or error.reason in (ErrorReason.MAX_WATCHERS, ErrorReason.MAX_EXPIRING_WATCHERS)
        )


def start_of(from_earliest: bool) -> watch_pb2.WatchStart:
    """As it goes on the wire."""
    return watch_pb2.WATCH_START_EARLIEST if from_earliest else watch_pb2.WATCH_START_UNSPECIFIED
