package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.ConsumeExpiredRequest;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.TimeCacheServiceGrpc;
import dev.timecached.v1.WatchExpiredRequest;
import dev.timecached.v1.WatchExpiringRequest;
import dev.timecached.v1.WatchStart;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * A watch on the deaths in one or more namespaces.
 *
 * <p>Reconnects by itself, and goes on behind the last batch that {@code next} has returned: every
 * event comes exactly once, or is counted in {@code lost}. Only where there is nothing to go on
 * with, as a server without a journal was restarted or the namespace made anew, does it begin anew,
 * with the oldest event that is retained; it then says {@code logChanged}. To go on in another
 * process, store each batch's resume token once it is handled.
 *
 * <p>A break is: UNAVAILABLE, a stream that the server closed in good order (it stops) or reset
 * (ENHANCE_YOUR_CALM), a connection that is lost, {@link WatchOptions#silenceMax}, or, once, a message larger than the
 * channel takes. So is UNAUTHENTICATED where {@link TimecacheClientBuilder#tokenFile} now holds
 * another token than the one that was refused, as when tokens are replaced; that one is tried at
 * once, and only once; and, but for the first attempt, where the file cannot be read: it may hold
 * one later. Anything else that the server says ends the watch: NOT_FOUND (no such namespace or
 * group, or deleted meanwhile), INVALID_ARGUMENT, PERMISSION_DENIED, RESOURCE_EXHAUSTED
 * (MAX_WATCHERS) at the first attempt, and with {@link WatchOptions#failOnLoss} a loss. So does,
 * with CANCELLED, a client that is closed.
 *
 * <p>In a group, or with a lead time, there is no place to go on from: what was given and not
 * settled is given out again, what is going to die is told again.
 *
 * <p>{@code next} by one thread at a time; {@code close} by any. Holds at most two unread messages
 * (about 1 MiB each, more only for a larger value): who reads slowly is held up by flow control,
 * and finally told by {@code lost}. Has no thread of its own.
 */
public final class Watcher implements Iterable<WatchBatch>, AutoCloseable {
  private static final int GRPC_MAX_MESSAGE_BYTES = 4 << 20;

  private static final class Position {
    Instant watermark; // Of the last batch; null: there was none.
    ByteString resumeToken = ByteString.EMPTY;
    // No batch since the last break, or since the log was another.
    boolean broken;
    boolean logChanged;
  }

  private final Rpc rpc;
  private final WatchOptions options;
  private final List<String> namespaces;

  // Touched by next alone.
  private final Map<String, Position> positions = new HashMap<>();
  private final Backoff backoff;
  private final long silenceNanos;
  private int maxMessageBytes;
  private boolean established; // Whether any batch has come.
  private Rpc.Route route; // Of the last stream.
  private final Endpoints.Failover failover;
  private boolean delivered; // Whether a batch has come on this stream.
  // Since the last batch: a file with ever another token would be read for ever.
  private boolean hasTriedNewToken;
  private long nextAttemptAt = System.nanoTime();
  private TimecacheException end; // What the watch ended with.

  // Guarded by this.
  private boolean closed;
  private Stream<?, ?> stream;

  Watcher(Rpc rpc, String namespace, WatchOptions options) {
    options.check();
    this.rpc = rpc;
    this.options = options;
    namespaces = options.namespaces.isEmpty() ? List.of(namespace) : options.namespaces;
    backoff = new Backoff(options.minPause, options.maxPause);
    silenceNanos = rpc.endpoints.silenceNanos(options.silenceMax, options.heartbeat);
    failover = rpc.endpoints.failover();
    maxMessageBytes = options.maxMessageBytes;
    namespaces.forEach(name -> positions.put(name, new Position()));
    options.resumeTokens.forEach(
        (name, token) ->
            positions.computeIfAbsent(name, unused -> new Position()).resumeToken = token);
  }

  /**
   * The next batch. The first one of each namespace comes at once: from then on the watch stands,
   * and every later death there will be seen.
   *
   * @throws TimecacheException CANCELLED after close, or if the thread is interrupted, which does
   *     not end the watch; any other error is the watch's end, and every later call throws the same
   */
  public WatchBatch next() {
    return nextBefore(System.nanoTime() + Long.MAX_VALUE / 2);
  }

  /** The next batch, or nothing if none comes within the timeout: the watch goes on then. */
  public Optional<WatchBatch> next(Duration timeout) {
    return Optional.ofNullable(nextBefore(System.nanoTime() + Times.nanos(timeout)));
  }

  /** The batches to come, until the watcher is closed. Throws what ends the watch otherwise. */
  @Override
  public Iterator<WatchBatch> iterator() {
    return new Iterator<>() {
      private WatchBatch ahead;

      @Override
      public boolean hasNext() {
        try {
          if (ahead == null) {
            ahead = Watcher.this.next();
          }
          return true;
        } catch (TimecacheException e) {
          if (isClosed()) {
            return false;
          }
          throw e;
        }
      }

      @Override
      public WatchBatch next() {
        if (!hasNext()) {
          throw new NoSuchElementException();
        }
        WatchBatch batch = ahead;
        ahead = null;
        return batch;
      }
    };
  }

  /** Ends the watch: a {@code next} that waits throws CANCELLED, as does every later one. */
  @Override
  public synchronized void close() {
    closed = true;
    if (stream != null) {
      stream.cancel();
    }
    notifyAll();
  }

  private synchronized boolean isClosed() {
    return closed;
  }

  /** Null: the time is up. */
  private WatchBatch nextBefore(long giveUpAt) {
    for (; ; ) {
      Stream<?, ?> current;
      synchronized (this) {
        if (closed) {
          throw TimecacheException.of(Status.Code.CANCELLED, "the watch was closed");
        }
        current = stream;
      }
      if (end != null) {
        throw end.rethrown();
      }
      if (current == null) {
        if (!open(giveUpAt) && System.nanoTime() - giveUpAt >= 0) {
          return null;
        }
        continue;
      }
      long silentAt = current.waitingSince + silenceNanos;
      WatchBatch message = current.await(silentAt - giveUpAt < 0 ? silentAt : giveUpAt);
      if (message != null) {
        return accept(message);
      } else if (current.hasEnded()) {
        handleEnd(current.error());
      } else if (System.nanoTime() - silentAt >= 0) {
        current.cancel();
        handleEnd(TimecacheException.of(Status.Code.UNAVAILABLE, "the server fell silent"));
      } else {
        return null;
      }
    }
  }

  /** Waits for the pause to be over, and opens the stream. False if that would be too late. */
  private boolean open(long giveUpAt) {
    synchronized (this) {
      while (!closed && System.nanoTime() - nextAttemptAt < 0) {
        if (System.nanoTime() - giveUpAt >= 0) {
          return false;
        }
        waitUntil(nextAttemptAt - giveUpAt < 0 ? nextAttemptAt : giveUpAt);
      }
    }
    // Without a connection the stream fails, and says why there is none.
    route = rpc.route();
    delivered = false;
    boolean isUp = Rpc.await(route.connection().await(giveUpAt - System.nanoTime()));
    if (!isUp && System.nanoTime() - giveUpAt >= 0) {
      return false;
    }
    TimecacheException unreached = isUp ? null : route.connection().unreached();
    if (unreached != null) {
      handleEnd(unreached);
      return false;
    }
    synchronized (this) {
      if (closed) {
        return false;
      }
      stream = begin();
      return true;
    }
  }

  /** Begins where the last stream has ended. */
  private Stream<?, ?> begin() {
    if (options.leadTime != null) {
      WatchExpiringRequest.Builder request =
          WatchExpiringRequest.newBuilder()
              .addAllNamespaces(namespaces)
              .setLeadTime(Times.toProto(options.leadTime))
              .setKeyPrefix(options.prefix)
              .setKeysOnly(options.keysOnly)
              .setMaxMessageBytes(maxMessageBytes);
      if (options.heartbeat != null) {
        request.setHeartbeatInterval(Times.toProto(options.heartbeat));
      }
      return new Stream<>(
          TimeCacheServiceGrpc.getWatchExpiringMethod(),
          request.build(),
          answer ->
              WatchBatch.of(
                  answer.getNamespace(),
                  answer.getEventsList(),
                  answer.getWatermark(),
                  0,
                  ByteString.EMPTY));
    }
    if (options.group != null) {
      ConsumeExpiredRequest.Builder request =
          ConsumeExpiredRequest.newBuilder()
              .addAllNamespaces(namespaces)
              .setGroup(options.group)
              // One that has to be made again leaves nothing out.
              .setStart(start(established || options.fromEarliest))
              .setKeysOnly(options.keysOnly)
              .setMaxMessageBytes(maxMessageBytes);
      if (options.maxInFlight != null) {
        request.setMaxInFlight(options.maxInFlight);
      }
      if (options.heartbeat != null) {
        request.setHeartbeatInterval(Times.toProto(options.heartbeat));
      }
      return new Stream<>(
          TimeCacheServiceGrpc.getConsumeExpiredMethod(),
          request.build(),
          answer ->
              WatchBatch.of(
                  answer.getNamespace(),
                  answer.getEventsList(),
                  answer.getWatermark(),
                  answer.getLost(),
                  ByteString.EMPTY));
    }
    WatchExpiredRequest.Builder request =
        WatchExpiredRequest.newBuilder()
            .addAllNamespaces(namespaces)
            .setKeyPrefix(options.prefix)
            .setKeysOnly(options.keysOnly)
            .setFailOnLoss(options.failOnLoss)
            .setMaxMessageBytes(maxMessageBytes);
    if (options.heartbeat != null) {
      request.setHeartbeatInterval(Times.toProto(options.heartbeat));
    }
    // Namespaces without a token all begin alike: where one needs all of its log, another that has
    // not begun gets more than was asked, never less.
    boolean fromEarliest = options.fromEarliest;
    for (Position position : positions.values()) {
      fromEarliest |= position.logChanged;
      if (!position.resumeToken.isEmpty()) {
        request.addResumeTokens(position.resumeToken);
      }
    }
    return new Stream<>(
        TimeCacheServiceGrpc.getWatchExpiredMethod(),
        request.setStart(start(fromEarliest)).build(),
        answer ->
            WatchBatch.of(
                answer.getNamespace(),
                answer.getEventsList(),
                answer.getWatermark(),
                answer.getLost(),
                answer.getResumeToken()));
  }

  private static WatchStart start(boolean fromEarliest) {
    return fromEarliest ? WatchStart.WATCH_START_EARLIEST : WatchStart.WATCH_START_UNSPECIFIED;
  }

  private WatchBatch accept(WatchBatch message) {
    established = true;
    delivered = true;
    hasTriedNewToken = false;
    backoff.reset();
    failover.reset();
    Position position = positions.computeIfAbsent(message.namespace(), name -> new Position());
    WatchBatch batch =
        message.after(
            position.broken, position.logChanged, position.logChanged ? position.watermark : null);
    position.broken = false;
    position.logChanged = false;
    position.watermark = batch.watermark();
    position.resumeToken = batch.resumeToken();
    return batch;
  }

  private void handleEnd(TimecacheException error) {
    long begunAt;
    synchronized (this) {
      begunAt = stream == null ? System.nanoTime() : stream.begunAt;
      stream = null;
      if (closed) {
        return;
      }
    }
    boolean isOrderly = error == null;
    TimecacheException why =
        isOrderly
            ? TimecacheException.of(Status.Code.UNAVAILABLE, "the server is stopping")
            : error;
    if (rpc.connection().isShutdown()) {
      end = TimecacheException.closed(false);
      return;
    }
    rpc.endpoints.moveOn(route.connection(), why);
    if (beginsAnew(why) || triesElsewhere(why)) {
      return;
    }
    TimecacheException unread = hasTriedNewToken ? null : route.connection().unreadToken(why);
    boolean hasNewToken = !hasTriedNewToken && route.connection().hasNewToken(begunAt, why);
    TimecacheException cause = unread != null && !hasNewToken ? unread : why;
    if (!hasNewToken && !isBreak(cause) && !takesSmallerMessages(why)) {
      end = why;
      return;
    }
    hasTriedNewToken |= hasNewToken;
    positions.values().forEach(position -> position.broken = established);
    // With another token at once: the server is there.
    nextAttemptAt = System.nanoTime() + (hasNewToken ? 0 : backoff.nextNanos());
    options.onBreak.accept(cause);
  }

  /**
   * Whether a stream that has brought nothing is begun elsewhere: its node was not the owner, or
   * the watch has not tried each address yet. Of a stream before it the break was told.
   */
  private boolean triesElsewhere(TimecacheException why) {
    boolean isFirst = !established && !options.waitForServer;
    long pause = delivered ? -1 : failover.pauseAfter(why, isFirst && why.isConnectionLost());
    if (pause < 0) {
      return false;
    }
    nextAttemptAt = System.nanoTime() + pause;
    return true;
  }

  /**
   * Whether the server has refused the token of a namespace, which has another log now, and the
   * watch may begin that one anew. Each time a token goes, so that this comes to an end.
   */
  private boolean beginsAnew(TimecacheException why) {
    if (options.failOnLoss
        || !(why.is(ErrorReason.LOG_CHANGED) || why.is(ErrorReason.RESUME_POINT_AHEAD))) {
      return false;
    }
    Position position = positions.get(why.metadata().getOrDefault("namespace", ""));
    if (position == null || position.resumeToken.isEmpty()) {
      return false;
    }
    position.resumeToken = ByteString.EMPTY;
    position.logChanged = true;
    return true;
  }

  /**
   * Whether a message came that is too large for the channel, and smaller ones may be asked for.
   */
  private boolean takesSmallerMessages(TimecacheException why) {
    if (!why.isMessageTooLarge() || maxMessageBytes <= GRPC_MAX_MESSAGE_BYTES) {
      return false;
    }
    maxMessageBytes = GRPC_MAX_MESSAGE_BYTES;
    return true;
  }

  /** A server that ends the stream with a reason of its own means it, but where that passes. */
  private boolean isBreak(TimecacheException why) {
    return (established || options.waitForServer)
        && (why.isConnectionLost()
            || why.is(ErrorReason.MAX_WATCHERS)
            || why.is(ErrorReason.MAX_EXPIRING_WATCHERS));
  }

  private synchronized void waitUntil(long time) {
    try {
      TimeUnit.NANOSECONDS.timedWait(this, Math.max(time - System.nanoTime(), 1));
    } catch (InterruptedException e) {
      throw Rpc.interrupted();
    }
  }

  /** One call. Its state is guarded by the watcher's monitor. */
  private final class Stream<Q, A> extends ClientCall.Listener<A> {
    private final ClientCall<Q, A> call;
    private final Function<A, WatchBatch> convert;
    private final Rpc.Sending sending = new Rpc.Sending();
    private WatchBatch message; // That was not taken.
    private Status status; // Null while it goes on.
    private Metadata trailers;
    final long begunAt = System.nanoTime();
    long waitingSince = begunAt;

    Stream(MethodDescriptor<Q, A> method, Q request, Function<A, WatchBatch> convert) {
      this.convert = convert;
      call = route.channel().newCall(method, sending.in(CallOptions.DEFAULT));
      call.start(this, new Metadata());
      call.request(1);
      call.sendMessage(request);
      call.halfClose();
    }

    @Override
    public void onMessage(A answer) {
      WatchBatch batch = convert.apply(answer);
      synchronized (Watcher.this) {
        message = batch;
        Watcher.this.notifyAll();
      }
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      synchronized (Watcher.this) {
        this.status = status;
        this.trailers = trailers;
        Watcher.this.notifyAll();
      }
    }

    /** The next message; null: the stream has ended, or the time is up. */
    WatchBatch await(long until) {
      synchronized (Watcher.this) {
        while (message == null && status == null && System.nanoTime() - until < 0) {
          waitUntil(until);
        }
        WatchBatch batch = message;
        message = null;
        if (batch != null) {
          waitingSince = System.nanoTime();
          call.request(1);
        }
        return batch;
      }
    }

    boolean hasEnded() {
      synchronized (Watcher.this) {
        return status != null;
      }
    }

    /** Null: it ended in good order. */
    TimecacheException error() {
      synchronized (Watcher.this) {
        return status.isOk()
            ? null
            : rpc.explain(status.asRuntimeException(trailers), sending);
      }
    }

    void cancel() {
      call.cancel("the watch was closed", null);
    }
  }
}
