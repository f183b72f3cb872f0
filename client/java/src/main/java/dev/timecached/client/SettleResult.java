package dev.timecached.client;

import java.util.Optional;

/**
 * What became of one settlement.
 *
 * @param error set if it was not settled. NOT_FOUND (EVENT_NOT_UNSETTLED): the event has been
 *     settled already, or is a dead letter, or lost. FAILED_PRECONDITION (STALE_ATTEMPT): a nack,
 *     put-back or extension too late, the event has been given out again. Of a put-back also what a put may fail
 *     with: the event stays unsettled
 * @param version of a put-back: the entry's new version; 0 if the key was there again and the event
 *     was let go
 */
public record SettleResult(Optional<TimecacheException> error, long version) {
  static SettleResult of(dev.timecached.v1.SettleResult proto) {
    return new SettleResult(
        proto.hasError() ? Optional.of(TimecacheException.of(proto.getError())) : Optional.empty(),
        proto.getVersion());
  }
}
