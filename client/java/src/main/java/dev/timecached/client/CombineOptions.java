package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.CombineRequest;
import java.time.Duration;

/** How a number is added or xored. Immutable: each method returns options of its own. */
public final class CombineOptions {
  static final CombineOptions DEFAULT = new CombineOptions();

  final CombineRequest request;

  /** A key that is not there counts as 0. An entry that is there keeps its deadline. */
  public CombineOptions() {
    this(CombineRequest.getDefaultInstance());
  }

  private CombineOptions(CombineRequest request) {
    this.request = request;
  }

  /** What a key that is not there counts as. */
  public CombineOptions initial(long initial) {
    return new CombineOptions(request.toBuilder().setInitial(initial).build());
  }

  /** Remove the entry if the result is 0. Nothing is created then, either. */
  public CombineOptions removeIfZero() {
    return new CombineOptions(request.toBuilder().setRemoveIfZero(true).build());
  }

  /** Renew the time to live of an entry that is there. */
  public CombineOptions touch() {
    return new CombineOptions(request.toBuilder().setTouch(true).build());
  }

  /** The own time to live of an entry that is created, and with touch of one that is there. */
  public CombineOptions ttl(Duration ttl) {
    return new CombineOptions(request.toBuilder().setTtl(Times.toProto(ttl)).build());
  }

  /** Only this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  public CombineOptions ifVersion(long version) {
    return new CombineOptions(request.toBuilder().setIfVersion(version).build());
  }

  /**
   * Makes the call safe to repeat, so that it is tried again as {@link RetryPolicy} says: 1 to 64 B
   * that no other call has. The namespace must have an idempotency_window.
   */
  public CombineOptions idempotencyId(ByteString id) {
    return new CombineOptions(request.toBuilder().setIdempotencyId(id).build());
  }
}
