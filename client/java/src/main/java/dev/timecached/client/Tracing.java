package dev.timecached.client;

import java.util.function.BiConsumer;

/**
 * Makes spans of what a client does: see {@link TimecacheClientBuilder#tracing}. For OpenTelemetry
 * it is {@link dev.timecached.client.opentelemetry.OpenTelemetryTracing}. Thread-safe.
 */
public interface Tracing {
  /**
   * What a span is about.
   *
   * @param service gRPC's: "timecache.v1.TimeCacheService"
   * @param method "Put"
   * @param namespace empty where the call is not about one
   * @param address where the call goes first: host:port or unix:/path
   */
  record Call(String service, String method, String namespace, String address) {}

  /**
   * Begins the span of a call with all of its attempts, of a scan, or of a pipeline from its begin
   * to its end, on the thread that asks for it.
   */
  CallSpan startCall(Call call);

  /** Begins the span of a worker's handler, on its thread. */
  HandlerSpan startHandler(String group, ExpiredEvent event);

  /** A span of a call. Its methods are called by any thread, one at a time. */
  interface CallSpan {
    /** Gives what goes to the server: "traceparent". Called once, first. */
    void inject(BiConsumer<String, String> headers);

    /** Called before each further attempt, with why the last one failed. */
    void retry(TimecacheException why);

    /** Called once, last. Null: the call succeeded. */
    void end(Throwable why);
  }

  /** A span of a handler. */
  interface HandlerSpan {
    /**
     * Called by the same thread, once.
     *
     * @param settlement how the event is settled: ack, nack, put_back or terminate
     * @param why what the handler has thrown; null: nothing
     */
    void end(String settlement, Throwable why);
  }
}
