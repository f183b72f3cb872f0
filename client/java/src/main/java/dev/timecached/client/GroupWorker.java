package dev.timecached.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.TextFormat;
import dev.timecached.v1.ErrorReason;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * A member of a consumer group that calls a handler for each event it is given, on threads of its
 * own, and settles as the handler says.
 *
 * <p>At least once. An event comes again, perhaps to another worker, when its handler said nack or
 * threw, when the connection broke before it was settled, and when it was not settled within the
 * group's ack_timeout: the worker asks for another one by itself while it holds the event, see
 * {@link GroupWorkerOptions#extendMax}. Events of one key come one after the other, the later when the earlier is
 * settled; only an event that timed out or whose connection broke can be with two workers at once.
 * In one worker an event is never with two handlers at once.
 *
 * <p>Reconnects by itself, as {@link Watcher} does; settlements are sent again until they arrive.
 * What ends the worker is what ends a watcher: no server at the first attempt (unless {@link
 * GroupWorkerOptions#waitForServer}), namespace or group deleted, a request that is refused.
 *
 * <p>Thread-safe. Memory is bounded by maxInFlight. Has three daemon threads and one for each handler
 * that may run.
 */
public final class GroupWorker implements AutoCloseable {
  private static final Duration MAX_SETTLE_TIME = Duration.ofSeconds(5);
  private static final Logger LOGGER = System.getLogger(GroupWorker.class.getName());

  /**
   * An event in the worker's hands, from its arrival until it is settled: what is given out again
   * meanwhile is not handled twice. Guarded by the worker.
   */
  static final class Task {
    private ExpiredEvent event; // With the numbers of the newest delivery.
    private final long since = System.nanoTime(); // When it came.
    private long countsFrom = since; // From when on its ack_timeout counts.
    private boolean over; // The server gives this attempt no more time.
    private boolean said; // Its settlement is on its way.
    private boolean returned; // By a nack: what comes again is to be handled again.

    Task(ExpiredEvent event) {
      this.event = event;
    }
  }

  /** What an event keeps in every delivery. */
  private record Name(long version, ByteString key) {
    static Name of(ExpiredEvent event) {
      return new Name(event.version(), event.key());
    }
  }

  private final GroupWorkerOptions options;
  private final EventHandler handler;
  private final Tracing tracing; // Null: none.
  private final Watcher watcher;
  private final Settler settler;
  private final Extender extender;
  private final String namespace;
  private final CompletableFuture<Void> ended = new CompletableFuture<>();
  private final Settle retry; // In place of what failed.
  private final Object telling = new Object(); // One callback at a time.
  private final Set<Thread> threads = ConcurrentHashMap.newKeySet(); // Its own.

  // Guarded by this.
  private final Map<Name, Task> tasks = new HashMap<>(); // All that is not settled.
  private final Deque<Task> queue = new ArrayDeque<>(); // Of these, what is not begun.
  private int running; // Handlers.
  private boolean stopping;
  private int handlersLeft; // Threads that have not ended.
  private TimecacheException end;
  private long handled;
  private long thrown;
  private long acked;
  private long nacked;
  private long putBack;
  private long terminated;
  private long stale;
  private long unsettled;
  private long lost;

  GroupWorker(Rpc client, String namespace, GroupWorkerOptions options, EventHandler handler) {
    tracing = client.tracing;
    Rpc rpc = client.withoutTracing(); // What it calls by itself is in nobody's trace.
    this.options = options;
    this.handler = handler;
    handlersLeft = options.threads;
    retry = options.retryDelay == null ? Settle.nack() : Settle.nack(options.retryDelay);
    this.namespace = namespace;
    WatchOptions watch =
        new WatchOptions()
            .group(options.group)
            .maxInFlight(options.maxInFlight())
            .pauses(options.minPause, options.maxPause)
            .onBreak(this::loseUnbegun);
    watch = options.fromEarliest ? watch.fromEarliest() : watch;
    watch = options.keysOnly ? watch.keysOnly() : watch;
    watch = options.waitForServer ? watch.waitForServer() : watch;
    watch = options.silenceMax != null ? watch.silenceMax(options.silenceMax) : watch;
    watcher = new Watcher(rpc, namespace, watch);
    // A stop waits for the call that is under way.
    boolean isShort = rpc.timeout != null && rpc.timeout.compareTo(MAX_SETTLE_TIME) < 0;
    Rpc settling = isShort ? rpc : rpc.withTimeout(MAX_SETTLE_TIME);
    settler = new Settler(settling, namespace, options, this);
    extender = new Extender(settling, namespace, options, this);
    daemon("timecache-worker-reader", this::read);
    daemon("timecache-worker-settler", settler::run);
    daemon("timecache-worker-extender", extender::run);
    for (int i = 0; i < options.threads; ++i) {
      daemon("timecache-worker-" + i, this::work);
    }
  }

  private void daemon(String name, Runnable run) {
    Thread thread = new Thread(run, name);
    thread.setDaemon(true);
    threads.add(thread);
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
   * @throws IllegalStateException in a handler or another callback, which it would wait for
   */
  public void join() {
    if (threads.contains(Thread.currentThread())) {
      throw new IllegalStateException(
          "a worker's end cannot be awaited in its own handler: use requestStop");
    }
    Rpc.await(ended);
  }

  /** Completes when the worker has ended: as {@link #join}. */
  public CompletableFuture<Void> ended() {
    return ended.copy();
  }

  /** Stops, and waits for the end: {@link #requestStop} and {@link #join}. */
  @Override
  public void close() {
    requestStop();
    join();
  }

  /** What it has done so far. */
  public synchronized GroupWorkerCounters counters() {
    return new GroupWorkerCounters(
        handled, thrown, acked, nacked, putBack, terminated, stale, unsettled, lost);
  }

  // A thread reads the stream and fills the queue, which the handlers' threads empty; the settler
  // has another. The stream stays open until the last handler is settled: with its end the server
  // gives out again what is not.

  private void read() {
    TimecacheException why;
    try {
      for (boolean isFirst = true; ; isFirst = false) {
        WatchBatch batch = watcher.next();
        if (isFirst || batch.reconnected()) {
          extender.begin();
        }
        take(batch);
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
      callBack(() -> options.onLoss.accept(batch.lost()));
    }
    synchronized (this) {
      batch.events().forEach(this::take);
      notifyAll();
      while (!stopping && tasks.size() >= options.maxInFlight()) {
        wait();
      }
    }
  }

  private synchronized void take(ExpiredEvent event) {
    Task known = tasks.get(Name.of(event));
    if (known != null && !known.returned) {
      known.event = known.event.withDelivery(event);
      known.countsFrom = System.nanoTime();
      known.over = false;
      return;
    }
    Task task = new Task(event);
    tasks.put(Name.of(event), task);
    if (!stopping) {
      queue.addLast(task); // Else it is for others once the stream ends: until then it is kept.
    }
  }

  /** With the stream's end the server has given them out again. */
  private void loseUnbegun(TimecacheException why) {
    synchronized (this) {
      queue.forEach(this::forget);
      queue.clear();
      if (stopping) {
        watcher.close(); // What a new stream would bring is for others.
      }
    }
    report(why);
  }

  private void work() {
    for (Task task = begin(); task != null; task = begin()) {
      finish(task, handleTraced(task.event));
    }
    synchronized (this) {
      if (--handlersLeft > 0) {
        return;
      }
    }
    TimecacheException why = settler.finish(options.stopTimeout);
    extender.stop();
    watcher.close();
    synchronized (this) {
      why = end != null ? end : why;
    }
    if (why == null) {
      ended.complete(null);
    } else {
      if (options.onError == null) {
        log("a worker of the group " + namespace + "/" + options.group + " has ended", why);
      }
      ended.completeExceptionally(why);
    }
  }

  /** Waits for an event. Null: no more is to be begun. */
  private synchronized Task begin() {
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
    Task task = queue.removeFirst();
    ++running;
    return task;
  }

  /** In a span of its own. */
  private Settle handleTraced(ExpiredEvent event) {
    if (tracing == null) {
      return handle(event, null);
    }
    Tracing.HandlerSpan span = tracing.startHandler(options.group, event);
    Throwable[] thrownBy = new Throwable[1];
    Settle how = retry;
    try {
      how = handle(event, thrownBy);
    } finally {
      span.end(how.kind.name().toLowerCase(Locale.ROOT), thrownBy[0]);
    }
    return how;
  }

  /** {@code thrownBy}: takes what the handler has thrown; null: that is not asked for. */
  private Settle handle(ExpiredEvent event, Throwable[] thrownBy) {
    try {
      Settle how =
          Objects.requireNonNull(
              handler.handle(event), "the handler returned null for an event");
      if (how.kind == Settle.Kind.EXTEND) {
        throw new IllegalArgumentException("a worker extends by itself, not its handler");
      }
      return how;
    } catch (Throwable why) {
      if (thrownBy != null) {
        thrownBy[0] = why;
      }
      report(why, () -> "the handler of " + name(event) + " failed");
      synchronized (this) {
        ++thrown;
      }
      return retry;
    }
  }

  private void finish(Task task, Settle how) {
    Settler.Owed owed;
    synchronized (this) {
      ++handled;
      owed = owe(task, how);
    }
    settler.add(owed);
    boolean isIdle;
    synchronized (this) {
      isIdle = --running == 0 && (stopping || queue.isEmpty());
    }
    if (isIdle) {
      settler.hurry();
    }
  }

  /** The settlement of the newest attempt. */
  private synchronized Settler.Owed owe(Task task, Settle how) {
    task.said = true;
    task.returned = how.kind == Settle.Kind.NACK;
    return new Settler.Owed(task, Settlement.of(task.event, how));
  }

  /** What has counted for so long, and did not come longer ago than the longest time. */
  synchronized List<Extender.Extension> toExtend(long minNanos, long maxNanos, long now) {
    return tasks.values().stream()
        .filter(
            task ->
                !task.said
                    && !task.over
                    && now - task.countsFrom >= minNanos
                    && now - task.since < maxNanos)
        .map(task -> new Extender.Extension(task, Settlement.of(task.event, Settle.extend())))
        .toList();
  }

  /** The server's answer to what it was asked for then. */
  synchronized void extended(Extender.Extension extension, boolean isGiven, long then) {
    Task task = extension.task();
    if (!isNewest(task, extension.settlement())) {
      return; // It was given out again meanwhile.
    }
    task.over = !isGiven;
    task.countsFrom = isGiven ? then : task.countsFrom;
  }

  private static boolean isNewest(Task task, Settlement settlement) {
    return task.event.deliveryToken().equals(settlement.deliveryToken());
  }

  /** The server's answer; returns what to settle in its place, or null. */
  Settler.Owed settled(Settler.Owed owed, TimecacheException error, boolean isRepeated) {
    Task task = owed.task();
    boolean isOver;
    synchronized (this) {
      boolean isDone = error != null && error.is(ErrorReason.EVENT_NOT_UNSETTLED);
      // An attempt that was not answered may have settled it.
      if (error == null || (isDone && isRepeated)) {
        switch (owed.how().kind) {
          case ACK -> ++acked;
          case NACK -> ++nacked;
          case TERMINATE -> ++terminated;
          default -> ++putBack;
        }
        forget(task);
        return null;
      }
      boolean isStale = error.is(ErrorReason.STALE_ATTEMPT);
      if (isStale && owed.how().kind != Settle.Kind.NACK && !isNewest(task, owed.settlement())) {
        // Given out again to this worker: no other would settle it.
        return owe(task, owed.how());
      }
      isOver = isDone || isStale;
      if (isOver) {
        ++stale;
        forget(task);
      }
    }
    reportUnsettled(owed, error);
    return isOver ? null : refused(owed);
  }

  /** It is tried again later, unless that is what was refused. */
  private Settler.Owed refused(Settler.Owed owed) {
    if (owed.how().kind == Settle.Kind.ACK || owed.how() == retry) {
      drop(owed);
      return null;
    }
    return owe(owed.task(), retry);
  }

  /** Gives a settlement up. */
  synchronized void drop(Settler.Owed owed) {
    ++unsettled;
    forget(owed.task());
  }

  /** From here on the event is handled when it comes again. */
  private synchronized void forget(Task task) {
    tasks.remove(Name.of(task.event), task);
    notifyAll();
  }

  /** What is about no event. */
  void report(Throwable why) {
    if (options.onError == null
        && why instanceof TimecacheException error
        && error.isConnectionLost()) {
      return;
    }
    report(why, () -> "a worker of the group " + namespace + "/" + options.group + " failed");
  }

  private void report(Throwable why, Supplier<String> what) {
    if (options.onError == null) {
      log(what.get(), why);
    } else {
      callBack(() -> options.onError.accept(why));
    }
  }

  /** Of an event that was handled, and that the server will not take for settled. */
  private void reportUnsettled(Settler.Owed owed, TimecacheException error) {
    String what =
        "the " + owed.how().kind + " of " + name(owed.task().event) + " was not accepted";
    TimecacheException detailed = error.about(what);
    report(detailed, () -> "a worker of the group " + namespace + "/" + options.group);
  }

  private static void log(String what, Throwable why) {
    LOGGER.log(Level.WARNING, what + ": " + why, why);
  }

  /** As logs name it. */
  private String name(ExpiredEvent event) {
    ByteString key = event.key();
    return "%s/%s, key \"%s\", attempt %d,"
        .formatted(namespace, options.group, TextFormat.escapeBytes(key), event.attempt());
  }

  /** Whatever it throws, the worker's threads go on: without one of them a stop would not end. */
  private void callBack(Runnable callback) {
    synchronized (telling) {
      try {
        callback.run();
      } catch (Throwable e) {
        Thread thread = Thread.currentThread();
        thread.getUncaughtExceptionHandler().uncaughtException(thread, e);
      }
    }
  }
}
