package dev.timecached.client.opentelemetry;

import dev.timecached.client.ExpiredEvent;
import dev.timecached.client.TimecacheException;
import dev.timecached.client.Tracing;
import io.grpc.Status;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.AttributesBuilder;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;

/**
 * Traces a client by OpenTelemetry. It needs {@code io.opentelemetry:opentelemetry-api}, which the
 * client does not bring.
 *
 * <pre>{@code
 * TimecacheClient client =
 *     TimecacheClient.builder("127.0.0.1:7171")
 *         .tracing(OpenTelemetryTracing.of(openTelemetry))
 *         .traceEntries()
 *         .build();
 * }</pre>
 *
 * <p>A call has a span of the kind CLIENT, with the attributes of OpenTelemetry's conventions for
 * RPC (rpc.system, rpc.service, rpc.method, rpc.grpc.status_code, server.address, server.port) and
 * timecached.namespace, below the span that is current where it is asked for; each further attempt
 * is an event "retry" in it. So has a scan, and a pipeline from its begin to its end. A worker's
 * handler has a span of the kind CONSUMER, which is current while it runs, with the attributes of
 * the conventions for messaging, and a link to the span of the call that stored the entry, where the
 * entry has kept its traceparent. Watches, and what a worker calls by itself, have none.
 *
 * <p>Where no SDK is registered, nothing is sent, and a call costs two small objects more.
 * Thread-safe.
 */
public final class OpenTelemetryTracing implements Tracing {
  /** Kinds of calls whose attributes are kept: programs may have any number of namespaces. */
  private static final int MAX_KINDS = 4096;

  private static final AttributeKey<String> NAMESPACE =
      AttributeKey.stringKey("timecached.namespace");
  private static final AttributeKey<String> ERROR_TYPE = AttributeKey.stringKey("error.type");
  private static final AttributeKey<Long> STATUS_CODE =
      AttributeKey.longKey("rpc.grpc.status_code");

  private static final TextMapGetter<Map<String, String>> GETTER =
      new TextMapGetter<>() {
        @Override
        public Iterable<String> keys(Map<String, String> carrier) {
          return carrier.keySet();
        }

        @Override
        public String get(Map<String, String> carrier, String key) {
          return carrier.get(key);
        }
      };

  private static final CallSpan NO_SPAN =
      new CallSpan() {
        @Override
        public void inject(BiConsumer<String, String> headers) {}

        @Override
        public void retry(TimecacheException why) {}

        @Override
        public void end(Throwable why) {}
      };

  private final Tracer tracer;
  private final Map<Call, Attributes> attributes = new ConcurrentHashMap<>();

  private OpenTelemetryTracing(Tracer tracer) {
    this.tracer = tracer;
  }

  /** With the tracer provider of this one: {@code GlobalOpenTelemetry.get()}, say. */
  public static OpenTelemetryTracing of(OpenTelemetry openTelemetry) {
    return new OpenTelemetryTracing(openTelemetry.getTracer("dev.timecached.client"));
  }

  @Override
  public CallSpan startCall(Call call) {
    Context parent = Context.current();
    if (!tracer.isEnabled() && !Span.fromContext(parent).getSpanContext().isValid()) {
      return NO_SPAN;
    }
    Span span =
        tracer
            .spanBuilder(call.service() + "/" + call.method())
            .setParent(parent)
            .setSpanKind(SpanKind.CLIENT)
            .setAllAttributes(attributesOf(call))
            .startSpan();
    return new OfCall(span, parent.with(span));
  }

  private Attributes attributesOf(Call call) {
    Attributes known = attributes.get(call);
    if (known != null) {
      return known;
    }
    Attributes made = makeAttributes(call);
    if (attributes.size() < MAX_KINDS) {
      attributes.put(call, made);
    }
    return made;
  }

  private static Attributes makeAttributes(Call call) {
    AttributesBuilder builder =
        Attributes.builder()
            .put("rpc.system", "grpc")
            .put("rpc.service", call.service())
            .put("rpc.method", call.method());
    if (!call.namespace().isEmpty()) {
      builder.put(NAMESPACE, call.namespace());
    }
    if (call.address().startsWith("unix:")) {
      return builder.put("server.address", call.address().substring("unix:".length())).build();
    }
    int colon = call.address().lastIndexOf(':');
    boolean hasPort = call.address().substring(colon + 1).matches("[0-9]{1,5}");
    String host = colon < 0 || !hasPort ? call.address() : call.address().substring(0, colon);
    builder.put("server.address", host.replaceAll("^\\[|]$", ""));
    if (hasPort) {
      builder.put("server.port", Long.parseLong(call.address().substring(colon + 1)));
    }
    return builder.build();
  }

  private record OfCall(Span span, Context context) implements CallSpan {
    @Override
    public void inject(BiConsumer<String, String> headers) {
      W3CTraceContextPropagator.getInstance().inject(context, headers, BiConsumer::accept);
    }

    @Override
    public void retry(TimecacheException why) {
      span.addEvent("retry", Attributes.of(ERROR_TYPE, errorType(why)));
    }

    @Override
    public void end(Throwable why) {
      Throwable cause = why instanceof CompletionException ? why.getCause() : why;
      if (span.isRecording()) {
        Status.Code code =
            cause == null
                ? Status.Code.OK
                : cause instanceof TimecacheException error
                    ? error.code()
                    : Status.Code.UNKNOWN;
        span.setAttribute(STATUS_CODE, (long) code.value());
        fail(span, cause);
      }
      span.end();
    }
  }

  private static void fail(Span span, Throwable why) {
    if (why != null) {
      span.setAttribute(ERROR_TYPE, errorType(why));
      span.setStatus(StatusCode.ERROR, Objects.requireNonNullElse(why.getMessage(), ""));
    }
  }

  /** The server's reason, or else the gRPC code, or the class. */
  private static String errorType(Throwable why) {
    return why instanceof TimecacheException error
        ? error.reason().orElse(error.code().name())
        : why.getClass().getName();
  }

  /**
   * Begins the span of what handles an event, and makes it current on this thread until its end: a
   * worker calls it for its handler; who reads the events of a group may do so, too.
   */
  @Override
  public HandlerSpan startHandler(String group, ExpiredEvent event) {
    SpanBuilder builder =
        tracer
            .spanBuilder("process " + event.namespace())
            .setSpanKind(SpanKind.CONSUMER)
            .setAttribute("messaging.system", "timecached")
            .setAttribute("messaging.operation.type", "process")
            .setAttribute("messaging.operation.name", "process")
            .setAttribute("messaging.destination.name", event.namespace())
            .setAttribute("messaging.consumer.group.name", group)
            .setAttribute("messaging.message.id", Long.toString(event.eventId()))
            .setAttribute(NAMESPACE, event.namespace())
            .setAttribute("timecached.attempt", event.attempt());
    SpanContext put = spanContextOf(event);
    if (put.isValid()) {
      builder.addLink(put);
    }
    Span span = builder.startSpan();
    Scope scope = span.makeCurrent();
    return (settlement, why) -> {
      scope.close();
      span.setAttribute("timecached.settlement", settlement);
      fail(span, why);
      span.end();
    };
  }

  /**
   * The span that stored the entry which died, for a link to it; not valid where the entry has kept
   * none.
   */
  public static SpanContext spanContextOf(ExpiredEvent event) {
    if (event.traceparent().isEmpty()) {
      return SpanContext.getInvalid();
    }
    Context found =
        W3CTraceContextPropagator.getInstance()
            .extract(Context.root(), Map.of("traceparent", event.traceparent()), GETTER);
    return Span.fromContext(found).getSpanContext();
  }
}
