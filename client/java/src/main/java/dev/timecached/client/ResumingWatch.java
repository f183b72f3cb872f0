package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.ErrorReason;
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
 * A stream of batches that goes on by itself after a break: what {@link Watcher} and {@link
 * ChangeWatcher} have in common, and say.
 */
abstract class ResumingWatch<B> implements Iterable<B>, AutoCloseable {
  private static final int GRPC_MAX_MESSAGE_BYTES = 4 << 20;

  private static final class Position {
    Instant watermark; // Of the last batch; null: there was none.
    ByteString resumeToken = ByteString.EMPTY;
    // No batch since the last break, or since the log was another.
    boolean broken;
    boolean logChanged;
  }

  private final Rpc rpc;
  final WatchOptions options;
  final List<String> namespaces;

  // Touched by next alone.
  private final Map<String, Position> positions = new HashMap<>();
  private final Backoff backoff;
  private final long silenceNanos;
  int maxMessageBytes;
  boolean established; // Whether any batch has come.
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

  ResumingWatch(Rpc rpc, String namespace, WatchOptions options) {
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
  public B next() {
    return nextBefore(System.nanoTime() + Long.MAX_VALUE / 2);
  }

  /** The next batch, or nothing if none comes within the timeout: the watch goes on then. */
  public Optional<B> next(Duration timeout) {
    return Optional.ofNullable(nextBefore(System.nanoTime() + Times.nanos(timeout)));
  }

  /** The batches to come, until the watcher is closed. Throws what ends the watch otherwise. */
  @Override
  public Iterator<B> iterator() {
    return new Iterator<>() {
      private B ahead;

      @Override
      public boolean hasNext() {
        try {
          if (ahead == null) {
            ahead = ResumingWatch.this.next();
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
      public B next() {
        if (!hasNext()) {
          throw new NoSuchElementException();
        }
        B batch = ahead;
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
  private B nextBefore(long giveUpAt) {
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
      B message = current.await(silentAt - giveUpAt < 0 ? silentAt : giveUpAt);
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
  abstract Stream<?, ?> begin();

  /** What a batch brings a watch on with. */
  record Mark(String namespace, Instant watermark, ByteString resumeToken) {}

  abstract Mark mark(B batch);

  /** The batch, and how it follows the one before. */
  abstract B after(B batch, boolean reconnected, boolean logChanged, Instant missedAfter);

  /** Where namespaces without a token begin, which is the same for all of them. */
  static WatchStart start(boolean fromEarliest) {
    return fromEarliest ? WatchStart.WATCH_START_EARLIEST : WatchStart.WATCH_START_UNSPECIFIED;
  }

  /** The tokens of the namespaces that have one. */
  List<ByteString> resumeTokens() {
    return positions.values().stream()
        .map(position -> position.resumeToken)
        .filter(token -> !token.isEmpty())
        .toList();
  }

  /**
   * Where one namespace needs all of its log, another that has not begun gets more than was asked,
   * never less.
   */
  boolean beginsEarliest() {
    return options.fromEarliest
        || positions.values().stream().anyMatch(position -> position.logChanged);
  }

  private B accept(B message) {
    established = true;
    delivered = true;
    hasTriedNewToken = false;
    backoff.reset();
    failover.reset();
    Mark mark = mark(message);
    Position position = positions.computeIfAbsent(mark.namespace(), name -> new Position());
    B batch =
        after(
            message,
            position.broken,
            position.logChanged,
            position.logChanged ? position.watermark : null);
    position.broken = false;
    position.logChanged = false;
    position.watermark = mark.watermark();
    position.resumeToken = mark.resumeToken();
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
  final class Stream<Q, A> extends ClientCall.Listener<A> {
    private final ClientCall<Q, A> call;
    private final Function<A, B> convert;
    private final Rpc.Sending sending = new Rpc.Sending();
    private B message; // That was not taken.
    private Status status; // Null while it goes on.
    private Metadata trailers;
    final long begunAt = System.nanoTime();
    long waitingSince = begunAt;

    Stream(MethodDescriptor<Q, A> method, Q request, Function<A, B> convert) {
      this.convert = convert;
      call = route.channel().newCall(method, sending.in(CallOptions.DEFAULT));
      call.start(this, new Metadata());
      call.request(1);
      call.sendMessage(request);
      call.halfClose();
    }

    @Override
    public void onMessage(A answer) {
      B batch = convert.apply(answer);
      synchronized (ResumingWatch.this) {
        message = batch;
        ResumingWatch.this.notifyAll();
      }
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      synchronized (ResumingWatch.this) {
        this.status = status;
        this.trailers = trailers;
        ResumingWatch.this.notifyAll();
      }
    }

    /** The next message; null: the stream has ended, or the time is up. */
    B await(long until) {
      synchronized (ResumingWatch.this) {
        while (message == null && status == null && System.nanoTime() - until < 0) {
          waitUntil(until);
        }
        B batch = message;
        message = null;
        if (batch != null) {
          waitingSince = System.nanoTime();
          call.request(1);
        }
        return batch;
      }
    }

    boolean hasEnded() {
      synchronized (ResumingWatch.this) {
        return status != null;
      }
    }

    /** Null: it ended in good order. */
    TimecacheException error() {
      synchronized (ResumingWatch.this) {
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
