package dev.timecached.client;

import dev.timecached.v1.FetchExpiredRequest;
import dev.timecached.v1.WatchStart;
import java.time.Duration;

/** Which events of a group to fetch. Immutable: each method returns options of its own. */
public final class FetchOptions {
  final FetchExpiredRequest request;

  /** Up to 100 events that are ready, with their values. */
  public FetchOptions() {
    this(FetchExpiredRequest.newBuilder().setMaxMessageBytes(Rpc.MAX_MESSAGE_BYTES).build());
  }

  private FetchOptions(FetchExpiredRequest request) {
    this.request = request;
  }

  /** A group that is made by this begins with the oldest event that is retained. */
  public FetchOptions fromEarliest() {
    return new FetchOptions(
        request.toBuilder().setStart(WatchStart.WATCH_START_EARLIEST).build());
  }

  /** Most events: 1 to 8,192. */
  public FetchOptions maxEvents(int events) {
    return new FetchOptions(request.toBuilder().setMaxEvents(events).build());
  }

  /**
   * How long to wait, on the server's clock, for the first event if there is none: 0 to 1 min. The
   * call has so much longer than the client's timeout.
   */
  public FetchOptions waiting(Duration wait) {
    return new FetchOptions(request.toBuilder().setWait(Times.toProto(wait)).build());
  }

  /** Leave the values out. */
  public FetchOptions keysOnly() {
    return new FetchOptions(request.toBuilder().setKeysOnly(true).build());
  }

  /**
   * The largest message that the channel takes, at least 4 MiB: as {@link
   * WatchOptions#maxMessageBytes}.
   */
  public FetchOptions maxMessageBytes(int bytes) {
    return new FetchOptions(request.toBuilder().setMaxMessageBytes(bytes).build());
  }
}
