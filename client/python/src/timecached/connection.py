"""How a client gets connected, and what the errors of its channel mean: internal to the client."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import grpc
import grpc.aio

from .channel import BOUNDED, Backoff, Stubs
from .errors import ClosedError, DeadlineExceededError, TimecacheError, error_from_rpc
from .reasons import ErrorReason

C = TypeVar("C")

PATIENCE = 0.25
"""Seconds that a call waits for a connection that is refused, before it fails."""


class _Turns:
    """Which calls wait for a connection. Thread-safe.

    While the server is away, those that come within PATIENCE of the first one, and then none for a
    pause of 50 ms to 1 s: the others fail at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._backoff = Backoff(0.05, 1.0)
        self._ends = 0.0
        self._next = 0.0

    def take(self, now: float) -> float:
        """For how many seconds a call may wait; 0: not at all."""
        with self._lock:
            if now >= self._ends:
                if now < self._next:
                    return 0
                self._ends = now + PATIENCE
                self._next = self._ends + self._backoff.next()
            return self._ends - now

    def reset(self) -> None:
        """There is a connection."""
        with self._lock:
            self._backoff.reset()
            self._ends = self._next = 0.0


def _limit(seconds: float, now: float, until: float | None) -> float:
    return seconds if until is None else max(0.0, min(seconds, until - now))


