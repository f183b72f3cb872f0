package dev.timecached.client;

import com.google.protobuf.ByteString;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;

/**
 * An entry that died; with {@link WatchOptions#leadTime}, one that is going to.
 *
 * @param namespace the one it lived in
 * @param key 1 B to 4 KiB
 * @param value empty with {@link WatchOptions#keysOnly}
 * @param version tells a re-put of the same key from the value that died
 * @param putTime when its time to live last began
 * @param deadline putTime and its time to live
 * @param deathTime from here on no reader saw it
 * @param deliveredAt when the server published it
 * @param cause why it died
 * @param eventId in a consumer group, the event's number, for people to read; otherwise 0
 * @param attempt in a consumer group, the number of this attempt, from 1; otherwise 0. One that
 *     ended by nack, or was not settled in time, counts; one that ended with its member's stream
 *     does not
 * @param returns in a consumer group, how often the stream of a member that held it has ended
 * @param deliveryToken in a consumer group, what names this delivery in a {@link Settlement};
 *     otherwise empty
 * @param lastReason in a consumer group, what the nack of the last attempt that counted gave as its
 *     reason; otherwise empty
 * @param createTime when the key began to be there: the put or other call that created the entry;
 *     changes and renewals kept it
 * @param ownTtl the entry's own time to live; empty: it had the namespace's
 * @param omittedValueBytes the size of a value that was left out because it does not fit into a
 *     message; otherwise 0
 * @param parts in place of a value, where the key collected the parts of a gather that was never
 *     completed: those that came
 * @param traceparent the one that the entry kept: see {@link PutOptions#traceEntry}; otherwise empty
 */
public record ExpiredEvent(
    String namespace,
    ByteString key,
    ByteString value,
    long version,
    Instant putTime,
    Instant deadline,
    Instant deathTime,
    Instant deliveredAt,
    Cause cause,
    long eventId,
    int attempt,
    int returns,
    ByteString deliveryToken,
    String lastReason,
    Instant createTime,
    Optional<Duration> ownTtl,
    long omittedValueBytes,
    Optional<GatheredParts> parts,
    String traceparent) {

  /** Why an entry died. */
  public enum Cause {
    /** A cause that this client is too old to know. */
    UNKNOWN,
    /** Its time was up. */
    EXPIRED,
    /** The namespace was full; may come before the deadline. */
    EVICTED,
    /** Its bucket was killed by hand; may come before the deadline. */
    ROTATED,
    /** It is not dead: its time will be up at deathTime. */
    EXPIRING
  }

  /** The key, read as UTF-8. */
  public String keyUtf8() {
    return key.toStringUtf8();
  }

  /** The value, read as UTF-8. */
  public String valueUtf8() {
    return value.toStringUtf8();
  }

  /** The value, as what it was encoded from. */
  public <T> T value(Codec<T> codec) {
    return codec.decode(value);
  }

  static ExpiredEvent of(dev.timecached.v1.ExpiredEvent proto) {
    return new ExpiredEvent(
        proto.getNamespace(),
        proto.getKey(),
        proto.getValue(),
        proto.getVersion(),
        Times.fromProto(proto.getPutTime()),
        Times.fromProto(proto.getDeadline()),
        Times.fromProto(proto.getDeathTime()),
        Times.fromProto(proto.getDeliveredAt()),
        switch (proto.getCause()) {
          case EXPIRY_CAUSE_EXPIRED -> Cause.EXPIRED;
          case EXPIRY_CAUSE_EVICTED -> Cause.EVICTED;
          case EXPIRY_CAUSE_ROTATED -> Cause.ROTATED;
          case EXPIRY_CAUSE_EXPIRING -> Cause.EXPIRING;
          default -> Cause.UNKNOWN;
        },
        proto.getEventId(),
        proto.getAttempt(),
        proto.getReturns(),
        proto.getDeliveryToken(),
        proto.getLastReason(),
        Times.fromProto(proto.hasCreateTime() ? proto.getCreateTime() : proto.getPutTime()),
        proto.hasOwnTtl() ? Optional.of(Times.fromProto(proto.getOwnTtl())) : Optional.empty(),
        proto.getOmittedValueBytes(),
        GatheredParts.of(proto.hasParts(), proto.getParts()),
        proto.getTraceparent());
  }

  /** The same event, given out again as that one. */
  ExpiredEvent withDelivery(ExpiredEvent other) {
    if (deliveryToken.equals(other.deliveryToken)) {
      return this;
    }
    return new ExpiredEvent(
        namespace,
        key,
        value,
        version,
        putTime,
        deadline,
        deathTime,
        deliveredAt,
        cause,
        other.eventId,
        other.attempt,
        other.returns,
        other.deliveryToken,
        other.lastReason,
        createTime,
        ownTtl,
        omittedValueBytes,
        parts,
        traceparent);
  }
}
