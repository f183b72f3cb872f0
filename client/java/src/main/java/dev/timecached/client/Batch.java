package dev.timecached.client;

import com.google.protobuf.ByteString;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

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
  /** Of one request: more are refused. */
  private static final int OPERATIONS_MAX = 4096;

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

  /** The requests that it takes; none if it is empty. */
  List<BatchPart> begin(Rpc rpc, String namespace) {
    if (isExecuted) {
      throw new IllegalStateException("a batch is executed once");
    }
    isExecuted = true;
    if (pending.isEmpty()) {
      return List.of();
    }
    NamespaceOwners owners = rpc.ownersIn(namespace);
    if (owners == null || pending.size() > OPERATIONS_MAX) {
      return List.of(whole(null, namespace));
    }
    if (isAtomic) {
      List<ByteString> keys = pending.stream().map(one -> one.operation().key()).toList();
      return List.of(whole(owners.ofAll(keys), namespace));
    }
    Map<OwnerNode, List<Pending<?>>> byOwner = new LinkedHashMap<>();
    for (Pending<?> one : pending) {
      byOwner.computeIfAbsent(owners.of(one.operation().key()), owner -> new ArrayList<>()).add(one);
    }
    return byOwner.entrySet().stream()
        .map(part -> BatchPart.of(part.getKey(), namespace, false, part.getValue()))
        .toList();
  }

  private BatchPart whole(OwnerNode owner, String namespace) {
    return BatchPart.of(owner, namespace, isAtomic, pending);
  }

  /** Whether all of it may be done twice. */
  boolean isSafe() {
    return pending.stream().allMatch(one -> one.operation().isSafe());
  }
}
