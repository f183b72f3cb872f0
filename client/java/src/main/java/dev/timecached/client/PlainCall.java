package dev.timecached.client;

import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.OperationResult;
import io.grpc.Status;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;

/**
 * One operation of a {@link TimecacheClient} or an {@link AsyncTimecache}, on its way through a
 * {@link SharedStream}; or by its own RPC, where that will not do. Thread-safe.
 *
 * @param <R> what it results in
 */
final class PlainCall<R> implements Runnable {
  /** A larger operation has a call of its own, so that no other waits behind it. */
  static final int SHARED_BYTES_MAX = 64 << 10;

  /** The outcome of an operation that needs its own RPC after all. */
  private static final Object UNARY = new Object();

  static final Status LATE =
      Status.DEADLINE_EXCEEDED.withDescription("no answer within the timeout");
  static final Status CANCELLED =
      Status.CANCELLED.withDescription("cancelled by the caller");
  static final Status INTERRUPTED =
      Status.CANCELLED.withDescription("the thread was interrupted");

  final dev.timecached.v1.Operation proto; // Null: it is not shared.
  final int bytes;
  final long deadline; // By System.nanoTime().
  final Later later; // Null: a thread waits.
  private final Rpc rpc;
  private final String namespace;
  private final Operation<R> operation;
  private final Traced traced;
  private final Thread waiter; // Null: it has a future.
  private volatile SharedStream stream; // Where it waits; null: nowhere.
  private OwnerNode owner; // Where it goes first; null: to the node that calls go to.

  // Guarded by the stream, until there is an outcome.
  SharedStream.Message message; // With which it was sent; null: it was not.
  private Rpc.Attempts attempts; // Null: none has failed.
  private boolean maybeApplied; // By an attempt that has failed.
  private String streamId;
  private volatile Object outcome; // An OperationResult, a TimecacheException, a Status, or UNARY.

  private PlainCall(Rpc rpc, String namespace, Operation<R> operation, boolean waits) {
    this.rpc = rpc;
    this.namespace = namespace;
    this.operation = operation;
    owner = rpc.ownerOf(namespace, operation.key());
    traced = rpc.trace(operation.method(), namespace, owner);
    deadline = System.nanoTime() + rpc.timeoutNanos();
    waiter = waits ? Thread.currentThread() : null;
    later = waits ? null : new Later();
    proto = rpc.sharesCalls ? operation.toProto(kept(), rpc.requestId, traced.sent()) : null;
    bytes = proto == null ? 0 : proto.getSerializedSize();
  }

  /** Does an operation, and waits for its result. */
  static <R> R call(Rpc rpc, String namespace, Operation<R> operation) {
    PlainCall<R> call = new PlainCall<>(rpc, namespace, operation, true);
    try {
      R result = call.isShared() ? call.await() : call.callAlone();
      call.traced.end(null);
      return result;
    } catch (RuntimeException e) {
      call.traced.end(e);
      throw e;
    }
  }

  /** Begins an operation. Cancelling the future cancels it. */
  static <R> CompletableFuture<R> start(Rpc rpc, String namespace, Operation<R> operation) {
    PlainCall<R> call = new PlainCall<>(rpc, namespace, operation, false);
    try {
      if (!call.isShared()) {
        call.later.startAlone();
      }
    } catch (TimecacheException e) { // There was no room for as long as it had.
      call.later.finish(null, e);
    }
    return call.later;
  }

  /** Adds it to the namespace's stream, if there is one to take it. */
  private boolean isShared() {
    if (proto == null || bytes > SHARED_BYTES_MAX) {
      return false;
    }
    do {
      stream = (owner == null ? rpc.endpoints.streams : owner.streams).get(namespace);
    } while (stream != null && !stream.add(this)); // It was evicted meanwhile.
    return stream != null;
  }

  private R await() {
    for (; ; ) {
      if (outcome != null) {
        return outcome == UNARY ? callAlone() : result();
      }
      if (Thread.currentThread().isInterrupted()) {
        abandon(INTERRUPTED);
      } else {
        LockSupport.park(this); // The stream sees to the deadline: a timer of its own costs more.
      }
    }
  }

  private R callAlone() {
    return operation.callAlone(rpc, namespace, attempts().at(owner), traced, kept());
  }

