package dev.timecached.client;

import com.google.protobuf.ByteString;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.ClientStreamTracer;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.Function;

/** How a client's calls are done: channel, timeout, metadata, attempts. Thread-safe. */
final class Rpc {
  /** Largest message taken: a value of 16 MiB with its key, or a list of all namespaces. */
  static final int MAX_MESSAGE_BYTES = 64 << 20;

  private final Metadata headers;
  final Endpoints endpoints;
  final Duration timeout; // Null: none.
  private final RetryPolicy retry;
  private final boolean repeatable;
  final Tracing tracing; // Null: none.
  private final Traced untraced;
  final boolean tracesEntries;
  private final boolean batching;
  final String requestId; // That the caller gave; null: none.
  final boolean sharesCalls; // Plain calls bring nothing that an operation has no field for.
  private volatile Route lastRoute;

  /** Where one attempt goes. {@code channel}: with the headers. */
  record Route(Connection connection, Channel channel) {}

  Rpc(
      Endpoints endpoints,
      Metadata headers,
      Duration timeout,
      RetryPolicy retry,
      boolean repeatable,
      Tracing tracing,
      boolean tracesEntries,
      boolean batching) {
    this.endpoints = endpoints;
    this.headers = headers;
    this.timeout = timeout;
    this.retry = retry;
    this.repeatable = repeatable;
    this.tracing = tracing;
    untraced = Traced.none(headers);
    this.tracesEntries = tracesEntries;
    this.batching = batching;
    requestId = headers.get(TimecacheClient.REQUEST_ID);
    sharesCalls =
        batching
            && Set.of(TimecacheClient.REQUEST_ID.name(), Traced.TRACEPARENT.name())
                .containsAll(headers.keys());
    lastRoute = route(endpoints.current());
  }

  Rpc withTimeout(Duration timeout) {
    return new Rpc(
        endpoints, headers, timeout, retry, repeatable, tracing, tracesEntries, batching);
  }

  Rpc withRepeatable() {
    return new Rpc(endpoints, headers, timeout, retry, true, tracing, tracesEntries, batching);
  }

  Rpc withBatching(boolean batching) {
    return new Rpc(
        endpoints, headers, timeout, retry, repeatable, tracing, tracesEntries, batching);
  }

  /** For what a worker calls by itself. */
  Rpc withoutTracing() {
    return new Rpc(endpoints, headers, timeout, retry, repeatable, null, false, batching);
  }

  /** Begins the span of a call, if calls have any. */
  Traced trace(MethodDescriptor<?, ?> method, Object request) {
    return trace(method, request, null);
  }

  /** Of one that goes first to an owner. Null: it does not. */
  Traced trace(MethodDescriptor<?, ?> method, Object request, OwnerNode owner) {
    return tracing == null ? untraced : trace(method, Traced.namespaceOf(request), owner);
  }

  Traced trace(MethodDescriptor<?, ?> method, String namespace) {
    return trace(method, namespace, null);
  }

  Traced trace(MethodDescriptor<?, ?> method, String namespace, OwnerNode owner) {
    if (tracing == null) {
      return untraced;
    }
    String address = owner == null ? connection().address() : owner.address;
    return Traced.start(tracing, method, namespace, address, headers);
  }

  /** What is known of a namespace's owners. Null: calls do not go there. */
  NamespaceOwners ownersIn(String namespace) {
    Owners owners = endpoints.owners();
    return owners == null ? null : owners.in(namespace);
  }

  /** Where a call on a key goes first. Null: to the node that calls go to. */
  OwnerNode ownerOf(String namespace, ByteString key) {
    NamespaceOwners owners = ownersIn(namespace);
    return owners == null ? null : owners.of(key);
  }

  /** In place of what it has under the same keys: the server takes one of each. */
  Rpc withMetadata(Metadata metadata) {
    Metadata merged = new Metadata();
    merged.merge(headers);
    metadata.keys().forEach(name -> discard(merged, name));
    merged.merge(metadata);
    return new Rpc(
        endpoints, merged, timeout, retry, repeatable, tracing, tracesEntries, batching);
  }

  /** Whether calls bring nothing but their timeout, so that several can be one RPC. */
  boolean isPlain() {
    return batching && tracing == null && !repeatable && headers.keys().isEmpty();
  }

  /** Where calls go now. */
  Route route() {
    Connection connection = endpoints.current();
    Route route = lastRoute;
    if (route.connection() != connection) {
      route = route(connection);
      lastRoute = route;
    }
    return route;
  }

  private Route route(Connection connection) {
    Channel channel = connection.plain;
    return new Route(
        connection,
        headers.keys().isEmpty()
            ? channel
            : ClientInterceptors.intercept(
                channel, MetadataUtils.newAttachHeadersInterceptor(headers)));
  }

