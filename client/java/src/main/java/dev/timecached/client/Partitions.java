package dev.timecached.client;

import com.google.protobuf.ByteString;
import java.util.zip.CRC32C;

/** Which partition of a namespace a key is in. */
final class Partitions {
  private Partitions() {}

  /** The CRC-32C of the key's hash tag, modulo their number: see GetOwnersResponse. O(key). */
  static int of(ByteString key, int partitions) {
    if (partitions == 1) {
      return 0;
    }
    int from = 0;
    int to = key.size();
    int open = indexOf(key, '{', 0);
    int close = open < 0 ? -1 : indexOf(key, '}', open + 1);
    if (close > open + 1) {
      from = open + 1;
      to = close;
    }
    CRC32C crc = new CRC32C(); // It does not escape: compiled, it takes no memory.
    for (int i = from; i < to; ++i) {
      crc.update(key.byteAt(i));
    }
    return (int) (crc.getValue() % partitions);
  }

  private static int indexOf(ByteString key, char wanted, int from) {
    for (int i = from; i < key.size(); ++i) {
      if (key.byteAt(i) == wanted) {
        return i;
      }
    }
    return -1;
  }
}
