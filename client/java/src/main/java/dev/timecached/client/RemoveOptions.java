package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.RemoveRequest;

/** How an entry is removed. Immutable: each method returns options of its own. */
public final class RemoveOptions {
  static final RemoveOptions DEFAULT = new RemoveOptions();

  final RemoveRequest request;

  /** Whatever its version. */
  public RemoveOptions() {
    this(RemoveRequest.getDefaultInstance());
  }

  private RemoveOptions(RemoveRequest request) {
    this.request = request;
  }

  /** Only this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  public RemoveOptions ifVersion(long version) {
    return new RemoveOptions(request.toBuilder().setIfVersion(version).build());
  }

  /** Answer with the entry that was removed. */
  public RemoveOptions returnPrevious() {
    return new RemoveOptions(request.toBuilder().setReturnPrevious(true).build());
  }

  /**
   * Makes the call safe to repeat, so that it is tried again as {@link RetryPolicy} says: 1 to 64 B
   * that no other call has. The namespace must have an idempotency_window.
   */
  public RemoveOptions idempotencyId(ByteString id) {
    return new RemoveOptions(request.toBuilder().setIdempotencyId(id).build());
  }
}
