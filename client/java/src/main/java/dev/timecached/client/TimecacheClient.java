package dev.timecached.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.Empty;
import com.google.protobuf.FieldMask;
import com.google.protobuf.Int32Value;
import com.google.protobuf.Message;
import dev.timecached.v1.BackupJournalRequest;
import dev.timecached.v1.BackupJournalResponse;
import dev.timecached.v1.CloseConnectionRequest;
import dev.timecached.v1.CreateGroupRequest;
import dev.timecached.v1.CreateNamespaceRequest;
import dev.timecached.v1.CreateNamespaceResponse;
import dev.timecached.v1.DeleteGroupRequest;
import dev.timecached.v1.DeleteNamespaceRequest;
import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.FetchExpiredRequest;
import dev.timecached.v1.FetchExpiredResponse;
import dev.timecached.v1.GetClusterRequest;
import dev.timecached.v1.GetClusterResponse;
import dev.timecached.v1.GetDeathsRequest;
import dev.timecached.v1.GetDeathsResponse;
import dev.timecached.v1.GetGroupRequest;
import dev.timecached.v1.GetHotKeysRequest;
import dev.timecached.v1.GetHotKeysResponse;
import dev.timecached.v1.GetNamespaceRequest;
import dev.timecached.v1.GetServerRequest;
import dev.timecached.v1.GetServerResponse;
import dev.timecached.v1.Group;
import dev.timecached.v1.GroupMember;
import dev.timecached.v1.GroupOptions;
import dev.timecached.v1.GroupPosition;
import dev.timecached.v1.GroupServiceGrpc;
import dev.timecached.v1.HandOverRequest;
import dev.timecached.v1.ListConnectionsRequest;
import dev.timecached.v1.ListConnectionsResponse;
import dev.timecached.v1.ListGroupsRequest;
import dev.timecached.v1.ListGroupsResponse;
import dev.timecached.v1.ListMembersRequest;
import dev.timecached.v1.ListNamespacesRequest;
import dev.timecached.v1.ListNamespacesResponse;
import dev.timecached.v1.ListSlowCallsRequest;
import dev.timecached.v1.ListSlowCallsResponse;
import dev.timecached.v1.ListUnsettledRequest;
import dev.timecached.v1.ListUnsettledResponse;
import dev.timecached.v1.Namespace;
import dev.timecached.v1.NamespaceOptions;
import dev.timecached.v1.NamespaceServiceGrpc;
import dev.timecached.v1.OperationResult;
import dev.timecached.v1.RotateNamespaceRequest;
import dev.timecached.v1.SeekGroupRequest;
import dev.timecached.v1.SeekGroupResponse;
import dev.timecached.v1.ServerServiceGrpc;
import dev.timecached.v1.SizeRequest;
import dev.timecached.v1.SizeResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import dev.timecached.v1.UpdateGroupRequest;
import dev.timecached.v1.UpdateNamespaceRequest;
import dev.timecached.v1.UpdateNamespaceResponse;
import dev.timecached.v1.WhoAmIRequest;
import dev.timecached.v1.WhoAmIResponse;
import io.grpc.Channel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.protobuf.ProtoUtils;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.TreeSet;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * A client of one timecached server, or of the nodes of one cluster, and of one of its namespaces
 * at a time.
 *
 * <pre>{@code
 * try (TimecacheClient client = TimecacheClient.connect("127.0.0.1:7171")) {
 *   client.put("session:7", "basket=3", new PutOptions().ttl(Duration.ofMinutes(30)));
 *   Optional<Entry> entry = client.get("session:7");
 * }
 * }</pre>
 *
 * <p>Calls block until their answer is in; {@link #async} has the same calls as futures. Each is
 * one round trip; those that many threads make at the same time share messages, see {@link
 * #withBatching}. Where there is no connection, a call waits for one for up to 250 ms; while the
 * server is away, one call a second does so and the others fail at once. A thread that is
 * interrupted in a call gets CANCELLED, and stays interrupted; what the call did is unknown.
 *
 * <p>Other namespaces, time-outs and metadata are views: {@link #in}, {@link #withTimeout}, {@link
 * #withRequestId} and the like return a client that shares the connection and costs nothing.
 *
 * <p>All calls throw {@link TimecacheException}: UNAVAILABLE (no server there, or it is stopping),
 * NOT_FOUND with the reason NAMESPACE_NOT_FOUND, INVALID_ARGUMENT with the fields that are wrong,
 * and what each says. Thread-safe.
 */
public final class TimecacheClient implements AutoCloseable {
  static final Metadata.Key<String> REQUEST_ID =
      Metadata.Key.of("x-request-id", Metadata.ASCII_STRING_MARSHALLER);

  // The messages of grpc.health.v1 are not part of this library: a program that has them from
  // grpc-services would have them twice. A request about the server as a whole is empty; an answer
  // has its status as a varint under number 1, as an Int32Value has its value.
  private static final MethodDescriptor<Empty, Int32Value> CHECK_HEALTH =
      MethodDescriptor.<Empty, Int32Value>newBuilder()
          .setType(MethodDescriptor.MethodType.UNARY)
          .setFullMethodName("grpc.health.v1.Health/Check")
          .setRequestMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance()))
          .setResponseMarshaller(ProtoUtils.marshaller(Int32Value.getDefaultInstance()))
          .build();
  private static final int SERVING = 1;

  private final Rpc rpc;
  private final String namespace;
  private final Endpoints owned; // Null: the channel is the user's.

  TimecacheClient(Rpc rpc, String namespace, Endpoints owned) {
    this.rpc = rpc;
    this.namespace = namespace;
    this.owned = owned;
  }

  /**
   * A client of the server at {@code host:port} or {@code unix:/path}, over plain text; of a cluster
   * the addresses of its nodes, up to 16, each by itself or separated by commas: calls go to the
   * owner, watches and workers resume there. Begins to connect in the background, as {@link
   * TimecacheClientBuilder#build} says; that the server is not there is told by the first call.
   *
   * @throws IllegalArgumentException for what is no such address
   */
  public static TimecacheClient connect(String... addresses) {
    return builder(addresses).build();
  }

  /** For a client with TLS, a token, another namespace or time-out. */
  public static TimecacheClientBuilder builder(String... addresses) {
    return new TimecacheClientBuilder(String.join(",", addresses));
  }

  /**
   * A client over a channel of the caller's making, which close does not shut down. Such a channel
   * needs a large enough limit for received messages: else calls end with RESOURCE_EXHAUSTED.
   */
  public static TimecacheClient of(Channel channel) {
    Rpc rpc =
        new Rpc(
            new Endpoints(new Connection(channel, () -> {}, null)),
            new Metadata(),
            Duration.ofSeconds(5),
            RetryPolicy.DEFAULT,
            false,
            null,
            false,
            true);
    return new TimecacheClient(rpc, "default", null);
  }

  SharedStreams streams() {
    return rpc.endpoints.streams;
  }

  /** Where a call on a key goes now. Null: to the node that calls go to. */
  OwnerNode ownerOf(ByteString key) {
    return rpc.ownerOf(namespace, key);
  }

  /** Loads the classes that calls need, and connects: by calls that need no right, if at all. */
  void warmUp() {
    try {
      PutOptions options = new PutOptions().ttl(Duration.ofSeconds(1));
      ExecuteRequest.newBuilder()
          .addOperations(Operation.put("key", "value", options).toProto(null))
          .addOperations(Operation.get("key").toProto(null))
          .build()
          .toByteString();
      OperationResult.getDefaultInstance();
      rpc.endpoints.streams.get(namespace);
      Entry.of(dev.timecached.v1.Entry.getDefaultInstance(), ByteString.EMPTY);
      isServing(rpc.withoutTracing());
    } catch (RuntimeException e) {
      // The first call says what is wrong.
    }
  }

  /**
   * Closes the connection, also that of all views: calls and watches end with CANCELLED, as does
   * what comes later. Waits a moment for them to do so.
   */
  @Override
  public void close() {
    if (owned != null) {
      owned.close();
    }
  }

  /** The same client for another namespace. */
  public TimecacheClient in(String namespace) {
    return new TimecacheClient(rpc, namespace, owned);
  }

  /** The namespace of its calls. */
  public String namespace() {
    return namespace;
  }

  /** The same client whose calls may take so long, with all attempts. */
  public TimecacheClient withTimeout(Duration timeout) {
    return new TimecacheClient(rpc.withTimeout(timeout), namespace, owned);
  }

  /** The same client whose calls may take as long as they do. */
  public TimecacheClient withoutTimeout() {
    return new TimecacheClient(rpc.withTimeout(null), namespace, owned);
  }

  /** The same client whose calls bring this metadata, in place of its own of the same keys. */
  public TimecacheClient withMetadata(Metadata metadata) {
    return new TimecacheClient(rpc.withMetadata(metadata), namespace, owned);
  }

  /** The same client whose calls stand under this id in the server's log: 1 to 128 characters. */
  public TimecacheClient withRequestId(String id) {
    return withMetadata(REQUEST_ID, id);
  }

  /** The same client whose calls belong to this span: a W3C traceparent. */
  public TimecacheClient withTraceparent(String traceparent) {
    return withMetadata(Traced.TRACEPARENT, traceparent);
  }

  private TimecacheClient withMetadata(Metadata.Key<String> key, String value) {
    if (!value.matches("[!-~]{1,128}")) {
      throw new IllegalArgumentException(key.name() + ": 1 to 128 graphic ASCII characters");
    }
    Metadata metadata = new Metadata();
    metadata.put(key, value);
    return withMetadata(metadata);
  }

  /**
   * The same client whose calls are all tried again as {@link RetryPolicy} says, also those that
   * are not safe to repeat: as puts that nobody else competes with.
   */
  public TimecacheClient repeatable() {
    return new TimecacheClient(rpc.withRepeatable(), namespace, owned);
  }

  /**
   * The same client whose plain calls share messages, which is the default; or, with false, one whose
   * calls are RPCs of their own, as a proxy may want that looks at each.
   *
   * <p>Plain calls are those of {@link #call}, put to gather, and their futures. The client keeps a
   * stream for each namespace, for all of its views, and with {@link
   * TimecacheClientBuilder#ownerRouting} another one to each owner. A call is sent at once while no message is under
   * way, or one of few calls; else with the next message, which has all that have come meanwhile; no
   * timer is involved. So many calls at a time cost a fraction of as many RPCs, and are sent in the
   * order in which they were made. Each has its own result, error, time-out, cancellation, request id
   * and traceparent, and is repeated as {@link RetryPolicy} says; none touches another. A stream that
   * ends is replaced.
   *
   * <p>{@link #settle} and its future do likewise, by RPCs: while one of a group is under way, further
   * calls of that group go with the next, at most 4,096 settlements. Those of views with metadata, ids
   * or {@link #repeatable}, and of a client with tracing, are RPCs of their own.
   *
   * <p>Calls go by their own RPC where they have more than 64 KiB, or a view's metadata other than
   * {@link #withRequestId} and {@link #withTraceparent}; where 64 other namespaces are in use; where
   * the entry that they ask for does not fit into a shared answer; and where the server is older than
   * this. While 8,192 calls on a namespace, or 8 MiB of them, are to be sent, further ones wait: also
   * those that return a future, except in what a future calls when it completes.
   */
  public TimecacheClient withBatching(boolean batching) {
    return new TimecacheClient(rpc.withBatching(batching), namespace, owned);
  }

  /** The data calls as futures. */
  public AsyncTimecache async() {
    return new AsyncTimecache(rpc, namespace);
  }

  /** Does one operation. The methods of the operations' names below do so, too. */
  public <R> R call(Operation<R> operation) {
    return PlainCall.call(rpc, namespace, operation);
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public PutResult put(String key, String value) {
    return call(Operation.put(key, value));
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public PutResult put(String key, String value, PutOptions options) {
    return call(Operation.put(key, value, options));
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public PutResult put(String key, ByteString value) {
    return call(Operation.put(key, value));
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public PutResult put(String key, ByteString value, PutOptions options) {
    return call(Operation.put(key, value, options));
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public PutResult put(ByteString key, ByteString value) {
    return call(Operation.put(key, value));
  }

  /** Stores a value: as {@link Operation#put(ByteString, ByteString, PutOptions)}. */
  public PutResult put(ByteString key, ByteString value, PutOptions options) {
    return call(Operation.put(key, value, options));
  }

  /** Reads an entry: as {@link Operation#get(ByteString)}. */
  public Optional<Entry> get(String key) {
    return call(Operation.get(key));
  }

  /** Reads an entry: as {@link Operation#get(ByteString)}. */
  public Optional<Entry> get(ByteString key) {
    return call(Operation.get(key));
  }

  /** Reads and renews an entry: as {@link Operation#getAndTouch(ByteString)}. */
  public Optional<Entry> getAndTouch(String key) {
    return call(Operation.getAndTouch(key));
  }

  /** Reads and renews an entry: as {@link Operation#getAndTouch(ByteString)}. */
  public Optional<Entry> getAndTouch(ByteString key) {
    return call(Operation.getAndTouch(key));
  }

  /** Reads and never renews an entry: as {@link Operation#getWithoutTouch(ByteString)}. */
  public Optional<Entry> getWithoutTouch(String key) {
    return call(Operation.getWithoutTouch(key));
  }

  /** Reads and never renews an entry: as {@link Operation#getWithoutTouch(ByteString)}. */
  public Optional<Entry> getWithoutTouch(ByteString key) {
    return call(Operation.getWithoutTouch(key));
  }

  /** Removes an entry: as {@link Operation#remove(ByteString, RemoveOptions)}. */
  public RemoveResult remove(String key) {
    return call(Operation.remove(key));
  }

  /** Removes an entry: as {@link Operation#remove(ByteString, RemoveOptions)}. */
  public RemoveResult remove(String key, RemoveOptions options) {
    return call(Operation.remove(key, options));
  }

  /** Removes an entry: as {@link Operation#remove(ByteString, RemoveOptions)}. */
  public RemoveResult remove(ByteString key) {
    return call(Operation.remove(key));
  }

  /** Removes an entry: as {@link Operation#remove(ByteString, RemoveOptions)}. */
  public RemoveResult remove(ByteString key, RemoveOptions options) {
    return call(Operation.remove(key, options));
  }

  /** Looks for an entry: as {@link Operation#contains(ByteString)}. */
  public boolean contains(String key) {
    return call(Operation.contains(key));
  }

  /** Looks for an entry: as {@link Operation#contains(ByteString)}. */
  public boolean contains(ByteString key) {
    return call(Operation.contains(key));
  }

  /** Looks for an entry: as {@link Operation#contains(ByteString, ContainsOptions)}. */
  public boolean contains(String key, ContainsOptions options) {
    return call(Operation.contains(key, options));
  }

  /** Looks for an entry: as {@link Operation#contains(ByteString, ContainsOptions)}. */
  public boolean contains(ByteString key, ContainsOptions options) {
    return call(Operation.contains(key, options));
  }

  /** Renews an entry: as {@link Operation#touch(ByteString, TouchOptions)}. */
  public OptionalLong touch(String key) {
    return call(Operation.touch(key));
  }

  /** Renews an entry: as {@link Operation#touch(ByteString, TouchOptions)}. */
  public OptionalLong touch(String key, TouchOptions options) {
    return call(Operation.touch(key, options));
  }

  /** Renews an entry: as {@link Operation#touch(ByteString, TouchOptions)}. */
  public OptionalLong touch(ByteString key) {
    return call(Operation.touch(key));
  }

  /** Renews an entry: as {@link Operation#touch(ByteString, TouchOptions)}. */
  public OptionalLong touch(ByteString key, TouchOptions options) {
    return call(Operation.touch(key, options));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public AppendResult append(String key, String value) {
    return call(Operation.append(key, value));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public AppendResult append(String key, String value, AppendOptions options) {
    return call(Operation.append(key, value, options));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public AppendResult append(String key, ByteString value) {
    return call(Operation.append(key, value));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public AppendResult append(String key, ByteString value, AppendOptions options) {
    return call(Operation.append(key, value, options));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public AppendResult append(ByteString key, ByteString value) {
    return call(Operation.append(key, value));
  }

  /** Appends to a value: as {@link Operation#append(ByteString, ByteString, AppendOptions)}. */
  public AppendResult append(ByteString key, ByteString value, AppendOptions options) {
    return call(Operation.append(key, value, options));
  }

  /** Adds to a number: as {@link Operation#add(ByteString, long, CombineOptions)}. */
  public CombineResult add(String key, long operand) {
    return call(Operation.add(key, operand));
  }

  /** Adds to a number: as {@link Operation#add(ByteString, long, CombineOptions)}. */
  public CombineResult add(String key, long operand, CombineOptions options) {
    return call(Operation.add(key, operand, options));
  }

  /** Adds to a number: as {@link Operation#add(ByteString, long, CombineOptions)}. */
  public CombineResult add(ByteString key, long operand) {
    return call(Operation.add(key, operand));
  }

  /** Adds to a number: as {@link Operation#add(ByteString, long, CombineOptions)}. */
  public CombineResult add(ByteString key, long operand, CombineOptions options) {
    return call(Operation.add(key, operand, options));
  }

  /** Xors a number: as {@link Operation#xor(ByteString, long, CombineOptions)}. */
  public CombineResult xor(String key, long operand) {
    return call(Operation.xor(key, operand));
  }

  /** Xors a number: as {@link Operation#xor(ByteString, long, CombineOptions)}. */
  public CombineResult xor(String key, long operand, CombineOptions options) {
    return call(Operation.xor(key, operand, options));
  }

  /** Xors a number: as {@link Operation#xor(ByteString, long, CombineOptions)}. */
  public CombineResult xor(ByteString key, long operand) {
    return call(Operation.xor(key, operand));
  }

  /** Xors a number: as {@link Operation#xor(ByteString, long, CombineOptions)}. */
  public CombineResult xor(ByteString key, long operand, CombineOptions options) {
    return call(Operation.xor(key, operand, options));
  }

  /**
   * Brings a part: as {@link Operation#gather(ByteString, ByteString, ByteString, GatherOptions)}.
   */
  public GatherResult gather(String key, String part, String value, GatherOptions options) {
    return call(Operation.gather(key, part, value, options));
  }

  /**
   * Brings a part: as {@link Operation#gather(ByteString, ByteString, ByteString, GatherOptions)}.
   */
  public GatherResult gather(String key, String part, ByteString value, GatherOptions options) {
    return call(Operation.gather(key, part, value, options));
  }

  /**
   * Brings a part: as {@link Operation#gather(ByteString, ByteString, ByteString, GatherOptions)}.
   */
  public GatherResult gather(
      ByteString key, ByteString part, ByteString value, GatherOptions options) {
    return call(Operation.gather(key, part, value, options));
  }

  /** Live entries and bytes of the namespace, exact. */
  public SizeResult size() {
    SizeResponse answer =
        rpc.call(
            TimeCacheServiceGrpc.getSizeMethod(),
            SizeRequest.newBuilder().setNamespace(namespace).build(),
            true);
    return new SizeResult(answer.getEntries(), answer.getBytes());
  }

  /**
   * Does many operations in one round trip; their results are in the futures that {@link Batch#add}
   * has returned. An error says that none of them could be tried, or, as with any call, that nobody
   * knows; the futures then have it, too. Nothing is sent for an empty batch. With {@link
   * TimecacheClientBuilder#ownerRouting} it may be several requests at once: then an error of some of
   * them is in the futures alone.
   */
  public void execute(Batch batch) {
    BatchCalls.call(rpc, namespace, batch);
  }

  /** A stream of operations, and of their results: for many of them. */
  public Pipeline pipeline() {
    return pipeline(PipelineOptions.DEFAULT);
  }

  /** The same with other bounds. */
  public Pipeline pipeline(PipelineOptions options) {
    return new Pipeline(rpc, namespace, options);
  }

  /**
   * The live entries, in no particular order: one that lives through the whole scan comes exactly
   * once, another at most once. The stream is to be closed, has no time-out, and is for one thread.
   * Holds two pages (1,000 entries, about 1 MiB) at a time.
   *
   * <p>A scan whose connection breaks, or that the server ends as it was read too slowly, goes on
   * behind its last page by itself, with the attempts and pauses of {@link RetryPolicy} for each
   * page. It cannot where the server was restarted: then it throws what broke it, and is to be begun
   * anew.
   */
  public Stream<Entry> scan() {
    return scan(new ScanOptions());
  }

  /** The same for some of the entries. */
  public Stream<Entry> scan(ScanOptions options) {
    ScanPages pages =
        new ScanPages(rpc, options.request.toBuilder().setNamespace(namespace).build());
    return StreamSupport.stream(
            Spliterators.spliteratorUnknownSize(
                pages, Spliterator.DISTINCT | Spliterator.NONNULL | Spliterator.IMMUTABLE),
            false)
        .onClose(pages::close)
        .flatMap(page -> page.getEntriesList().stream())
        .map(entry -> Entry.of(entry, entry.getKey()));
  }

  /**
   * Watches what expires, or, with {@link WatchOptions#leadTime}, what is going to. Connects at the
   * first {@link Watcher#next}.
   *
   * @throws IllegalArgumentException for options that do not go together
   */
  public Watcher watch(WatchOptions options) {
    return new Watcher(rpc, namespace, options);
  }

  /** The same with a thread that calls a listener. Begins at once. */
  public Watch watch(WatchOptions options, WatchListener listener) {
    return new Watch(watch(options), listener);
  }

  /**
   * Watches puts, renewals and removals in namespaces that keep them, by their change_retention.
   * Connects at the first {@link ChangeWatcher#next}.
   *
   * @throws IllegalArgumentException for options that are for deaths alone
   */
  public ChangeWatcher watchChanges(WatchOptions options) {
    return new ChangeWatcher(rpc, namespace, options);
  }

  /**
   * Fetches events of a consumer group, without a stream: for cron jobs, functions and others that
   * come and go. The group is made if it is not there; streams and fetches share it. No events: none
   * came within the wait. Each event must be settled, by {@link #settle}, within the group's
   * ack_timeout: only time returns it, not the end of the connection. Never tried again by itself:
   * what an answer brought that was lost comes again after the ack_timeout.
   *
   * @throws TimecacheException FAILED_PRECONDITION (SINGLE_ACTIVE): the group has a single active
   *     member; RESOURCE_EXHAUSTED (MAX_WATCHERS)
   */
  public WatchBatch fetchExpired(String group, FetchOptions options) {
    FetchExpiredRequest request =
        options.request.toBuilder().setNamespace(namespace).setGroup(group).build();
    Duration wait = Times.fromProto(request.getWait());
    Rpc waiting =
        rpc.timeout == null || wait.isNegative()
            ? rpc
            : rpc.withTimeout(rpc.timeout.plus(wait));
    FetchExpiredResponse answer =
        waiting.call(TimeCacheServiceGrpc.getFetchExpiredMethod(), request, false);
    return WatchBatch.of(
            namespace,
            answer.getEventsList(),
            answer.getWatermark(),
            answer.getLost(),
            ByteString.EMPTY)
        .withDelivered(answer.getDeliveredWatermark());
  }

  /** A member of a consumer group that calls a handler for each event. Begins at once. */
  public GroupWorker worker(GroupWorkerOptions options, EventHandler handler) {
    return new GroupWorker(rpc, namespace, options, handler);
  }

  /**
   * Settles events of a consumer group of the namespace: a result for each, in their order. At most
   * 4,096; nothing is sent for none. An error: none was settled (NOT_FOUND, reason
   * GROUP_NOT_FOUND), or nobody knows: then again. Calls that many threads make at the same time
   * share requests, see {@link #withBatching}.
   */
  public List<SettleResult> settle(String group, List<Settlement> settlements) {
    if (settlements.isEmpty()) {
      return List.of();
    }
    return rpc.endpoints.settles.call(rpc, Settler.request(namespace, group, settlements));
  }

  // Administration takes and gives the messages of the API as they are: their documentation is that
  // of the protos. Times has what is needed for their times.

  /**
   * Makes a namespace. ALREADY_EXISTS (reason NAMESPACE_EXISTS) if there is one of that name. What
   * the server finds allowed and probably not meant is a warning of the {@link System.Logger} that
   * has the name of this class.
   */
  public Namespace createNamespace(String name, NamespaceOptions options) {
    CreateNamespaceResponse answer =
        rpc.call(
            NamespaceServiceGrpc.getCreateNamespaceMethod(),
            CreateNamespaceRequest.newBuilder().setName(name).setOptions(options).build(),
            false);
    warn(name, answer.getWarningsList());
    return answer.getNamespace();
  }

  private static void warn(String namespace, List<String> warnings) {
    warnings.forEach(
        warning ->
            System.getLogger(TimecacheClient.class.getName())
                .log(Level.WARNING, "namespace " + namespace + ": " + warning));
  }

  /** Describes a namespace. For its statistics each of its shards is locked for a moment. */
  public Namespace getNamespace(String name, boolean includeStatistics) {
    return rpc.call(
            NamespaceServiceGrpc.getGetNamespaceMethod(),
            GetNamespaceRequest.newBuilder()
                .setName(name)
                .setIncludeStatistics(includeStatistics)
                .build(),
            true)
        .getNamespace();
  }

  /** Describes all namespaces, ordered by name: a round trip for each thousand. */
  public List<Namespace> listNamespaces(boolean includeStatistics) {
    List<Namespace> namespaces = new ArrayList<>();
    ListNamespacesRequest.Builder request =
        ListNamespacesRequest.newBuilder().setIncludeStatistics(includeStatistics);
    do {
      ListNamespacesResponse page =
          rpc.call(NamespaceServiceGrpc.getListNamespacesMethod(), request.build(), true);
      namespaces.addAll(page.getNamespacesList());
      request.setPageToken(page.getNextPageToken());
    } while (!request.getPageToken().isEmpty());
    return namespaces;
  }

  /**
   * Changes the options that are set, and sets those that {@code toDefault} names ("max_entries")
   * to their defaults; the others stay. Warns as {@link #createNamespace}.
   */
  public Namespace updateNamespace(String name, NamespaceOptions options, String... toDefault) {
    UpdateNamespaceResponse answer =
        rpc.call(
            NamespaceServiceGrpc.getUpdateNamespaceMethod(),
            UpdateNamespaceRequest.newBuilder()
                .setNamespace(Namespace.newBuilder().setName(name).setOptions(options))
                .setUpdateMask(mask(options, toDefault))
                .build(),
            false);
    warn(name, answer.getWarningsList());
    return answer.getNamespace();
  }

  /** Deletes a namespace with everything in it; its entries make no events. */
  public void deleteNamespace(String name) {
    rpc.call(
        NamespaceServiceGrpc.getDeleteNamespaceMethod(),
        DeleteNamespaceRequest.newBuilder().setName(name).build(),
        false);
  }

  /** Kills a namespace's oldest bucket now, and returns how many entries died with it. */
  public long rotateNamespace(String name) {
    return rpc.call(
            NamespaceServiceGrpc.getRotateNamespaceMethod(),
            RotateNamespaceRequest.newBuilder().setName(name).build(),
            false)
        .getEntries();
  }

  /**
   * Counts the live entries of a namespace by the time of their death, in at most {@code maxBars}
   * bars: 1 to 1,000, or 0 for 60.
   */
  public GetDeathsResponse getDeaths(String name, int maxBars) {
    return getDeaths(GetDeathsRequest.newBuilder().setName(name).setMaxBars(maxBars).build());
  }

  /** The same with all that the request can say. */
  public GetDeathsResponse getDeaths(GetDeathsRequest request) {
    return rpc.call(NamespaceServiceGrpc.getGetDeathsMethod(), request, true);
  }

  /**
   * Names the keys of a namespace that are used most, at most {@code maxKeys} of them: 1 to 64, or 0
   * for 10. By a sample of one of 256 operations, of about the last minute.
   */
  public GetHotKeysResponse getHotKeys(String name, int maxKeys) {
    return rpc.call(
        NamespaceServiceGrpc.getGetHotKeysMethod(),
        GetHotKeysRequest.newBuilder().setName(name).setMaxKeys(maxKeys).build(),
        true);
  }

  /**
   * Makes a consumer group of the namespace, which begins with what dies from now on or with the
   * oldest event that is retained. ALREADY_EXISTS (reason GROUP_EXISTS).
   */
  public Group createGroup(String name, GroupOptions options, boolean fromEarliest) {
    return createGroup(name, options, fromEarliest ? Positions.earliest() : Positions.now());
  }

  /** The same, which begins there: see {@link Positions}. Of a token also as a {@link Watcher}. */
  public Group createGroup(String name, GroupOptions options, GroupPosition start) {
    return rpc.call(
            GroupServiceGrpc.getCreateGroupMethod(),
            CreateGroupRequest.newBuilder()
                .setNamespace(namespace)
                .setName(name)
                .setOptions(options)
                .setStart(start)
                .build(),
            false)
        .getGroup();
  }

  /**
   * Moves a group to a position, see {@link Positions}: from now on it delivers the retained events
   * from there on, as first attempts, those that it has settled, too. Settlements of deliveries from
   * before get FAILED_PRECONDITION (STALE_ATTEMPT). Events before the position that are not settled
   * stay, with their attempts, or are dropped, if {@code dropUnsettled}. Events that are no longer
   * retained are not delivered; from a token on they are counted as lost. NOT_FOUND
   * (GROUP_NOT_FOUND); of a token also as a {@link Watcher}. Not tried again by itself, as it ends
   * attempts.
   */
  public SeekGroupResponse seekGroup(String name, GroupPosition position, boolean dropUnsettled) {
    return rpc.call(
        GroupServiceGrpc.getSeekGroupMethod(),
        SeekGroupRequest.newBuilder()
            .setNamespace(namespace)
            .setName(name)
            .setPosition(position)
            .setDropUnsettled(dropUnsettled)
            .build(),
        false);
  }

  /** Lists the streams that are members of a group, the oldest first. */
  public List<GroupMember> listMembers(String group) {
    return rpc.call(
            GroupServiceGrpc.getListMembersMethod(),
            ListMembersRequest.newBuilder().setNamespace(namespace).setName(group).build(),
            true)
        .getMembersList();
  }

  /** The events that a group has not settled, without their values: as the other one. */
  public Stream<UnsettledEvent> listUnsettled(String group) {
    return listUnsettled(group, new UnsettledOptions());
  }

  /**
   * The events that a group has not settled, the oldest first: a round trip for each page, as the
   * stream is read, which shows its events as they are then. NOT_FOUND (GROUP_NOT_FOUND). With its
   * token an event is settled by {@link #settle}, whoever holds it.
   */
  public Stream<UnsettledEvent> listUnsettled(String group, UnsettledOptions options) {
    ListUnsettledRequest first =
        options.request.toBuilder().setNamespace(namespace).setName(group).build();
    return Stream.iterate(
            unsettledPage(first),
            page -> page != null,
            page ->
                page.getNextPageToken().isEmpty()
                    ? null
                    : unsettledPage(
                        first.toBuilder().setPageToken(page.getNextPageToken()).build()))
        .flatMap(page -> page.getEventsList().stream())
        .map(UnsettledEvent::of);
  }

  private ListUnsettledResponse unsettledPage(ListUnsettledRequest request) {
    return rpc.call(GroupServiceGrpc.getListUnsettledMethod(), request, true);
  }

  /** Describes a group. NOT_FOUND (reason GROUP_NOT_FOUND) if there is none of that name. */
  public Group getGroup(String name, boolean includeStatistics) {
    return rpc.call(
            GroupServiceGrpc.getGetGroupMethod(),
            GetGroupRequest.newBuilder()
                .setNamespace(namespace)
                .setName(name)
                .setIncludeStatistics(includeStatistics)
                .build(),
            true)
        .getGroup();
  }

  /** Describes all groups of the namespace, ordered by name. */
  public List<Group> listGroups(boolean includeStatistics) {
    List<Group> groups = new ArrayList<>();
    ListGroupsRequest.Builder request =
        ListGroupsRequest.newBuilder()
            .setNamespace(namespace)
            .setIncludeStatistics(includeStatistics);
    do {
      ListGroupsResponse page =
          rpc.call(GroupServiceGrpc.getListGroupsMethod(), request.build(), true);
      groups.addAll(page.getGroupsList());
      request.setPageToken(page.getNextPageToken());
    } while (!request.getPageToken().isEmpty());
    return groups;
  }

  /**
   * Changes the options that are set, and sets those that {@code toDefault} names ("max_attempts")
   * to their defaults; the others stay.
   */
  public Group updateGroup(String name, GroupOptions options, String... toDefault) {
    return rpc.call(
            GroupServiceGrpc.getUpdateGroupMethod(),
            UpdateGroupRequest.newBuilder()
                .setGroup(
                    Group.newBuilder().setNamespace(namespace).setName(name).setOptions(options))
                .setUpdateMask(mask(options, toDefault))
                .build(),
            false)
        .getGroup();
  }

  /** Deletes a group with all that it has not settled. */
  public void deleteGroup(String name) {
    rpc.call(
        GroupServiceGrpc.getDeleteGroupMethod(),
        DeleteGroupRequest.newBuilder().setNamespace(namespace).setName(name).build(),
        false);
  }

  /** Who the caller is to the server, and what it may do. */
  public WhoAmIResponse whoAmI() {
    return rpc.call(
        ServerServiceGrpc.getWhoAmIMethod(), WhoAmIRequest.getDefaultInstance(), true);
  }

  /**
   * The connections of clients to the server, the oldest first. With access rules this needs ADMIN
   * on "*", as do closeConnection and listSlowCalls.
   */
  public List<dev.timecached.v1.Connection> listConnections() {
    List<dev.timecached.v1.Connection> connections = new ArrayList<>();
    ListConnectionsRequest.Builder request = ListConnectionsRequest.newBuilder();
    do {
      ListConnectionsResponse page =
          rpc.call(ServerServiceGrpc.getListConnectionsMethod(), request.build(), true);
      connections.addAll(page.getConnectionsList());
      request.setPageToken(page.getNextPageToken());
    } while (!request.getPageToken().isEmpty());
    return connections;
  }

  /**
   * Closes the connection of this id: its calls end with UNAVAILABLE at the client, which may connect
   * again. NOT_FOUND (CONNECTION_NOT_FOUND).
   */
  public void closeConnection(long id) {
    rpc.call(
        ServerServiceGrpc.getCloseConnectionMethod(),
        CloseConnectionRequest.newBuilder().setId(id).build(),
        false);
  }

  /** The last 256 calls that took longer than log.slow_call, the latest first. */
  public ListSlowCallsResponse listSlowCalls() {
    return rpc.call(
        ServerServiceGrpc.getListSlowCallsMethod(),
        ListSlowCallsRequest.getDefaultInstance(),
        true);
  }

  /** The server itself: version, age, limits and how far they are used. */
  public GetServerResponse getServer() {
    return rpc.call(
        ServerServiceGrpc.getGetServerMethod(), GetServerRequest.getDefaultInstance(), true);
  }

  /**
   * The cluster as the node that calls go to now sees it, whether it owns or not.
   *
   * @throws TimecacheException FAILED_PRECONDITION (NO_CLUSTER) of a server that is no node
   */
  public GetClusterResponse getCluster() {
    return rpc.call(
        ServerServiceGrpc.getGetClusterMethod(), GetClusterRequest.getDefaultInstance(), true);
  }

  /**
   * Makes the owner hand the ownership over to the standby of this name; empty: to the one that has
   * replayed most. Returns its name once the ownership is released; calls and streams then go on
   * there by themselves.
   *
   * @throws TimecacheException FAILED_PRECONDITION: NO_CLUSTER, or NO_SUCCESSOR (no such standby
   *     has caught up, and the owner goes on)
   */
  public String handOver(String to) {
    return rpc.call(
            ServerServiceGrpc.getHandOverMethod(),
            HandOverRequest.newBuilder().setTo(to).build(),
            false)
        .getTo();
  }

  /** Whether the server serves, which needs no right. False: it is stopping, or has not begun. */
  public boolean isServing() {
    return isServing(rpc);
  }

  private static boolean isServing(Rpc rpc) {
    return rpc.call(CHECK_HEALTH, Empty.getDefaultInstance(), true).getValue() == SERVING;
  }

  /**
   * Writes a backup of the server's journal, a tar archive. Without an exception it is whole. Has
   * no time-out, and is never repeated; the server ends it if nothing can be written for 30 s.
   *
   * @throws IOException of the output
   * @throws TimecacheException FAILED_PRECONDITION (NO_JOURNAL), RESOURCE_EXHAUSTED (MAX_BACKUPS)
   */
  public void backupJournal(OutputStream output) throws IOException {
    try (Pages<BackupJournalResponse> pieces =
        new Pages<>(
            rpc,
            ServerServiceGrpc.getBackupJournalMethod(),
            BackupJournalRequest.getDefaultInstance())) {
      while (pieces.hasNext()) {
        pieces.next().getData().writeTo(output);
      }
    }
  }

  /** The clock of a server that was started for tests. */
  public VirtualClock virtualClock() {
    return new VirtualClock(rpc.withTimeout(Duration.ofMinutes(1)));
  }

  /** A request that names no option to set to its default needs no mask. */
  private static FieldMask mask(Message options, String... toDefault) {
    FieldMask.Builder mask = FieldMask.newBuilder();
    if (toDefault.length > 0) {
      Set<String> names = new TreeSet<>(List.of(toDefault));
      options.getAllFields().keySet().forEach(field -> names.add(field.getName()));
      names.forEach(name -> mask.addPaths("options." + name));
    }
    return mask.build();
  }
}