class Connection:
    """Of a blocking client. Thread-safe.

    To learn a channel's state from gRPC costs a thread, which a channel that is closed soon after
    breaks. So a connection counts as there until a call has lost it, and to wait for one is to wait
    for an answer of grpc.health.v1.
    """

    def __init__(self, address: str, channel: grpc.Channel, has_others: bool = False) -> None:
        self.address = address
        self.stubs = Stubs(channel)
        self.shares = True  # Whether plain calls can go with others: its server has Pipeline.
        self._channel = channel
        # Where another server may do, one that refuses connections is not waited for.
        self._waits = not has_others
        self._turns = _Turns()
        self._up = False
        self._closed = False

    def close(self) -> None:
        """Ends all calls: they raise a ClosedError, and so do later ones."""
        self._closed = True
        self._channel.close()

    def wait(self, until: float | None) -> None:
        """Waits for a connection, if there is none, but not after `until` (monotonic).

        To be called before each call. Where it waits in vain the call says why there is none.
        """
        if self._up:
            return
        now = time.monotonic()
        patience = _limit(self._turns.take(now), now, until)
        if patience == 0:
            return
        try:
            self.stubs.health.Check(b"", timeout=patience, wait_for_ready=self._waits)
        except grpc.RpcError as error:
            failure = error_from_rpc(error)
            if failure.is_connection_lost or isinstance(failure, DeadlineExceededError):
                return
        self._up = True
        self._turns.reset()

    def failure(self, error: grpc.RpcError) -> TimecacheError:
        """What a call's error means."""
        if self._closed:
            return ClosedError(maybe_applied=True)
        failure = error_from_rpc(error)
        if failure.is_connection_lost:
            self._up = False
        return failure

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Around all that waits, begins a call or reads its answer: raises TimecacheError."""
        try:
            yield
        except grpc.RpcError as error:
            raise self.failure(error) from error
        except ValueError:
            # So gRPC refuses a call on a channel that is closed.
            if self._closed:
                raise ClosedError from None
            raise


class AsyncConnection:
    """Of a client for asyncio."""

    def __init__(self, address: str, channel: grpc.aio.Channel, has_others: bool = False) -> None:
        self.address = address
        self.stubs = Stubs(channel)
        self.shares = True
        self._channel: Any = channel
        self._waits = not has_others
        self._turns = _Turns()
        self._closed = False

    async def close(self) -> None:
        """As Connection.close."""
        self._closed = True
        await self._channel.close()

    async def wait(self, until: float | None) -> None:
        """As Connection.wait."""
        if self._channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY:
            return
        now = time.monotonic()
        patience = _limit(self._turns.take(now), now, until)
        if patience == 0:
            return
        try:
            ready = await asyncio.wait_for(self._ready(), patience)
        except asyncio.TimeoutError:
            return
        if ready:
            self._turns.reset()

    async def _ready(self) -> bool:
        if self._waits:
            await self._channel.channel_ready()
            return True
        ends = (grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE)
        while (state := self._channel.get_state(try_to_connect=True)) not in ends:
            await self._channel.wait_for_state_change(state)
        return state is grpc.ChannelConnectivity.READY

    def failure(self, error: grpc.RpcError) -> TimecacheError:
        """As Connection.failure."""
        return ClosedError(maybe_applied=True) if self._closed else error_from_rpc(error)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """As Connection.errors."""
        try:
            yield
        except grpc.RpcError as error:
            raise self.failure(error) from error
        except grpc.aio.UsageError:
            if self._closed:
                raise ClosedError from None
            raise
        except asyncio.CancelledError:
            # So gRPC ends a call whose channel is closed. Who waits for it was not cancelled.
            if self._closed and not _is_cancelled():
                raise ClosedError(maybe_applied=True) from None
            raise


def _is_cancelled() -> bool:
    # Before Python 3.11 a task does not know.
    cancelling = getattr(asyncio.current_task(), "cancelling", None)
    return cancelling is None or cancelling() > 0


class Failover:
    """When a call or stream that has failed is tried at another address."""

    def __init__(self, addresses: int) -> None:
        self._addresses = addresses
        self._backoff = Backoff(0.02, 0.1)
        self._unreached = 0  # Addresses, one after the other.

    def pause(self, error: TimecacheError, is_lost: bool = False) -> float | None:
        """Seconds until the next attempt; None: that is not for other addresses to decide.

        `is_lost`: another address may not have the error, and nothing was done. Without a
        connection that is so.
        """
        if error.reason == ErrorReason.NOT_OWNER:
            self._unreached = 0
            return self._backoff.next()
        if is_lost or error.is_not_connected:
            self._unreached += 1
            if self._unreached < self._addresses:
                return 0
        return None

    def reset(self) -> None:
        """After a success."""
        self._backoff.reset()
        self._unreached = 0


class Endpoints(Generic[C]):
    """The servers that a client may call, with a connection each, and the one that it calls now.

    Thread-safe. Connections are made when they are first needed, and closed with the client.
    """

    OTHERS_MAX = 16
    """Most owners that servers named and the user did not: later ones are not called."""

    def __init__(
        self, addresses: Sequence[str], connect: Callable[[str, Sequence[tuple[str, Any]]], C]
    ) -> None:
        """`connect`: makes a connection to an address, with these options more. It may raise."""
        self._addresses = addresses
        self._connect = connect
        self._lock = threading.Lock()
        self._index = 0  # Of the address that was current last.
        self._closed = False
        self.size = len(addresses)
        self.current = connect(addresses[0], BOUNDED if self.size > 1 else ())
        self._connections = {addresses[0]: self.current}

    def close(self) -> list[C]:
        """All that are to be closed; no more are made."""
        with self._lock:
            self._closed = True
            return list(self._connections.values())

    def failover(self) -> Failover:
        """Of one call or stream."""
        return Failover(self.size)

    def move_on(self, source: C, error: TimecacheError | None) -> None:
        """After a call or stream there has failed, or (None) the server has ended a stream.

        Makes the named owner current, or the next address, if another may do better. A node that
        did not answer in time may hang; if it does not, the next one names it.
        """
        hangs = self.size > 1 and isinstance(error, DeadlineExceededError)
        if error is not None and not error.is_connection_lost and not hangs:
            return
        with self._lock:
            if self._closed or self.current is not source:
                return
            found = None
            if error is not None and error.reason == ErrorReason.NOT_OWNER:
                found = self._owner(error.metadata.get("owner_address", ""))
            if found is source:
                found = None
            for _ in self._addresses if found is None else ():
                self._index = (self._index + 1) % self.size
                found = self._at(self._addresses[self._index])
                if found is not None:
                    break
            if found is not None:
                self.current = found

    def _owner(self, address: str) -> C | None:
        if address in self._addresses:
            self._index = self._addresses.index(address)
        elif address not in self._connections and (
            not address or len(self._connections) >= self.size + self.OTHERS_MAX
        ):
            return None
        return self._at(address)

    # None: no connection to it can be made, as it is no address or a file is gone.
    def _at(self, address: str) -> C | None:
        if address not in self._connections:
            try:
                self._connections[address] = self._connect(address, BOUNDED)
            except (OSError, TypeError, ValueError):
                return None
        return self._connections[address]
