package dev.timecached.client;

import com.google.protobuf.ByteString;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * What to watch, and how; {@link TimecacheClient#watchChanges} takes it, too. A watch tells what
 * died; with {@link #group}, a member's share of that; with {@link #leadTime}, what is going to die.
 * Immutable: each method returns options of its own.
 */
public final class WatchOptions implements Cloneable {
  List<String> namespaces = List.of();
  boolean fromEarliest;
  Map<String, ByteString> resumeTokens = Map.of();
  ByteString prefix = ByteString.EMPTY;
  boolean keysOnly;
  Duration heartbeat;
  boolean failOnLoss;
  Duration leadTime;
  String group;
  Integer maxInFlight;
  int maxMessageBytes = Rpc.MAX_MESSAGE_BYTES;
  boolean waitForServer;
  Duration minPause = Duration.ofMillis(100);
  Duration maxPause = Duration.ofSeconds(1);
  Duration silenceMax;
  Consumer<TimecacheException> onBreak = why -> {};

  /** The client's namespace, from now on. */
  public WatchOptions() {}

  /** These namespaces: 1 to 64. */
  public WatchOptions namespaces(String... namespaces) {
    return with(options -> options.namespaces = List.of(namespaces));
  }

  /**
   * Begin with the oldest event that is retained, in namespaces without a resume token. With a
   * group: where a group begins that is not there yet, and is made by this.
   */
  public WatchOptions fromEarliest() {
    return with(options -> options.fromEarliest = true);
  }

  /**
   * Go on where an earlier watch of this namespace has stopped, of this process or another.
   *
   * @param token the {@link WatchBatch#resumeToken} of the last batch that it has handled
   */
  public WatchOptions resume(String namespace, ByteString token) {
    return with(
        options -> {
          options.resumeTokens = new HashMap<>(options.resumeTokens);
          options.resumeTokens.put(namespace, token);
        });
  }

  /** Only keys that begin with this: at most 4 KiB. */
  public WatchOptions prefix(String prefix) {
    return prefix(ByteString.copyFromUtf8(prefix));
  }

  /** As {@link #prefix(String)}. */
  public WatchOptions prefix(ByteString prefix) {
    return with(options -> options.prefix = prefix);
  }

  /** Leave the values out. */
  public WatchOptions keysOnly() {
    return with(options -> options.keysOnly = true);
  }

  /**
   * The longest time between two batches of one namespace, on the server's clock: 10 ms to 1 h. 1 s
   * unless given.
   */
  public WatchOptions heartbeat(Duration interval) {
    return with(options -> options.heartbeat = interval);
  }

  /**
   * End where events are lost: with OUT_OF_RANGE (reason RESUME_POINT_TRIMMED) in place of a batch
   * with {@code lost}, with FAILED_PRECONDITION (LOG_CHANGED) or OUT_OF_RANGE (RESUME_POINT_AHEAD)
   * in place of one with {@code logChanged}.
   */
  public WatchOptions failOnLoss() {
    return with(options -> options.failOnLoss = true);
  }

  /**
   * Tell what is going to die within this time, in time to touch it: 1 ms to 10 years. What was
   * told before a break may be told again after it, under the same version and deadline. Not
   * together with group, resume, failOnLoss, fromEarliest.
   */
  public WatchOptions leadTime(Duration leadTime) {
    return with(options -> options.leadTime = leadTime);
  }

  /**
   * Be a member of this consumer group: every event must be settled, by {@link
   * TimecacheClient#settle}. {@link GroupWorker} does all that by itself. Not together with prefix,
   * resume, failOnLoss.
   */
  public WatchOptions group(String group) {
    return with(options -> options.group = group);
  }

  /**
   * The most events of each namespace that a member of a group holds unsettled: 1 to 65,536. 1,000
   * unless given.
   */
  public WatchOptions maxInFlight(int events) {
    return with(options -> options.maxInFlight = events);
  }

  /**
   * The largest message that the channel takes, at least 4 MiB: a value that does not fit is left
   * out. Only for {@link TimecacheClient#of} with a channel that takes less than 64 MiB.
   */
  public WatchOptions maxMessageBytes(int bytes) {
    return with(options -> options.maxMessageBytes = bytes);
  }

  /**
   * Keep trying when the first attempt finds no server, too. Without, the watch then ends with
   * UNAVAILABLE, so that a wrong address is told at once.
   */
  public WatchOptions waitForServer() {
    return with(options -> options.waitForServer = true);
  }

  /**
   * Pauses between attempts to reconnect: each is twice the one before, shortened at random by up
   * to half. 100 ms and 1 s unless given.
   */
  public WatchOptions pauses(Duration min, Duration max) {
    return with(
        options -> {
          options.minPause = min;
          options.maxPause = max;
        });
  }

  /**
   * Take a stream that brings nothing for this long for broken: several heartbeats are a good
   * value. Unless given 10 s for a client with several addresses, or four heartbeats if that is
   * longer; else off, because a virtual clock that stands still has no heartbeats; a connection
   * that is dead is noticed within 40 s anyhow.
   */
  public WatchOptions silenceMax(Duration silence) {
    return with(options -> options.silenceMax = silence);
  }

  /**
   * Be told of every break and every attempt that fails, on the thread that waits for the next
   * batch, before the pause, if there is one. May close the watcher.
   */
  public WatchOptions onBreak(Consumer<TimecacheException> onBreak) {
    return with(options -> options.onBreak = onBreak);
  }

  /** The request of a call has no place for what does not go together. */
  void check() {
    if (maxInFlight != null && group == null) {
      throw invalid("maxInFlight goes with group only");
    }
    if (group == null && leadTime == null) {
      return;
    }
    String what = group != null ? "group" : "leadTime";
    if (group != null && leadTime != null) {
      throw invalid("group does not go with leadTime");
    } else if (!resumeTokens.isEmpty()) {
      throw invalid(what + " does not go with resume");
    } else if (failOnLoss) {
      throw invalid(what + " does not go with failOnLoss");
    } else if (group != null && !prefix.isEmpty()) {
      throw invalid("group does not go with prefix");
    } else if (leadTime != null && fromEarliest) {
      throw invalid("leadTime does not go with fromEarliest");
    }
  }

  /** What is for deaths alone. */
  void checkForChanges() {
    if (group != null || leadTime != null || maxInFlight != null) {
      throw invalid("a watch on changes has neither group nor leadTime");
    }
  }

  private static IllegalArgumentException invalid(String what) {
    return new IllegalArgumentException(what);
  }

  private WatchOptions with(Consumer<WatchOptions> change) {
    try {
      WatchOptions copy = (WatchOptions) clone();
      change.accept(copy);
      return copy;
    } catch (CloneNotSupportedException e) {
      throw new AssertionError(e);
    }
  }
}
