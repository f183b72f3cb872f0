package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.PutCondition;
import dev.timecached.v1.PutRequest;
import java.time.Duration;
import java.time.Instant;

/**
 * How an entry is put. Immutable: each method returns options of its own. {@code ifAbsent},
 * {@code ifPresent} and {@code ifVersion} exclude each other: the second throws an {@link
 * IllegalStateException}.
 */
public final class PutOptions {
  static final PutOptions DEFAULT = new PutOptions();

  final PutRequest request;
  final Boolean trace; // Whether the entry keeps the call's traceparent; null: as the client says.

  /** Always, with the namespace's time to live. */
  public PutOptions() {
    this(PutRequest.getDefaultInstance(), null);
  }

  private PutOptions(PutRequest request, Boolean trace) {
    this.request = request;
    this.trace = trace;
  }

  private PutOptions with(PutRequest request) {
    return new PutOptions(request, trace);
  }

  /** The entry's own time to live: 1 ms to the namespace's max_ttl. */
  public PutOptions ttl(Duration ttl) {
    return with(request.toBuilder().setTtl(Times.toProto(ttl)).build());
  }

  /**
   * The deadline of this life, in place of now and the time to live, on the server's clock: after
   * now, and no later than max_ttl from now. With a ttl, that is what a later renewal gives.
   */
  public PutOptions expireAt(Instant deadline) {
    return with(request.toBuilder().setExpireAt(Times.toProto(deadline)).build());
  }

  /**
   * An {@link #expireAt} that is not after now is no error: the entry is stored, expires at once,
   * and its event is delivered.
   */
  public PutOptions allowPast() {
    return with(request.toBuilder().setAllowPast(true).build());
  }

  /** Only if the key is not there; else FAILED_PRECONDITION, KEY_EXISTS. */
  public PutOptions ifAbsent() {
    return condition(PutCondition.PUT_CONDITION_IF_ABSENT);
  }

  /** Only if the key is there; else FAILED_PRECONDITION, KEY_NOT_FOUND. */
  public PutOptions ifPresent() {
    return condition(PutCondition.PUT_CONDITION_IF_PRESENT);
  }

  /** Only over this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  public PutOptions ifVersion(long version) {
    if (request.hasCondition()) {
      throw excluded();
    }
    return with(request.toBuilder().setIfVersion(version).build());
  }

  /** Answer with the entry that was replaced. */
  public PutOptions returnPrevious() {
    return with(request.toBuilder().setReturnPrevious(true).build());
  }

  /** An entry that is there keeps its deadline and its time to live. Not with ttl or expireAt. */
  public PutOptions keepDeadline() {
    return with(request.toBuilder().setKeepDeadline(true).build());
  }

  private PutOptions condition(PutCondition condition) {
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
  public PutOptions idempotencyId(ByteString id) {
    return with(request.toBuilder().setIdempotencyId(id).build());
  }

  /**
   * What this stores keeps the call's traceparent, that of the client's {@link Tracing} or of
   * {@link TimecacheClient#withTraceparent}, if it has one, and its event has it, too: 27 B more.
   */
  public PutOptions traceEntry() {
    return traceEntry(true);
  }

  /** The same, or, with false, not, in spite of {@link TimecacheClientBuilder#traceEntries}. */
  public PutOptions traceEntry(boolean trace) {
    return new PutOptions(request, trace);
  }

  /**
   * The entry keeps this traceparent in place of the call's: W3C's form of version 00, 55
   * characters.
   */
  public PutOptions traceparent(String traceparent) {
    return with(request.toBuilder().setTraceparent(traceparent).build());
  }
}
