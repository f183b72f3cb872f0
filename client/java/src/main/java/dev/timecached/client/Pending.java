package dev.timecached.client;

import dev.timecached.v1.OperationResult;
import java.util.concurrent.CompletableFuture;

/** An operation that was not answered yet. */
record Pending<R>(Operation<R> operation, CompletableFuture<R> future) {
  Pending(Operation<R> operation) {
    this(operation, new CompletableFuture<>());
  }

  void complete(OperationResult result) {
    try {
      future.complete(operation.result(result));
    } catch (RuntimeException e) { // Also of an answer that cannot be read.
      future.completeExceptionally(TimecacheException.of(e));
    }
  }
}
