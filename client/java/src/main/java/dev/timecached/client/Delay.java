package dev.timecached.client;

import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Runs what is short after a while, on a thread that all clients share: those of the JDK's pools and
 * timers may all be in what the program calls there, and wait for this. Thread-safe.
 */
final class Delay {
  private static final ScheduledThreadPoolExecutor TIMER =
      new ScheduledThreadPoolExecutor(
          1,
          task -> {
            Thread thread = new Thread(task, "timecache-timer");
            thread.setDaemon(true);
            return thread;
          });

  static {
    TIMER.setRemoveOnCancelPolicy(true); // What waits would be kept until then.
  }

  private Delay() {}

  static Future<?> after(long nanos, Runnable task) {
    return TIMER.schedule(task, nanos, TimeUnit.NANOSECONDS);
  }
}
