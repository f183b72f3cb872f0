package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.GroupPosition;
import dev.timecached.v1.WatchStart;
import java.time.Instant;

/** Positions in the log of a namespace: where a consumer group starts, or is moved to. */
public final class Positions {
  private Positions() {}

  /** What dies from now on. */
  public static GroupPosition now() {
    return GroupPosition.newBuilder().setStart(WatchStart.WATCH_START_NOW).build();
  }

  /** The oldest event that is retained. */
  public static GroupPosition earliest() {
    return GroupPosition.newBuilder().setStart(WatchStart.WATCH_START_EARLIEST).build();
  }

  /** The first retained event that died after this moment: 1970 or later. */
  public static GroupPosition after(Instant moment) {
    return GroupPosition.newBuilder().setTime(Times.toProto(moment)).build();
  }

  /** The event after a batch of a {@link Watcher}: its {@link WatchBatch#resumeToken}. */
  public static GroupPosition after(ByteString resumeToken) {
    return GroupPosition.newBuilder().setResumeToken(resumeToken).build();
  }
}
