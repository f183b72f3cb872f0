package dev.timecached.client;

/**
 * One event, settled.
 *
 * @param eventId from the event
 * @param attempt from the event
 * @param how what to do with it
 */
public record Settlement(long eventId, int attempt, Settle how) {
  /** Of an event that a watch with {@link WatchOptions#group} has brought. */
  public static Settlement of(ExpiredEvent event, Settle how) {
    return new Settlement(event.eventId(), event.attempt(), how);
  }

  dev.timecached.v1.Settlement toProto() {
    dev.timecached.v1.Settlement.Builder builder =
        dev.timecached.v1.Settlement.newBuilder().setEventId(eventId).setAttempt(attempt);
    how.set.accept(builder);
    return builder.build();
  }
}
