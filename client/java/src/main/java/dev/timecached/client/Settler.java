package dev.timecached.client;

import dev.timecached.v1.SettleExpiredRequest;
import dev.timecached.v1.SettleExpiredResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Sends a worker's settlements in batches, each until it has arrived. Thread-safe. */
final class Settler {
  /** Of one request: the server's limit. */
  static final int SETTLEMENTS_MAX = 4_096;

  /** What the server has not answered. */
  record Owed(GroupWorker.Task task, Settlement settlement) {
    Settle how() {
      return settlement.how();
    }
  }

  private final Rpc rpc;
  private final String namespace;
  private final GroupWorkerOptions options;
  private final GroupWorker worker;

  // Guarded by this.
  private final Deque<Owed> pending = new ArrayDeque<>();
  private long dueAt; // Of the first.
  private boolean hurry;
  private boolean finishing; // There will be no more.
  private boolean givingUp;
  private boolean finished;
  private TimecacheException gaveUp; // Why settlements did not arrive.

  Settler(Rpc rpc, String namespace, GroupWorkerOptions options, GroupWorker worker) {
    this.rpc = rpc;
    this.namespace = namespace;
    this.options = options;
    this.worker = worker;
  }

  /** Waits while too many wait already. */
  synchronized void add(Owed owed) {
    while (pending.size() >= options.maxInFlight()) {
      waitFor(Long.MAX_VALUE / 2);
    }
    if (pending.isEmpty()) {
      dueAt = System.nanoTime() + Times.nanos(options.settleLinger);
    }
    pending.addLast(owed);
    notifyAll();
  }

  /** Sends what there is. */
  synchronized void hurry() {
    hurry = !pending.isEmpty();
    notifyAll();
  }

  /** Waits until all has arrived, or the time is up. Returns why some has not, or null. */
  synchronized TimecacheException finish(Duration timeout) {
    long giveUpAt = System.nanoTime() + Times.nanos(timeout);
    finishing = true;
    notifyAll();
    while (!finished) {
      long left = giveUpAt - System.nanoTime();
      if (left <= 0) {
        givingUp = true;
        notifyAll();
      }
      waitFor(left > 0 ? left : Long.MAX_VALUE / 2);
    }
    return gaveUp;
  }

  void run() {
    for (List<Owed> batch = next(); !batch.isEmpty(); batch = next()) {
      send(batch);
    }
    synchronized (this) {
      finished = true;
      notifyAll();
    }
  }

  /** None: there will be no more. */
  private synchronized List<Owed> next() {
    while (!finishing && pending.isEmpty()) {
      waitFor(Long.MAX_VALUE / 2);
    }
    long left = dueAt - System.nanoTime();
    while (!finishing && !hurry && pending.size() < options.settleBatchMax && left > 0) {
      waitFor(left);
      left = dueAt - System.nanoTime();
    }
    List<Owed> batch = new ArrayList<>();
    while (!pending.isEmpty() && batch.size() < options.settleBatchMax) {
      batch.add(pending.removeFirst());
    }
    hurry = !pending.isEmpty(); // What is left has waited already.
    notifyAll();
    return batch;
  }

  private void send(List<Owed> batch) {
    Backoff backoff = new Backoff(options.minPause, options.maxPause);
    TimecacheException error = gaveUp();
    for (boolean isRepeated = false; error == null; isRepeated = true) {
      long begunAt = System.nanoTime();
      try {
        List<Settlement> settlements = batch.stream().map(Owed::settlement).toList();
        takeResults(
            batch, call(rpc, request(namespace, options.group, settlements)), isRepeated);
        return;
      } catch (TimecacheException e) {
        worker.report(e);
        if (!mayPass(e, begunAt) || !pause(backoff.nextNanos())) {
          error = e;
        }
      }
    }
    batch.forEach(worker::drop);
    synchronized (this) {
      gaveUp = givingUp ? error : gaveUp;
    }
  }

  static SettleExpiredRequest request(
      String namespace, String group, List<Settlement> settlements) {
    SettleExpiredRequest.Builder request =
        SettleExpiredRequest.newBuilder().setNamespace(namespace).setGroup(group);
    settlements.forEach(settlement -> request.addSettlements(settlement.toProto()));
    return request.build();
  }

  /** One call: a result for each, in their order. */
  static List<SettleResult> call(Rpc rpc, SettleExpiredRequest request) {
    return results(
        request, rpc.call(TimeCacheServiceGrpc.getSettleExpiredMethod(), request, false));
  }

  static List<SettleResult> results(SettleExpiredRequest request, SettleExpiredResponse answer) {
    if (answer.getResultsCount() != request.getSettlementsCount()) {
      throw TimecacheException.mismatch("settlements");
    }
    return answer.getResultsList().stream().map(SettleResult::of).toList();
  }

  /**
   * RESOURCE_EXHAUSTED is of a connection whose answers wait to be read: nothing was done. Another
   * token may come later, or has just come.
   */
  private boolean mayPass(TimecacheException error, long begunAt) {
    return !rpc.connection().isShutdown()
        && (error.isConnectionLost()
            || error.code() == Status.Code.DEADLINE_EXCEEDED
            || error.code() == Status.Code.RESOURCE_EXHAUSTED
            || rpc.connection().unreadToken(error) != null
            || rpc.connection().hasNewToken(begunAt, error));
  }

  /** Once one could not be sent in time, the others are not tried: a stop has an end. */
  private synchronized TimecacheException gaveUp() {
    return gaveUp;
  }

  private void takeResults(List<Owed> batch, List<SettleResult> results, boolean isRepeated) {
    List<Owed> instead = new ArrayList<>();
    for (int i = 0; i < batch.size(); ++i) {
      TimecacheException error = results.get(i).error().orElse(null);
      Owed other = worker.settled(batch.get(i), error, isRepeated);
      if (other != null) {
        instead.add(other);
      }
    }
    if (!instead.isEmpty()) {
      synchronized (this) {
        for (int i = instead.size() - 1; i >= 0; --i) {
          pending.addFirst(instead.get(i));
        }
        hurry = true;
      }
    }
  }

  /** False if there is no time left for another attempt. */
  private synchronized boolean pause(long nanos) {
    long until = System.nanoTime() + nanos;
    for (long left = nanos; left > 0 && !givingUp; left = until - System.nanoTime()) {
      waitFor(left);
    }
    return !givingUp;
  }

  private void waitFor(long nanos) {
    try {
      TimeUnit.NANOSECONDS.timedWait(this, nanos);
    } catch (InterruptedException e) {
      // Nobody ends the worker's threads but the worker; a handler's interrupt is no matter here.
    }
  }
}
