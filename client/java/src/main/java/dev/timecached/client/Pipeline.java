package dev.timecached.client;

import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.ExecuteResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.ObjIntConsumer;

/**
 * A stream of operations on one namespace, and of their results: the fastest way to the server.
 *
 * <p>Operations are done in the order in which they were added, each succeeds or fails by itself,
 * and their futures complete in that order. They are grouped into requests: what has been added is
 * sent when nothing is in flight, when it makes a full request, or by {@link #flush}. So a single
 * operation waits for nobody, and many share the cost of a message.
 *
 * <p>Every future completes: with its result, or, when the stream ends before, with the stream's
 * error, whose {@code maybeApplied} says whether the operation can have been done: it was sent. The
 * stream ends by {@link #close}, by {@link
 * #cancel}, or by itself: when the server stops (UNAVAILABLE), when the namespace does not exist
 * (NOT_FOUND), when the connection breaks, when no answer comes within the client's timeout
 * (DEADLINE_EXCEEDED). It goes on to the owner of a cluster where a node that is not the owner
 * refuses it; and where the connection breaks or the server stops, if all of its operations so far
 * are safe to repeat: then it sends again what was not answered, as often as {@link RetryPolicy}
 * says for one call. Otherwise it does not come back: whoever wants to go on makes a new pipeline.
 *
 * <p>Thread-safe. Memory is bounded by the options: {@link #add} waits while what is in flight
 * leaves no room; not so in what a future of this pipeline calls when it completes, which runs on a
 * thread of gRPC's and must be quick: no answer is read meanwhile, and the timeout does not count.
 */
public final class Pipeline implements AutoCloseable {
  private static final int MAX_OPERATION_BYTES = (16 << 20) + (64 << 10) - 128;

  private static final TimecacheException CANCELLED =
      TimecacheException.of(Status.Code.CANCELLED, "the pipeline was cancelled");

  /** One request. */
  private static final class Group {
    final ExecuteRequest.Builder request = ExecuteRequest.newBuilder();
    final List<Pending<?>> pending = new ArrayList<>();
    long bytes;
  }

  private final PipelineOptions options;
  private final long timeoutNanos;
  private final String namespace;
  private final Rpc rpc;
  private final Endpoints.Failover failover;
  private final Traced traced;

  // Guarded by this.
  private Rpc.Route route; // Of the last stream.
  private Rpc.Sending sending = new Rpc.Sending();
  private ClientCall<ExecuteRequest, ExecuteResponse> call; // Null until it is opened, or anew.
  private boolean halfClosed;
  private final Deque<Group> queue = new ArrayDeque<>(); // Full ones, then perhaps another.
  private final Deque<Group> sent = new ArrayDeque<>();
  private int operations;
  private long bytes;
  private boolean hasUnsafe; // An operation that may not be done twice.
  private int attempts; // Since the last answer.
  private Backoff backoff;
  private boolean flushing;
  private boolean closing;
  private boolean cancelled; // The call, which takes no more then.
  // When the last answer was told, or what waits for one began to.
  private long progressAt;
  private Future<?> check; // The next look for an answer; null: there is none.
  private Status status; // Null while the stream goes on.
  private TimecacheException error; // Why it ended, unless in good order.
  private Thread completing; // Completes futures now.

  Pipeline(Rpc rpc, String namespace, PipelineOptions options) {
    this.options = options;
    this.namespace = namespace;
    timeoutNanos = rpc.timeout == null ? Long.MAX_VALUE / 2 : Times.nanos(rpc.timeout);
    this.rpc = rpc;
    failover = rpc.endpoints.failover();
    backoff = rpc.backoff();
    traced =
        rpc.trace(
            TimeCacheServiceGrpc.getPipelineMethod(),
            ExecuteRequest.newBuilder().setNamespace(namespace).build());
    Rpc.Route first = rpc.route();
    try {
      open(first, Rpc.await(first.connection().await(timeoutNanos)));
    } catch (RuntimeException e) {
      traced.end(e);
      throw e;
    }
  }

  /** Begins the stream, for the first time or anew. */
  private void open(Rpc.Route to, boolean isUp) {
    TimecacheException unreached = isUp ? null : to.connection().unreached();
    synchronized (this) {
      route = to;
      sending = new Rpc.Sending();
      if (unreached == null && !cancelled) {
        call =
            traced
                .over(to.channel())
                .newCall(
                    TimeCacheServiceGrpc.getPipelineMethod(), sending.in(CallOptions.DEFAULT));
        call.start(new Listener(), new Metadata());
        call.request(2);
        send();
        if (halfClosed) {
          call.halfClose();
        }
        return;
      }
    }
    end(unreached == null ? Status.CANCELLED : Status.UNAVAILABLE, unreached);
  }

