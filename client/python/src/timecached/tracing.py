"""OpenTelemetry: spans of calls, and of what handles events.

Only where the package opentelemetry-api is installed, as by ``pip install timecached[otel]``; where
no SDK is registered they cost about a microsecond each. Every call of a client is a span of kind
CLIENT, whose context goes to the server as ``traceparent``. Watches have none of their own: what a
handler does with an event is a span of kind CONSUMER, made by workers, and by ``consumer_span``.
What a worker calls by itself, as to settle, has none.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import grpc

from .channel import SERVICES, Settings
from .errors import TimecacheError
from .types import Ack, ExpiredEvent, Nack, Settle, Terminate
from .v1 import data_pb2

__all__ = ["ConsumerSpan", "consumer_span"]


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_trace = _load("opentelemetry.trace")
_context = _load("opentelemetry.context")

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@functools.cache
def _tracer() -> Any:
    from . import __version__

    return _trace.get_tracer("timecached", __version__)


class ConsumerSpan:
    """The span of one event's handling; made by ``consumer_span``. Current in its block."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: Any) -> None:
        """`span`: None where there is no tracing."""
        self._span = span

    def settled(self, how: Settle | None) -> None:
        """Notes what was said of the event. None: Ack."""
        if self._span is None:
            return
        how = Ack() if how is None else how
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(how).__name__).lower()
        self._span.set_attribute("timecached.settlement", name)
        if isinstance(how, (Nack, Terminate)) and how.reason:
            self._span.set_attribute("timecached.settlement.reason", how.reason)

    def __enter__(self) -> ConsumerSpan:
        if self._span is not None:
            self._token = _context.attach(_trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._span is None:
            return
        _context.detach(self._token)
        if error is not None:
            self._span.record_exception(error)
            _set_error(self._span, type(error).__qualname__, str(error))
        self._span.end()


_NO_CONSUMER = ConsumerSpan(None)


def consumer_span(event: ExpiredEvent, group: str = "") -> ConsumerSpan:
    """A span around what handles an event, for who does without a worker::

        for event in client.fetch_expired("billing").events:
            with tracing.consumer_span(event, "billing"):
                charge(event)

    Of kind CONSUMER, a child of the current span, with a link to the span of the put, if the entry
    has its ``traceparent`` (``Client(trace_entries=True)``). An exception that leaves the block is
    its error. Names and attributes are those of OpenTelemetry's conventions for messaging.
    """
    if _trace is None:
        return _NO_CONSUMER
    attributes: dict[str, Any] = {
        "messaging.system": "timecached",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": event.namespace,
        "messaging.message.body.size": len(event.value),
        "timecached.namespace": event.namespace,
        "timecached.cause": event.cause.name,
    }
    if group:
        attributes["messaging.consumer.group.name"] = group
    if event.event_id:
        attributes["messaging.message.id"] = str(event.event_id)
        attributes["timecached.attempt"] = event.attempt
    span = _tracer().start_span(
        f"process {event.namespace}",
        kind=_trace.SpanKind.CONSUMER,
        attributes=attributes,
        links=_links_to(event.traceparent),
    )
    return ConsumerSpan(span) if span.get_span_context().is_valid else _NO_CONSUMER


def _links_to(traceparent: str) -> list[Any]:
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return []
    trace_id, span_id, flags = (int(digits, 16) for digits in found.groups())
    context = _trace.SpanContext(
        trace_id, span_id, is_remote=True, trace_flags=_trace.TraceFlags(flags)
    )
    return [_trace.Link(context)] if context.is_valid else []


# --- for the client itself ---


class CallSpan:
    """The span of one call, with all its attempts: internal to the client."""

    __slots__ = ("_attempt", "_span", "sampled_traceparent", "traceparent")

    def __init__(self, span: Any) -> None:
        """`span`: None where there is no tracing."""
        self._span = span
        self._attempt = 1
        self.traceparent = ""
        """For the server's log; empty: the call is in no trace."""
        self.sampled_traceparent = ""
        """The same, if the trace is sampled: worth to be kept."""
        if span is not None:
            context = span.get_span_context()
            flags = context.trace_flags
            self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"
            if flags.sampled:
                self.sampled_traceparent = self.traceparent

    def retry(self, error: TimecacheError, pause: float, address: str) -> None:
        """Notes that an attempt has failed and there is another, at this address."""
        if self._span is None:
            return
        self._attempt += 1
        attributes = {
            "timecached.attempt": self._attempt,
            "timecached.pause": pause,
            "error.type": _type_of(error),
            "error.message": error.message,
        }
        self._span.add_event("retry", attributes)
        self._span.set_attributes(_server(address))

    def end(self, error: BaseException | None = None) -> None:
        """The call has ended."""
        if self._span is None:
            return
        code = 0
        if isinstance(error, TimecacheError):
            code = error.code.value[0]
            _set_error(self._span, _type_of(error), str(error))
            if error.request_id:
                self._span.set_attribute("timecached.request_id", error.request_id)
        elif isinstance(error, GeneratorExit):
            pass  # Who reads has had enough.
        elif error is not None:
            code = grpc.StatusCode.CANCELLED.value[0]
            _set_error(self._span, type(error).__qualname__, str(error))
        self._span.set_attribute("rpc.grpc.status_code", code)
        self._span.end()

    def __enter__(self) -> CallSpan:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end(error)


NO_CALL = CallSpan(None)


def call_span(
    method: str, request: Any, settings: Settings, address: str, parent: Any = None
) -> CallSpan:
    """Begins a span, as a child of the current one, or in the context `parent`."""
    if not is_traced(settings, parent):
        return NO_CALL
    if method.startswith(("data.", "groups.")):
        namespace = settings.namespace
    else:
        namespace = getattr(request, "name", "") if method.startswith("namespaces.") else ""
    span_name, attributes = _described(method, namespace, address)
    if type(request) is data_pb2.ExecuteRequest:
        attributes = {**attributes, "timecached.operations": len(request.operations)}
    span = _tracer().start_span(
        span_name, context=parent, kind=_trace.SpanKind.CLIENT, attributes=attributes
    )
    return CallSpan(span) if span.get_span_context().is_valid else NO_CALL


def is_traced(settings: Settings, parent: Any = None) -> bool:
    """Whether a call that begins now may have a span."""
    return _trace is not None and settings.traced and not _is_unused(parent)


# Whether no SDK is registered, and the caller is in no trace that another library has begun. A span
# that is none would cost 1 % of a call; it does, where the API does not have this name.
def _is_unused(parent: Any) -> bool:
    no_provider = getattr(_trace, "_TRACER_PROVIDER", _trace) is None
    return no_provider and not parent and not _context.get_current()


def current_context() -> Any:
    """For `parent` of a span that begins later, or on another thread. None: there is no tracing."""
    return None if _context is None else _context.get_current()


def forget_context() -> None:
    """Work that goes on in the background is no part of the trace that began it."""
    if _context is not None:
        _context.attach(_context.Context())


def stamp(request: Any, span: CallSpan, settings: Settings) -> None:
    """Asks the server to keep the trace with the entries that a request makes."""
    traceparent = settings.traceparent or span.sampled_traceparent
    if not traceparent:
        return
    if isinstance(request, data_pb2.ExecuteRequest):
        for operation in request.operations:
            kind = operation.WhichOneof("request")
            _stamp(getattr(operation, str(kind)), traceparent)
    else:
        _stamp(request, traceparent)


def _stamp(request: Any, traceparent: str) -> None:
    if isinstance(request, _STAMPED) and not request.traceparent:
        request.traceparent = traceparent


_STAMPED = (
    data_pb2.PutRequest,
    data_pb2.AppendRequest,
    data_pb2.CombineRequest,
    data_pb2.GatherRequest,
)


@functools.lru_cache(maxsize=1024)
def _described(method: str, namespace: str, address: str) -> tuple[str, dict[str, Any]]:
    stub, _, name = method.partition(".")
    service = SERVICES[stub]
    attributes: dict[str, Any] = {
        "rpc.system": "grpc",
        "rpc.service": service,
        "rpc.method": name,
        **_server(address),
    }
    if namespace:
        attributes["timecached.namespace"] = namespace
    return f"{service}/{name}", attributes


@functools.lru_cache(maxsize=64)
def _server(address: str) -> Mapping[str, Any]:
    plain = re.sub(r"^(dns:(//[^/]*/)?|ipv4:|ipv6:|unix:(?=/))", "", address)
    host, separator, port = plain.rpartition(":")
    if not separator or not port.isdigit():
        return {"server.address": plain}
    return {"server.address": host.strip("[]"), "server.port": int(port)}


def _type_of(error: TimecacheError) -> str:
    return error.reason or error.code.name


def _set_error(span: Any, kind: str, message: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(_trace.Status(_trace.StatusCode.ERROR, message))
