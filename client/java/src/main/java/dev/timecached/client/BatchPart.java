package dev.timecached.client;

import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.ExecuteResponse;
import dev.timecached.v1.OperationResult;
import io.grpc.Status;
import java.util.List;
import java.util.function.BiFunction;

/**
 * The operations of a {@link Batch} that one request has: all, or those of one owner.
 *
 * @param owner where it goes first; null: to the node that calls go to
 */
record BatchPart(OwnerNode owner, ExecuteRequest request, List<Pending<?>> pending) {
  static BatchPart of(
      OwnerNode owner, String namespace, boolean isAtomic, List<Pending<?>> pending) {
    ExecuteRequest.Builder request =
        ExecuteRequest.newBuilder().setNamespace(namespace).setAtomic(isAtomic);
    pending.forEach(one -> request.addOperations(one.operation().toProto(null)));
    return new BatchPart(owner, request.build(), pending);
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
   * @throws TimecacheException if it is no answer to this
   */
  void complete(ExecuteResponse response) {
    if (response.getResultsCount() != pending.size()) {
      throw TimecacheException.mismatch("operations");
    }
    if (owner != null && response.getResultsList().stream().anyMatch(BatchPart::isDisowned)) {
      owner.disowned();
    }
    for (int i = 0; i < pending.size(); ++i) {
      pending.get(i).complete(response.getResults(i));
    }
  }

  /** Whether a node says that it is not the owner, nor reaches it. */
  static boolean isDisowned(OperationResult result) {
    return result.hasError()
        && result.getError().getCode() == Status.Code.UNAVAILABLE.value()
        && TimecacheException.of(result.getError()).is(ErrorReason.NOT_OWNER);
  }

  void fail(TimecacheException why) {
    pending.forEach(one -> one.future().completeExceptionally(why));
  }
}
