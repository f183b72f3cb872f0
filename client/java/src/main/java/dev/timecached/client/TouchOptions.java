package dev.timecached.client;

import dev.timecached.v1.TouchRequest;
import java.time.Duration;

/** How an entry is touched. Immutable: each method returns options of its own. */
public final class TouchOptions {
  static final TouchOptions DEFAULT = new TouchOptions();

  final TouchRequest request;

  /** With the time to live that the entry was put with, whatever its version. */
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

  /** Only this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  public TouchOptions ifVersion(long version) {
    return new TouchOptions(request.toBuilder().setIfVersion(version).build());
  }
}
