package dev.timecached.client;

import com.google.protobuf.ByteString;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;

/**
 * A live entry.
 *
 * @param key 1 B to 4 KiB
 * @param value empty where only keys were asked for
 * @param version identifies the value: a fresh time to live leaves it as it is. Unique in the
 *     namespace; grows with every change of one key. Never 0
 * @param putTime when the time to live last began: the last put or touch
 * @param deadline the entry does not die before it, and at most one bucket width after it
 * @param createTime when the key began to be there: the put or other call that created the entry;
 *     changes and renewals keep it
 * @param ownTtl the entry's own time to live, which a renewal gives it; empty: the namespace's
 * @param omittedValueBytes in a scan, the size of a value that was left out because it does not fit
 *     into a message; otherwise 0
 * @param parts in place of a value, where the key collects the parts of a gather
 */
public record Entry(
    ByteString key,
    ByteString value,
    long version,
    Instant putTime,
    Instant deadline,
    Instant createTime,
    Optional<Duration> ownTtl,
    long omittedValueBytes,
    Optional<GatheredParts> parts) {

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

  /** Of an answer that may leave out the key that was asked for. */
  static Entry of(dev.timecached.v1.Entry proto, ByteString key) {
    return new Entry(
        key,
        proto.getValue(),
        proto.getVersion(),
        Times.fromProto(proto.getPutTime()),
        Times.fromProto(proto.getDeadline()),
        Times.fromProto(proto.hasCreateTime() ? proto.getCreateTime() : proto.getPutTime()),
        proto.hasOwnTtl() ? Optional.of(Times.fromProto(proto.getOwnTtl())) : Optional.empty(),
        proto.getOmittedValueBytes(),
        GatheredParts.of(proto.hasParts(), proto.getParts()));
  }

  static Optional<Entry> of(boolean has, dev.timecached.v1.Entry proto, ByteString key) {
    return has ? Optional.of(of(proto, key)) : Optional.empty();
  }
}
