package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.SizeRequest;
import dev.timecached.v1.TimeCacheServiceGrpc;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;

/**
 * The data calls of a {@link TimecacheClient} as futures.
 *
 * <p>A future that fails does so with a {@link TimecacheException}; {@code cancel} ends the call,
 * and what it did is unknown. Futures complete on the client's executor. Calls share messages and
 * are sent in the order in which they were made, except those that go by their own RPC: see {@link
 * TimecacheClient#withBatching}, also for how many may wait to be sent. One that must have another's
 * effect waits for its answer: that one may be repeated, or go alone. Thread-safe.
 */
public final class AsyncTimecache {
  private final Rpc rpc;
  private final String namespace;

  AsyncTimecache(Rpc rpc, String namespace) {
    this.rpc = rpc;
    this.namespace = namespace;
  }

  /** Begins one operation. The methods of the operations' names below do so, too. */
  public <R> CompletableFuture<R> start(Operation<R> operation) {
    return PlainCall.start(rpc, namespace, operation);
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public CompletableFuture<PutResult> put(String key, String value) {
    return start(Operation.put(key, value));
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public CompletableFuture<PutResult> put(String key, String value, PutOptions options) {
    return start(Operation.put(key, value, options));
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public CompletableFuture<PutResult> put(String key, ByteString value) {
    return start(Operation.put(key, value));
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public CompletableFuture<PutResult> put(String key, ByteString value, PutOptions options) {
    return start(Operation.put(key, value, options));
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public CompletableFuture<PutResult> put(ByteString key, ByteString value) {
    return start(Operation.put(key, value));
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public CompletableFuture<PutResult> put(ByteString key, ByteString value, PutOptions options) {
    return start(Operation.put(key, value, options));
  }

  /** Reads an entry: as {@link Operation#get(ByteString)}. */
  public CompletableFuture<Optional<Entry>> get(String key) {
    return start(Operation.get(key));
  }

  /** Reads an entry: as {@link Operation#get(ByteString)}. */
  public CompletableFuture<Optional<Entry>> get(ByteString key) {
    return start(Operation.get(key));
  }

  /** Reads and renews an entry: as {@link Operation#getAndTouch(ByteString)}. */
  public CompletableFuture<Optional<Entry>> getAndTouch(String key) {
    return start(Operation.getAndTouch(key));
  }

  /** Reads and renews an entry: as {@link Operation#getAndTouch(ByteString)}. */
  public CompletableFuture<Optional<Entry>> getAndTouch(ByteString key) {
    return start(Operation.getAndTouch(key));
  }

  /** Reads and never renews an entry: as {@link Operation#getWithoutTouch(ByteString)}. */
  public CompletableFuture<Optional<Entry>> getWithoutTouch(String key) {
    return start(Operation.getWithoutTouch(key));
  }

  /** Reads and never renews an entry: as {@link Operation#getWithoutTouch(ByteString)}. */
  public CompletableFuture<Optional<Entry>> getWithoutTouch(ByteString key) {
    return start(Operation.getWithoutTouch(key));
  }

  /** Removes an entry: as {@link Operation#remove(ByteString, RemoveOptions)}. */
  public CompletableFuture<RemoveResult> remove(String key) {
    return start(Operation.remove(key));
  }

  /** Removes an entry: as {@link Operation#remove(ByteString, RemoveOptions)}. */
  public CompletableFuture<RemoveResult> remove(String key, RemoveOptions options) {
    return start(Operation.remove(key, options));
  }

  /** Removes an entry: as {@link Operation#remove(ByteString, RemoveOptions)}. */
  public CompletableFuture<RemoveResult> remove(ByteString key) {
    return start(Operation.remove(key));
  }

  /** Removes an entry: as {@link Operation#remove(ByteString, RemoveOptions)}. */
  public CompletableFuture<RemoveResult> remove(ByteString key, RemoveOptions options) {
    return start(Operation.remove(key, options));
  }

  /** Looks for an entry: as {@link Operation#contains(ByteString)}. */
  public CompletableFuture<Boolean> contains(String key) {
    return start(Operation.contains(key));
  }

  /** Looks for an entry: as {@link Operation#contains(ByteString)}. */
  public CompletableFuture<Boolean> contains(ByteString key) {
    return start(Operation.contains(key));
  }

  /** Looks for an entry: as {@link Operation#contains(ByteString, ContainsOptions)}. */
  public CompletableFuture<Boolean> contains(String key, ContainsOptions options) {
    return start(Operation.contains(key, options));
  }

  /** Looks for an entry: as {@link Operation#contains(ByteString, ContainsOptions)}. */
  public CompletableFuture<Boolean> contains(ByteString key, ContainsOptions options) {
    return start(Operation.contains(key, options));
  }

  /** Renews an entry: as {@link Operation#touch(ByteString, TouchOptions)}. */
  public CompletableFuture<OptionalLong> touch(String key) {
    return start(Operation.touch(key));
  }

  /** Renews an entry: as {@link Operation#touch(ByteString, TouchOptions)}. */
  public CompletableFuture<OptionalLong> touch(String key, TouchOptions options) {
    return start(Operation.touch(key, options));
  }

  /** Renews an entry: as {@link Operation#touch(ByteString, TouchOptions)}. */
  public CompletableFuture<OptionalLong> touch(ByteString key) {
    return start(Operation.touch(key));
  }

  /** Renews an entry: as {@link Operation#touch(ByteString, TouchOptions)}. */
  public CompletableFuture<OptionalLong> touch(ByteString key, TouchOptions options) {
    return start(Operation.touch(key, options));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public CompletableFuture<AppendResult> append(String key, String value) {
    return start(Operation.append(key, value));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public CompletableFuture<AppendResult> append(String key, String value, AppendOptions options) {
    return start(Operation.append(key, value, options));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public CompletableFuture<AppendResult> append(String key, ByteString value) {
    return start(Operation.append(key, value));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public CompletableFuture<AppendResult> append(
      String key, ByteString value, AppendOptions options) {
    return start(Operation.append(key, value, options));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public CompletableFuture<AppendResult> append(ByteString key, ByteString value) {
    return start(Operation.append(key, value));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public CompletableFuture<AppendResult> append(
      ByteString key, ByteString value, AppendOptions options) {
    return start(Operation.append(key, value, options));
  }

  /** Adds to a number: as {@link Operation#add(ByteString, long, CombineOptions)}. */
  public CompletableFuture<CombineResult> add(String key, long operand) {
    return start(Operation.add(key, operand));
  }

  /** Adds to a number: as {@link Operation#add(ByteString, long, CombineOptions)}. */
  public CompletableFuture<CombineResult> add(String key, long operand, CombineOptions options) {
    return start(Operation.add(key, operand, options));
  }

  /** Adds to a number: as {@link Operation#add(ByteString, long, CombineOptions)}. */
  public CompletableFuture<CombineResult> add(ByteString key, long operand) {
    return start(Operation.add(key, operand));
  }

  /** Adds to a number: as {@link Operation#add(ByteString, long, CombineOptions)}. */
  public CompletableFuture<CombineResult> add(
      ByteString key, long operand, CombineOptions options) {
    return start(Operation.add(key, operand, options));
  }

  /** Xors a number: as {@link Operation#xor(ByteString, long, CombineOptions)}. */
  public CompletableFuture<CombineResult> xor(String key, long operand) {
    return start(Operation.xor(key, operand));
  }

  /** Xors a number: as {@link Operation#xor(ByteString, long, CombineOptions)}. */
  public CompletableFuture<CombineResult> xor(String key, long operand, CombineOptions options) {
    return start(Operation.xor(key, operand, options));
  }

  /** Xors a number: as {@link Operation#xor(ByteString, long, CombineOptions)}. */
  public CompletableFuture<CombineResult> xor(ByteString key, long operand) {
    return start(Operation.xor(key, operand));
  }

  /** Xors a number: as {@link Operation#xor(ByteString, long, CombineOptions)}. */
  public CompletableFuture<CombineResult> xor(
      ByteString key, long operand, CombineOptions options) {
    return start(Operation.xor(key, operand, options));
  }

  /**
   * Brings a part: as {@link Operation#gather(ByteString, ByteString, ByteString, GatherOptions)}.
   */
  public CompletableFuture<GatherResult> gather(
      String key, String part, String value, GatherOptions options) {
    return start(Operation.gather(key, part, value, options));
  }

  /**
   * Brings a part: as {@link Operation#gather(ByteString, ByteString, ByteString, GatherOptions)}.
   */
  public CompletableFuture<GatherResult> gather(
      String key, String part, ByteString value, GatherOptions options) {
    return start(Operation.gather(key, part, value, options));
  }

  /**
   * Brings a part: as {@link Operation#gather(ByteString, ByteString, ByteString, GatherOptions)}.
   */
  public CompletableFuture<GatherResult> gather(
      ByteString key, ByteString part, ByteString value, GatherOptions options) {
    return start(Operation.gather(key, part, value, options));
  }

  /** {@link TimecacheClient#settle}. */
  public CompletableFuture<List<SettleResult>> settle(
      String group, List<Settlement> settlements) {
    return settlements.isEmpty()
        ? CompletableFuture.completedFuture(List.of())
        : rpc.endpoints.settles.start(rpc, Settler.request(namespace, group, settlements));
  }

  /** {@link TimecacheClient#size}. */
  public CompletableFuture<SizeResult> size() {
    return rpc.start(
        TimeCacheServiceGrpc.getSizeMethod(),
        SizeRequest.newBuilder().setNamespace(namespace).build(),
        true,
        answer -> new SizeResult(answer.getEntries(), answer.getBytes()));
  }

  /** {@link TimecacheClient#execute}: the future completes when all of the batch's have. */
  public CompletableFuture<Void> execute(Batch batch) {
    return BatchCalls.start(rpc, namespace, batch);
  }
}