  /**
   * Whether a stream that ended so is begun elsewhere or anew: its node is not the owner, and one
   * that loses the ownership answers what it has read, and does no more; or it found no connection;
   * or it broke, and all may be done again.
   */
  private synchronized boolean reopens(TimecacheException why) {
    rpc.endpoints.moveOn(route.connection(), why);
    long pause = failover.pauseAfter(why, Rpc.isUnsent(why, sending));
    if (pause < 0 && isRepeatable() && why.isConnectionLost() && ++attempts < rpc.maxAttempts()) {
      pause = backoff.nextNanos();
    }
    if (pause < 0 || rpc.connection().isShutdown()) {
      return false;
    }
    traced.retry(why);
    call = null;
    while (!sent.isEmpty()) {
      queue.addFirst(sent.removeLast());
    }
    CompletableFuture.delayedExecutor(pause, TimeUnit.NANOSECONDS)
        .execute(
            () -> {
              Rpc.Route next = rpc.route();
              next.connection().await(timeoutNanos).thenAccept(isUp -> open(next, isUp));
            });
    return true;
  }

  private synchronized boolean isRepeatable() {
    return !hasUnsafe && !cancelled && !(closing && operations == 0);
  }

  /**
   * Adds an operation; waits for room. The future fails with INVALID_ARGUMENT for one of more than
   * 16 MiB, and with the stream's error if it has ended.
   *
   * @throws IllegalStateException after close
   */
  public <R> CompletableFuture<R> add(Operation<R> operation) {
    Pending<R> pending = new Pending<>(operation);
    dev.timecached.v1.Operation proto =
        operation.toProto(operation.traces(rpc.tracesEntries) ? traced.traceparent() : null);
    int size = proto.getSerializedSize();
    if (size > MAX_OPERATION_BYTES) {
      return CompletableFuture.failedFuture(
          TimecacheException.of(
              Status.Code.INVALID_ARGUMENT, "the operation is larger than 16 MiB"));
    }
    synchronized (this) {
      if (Thread.currentThread() != completing) {
        awaitAnswers(() -> hasRoom(size));
      }
      if (status != null) {
        return CompletableFuture.failedFuture(ended().rethrown().withMaybeApplied(false));
      }
      if (closing) {
        throw new IllegalStateException("the pipeline is closed");
      }
      Group group = queue.peekLast();
      if (group == null || isFull(group, size)) {
        group = new Group();
        queue.addLast(group);
      }
      if (operations == 0) {
        expectAnswer();
      }
      group.request.addOperations(proto);
      group.pending.add(pending);
      group.bytes += size;
      hasUnsafe |= !operation.isSafe();
      ++operations;
      bytes += size;
      send();
    }
    return pending.future();
  }

  /** Sends what has been added. */
  public synchronized void flush() {
    flushing = true;
    send();
  }

  /** Sends what has been added, and waits until all of it was answered or the stream has ended. */
  public synchronized void await() {
    flush();
    awaitAnswers(() -> operations == 0);
  }

  /**
   * Ends the stream in good order: takes no more, waits as {@link #await} does, and for the
   * server's word. May be called again. A thread that is interrupted meanwhile ends the stream as
   * {@link #cancel} does.
   *
   * @throws TimecacheException if the stream had ended before, by anything but {@link #cancel}; if
   *     the thread is interrupted
   */
  @Override
  public synchronized void close() {
    try {
      if (!closing) {
        closing = true;
        expectAnswer();
        await();
        halfClosed = true;
        if (status == null && !cancelled && call != null) {
          call.halfClose();
        }
      }
      awaitAnswers(() -> false);
    } catch (TimecacheException interrupted) {
      cancel();
      throw interrupted;
    }
    if (error != null && error != CANCELLED) {
      throw error.rethrown();
    }
  }

  /** Ends the stream at once: what is in flight fails with CANCELLED. Does not wait. */
  public void cancel() {
    cancel(CANCELLED);
  }

  private synchronized void cancel(TimecacheException why) {
    if (error == null && status == null) {
      error = why;
      cancelled = true;
      if (call != null) {
        call.cancel(why.description(), null);
      }
    }
  }

  private boolean isFull(Group group, int more) {
    return group.pending.size() >= options.batchOperationsMax()
        || group.bytes + more > options.batchBytesMax();
  }

  private boolean hasRoom(int size) {
    return operations == 0
        || (operations < options.operationsInFlightMax()
            && bytes + size <= options.bytesInFlightMax());
  }

