package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import dev.timecached.v1.ConsumeExpiredRequest;
import dev.timecached.v1.ConsumeExpiredResponse;
import dev.timecached.v1.ContainsRequest;
import dev.timecached.v1.ContainsResponse;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.ExecuteResponse;
import dev.timecached.v1.ExpiredEvent;
import dev.timecached.v1.GetClusterRequest;
import dev.timecached.v1.GetClusterResponse;
import dev.timecached.v1.HandOverRequest;
import dev.timecached.v1.HandOverResponse;
import dev.timecached.v1.NodeRole;
import dev.timecached.v1.PutRequest;
import dev.timecached.v1.PutResponse;
import dev.timecached.v1.ScanRequest;
import dev.timecached.v1.ScanResponse;
import dev.timecached.v1.ServerServiceGrpc;
import dev.timecached.v1.SettleExpiredRequest;
import dev.timecached.v1.SettleExpiredResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import dev.timecached.v1.WatchExpiredRequest;
import dev.timecached.v1.WatchExpiredResponse;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.InsecureServerCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A client with the addresses of several nodes: which one it calls, and when it leaves it. */
@Timeout(120)
final class ClusterTest {
  private static final StatusRuntimeException BROKEN =
      io.grpc.Status.UNAVAILABLE.withDescription("the connection broke").asRuntimeException();

  private final Node a = new Node();
  private final Node b = new Node();
  private final List<TimecacheClient> clients = new ArrayList<>();

  @AfterEach
  void stop() {
    clients.forEach(TimecacheClient::close);
    a.server.shutdownNow();
    b.server.shutdownNow();
  }

  private TimecacheClient client(String... addresses) {
    String[] all =
        addresses.length == 0 ? new String[] {a.address + ", " + b.address} : addresses;
    TimecacheClient client =
        TimecacheClient.builder(all).timeout(Duration.ofSeconds(60)).build();
    clients.add(client);
    return client;
  }

  private static StatusRuntimeException notOwner(String owner) {
    return refusal("NOT_OWNER", owner);
  }

  private static StatusRuntimeException refusal(String reason, String owner) {
    ErrorInfo.Builder info = ErrorInfo.newBuilder().setReason(reason).setDomain("timecached");
    if (!owner.isEmpty()) {
      info.putMetadata("owner_address", owner);
    }
    return StatusProto.toStatusRuntimeException(
        com.google.rpc.Status.newBuilder()
            .setCode(Code.UNAVAILABLE.value())
            .setMessage("not the owner")
            .addDetails(Any.pack(info.build()))
            .build());
  }

