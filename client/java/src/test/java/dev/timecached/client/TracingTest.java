package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import dev.timecached.client.opentelemetry.OpenTelemetryTracing;
import dev.timecached.v1.ConsumeExpiredResponse;
import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.PutRequest;
import io.grpc.Metadata;
import io.grpc.Status;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
final class TracingTest {
  private static final RetryPolicy QUICK =
      new RetryPolicy(3, Duration.ofMillis(1), Duration.ofMillis(1));
  private static final Metadata.Key<String> TRACEPARENT =
      Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);
  private static final String OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

  private final FakeServer server = new FakeServer();
  private final InMemorySpanExporter spans = InMemorySpanExporter.create();
  private final OpenTelemetrySdk telemetry =
      OpenTelemetrySdk.builder()
          .setTracerProvider(
              SdkTracerProvider.builder()
                  .addSpanProcessor(SimpleSpanProcessor.create(spans))
                  .build())
          .build();
  private TimecacheClient client;

  private TimecacheClient client(TimecacheClientBuilder builder) {
    client =
        builder
            .namespace("orders")
            .retry(QUICK)
            .tracing(OpenTelemetryTracing.of(telemetry))
            .build();
    client.get("warm");
    spans.reset();
    server.headers.clear();
    return client;
  }

  @AfterEach
  void stop() {
    client.close();
    server.close();
    telemetry.close();
  }

  private static String traceparent(SpanContext span) {
    return "00-" + span.getTraceId() + "-" + span.getSpanId() + "-" + span.getTraceFlags().asHex();
  }

  private SpanData span(String name) {
    List<SpanData> found =
        spans.getFinishedSpanItems().stream().filter(one -> one.getName().equals(name)).toList();
    assertEquals(1, found.size(), () -> name + ": " + spans.getFinishedSpanItems());
    return found.get(0);
  }

  private static void has(SpanData span, Map<String, String> attributes) {
    Map<AttributeKey<?>, Object> all = span.getAttributes().asMap();
    attributes.forEach(
        (name, value) ->
            assertTrue(
                all.entrySet().stream()
                    .anyMatch(
                        one ->
                            one.getKey().getKey().equals(name)
                                && one.getValue().toString().equals(value)),
                () -> name + ": " + all));
  }

  @Test
  void aCallHasASpan() throws Exception {
    client(server.builder());
    server.failures.add(Status.UNAVAILABLE);
    Span caller = telemetry.getTracer("test").spanBuilder("caller").startSpan();
    try (var scope = caller.makeCurrent()) {
      client.get("k");
    }
    SpanData span = span("timecache.v1.TimeCacheService/Get");
    assertEquals(caller.getSpanContext().getSpanId(), span.getParentSpanId());
    assertEquals(SpanKind.CLIENT, span.getKind());
    assertEquals(StatusCode.UNSET, span.getStatus().getStatusCode());
    has(
        span,
        Map.of(
            "rpc.system", "grpc",
            "rpc.service", "timecache.v1.TimeCacheService",
            "rpc.method", "Get",
            "rpc.grpc.status_code", "0",
            "server.address", "127.0.0.1",
            "timecached.namespace", "orders"));
    assertTrue(span.getAttributes().get(AttributeKey.longKey("server.port")) > 0);
    assertEquals("retry", span.getEvents().get(0).getName());
    for (int attempt = 0; attempt < 2; ++attempt) {
      assertEquals(
          traceparent(span.getSpanContext()), FakeServer.take(server.headers).get(TRACEPARENT));
    }
  }

  @Test
  void anAsynchronousCallHasASpan() {
    client(server.builder());
    server.failures.add(Status.UNAVAILABLE);
    client.async().get("k").join();
    assertEquals(1, span("timecache.v1.TimeCacheService/Get").getEvents().size());
    server.failures.add(Status.UNAVAILABLE);
    CompletableFuture<PutResult> put = client.async().put("k", "v");
    assertThrows(CompletionException.class, put::join);
    SpanData span = span("timecache.v1.TimeCacheService/Put");
    assertEquals(StatusCode.ERROR, span.getStatus().getStatusCode());
    has(span, Map.of("rpc.grpc.status_code", "14", "error.type", "UNAVAILABLE"));
  }

  @Test
  void entriesKeepTheTraceOnRequest() throws Exception {
    client(server.builder());
    client.put("k", "v");
    assertEquals("", FakeServer.take(server.puts).getTraceparent());
    spans.reset();
    client.put("k", "v", new PutOptions().traceEntry().ttl(Duration.ofSeconds(1)));
    PutRequest kept = FakeServer.take(server.puts);
    SpanContext put = span("timecache.v1.TimeCacheService/Put").getSpanContext();
    assertEquals(traceparent(put), kept.getTraceparent());
    client.put("k", "v", new PutOptions().traceEntry().traceparent(OTHER));
    assertEquals(OTHER, FakeServer.take(server.puts).getTraceparent());
    // What the client's metadata says is what the server logs.
    client.withTraceparent(OTHER).put("k", "v", new PutOptions().traceEntry());
    assertEquals(OTHER, FakeServer.take(server.puts).getTraceparent());
    String unsampled = OTHER.replaceAll("1$", "0");
    client.withTraceparent(unsampled).put("k", "v", new PutOptions().traceEntry());
    assertEquals("", FakeServer.take(server.puts).getTraceparent());
  }

  @Test
  void theClientsEntriesKeepTheirTrace() throws Exception {
    client(server.builder().traceEntries());
    client.put("k", "v", new PutOptions().traceEntry(false));
    assertEquals("", FakeServer.take(server.puts).getTraceparent());
    server.answersBatches = true;
    Operation<PutResult> operation = Operation.put("a", "value");
    Batch batch = new Batch();
    batch.add(operation);
    batch.add(Operation.get("b"));
    batch.add(Operation.put("c", "v", new PutOptions().traceEntry(false)));
    client.execute(batch);
    ExecuteRequest request = FakeServer.take(server.batches);
    assertEquals(
        traceparent(span("timecache.v1.TimeCacheService/Execute").getSpanContext()),
        request.getOperations(0).getPut().getTraceparent());
    assertEquals("value", request.getOperations(0).getPut().getValue().toStringUtf8());
    assertTrue(request.getOperations(1).hasGet());
    assertEquals("", request.getOperations(2).getPut().getTraceparent());
    try (Pipeline pipeline = client.pipeline()) {
      pipeline.add(operation);
      FakeServer.PipelineRequest piped = FakeServer.take(server.pipelined);
      piped.answer();
      pipeline.await();
      String kept = piped.request().getOperations(0).getPut().getTraceparent();
      piped.observer().onCompleted();
      pipeline.cancel();
      assertFalse(kept.isEmpty());
    }
    assertEquals(1, spans("timecache.v1.TimeCacheService/Pipeline"));
  }

  private long spans(String name) {
    return spans.getFinishedSpanItems().stream().filter(one -> one.getName().equals(name)).count();
  }

  @Test
  void aHandlersSpanLinksToThePut() throws Exception {
    client(server.builder());
    GroupWorkerOptions options = new GroupWorkerOptions("cancel").onError(why -> {});
    try (GroupWorker worker =
        client.worker(
            options,
            event -> {
              client.get(event.key());
              throw new IllegalStateException("no card");
            })) {
      FakeServer.take(server.members)
          .onNext(
              ConsumeExpiredResponse.newBuilder()
                  .setNamespace("orders")
                  .addEvents(
                      dev.timecached.v1.ExpiredEvent.newBuilder()
                          .setNamespace("orders")
                          .setKey(ByteString.copyFromUtf8("k"))
                          .setEventId(42)
                          .setAttempt(2)
                          .setTraceparent(OTHER))
                  .build());
      FakeServer.take(server.settles).answer(null);
    }
    assertEquals(2, spans.getFinishedSpanItems().size(), "what a worker calls by itself has none");
    SpanData handler = span("process orders");
    assertEquals(
        handler.getSpanId(), span("timecache.v1.TimeCacheService/Get").getParentSpanId());
    assertEquals(SpanKind.CONSUMER, handler.getKind());
    assertEquals(StatusCode.ERROR, handler.getStatus().getStatusCode());
    assertEquals(OTHER, traceparent(handler.getLinks().get(0).getSpanContext()));
    has(
        handler,
        Map.of(
            "messaging.system", "timecached",
            "messaging.operation.type", "process",
            "messaging.destination.name", "orders",
            "messaging.consumer.group.name", "cancel",
            "messaging.message.id", "42",
            "timecached.attempt", "2",
            "timecached.settlement", "nack",
            "error.type", "java.lang.IllegalStateException"));
  }

  @Test
  void withoutAnSdkNothingIsSent() throws Exception {
    client =
        server.builder().tracing(OpenTelemetryTracing.of(OpenTelemetry.noop())).build();
    client.get("k");
    assertEquals(null, FakeServer.take(server.headers).get(TRACEPARENT));
  }
}
