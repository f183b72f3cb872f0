package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.protobuf.ByteString;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** In which partitions keys are: the numbers are another implementation's. */
final class PartitionsTest {
  private static final int MANY = 1 << 30;

  private static int of(String key, int partitions) {
    return Partitions.of(ByteString.copyFromUtf8(key), partitions);
  }

  @Test
  void thePartitionIsTheChecksumModuloTheirNumber() {
    assertEquals(0xE3069283L % MANY, of("123456789", MANY));
    assertEquals(0xE3069283L % 3, of("123456789", 3));
    assertEquals(0, of("123456789", 1));
    ByteString rope = ByteString.copyFromUtf8("1234").concat(ByteString.copyFromUtf8("56789"));
    assertEquals(0xE3069283L % MANY, Partitions.of(rope, MANY));
    ByteString bytes = ByteString.copyFrom(new byte[] {(byte) 0xff, 0, (byte) 0x80});
    assertEquals(42, Partitions.of(bytes, 64));
  }

  @Test
  void aHashTagStandsForItsKey() {
    for (String key : new String[] {"user:{42}:name", "{42}{43}", "}{42}", "{42}}"}) {
      assertEquals(of("42", MANY), of(key, MANY), key);
    }
    assertEquals(11, of("42", 64));
    assertEquals(53, of("x{{y}z}", 64)); // As "{y", which has none.
  }

  @Test
  void withoutATagAllOfTheKeyCounts() {
    Map.of("", 0, "{}x", 29, "{", 39, "a{b", 58, "{y", 53)
        .forEach((key, partition) -> assertEquals(partition, of(key, 64), key));
  }
}
