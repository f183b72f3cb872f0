package dev.timecached.client;

import java.util.concurrent.CompletableFuture;

/**
 * A {@link Watcher} with a daemon thread of its own that calls a listener, one call at a time.
 * Thread-safe.
 */
public final class Watch implements AutoCloseable {
  private final Watcher watcher;
  private final Thread thread;
  private final CompletableFuture<Void> ended = new CompletableFuture<>();

  Watch(Watcher watcher, WatchListener listener) {
    this.watcher = watcher;
    thread = new Thread(() -> run(listener), "timecache-watch");
    thread.setDaemon(true);
    thread.start();
  }

  private void run(WatchListener listener) {
    try {
      for (WatchBatch batch : watcher) {
        listener.onBatch(batch);
      }
      ended.complete(null);
    } catch (Throwable why) {
      watcher.close();
      try {
        listener.onEnd(why);
      } finally {
        ended.completeExceptionally(why);
      }
    }
  }

  /** Completes when the watch has ended: normally if it was closed, else with the reason. */
  public CompletableFuture<Void> ended() {
    return ended.copy();
  }

  /** Ends the watch, and waits for the listener to return; not when the listener itself closes. */
  @Override
  public void close() {
    watcher.close();
    if (Thread.currentThread() != thread) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
