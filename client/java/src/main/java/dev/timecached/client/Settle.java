package dev.timecached.client;

import dev.timecached.v1.Ack;
import dev.timecached.v1.Nack;
import dev.timecached.v1.PutBack;
import dev.timecached.v1.Settlement.Builder;
import java.time.Duration;
import java.util.function.Consumer;

/** What a member of a consumer group does with an event that it was given. Immutable. */
public final class Settle {
  private static final Settle ACK = new Settle(Kind.ACK, b -> b.setAck(Ack.getDefaultInstance()));

  enum Kind {
    ACK,
    NACK,
    PUT_BACK
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

  /** Give it out again, at once. */
  public static Settle nack() {
    return nack(Duration.ZERO);
  }

  /** Give it out again after a delay of 0 to 7 days. */
  public static Settle nack(Duration delay) {
    Nack nack = Nack.newBuilder().setDelay(Times.toProto(delay)).build();
    return new Settle(Kind.NACK, builder -> builder.setNack(nack));
  }

  /**
   * Put it back into the namespace, with its value or its parts and a fresh time to live of the
   * namespace's, unless the key is there again; then done.
   */
  public static Settle putBack() {
    return new Settle(Kind.PUT_BACK, builder -> builder.setPutBack(PutBack.getDefaultInstance()));
  }

  /** The same with a time to live of its own. */
  public static Settle putBack(Duration ttl) {
    PutBack putBack = PutBack.newBuilder().setTtl(Times.toProto(ttl)).build();
    return new Settle(Kind.PUT_BACK, builder -> builder.setPutBack(putBack));
  }
}
