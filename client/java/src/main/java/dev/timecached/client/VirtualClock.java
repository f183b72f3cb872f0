package dev.timecached.client;

import dev.timecached.testing.v1.AdvanceRequest;
import dev.timecached.testing.v1.NowRequest;
import dev.timecached.testing.v1.VirtualClockServiceGrpc;
import java.time.Duration;
import java.time.Instant;

/**
 * The clock of a server that was started with {@code --virtual-clock}: time stands still until it
 * is told to go on, so that a test of "after 30 minutes" takes a millisecond. It starts at
 * 1970-01-01T00:00:00Z and never goes back. All calls fail with UNIMPLEMENTED on another server.
 *
 * <p>Thread-safe; calls apply one after the other. An advance answers once everything due has been
 * swept and published with a watermark at the new time: a test that reads its watcher up to that
 * watermark has seen all.
 */
public final class VirtualClock {
  private final Rpc rpc;

  VirtualClock(Rpc rpc) {
    this.rpc = rpc;
  }

  /** Moves the clock on, and returns its time then. INVALID_ARGUMENT for a negative duration. */
  public Instant advance(Duration by) {
    return advance(AdvanceRequest.newBuilder().setBy(Times.toProto(by)).build(), false);
  }

  /** Moves the clock to a time. INVALID_ARGUMENT for one before now. */
  public Instant advanceTo(Instant to) {
    return advance(AdvanceRequest.newBuilder().setTo(Times.toProto(to)).build(), true);
  }

  /** The clock's time. */
  public Instant now() {
    return Times.fromProto(
        rpc.call(VirtualClockServiceGrpc.getNowMethod(), NowRequest.getDefaultInstance(), true)
            .getNow());
  }

  private Instant advance(AdvanceRequest request, boolean isSafe) {
    return Times.fromProto(
        rpc.call(VirtualClockServiceGrpc.getAdvanceMethod(), request, isSafe).getNow());
  }
}
