package dev.timecached.client;

import com.google.protobuf.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.TimeUnit;

/** Times and durations of {@code java.time}, and those of protobuf messages. */
public final class Times {
  private Times() {}

  /** A duration as messages have it. */
  public static com.google.protobuf.Duration toProto(Duration duration) {
    long seconds = duration.getSeconds();
    int nanos = duration.getNano();
    // Both have the same sign there.
    if (seconds < 0 && nanos > 0) {
      seconds += 1;
      nanos -= 1_000_000_000;
    }
    return com.google.protobuf.Duration.newBuilder().setSeconds(seconds).setNanos(nanos).build();
  }

  /** A time as messages have it. */
  public static Timestamp toProto(Instant time) {
    return Timestamp.newBuilder()
        .setSeconds(time.getEpochSecond())
        .setNanos(time.getNano())
        .build();
  }

  /** A duration of a message. */
  public static Duration fromProto(com.google.protobuf.Duration duration) {
    return Duration.ofSeconds(duration.getSeconds(), duration.getNanos());
  }

  /** A time of a message. */
  public static Instant fromProto(Timestamp time) {
    return Instant.ofEpochSecond(time.getSeconds(), time.getNanos());
  }

  /** Nanoseconds; a duration that has too many is taken as 146 years. */
  static long nanos(Duration duration) {
    return Math.min(TimeUnit.NANOSECONDS.convert(duration), Long.MAX_VALUE / 2);
  }
}
