package dev.timecached.client;

import dev.timecached.v1.ErrorReason;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/**
 * A member of a consumer group that calls a handler for each event it is given, on threads of its
 * own, and settles as the handler says.
 *
 * <p>At least once. An event comes again, perhaps to another worker, when its handler said nack or
 * threw, when it was not settled within the group's ack_timeout, and when the connection broke
 * before it was settled. Events of one key come one after the other, the later when the earlier is
 * settled; only an event that timed out or whose connection broke can be with two workers at once.
 * In one worker an event is never with two handlers at once.
 *
 * <p>Reconnects by itself, as {@link Watcher} does; settlements are sent again until they arrive.
 * What ends the worker is what ends a watcher: no server at the first attempt (unless {@link
 * GroupWorkerOptions#waitForServer}), namespace or group deleted, a request that is refused.
 *
 * <p>Thread-safe. Memory is bounded by maxInFlight. Has two daemon threads and one for each handler
 * that may run.
 */
public final class GroupWorker implements AutoCloseable {
  private static final Duration MAX_SETTLE_TIME = Duration.ofSeconds(5);

  private final GroupWorkerOptions options;
  private final EventHandler handler;
  private final Watcher watcher;
  private final Settler settler;
  private final CompletableFuture<Void> ended = new CompletableFuture<>();
  private final Settle retry; // In place of what failed.
  private final Object telling = new Object(); // One callback at a time.

  // Guarded by this.
  private final Deque<ExpiredEvent> queue = new ArrayDeque<>(); // Not begun.
  // Every event in the queue or with a handler, or that a handler is done with for good and the
  // server
  // does not know yet; and its newest attempt. What is given out again meanwhile is not handled
  // twice.
  private final Map<Long, Integer> attempts = new HashMap<>();
  // Of these, what was given out again since its handler was done.
  private final Set<Long> givenAgain = new HashSet<>();
  private int running; // Handlers.
  private boolean stopping;
  private int handlersLeft; // Threads that have not ended.
  private TimecacheException end;
  private long handled;
  private long thrown;
  private long acked;
  private long nacked;
  private long putBack;
  private long stale;
  private long unsettled;
  private long lost;

  GroupWorker(Rpc rpc, String namespace, GroupWorkerOptions options, EventHandler handler) {
    this.options = options;
    this.handler = handler;
    handlersLeft = options.threads;
    retry = Settle.nack(options.retryDelay);
    WatchOptions watch =
        new WatchOptions()
            .group(options.group)
            .maxInFlight(options.maxInFlight)
            .pauses(options.minPause, options.maxPause)
            .onBreak(this::loseUnbegun);
    watch = options.fromEarliest ? watch.fromEarliest() : watch;
    watch = options.keysOnly ? watch.keysOnly() : watch;
    watch = options.waitForServer ? watch.waitForServer() : watch;
    watch = options.silenceMax != null ? watch.silenceMax(options.silenceMax) : watch;
    watcher = new Watcher(rpc, namespace, watch);
    // A stop waits for the call that is under way.
    boolean isShort = rpc.timeout != null && rpc.timeout.compareTo(MAX_SETTLE_TIME) < 0;
    settler =
        new Settler(isShort ? rpc : rpc.withTimeout(MAX_SETTLE_TIME), namespace, options, this);
    daemon("timecache-worker-reader", this::read);
    daemon("timecache-worker-settler", settler::run);
    for (int i = 0; i < options.threads; ++i) {
      daemon("timecache-worker-" + i, this::work);
    }
  }

