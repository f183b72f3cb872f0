package dev.timecached.client;

import com.google.protobuf.ByteString;

/**
 * One event, settled or extended.
 *
 * @param deliveryToken from the event
 * @param how what to do with it
 */
public record Settlement(ByteString deliveryToken, Settle how) {
  /** Of an event that a watch with {@link WatchOptions#group} has brought. */
  public static Settlement of(ExpiredEvent event, Settle how) {
    return new Settlement(event.deliveryToken(), how);
  }

  dev.timecached.v1.Settlement toProto() {
    dev.timecached.v1.Settlement.Builder builder =
        dev.timecached.v1.Settlement.newBuilder().setDeliveryToken(deliveryToken);
    how.set.accept(builder);
    return builder.build();
  }
}
