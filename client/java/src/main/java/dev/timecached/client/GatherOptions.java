package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.GatherRequest;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;

/**
 * What is expected under a key, the same for all of its parts. Immutable: each method returns
 * options of its own.
 */
public final class GatherOptions {
  final GatherRequest request;

  private GatherOptions(GatherRequest request) {
    this.request = request;
  }

  /** So many parts complete the key, whatever their names: 1 to 1,024. */
  public static GatherOptions expect(int parts) {
    return new GatherOptions(GatherRequest.newBuilder().setExpectedParts(parts).build());
  }

  /** Parts of these names complete the key: 1 to 1,024 distinct ones, in any order. */
  public static GatherOptions expect(String... names) {
    return expect(Arrays.stream(names).map(ByteString::copyFromUtf8).toList());
  }

  /** As {@link #expect(String...)}. */
  public static GatherOptions expect(Collection<ByteString> names) {
    return new GatherOptions(GatherRequest.newBuilder().addAllExpectedNames(names).build());
  }

  /** Renew the time to live of an entry that is there. */
  public GatherOptions touch() {
    return new GatherOptions(request.toBuilder().setTouch(true).build());
  }

  /** The own time to live of an entry that is created, and with touch of one that is there. */
  public GatherOptions ttl(Duration ttl) {
    return new GatherOptions(request.toBuilder().setTtl(Times.toProto(ttl)).build());
  }
}
