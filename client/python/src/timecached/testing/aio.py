"""The clock for asyncio."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ..aio.client import Client
from ..types import Duration, from_timestamp, to_duration, to_timestamp
from .v1 import virtual_clock_pb2


class AsyncVirtualClock:
    """Moves a virtual server's clock, which starts at 1970-01-01T00:00:00Z and never goes back.

    An advance answers once everything that is due has been swept and published, with a watermark
    at the new time: a test that reads its watch up to that watermark has seen all. Each method
    returns the clock's time after it. UnimplementedError: the server runs on the real clock.
    """

    def __init__(self, client: Client, timeout: float = 60.0) -> None:
        """Of the client's server. `timeout`: seconds that one advance may take."""
        self._client = client.with_options(timeout=timeout)

    async def advance(self, by: Duration) -> datetime:
        """Moves the clock on. InvalidArgumentError: a negative duration."""
        request = virtual_clock_pb2.AdvanceRequest(by=to_duration(by))
        return await self._call("Advance", request)

    async def advance_to(self, to: datetime) -> datetime:
        """Moves the clock to a time. InvalidArgumentError: one that is over."""
        request = virtual_clock_pb2.AdvanceRequest(to=to_timestamp(to))
        return await self._call("Advance", request)

    async def now(self) -> datetime:
        """Where the clock stands."""
        return await self._call("Now", virtual_clock_pb2.NowRequest())

    async def _call(self, method: str, request: Any) -> datetime:
        answer = await self._client._call(f"clock.{method}", request)
        return from_timestamp(answer.now)
