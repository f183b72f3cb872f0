"""Spans of calls and of handlers, where OpenTelemetry is installed, and that it need not be."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import subprocess
import sys
import threading
import unittest
from collections.abc import Iterator
from typing import Any

import grpc
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import timecached
from timecached import Operation, aio, tracing
from timecached.v1 import data_pb2, data_pb2_grpc, watch_pb2

EXPORTER = InMemorySpanExporter()
PUT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SERVICE = "timecache.v1.TimeCacheService"


def setUpModule() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(provider)


class Service(data_pb2_grpc.TimeCacheServiceServicer):
    """Notes requests with the traceparents of their calls, and gives one event."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.failures: list[tuple[grpc.StatusCode, str]] = []
        self.settled = threading.Event()

    def _note(self, request: Any, context: Any, traceparent: str = "") -> None:
        metadata = dict(context.invocation_metadata())
        self.requests.append((traceparent or metadata.get("traceparent", ""), request))
        if self.failures:
            context.abort(*self.failures.pop(0))

    def Put(self, request: Any, context: Any) -> Any:
        self._note(request, context)
        return data_pb2.PutResponse(version=1)

    def Get(self, request: Any, context: Any) -> Any:
        self._note(request, context)
        return data_pb2.GetResponse()

    def Execute(self, request: Any, context: Any) -> Any:
        self._note(request, context)
        return data_pb2.ExecuteResponse(
            results=[data_pb2.OperationResult() for _ in request.operations]
        )

    def Pipeline(self, requests: Any, context: Any) -> Iterator[Any]:
        for request in requests:
            if not request.independent:
                yield self.Execute(request, context)
                continue
            response = data_pb2.ExecuteResponse()
            for each in request.operations:
                inner = getattr(each, each.WhichOneof("request"))
                self._note(inner, context, each.traceparent)
                response.results.add().put.version = 1
            yield response

    def Scan(self, request: Any, context: Any) -> Iterator[Any]:
        self._note(request, context)
        yield data_pb2.ScanResponse(entries=[data_pb2.Entry(key=b"a")])

    def ConsumeExpired(self, request: Any, context: Any) -> Iterator[Any]:
        event = watch_pb2.ExpiredEvent(
            namespace="ns", key=b"a", value=b"12", event_id=7, attempt=2, delivery_token=b"t",
            cause=watch_pb2.EXPIRY_CAUSE_EXPIRED, traceparent=PUT,
        )  # fmt: skip
        yield watch_pb2.ConsumeExpiredResponse(namespace="ns", events=[event])
        self.settled.wait(60)

    def SettleExpired(self, request: Any, context: Any) -> Any:
        self.settled.set()
        return watch_pb2.SettleExpiredResponse(results=[watch_pb2.SettleResult()])


