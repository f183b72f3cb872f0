package dev.timecached.client;

import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.ExecuteResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;

/**
 * Operations on one namespace to be done in one round trip, by {@link TimecacheClient#execute}. Not
 * a transaction, unless {@link #atomic} is said: each succeeds or fails by itself, and others may
 * come between; those of one key apply in the order in which they were added. At most 4,096
 * operations and 16 MiB. Tried again as {@link RetryPolicy} says where all operations are safe to
 * repeat.
 *
 * <p>To be executed once. Not thread-safe.
 */
public final class Batch {
  private final List<Pending<?>> pending = new ArrayList<>();
  private boolean isExecuted;
  private boolean isAtomic;

  /** Without an operation. */
  public Batch() {}

  /**
   * Adds an operation. The future has its result once the batch was executed: an operation that
   * failed completes it with a {@link TimecacheException}, as the operation alone would have
   * failed, or with RESOURCE_EXHAUSTED (MAX_RESPONSE_BYTES) if its entry did not fit into the
   * answer: ask for it again.
   */
  public <R> CompletableFuture<R> add(Operation<R> operation) {
    Pending<R> one = new Pending<>(operation);
    pending.add(one);
    return one.future();
  }

  /**
   * All operations or none: if one fails, its future says why, and each of the others fails with
   * ABORTED (NOT_APPLIED). At most 128 operations, 1 MiB in all, each on a key of its own: else
   * {@code execute} throws INVALID_ARGUMENT (INVALID_FIELD). Returns this batch.
   */
  public Batch atomic() {
    isAtomic = true;
    return this;
  }

  /** How many operations it has. */
  public int size() {
    return pending.size();
  }

  ExecuteRequest begin(String namespace) {
    if (isExecuted) {
      throw new IllegalStateException("a batch is executed once");
    }
    isExecuted = true;
    ExecuteRequest.Builder request =
        ExecuteRequest.newBuilder().setNamespace(namespace).setAtomic(isAtomic);
    pending.forEach(one -> request.addOperations(one.operation().toProto(null)));
    return request.build();
  }

  /** Whether all of it may be done twice. */
  boolean isSafe() {
    return pending.stream().allMatch(one -> one.operation().isSafe());
  }

  /** Puts a traceparent into the operations that are to keep one. Null: none is. */
  BiFunction<ExecuteRequest, String, ExecuteRequest> keep(boolean tracesEntries) {
    if (pending.stream().noneMatch(one -> one.operation().traces(tracesEntries))) {
      return null;
    }
    return (request, traceparent) -> {
      ExecuteRequest.Builder kept = request.toBuilder();
      for (int i = 0; i < pending.size(); ++i) {
        if (pending.get(i).operation().traces(tracesEntries)) {
          kept.setOperations(i, pending.get(i).operation().toProto(traceparent));
        }
      }
      return kept.build();
    };
  }

  /**
   * @throws TimecacheException if it is no answer to this; the futures then have it, too
   */
  void complete(ExecuteResponse response) {
    if (response.getResultsCount() != pending.size()) {
      throw TimecacheException.mismatch("operations");
    }
    for (int i = 0; i < pending.size(); ++i) {
      pending.get(i).complete(response.getResults(i));
    }
  }

  void fail(TimecacheException why) {
    pending.forEach(one -> one.future().completeExceptionally(why));
  }
}
