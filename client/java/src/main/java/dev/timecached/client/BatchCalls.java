package dev.timecached.client;

import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.ExecuteResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import io.grpc.MethodDescriptor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/** Executes batches: by one request, or where they are of several owners by one to each at once. */
final class BatchCalls {
  private static final MethodDescriptor<ExecuteRequest, ExecuteResponse> METHOD =
      TimeCacheServiceGrpc.getExecuteMethod();

  private BatchCalls() {}

  /** As {@link TimecacheClient#execute}. */
  static void call(Rpc rpc, String namespace, Batch batch) {
    List<BatchPart> parts = batch.begin(rpc, namespace);
    if (parts.size() == 1) {
      callOne(rpc, parts.get(0), batch.isSafe());
    } else {
      callAll(rpc, parts, batch.isSafe());
    }
  }

  private static void callOne(Rpc rpc, BatchPart part, boolean isSafe) {
    try {
      part.complete(
          rpc.call(
              METHOD, part.request(), isSafe, part.keep(rpc.tracesEntries), part.owner()));
    } catch (TimecacheException e) {
      part.fail(e);
      throw e;
    }
  }

  private static void callAll(Rpc rpc, List<BatchPart> parts, boolean isSafe) {
    long deadline = System.nanoTime() + rpc.timeoutNanos();
    List<CompletableFuture<ExecuteResponse>> answers = new ArrayList<>();
    for (BatchPart part : parts) {
      answers.add(start(rpc, part, rpc.transportAttempts(isSafe, deadline), answer -> answer));
    }
    int failed = 0;
    TimecacheException first = null;
    for (int i = 0; i < parts.size(); ++i) {
      try {
        parts.get(i).complete(Rpc.await(answers.get(i)));
      } catch (TimecacheException e) {
        answers.get(i).cancel(true); // The thread may have been interrupted.
        parts.get(i).fail(e);
        first = first == null ? e : first;
        ++failed;
      }
    }
    if (first != null && (failed == parts.size() || Thread.currentThread().isInterrupted())) {
      throw first;
    }
  }

  /** As {@link AsyncTimecache#execute}. */
  static CompletableFuture<Void> start(Rpc rpc, String namespace, Batch batch) {
    List<BatchPart> parts = batch.begin(rpc, namespace);
    if (parts.isEmpty()) {
      return CompletableFuture.completedFuture(null);
    }
    long deadline = System.nanoTime() + rpc.timeoutNanos();
    List<CompletableFuture<Void>> answers = new ArrayList<>();
    for (BatchPart part : parts) {
      CompletableFuture<Void> answer =
          start(
              rpc,
              part,
              rpc.attempts(batch.isSafe(), deadline),
              response -> {
                part.complete(response);
                return null;
              });
      answer.whenComplete(
          (nothing, why) -> {
            if (why != null) {
              part.fail(TimecacheException.of(why));
            }
          });
      answers.add(answer);
    }
    return answers.size() == 1 ? answers.get(0) : new All(answers);
  }

  private static <R> CompletableFuture<R> start(
      Rpc rpc, BatchPart part, Rpc.Attempts attempts, Function<ExecuteResponse, R> convert) {
    return rpc.start(
        METHOD, part.request(), attempts, part.keep(rpc.tracesEntries), part.owner(), convert);
  }

  /** Fails if all parts have failed; else each has told its operations. */
  private static final class All extends CompletableFuture<Void> {
    private final List<CompletableFuture<Void>> parts;
    private final AtomicInteger left;
    private final AtomicInteger failed = new AtomicInteger();

    All(List<CompletableFuture<Void>> parts) {
      this.parts = parts;
      left = new AtomicInteger(parts.size());
      parts.forEach(part -> part.whenComplete((nothing, why) -> ended(why)));
    }

    private void ended(Throwable why) {
      int failures = why == null ? failed.get() : failed.incrementAndGet();
      if (left.decrementAndGet() > 0) {
        return;
      }
      if (why != null && failures == parts.size()) {
        completeExceptionally(why);
      } else {
        complete(null);
      }
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
      boolean cancelled = super.cancel(mayInterruptIfRunning);
      if (cancelled) {
        parts.forEach(part -> part.cancel(mayInterruptIfRunning));
      }
      return cancelled;
    }
  }
}
