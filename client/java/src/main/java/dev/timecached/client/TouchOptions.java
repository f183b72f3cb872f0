package dev.timecached.client;

import dev.timecached.v1.TouchRequest;
import java.time.Duration;
import java.time.Instant;

/** How an entry is touched. Immutable: each method returns options of its own. */
public final class TouchOptions {
  static final TouchOptions DEFAULT = new TouchOptions();

  final TouchRequest request;

  /** With the time to live that the entry has, whatever its version. */
  public TouchOptions() {
    this(TouchRequest.getDefaultInstance());
  }

  private TouchOptions(TouchRequest request) {
    this.request = request;
  }

  /** The entry's own time to live from now on: 1 ms to the namespace's max_ttl. */
  public TouchOptions ttl(Duration ttl) {
    return new TouchOptions(request.toBuilder().setTtl(Times.toProto(ttl)).build());
  }

  /** No own time to live from now on: the namespace's. Not together with {@link #ttl}. */
  public TouchOptions namespaceTtl() {
    return new TouchOptions(request.toBuilder().setNamespaceTtl(true).build());
  }

  /** As {@link PutOptions#expireAt}; the entry's own time to live stays, unless a ttl is given. */
  public TouchOptions expireAt(Instant deadline) {
    return new TouchOptions(request.toBuilder().setExpireAt(Times.toProto(deadline)).build());
  }

  /** As {@link PutOptions#allowPast}. */
  public TouchOptions allowPast() {
    return new TouchOptions(request.toBuilder().setAllowPast(true).build());
  }

  /** Only this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  public TouchOptions ifVersion(long version) {
    return new TouchOptions(request.toBuilder().setIfVersion(version).build());
  }
}
