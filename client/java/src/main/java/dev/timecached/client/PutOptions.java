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

  /** Always, with the namespace's time to live. */
  public PutOptions() {
    this(PutRequest.getDefaultInstance());
  }

  private PutOptions(PutRequest request) {
    this.request = request;
  }

  /** The entry's own time to live: 1 ms to the namespace's max_ttl. */
  public PutOptions ttl(Duration ttl) {
    return new PutOptions(request.toBuilder().setTtl(Times.toProto(ttl)).build());
  }

  /**
   * The deadline of this life, in place of now and the time to live, on the server's clock: after
   * now, and no later than max_ttl from now. With a ttl, that is what a later renewal gives.
   */
  public PutOptions expireAt(Instant deadline) {
    return new PutOptions(request.toBuilder().setExpireAt(Times.toProto(deadline)).build());
  }

  /**
   * An {@link #expireAt} that is not after now is no error: the entry is stored, expires at once,
   * and its event is delivered.
   */
  public PutOptions allowPast() {
    return new PutOptions(request.toBuilder().setAllowPast(true).build());
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
    return new PutOptions(request.toBuilder().setIfVersion(version).build());
  }

  /** Answer with the entry that was replaced. */
  public PutOptions returnPrevious() {
    return new PutOptions(request.toBuilder().setReturnPrevious(true).build());
  }

  /** An entry that is there keeps its deadline and its time to live. Not with ttl or expireAt. */
  public PutOptions keepDeadline() {
    return new PutOptions(request.toBuilder().setKeepDeadline(true).build());
  }

  private PutOptions condition(PutCondition condition) {
    if (request.hasIfVersion() || (request.hasCondition() && request.getCondition() != condition)) {
      throw excluded();
    }
    return new PutOptions(request.toBuilder().setCondition(condition).build());
  }

  private static IllegalStateException excluded() {
    return new IllegalStateException("give one of ifAbsent, ifPresent and ifVersion");
  }

  /**
   * Makes the call safe to repeat, so that it is tried again as {@link RetryPolicy} says: 1 to 64 B
   * that no other call has. The namespace must have an idempotency_window.
   */
  public PutOptions idempotencyId(ByteString id) {
    return new PutOptions(request.toBuilder().setIdempotencyId(id).build());
  }
}
