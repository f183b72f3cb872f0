"""How a client's calls are done, for asyncio: internal to the client."""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import grpc

from ..channel import Backoff, Security, Settings
from ..connection import AsyncConnection, Endpoints, Failover
from ..duplex import Unsupported
from ..errors import TimecacheError, error_from_status
from ..operation import Operation
from ..reasons import ErrorReason
from ..sharing import CALL_BYTES_MAX, Metadata, NotSent, Streams
from ..tracing import NO_CALL, CallSpan, call_span, stamp
from .streams import Stream
from .tasks import sleep

T = TypeVar("T")
C = TypeVar("C", bound="Calls")


class Calls:
    """What the calls of a client need, and what they do in common."""

    _security: Security
    _max_message_bytes: int
    _endpoints: Endpoints[AsyncConnection]
    _settings: Settings
    _streams: Streams[AsyncConnection, Stream]

    def _with(self: C, **changes: Any) -> C:
        view = copy.copy(self)
        view._settings = dataclasses.replace(self._settings, **changes)
        return view

    async def _authorization(self, give_up_at: float | None) -> Metadata:
        if self._security.token is None:
            return ()
        limit = self._settings.timeout if give_up_at is None else give_up_at - time.monotonic()
        return await self._security.authorization_async(limit)

    async def _metadata(self, give_up_at: float | None = None, traceparent: str = "") -> Metadata:
        metadata = (*await self._authorization(give_up_at), *self._settings.metadata)
        if traceparent and not self._settings.traceparent:
            return (*metadata, ("traceparent", traceparent))
        return metadata

    async def _do(self, operation: Operation[T]) -> T:
        call = self._call(operation.method, operation.inner, operation.is_safe(), 0, operation)
        return operation.parse(await call)

    # `more`: seconds beside the timeout. `operation`: what the request is, if it may go with
    # others.
    async def _call(
        self,
        method: str,
        request: Any,
        safe: bool = False,
        more: float = 0,
        operation: Operation[Any] | None = None,
    ) -> Any:
        settings = self._settings
        give_up_at = None
        if settings.timeout is not None:
            give_up_at = time.monotonic() + settings.timeout + more
        left = settings.retry.max_attempts if safe or settings.repeatable else 1
        span = call_span(method, request, settings, self._endpoints.current.address)
        if settings.trace_entries:
            stamp(request, span, settings)
        if span is NO_CALL:
            return await self._attempts(method, request, operation, left, give_up_at, span)
        with span:
            return await self._attempts(method, request, operation, left, give_up_at, span)

    async def _attempts(
        self,
        method: str,
        request: Any,
        operation: Operation[Any] | None,
        left: int,
        give_up_at: float | None,
        span: CallSpan,
    ) -> Any:
        shared = b""
        if operation is not None:
            shared = self._encoded(operation, span)
            if not shared:
                request.namespace = self._settings.namespace
        backoff: Backoff | None = None
        failover: Failover | None = None
        maybe_applied = False
        while True:
            connection = self._endpoints.current
            try:
                if shared:
                    assert operation is not None
                    response = await self._exchange(connection, operation, shared, give_up_at)
                    if response is not None:
                        return response
                    shared = b""
                    request.namespace = self._settings.namespace
                with connection.errors():
                    call = await self._open(connection, method, request, give_up_at, span)
                    return await call
            except NotSent:
                continue
            except TimecacheError as error:
                maybe_applied = error.maybe_applied = maybe_applied or error.maybe_applied
                self._endpoints.move_on(connection, error)
                failover = failover or self._endpoints.failover()
                pause = failover.pause(error)
                if pause is None:
                    left -= 1
                    retry = self._settings.retry
                    backoff = backoff or Backoff(retry.min_pause, retry.max_pause)
                    pause = backoff.next()
                    if left <= 0 or not error.is_connection_lost:
                        raise
                if give_up_at is not None and time.monotonic() + pause >= give_up_at:
                    raise
                span.retry(error, pause, self._endpoints.current.address)
            await sleep(pause)

    # An operation as it goes with others; empty: it goes alone.
    def _encoded(self, operation: Operation[Any], span: CallSpan) -> bytes:
        settings = self._settings
        if not settings.shares:
            return b""
        traceparent = settings.traceparent or span.traceparent
        data = operation.encoded(settings.request_id, traceparent)
        return data if len(data) <= CALL_BYTES_MAX else b""

    # The response to an operation that has gone with others; None: it has to go alone.
    async def _exchange(
        self,
        connection: AsyncConnection,
        operation: Operation[Any],
        data: bytes,
        give_up_at: float | None,
    ) -> Any:
        settings = self._settings
        if not connection.shares:
            return None
        stream = self._streams.find(connection, settings.namespace)
        stream = stream or await self._open_stream(connection, give_up_at)
        if stream is None:
            return None
        try:
            result = await stream.exchange(data, give_up_at, settings.timeout)
        except TimecacheError as error:
            if error.code is grpc.StatusCode.UNIMPLEMENTED:
                connection.shares = False
                return None
            raise error.for_call(settings.request_id) from error.__cause__
        if not result.HasField("error"):
            return getattr(result, operation.kind)
        refusal = error_from_status(result.error, settings.request_id or stream.request_id)
        if refusal.reason == ErrorReason.MAX_RESPONSE_BYTES:
            return None
        raise refusal

    async def _open_stream(
        self, connection: AsyncConnection, give_up_at: float | None
    ) -> Stream | None:
        with connection.errors():
            await connection.wait(give_up_at)
            metadata = await self._authorization(give_up_at)
            try:
                return self._streams.open(connection, self._settings.namespace, metadata)
            except Unsupported:
                connection.shares = False
                return None

    async def _open(
        self,
        connection: AsyncConnection,
        method: str,
        request: Any,
        give_up_at: float | None,
        span: CallSpan,
    ) -> Any:
        await connection.wait(give_up_at)
        metadata = await self._metadata(give_up_at, span.traceparent)
        timeout = None if give_up_at is None else give_up_at - time.monotonic()
        return connection.stubs.method(method)(request, timeout=timeout, metadata=metadata)

    # All pages of a list.
    async def _pages(self, method: str, request: Any) -> AsyncIterator[Any]:
        while True:
            response = await self._call(method, request, safe=True)
            yield response
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token
