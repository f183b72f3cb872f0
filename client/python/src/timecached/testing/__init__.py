"""The clock of a server that was started with --virtual-clock: time stands still until it is told.

::

    clock = timecached.testing.VirtualClock(client)
    client.put("order:17", "42 EUR", ttl=900)
    clock.advance(timedelta(minutes=20))
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import grpc

from .. import aio
from ..client import Client
from ..errors import error_from_rpc
from ..types import Duration, from_timestamp, to_duration, to_timestamp
from .v1 import virtual_clock_pb2, virtual_clock_pb2_grpc

__all__ = ["AsyncVirtualClock", "VirtualClock"]


def _target(by: Duration | None, to: datetime | None) -> virtual_clock_pb2.AdvanceRequest:
    if by is not None:
        return virtual_clock_pb2.AdvanceRequest(by=to_duration(by))
    assert to is not None
    return virtual_clock_pb2.AdvanceRequest(to=to_timestamp(to))


class VirtualClock:
    """Moves a virtual server's clock, which starts at 1970-01-01T00:00:00Z and never goes back.

    An advance answers once everything that is due has been swept and published, with a watermark
    at the new time: a test that reads its watch up to that watermark has seen all. Each method
    returns the clock's time after it. UnimplementedError: the server runs on the real clock.
    """

    def __init__(self, client: Client, timeout: float = 60.0) -> None:
        """Of the client's server. `timeout`: seconds that one advance may take."""
        # The generated stub has no types.
        self._stub: Any = virtual_clock_pb2_grpc.VirtualClockServiceStub(client.channel)  # type: ignore[no-untyped-call]
        self._metadata = client._metadata
        self._timeout = timeout

    def advance(self, by: Duration) -> datetime:
        """Moves the clock on. InvalidArgumentError: a negative duration."""
        return self._call(self._stub.Advance, _target(by, None))

    def advance_to(self, to: datetime) -> datetime:
        """Moves the clock to a time. InvalidArgumentError: one that is over."""
        return self._call(self._stub.Advance, _target(None, to))

    def now(self) -> datetime:
        """Where the clock stands."""
        return self._call(self._stub.Now, virtual_clock_pb2.NowRequest())

    def _call(self, method: Any, request: Any) -> datetime:
        try:
            answer = method(request, timeout=self._timeout, metadata=self._metadata())
        except grpc.RpcError as error:
            raise error_from_rpc(error) from error
        return from_timestamp(answer.now)


class AsyncVirtualClock:
    """VirtualClock for asyncio."""

    def __init__(self, client: aio.Client, timeout: float = 60.0) -> None:
        """Of the client's server. `timeout`: seconds that one advance may take."""
        self._stub: Any = virtual_clock_pb2_grpc.VirtualClockServiceStub(client.channel)  # type: ignore[no-untyped-call]
        self._metadata = client._metadata
        self._timeout = timeout

    async def advance(self, by: Duration) -> datetime:
        """As VirtualClock.advance."""
        return await self._call(self._stub.Advance, _target(by, None))

    async def advance_to(self, to: datetime) -> datetime:
        """As VirtualClock.advance_to."""
        return await self._call(self._stub.Advance, _target(None, to))

    async def now(self) -> datetime:
        """As VirtualClock.now."""
        return await self._call(self._stub.Now, virtual_clock_pb2.NowRequest())

    async def _call(self, method: Any, request: Any) -> datetime:
        try:
            metadata = await self._metadata()
            answer = await method(request, timeout=self._timeout, metadata=metadata)
        except grpc.RpcError as error:
            raise error_from_rpc(error) from error
        return from_timestamp(answer.now)