  /** The connection that calls use now. */
  Connection connection() {
    return endpoints.current();
  }

  private static void discard(Metadata metadata, String name) {
    if (name.endsWith(Metadata.BINARY_HEADER_SUFFIX)) {
      metadata.discardAll(Metadata.Key.of(name, Metadata.BINARY_BYTE_MARSHALLER));
    } else {
      metadata.discardAll(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
    }
  }

  /** For how long a call may take. */
  long timeoutNanos() {
    return timeout == null ? Long.MAX_VALUE / 2 : Times.nanos(timeout);
  }

  /** Without what only some calls have: for the streams that a client begins. */
  CallOptions callOptions() {
    return timeout == null
        ? CallOptions.DEFAULT
        : CallOptions.DEFAULT.withDeadlineAfter(Times.nanos(timeout), TimeUnit.NANOSECONDS);
  }

  /** Attempts of a call that is safe to repeat. */
  int maxAttempts() {
    return retry.maxAttempts();
  }

  /** The pauses between them. */
  Backoff backoff() {
    return new Backoff(retry.minPause(), retry.maxPause());
  }

  /** What a call that has failed so throws. */
  TimecacheException explain(Throwable why, Sending sending) {
    if (why instanceof TimecacheException known) {
      return known;
    }
    TimecacheException error = TimecacheException.of(why);
    if (!sending.hasBegun) {
      error.withMaybeApplied(false);
    }
    // So gRPC ends what is under way, and refuses what comes later.
    return connection().isShutdown() && error.isConnectionLost()
        ? TimecacheException.closed(error.maybeApplied())
        : error;
  }

  /** Whether a call was given to a connection: else it cannot have been done. */
  static final class Sending extends ClientStreamTracer.Factory {
    volatile boolean hasBegun;

    @Override
    public ClientStreamTracer newClientStreamTracer(
        ClientStreamTracer.StreamInfo info, Metadata headers) {
      // gRPC repeats by itself what the server says, by GOAWAY, that it has not looked at.
      if (info.isTransparentRetry()) {
        hasBegun = false;
      }
      return new ClientStreamTracer() {
        // The first that a connection hears: outboundHeaders comes when the server may have them.
        @Override
        public void outboundMessage(int seqNo) {
          hasBegun = true;
        }
      };
    }

    CallOptions in(CallOptions options) {
      return options.withStreamTracerFactory(this);
    }
  }

  /** Whether there was no connection for a call that failed so. */
  static boolean isUnsent(TimecacheException error, Sending sending) {
    return error.code() == Status.Code.UNAVAILABLE
        && error.reason().isEmpty()
        && !sending.hasBegun;
  }

  /** Does a call on the thread that asks for it. */
  <Q, A> A call(MethodDescriptor<Q, A> method, Q request, boolean isSafe) {
    return call(method, request, isSafe, null);
  }

  /** {@code keep}: puts the call's traceparent into the request; null: it is not kept. */
  <Q, A> A call(
      MethodDescriptor<Q, A> method, Q request, boolean isSafe, BiFunction<Q, String, Q> keep) {
    return call(method, request, isSafe, keep, null);
  }

  /** The same that goes first to an owner. Null: it does not. */
  <Q, A> A call(
      MethodDescriptor<Q, A> method,
      Q request,
      boolean isSafe,
      BiFunction<Q, String, Q> keep,
      OwnerNode owner) {
    Traced traced = trace(method, request, owner);
    try {
      Attempts attempts = new Attempts(isSafe, callOptions()).at(owner);
      A answer = attempt(method, kept(request, traced, keep), attempts, traced);
      traced.end(null);
      return answer;
    } catch (RuntimeException e) {
      traced.end(e);
      throw e;
    }
  }

  private static <Q> Q kept(Q request, Traced traced, BiFunction<Q, String, Q> keep) {
    boolean isKept = keep != null && traced.traceparent() != null;
    return isKept ? keep.apply(request, traced.traceparent()) : request;
  }

  /** The attempts of a call that ends then, by System.nanoTime(). */
  Attempts attempts(boolean isSafe, long deadline) {
    return new Attempts(isSafe, optionsUntil(deadline));
  }

  /**
   * The same, where the future completes on gRPC's own threads: what that runs must not wait, and
   * does not depend on the client's executor.
   */
  Attempts transportAttempts(boolean isSafe, long deadline) {
    return new Attempts(isSafe, optionsUntil(deadline).withExecutor(Runnable::run));
  }

  private CallOptions optionsUntil(long deadline) {
    return timeout == null
        ? CallOptions.DEFAULT
        : CallOptions.DEFAULT.withDeadlineAfter(
            deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
  }

  <Q, A> A attempt(MethodDescriptor<Q, A> method, Q request, Attempts attempts, Traced traced) {
    for (; ; ) {
      Route to = attempts.route();
      boolean connected = await(to.connection().await(attempts.patienceNanos()));
      CallOptions options = attempts.begin();
      TimecacheException error = connected ? null : attempts.unreached(to);
      if (error == null) {
        try {
          A answer =
              ClientCalls.blockingUnaryCall(
                  traced.over(to.channel()), method, options, request);
          attempts.answered();
          return answer;
        } catch (RuntimeException e) {
          error = attempts.explain(e);
        }
      }
      long pause = attempts.pauseAfter(to, error, connected);
      if (pause < 0) {
        throw error;
      }
      traced.retry(error);
      sleep(pause);
    }
  }

  /** Begins a call. Cancelling the future cancels the call. */
  <Q, A, R> CompletableFuture<R> start(
      MethodDescriptor<Q, A> method, Q request, boolean isSafe, Function<A, R> convert) {
    return start(method, request, isSafe, convert, null);
  }

  /** The same with a {@code keep} as of {@link #call}. */
  <Q, A, R> CompletableFuture<R> start(
      MethodDescriptor<Q, A> method,
      Q request,
      boolean isSafe,
      Function<A, R> convert,
      BiFunction<Q, String, Q> keep) {
    return start(method, request, new Attempts(isSafe, callOptions()), keep, null, convert);
  }

  /** The same that goes first to an owner. Null: it does not. */
  <Q, A, R> CompletableFuture<R> start(
      MethodDescriptor<Q, A> method,
      Q request,
      Attempts attempts,
      BiFunction<Q, String, Q> keep,
      OwnerNode owner,
      Function<A, R> convert) {
    Traced traced = trace(method, request, owner);
    CompletableFuture<R> future =
        start(method, kept(request, traced, keep), attempts.at(owner), traced, convert);
    if (tracing != null) {
      future.whenComplete((answer, why) -> traced.end(why));
    }
    return future;
  }

  <Q, A, R> CompletableFuture<R> start(
      MethodDescriptor<Q, A> method,
      Q request,
      Attempts attempts,
      Traced traced,
      Function<A, R> convert) {
    CallFuture<Q, A, R> future = new CallFuture<>(method, request, convert, attempts, traced);
    future.attempt();
    return future;
  }

  /** What a future of this client's came to, or throws. */
  static <R> R await(CompletableFuture<R> future) {
    try {
      return future.get();
    } catch (ExecutionException e) {
      throw TimecacheException.of(e.getCause()).rethrown();
    } catch (CancellationException e) {
      throw TimecacheException.of(Status.Code.CANCELLED, "the call was cancelled");
    } catch (InterruptedException e) {
      throw interrupted();
    }
  }

  static void sleep(long nanos) {
    try {
      TimeUnit.NANOSECONDS.sleep(nanos);
    } catch (InterruptedException e) {
      throw interrupted();
    }
  }

  static TimecacheException interrupted() {
    Thread.currentThread().interrupt();
    return TimecacheException.of(Status.Code.CANCELLED, "the thread was interrupted");
  }

  /** Whether and when a call is tried again. */
  final class Attempts {
    private final CallOptions options;
    private final Backoff backoff = Rpc.this.backoff();
    private Endpoints.Failover failover; // Null: nothing has failed yet.
    private OwnerNode owner; // To which the next one goes; null: to the node that calls go to.
    private int left;
    private long begunAt;
    private boolean hasNewToken;
    private boolean maybeApplied; // By an attempt before the last.
    private volatile Sending sending = new Sending();

    private Attempts(boolean isSafe, CallOptions options) {
      this.options = options;
      left = isSafe || repeatable ? retry.maxAttempts() - 1 : 0;
    }

    /** One on a stream, which began then. {@code maybeApplied}: by it or one before. */
    void attempted(Sending sending, long begunAt, boolean maybeApplied) {
      this.sending = sending;
      this.begunAt = begunAt;
      this.maybeApplied |= maybeApplied;
    }

    /** The first one is to go there. Null: it does not. */
    Attempts at(OwnerNode first) {
      owner = first;
      return this;
    }

    /** Where the next one goes. */
    Route route() {
      if (owner == null) {
        return Rpc.this.route();
      }
      return headers.keys().isEmpty() ? owner.route() : Rpc.this.route(owner.route().connection());
    }

    /** For how long it may wait for a connection: to an owner not at all. */
    long patienceNanos() {
      return owner == null ? nanosLeft() : 0;
    }

    void answered() {
      if (owner != null) {
        owner.answered();
      }
    }

    CallOptions begin() {
      begunAt = System.nanoTime();
      sending = new Sending();
      return sending.in(options);
    }

    TimecacheException explain(Throwable why) {
      TimecacheException error = Rpc.this.explain(why, sending);
      maybeApplied |= error.maybeApplied();
      return error.withMaybeApplied(maybeApplied);
    }

    /** Null: the call itself says why there is no connection, or that the time is up. */
    TimecacheException unreached(Route to) {
      TimecacheException error = nanosLeft() <= 0 ? null : to.connection().unreached();
      return error == null ? null : explain(error);
    }

    long nanosLeft() {
      Deadline deadline = options.getDeadline();
      return deadline == null ? Long.MAX_VALUE : deadline.timeRemaining(TimeUnit.NANOSECONDS);
    }

    /**
     * Nanoseconds until the next attempt, after one that failed; negative: there is none. Only a
     * server gives reasons; without one and without a connection, also a late one, there was none.
     */
    long pauseAfter(Route from, TimecacheException error, boolean connected) {
      if (owner != null && hasLeftOwner(error)) {
        return 0;
      }
      if (!hasNewToken && from.connection().hasNewToken(begunAt, error)) {
        hasNewToken = true;
        return 0; // The server refused it before it did anything.
      }
      endpoints.moveOn(from.connection(), error);
      failover = failover == null ? endpoints.failover() : failover;
      long elsewhere = failover.pauseAfter(error, isUnsent(error, sending));
      if (elsewhere >= 0) {
        boolean isOver = connection().isShutdown() || Thread.currentThread().isInterrupted();
        return isOver || nanosLeft() <= elsewhere ? -1 : elsewhere;
      }
      if (left-- <= 0
          || !error.isConnectionLost()
          || connection().isShutdown()
          || !(connected || sending.hasBegun || error.reason().isPresent())
          || Thread.currentThread().isInterrupted()) {
        return -1;
      }
      long pause = backoff.nextNanos();
      return nanosLeft() <= pause ? -1 : pause;
    }

    /** What follows goes where calls go; at once, where the owner has not done it. */
    private boolean hasLeftOwner(TimecacheException error) {
      boolean isOver = Thread.currentThread().isInterrupted() || connection().isShutdown();
      if (!isOver) {
        owner.ended(error);
      }
      owner = null;
      return !isOver && error.isUndone() && nanosLeft() > 0;
    }
  }

  private final class CallFuture<Q, A, R> extends CompletableFuture<R> {
    private final MethodDescriptor<Q, A> method;
    private final Q request;
    private final Function<A, R> convert;
    private final Attempts attempts;
    private final Traced traced;
    private volatile ClientCall<Q, A> call;

    CallFuture(
        MethodDescriptor<Q, A> method,
        Q request,
        Function<A, R> convert,
        Attempts attempts,
        Traced traced) {
      this.traced = traced;
      this.method = method;
      this.request = request;
      this.convert = convert;
      this.attempts = attempts;
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
      boolean cancelled = super.cancel(mayInterruptIfRunning);
      ClientCall<Q, A> current = call;
      if (cancelled && current != null) {
        current.cancel("cancelled by the caller", null);
      }
      return cancelled;
    }

    void attempt() {
      Route to = attempts.route();
      CompletableFuture<Boolean> up = to.connection().await(attempts.patienceNanos());
      if (up.isDone()) {
        begin(to, up.join());
      } else {
        up.thenAccept(connected -> begin(to, connected));
      }
    }

    private void begin(Route to, boolean connected) {
      try {
        beginCall(to, connected);
      } catch (RuntimeException e) { // Of an interceptor.
        completeExceptionally(TimecacheException.of(e));
      }
    }

    private void beginCall(Route to, boolean connected) {
      CallOptions options = attempts.begin();
      TimecacheException unreached = connected ? null : attempts.unreached(to);
      if (unreached != null) {
        fail(to, unreached, connected);
        return;
      }
      call = traced.over(to.channel()).newCall(method, options);
      if (isDone()) {
        return;
      }
      ClientCalls.asyncUnaryCall(
          call,
          request,
          new io.grpc.stub.StreamObserver<A>() {
            private A answer;

            @Override
            public void onNext(A value) {
              answer = value;
            }

            @Override
            public void onError(Throwable error) {
              fail(to, attempts.explain(error), connected);
            }

            @Override
            public void onCompleted() {
              attempts.answered();
              try {
                complete(convert.apply(answer));
              } catch (RuntimeException e) {
                completeExceptionally(TimecacheException.of(e));
              }
            }
          });
      if (isCancelled()) {
        call.cancel("cancelled by the caller", null);
      }
    }

    private void fail(Route from, TimecacheException error, boolean connected) {
      long pause = isDone() ? -1 : attempts.pauseAfter(from, error, connected);
      if (pause < 0) {
        completeExceptionally(error);
      } else {
        traced.retry(error);
        CompletableFuture.delayedExecutor(pause, TimeUnit.NANOSECONDS).execute(this::attempt);
      }
    }
  }
}
