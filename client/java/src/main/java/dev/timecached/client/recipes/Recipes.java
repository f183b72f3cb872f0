package dev.timecached.client.recipes;

import com.google.protobuf.ByteString;
import dev.timecached.client.TimecacheException;
import dev.timecached.v1.ErrorReason;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** What recipes have in common: keys of what belongs to one structure, NAME/MEMBER, and ids. */
final class Recipes {
  private static final SecureRandom RANDOM = new SecureRandom();

  private Recipes() {}

  static ByteString utf8(String text) {
    return ByteString.copyFromUtf8(text);
  }

  /** What the keys of a structure begin with. */
  static ByteString prefix(String name) {
    return utf8(name + "/");
  }

  /** The member of a key. Empty: the key is not of this structure. */
  static Optional<ByteString> member(ByteString prefix, ByteString key) {
    return key.startsWith(prefix) ? Optional.of(key.substring(prefix.size())) : Optional.empty();
  }

  /** Never 0. Two are equal with a probability of 2^-64, also of several processes. */
  static long newId() {
    while (true) {
      long id = RANDOM.nextLong();
      if (id != 0) {
        return id;
      }
    }
  }

  /** The key is there, or not with this version. */
  static boolean isPreconditionFailed(TimecacheException e) {
    return e.is(ErrorReason.KEY_EXISTS)
        || e.is(ErrorReason.KEY_NOT_FOUND)
        || e.is(ErrorReason.VERSION_MISMATCH);
  }

  /** Numbers in values are little-endian. */
  static ByteBuffer allocate(int size) {
    return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
  }

  static ByteBuffer read(ByteString value) {
    return value.asReadOnlyByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
  }

  /** A duration that has too many is taken as 146 years. */
  static long nanos(Duration duration) {
    return Math.min(TimeUnit.NANOSECONDS.convert(duration), Long.MAX_VALUE / 2);
  }
}
