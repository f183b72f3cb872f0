package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import com.google.protobuf.ByteString;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.NamespaceOptions;
import io.grpc.Status.Code;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@NeedsServer
@Timeout(180)
final class ClientTest {
  private static TestServer server;
  private static TimecacheClient connection;
  private TimecacheClient client; // In a namespace of the test's own.

  @BeforeAll
  static void start() {
    server = TestServer.onVirtualClock();
    connection = server.client();
  }

  @AfterAll
  static void stop() {
    connection.close();
    server.close();
  }

  @BeforeEach
  void makeNamespace() {
    connection.createNamespace(
        "test",
        NamespaceOptions.newBuilder()
            .setTtl(Times.toProto(Duration.ofSeconds(30)))
            .setMaxValueBytes(16 << 20)
            .build());
    client = connection.in("test");
  }

  @AfterEach
  void deleteNamespace() {
    connection.deleteNamespace("test");
  }

  private static TimecacheException failure(Runnable call) {
    return assertThrows(TimecacheException.class, call::run);
  }

  @Test
  void bytesStayBytes() {
    ByteString key = ByteString.copyFrom(new byte[] {0, (byte) 0xff, 10});
    ByteString value = ByteString.copyFrom(new byte[] {(byte) 0xc3, 0x28, 0});
    client.put(key, value);
    assertEquals(value, client.get(key).orElseThrow().value());
    client.put("größe", "10 µm");
    assertEquals("10 µm", client.get("größe").orElseThrow().valueUtf8());
  }

  private record Order(String item, int count) {}

  @Test
  void codecs() throws Exception {
    Gson gson = new Gson();
    Codec<Order> orders = Codec.text(gson::toJson, json -> gson.fromJson(json, Order.class));
    Order lamps = new Order("10 µm", 2);
    client.put("order-17", orders.encode(lamps));
    assertEquals(
        "{\"item\":\"10 µm\",\"count\":2}", client.get("order-17").orElseThrow().valueUtf8());
    assertEquals(lamps, client.get("order-17").orElseThrow().value(orders));
    assertThrows(
        IllegalArgumentException.class,
        () -> orders.decode(ByteString.copyFrom(new byte[] {(byte) 0xc3, 0x28})));
    assertThrows(JsonSyntaxException.class, () -> orders.decode(ByteString.copyFromUtf8("{")));
    // Functions of bytes, as those of Jackson; with checked exceptions.
    Codec<Long> longs =
        Codec.bytes(
            value -> ByteBuffer.allocate(8).putLong(value).array(),
            bytes -> new DataInputStream(new ByteArrayInputStream(bytes)).readLong());
    try (Watcher watcher = client.watch(new WatchOptions())) {
      watcher.next();
      client.put("n", longs.encode(-7L));
      connection.virtualClock().advance(Duration.ofSeconds(31));
      List<ExpiredEvent> events = List.of();
      while (events.isEmpty()) {
        events =
            watcher.next().events().stream().filter(one -> one.keyUtf8().equals("n")).toList();
      }
      assertEquals(-7L, events.get(0).value(longs));
    }
    IllegalArgumentException error =
        assertThrows(IllegalArgumentException.class, () -> longs.decode(ByteString.EMPTY));
    assertTrue(error.getCause() instanceof EOFException);
  }

  @Test
  void errorsSayWhy() {
    TimecacheException error = failure(() -> client.withRequestId("call-7").in("absent").get("k"));
    assertEquals(Code.NOT_FOUND, error.code());
    assertEquals(Optional.of("NAMESPACE_NOT_FOUND"), error.reason());
    assertEquals(Optional.of("call-7"), error.requestId());
    error = failure(() -> client.put("k", "v", new PutOptions().ttl(Duration.ofSeconds(-1))));
    assertEquals(Code.INVALID_ARGUMENT, error.code());
    assertEquals("ttl", error.fieldViolations().get(0).field());
    connection.updateNamespace(
        "test", NamespaceOptions.newBuilder().setMaxOperationsPerSecond(1).build());
    client.contains("k");
    error = failure(() -> client.contains("k"));
    assertTrue(error.is(ErrorReason.MAX_OPERATION_RATE));
    assertTrue(error.retryDelay().orElseThrow().compareTo(Duration.ofSeconds(1)) <= 0);
    assertThrows(IllegalArgumentException.class, () -> client.withRequestId("two words"));
  }

