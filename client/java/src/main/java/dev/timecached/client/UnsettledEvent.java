package dev.timecached.client;

import java.time.Instant;
import java.util.Optional;

/**
 * An event that a group has not settled.
 *
 * @param event as it was or will be delivered, attempt 0: not yet. Its delivery token settles it,
 *     whoever holds it
 * @param state what it waits for
 * @param memberId in flight, the id of the {@link dev.timecached.v1.GroupMember} that holds it; 0: a
 *     caller of fetchExpired
 * @param since in flight, since when
 * @param due in flight, when it times out; delayed, when it may be delivered; dead-lettering, when
 *     that is tried next
 */
public record UnsettledEvent(
    ExpiredEvent event,
    State state,
    long memberId,
    Optional<Instant> since,
    Optional<Instant> due) {

  /** What an unsettled event waits for. */
  public enum State {
    /** What this client is too old to know. */
    UNKNOWN,
    /** To be delivered. */
    READY,
    /** An earlier event of its key to be settled. */
    BLOCKED_BY_KEY,
    /** A member, or a caller of fetchExpired, to settle it. */
    IN_FLIGHT,
    /** Its next attempt. */
    DELAYED,
    /** To become a dead letter. */
    DEAD_LETTERING
  }

  static UnsettledEvent of(dev.timecached.v1.UnsettledEvent proto) {
    return new UnsettledEvent(
        ExpiredEvent.of(proto.getEvent()),
        switch (proto.getState()) {
          case UNSETTLED_STATE_READY -> State.READY;
          case UNSETTLED_STATE_BLOCKED_BY_KEY -> State.BLOCKED_BY_KEY;
          case UNSETTLED_STATE_IN_FLIGHT -> State.IN_FLIGHT;
          case UNSETTLED_STATE_DELAYED -> State.DELAYED;
          case UNSETTLED_STATE_DEAD_LETTERING -> State.DEAD_LETTERING;
          default -> State.UNKNOWN;
        },
        proto.getMemberId(),
        proto.hasSince() ? Optional.of(Times.fromProto(proto.getSince())) : Optional.empty(),
        proto.hasDue() ? Optional.of(Times.fromProto(proto.getDue())) : Optional.empty());
  }
}