  private static void daemon(String name, Runnable run) {
    Thread thread = new Thread(run, name);
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * Begins no further event; does not wait. What was given to this worker and not begun goes to
   * others once the running handlers are done and settled.
   */
  public synchronized void requestStop() {
    stopping = true;
    notifyAll();
  }

  /**
   * Waits for the end: the running handlers have returned, and what they said has arrived at the
   * server.
   *
   * @throws TimecacheException what ended the worker, if it was no stop; or why settlements did not
   *     arrive within the stopTimeout
   */
  public void join() {
    Rpc.await(ended);
  }

  /** Completes when the worker has ended: as {@link #join}. */
  public CompletableFuture<Void> ended() {
    return ended.copy();
  }

  /** Stops, and waits for the end: {@link #requestStop} and {@link #join}. Not in a handler. */
  @Override
  public void close() {
    requestStop();
    join();
  }

  /** What it has done so far. */
  public synchronized GroupWorkerCounters counters() {
    return new GroupWorkerCounters(handled, thrown, acked, nacked, putBack, stale, unsettled, lost);
  }

  // A thread reads the stream and fills the queue, which the handlers' threads empty; the settler
  // has
  // another. The stream stays open until the last handler is settled: with its end the server gives
  // out again what is not.

  private void read() {
    TimecacheException why;
    try {
      for (; ; ) {
        take(watcher.next());
      }
    } catch (TimecacheException e) {
      why = e;
    } catch (Throwable e) {
      why = TimecacheException.of(e);
    }
    synchronized (this) {
      if (!stopping) {
        end = why;
      }
      stopping = true;
      notifyAll();
    }
  }

  /** Waits until there is room for another batch. */
  private void take(WatchBatch batch) throws InterruptedException {
    if (batch.lost() > 0) {
      synchronized (this) {
        lost += batch.lost();
      }
      synchronized (telling) {
        options.onLoss.accept(batch.lost());
      }
    }
    synchronized (this) {
      for (ExpiredEvent event : batch.events()) {
        boolean isKnown = attempts.containsKey(event.eventId());
        if (isKnown || !stopping) {
          attempts.put(event.eventId(), event.attempt());
        }
        if (isKnown) {
          givenAgain.add(event.eventId());
        } else if (!stopping) {
          queue.addLast(event);
        }
      }
      notifyAll();
      while (!stopping && attempts.size() >= options.maxInFlight) {
        wait();
      }
    }
  }

  /** With the stream's end the server has given them out again. */
  private void loseUnbegun(TimecacheException why) {
    synchronized (this) {
      queue.forEach(event -> attempts.remove(event.eventId()));
      queue.clear();
      notifyAll();
      if (stopping) {
        watcher.close(); // What a new stream would bring is for others.
      }
    }
    tell(why);
  }

  private void work() {
    for (ExpiredEvent event = begin(); event != null; event = begin()) {
      finish(event.eventId(), handle(event));
    }
    synchronized (this) {
      if (--handlersLeft > 0) {
        return;
      }
    }
    TimecacheException why = settler.finish(options.stopTimeout);
    watcher.close();
    synchronized (this) {
      why = end != null ? end : why;
    }
    if (why == null) {
      ended.complete(null);
    } else {
      ended.completeExceptionally(why);
    }
  }

  /** Waits for an event. Null: no more is to be begun. */
  private synchronized ExpiredEvent begin() {
    while (!stopping && queue.isEmpty()) {
      try {
        wait();
      } catch (InterruptedException e) {
        // A handler's business, which has returned.
      }
    }
    if (stopping) {
      return null;
    }
    ExpiredEvent event = queue.removeFirst();
    ++running;
    int attempt = attempts.get(event.eventId());
    return attempt == event.attempt() ? event : event.withAttempt(attempt);
  }

  private Settle handle(ExpiredEvent event) {
    try {
      return Objects.requireNonNull(
          handler.handle(event), "the handler returned null for an event");
    } catch (Throwable why) {
      tell(why);
      synchronized (this) {
        ++thrown;
      }
      return retry;
    }
  }

  private void finish(long eventId, Settle how) {
    int attempt;
    synchronized (this) {
      ++handled;
      attempt = attempts.get(eventId);
      givenAgain.remove(eventId);
      // It may come again before the answer to this.
      if (how.kind == Settle.Kind.NACK) {
        attempts.remove(eventId);
        notifyAll();
      }
    }
    settler.add(new Settlement(eventId, attempt, how));
    boolean isIdle;
    synchronized (this) {
      isIdle = --running == 0 && (stopping || queue.isEmpty());
    }
    if (isIdle) {
      settler.hurry();
    }
  }

  /** The server's answer; returns what to settle in its place, or null. */
  Settlement settled(Settlement settlement, TimecacheException error, boolean isRepeated) {
    boolean isDone = error != null && error.is(ErrorReason.EVENT_NOT_UNSETTLED);
    if (error != null && !isDone && !error.is(ErrorReason.STALE_ATTEMPT)) {
      return refused(settlement, error);
    }
    synchronized (this) {
      if (error != null
          && settlement.how().kind != Settle.Kind.NACK
          && givenAgain.remove(settlement.eventId())) {
        // It was given to this worker again, as by a server that was restarted.
        int attempt = attempts.get(settlement.eventId());
        return new Settlement(settlement.eventId(), attempt, settlement.how());
      }
      if (isDone && isRepeated) {
        error = null; // An attempt that was not answered has settled it.
      }
      forget(settlement);
      if (error != null) {
        ++stale;
      } else {
        switch (settlement.how().kind) {
          case ACK -> ++acked;
          case NACK -> ++nacked;
          case PUT_BACK -> ++putBack;
        }
      }
      return null;
    }
  }

  /** It is tried again later, unless that is what was refused. */
  private Settlement refused(Settlement settlement, TimecacheException error) {
    tell(error);
    if (settlement.how().kind == Settle.Kind.ACK || settlement.how() == retry) {
      dropped(settlement);
      return null;
    }
    synchronized (this) {
      forget(settlement);
    }
    return new Settlement(settlement.eventId(), settlement.attempt(), retry);
  }

  synchronized void dropped(Settlement settlement) {
    ++unsettled;
    forget(settlement);
  }

  /**
   * From here on the event is handled when it comes again. A nack was forgotten when it was said:
   * what there is now is the event's next attempt.
   */
  private void forget(Settlement settlement) {
    if (settlement.how().kind != Settle.Kind.NACK) {
      attempts.remove(settlement.eventId());
      givenAgain.remove(settlement.eventId());
      notifyAll();
    }
  }

  void tell(Throwable why) {
    synchronized (telling) {
      try {
        options.onError.accept(why);
      } catch (RuntimeException e) {
        Thread thread = Thread.currentThread();
        thread.getUncaughtExceptionHandler().uncaughtException(thread, e);
      }
    }
  }
}