  @Test
  void futures() throws Exception {
    AsyncTimecache async = client.async();
    assertEquals(
        "1",
        async.put("k", "1").thenCompose(put -> async.get("k")).get().orElseThrow().valueUtf8());
    assertEquals(new SizeResult(1, 2), async.size().get());
    ExecutionException error =
        assertThrows(
            ExecutionException.class, () -> async.put("k", "2", new PutOptions().ifAbsent()).get());
    assertTrue(((TimecacheException) error.getCause()).is(ErrorReason.KEY_EXISTS));
    List<CompletableFuture<CombineResult>> adds = new ArrayList<>();
    for (int i = 0; i < 100; ++i) {
      adds.add(async.add("n", 1));
    }
    adds.forEach(CompletableFuture::join);
    assertEquals("100", client.get("n").orElseThrow().valueUtf8());
  }

  @Test
  void batches() {
    Batch batch = new Batch();
    CompletableFuture<PutResult> put = batch.add(Operation.put("a", "1"));
    CompletableFuture<Optional<Entry>> get = batch.add(Operation.get("a"));
    CompletableFuture<CombineResult> add = batch.add(Operation.add("a", 1));
    CompletableFuture<PutResult> refused =
        batch.add(Operation.put("a", "2", new PutOptions().ifAbsent()));
    client.execute(batch);
    assertEquals(put.join().version(), get.join().orElseThrow().version());
    assertEquals("a", get.join().orElseThrow().keyUtf8());
    assertEquals(2, add.join().result());
    CompletionException error = assertThrows(CompletionException.class, refused::join);
    assertTrue(((TimecacheException) error.getCause()).is(ErrorReason.KEY_EXISTS));
    assertThrows(IllegalStateException.class, () -> client.execute(batch));
    client.execute(new Batch());
    Batch lost = new Batch();
    CompletableFuture<Boolean> contains = lost.add(Operation.contains("a"));
    assertEquals(Code.NOT_FOUND, failure(() -> client.in("absent").execute(lost)).code());
    assertTrue(contains.isCompletedExceptionally());
    Batch later = new Batch();
    CompletableFuture<Boolean> there = later.add(Operation.contains("a"));
    client.async().execute(later).join();
    assertTrue(there.join());
  }

  @Test
  void pipelines() {
    List<CompletableFuture<CombineResult>> results = new ArrayList<>();
    PipelineOptions narrow = new PipelineOptions(16, 1 << 10, 2, 64, 1 << 12);
    try (Pipeline pipeline = client.pipeline(narrow)) {
      for (int i = 0; i < 1000; ++i) {
        results.add(pipeline.add(Operation.add("n", 1)));
      }
      pipeline.await();
      assertTrue(results.stream().allMatch(CompletableFuture::isDone));
      // One that is larger than all bounds goes alone.
      ByteString large = ByteString.copyFrom(new byte[1 << 20]);
      pipeline.add(Operation.put(ByteString.copyFromUtf8("large"), large)).join();
      assertEquals(
          Code.INVALID_ARGUMENT,
          ((TimecacheException)
                  assertThrows(
                          CompletionException.class,
                          () ->
                              pipeline
                                  .add(Operation.put("k", ByteString.copyFrom(new byte[17 << 20])))
                                  .join())
                      .getCause())
              .code());
    }
    for (int i = 0; i < 1000; ++i) {
      assertEquals(i + 1, results.get(i).join().result());
    }
    Pipeline lost = client.in("absent").pipeline();
    CompletableFuture<Boolean> contains = lost.add(Operation.contains("k"));
    assertThrows(CompletionException.class, contains::join);
    assertEquals(Code.NOT_FOUND, failure(lost::close).code());
    Pipeline cancelled = client.pipeline();
    cancelled.cancel();
    cancelled.close();
  }

