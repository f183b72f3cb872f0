package dev.timecached.client;

import java.util.OptionalInt;

/**
 * One event, settled or extended.
 *
 * @param eventId from the event
 * @param attempt from the event
 * @param returns from the event: then a nack, put-back or extension of a delivery that ended with
 *     the member's stream is STALE_ATTEMPT. Empty: any delivery of that attempt is meant
 * @param how what to do with it
 */
public record Settlement(long eventId, int attempt, OptionalInt returns, Settle how) {
  /** Of any delivery of that attempt. */
  public Settlement(long eventId, int attempt, Settle how) {
    this(eventId, attempt, OptionalInt.empty(), how);
  }

  /** Of an event that a watch with {@link WatchOptions#group} has brought. */
  public static Settlement of(ExpiredEvent event, Settle how) {
    return new Settlement(event.eventId(), event.attempt(), OptionalInt.of(event.returns()), how);
  }

  dev.timecached.v1.Settlement toProto() {
    dev.timecached.v1.Settlement.Builder builder =
        dev.timecached.v1.Settlement.newBuilder().setEventId(eventId).setAttempt(attempt);
    returns.ifPresent(builder::setReturns);
    how.set.accept(builder);
    return builder.build();
  }
}
