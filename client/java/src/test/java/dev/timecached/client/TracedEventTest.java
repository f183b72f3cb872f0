package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.timecached.client.opentelemetry.OpenTelemetryTracing;
import dev.timecached.v1.GroupOptions;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@NeedsServer
@Timeout(120)
final class TracedEventTest {
  @Test
  void theServerKeepsTheTraceFromThePutToTheHandler() throws Exception {
    InMemorySpanExporter spans = InMemorySpanExporter.create();
    SdkTracerProvider provider =
        SdkTracerProvider.builder().addSpanProcessor(SimpleSpanProcessor.create(spans)).build();
    try (OpenTelemetrySdk telemetry =
            OpenTelemetrySdk.builder().setTracerProvider(provider).build();
        TestServer server = TestServer.onVirtualClock();
        TimecacheClient client =
            TimecacheClient.builder(server.address())
                .tracing(OpenTelemetryTracing.of(telemetry))
                .traceEntries()
                .build()) {
      client.createGroup("g", GroupOptions.getDefaultInstance(), Positions.now());
      client.put("k", "v", new PutOptions().ttl(Duration.ofSeconds(1)));
      SpanData put = spans.getFinishedSpanItems().get(1);
      client.virtualClock().advance(Duration.ofMinutes(1));
      CountDownLatch handled = new CountDownLatch(1);
      try (GroupWorker worker =
          client.worker(
              new GroupWorkerOptions("g"),
              event -> {
                handled.countDown();
                return Settle.ack();
              })) {
        handled.await();
      }
      SpanData handler =
          spans.getFinishedSpanItems().stream()
              .filter(span -> span.getKind() == SpanKind.CONSUMER)
              .findFirst()
              .orElseThrow();
      assertEquals(put.getTraceId(), handler.getLinks().get(0).getSpanContext().getTraceId());
      assertEquals(put.getSpanId(), handler.getLinks().get(0).getSpanContext().getSpanId());
    }
  }
}
