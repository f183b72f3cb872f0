package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.ListUnsettledRequest;

/** Which unsettled events to list. Immutable: each method returns options of its own. */
public final class UnsettledOptions {
  final ListUnsettledRequest request;

  /** All, without values. */
  public UnsettledOptions() {
    this(ListUnsettledRequest.getDefaultInstance());
  }

  private UnsettledOptions(ListUnsettledRequest request) {
    this.request = request;
  }

  /** Only keys that begin with this: at most 4 KiB. */
  public UnsettledOptions prefix(String prefix) {
    return prefix(ByteString.copyFromUtf8(prefix));
  }

  /** As {@link #prefix(String)}. */
  public UnsettledOptions prefix(ByteString prefix) {
    return new UnsettledOptions(request.toBuilder().setKeyPrefix(prefix).build());
  }

  /** With values and parts, as many as fit: another event has omittedValueBytes. */
  public UnsettledOptions includeValues() {
    return new UnsettledOptions(request.toBuilder().setIncludeValues(true).build());
  }

  /** How many events a call asks for: 100 unless given, at most 1,000. */
  public UnsettledOptions pageSize(int events) {
    return new UnsettledOptions(request.toBuilder().setPageSize(events).build());
  }
}
