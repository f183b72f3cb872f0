package dev.timecached.client;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Completes the futures of a client on its executor: those of one message in one task, in their
 * order, for as long as what they call returns soon. Where it does not, as it waits for another
 * future, other threads go on with the rest. Thread-safe.
 */
final class Completions {
  /** After so long, another thread takes part. */
  private static final long PATIENCE_NANOS = 10_000_000;

  private static final ThreadLocal<Boolean> COMPLETING = new ThreadLocal<>();

  private static final class Threads {
    static final Executor EXECUTOR =
        Executors.newCachedThreadPool(
            task -> {
              Thread thread = new Thread(task, "timecache-futures");
              thread.setDaemon(true);
              return thread;
            });
  }

  private final Executor executor; // Null: the shared one.
  private final List<Batch> batches = new ArrayList<>(); // Guarded by this. Since the last look.
  private boolean looks; // Guarded by this.

  Completions(Executor executor) {
    this.executor = executor;
  }

  /** Whether this thread completes futures: it is not to wait for room. */
  static boolean isCompleting() {
    return COMPLETING.get() != null;
  }

  private static final class Batch implements Runnable {
    private final List<? extends Runnable> calls;
    private final AtomicInteger next = new AtomicInteger();
    private final AtomicInteger waiting = new AtomicInteger(1); // Threads that are to take part.

    Batch(List<? extends Runnable> calls) {
      this.calls = calls;
    }

    boolean isBegun() {
      return next.get() >= calls.size();
    }

    /** Whether all threads that take part are in what futures call. */
    boolean isStuck() {
      return waiting.compareAndSet(0, 1);
    }

    @Override
    public void run() {
      waiting.decrementAndGet();
      COMPLETING.set(true);
      try {
        for (int i = next.getAndIncrement(); i < calls.size(); i = next.getAndIncrement()) {
          calls.get(i).run();
        }
      } finally {
        COMPLETING.remove();
      }
    }
  }

  /** Each completes a future. */
  void complete(List<? extends Runnable> calls) {
    Batch batch = new Batch(calls);
    execute(batch);
    if (calls.size() > 1 && !batch.isBegun()) {
      watch(batch);
    }
  }

  private void execute(Batch batch) {
    try {
      (executor == null ? Threads.EXECUTOR : executor).execute(batch);
    } catch (RejectedExecutionException e) { // It was shut down before the client.
      batch.run();
    }
  }

  private synchronized void watch(Batch batch) {
    batches.add(batch);
    if (!looks) {
      looks = true;
      lookSoon();
    }
  }

  private void lookSoon() {
    Delay.after(PATIENCE_NANOS, this::look);
  }

  private void look() {
    List<Batch> stuck = new ArrayList<>();
    synchronized (this) {
      batches.removeIf(Batch::isBegun);
      for (Batch batch : batches) {
        if (batch.isStuck()) {
          stuck.add(batch);
        }
      }
      looks = !batches.isEmpty();
      if (looks) {
        lookSoon();
      }
    }
    stuck.forEach(this::execute);
  }
}