  @Test
  void scans() {
    try (Pipeline pipeline = client.pipeline()) {
      for (int i = 0; i < 2500; ++i) {
        pipeline.add(Operation.put("a/" + i, "v"));
      }
      pipeline.add(Operation.put("b/1", "v"));
    }
    try (Stream<Entry> entries = client.scan()) {
      assertEquals(2501, entries.map(Entry::keyUtf8).distinct().count());
    }
    try (Stream<Entry> entries = client.scan(new ScanOptions().prefix("b/").keysOnly())) {
      assertEquals(List.of("b/1"), entries.map(Entry::keyUtf8).toList());
    }
    try (Stream<Entry> entries = client.scan()) {
      assertEquals(10, entries.limit(10).count());
    }
    try (Stream<Entry> entries = client.in("absent").scan()) {
      assertEquals(Code.NOT_FOUND, failure(entries::count).code());
    }
  }

  @Test
  void aServerWithoutAJournalHasNoBackup() throws Exception {
    TimecacheException error =
        assertThrows(
            TimecacheException.class,
            () -> connection.backupJournal(new ByteArrayOutputStream()));
    assertTrue(error.is(ErrorReason.NO_JOURNAL));
  }

  @Test
  void whatMakesNoClientOrPipeline() {
    for (String address : List.of("", "localhost", "127.0.0.1", "[::1]")) {
      IllegalArgumentException error =
          assertThrows(
              IllegalArgumentException.class, () -> TimecacheClient.connect(address).close());
      assertTrue(error.getMessage().contains("host:port"), error.getMessage());
    }
    assertThrows(IllegalArgumentException.class, () -> new PipelineOptions(4097, 1, 1, 1, 1));
    assertThrows(IllegalArgumentException.class, () -> new PipelineOptions(1, 1, 0, 1, 1));
  }

  @Test
  void preconditionsExcludeEachOther() {
    PutOptions absent = new PutOptions().ifAbsent();
    assertThrows(IllegalStateException.class, () -> absent.ifVersion(1));
    assertThrows(IllegalStateException.class, absent::ifPresent);
    assertThrows(IllegalStateException.class, () -> new PutOptions().ifVersion(1).ifAbsent());
    assertThrows(IllegalStateException.class, () -> new AppendOptions().ifAbsent().ifVersion(1));
    assertEquals(2, new PutOptions().ifVersion(1).ifVersion(2).request.getIfVersion());
  }

  @Test
  void thereIsNoServer() throws Exception {
    int port;
    try (ServerSocket socket = new ServerSocket(0)) {
      port = socket.getLocalPort();
    }
    try (TimecacheClient lost = TimecacheClient.connect("127.0.0.1:" + port)) {
      long before = System.nanoTime();
      assertEquals(Code.UNAVAILABLE, failure(() -> lost.get("k")).code());
      assertEquals(Code.UNAVAILABLE, failure(() -> lost.get("k")).code());
      assertTrue(failure(() -> lost.get("k")).isConnectionLost());
      assertTrue(System.nanoTime() - before < 12_000_000_000L);
      assertThrows(CompletionException.class, () -> lost.async().get("k").join());
    }
  }

  @Test
  void aServerThatDoesNotAnswer() throws Exception {
    try (ServerSocket silent = new ServerSocket(0);
        TimecacheClient lost =
            TimecacheClient.connect("127.0.0.1:" + silent.getLocalPort())
                .withTimeout(Duration.ofMillis(400))) {
      assertEquals(Code.DEADLINE_EXCEEDED, failure(() -> lost.get("k")).code());
      CompletableFuture<?> future = lost.withTimeout(Duration.ofMinutes(1)).async().get("k");
      assertTrue(future.cancel(true));
      Thread waiting = Thread.currentThread();
      Thread interrupter =
          new Thread(
              () -> {
                while (waiting.getState() != Thread.State.TIMED_WAITING
                    && waiting.getState() != Thread.State.WAITING) {
                  Thread.onSpinWait();
                }
                waiting.interrupt();
              });
      interrupter.start();
      assertEquals(
          Code.CANCELLED, failure(() -> lost.withTimeout(Duration.ofMinutes(1)).get("k")).code());
      assertTrue(Thread.interrupted());
    }
  }
}
