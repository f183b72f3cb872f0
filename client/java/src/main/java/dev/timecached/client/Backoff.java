package dev.timecached.client;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Pauses that double from the shortest to the longest, each shortened at random by up to half, so
 * that many clients of one server that restarts do not come back all at once. Not thread-safe.
 */
final class Backoff {
  private final long minNanos;
  private final long maxNanos;
  private long nextNanos;

  Backoff(Duration min, Duration max) {
    minNanos = Times.nanos(min);
    maxNanos = Times.nanos(max);
    nextNanos = minNanos;
  }

  long nextNanos() {
    long pause = (long) (nextNanos * ThreadLocalRandom.current().nextDouble(0.5, 1.0));
    nextNanos = Math.min(nextNanos * 2, maxNanos);
    return pause;
  }

  /** After a success. */
  void reset() {
    nextNanos = minNanos;
  }
}