  /** An address that nothing listens at. */
  private static String gone() {
    try (ServerSocket socket = new ServerSocket(0)) {
      return "127.0.0.1:" + socket.getLocalPort();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Describes a cluster. */
  private static final class Admin extends ServerServiceGrpc.ServerServiceImplBase {
    @Override
    public void getCluster(GetClusterRequest request, StreamObserver<GetClusterResponse> observer) {
      GetClusterResponse.Builder cluster = GetClusterResponse.newBuilder().setOwner("a");
      cluster.addNodesBuilder().setName("a").setRole(NodeRole.NODE_ROLE_OWNER);
      observer.onNext(cluster.build());
      observer.onCompleted();
    }

    @Override
    public void handOver(HandOverRequest request, StreamObserver<HandOverResponse> observer) {
      String to = request.getTo().isEmpty() ? "the best" : request.getTo();
      observer.onNext(HandOverResponse.newBuilder().setTo(to).build());
      observer.onCompleted();
    }
  }

  /** Refuses calls while it has an error to give, and notes those that it answers. */
  private static final class Node extends TimeCacheServiceGrpc.TimeCacheServiceImplBase {
    volatile StatusRuntimeException error; // Null: it answers.
    volatile boolean hangs; // Nothing is answered.
    final AtomicInteger refusalsLeft = new AtomicInteger(-1); // So many, then it owns.
    final List<String> keys = new CopyOnWriteArrayList<>();
    final List<String> tokens = new CopyOnWriteArrayList<>();
    final BlockingQueue<StreamObserver<WatchExpiredResponse>> watches =
        new LinkedBlockingQueue<>();
    final CountDownLatch settled = new CountDownLatch(1);
    final Server server;
    final String address;

    Node() {
      try {
        server =
            Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
                .addService(this)
                .addService(new Admin())
                .build()
                .start();
      } catch (IOException e) {
        throw new AssertionError(e);
      }
      address = "127.0.0.1:" + server.getPort();
    }

    /** The watch ends so, too. */
    void handOver(StatusRuntimeException error) throws InterruptedException {
      this.error = error;
      FakeServer.take(watches).onError(error);
    }

    private <A> boolean refuses(StreamObserver<A> observer) {
      if (hangs) {
        return true;
      }
      if (refusalsLeft.get() > 0 && refusalsLeft.decrementAndGet() == 0) {
        error = null;
      }
      StatusRuntimeException why = error;
      if (why != null) {
        observer.onError(why);
      }
      return why != null;
    }

    private <A> void answer(StreamObserver<A> observer, A answer) {
      observer.onNext(answer);
      observer.onCompleted();
    }

    private ExpiredEvent event() {
      return ExpiredEvent.newBuilder()
          .setKey(ByteString.copyFromUtf8(address))
          .setEventId(7)
          .setAttempt(1)
          .build();
    }

    @Override
    public void put(PutRequest request, StreamObserver<PutResponse> observer) {
      if (!refuses(observer)) {
        keys.add(request.getKey().toStringUtf8());
        answer(observer, PutResponse.newBuilder().setVersion(1).build());
      }
    }

    @Override
    public void contains(ContainsRequest request, StreamObserver<ContainsResponse> observer) {
      if (!refuses(observer)) {
        answer(observer, ContainsResponse.newBuilder().setContains(true).build());
      }
    }

    @Override
    public void scan(ScanRequest request, StreamObserver<ScanResponse> observer) {
      if (!refuses(observer)) {
        ScanResponse.Builder page = ScanResponse.newBuilder();
        page.addEntriesBuilder().setKey(ByteString.copyFromUtf8("scanned"));
        answer(observer, page.build());
      }
    }

    @Override
    public StreamObserver<ExecuteRequest> pipeline(StreamObserver<ExecuteResponse> observer) {
      boolean refusedAtOnce = refuses(observer);
      return new StreamObserver<>() {
        private boolean refused = refusedAtOnce;

        @Override
        public void onNext(ExecuteRequest request) {
          refused = refused || refuses(observer);
          if (refused) {
            return;
          }
          ExecuteResponse.Builder response = ExecuteResponse.newBuilder();
          request
              .getOperationsList()
              .forEach(
                  operation -> {
                    if (operation.hasContains()) {
                      response.addResultsBuilder().getContainsBuilder().setContains(true);
                      return;
                    }
                    keys.add(operation.getPut().getKey().toStringUtf8());
                    response.addResultsBuilder().getPutBuilder().setVersion(1);
                  });
          observer.onNext(response.build());
        }

        @Override
        public void onError(Throwable why) {}

        @Override
        public void onCompleted() {
          if (!refused) {
            observer.onCompleted();
          }
        }
      };
    }

    @Override
    public void watchExpired(
        WatchExpiredRequest request, StreamObserver<WatchExpiredResponse> observer) {
      if (refuses(observer)) {
        return;
      }
      request.getResumeTokensList().forEach(token -> tokens.add(token.toStringUtf8()));
      observer.onNext(
          WatchExpiredResponse.newBuilder()
              .setNamespace("default")
              .setResumeToken(ByteString.copyFromUtf8(address))
              .addEvents(event())
              .build());
      watches.add(observer);
    }

    @Override
    public void consumeExpired(
        ConsumeExpiredRequest request, StreamObserver<ConsumeExpiredResponse> observer) {
      if (!refuses(observer)) {
        observer.onNext(
            ConsumeExpiredResponse.newBuilder()
                .setNamespace("default")
                .addEvents(event())
                .build());
      }
    }

    @Override
    public void settleExpired(
        SettleExpiredRequest request, StreamObserver<SettleExpiredResponse> observer) {
      if (!refuses(observer)) {
        SettleExpiredResponse.Builder response = SettleExpiredResponse.newBuilder();
        request.getSettlementsList().forEach(unused -> response.addResultsBuilder());
        answer(observer, response.build());
        settled.countDown();
      }
    }
  }

  private static String keyOf(WatchBatch batch) {
    return batch.events().get(0).keyUtf8();
  }

  @Test
  void callsGoToTheOwnerThatTheNodeNames() {
    a.error = notOwner(b.address);
    client().put("key", "value");
    assertEquals(List.of("key"), b.keys);
    try (var entries = client().scan(new ScanOptions())) {
      assertEquals(List.of("scanned"), entries.map(entry -> entry.keyUtf8()).toList());
    }
  }

  @Test
  void futuresGoToTheOwner() {
    a.error = notOwner(b.address);
    client().async().put("key", "value").join();
    client(gone(), b.address).async().put("more", "value").join();
    assertEquals(List.of("key", "more"), b.keys);
  }

  @Test
  void callsWaitUntilANodeOwns() {
    a.error = notOwner("");
    b.error = notOwner("");
    b.refusalsLeft.set(3);
    client().put("key", "value");
    assertEquals(List.of("key"), b.keys);
  }

  @Test
  void withoutAnOwnerACallEndsWithItsTimeout() {
    a.error = notOwner("");
    b.error = notOwner("");
    TimecacheException error =
        assertThrows(
            TimecacheException.class,
            () -> client().withTimeout(Duration.ofMillis(100)).put("key", "value"));
    assertTrue(error.is(ErrorReason.NOT_OWNER) || error.code() == Code.DEADLINE_EXCEEDED);
  }

  @Test
  void oneAddressIsEnoughToFindTheOwner() {
    a.error = notOwner(b.address);
    client(a.address).put("key", "value");
    assertEquals(List.of("key"), b.keys);
  }

  @Test
  void nodesThatAreGoneAreLeftByTheSameCall() {
    client(gone(), b.address).put("first", "");
    a.error = notOwner(gone());
    client().put("second", "");
    assertEquals(List.of("first", "second"), b.keys);
    TimecacheException error =
        assertThrows(TimecacheException.class, () -> client(gone(), gone()).put("key", ""));
    assertEquals(Code.UNAVAILABLE, error.code());
    assertFalse(error.maybeApplied());
  }

  @Test
  void aBrokenCallIsRepeatedElsewhereOnlyIfThatIsSafe() {
    TimecacheClient client = client();
    client.contains("warm");
    a.error = BROKEN;
    TimecacheException error =
        assertThrows(TimecacheException.class, () -> client.put("key", "value"));
    assertTrue(error.maybeApplied());
    client.put("next", "value");
    assertEquals(List.of("next"), b.keys);
    a.error = null;
    b.error = BROKEN;
    assertTrue(client.contains("key"));
  }

  private static WatchOptions quick() {
    return new WatchOptions().pauses(Duration.ofMillis(1), Duration.ofMillis(1));
  }

  @Test
  void aWatchResumesAtTheOwnerWithItsToken() throws Exception {
    try (Watcher watcher = client().watch(quick())) {
      assertEquals(a.address, keyOf(watcher.next()));
      a.handOver(notOwner(b.address));
      WatchBatch batch = watcher.next();
      assertEquals(b.address, keyOf(batch));
      assertTrue(batch.reconnected());
    }
    assertEquals(List.of(a.address), b.tokens);
  }

  @Test
  void aWatchResumesAtTheNextAddressWhenItsNodeDies() {
    try (Watcher watcher = client().watch(quick())) {
      watcher.next();
      b.error = notOwner(a.address);
      b.refusalsLeft.set(3);
      a.server.shutdownNow();
      assertEquals(b.address, keyOf(watcher.next()));
    }
    assertEquals(List.of(a.address), b.tokens);
  }

  @Test
  void aWatchThatBeginsFindsTheOwner() {
    a.error = notOwner(b.address);
    List<TimecacheException> breaks = new CopyOnWriteArrayList<>();
    for (String first : List.of(a.address, gone())) {
      try (Watcher watcher = client(first, b.address).watch(quick().onBreak(breaks::add))) {
        assertEquals(b.address, keyOf(watcher.next()));
      }
    }
    assertEquals(List.of(), breaks);
  }

  @Test
  void aWorkerTakesAndSettlesAtTheOwner() throws Exception {
    a.error = notOwner(b.address);
    try (GroupWorker worker =
        client().worker(new GroupWorkerOptions("g"), event -> Settle.ack())) {
      assertTrue(b.settled.await(60, TimeUnit.SECONDS));
    }
  }

  @Test
  void aPipelineThatIsRefusedGoesOnAtTheOwner() {
    a.error = notOwner(b.address);
    for (String first : List.of(a.address, gone())) {
      List<CompletableFuture<PutResult>> puts = new ArrayList<>();
      try (Pipeline pipeline = client(first, b.address).pipeline()) {
        for (int i = 0; i < 10; ++i) {
          puts.add(pipeline.add(Operation.put(first + " " + i, "")));
        }
      }
      puts.forEach(put -> assertEquals(1, put.join().version()));
    }
    assertEquals(20, b.keys.size());
    client().pipeline().close();
  }

  @Test
  void aPipelineGoesOnAtTheNextOwner() {
    List<CompletableFuture<PutResult>> puts = new ArrayList<>();
    try (Pipeline pipeline = client().pipeline()) {
      pipeline.add(Operation.put("first", "")).join();
      a.error = notOwner(b.address);
      for (int i = 0; i < 10; ++i) {
        puts.add(pipeline.add(Operation.put("later", "")));
      }
    }
    puts.forEach(put -> assertEquals(1, put.join().version()));
    assertEquals(List.of("first"), a.keys);
    assertEquals(10, b.keys.size());
  }

  @Test
  void whatANodeWroteAsItLostTheOwnershipMayBeStored() {
    a.error = refusal("OWNERSHIP_LOST", "");
    TimecacheException error =
        assertThrows(TimecacheException.class, () -> client().put("key", "value"));
    assertTrue(error.maybeApplied());
  }

  @Test
  void aPipelineWithoutAnOwnerEndsWithItsTimeout() {
    a.error = notOwner("");
    b.error = notOwner("");
    Pipeline pipeline = client().withTimeout(Duration.ofMillis(100)).pipeline();
    CompletableFuture<PutResult> put = pipeline.add(Operation.put("key", ""));
    TimecacheException error = assertThrows(TimecacheException.class, pipeline::close);
    assertEquals(Code.DEADLINE_EXCEEDED, error.code());
    assertTrue(put.isCompletedExceptionally());
  }

  private void assertLate(Runnable call) {
    TimecacheException error = assertThrows(TimecacheException.class, call::run);
    assertEquals(Code.DEADLINE_EXCEEDED, error.code());
  }

  @Test
  void aNodeThatHangsIsLeftByTheNextCall() {
    TimecacheClient client = client();
    client.put("connected", ""); // A call that is not sent says nothing about the node.
    a.hangs = true;
    assertLate(() -> client.withTimeout(Duration.ofMillis(100)).put("first", ""));
    client.put("next", "");
    assertEquals(List.of("next"), b.keys);
  }

  @Test
  void aNodeThatHangsIsLeftByTheNextPipeline() {
    a.hangs = true;
    TimecacheClient client = client();
    Pipeline pipeline = client.withTimeout(Duration.ofMillis(100)).pipeline();
    pipeline.add(Operation.put("first", ""));
    assertLate(pipeline::close);
    try (Pipeline next = client.pipeline()) {
      next.add(Operation.put("next", ""));
    }
    assertEquals(List.of("next"), b.keys);
  }

  @Test
  void theOnlyNodeIsKeptThoughItHangs() {
    a.hangs = true;
    TimecacheClient client = client(a.address);
    assertLate(() -> client.withTimeout(Duration.ofMillis(100)).put("first", ""));
    a.hangs = false;
    client.put("next", "");
    assertEquals(List.of("next"), a.keys);
  }

  @Test
  void aWatchLeavesANodeThatHangs() {
    try (Watcher watcher = client().watch(quick().silenceMax(Duration.ofMillis(500)))) {
      assertEquals(a.address, keyOf(watcher.next()));
      assertEquals(b.address, keyOf(watcher.next()));
    }
    assertEquals(a.address, b.tokens.get(0));
    // It is silent from the beginning.
    a.hangs = true;
    try (Watcher watcher = client().watch(quick().silenceMax(Duration.ofMillis(500)))) {
      assertEquals(b.address, keyOf(watcher.next()));
    }
  }

  @Test
  void silenceIsBoundedWhereThereAreOtherNodes() {
    ManagedChannel channel =
        Grpc.newChannelBuilder(gone(), InsecureChannelCredentials.create()).build();
    Connection none = new Connection(channel, () -> {}, null);
    Endpoints one = new Endpoints(none);
    Endpoints two = new Endpoints(List.of("a:1", "b:1"), address -> none, null);
    Duration minute = Duration.ofMinutes(1);
    assertEquals(Long.MAX_VALUE / 2, one.silenceNanos(null, null));
    assertEquals(Duration.ofSeconds(10).toNanos(), two.silenceNanos(null, null));
    assertEquals(4 * minute.toNanos(), two.silenceNanos(null, minute));
    assertEquals(minute.toNanos(), two.silenceNanos(minute, null));
    channel.shutdownNow();
  }

  @Test
  void theClusterIsDescribedAndHandedOver() {
    GetClusterResponse cluster = client().getCluster();
    assertEquals("a", cluster.getOwner());
    assertEquals(NodeRole.NODE_ROLE_OWNER, cluster.getNodes(0).getRole());
    assertEquals("b", client().handOver("b"));
    assertEquals("the best", client().handOver(""));
  }

  @Test
  void addressesThatAreNoneAreNamed() {
    for (String wrong : List.of("a:1,,b:1", "a:1,b", "a:1," + "b:1,".repeat(15) + "b:1")) {
      assertThrows(
          IllegalArgumentException.class, () -> TimecacheClient.builder(wrong), wrong);
    }
    assertThrows(IllegalArgumentException.class, () -> TimecacheClient.builder());
    assertTrue(
        assertThrows(IllegalArgumentException.class, () -> TimecacheClient.builder("a:1", "b"))
            .getMessage()
            .contains("\"b\""));
    assertTrue(
        assertThrows(
                IllegalArgumentException.class,
                () -> TimecacheClient.builder("127.0.0.1:1,cache:1").token("t").build())
            .getMessage()
            .contains("cache:1"));
  }
}
