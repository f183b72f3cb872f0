package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.AppendRequest;
import dev.timecached.v1.AppendResponse;
import dev.timecached.v1.CombineRequest;
import dev.timecached.v1.CombineResponse;
import dev.timecached.v1.ContainsRequest;
import dev.timecached.v1.ContainsResponse;
import dev.timecached.v1.GatherRequest;
import dev.timecached.v1.GatherResponse;
import dev.timecached.v1.GetRequest;
import dev.timecached.v1.GetResponse;
import dev.timecached.v1.OperationResult;
import dev.timecached.v1.PutRequest;
import dev.timecached.v1.PutResponse;
import dev.timecached.v1.RemoveRequest;
import dev.timecached.v1.RemoveResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import dev.timecached.v1.TouchRequest;
import dev.timecached.v1.TouchResponse;
import io.grpc.MethodDescriptor;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * Something to be done with one entry, as a value: for {@link TimecacheClient#call}, {@link
 * AsyncTimecache#start}, a {@link Batch} or a {@link Pipeline}. The client's methods of the same
 * names do it at once.
 *
 * <p>Keys have 1 B to 4 KiB; values 0 B to the namespace's max_value_bytes. Strings are sent as
 * UTF-8. Each operation costs the server O(1).
 *
 * @param <R> what it results in
 */
public final class Operation<R> {
  /** What the operations of one kind have in common. */
  private record Kind<Q, A>(
      MethodDescriptor<Q, A> method,
      Function<Q, ByteString> key,
      Predicate<Q> isSafe,
      BiFunction<Q, String, Q> in,
      BiFunction<dev.timecached.v1.Operation.Builder, Q, dev.timecached.v1.Operation.Builder> set,
      Function<OperationResult, A> answer,
      BiFunction<Q, String, Q> keep) {} // A traceparent; null: it keeps none.

  private static final Kind<PutRequest, PutResponse> PUT =
      new Kind<>(
          TimeCacheServiceGrpc.getPutMethod(),
          PutRequest::getKey,
          request -> !request.getIdempotencyId().isEmpty(),
          (request, ns) -> request.toBuilder().setNamespace(ns).build(),
          dev.timecached.v1.Operation.Builder::setPut,
          OperationResult::getPut,
          (request, traceparent) ->
              request.getTraceparent().isEmpty()
                  ? request.toBuilder().setTraceparent(traceparent).build()
                  : request);

  private static final Kind<GetRequest, GetResponse> GET =
      new Kind<>(
          TimeCacheServiceGrpc.getGetMethod(),
          GetRequest::getKey,
          request -> true,
          (request, ns) -> request.toBuilder().setNamespace(ns).build(),
          dev.timecached.v1.Operation.Builder::setGet,
          OperationResult::getGet,
          null);

  private static final Kind<RemoveRequest, RemoveResponse> REMOVE =
      new Kind<>(
          TimeCacheServiceGrpc.getRemoveMethod(),
          RemoveRequest::getKey,
          request -> !request.getIdempotencyId().isEmpty(),
          (request, ns) -> request.toBuilder().setNamespace(ns).build(),
          dev.timecached.v1.Operation.Builder::setRemove,
          OperationResult::getRemove,
          null);

  private static final Kind<ContainsRequest, ContainsResponse> CONTAINS =
      new Kind<>(
          TimeCacheServiceGrpc.getContainsMethod(),
          ContainsRequest::getKey,
          request -> true,
          (request, ns) -> request.toBuilder().setNamespace(ns).build(),
          dev.timecached.v1.Operation.Builder::setContains,
          OperationResult::getContains,
          null);

  private static final Kind<TouchRequest, TouchResponse> TOUCH =
      new Kind<>(
          TimeCacheServiceGrpc.getTouchMethod(),
          TouchRequest::getKey,
          request -> true,
          (request, ns) -> request.toBuilder().setNamespace(ns).build(),
          dev.timecached.v1.Operation.Builder::setTouch,
          OperationResult::getTouch,
          null);

  private static final Kind<AppendRequest, AppendResponse> APPEND =
      new Kind<>(
          TimeCacheServiceGrpc.getAppendMethod(),
          AppendRequest::getKey,
          request -> !request.getIdempotencyId().isEmpty(),
          (request, ns) -> request.toBuilder().setNamespace(ns).build(),
          dev.timecached.v1.Operation.Builder::setAppend,
          OperationResult::getAppend,
          (request, traceparent) ->
              request.getTraceparent().isEmpty()
                  ? request.toBuilder().setTraceparent(traceparent).build()
                  : request);

  private static final Kind<CombineRequest, CombineResponse> COMBINE =
      new Kind<>(
          TimeCacheServiceGrpc.getCombineMethod(),
          CombineRequest::getKey,
          request -> !request.getIdempotencyId().isEmpty(),
          (request, ns) -> request.toBuilder().setNamespace(ns).build(),
          dev.timecached.v1.Operation.Builder::setCombine,
          OperationResult::getCombine,
          (request, traceparent) ->
              request.getTraceparent().isEmpty()
                  ? request.toBuilder().setTraceparent(traceparent).build()
                  : request);

  private static final Kind<GatherRequest, GatherResponse> GATHER =
      new Kind<>(
          TimeCacheServiceGrpc.getGatherMethod(),
          GatherRequest::getKey,
          request -> !request.getIdempotencyId().isEmpty(),
          (request, ns) -> request.toBuilder().setNamespace(ns).build(),
          dev.timecached.v1.Operation.Builder::setGather,
          OperationResult::getGather,
          (request, traceparent) ->
              request.getTraceparent().isEmpty()
                  ? request.toBuilder().setTraceparent(traceparent).build()
                  : request);

  private final Call<?, R> call;

  /**
   * With the types of its request and answer. {@code trace}: whether what it stores keeps a
   * traceparent; null: as the client says.
   */
  private record Call<Q, R>(
      Kind<Q, Object> kind, Q request, Function<Object, R> convert, Boolean trace) {
    boolean isSafe() {
      return kind.isSafe.test(request);
    }

    ByteString key() {
      return kind.key.apply(request);
    }

    /** Null: what it stores keeps no traceparent. */
    BiFunction<Q, String, Q> keep(boolean tracesEntries) {
      return (trace == null ? tracesEntries : trace) ? kind.keep : null;
    }

    Q kept(String traceparent) {
      return traceparent == null ? request : kind.keep.apply(request, traceparent);
    }
  }

  private <Q, A> Operation(Kind<Q, A> kind, Q request, Function<A, R> convert) {
    this(kind, request, convert, null);
  }

  @SuppressWarnings("unchecked")
  private <Q, A> Operation(Kind<Q, A> kind, Q request, Function<A, R> convert, Boolean trace) {
    call = new Call<>((Kind<Q, Object>) kind, request, (Function<Object, R>) convert, trace);
  }

  private Operation(Call<?, R> call) {
    this.call = call;
  }

  /** The same operation, which results in what the function makes of its result. */
  public <S> Operation<S> map(Function<? super R, ? extends S> function) {
    return new Operation<>(map(call, function));
  }

  private static <Q, R, S> Call<Q, S> map(
      Call<Q, R> call, Function<? super R, ? extends S> function) {
    return new Call<>(
        call.kind,
        call.request,
        answer -> function.apply(call.convert.apply(answer)),
        call.trace);
  }

  /** Of its own RPC. */
  MethodDescriptor<?, ?> method() {
    return call.kind.method;
  }

  ByteString key() {
    return call.key();
  }

  /** Does it by its own RPC. {@code kept}: the traceparent that the entry keeps; null: none. */
  R callAlone(
      Rpc rpc, String namespace, Rpc.Attempts attempts, Traced traced, String kept) {
    return callAlone(rpc, namespace, attempts, traced, kept, call);
  }

  private static <Q, R> R callAlone(
      Rpc rpc,
      String namespace,
      Rpc.Attempts attempts,
      Traced traced,
      String kept,
      Call<Q, R> call) {
    Q request = call.kind.in.apply(call.kept(kept), namespace);
    return call.convert.apply(rpc.attempt(call.kind.method, request, attempts, traced));
  }

  /** Begins it so. */
  CompletableFuture<R> startAlone(
      Rpc rpc, String namespace, Rpc.Attempts attempts, Traced traced, String kept) {
    return startAlone(rpc, namespace, attempts, traced, kept, call);
  }

  private static <Q, R> CompletableFuture<R> startAlone(
      Rpc rpc,
      String namespace,
      Rpc.Attempts attempts,
      Traced traced,
      String kept,
      Call<Q, R> call) {
    Q request = call.kind.in.apply(call.kept(kept), namespace);
    return rpc.start(call.kind.method, request, attempts, traced, call.convert);
  }

  /** Whether it may be done twice. */
  boolean isSafe() {
    return call.isSafe();
  }

  /** Whether what it stores keeps the traceparent of its batch. */
  boolean traces(boolean tracesEntries) {
    return call.keep(tracesEntries) != null;
  }

  /** As it goes into a batch. {@code traceparent}: to be kept; null: none. */
  dev.timecached.v1.Operation toProto(String traceparent) {
    return toProto(call, traceparent);
  }

  private static <Q> dev.timecached.v1.Operation toProto(Call<Q, ?> call, String traceparent) {
    return builder(call, traceparent).build();
  }

  private static <Q> dev.timecached.v1.Operation.Builder builder(Call<Q, ?> call, String kept) {
    return call.kind.set.apply(dev.timecached.v1.Operation.newBuilder(), call.kept(kept));
  }

  /** The same of a call of its own, with what would be its metadata; null: none. */
  dev.timecached.v1.Operation toProto(String kept, String requestId, String traceparent) {
    dev.timecached.v1.Operation.Builder builder = builder(call, kept);
    if (requestId != null) {
      builder.setRequestId(requestId);
    }
    if (traceparent != null) {
      builder.setTraceparent(traceparent);
    }
    return builder.build();
  }

  /** What a batch's answer says about it; throws if it failed. */
  R result(OperationResult result) {
    if (result.hasError()) {
      throw TimecacheException.of(result.getError());
    }
    return call.convert.apply(call.kind.answer.apply(result));
  }

  /** As {@link #put(ByteString, ByteString, PutOptions)}. */
  public static Operation<PutResult> put(String key, String value) {
    return put(ByteString.copyFromUtf8(key), ByteString.copyFromUtf8(value), PutOptions.DEFAULT);
  }

  /** As {@link #put(ByteString, ByteString, PutOptions)}. */
  public static Operation<PutResult> put(String key, String value, PutOptions options) {
    return put(ByteString.copyFromUtf8(key), ByteString.copyFromUtf8(value), options);
  }

  /** As {@link #put(ByteString, ByteString, PutOptions)}. */
  public static Operation<PutResult> put(String key, ByteString value) {
    return put(ByteString.copyFromUtf8(key), value, PutOptions.DEFAULT);
  }

  /** As {@link #put(ByteString, ByteString, PutOptions)}. */
  public static Operation<PutResult> put(String key, ByteString value, PutOptions options) {
    return put(ByteString.copyFromUtf8(key), value, options);
  }

  /** As {@link #put(ByteString, ByteString, PutOptions)}. */
  public static Operation<PutResult> put(ByteString key, ByteString value) {
    return put(key, value, PutOptions.DEFAULT);
  }

  /**
   * Stores a value under a key, and gives it a fresh time to live.
   *
   * <p>Fails with FAILED_PRECONDITION if a condition of the options does not hold, and with
   * RESOURCE_EXHAUSTED if a limit would be passed (the reason is the limit's name).
   */
  public static Operation<PutResult> put(ByteString key, ByteString value, PutOptions options) {
    return new Operation<>(
        PUT,
        options.request.toBuilder().setKey(key).setValue(value).build(),
        answer ->
            new PutResult(
                answer.getVersion(), Entry.of(answer.hasPrevious(), answer.getPrevious(), key)),
        options.trace);
  }

  /** As {@link #get(ByteString)}. */
  public static Operation<Optional<Entry>> get(String key) {
    return get(ByteString.copyFromUtf8(key));
  }

  /** Reads an entry. A miss is empty. Does not renew it, unless the namespace is sliding. */
  public static Operation<Optional<Entry>> get(ByteString key) {
    return get(key, GetRequest.newBuilder());
  }

  private static Operation<Optional<Entry>> get(ByteString key, GetRequest.Builder request) {
    return new Operation<>(
        GET,
        request.setKey(key).build(),
        answer -> Entry.of(answer.hasEntry(), answer.getEntry(), key));
  }

  /** As {@link #getAndTouch(ByteString)}. */
  public static Operation<Optional<Entry>> getAndTouch(String key) {
    return getAndTouch(ByteString.copyFromUtf8(key));
  }

  /** Reads an entry and renews its time to live. A miss is empty. */
  public static Operation<Optional<Entry>> getAndTouch(ByteString key) {
    return get(key, GetRequest.newBuilder().setTouch(true));
  }

  /** As {@link #getWithoutTouch(ByteString)}. */
  public static Operation<Optional<Entry>> getWithoutTouch(String key) {
    return getWithoutTouch(ByteString.copyFromUtf8(key));
  }

  /** Reads an entry and never renews it, in a sliding namespace, either. A miss is empty. */
  public static Operation<Optional<Entry>> getWithoutTouch(ByteString key) {
    return get(key, GetRequest.newBuilder().setTouch(false));
  }

  /** As {@link #remove(ByteString, RemoveOptions)}. */
  public static Operation<RemoveResult> remove(String key) {
    return remove(ByteString.copyFromUtf8(key), RemoveOptions.DEFAULT);
  }

  /** As {@link #remove(ByteString, RemoveOptions)}. */
  public static Operation<RemoveResult> remove(String key, RemoveOptions options) {
    return remove(ByteString.copyFromUtf8(key), options);
  }

  /** As {@link #remove(ByteString, RemoveOptions)}. */
  public static Operation<RemoveResult> remove(ByteString key) {
    return remove(key, RemoveOptions.DEFAULT);
  }

  /**
   * Removes an entry, without an expiry event. A miss is not an error, but with {@link
   * RemoveOptions#ifVersion} fails with FAILED_PRECONDITION.
   */
  public static Operation<RemoveResult> remove(ByteString key, RemoveOptions options) {
    return new Operation<>(
        REMOVE,
        options.request.toBuilder().setKey(key).build(),
        answer ->
            new RemoveResult(
                answer.getRemoved(), Entry.of(answer.hasPrevious(), answer.getPrevious(), key)));
  }

  /** As {@link #contains(ByteString)}. */
  public static Operation<Boolean> contains(String key) {
    return contains(ByteString.copyFromUtf8(key));
  }

  /** As {@link #contains(ByteString, ContainsOptions)}. */
  public static Operation<Boolean> contains(String key, ContainsOptions options) {
    return contains(ByteString.copyFromUtf8(key), options);
  }

  /** Whether an entry is there. Never renews it. */
  public static Operation<Boolean> contains(ByteString key) {
    return contains(key, ContainsOptions.DEFAULT);
  }

  /**
   * Whether an entry is there. Never renews it. Fails with FAILED_PRECONDITION if a condition of the
   * options does not hold: for a batch that is {@link Batch#atomic}.
   */
  public static Operation<Boolean> contains(ByteString key, ContainsOptions options) {
    return new Operation<>(
        CONTAINS,
        options.request.toBuilder().setKey(key).build(),
        answer -> answer.getContains());
  }

  /** As {@link #touch(ByteString, TouchOptions)}. */
  public static Operation<OptionalLong> touch(String key) {
    return touch(ByteString.copyFromUtf8(key), TouchOptions.DEFAULT);
  }

  /** As {@link #touch(ByteString, TouchOptions)}. */
  public static Operation<OptionalLong> touch(String key, TouchOptions options) {
    return touch(ByteString.copyFromUtf8(key), options);
  }

  /** As {@link #touch(ByteString, TouchOptions)}. */
  public static Operation<OptionalLong> touch(ByteString key) {
    return touch(key, TouchOptions.DEFAULT);
  }

  /**
   * Gives an entry a fresh time to live. Results in its version, which stays as it is; a miss is
   * empty, but with {@link TouchOptions#ifVersion} fails with FAILED_PRECONDITION.
   */
  public static Operation<OptionalLong> touch(ByteString key, TouchOptions options) {
    return new Operation<>(
        TOUCH,
        options.request.toBuilder().setKey(key).build(),
        answer ->
            answer.getTouched() ? OptionalLong.of(answer.getVersion()) : OptionalLong.empty());
  }

  /** As {@link #append(ByteString, ByteString, AppendOptions)}. */
  public static Operation<AppendResult> append(String key, String value) {
    return append(
        ByteString.copyFromUtf8(key), ByteString.copyFromUtf8(value), AppendOptions.DEFAULT);
  }

  /** As {@link #append(ByteString, ByteString, AppendOptions)}. */
  public static Operation<AppendResult> append(String key, String value, AppendOptions options) {
    return append(ByteString.copyFromUtf8(key), ByteString.copyFromUtf8(value), options);
  }

  /** As {@link #append(ByteString, ByteString, AppendOptions)}. */
  public static Operation<AppendResult> append(String key, ByteString value) {
    return append(ByteString.copyFromUtf8(key), value, AppendOptions.DEFAULT);
  }

  /** As {@link #append(ByteString, ByteString, AppendOptions)}. */
  public static Operation<AppendResult> append(
      String key, ByteString value, AppendOptions options) {
    return append(ByteString.copyFromUtf8(key), value, options);
  }

  /** As {@link #append(ByteString, ByteString, AppendOptions)}. */
  public static Operation<AppendResult> append(ByteString key, ByteString value) {
    return append(key, value, AppendOptions.DEFAULT);
  }

  /**
   * Appends to a value, or creates an entry with these bytes. An entry that is there keeps its
   * deadline. Never tried again unasked, as it would append twice.
   *
   * <p>Fails with FAILED_PRECONDITION if a condition does not hold, the value would be too large
   * (VALUE_TOO_LARGE) or the key collects parts (VALUE_KIND_MISMATCH).
   */
  public static Operation<AppendResult> append(
      ByteString key, ByteString value, AppendOptions options) {
    return new Operation<>(
        APPEND,
        options.request.toBuilder().setKey(key).setValue(value).build(),
        answer ->
            new AppendResult(answer.getVersion(), answer.getValueBytes(), answer.getCreated()),
        options.trace);
  }

  /** As {@link #add(ByteString, long, CombineOptions)}. */
  public static Operation<CombineResult> add(String key, long operand) {
    return add(ByteString.copyFromUtf8(key), operand, CombineOptions.DEFAULT);
  }

  /** As {@link #add(ByteString, long, CombineOptions)}. */
  public static Operation<CombineResult> add(String key, long operand, CombineOptions options) {
    return add(ByteString.copyFromUtf8(key), operand, options);
  }

  /** As {@link #add(ByteString, long, CombineOptions)}. */
  public static Operation<CombineResult> add(ByteString key, long operand) {
    return add(key, operand, CombineOptions.DEFAULT);
  }

  /**
   * Adds a number to a value, a decimal number of 64 bits as a put of "10" stores it. An entry that
   * is there keeps its deadline. Never tried again unasked, as it would add twice.
   *
   * <p>Fails with FAILED_PRECONDITION if the value is no number (NOT_A_NUMBER), the sum has no room
   * (NUMBER_OVERFLOW), the version is another, or the key collects parts.
   */
  public static Operation<CombineResult> add(ByteString key, long operand, CombineOptions options) {
    return combine(options.request.toBuilder().setKey(key).setAdd(operand), options.trace);
  }

  /** As {@link #xor(ByteString, long, CombineOptions)}. */
  public static Operation<CombineResult> xor(String key, long operand) {
    return xor(ByteString.copyFromUtf8(key), operand, CombineOptions.DEFAULT);
  }

  /** As {@link #xor(ByteString, long, CombineOptions)}. */
  public static Operation<CombineResult> xor(String key, long operand, CombineOptions options) {
    return xor(ByteString.copyFromUtf8(key), operand, options);
  }

  /** As {@link #xor(ByteString, long, CombineOptions)}. */
  public static Operation<CombineResult> xor(ByteString key, long operand) {
    return xor(key, operand, CombineOptions.DEFAULT);
  }

  /** Xors a value with a number, in two's complement; else as {@link #add}. */
  public static Operation<CombineResult> xor(ByteString key, long operand, CombineOptions options) {
    return combine(options.request.toBuilder().setKey(key).setXor(operand), options.trace);
  }

  private static Operation<CombineResult> combine(CombineRequest.Builder request, Boolean trace) {
    return new Operation<>(
        COMBINE,
        request.build(),
        answer ->
            new CombineResult(
                answer.getResult(), answer.getVersion(), answer.getCreated(), answer.getRemoved()),
        trace);
  }

  /** As {@link #gather(ByteString, ByteString, ByteString, GatherOptions)}. */
  public static Operation<GatherResult> gather(
      String key, String part, String value, GatherOptions options) {
    return gather(
        ByteString.copyFromUtf8(key),
        ByteString.copyFromUtf8(part),
        ByteString.copyFromUtf8(value),
        options);
  }

  /** As {@link #gather(ByteString, ByteString, ByteString, GatherOptions)}. */
  public static Operation<GatherResult> gather(
      String key, String part, ByteString value, GatherOptions options) {
    return gather(ByteString.copyFromUtf8(key), ByteString.copyFromUtf8(part), value, options);
  }

  /**
   * Brings one part of what is collected under a key. Whoever brings the last one gets all of them,
   * and the key is gone: exactly one caller does. What does not become complete expires with the
   * parts that came. An entry that is there keeps its deadline. Never tried again unasked.
   *
   * <p>The same part with the same value again is a duplicate; with another value it fails with
   * ALREADY_EXISTS (PART_EXISTS). FAILED_PRECONDITION: something else is expected under this key
   * (GATHER_MISMATCH), it has a value, or the parts would be too large.
   *
   * @param part the part's name, 1 to 256 B
   */
  public static Operation<GatherResult> gather(
      ByteString key, ByteString part, ByteString value, GatherOptions options) {
    return new Operation<>(
        GATHER,
        options.request.toBuilder().setKey(key).setPart(part).setValue(value).build(),
        answer ->
            new GatherResult(
                GatheredParts.of(answer.hasParts(), answer.getParts()),
                answer.getVersion(),
                answer.getCount(),
                answer.getDuplicate()),
        options.trace);
  }
}
