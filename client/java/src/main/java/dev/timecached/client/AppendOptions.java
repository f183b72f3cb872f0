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

  /** Always. An entry that is there keeps its deadline. */
  public AppendOptions() {
    this(AppendRequest.getDefaultInstance());
  }

  private AppendOptions(AppendRequest request) {
    this.request = request;
  }

  /** The own time to live of an entry that is created, and with touch of one that is there. */
  public AppendOptions ttl(Duration ttl) {
    return new AppendOptions(request.toBuilder().setTtl(Times.toProto(ttl)).build());
  }

  /** Renew the time to live of an entry that is there. */
  public AppendOptions touch() {
    return new AppendOptions(request.toBuilder().setTouch(true).build());
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
    return new AppendOptions(request.toBuilder().setIfVersion(version).build());
  }

  private AppendOptions condition(PutCondition condition) {
    if (request.hasIfVersion() || (request.hasCondition() && request.getCondition() != condition)) {
      throw excluded();
    }
    return new AppendOptions(request.toBuilder().setCondition(condition).build());
  }

  private static IllegalStateException excluded() {
    return new IllegalStateException("give one of ifAbsent, ifPresent and ifVersion");
  }

  /**
   * Makes the call safe to repeat, so that it is tried again as {@link RetryPolicy} says: 1 to 64 B
   * that no other call has. The namespace must have an idempotency_window.
   */
  public AppendOptions idempotencyId(ByteString id) {
    return new AppendOptions(request.toBuilder().setIdempotencyId(id).build());
  }
}
