package dev.timecached.client;

import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/** How a {@link GroupWorker} works. Immutable: each method returns options of its own. */
public final class GroupWorkerOptions implements Cloneable {
  /** Most events that the server lets a member hold. */
  private static final int MAX_IN_FLIGHT = 65_536;

  final String group;
  boolean fromEarliest;
  boolean keysOnly;
  int threads = 4;
  Integer maxInFlight; // Null: it depends on the threads.
  int settleBatchMax = 256;
  Duration settleLinger = Duration.ofMillis(2);
  Duration retryDelay = Duration.ofSeconds(1); // Null: the group's.
  Duration stopTimeout = Duration.ofSeconds(10);
  Duration extendMax = Duration.ofHours(12);
  boolean waitForServer;
  Duration minPause = Duration.ofMillis(100);
  Duration maxPause = Duration.ofSeconds(1);
  Duration silenceMax;
  Consumer<Throwable> onError; // Null: they are logged.
  LongConsumer onLoss = lost -> {};

  /** For this group, which is made with default options if it is not there. */
  public GroupWorkerOptions(String group) {
    if (group.isEmpty()) {
      throw new IllegalArgumentException("group: must be given");
    }
    this.group = group;
  }

  /** A group that is made by this begins with the oldest event that is retained. */
  public GroupWorkerOptions fromEarliest() {
    return with(options -> options.fromEarliest = true);
  }

  /** Leave the values out. */
  public GroupWorkerOptions keysOnly() {
    return with(options -> options.keysOnly = true);
  }

  /** Handlers that run at a time: 4 unless given. With 1, first attempts come in order of death. */
  public GroupWorkerOptions threads(int threads) {
    return with(options -> options.threads = Math.max(threads, 1));
  }

  /**
   * Most events that this worker holds, from their arrival until they are settled: 1 to 65,536.
   * More than the threads hides the round trip of handlers that are quick; of handlers that take
   * long, it makes events wait for them that another worker might have. Twice the threads unless
   * given.
   */
  public GroupWorkerOptions maxInFlight(int events) {
    return with(options -> options.maxInFlight = events);
  }

  int maxInFlight() {
    return maxInFlight != null ? maxInFlight : (int) Math.min(2L * threads, MAX_IN_FLIGHT);
  }

  /**
   * Settlements are sent when there are so many (1 to 4,096; 256 unless given), when the first has
   * waited for the linger time (2 ms unless given), or when no event is left to handle.
   */
  public GroupWorkerOptions settleBatch(int max, Duration linger) {
    return with(
        options -> {
          options.settleBatchMax = Math.min(Math.max(max, 1), 4096);
          options.settleLinger = linger;
        });
  }

  /**
   * Delay of the nack for a handler that throws, and for a settlement that the server refuses: 1 s
   * unless given.
   */
  public GroupWorkerOptions retryDelay(Duration delay) {
    return with(options -> options.retryDelay = delay);
  }

  /** In place of a {@link #retryDelay}: the wait is as the group's retry_delay says. */
  public GroupWorkerOptions groupRetryDelay() {
    return with(options -> options.retryDelay = null);
  }

  /**
   * How long a stop tries to settle, once the last handler has returned: 10 s unless given. A call
   * that is under way then may take up to 5 s more.
   */
  public GroupWorkerOptions stopTimeout(Duration timeout) {
    return with(options -> options.stopTimeout = timeout);
  }

  /**
   * The worker asks for another ack_timeout for each event that it holds, until it is settled, but
   * for no longer than this from its arrival: then the event is given to another worker. Zero: it
   * never asks; what is not settled within the ack_timeout is given out again. 12 h unless given.
   */
  public GroupWorkerOptions extendMax(Duration max) {
    return with(options -> options.extendMax = max);
  }

  /** As {@link WatchOptions#waitForServer}. */
  public GroupWorkerOptions waitForServer() {
    return with(options -> options.waitForServer = true);
  }

  /** As {@link WatchOptions#pauses}. */
  public GroupWorkerOptions pauses(Duration min, Duration max) {
    return with(
        options -> {
          options.minPause = min;
          options.maxPause = max;
        });
  }

  /** As {@link WatchOptions#silenceMax}. */
  public GroupWorkerOptions silenceMax(Duration silence) {
    return with(options -> options.silenceMax = silence);
  }

  /**
   * Be told what went wrong and was survived: a break, what a handler threw, an event that was
   * handled and could not be settled, a call that failed. Called by any of the worker's threads,
   * one at a time. Unless given, all but breaks are warnings of the {@link System.Logger} that has
   * the name of {@link GroupWorker}, with namespace, group, key and attempt of the event; so is the
   * worker's end by an error.
   */
  public GroupWorkerOptions onError(Consumer<Throwable> onError) {
    return with(options -> options.onError = onError);
  }

  /** Be told how many events the group lost, as it held more than its max_backlog_bytes. */
  public GroupWorkerOptions onLoss(LongConsumer onLoss) {
    return with(options -> options.onLoss = onLoss);
  }

  private GroupWorkerOptions with(Consumer<GroupWorkerOptions> change) {
    try {
      GroupWorkerOptions copy = (GroupWorkerOptions) clone();
      change.accept(copy);
      return copy;
    } catch (CloneNotSupportedException e) {
      throw new AssertionError(e);
    }
  }
}