class TracingTest(unittest.TestCase):
    def setUp(self) -> None:
        self.service = Service()
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        data_pb2_grpc.add_TimeCacheServiceServicer_to_server(self.service, server)  # type: ignore[no-untyped-call]
        self.port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(0).wait(20))
        self.client = self.make_client()
        EXPORTER.clear()
        self.tracer = trace.get_tracer("test")

    def make_client(self, **options: Any) -> timecached.Client:
        client = timecached.Client(f"127.0.0.1:{self.port}", namespace="ns", timeout=60, **options)
        self.addCleanup(client.close)
        return client

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in EXPORTER.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.spans(name)
        return span

    def test_a_call_is_a_span_whose_context_goes_to_the_server(self) -> None:
        with self.tracer.start_as_current_span("request") as parent:
            self.client.put("k", "v")
        span = self.one(f"{SERVICE}/Put")
        assert span.context and span.parent and span.attributes
        self.assertEqual(span.kind, trace.SpanKind.CLIENT)
        self.assertEqual(span.parent.span_id, parent.get_span_context().span_id)
        self.assertEqual(
            dict(span.attributes),
            {
                "rpc.system": "grpc",
                "rpc.service": SERVICE,
                "rpc.method": "Put",
                "rpc.grpc.status_code": 0,
                "server.address": "127.0.0.1",
                "server.port": self.port,
                "timecached.namespace": "ns",
            },
        )
        ((traceparent, request),) = self.service.requests
        self.assertEqual(traceparent, traceparent_of(span))
        self.assertEqual(request.traceparent, "")

    def test_a_traceparent_of_the_callers_own_stays(self) -> None:
        self.client.with_options(traceparent=PUT).put("k", "v")
        self.client.with_options(traceparent=PUT, trace_entries=True).put("k", "v")
        (_, first), (sent, second) = self.service.requests
        self.assertEqual((sent, first.traceparent, second.traceparent), (PUT, "", PUT))

    def test_a_call_that_fails_says_why(self) -> None:
        self.service.failures = [(grpc.StatusCode.PERMISSION_DENIED, "no")]
        with self.assertRaises(timecached.PermissionDeniedError):
            self.client.get("k")
        span = self.one(f"{SERVICE}/Get")
        assert span.attributes
        self.assertEqual(span.status.status_code, trace.StatusCode.ERROR)
        self.assertEqual(span.status.description, "PERMISSION_DENIED: no")
        self.assertEqual(span.attributes["rpc.grpc.status_code"], 7)
        self.assertEqual(span.attributes["error.type"], "PERMISSION_DENIED")

    def test_retries_are_events(self) -> None:
        self.service.failures = [(grpc.StatusCode.UNAVAILABLE, "reset")] * 2
        self.client.get("k")
        span = self.one(f"{SERVICE}/Get")
        self.assertEqual([event.name for event in span.events], ["retry", "retry"])
        attributes = span.events[1].attributes
        assert attributes
        self.assertEqual(attributes["timecached.attempt"], 3)
        self.assertEqual(attributes["error.type"], "UNAVAILABLE")
        self.assertEqual(span.status.status_code, trace.StatusCode.UNSET)

    def test_entries_keep_the_trace_if_they_are_to(self) -> None:
        client = self.make_client(trace_entries=True)
        own = PUT.replace("b7ad", "b7ae")
        client.put("k", "v")
        client.execute(
            [
                Operation.put("k", "v"),
                Operation.get("k"),
                Operation.append("k", "v", traceparent=own),
                Operation.combine("k", add=1),
                Operation.gather("k", "p", "v", expected_parts=1),
            ]
        )
        client.with_options(trace_entries=False).put("k", "v")
        (_, put), (_, batch), (_, without) = self.service.requests
        self.assertEqual(put.traceparent, traceparent_of(self.spans(f"{SERVICE}/Put")[0]))
        of_batch = traceparent_of(self.one(f"{SERVICE}/Execute"))
        self.assertEqual(
            [
                getattr(getattr(each, each.WhichOneof("request")), "traceparent", None)
                for each in batch.operations
            ],
            [of_batch, None, own, of_batch, of_batch],
        )
        self.assertEqual(without.traceparent, "")

    def test_a_trace_that_is_not_sampled_is_not_kept(self) -> None:
        context = trace.SpanContext(1, 2, is_remote=True, trace_flags=trace.TraceFlags(0))
        with trace.use_span(trace.NonRecordingSpan(context)):
            self.client.with_options(trace_entries=True).put("k", "v")
        ((traceparent, request),) = self.service.requests
        self.assertTrue(traceparent.endswith("-00"))
        self.assertEqual(request.traceparent, "")

    def test_requests_of_a_pipeline_are_spans_of_what_opened_it(self) -> None:
        with self.tracer.start_as_current_span("request") as parent:
            pipeline = self.client.with_options(trace_entries=True).pipeline()
        with pipeline:
            pipeline.add(Operation.put("k", "v"))
        span = self.one(f"{SERVICE}/Pipeline")
        assert span.parent and span.attributes
        self.assertEqual(span.parent.span_id, parent.get_span_context().span_id)
        self.assertEqual(span.attributes["timecached.operations"], 1)
        ((_, request),) = self.service.requests
        self.assertEqual(request.operations[0].put.traceparent, traceparent_of(span))

    def test_a_scan_is_one_span(self) -> None:
        list(self.client.scan())
        for _ in self.client.scan():
            break
        for span in self.spans(f"{SERVICE}/Scan"):
            self.assertEqual(span.status.status_code, trace.StatusCode.UNSET)
        self.assertEqual(len(self.spans(f"{SERVICE}/Scan")), 2)

    def check_handler(self, inner: ReadableSpan) -> None:
        span = self.one("process ns")
        assert span.attributes and inner.parent and span.context
        self.assertEqual(self.spans(f"{SERVICE}/SettleExpired"), [])
        self.assertEqual(span.kind, trace.SpanKind.CONSUMER)
        self.assertIsNone(span.parent)
        self.assertEqual(inner.parent.span_id, span.context.span_id)
        (link,) = span.links
        self.assertEqual(f"{link.context.trace_id:032x}", PUT.split("-")[1])
        self.assertEqual(f"{link.context.span_id:016x}", PUT.split("-")[2])
        self.assertEqual(
            {name: span.attributes[name] for name in span.attributes if "key" not in name},
            {
                "messaging.system": "timecached",
                "messaging.operation.name": "process",
                "messaging.operation.type": "process",
                "messaging.destination.name": "ns",
                "messaging.consumer.group.name": "g",
                "messaging.message.body.size": 2,
                "timecached.namespace": "ns",
                "messaging.message.id": "7",
                "timecached.attempt": 2,
                "timecached.cause": "EXPIRED",
                "timecached.settlement": "put_back",
            },
        )

    def test_a_handler_runs_in_a_span_that_links_to_the_put(self) -> None:
        def handle(event: timecached.ExpiredEvent) -> timecached.Settle:
            with self.tracer.start_as_current_span("inner"):
                return timecached.PutBack()

        with self.tracer.start_as_current_span("main"):
            with self.client.worker("g", handle):
                self.service.settled.wait(60)
        self.check_handler(self.one("inner"))

    def test_for_asyncio_the_same(self) -> None:
        async def handle(event: timecached.ExpiredEvent) -> timecached.Settle:
            await asyncio.sleep(0)
            with self.tracer.start_as_current_span("inner"):
                await asyncio.sleep(0)
                return timecached.PutBack()

        async def main() -> None:
            address = f"127.0.0.1:{self.port}"
            async with aio.Client(address, namespace="ns", trace_entries=True) as client:
                with self.tracer.start_as_current_span("main"):
                    await client.put("k", "v")
                    async with client.worker("g", handle):
                        while not self.service.settled.is_set():
                            await asyncio.sleep(0.01)

        asyncio.run(main())
        self.check_handler(self.one("inner"))
        main_span, put = self.one("main"), self.one(f"{SERVICE}/Put")
        assert put.parent and main_span.context
        self.assertEqual(put.parent.span_id, main_span.context.span_id)
        self.assertEqual(self.service.requests[0][1].traceparent, traceparent_of(put))

    def test_a_handler_that_raises_is_an_error(self) -> None:
        def handle(event: timecached.ExpiredEvent) -> None:
            raise RuntimeError("broken")

        with self.client.worker("g", handle, on_error=lambda error: None):
            self.service.settled.wait(60)
        span = self.one("process ns")
        self.assertEqual(span.status.status_code, trace.StatusCode.ERROR)
        self.assertEqual([event.name for event in span.events], ["exception"])

    def test_who_has_no_worker_makes_the_span(self) -> None:
        with self.client.consume("g") as watcher:
            (event,) = watcher.next(60).events
            with self.tracer.start_as_current_span("job") as parent:
                with tracing.consumer_span(event, "g") as span:
                    span.settled(timecached.Nack(reason="later"))
            self.service.settled.set()
        made = self.one("process ns")
        assert made.parent and made.attributes
        self.assertEqual(made.parent.span_id, parent.get_span_context().span_id)
        self.assertEqual(made.attributes["timecached.settlement.reason"], "later")

    def test_a_traceparent_that_is_none_makes_no_link(self) -> None:
        for text in (
            "",
            "t",
            PUT.replace("00-", "01-", 1),
            "00-" + "0" * 32 + "-" + "1" * 16 + "-01",
        ):
            self.assertEqual(tracing._links_to(text), [])

    def test_addresses_are_named_by_host_and_port(self) -> None:
        def server(address: str) -> tuple[Any, Any]:
            attributes = tracing._server(address)
            return attributes["server.address"], attributes.get("server.port")

        self.assertEqual(server("dns:///cache:7171"), ("cache", 7171))
        self.assertEqual(server("[::1]:7171"), ("::1", 7171))
        self.assertEqual(server("ipv4:10.0.0.7:7171"), ("10.0.0.7", 7171))
        self.assertEqual(server("unix:/run/timecached"), ("/run/timecached", None))

    def test_it_need_not_be_installed(self) -> None:
        program = f"""
import sys, time
sys.modules["opentelemetry"] = None
import timecached
from timecached import tracing
with timecached.Client("127.0.0.1:{self.port}", namespace="ns", trace_entries=True) as client:
    client.put("k", "v")
    with client.worker("g", lambda event: None) as worker:
        while not worker.counters.acked:
            time.sleep(0.01)
print("done")
"""
        done = subprocess.run(
            [sys.executable, "-c", program], env=os.environ, text=True, capture_output=True,
            timeout=120, check=False,
        )  # fmt: skip
        self.assertEqual((done.stdout, done.returncode), ("done\n", 0), done.stderr)
        self.assertEqual(self.service.requests[0][0], "")


def traceparent_of(span: ReadableSpan) -> str:
    assert span.context
    context = span.context
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


if __name__ == "__main__":
    unittest.main()
