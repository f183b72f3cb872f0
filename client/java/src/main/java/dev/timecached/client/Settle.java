package dev.timecached.client;

import dev.timecached.v1.Ack;
import dev.timecached.v1.Extend;
import dev.timecached.v1.Nack;
import dev.timecached.v1.PutBack;
import dev.timecached.v1.Settlement.Builder;
import dev.timecached.v1.Terminate;
import java.time.Duration;
import java.time.Instant;
import java.util.function.Consumer;

/** What a member of a consumer group does with an event that it was given. Immutable. */
public final class Settle {
  private static final Settle ACK = new Settle(Kind.ACK, b -> b.setAck(Ack.getDefaultInstance()));

  private static final Settle EXTEND =
      new Settle(Kind.EXTEND, b -> b.setExtend(Extend.getDefaultInstance()));

  enum Kind {
    ACK,
    NACK,
    PUT_BACK,
    TERMINATE,
    EXTEND
  }

  final Kind kind;
  final Consumer<Builder> set;

  private Settle(Kind kind, Consumer<Builder> set) {
    this.kind = kind;
    this.set = set;
  }

  /** Done. Accepted also from an earlier attempt, while the event is unsettled. */
  public static Settle ack() {
    return ACK;
  }

  /** Give it out again, when the group's retry_delay says. */
  public static Settle nack() {
    return nack(Nack.newBuilder());
  }

  /**
   * The same with why, for people: in the {@link ExpiredEvent#lastReason} of the next delivery, and
   * in its dead letter.
   *
   * @param reason at most 256 B of UTF-8
   */
  public static Settle nack(String reason) {
    return nack(Nack.newBuilder().setReason(reason));
  }

  /** Give it out again after a delay of 0 to 7 days. */
  public static Settle nack(Duration delay) {
    return nack(Nack.newBuilder().setDelay(Times.toProto(delay)));
  }

  /** Both. */
  public static Settle nack(Duration delay, String reason) {
    return nack(Nack.newBuilder().setDelay(Times.toProto(delay)).setReason(reason));
  }

  private static Settle nack(Nack.Builder nack) {
    Nack built = nack.build();
    return new Settle(Kind.NACK, builder -> builder.setNack(built));
  }

  /**
   * Give it up: it becomes a dead letter now, whatever its attempts; in a namespace without a
   * dead_letter_namespace it is settled.
   *
   * @param reason why, for people: in its dead letter; at most 256 B of UTF-8; may be empty
   */
  public static Settle terminate(String reason) {
    Terminate terminate = Terminate.newBuilder().setReason(reason).build();
    return new Settle(Kind.TERMINATE, builder -> builder.setTerminate(terminate));
  }

  /**
   * Put it back into the namespace, with its value or its parts and a fresh time to live, unless
   * the key is there again; then done. The time to live is the one of its own that it had, or else
   * the namespace's.
   */
  public static Settle putBack() {
    return putBack(PutBack.newBuilder());
  }

  /** The same with a time to live of its own. */
  public static Settle putBack(Duration ttl) {
    return putBack(PutBack.newBuilder().setTtl(Times.toProto(ttl)));
  }

  /**
   * The same with this deadline, on the server's clock, for this life alone. One that is not after
   * now is refused, unless {@code allowPast}: then the entry expires at once.
   */
  public static Settle putBack(Instant expireAt, boolean allowPast) {
    return putBack(
        PutBack.newBuilder().setExpireAt(Times.toProto(expireAt)).setAllowPast(allowPast));
  }

  private static Settle putBack(PutBack.Builder putBack) {
    PutBack built = putBack.build();
    return new Settle(Kind.PUT_BACK, builder -> builder.setPutBack(built));
  }

  /**
   * The group's ack_timeout anew, from now on: the attempt goes on. Any number of times. A {@link
   * GroupWorker} says so by itself, not its handler.
   */
  public static Settle extend() {
    return EXTEND;
  }
}
