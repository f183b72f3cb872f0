"""When a worker asks for more time for the events that it holds: internal to the client."""

from __future__ import annotations

from datetime import timedelta

import grpc

from .errors import TimecacheError
from .reasons import ErrorReason
from .types import Duration, Extend, Settlement, to_duration
from .working import Held, WorkerState

# A group's default.
_ACK_TIMEOUT = 30.0
# Seconds after which a group's ack_timeout is read again: it may have been updated.
_READ_AGAIN = 10.0
# The same where it could not be read.
_TRY_AGAIN = 1.0
# Most settlements of one request.
_BATCH_MAX = 4096


class Extending:
    """Which of a worker's events get another ack_timeout, and when. Not thread-safe.

    Six times in an ack_timeout it looks at what is held, from its arrival until it is settled, and
    extends what has a sixth of that time behind it: so each is extended before a third is over.
    """

    def __init__(self, state: WorkerState, extend_max: Duration) -> None:
        """`extend_max`: for how long one event is extended, from its arrival; 0: not at all."""
        self._state = state
        self._extend_max = to_duration(extend_max).ToNanoseconds() / 1e9
        if self._extend_max < 0:
            raise ValueError("extend_max must not be negative")
        self._ack_timeout = _ACK_TIMEOUT
        self._read_next: float | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing is ever extended."""
        return self._extend_max == 0

    def pause(self) -> float:
        """Seconds until the next look."""
        pause = self._ack_timeout / 6
        # Until the ack_timeout is known.
        return pause if self._read_next is None else min(pause, max(0.001, self._until_read()))

    def wants_ack_timeout(self) -> bool:
        """Whether the group's ack_timeout is to be read now."""
        return self._state.count() > 0 and (self._read_next is None or self._until_read() <= 0)

    def knows_ack_timeout(self, ack_timeout: timedelta | None) -> None:
        """What the group's is; None: it could not be read."""
        again = _TRY_AGAIN if ack_timeout is None else _READ_AGAIN
        self._read_next = self._state.clock() + again
        if ack_timeout is not None:
            self._ack_timeout = ack_timeout.total_seconds()

    def due(self) -> list[tuple[Held, Settlement]]:
        """What to extend now, and how."""
        now = self._state.clock()
        due: list[tuple[Held, Settlement]] = []
        for held in self._state.held():
            if held.over or held.returned or now - held.arrived >= self._extend_max:
                continue
            if now - held.extended >= self._ack_timeout / 6 and len(due) < _BATCH_MAX:
                held.extended = now
                due.append((held, Settlement.of(held.event, Extend())))
        return due

    def answered(
        self, held: Held, asked: Settlement, error: TimecacheError | None
    ) -> TimecacheError | None:
        """The server's answer; returns the error to report, if any."""
        if error is None:
            self._state.counters.extended += 1
        elif error.reason in (ErrorReason.STALE_ATTEMPT, ErrorReason.EVENT_NOT_UNSETTLED):
            # Its handler's answer, if too late, is reported then. It may have come again.
            held.over = asked == Settlement.of(held.event, Extend())
        elif error.code is grpc.StatusCode.INVALID_ARGUMENT and not self.ended:
            # So a server that is too old for it answers.
            self._extend_max = 0
            return error.about("events are not extended any more")
        return None

    def _until_read(self) -> float:
        return 0.0 if self._read_next is None else self._read_next - self._state.clock()