  private Rpc.Attempts attempts() {
    if (attempts == null) {
      attempts = rpc.attempts(operation.isSafe(), deadline);
    }
    return attempts;
  }

  private void abandon(Status why) {
    while (!stream.abandon(this, why)) {} // It has moved to another.
  }

  boolean isOf(SharedStream one) {
    return stream == one;
  }

  /** It is not to wait for its owner any more. */
  void moveTo(SharedStream next) {
    owner = null;
    message = null;
    stream = next;
  }

  private String kept() {
    return operation.traces(rpc.tracesEntries) ? traced.traceparent() : null;
  }

  boolean isDone() {
    return outcome != null;
  }

  /** By the stream, with its answer. False: that is none, as its owner was another one. */
  boolean answer(OperationResult result, String streamId) {
    if (outcome == null) {
      if (owner != null && BatchPart.isDisowned(result)) {
        return false;
      }
      this.streamId = streamId;
      boolean isTooLarge =
          result.hasError()
              && result.getError().getCode() == Status.Code.RESOURCE_EXHAUSTED.value()
              && TimecacheException.of(result.getError()).is(ErrorReason.MAX_RESPONSE_BYTES);
      outcome = isTooLarge ? UNARY : result;
    }
    return true;
  }

  /** After its last attempt, see {@link #pauseAfter}. */
  void fail(TimecacheException why) {
    outcome = why;
  }

  /** As its caller wants so. {@code maybeApplied}: by an attempt that is under way. */
  void abandon(Status why, boolean maybeApplied) {
    this.maybeApplied |= maybeApplied;
    outcome = why;
  }

  void fallBack() {
    outcome = UNARY;
  }

  /** Whether it may be repeated where its answer is too large for the channel. */
  boolean isSafe() {
    return operation.isSafe();
  }

  /**
   * After an attempt that failed: the nanoseconds until the next one, or a negative number where
   * there is none.
   */
  long pauseAfter(SharedStream.Failure failure) {
    maybeApplied |= failure.error().maybeApplied();
    attempts().attempted(failure.sending(), failure.begunAt(), maybeApplied);
    long pause = attempts.pauseAfter(failure.from(), failure.error(), failure.connected());
    if (pause >= 0) {
      traced.retry(failure.error());
    }
    return pause;
  }

  /** Wakes the thread that waits. */
  void wake() {
    LockSupport.unpark(waiter);
  }

  /** Completes the future. */
  @Override
  public void run() {
    if (outcome == UNARY) {
      later.startAlone();
      return;
    }
    try {
      later.finish(result(), null);
    } catch (RuntimeException e) { // Also of an answer that cannot be read.
      later.finish(null, TimecacheException.of(e));
    }
  }

  void expire() {
    abandon(LATE);
  }

  private R result() {
    if (outcome instanceof OperationResult result) {
      if (!result.hasError()) {
        return operation.result(result);
      }
      TimecacheException error = TimecacheException.of(result.getError(), idOr(streamId));
      throw error.withMaybeApplied(error.maybeApplied() || maybeApplied);
    }
    if (outcome instanceof Status why) {
      throw TimecacheException.of(why, null).withMaybeApplied(maybeApplied);
    }
    TimecacheException error = (TimecacheException) outcome;
    throw error.rethrown(error.requestId().map(this::idOr).orElse(null))
        .withMaybeApplied(maybeApplied);
  }

  /** Under which the server's log has it. */
  private String idOr(String ofStream) {
    return rpc.requestId == null ? ofStream : rpc.requestId;
  }

  /** The result of an operation for which no thread waits. */
  final class Later extends CompletableFuture<R> {
    private volatile CompletableFuture<R> alone; // Its own RPC.

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
      boolean cancelled = super.cancel(mayInterruptIfRunning);
      CompletableFuture<R> own = alone;
      if (cancelled && own != null) {
        own.cancel(true);
      } else if (cancelled && stream != null) {
        abandon(CANCELLED);
      }
      return cancelled;
    }

    private void startAlone() {
      CompletableFuture<R> own =
          operation.startAlone(rpc, namespace, attempts().at(owner), traced, kept());
      alone = own;
      if (isCancelled()) {
        own.cancel(true);
      }
      own.whenComplete(this::finish);
    }

    private void finish(R result, Throwable why) {
      traced.end(why);
      if (why == null) {
        complete(result);
      } else {
        completeExceptionally(why);
      }
    }
  }
}