  private TimecacheException ended() {
    return error != null
        ? error
        : TimecacheException.of(Status.Code.UNAVAILABLE, "the stream has ended");
  }

  /** Waits for a condition or the end of the stream. */
  private synchronized void awaitAnswers(BooleanSupplier condition) {
    while (status == null && !condition.getAsBoolean()) {
      try {
        wait();
      } catch (InterruptedException e) {
        throw Rpc.interrupted();
      }
    }
  }

  /** The server has the timeout from now on for an answer, or for its word after a close. */
  private synchronized void expectAnswer() {
    progressAt = System.nanoTime();
    if (check == null && status == null) {
      checkIn(timeoutNanos);
    }
  }

  /** About once in a timeout: answers need not wake it. */
  private synchronized void checkIn(long nanos) {
    check = Delay.after(nanos, () -> check(System.nanoTime()));
  }

  /** Ends the stream if no answer has come for the timeout. */
  synchronized void check(long now) {
    check = null;
    if (status != null || cancelled || (operations == 0 && !closing)) {
      return;
    }
    // While futures complete no answer is read.
    long left = completing == null ? progressAt + timeoutNanos - now : timeoutNanos;
    if (left > 0) {
      checkIn(left);
    } else {
      TimecacheException late =
          TimecacheException.of(Status.Code.DEADLINE_EXCEEDED, "no answer within the timeout");
      rpc.endpoints.moveOn(route.connection(), late);
      cancel(late);
    }
  }

  /** Sends what may be sent now. */
  private synchronized void send() {
    while (status == null
        && !cancelled
        && call != null
        && !queue.isEmpty()
        && sent.size() < options.requestsInFlightMax()) {
      Group head = queue.peekFirst();
      boolean isFull = queue.size() > 1 || head.pending.size() >= options.batchOperationsMax();
      if (!isFull && !flushing && !sent.isEmpty()) {
        return;
      }
      queue.removeFirst();
      sent.addLast(head);
      call.sendMessage(head.request.setNamespace(namespace).build());
    }
    if (queue.isEmpty()) {
      flushing = false;
    }
  }

  /** Tells what has become of a request, and makes room. */
  private void complete(Group group, ObjIntConsumer<Pending<?>> tell) {
    synchronized (this) {
      completing = Thread.currentThread();
    }
    for (int i = 0; i < group.pending.size(); ++i) {
      tell.accept(group.pending.get(i), i);
    }
    synchronized (this) {
      completing = null;
      operations -= group.pending.size();
      bytes -= group.bytes;
      progressAt = System.nanoTime();
      send();
      notifyAll();
    }
  }

  private final class Listener extends ClientCall.Listener<ExecuteResponse> {
    @Override
    public void onMessage(ExecuteResponse response) {
      call.request(1);
      Group group;
      synchronized (Pipeline.this) {
        group = sent.peekFirst();
        if (group == null || response.getResultsCount() != group.pending.size()) {
          cancel(TimecacheException.mismatch("operations"));
          return;
        }
        sent.removeFirst();
        failover.reset();
        attempts = 0;
        backoff = rpc.backoff();
        send();
      }
      complete(group, (pending, i) -> pending.complete(response.getResults(i)));
    }

    @Override
    public void onClose(Status end, Metadata trailers) {
      Pipeline.this.end(
          end, end.isOk() ? null : rpc.explain(end.asRuntimeException(trailers), sending));
    }
  }

  /** The stream has ended. {@code why}: null in good order. */
  private void end(Status end, TimecacheException why) {
    List<Group> left = new ArrayList<>();
    int sentCount;
    synchronized (this) {
      TimecacheException broke =
          why == null && end.isOk() && isRepeatable()
              ? TimecacheException.of(Status.Code.UNAVAILABLE, "the server is stopping")
              : why;
      if (error == null && broke != null && reopens(broke)) {
        return;
      }
      left.addAll(sent);
      sentCount = sending.hasBegun ? left.size() : 0;
      left.addAll(queue);
      sent.clear();
      queue.clear();
      if (error == null && (!end.isOk() || !left.isEmpty())) {
        error =
            end.isOk()
                ? TimecacheException.of(Status.Code.UNAVAILABLE, "the server is stopping")
                : why;
      }
      status = end;
      traced.end(error);
      if (check != null) {
        check.cancel(false); // It would keep the pipeline for as long as the timeout.
      }
    }
    for (Group group : left) {
      TimecacheException untold = ended().rethrown().withMaybeApplied(sentCount-- > 0);
      complete(group, (pending, i) -> pending.future().completeExceptionally(untold));
    }
    synchronized (this) {
      notifyAll();
    }
  }
}
