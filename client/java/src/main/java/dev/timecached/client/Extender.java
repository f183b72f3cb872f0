package dev.timecached.client;

import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.GetGroupRequest;
import dev.timecached.v1.GroupServiceGrpc;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Asks for another ack_timeout for what has had a third of it, while a worker holds it. Looks three
 * times in that time, so that every event has a third left for the call. Thread-safe; {@code run}
 * is for a thread of its own.
 */
final class Extender {
  /** What the server was asked for. */
  record Extension(GroupWorker.Task task, Settlement settlement) {}

  private static final long RETRY_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** How old the group's answer may be: its ack_timeout may be changed. */
  private static final long FRESH_NANOS = TimeUnit.MINUTES.toNanos(1);

  private final Rpc rpc;
  private final String namespace;
  private final GroupWorkerOptions options;
  private final GroupWorker worker;

  // Of the thread.
  private long ackTimeoutNanos;
  private long askedAt;

  // Guarded by this.
  private boolean begun; // The group is there.
  private boolean ask;
  private boolean stopped;

  Extender(Rpc rpc, String namespace, GroupWorkerOptions options, GroupWorker worker) {
    this.rpc = rpc;
    this.namespace = namespace;
    this.options = options;
    this.worker = worker;
    stopped = options.extendMax.isZero() || options.extendMax.isNegative();
  }

  /** The group is there, perhaps made anew. */
  synchronized void begin() {
    begun = true;
    ask = true;
    notifyAll();
  }

  synchronized void stop() {
    stopped = true;
    notifyAll();
  }

  void run() {
    long pause = 0;
    boolean isTold = false; // Since the last success: what lasts is told once.
    while (await(pause)) {
      pause = RETRY_NANOS;
      try {
        if (isStale()) {
          askGroup();
        }
        extend();
        pause = Math.max(Math.min(ackTimeoutNanos / 3, FRESH_NANOS), 1_000_000);
        isTold = false;
      } catch (TimecacheException e) {
        if (!isTold && !e.isConnectionLost()) {
          isTold = true;
          worker.report(e);
        }
      }
    }
  }

  /** Waits for the pause, unless the group has begun anew. False: there is no more to do. */
  private synchronized boolean await(long nanos) {
    long until = System.nanoTime() + nanos;
    for (long left = nanos; !stopped && !ask && (!begun || left > 0); ) {
      try {
        TimeUnit.NANOSECONDS.timedWait(this, begun ? left : Long.MAX_VALUE / 2);
      } catch (InterruptedException e) {
        // Nobody ends the worker's threads but the worker.
      }
      left = until - System.nanoTime();
    }
    return !stopped;
  }

  private synchronized boolean isStale() {
    boolean isStale = ask || System.nanoTime() - askedAt >= FRESH_NANOS;
    ask = false;
    return isStale;
  }

  private void askGroup() {
    askedAt = System.nanoTime() - FRESH_NANOS; // Where it fails, it is asked again.
    GetGroupRequest request =
        GetGroupRequest.newBuilder().setNamespace(namespace).setName(options.group).build();
    ackTimeoutNanos =
        Times.nanos(
            Times.fromProto(
                rpc.call(GroupServiceGrpc.getGetGroupMethod(), request, true)
                    .getGroup()
                    .getOptions()
                    .getAckTimeout()));
    askedAt = System.nanoTime();
  }

  private void extend() {
    List<Extension> due =
        worker.toExtend(ackTimeoutNanos / 3, Times.nanos(options.extendMax), System.nanoTime());
    for (int i = 0; i < due.size(); i += Settler.SETTLEMENTS_MAX) {
      extend(due.subList(i, Math.min(i + Settler.SETTLEMENTS_MAX, due.size())));
    }
  }

  private void extend(List<Extension> batch) {
    Duration limit = Duration.ofNanos(Math.max(ackTimeoutNanos / 3, RETRY_NANOS));
    boolean isShort = rpc.timeout != null && rpc.timeout.compareTo(limit) < 0;
    long now = System.nanoTime();
    List<Settlement> settlements = batch.stream().map(Extension::settlement).toList();
    List<SettleResult> results =
        Settler.call(
            isShort ? rpc : rpc.withTimeout(limit),
            Settler.request(namespace, options.group, settlements));
    List<TimecacheException> errors = new ArrayList<>();
    for (int i = 0; i < batch.size(); ++i) {
      TimecacheException error = results.get(i).error().orElse(null);
      worker.extended(batch.get(i), error == null, now);
      // That an attempt has ended is told when the event cannot be settled.
      if (error != null
          && !error.is(ErrorReason.EVENT_NOT_UNSETTLED)
          && !error.is(ErrorReason.STALE_ATTEMPT)) {
        errors.add(error);
      }
    }
    errors.forEach(worker::report);
    if (errors.stream().anyMatch(e -> e.code() == Status.Code.INVALID_ARGUMENT)) {
      stop(); // A server of an earlier version.
    }
  }
}
