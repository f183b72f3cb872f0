package dev.timecached.client;

import dev.timecached.v1.SettleExpiredRequest;
import dev.timecached.v1.SettleExpiredResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Calls that settle events of a group while a request of that group is under way: they go together,
 * with the next request. Of a client and all of its views. Thread-safe.
 */
final class SharedSettles {
  /** Far below what a server receives, whatever callers pass for tokens. */
  private static final int REQUEST_BYTES_MAX = 1 << 20;

  private static final MethodDescriptor<SettleExpiredRequest, SettleExpiredResponse> METHOD =
      TimeCacheServiceGrpc.getSettleExpiredMethod();

  private record Group(String namespace, String name) {}

  // Guarded by this. Of the groups that have a request under way.
  private final Map<Group, Deque<Call>> waiting = new HashMap<>();

  /** Settles, and waits for the results. */
  List<SettleResult> call(Rpc rpc, SettleExpiredRequest request) {
    if (!isShared(rpc, request)) {
      return Settler.call(rpc, request);
    }
    Call call = new Call(rpc, request, true);
    if (isQueued(call)) {
      return call.await();
    }
    try {
      return Settler.call(rpc, request);
    } finally {
      sendNext(call.group);
    }
  }

  /** Begins to settle. Cancelling the future cancels it. */
  CompletableFuture<List<SettleResult>> start(Rpc rpc, SettleExpiredRequest request) {
    if (!isShared(rpc, request)) {
      return rpc.start(METHOD, request, false, answer -> Settler.results(request, answer));
    }
    Call call = new Call(rpc, request, false);
    if (isQueued(call)) {
      Future<?> timer = Delay.after(call.deadline - System.nanoTime(), call::expire);
      call.whenComplete((results, why) -> timer.cancel(false));
    } else {
      send(List.of(call), () -> sendNext(call.group));
    }
    return call;
  }

  private static boolean isShared(Rpc rpc, SettleExpiredRequest request) {
    return rpc.isPlain()
        && request.getSettlementsCount() <= Settler.SETTLEMENTS_MAX
        && request.getSerializedSize() <= PlainCall.SHARED_BYTES_MAX;
  }

  /** False: nothing of its group is under way; its request is, from now on. */
  private synchronized boolean isQueued(Call call) {
    Deque<Call> queue = waiting.get(call.group);
    if (queue == null) {
      waiting.put(call.group, new ArrayDeque<>());
      return false;
    }
    return queue.add(call);
  }

  /** After a request: sends what has been called meanwhile. */
  private void sendNext(Group group) {
    List<Call> calls = new ArrayList<>();
    synchronized (this) {
      Deque<Call> queue = waiting.get(group);
      int count = 0;
      int bytes = 0;
      for (Call one = queue.peek(); one != null; one = queue.peek()) {
        count += one.request.getSettlementsCount();
        bytes += one.request.getSerializedSize();
        if (count > Settler.SETTLEMENTS_MAX || bytes > REQUEST_BYTES_MAX) {
          break;
        }
        calls.add(queue.remove());
      }
      if (calls.isEmpty()) {
        waiting.remove(group);
      }
    }
    if (!calls.isEmpty()) {
      send(calls, () -> sendNext(group));
    }
  }

  private void send(List<Call> calls, Runnable whenAnswered) {
    // Deadlines are compared by their difference, as System.nanoTime() asks for.
    Call last = Collections.max(calls, (a, b) -> Long.signum(a.deadline - b.deadline));
    SettleExpiredRequest.Builder builder = last.request.toBuilder().clearSettlements();
    calls.forEach(one -> builder.addAllSettlements(one.request.getSettlementsList()));
    SettleExpiredRequest request = builder.build();
    CompletableFuture<List<SettleResult>> answer =
        last.rpc.start(
            METHOD,
            request,
            last.rpc.transportAttempts(false, last.deadline),
            last.rpc.trace(METHOD, last.group.namespace),
            response -> Settler.results(request, response));
    if (calls.size() == 1) {
      last.sentAlone(answer);
    }
    answer.whenComplete(
        (results, why) -> {
          whenAnswered.run();
          deliver(calls, results, why == null ? null : TimecacheException.of(why));
        });
  }

  /** {@code why}: with it the request has failed; null: it has not. */
  private void deliver(List<Call> calls, List<SettleResult> results, TimecacheException why) {
    if (calls.size() > 1 && why != null && why.code() == Status.Code.INVALID_ARGUMENT) {
      // Nothing was settled, and one call may have the others refused.
      calls.stream().filter(one -> !one.isDone()).forEach(one -> send(List.of(one), () -> {}));
      return;
    }
    List<Runnable> later = new ArrayList<>();
    int from = 0;
    for (Call one : calls) {
      int to = from + one.request.getSettlementsCount();
      List<SettleResult> own = why == null ? results.subList(from, to) : null;
      from = to;
      if (one.waits) {
        one.end(own, why);
      } else {
        later.add(() -> one.end(own, why));
      }
    }
    if (!later.isEmpty()) {
      calls.get(0).endLater(later);
    }
  }

  private final class Call extends CompletableFuture<List<SettleResult>> {
    final Rpc rpc;
    final SettleExpiredRequest request;
    final Group group;
    final long deadline; // By System.nanoTime().
    final boolean waits; // A thread does. Else what the future calls runs on the client's executor.
    private volatile Future<?> alone; // The answer to a request of only this call.

    Call(Rpc rpc, SettleExpiredRequest request, boolean waits) {
      this.rpc = rpc;
      this.request = request;
      this.waits = waits;
      group = new Group(request.getNamespace(), request.getGroup());
      deadline = System.nanoTime() + rpc.timeoutNanos();
    }

    List<SettleResult> await() {
      try {
        get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
      } catch (TimeoutException e) {
        end(null, withdraw(PlainCall.LATE));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        end(null, withdraw(PlainCall.INTERRUPTED));
        cancelAlone();
      } catch (ExecutionException e) {
        // What follows throws it.
      }
      return Rpc.await(this);
    }

    void expire() {
      TimecacheException late = withdraw(PlainCall.LATE);
      endLater(List.of(() -> end(null, late)));
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
      boolean cancelled = super.cancel(mayInterruptIfRunning);
      if (cancelled) {
        withdraw(PlainCall.CANCELLED);
        cancelAlone();
      }
      return cancelled;
    }

    /** What the call is to fail with. One that was sent may have been done. */
    private TimecacheException withdraw(Status why) {
      boolean isUnsent;
      synchronized (SharedSettles.this) {
        Deque<Call> queue = waiting.get(group);
        isUnsent = queue != null && queue.remove(this);
      }
      return TimecacheException.of(why, null).withMaybeApplied(!isUnsent);
    }

    void sentAlone(Future<?> answer) {
      alone = answer;
      if (isDone()) {
        answer.cancel(true);
      }
    }

    /** Once it is done: else it would end by what becomes of the request. */
    private void cancelAlone() {
      if (alone != null) {
        alone.cancel(true);
      }
    }

    void end(List<SettleResult> results, TimecacheException why) {
      if (why == null) {
        complete(results);
      } else {
        completeExceptionally(why);
      }
    }

    void endLater(List<Runnable> ends) {
      rpc.endpoints.streams.completions().complete(ends);
    }
  }
}
