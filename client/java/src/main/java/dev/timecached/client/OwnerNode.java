package dev.timecached.client;

import dev.timecached.v1.ErrorReason;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import java.util.concurrent.TimeUnit;

/**
 * A node that owns partitions: whether calls go there, and by which connection. That is made when
 * the first one would, in the background. While there is none, and for a while after a call was not
 * answered, calls go to the node that others go to: none waits for this one. Thread-safe.
 */
final class OwnerNode {
  static final long PAUSE_NANOS_MIN = TimeUnit.SECONDS.toNanos(1);
  static final long PAUSE_NANOS_MAX = TimeUnit.SECONDS.toNanos(30);

  final String address;
  final SharedStreams streams;
  int namespaces; // That name it. Guarded by the owners.
  private final Owners owners;
  private volatile Rpc.Route route; // Null: it was not called yet.
  private volatile long freeAt; // By the owners' clock: left out until then.
  private volatile long pauseNanos = PAUSE_NANOS_MIN; // Of the next time that it is left out.
  private volatile long toldAt; // When owners were last told that it does not own.
  private boolean retired; // Guarded by this.

  OwnerNode(Owners owners, String address, SharedStreams others) {
    this.owners = owners;
    this.address = address;
    streams = new SharedStreams(others, this);
    freeAt = owners.now();
    toldAt = freeAt - Owners.HURRY_NANOS;
  }

  /** Where calls go; valid once it was ready. */
  Rpc.Route route() {
    return route;
  }

  /** Whether calls go there now. If not, it is seen to that later ones do. */
  boolean isReady(long now) {
    if (now - freeAt < 0) {
      return false;
    }
    Rpc.Route to = route;
    if (to != null && to.connection().isReady()) {
      return true;
    }
    connect(now);
    return false;
  }

  /** Left out until it is connected, or for a pause. */
  private void connect(long now) {
    Connection to;
    synchronized (this) {
      if (retired || !leaveOut(now)) {
        return;
      }
      if (route == null) {
        try {
          Connection made = owners.connect(address);
          route = new Rpc.Route(made, made.plain);
        } catch (RuntimeException e) { // It is no address, or not to see the token.
          freeAt = now + PAUSE_NANOS_MAX;
          return;
        }
      }
      to = route.connection();
    }
    to.await()
        .thenAccept(
            isUp -> {
              if (isUp) {
                freeAt = owners.now();
              } else {
                owners.doubt(this);
              }
            });
  }

  /** False: it is already. */
  private synchronized boolean leaveOut(long now) {
    if (now - freeAt < 0) {
      return false;
    }
    freeAt = now + pauseNanos;
    pauseNanos = Math.min(2 * pauseNanos, PAUSE_NANOS_MAX);
    return true;
  }

  /** It has answered. */
  void answered() {
    if (pauseNanos != PAUSE_NANOS_MIN) {
      pauseNanos = PAUSE_NANOS_MIN;
    }
  }

  /** A call or stream there has ended so. Not to be called under a lock. */
  void ended(TimecacheException why) {
    if (why.is(ErrorReason.NOT_OWNER)) {
      disowned();
    } else if (!why.isConnectionLost() && !isLate(why)) {
      answered();
    } else if (leaveOut(owners.now())) {
      owners.doubt(this);
    }
  }

  /** It has answered that it is not the owner. */
  void disowned() {
    long now = owners.now();
    if (now - toldAt >= Owners.HURRY_NANOS) {
      toldAt = now;
      owners.doubt(this);
    }
  }

  private static boolean isLate(TimecacheException why) {
    return why.code() == Status.Code.DEADLINE_EXCEEDED && why.reason().isEmpty();
  }

  /** No namespace names it any more: ends the connection behind what is under way. */
  void retire() {
    ManagedChannel last = close();
    streams.retire();
    if (last != null) {
      last.shutdown();
    }
  }

  /** No connection is made any more. Returns the one that was; null: none. */
  synchronized ManagedChannel close() {
    retired = true;
    return route == null ? null : route.connection().channel();
  }

  /** Whether nothing is left of one that was retired. */
  synchronized boolean isGone() {
    return retired && (route == null || route.connection().channel().isTerminated());
  }
}
