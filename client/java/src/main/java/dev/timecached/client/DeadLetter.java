package dev.timecached.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import java.time.Instant;
import java.util.Optional;

/**
 * An event that a group has given up, as it lies in the namespace's dead_letter_namespace.
 *
 * @param event with the namespace that it is of, and the last attempt at it
 * @param group the one that gave it up
 * @param attempts those that counted
 * @param reason how the last of them ended; empty: an older server wrote the letter, or a newer one
 *     has more reasons
 * @param reasonText what the member gave as its reason for the nack or terminate that ended it; may
 *     be empty
 * @param time when the letter was made
 */
public record DeadLetter(
    ExpiredEvent event,
    String group,
    int attempts,
    Optional<Reason> reason,
    String reasonText,
    Instant time) {

  /** How the last attempt ended. */
  public enum Reason {
    /** By a nack. */
    NACKED,
    /** It was not settled in time. */
    TIMED_OUT,
    /** Its member gave it up. */
    TERMINATED
  }

  /**
   * Reads an entry of a dead_letter_namespace.
   *
   * @throws IllegalArgumentException if it is no letter, or was read without its value
   */
  public static DeadLetter decode(Entry letter) {
    return decode(letter.key(), letter.value(), letter.createTime());
  }

  /** The same of a letter that has expired. */
  public static DeadLetter decode(ExpiredEvent letter) {
    return decode(letter.key(), letter.value(), letter.createTime());
  }

  private static DeadLetter decode(ByteString key, ByteString value, Instant createTime) {
    dev.timecached.v1.ExpiredEvent event;
    try {
      event = dev.timecached.v1.ExpiredEvent.parseFrom(value);
    } catch (InvalidProtocolBufferException e) {
      throw noLetter();
    }
    dev.timecached.v1.DeadLetter letter = event.getDeadLetter();
    String group = letter.getGroup().isEmpty() ? groupOf(key, event) : letter.getGroup();
    if (event.getNamespace().isEmpty() || event.getKey().isEmpty() || group.isEmpty()) {
      throw noLetter();
    }
    return new DeadLetter(
        ExpiredEvent.of(event),
        group,
        letter.getAttempts() == 0 ? event.getAttempt() : letter.getAttempts(),
        switch (letter.getReason()) {
          case DEAD_LETTER_REASON_NACKED -> Optional.of(Reason.NACKED);
          case DEAD_LETTER_REASON_TIMED_OUT -> Optional.of(Reason.TIMED_OUT);
          case DEAD_LETTER_REASON_TERMINATED -> Optional.of(Reason.TERMINATED);
          default -> Optional.empty();
        },
        letter.getReasonText(),
        letter.hasTime() ? Times.fromProto(letter.getTime()) : createTime);
  }

  /** Servers of before DeadLetter said it in the key alone: NAMESPACE/GROUP/EVENT_ID. */
  private static String groupOf(ByteString key, dev.timecached.v1.ExpiredEvent event) {
    String[] names = key.toStringUtf8().split("/", -1);
    boolean isNamed =
        names.length == 3
            && names[0].equals(event.getNamespace())
            && names[2].equals(Long.toString(event.getEventId()));
    return isNamed ? names[1] : "";
  }

  private static IllegalArgumentException noLetter() {
    return new IllegalArgumentException(
        "no dead letter: give an entry of a dead_letter_namespace, read with its value");
  }
}
