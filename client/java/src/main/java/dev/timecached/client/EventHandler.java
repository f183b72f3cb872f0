package dev.timecached.client;

/** Handles one event of a consumer group. Called by several threads at once. */
@FunctionalInterface
public interface EventHandler {
  /**
   * Handles an event, and says how to settle it.
   *
   * @throws Exception after which the event is given out again, {@link
   *     GroupWorkerOptions#retryDelay} later
   */
  Settle handle(ExpiredEvent event) throws Exception;

  /** A handler that acknowledges each event for which {@code handler} does not throw. */
  static EventHandler acking(Acking handler) {
    return event -> {
      handler.handle(event);
      return Settle.ack();
    };
  }

  /** What {@link #acking} takes. */
  @FunctionalInterface
  interface Acking {
    /** Handles an event: as {@link EventHandler#handle}. */
    void handle(ExpiredEvent event) throws Exception;
  }
}
