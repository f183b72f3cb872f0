package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.AppendRequest;
import dev.timecached.v1.PutCondition;
import java.time.Duration;

/**
 * How bytes are appended. Immutable: each method returns options of its own. {@code ifAbsent},
 * {@code ifPresent} and {@code ifVersion} exclude each other: the second throws an {@link
 * IllegalStateException}.
 */
public final class AppendOptions {
  static final AppendOptions DEFAULT = new AppendOptions();

  final AppendRequest request;
  final Boolean trace; // Whether the entry keeps the call's traceparent; null: as the client says.

  /** Always. An entry that is there keeps its deadline. */
  public AppendOptions() {
    this(AppendRequest.getDefaultInstance(), null);
  }

  private AppendOptions(AppendRequest request, Boolean trace) {
    this.request = request;
    this.trace = trace;
  }

  private AppendOptions with(AppendRequest request) {
    return new AppendOptions(request, trace);
  }

  /** The own time to live of an entry that is created, and with touch of one that is there. */
  public AppendOptions ttl(Duration ttl) {
    return with(request.toBuilder().setTtl(Times.toProto(ttl)).build());
  }

  /** Renew the time to live of an entry that is there. */
  public AppendOptions touch() {
    return with(request.toBuilder().setTouch(true).build());
  }

  /** Only if the key is not there; else FAILED_PRECONDITION, KEY_EXISTS. */
  public AppendOptions ifAbsent() {
    return condition(PutCondition.PUT_CONDITION_IF_ABSENT);
  }

  /** Only if the key is there; else FAILED_PRECONDITION, KEY_NOT_FOUND. */
  public AppendOptions ifPresent() {
    return condition(PutCondition.PUT_CONDITION_IF_PRESENT);
  }

  /** Only to this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  public AppendOptions ifVersion(long version) {
    if (request.hasCondition()) {
      throw excluded();
    }
    return with(request.toBuilder().setIfVersion(version).build());
  }

  private AppendOptions condition(PutCondition condition) {
    if (request.hasIfVersion() || (request.hasCondition() && request.getCondition() != condition)) {
      throw excluded();
    }
    return with(request.toBuilder().setCondition(condition).build());
  }

  private static IllegalStateException excluded() {
    return new IllegalStateException("give one of ifAbsent, ifPresent and ifVersion");
  }

  /**
   * Makes the call safe to repeat, so that it is tried again as {@link RetryPolicy} says: 1 to 64 B
   * that no other call has. The namespace must have an idempotency_window.
   */
  public AppendOptions idempotencyId(ByteString id) {
    return with(request.toBuilder().setIdempotencyId(id).build());
  }

  /**
   * What this stores keeps the call's traceparent, that of the client's {@link Tracing} or of
   * {@link TimecacheClient#withTraceparent}, if it has one, and its event has it, too: 27 B more.
   * An entry that is there keeps the one that it has.
   */
  public AppendOptions traceEntry() {
    return traceEntry(true);
  }

  /** The same, or, with false, not, in spite of {@link TimecacheClientBuilder#traceEntries}. */
  public AppendOptions traceEntry(boolean trace) {
    return new AppendOptions(request, trace);
  }

  /**
   * The entry keeps this traceparent in place of the call's: W3C's form of version 00, 55
   * characters.
   */
  public AppendOptions traceparent(String traceparent) {
    return with(request.toBuilder().setTraceparent(traceparent).build());
  }
}
