package dev.timecached.client;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.stub.MetadataUtils;
import java.util.concurrent.atomic.AtomicBoolean;

/** The span of a call or stream, if there is one, and what goes to the server with it. */
final class Traced {
  static final Metadata.Key<String> TRACEPARENT =
      Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);

  private static final int TRACEPARENT_SIZE = 55;

  private final Tracing.CallSpan span; // Null: none.
  private final Metadata headers; // Of the span; null: none.
  private final String traceparent; // Null: none that an entry can keep.
  private final String sent; // What the server gets; null: none.
  private final AtomicBoolean hasEnded = new AtomicBoolean();

  private Traced(Tracing.CallSpan span, Metadata headers, String traceparent) {
    this.span = span;
    sent = traceparent;
    this.headers = headers;
    boolean isKept =
        traceparent != null
            && traceparent.length() == TRACEPARENT_SIZE
            && traceparent.startsWith("00-")
            && isSampled(traceparent);
    this.traceparent = isKept ? traceparent : null;
  }

  /** Nobody finds a trace that is not. */
  private static boolean isSampled(String traceparent) {
    return Character.digit(traceparent.charAt(TRACEPARENT_SIZE - 1), 16) % 2 == 1;
  }

  /** Without a span. {@code own}: the headers that the client adds by itself. */
  static Traced none(Metadata own) {
    return new Traced(null, null, own.get(TRACEPARENT));
  }

  static Traced start(
      Tracing tracing,
      MethodDescriptor<?, ?> method,
      String namespace,
      String address,
      Metadata own) {
    String ownTraceparent = own.get(TRACEPARENT);
    Tracing.CallSpan span =
        tracing.startCall(
            new Tracing.Call(
                method.getServiceName(), method.getBareMethodName(), namespace, address));
    if (ownTraceparent != null) { // The server takes one.
      return new Traced(span, null, ownTraceparent);
    }
    Metadata headers = new Metadata();
    span.inject(
        (name, value) ->
            headers.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value));
    return new Traced(span, headers.keys().isEmpty() ? null : headers, headers.get(TRACEPARENT));
  }

  /** Of a message about one; empty for others. */
  static String namespaceOf(Object request) {
    if (!(request instanceof Message message)) {
      return "";
    }
    for (String name : new String[] {"namespace", "name", "group"}) {
      FieldDescriptor field = message.getDescriptorForType().findFieldByName(name);
      if (field != null) {
        Object value = message.getField(field);
        return value instanceof Message ? namespaceOf(value) : String.valueOf(value);
      }
    }
    return "";
  }

  /** For an entry to keep; null: there is none. */
  String traceparent() {
    return traceparent;
  }

  /** For an operation that is sent with others; null: there is none. */
  String sent() {
    return sent;
  }

  /** The channel with the span's headers. */
  Channel over(Channel channel) {
    return headers == null
        ? channel
        : ClientInterceptors.intercept(
            channel, MetadataUtils.newAttachHeadersInterceptor(headers));
  }

  void retry(TimecacheException why) {
    if (span != null) {
      span.retry(why);
    }
  }

  /** Null: it succeeded. Only the first one counts. */
  void end(Throwable why) {
    if (span != null && hasEnded.compareAndSet(false, true)) {
      span.end(why);
    }
  }
}
