package dev.timecached.client;

import com.google.protobuf.ByteString;
import java.util.List;
import java.util.Optional;

/**
 * What a gather has collected under a key.
 *
 * @param parts in the order in which they came; names are distinct
 * @param expectedParts how many complete the key; 0 where {@code expectedNames} says it
 * @param expectedNames the names of the parts that complete the key, in bytewise order
 */
public record GatheredParts(List<Part> parts, int expectedParts, List<ByteString> expectedNames) {
  /**
   * One part.
   *
   * @param name 1 to 256 B
   * @param value may be empty
   */
  public record Part(ByteString name, ByteString value) {}

  static GatheredParts of(dev.timecached.v1.GatheredParts proto) {
    return new GatheredParts(
        proto.getPartsList().stream()
            .map(part -> new Part(part.getName(), part.getValue()))
            .toList(),
        proto.getExpectedParts(),
        List.copyOf(proto.getExpectedNamesList()));
  }

  static Optional<GatheredParts> of(boolean has, dev.timecached.v1.GatheredParts proto) {
    return has ? Optional.of(of(proto)) : Optional.empty();
  }
}
