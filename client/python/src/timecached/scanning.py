"""What a scan knows and decides, whatever it waits with: internal to the client."""

from __future__ import annotations

from typing import Any

import grpc

from .channel import Backoff
from .errors import TimecacheError
from .reasons import ErrorReason
from .types import RetryPolicy


class ScanState:
    """How far a scan has come, and whether it goes on after an error."""

    def __init__(self, retry: RetryPolicy) -> None:
        self._attempts = retry.max_attempts
        self._left = retry.max_attempts
        self._backoff = Backoff(retry.min_pause, retry.max_pause)
        self._begun = False
        self._position = b""

    def accept(self, page: Any) -> bytes:
        """Moves on behind a page, and returns from where another stream goes on."""
        self._begun = True
        self._position = page.position
        self._left = self._attempts
        self._backoff.reset()
        return self._position

    def broken(self, error: TimecacheError) -> float:
        """How many seconds to pause before the next stream. Raises the error: it is the end."""
        self._left -= 1
        passes = (
            error.is_connection_lost
            or error.is_throttled
            # So the server ends a scan that is not read for a while; what it has sent stands. The
            # scan's own deadline is the caller's to see.
            or error.code is grpc.StatusCode.DEADLINE_EXCEEDED
            or error.reason == ErrorReason.UNREAD_RESPONSES
        )
        # An older server has no positions; from the beginning entries would come twice.
        if not passes or self._left <= 0 or (self._begun and not self._position):
            raise error
        return self._backoff.next()
