package dev.timecached.client;

/** Is called with what a watch brings. */
@FunctionalInterface
public interface WatchListener {
  /**
   * The next batch. While it is handled nothing is read: a slow listener is a slow watcher.
   *
   * @throws Exception which ends the watch
   */
  void onBatch(WatchBatch batch) throws Exception;

  /**
   * Called once, last, unless the watch was closed.
   *
   * @param why a {@link TimecacheException}, or what {@link #onBatch} has thrown
   */
  default void onEnd(Throwable why) {}
}
