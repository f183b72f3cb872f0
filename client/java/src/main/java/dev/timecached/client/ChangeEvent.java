package dev.timecached.client;

import com.google.protobuf.ByteString;
import java.time.Instant;
import java.util.Optional;

/**
 * A change of an entry.
 *
 * @param kind what has happened
 * @param key 1 B to 4 KiB
 * @param value of a PUT, the one now; empty with {@link WatchOptions#keysOnly}
 * @param parts in place of a value, where the key collects the parts of a gather
 * @param version the entry's now; of a REMOVED the last one
 * @param deadline the entry's now; empty of a REMOVED
 * @param time when it happened, on the server's clock: the order of the changes of one key, but not
 *     of several
 * @param omittedValueBytes the size of a value that was left out because it does not fit into a
 *     message; otherwise 0
 */
public record ChangeEvent(
    Kind kind,
    ByteString key,
    ByteString value,
    Optional<GatheredParts> parts,
    long version,
    Optional<Instant> deadline,
    Instant time,
    long omittedValueBytes) {

  /** What has happened to an entry. */
  public enum Kind {
    /** What this client is too old to know. */
    UNKNOWN,
    /** It has a new value: by a put, append, add, xor, gather or put-back. */
    PUT,
    /** It has a new deadline, and the value that it had. */
    RENEWED,
    /** It is gone before its time: by a remove, a sum of 0, a gather that is complete. */
    REMOVED
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

  static ChangeEvent of(dev.timecached.v1.ChangeEvent proto) {
    return new ChangeEvent(
        switch (proto.getKind()) {
          case CHANGE_KIND_PUT -> Kind.PUT;
          case CHANGE_KIND_RENEWED -> Kind.RENEWED;
          case CHANGE_KIND_REMOVED -> Kind.REMOVED;
          default -> Kind.UNKNOWN;
        },
        proto.getKey(),
        proto.getValue(),
        GatheredParts.of(proto.hasParts(), proto.getParts()),
        proto.getVersion(),
        proto.hasDeadline() ? Optional.of(Times.fromProto(proto.getDeadline())) : Optional.empty(),
        Times.fromProto(proto.getTime()),
        proto.getOmittedValueBytes());
  }
}
