package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.GatherRequest;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;

/**
 * What is expected under a key, the same for all of its parts. Immutable: each method returns
 * options of its own.
 */
public final class GatherOptions {
  final GatherRequest request;
  final Boolean trace; // Whether the entry keeps the call's traceparent; null: as the client says.

  private GatherOptions(GatherRequest request, Boolean trace) {
    this.request = request;
    this.trace = trace;
  }

  private GatherOptions with(GatherRequest request) {
    return new GatherOptions(request, trace);
  }

  /** So many parts complete the key, whatever their names: 1 to 1,024. */
  public static GatherOptions expect(int parts) {
    return new GatherOptions(GatherRequest.newBuilder().setExpectedParts(parts).build(), null);
  }

  /** Parts of these names complete the key: 1 to 1,024 distinct ones, in any order. */
  public static GatherOptions expect(String... names) {
    return expect(Arrays.stream(names).map(ByteString::copyFromUtf8).toList());
  }

  /** As {@link #expect(String...)}. */
  public static GatherOptions expect(Collection<ByteString> names) {
    return new GatherOptions(GatherRequest.newBuilder().addAllExpectedNames(names).build(), null);
  }

  /** What the key's parts expect: for a part after the first one. */
  public static GatherOptions asBefore() {
    return new GatherOptions(GatherRequest.getDefaultInstance(), null);
  }

  /** A part that has been collected with another value stays, and this one is a duplicate. */
  public GatherOptions keepFirst() {
    return with(request.toBuilder().setKeepFirst(true).build());
  }

  /**
   * How long a key that this part completes takes no parts again, 1 ms to the namespace's max_ttl:
   * until then a gather on it is ALREADY_EXISTS (GATHER_COMPLETE).
   */
  public GatherOptions remember(Duration remember) {
    return with(request.toBuilder().setRemember(Times.toProto(remember)).build());
  }

  /** Renew the time to live of an entry that is there. */
  public GatherOptions touch() {
    return with(request.toBuilder().setTouch(true).build());
  }

  /** The own time to live of an entry that is created, and with touch of one that is there. */
  public GatherOptions ttl(Duration ttl) {
    return with(request.toBuilder().setTtl(Times.toProto(ttl)).build());
  }

  /**
   * Makes the call safe to repeat, so that it is tried again as {@link RetryPolicy} says: 1 to 64 B
   * that no other call has. The namespace must have an idempotency_window.
   */
  public GatherOptions idempotencyId(ByteString id) {
    return with(request.toBuilder().setIdempotencyId(id).build());
  }

  /**
   * What this stores keeps the call's traceparent, that of the client's {@link Tracing} or of
   * {@link TimecacheClient#withTraceparent}, if it has one, and its event has it, too: 27 B more.
   * An entry that is there keeps the one that it has.
   */
  public GatherOptions traceEntry() {
    return traceEntry(true);
  }

  /** The same, or, with false, not, in spite of {@link TimecacheClientBuilder#traceEntries}. */
  public GatherOptions traceEntry(boolean trace) {
    return new GatherOptions(request, trace);
  }

  /**
   * The entry keeps this traceparent in place of the call's: W3C's form of version 00, 55
   * characters.
   */
  public GatherOptions traceparent(String traceparent) {
    return with(request.toBuilder().setTraceparent(traceparent).build());
  }
}
