package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.ScanRequest;

/** What to scan. Immutable: each method returns options of its own. */
public final class ScanOptions {
  final ScanRequest request;

  /** All entries, with their values. */
  public ScanOptions() {
    this(ScanRequest.newBuilder().setMaxMessageBytes(Rpc.MAX_MESSAGE_BYTES).build());
  }

  private ScanOptions(ScanRequest request) {
    this.request = request;
  }

  /** Only keys that begin with this: at most 4 KiB. */
  public ScanOptions prefix(String prefix) {
    return prefix(ByteString.copyFromUtf8(prefix));
  }

  /** As {@link #prefix(String)}. */
  public ScanOptions prefix(ByteString prefix) {
    return new ScanOptions(request.toBuilder().setKeyPrefix(prefix).build());
  }

  /** Leave the values out. */
  public ScanOptions keysOnly() {
    return new ScanOptions(request.toBuilder().setKeysOnly(true).build());
  }

  /**
   * The largest message that the channel takes, at least 4 MiB: a value that does not fit is left
   * out. Only for {@link TimecacheClient#of} with a channel that takes less than 64 MiB.
   */
  public ScanOptions maxMessageBytes(int bytes) {
    return new ScanOptions(request.toBuilder().setMaxMessageBytes(bytes).build());
  }
}
