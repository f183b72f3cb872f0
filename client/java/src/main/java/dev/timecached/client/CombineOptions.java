package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.CombineRequest;
import java.time.Duration;

/** How a number is added or xored. Immutable: each method returns options of its own. */
public final class CombineOptions {
  static final CombineOptions DEFAULT = new CombineOptions();

  final CombineRequest request;
  final Boolean trace; // Whether the entry keeps the call's traceparent; null: as the client says.

  /** A key that is not there counts as 0. An entry that is there keeps its deadline. */
  public CombineOptions() {
    this(CombineRequest.getDefaultInstance(), null);
  }

  private CombineOptions(CombineRequest request, Boolean trace) {
    this.request = request;
    this.trace = trace;
  }

  private CombineOptions with(CombineRequest request) {
    return new CombineOptions(request, trace);
  }

  /** What a key that is not there counts as. */
  public CombineOptions initial(long initial) {
    return with(request.toBuilder().setInitial(initial).build());
  }

  /** Remove the entry if the result is 0. Nothing is created then, either. */
  public CombineOptions removeIfZero() {
    return with(request.toBuilder().setRemoveIfZero(true).build());
  }

  /** Renew the time to live of an entry that is there. */
  public CombineOptions touch() {
    return with(request.toBuilder().setTouch(true).build());
  }

  /** The own time to live of an entry that is created, and with touch of one that is there. */
  public CombineOptions ttl(Duration ttl) {
    return with(request.toBuilder().setTtl(Times.toProto(ttl)).build());
  }

  /** Only this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  public CombineOptions ifVersion(long version) {
    return with(request.toBuilder().setIfVersion(version).build());
  }

  /**
   * Makes the call safe to repeat, so that it is tried again as {@link RetryPolicy} says: 1 to 64 B
   * that no other call has. The namespace must have an idempotency_window.
   */
  public CombineOptions idempotencyId(ByteString id) {
    return with(request.toBuilder().setIdempotencyId(id).build());
  }

  /**
   * What this stores keeps the call's traceparent, that of the client's {@link Tracing} or of
   * {@link TimecacheClient#withTraceparent}, if it has one, and its event has it, too: 27 B more.
   * An entry that is there keeps the one that it has.
   */
  public CombineOptions traceEntry() {
    return traceEntry(true);
  }

  /** The same, or, with false, not, in spite of {@link TimecacheClientBuilder#traceEntries}. */
  public CombineOptions traceEntry(boolean trace) {
    return new CombineOptions(request, trace);
  }

  /**
   * The entry keeps this traceparent in place of the call's: W3C's form of version 00, 55
   * characters.
   */
  public CombineOptions traceparent(String traceparent) {
    return with(request.toBuilder().setTraceparent(traceparent).build());
  }
}
