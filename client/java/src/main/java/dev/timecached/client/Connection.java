package dev.timecached.client;

import io.grpc.Channel;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/**
 * How the client gets connected. gRPC makes pauses of seconds to minutes between attempts to
 * connect; a client of a server that restarts wants to be back within about one. Thread-safe.
 */
final class Connection {
  private static final CompletableFuture<Boolean> UP = CompletableFuture.completedFuture(true);
  private static final CompletableFuture<Boolean> DOWN = CompletableFuture.completedFuture(false);

  /** How long a call waits for a connection that was refused, before it fails. */
  private static final long PATIENCE_MILLIS = 250;

  private static final Executor SOON =
      CompletableFuture.delayedExecutor(100, TimeUnit.MILLISECONDS);

  /** How long it waits for one of several addresses that does not answer. */
  private static final long MORE_PATIENCE_MILLIS = 1_000;

  final Channel plain;
  private final String address; // Null: that of the channel.
  private final ManagedChannel channel; // Null: the user's own, of which nothing is known.
  private final boolean isOneOfSeveral;
  private final Runnable beforeConnecting;
  private final TokenFile token; // Null: there is none.
  private final Backoff backoff = new Backoff(Duration.ofMillis(100), Duration.ofSeconds(1));

  // Guarded by this. The attempt that calls wait for, or that was the last.
  private CompletableFuture<Boolean> attempt = DOWN;
  private long nextAttemptAt = System.nanoTime();

  Connection(Channel channel, Runnable beforeConnecting, TokenFile token) {
    this(channel, null, beforeConnecting, token, false);
  }

  Connection(
      Channel channel,
      String address,
      Runnable beforeConnecting,
      TokenFile token,
      boolean isOneOfSeveral) {
    plain = channel;
    this.address = address;
    this.isOneOfSeveral = isOneOfSeveral;
    this.channel = channel instanceof ManagedChannel managed ? managed : null;
    this.beforeConnecting = beforeConnecting;
    this.token = token;
    if (this.channel != null) {
      follow();
    }
  }

  private void follow() {
    ConnectivityState state = channel.getState(false);
    if (state == ConnectivityState.SHUTDOWN) {
      return;
    }
    if (state == ConnectivityState.READY) {
      synchronized (this) {
        backoff.reset();
        nextAttemptAt = System.nanoTime();
        attempt.complete(true);
      }
    }
    channel.notifyWhenStateChanged(state, this::follow);
  }

  /** As it was given, or as gRPC names it. */
  String address() {
    return address != null ? address : plain.authority();
  }

  /** Not of a channel of the user's. */
  ManagedChannel channel() {
    return channel;
  }

  /**
   * What a call is to fail with for which there is no connection, where another address may do and
   * gRPC would wait for longer. Null: it says why there is none.
   */
  TimecacheException unreached() {
    if (!isOneOfSeveral || isRefused()) {
      return null;
    }
    return TimecacheException.of(Status.Code.UNAVAILABLE, "no connection to " + channel.authority())
        .withMaybeApplied(false);
  }

  private boolean isRefused() {
    ConnectivityState state = channel.getState(false);
    return state == ConnectivityState.TRANSIENT_FAILURE || state == ConnectivityState.SHUTDOWN;
  }

  /** Whether there is a connection, as far as gRPC knows. */
  boolean isReady() {
    return channel == null || channel.getState(false) == ConnectivityState.READY;
  }

  /** Whether its owner has closed it: there will be no connection any more. */
  boolean isShutdown() {
    return channel != null && channel.isShutdown();
  }

  /**
   * To be called before each call: connects if there is no connection, and waits for it for a
   * moment. While the server is away, only one call in 50 ms to 1 s does so; the others have their
   * answer at once. Returns whether there is a connection, as far as gRPC knows.
   */
  CompletableFuture<Boolean> await() {
    if (isReady()) {
      return UP;
    }
    synchronized (this) {
      if (!attempt.isDone()) {
        return attempt;
      }
      if (System.nanoTime() - nextAttemptAt < 0) {
        return DOWN;
      }
      long now = System.nanoTime();
      long patience = isOneOfSeveral ? MORE_PATIENCE_MILLIS : PATIENCE_MILLIS;
      nextAttemptAt = now + TimeUnit.MILLISECONDS.toNanos(patience) + backoff.nextNanos();
      attempt =
          new CompletableFuture<Boolean>()
              .completeOnTimeout(false, patience, TimeUnit.MILLISECONDS);
      beforeConnecting.run();
      // Where another server may do, one that refuses connections is not waited for.
      long patienceNanos = isOneOfSeveral ? 0 : TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS);
      connect(attempt, now + patienceNanos);
      return attempt;
    }
  }

  /** As {@link #await()}, but for no longer than so. */
  CompletableFuture<Boolean> await(long limitNanos) {
    CompletableFuture<Boolean> up = await();
    if (up.isDone() || limitNanos >= TimeUnit.MILLISECONDS.toNanos(MORE_PATIENCE_MILLIS)) {
      return up;
    }
    return up.copy().completeOnTimeout(false, Math.max(limitNanos, 0), TimeUnit.NANOSECONDS);
  }

  /**
   * Whether a call that began then, and failed so, may succeed with the token that was read since.
   */
  boolean hasNewToken(long begunAt, TimecacheException error) {
    return token != null
        && error.code() == Status.Code.UNAUTHENTICATED
        && token.hasChangedSince(begunAt);
  }

  /**
   * Why there is no token in place of the one that was refused, with which a call failed so: its
   * file cannot be read, and may hold one later. Null: that is not why. To be asked before {@link
   * #hasNewToken}, as another call may read it meanwhile.
   */
  TimecacheException unreadToken(TimecacheException error) {
    if (token == null || error.code() != Status.Code.UNAUTHENTICATED) {
      return null;
    }
    Exception why = token.unread();
    return why == null
        ? null
        : TimecacheException.of(
            Status.UNAVAILABLE.withDescription("token file").withCause(why), null);
  }

  private void connect(CompletableFuture<Boolean> current, long patientUntil) {
    if (current.isDone()) {
      return;
    }
    ConnectivityState state = channel.getState(true);
    if (state == ConnectivityState.READY || state == ConnectivityState.SHUTDOWN) {
      current.complete(state == ConnectivityState.READY);
      return;
    }
    if (state == ConnectivityState.TRANSIENT_FAILURE) {
      channel.resetConnectBackoff();
      if (System.nanoTime() - patientUntil >= 0) {
        current.complete(false);
        return;
      }
    }
    SOON.execute(() -> connect(current, patientUntil));
  }
}
