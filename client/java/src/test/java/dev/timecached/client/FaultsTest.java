package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import dev.timecached.v1.ConsumeExpiredResponse;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.GroupOptions;
import dev.timecached.v1.NamespaceOptions;
import dev.timecached.v1.SettleExpiredResponse;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.Status.Code;
import io.grpc.stub.StreamObserver;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What a client does as the server, or its own user, does what they should not. */
@Timeout(120)
final class FaultsTest {
  private static final GroupWorkerOptions OPTIONS =
      new GroupWorkerOptions("g").pauses(Duration.ofMillis(1), Duration.ofMillis(10));

  private final BlockingQueue<ExpiredEvent> handled = new LinkedBlockingQueue<>();
  private final FakeServer server = new FakeServer();
  private final TimecacheClient client = server.builder().build();

  @AfterEach
  void stop() {
    client.close();
    server.close();
  }

  private static void give(
      StreamObserver<ConsumeExpiredResponse> member, int id, int attempt, String key) {
    member.onNext(
        ConsumeExpiredResponse.newBuilder()
            .setNamespace("default")
            .addEvents(
                dev.timecached.v1.ExpiredEvent.newBuilder()
                    .setNamespace("default")
                    .setEventId(id)
                    .setAttempt(attempt)
                    .setDeliveryToken(token(id, attempt))
                    .setVersion(key.hashCode())
                    .setKey(ByteString.copyFromUtf8(key)))
            .build());
  }

  private static ByteString token(int id, int attempt) {
    return ByteString.copyFromUtf8(id + " " + attempt);
  }

  private static void breakOff(StreamObserver<ConsumeExpiredResponse> member) {
    member.onError(Status.UNAVAILABLE.asRuntimeException());
  }

  private static com.google.rpc.Status error(Code code, ErrorReason reason) {
    return com.google.rpc.Status.newBuilder()
        .setCode(code.value())
        .addDetails(Any.pack(ErrorInfo.newBuilder().setReason(reason.name()).build()))
        .build();
  }

  /** The only settlement of the next call, which it answers. */
  private dev.timecached.v1.Settlement settle(com.google.rpc.Status error) throws Exception {
    FakeServer.SettleCall call = FakeServer.take(server.settles);
    call.answer(error);
    assertEquals(1, call.request().getSettlementsCount());
    return call.request().getSettlements(0);
  }

  private static void await(GroupWorker worker, Predicate<GroupWorkerCounters> condition)
      throws Exception {
    for (int i = 0; !condition.test(worker.counters()); ++i) {
      assertTrue(i < 30_000, () -> "does not get there: " + worker.counters());
      Thread.sleep(1);
    }
  }

  private static TimecacheException failure(CompletableFuture<?> future) {
    ExecutionException error =
        assertThrows(ExecutionException.class, () -> future.get(30, TimeUnit.SECONDS));
    return (TimecacheException) error.getCause();
  }

  /** A call that asks for more time. */
  private static boolean extend(FakeServer.SettleCall call) {
    return call.request().getSettlements(0).hasExtend();
  }

  @Test
  void anEventIsExtendedUntilItIsSettled() throws Exception {
    server.ackTimeout = Duration.ofMillis(30);
    CountDownLatch release = new CountDownLatch(1);
    EventHandler handler =
        EventHandler.acking(
            event -> {
              handled.add(event);
              release.await();
            });
    try (GroupWorker worker = client.worker(OPTIONS.threads(1), handler)) {
      StreamObserver<ConsumeExpiredResponse> member = FakeServer.take(server.members);
      give(member, 1, 2, "begun");
      give(member, 2, 1, "waits");
      assertEquals("begun", FakeServer.take(handled).keyUtf8());
      Set<ByteString> extended = new HashSet<>();
      for (int i = 0; i < 3 || extended.size() < 2; ++i) {
        FakeServer.SettleCall call = FakeServer.take(server.settles);
        assertTrue(extend(call));
        call.request()
            .getSettlementsList()
            .forEach(
                one -> {
                  extended.add(one.getDeliveryToken());
                });
        call.answer(null);
      }
      release.countDown();
      for (int acked = 0; acked < 2; ) {
        FakeServer.SettleCall call = FakeServer.take(server.settles);
        call.answer(null);
        acked += extend(call) ? 0 : call.request().getSettlementsCount();
      }
      await(worker, counters -> counters.acked() == 2);
      // What is settled is not extended.
      FakeServer.SettleCall late = server.settles.poll(100, TimeUnit.MILLISECONDS);
      if (late != null) {
        late.answer(null); // It was on its way.
      }
      assertEquals(null, server.settles.poll(100, TimeUnit.MILLISECONDS));
    } finally {
      release.countDown();
    }
  }

  @Test
  void anEventIsExtendedNoLongerThanIsAskedFor() throws Exception {
    server.ackTimeout = Duration.ofMillis(15);
    for (Duration max : List.of(Duration.ZERO, Duration.ofMillis(60))) {
      CountDownLatch release = new CountDownLatch(1);
      EventHandler handler = EventHandler.acking(event -> release.await());
      try (GroupWorker worker = client.worker(OPTIONS.extendMax(max), handler)) {
        give(FakeServer.take(server.members), 1, 1, "k");
        FakeServer.SettleCall call;
        int extended = 0;
        while ((call = server.settles.poll(300, TimeUnit.MILLISECONDS)) != null) {
          assertTrue(extend(call));
          ++extended;
          call.answer(null);
        }
        assertEquals(max.isZero(), extended == 0);
        release.countDown();
        assertTrue(settle(null).hasAck());
        await(worker, counters -> counters.acked() == 1);
      }
    }
  }

  @Test
  void anAttemptThatHasEndedIsNotExtendedAgainAndItsSettlementIsTold() throws Exception {
    server.ackTimeout = Duration.ofMillis(15);
    CountDownLatch release = new CountDownLatch(1);
    BlockingQueue<Throwable> errors = new LinkedBlockingQueue<>();
    EventHandler handler = EventHandler.acking(event -> release.await());
    try (GroupWorker worker = client.worker(OPTIONS.onError(errors::add), handler)) {
      give(FakeServer.take(server.members), 7, 4, "k");
      FakeServer.SettleCall call = FakeServer.take(server.settles);
      assertTrue(extend(call));
      call.answer(error(Code.FAILED_PRECONDITION, ErrorReason.STALE_ATTEMPT));
      assertEquals(null, server.settles.poll(100, TimeUnit.MILLISECONDS));
      assertTrue(errors.isEmpty());
      release.countDown();
      assertTrue(settle(error(Code.NOT_FOUND, ErrorReason.EVENT_NOT_UNSETTLED)).hasAck());
      assertEquals(
          "NOT_FOUND (EVENT_NOT_UNSETTLED): the ACK of default/g, key \"k\", attempt 4, was not"
              + " accepted: ",
          FakeServer.take(errors).getMessage());
      await(worker, counters -> counters.stale() == 1);
    } finally {
      release.countDown();
    }
  }

  @Test
  void aFailingHandlerIsLogged() throws Exception {
    BlockingQueue<LogRecord> records = new LinkedBlockingQueue<>();
    Handler recorder =
        new Handler() {
          @Override
          public void publish(LogRecord record) {
            records.add(record);
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        };
    Logger logger = Logger.getLogger(GroupWorker.class.getName());
    logger.addHandler(recorder);
    logger.setUseParentHandlers(false);
    EventHandler handler =
        event -> {
          throw new IllegalStateException("no money");
        };
    try (GroupWorker worker = client.worker(OPTIONS, handler)) {
      give(FakeServer.take(server.members), 1, 2, "a\"b");
      LogRecord record = FakeServer.take(records);
      assertEquals(Level.WARNING, record.getLevel());
      assertEquals(
          "the handler of default/g, key \"a\\\"b\", attempt 2, failed:"
              + " java.lang.IllegalStateException: no money",
          record.getMessage());
      assertEquals("no money", record.getThrown().getMessage());
      assertTrue(settle(null).hasNack());
      await(worker, counters -> counters.nacked() == 1);
    } finally {
      logger.removeHandler(recorder);
      logger.setUseParentHandlers(true);
    }
  }

  @Test
  void aHandlerCannotSayExtend() throws Exception {
    BlockingQueue<Throwable> errors = new LinkedBlockingQueue<>();
    try (GroupWorker worker =
        client.worker(OPTIONS.onError(errors::add), event -> Settle.extend())) {
      give(FakeServer.take(server.members), 1, 1, "k");
      assertTrue(settle(null).hasNack());
      assertTrue(FakeServer.take(errors) instanceof IllegalArgumentException);
      await(worker, counters -> counters.nacked() == 1);
    }
  }

  @Test
  void whatAGroupMadeAnewGivesAgainIsSettledAgain() throws Exception {
    try (GroupWorker worker = client.worker(OPTIONS, EventHandler.acking(handled::add))) {
      StreamObserver<ConsumeExpiredResponse> member = FakeServer.take(server.members);
      give(member, 1, 3, "k");
      FakeServer.SettleCall first = FakeServer.take(server.settles);
      assertEquals(token(1, 3), first.request().getSettlements(0).getDeliveryToken());
      breakOff(member);
      member = FakeServer.take(server.members);
      give(member, 1, 1, "k");
      give(member, 2, 1, "behind");
      assertEquals("k", FakeServer.take(handled).keyUtf8());
      assertEquals("behind", FakeServer.take(handled).keyUtf8());
      first.answer(error(Code.FAILED_PRECONDITION, ErrorReason.STALE_ATTEMPT));
      FakeServer.SettleCall both = FakeServer.take(server.settles);
      both.answer(null);
      assertEquals(token(1, 1), both.request().getSettlements(0).getDeliveryToken());
      if (both.request().getSettlementsCount() < 2) {
        settle(null); // That of the other was late.
      }
      await(worker, counters -> counters.acked() > 0 && counters.unsettled() == 0);
    }
  }

  @Test
  void aSettlementThatFindsTheConnectionFullIsSentAgain() throws Exception {
    try (GroupWorker worker = client.worker(OPTIONS, EventHandler.acking(handled::add))) {
      give(FakeServer.take(server.members), 1, 1, "k");
      FakeServer.take(server.settles).fail(Code.RESOURCE_EXHAUSTED);
      assertTrue(settle(null).hasAck());
      await(worker, counters -> counters.acked() == 1);
    }
  }

  @Test
  void aStopDoesNotTryEachBatchWithAServerThatDoesNotAnswer() throws Exception {
    GroupWorker worker =
        client
            .withTimeout(Duration.ofMillis(200))
            .worker(
                OPTIONS.settleBatch(1, Duration.ZERO).stopTimeout(Duration.ZERO),
                EventHandler.acking(handled::add));
    StreamObserver<ConsumeExpiredResponse> member = FakeServer.take(server.members);
    for (int i = 1; i <= 8; ++i) {
      give(member, i, 1, "k" + i);
    }
    await(worker, counters -> counters.handled() == 8);
    TimecacheException error = assertThrows(TimecacheException.class, worker::close);
    assertEquals(Code.DEADLINE_EXCEEDED, error.code());
    assertEquals(8, worker.counters().unsettled());
    Set<ByteString> tried = new HashSet<>();
    server.settles.forEach(call -> tried.add(call.request().getSettlements(0).getDeliveryToken()));
    assertEquals(1, tried.size());
  }

  @Test
  void callbacksThatThrowDoNotEndAWorker() throws Exception {
    BlockingQueue<Throwable> uncaught = new LinkedBlockingQueue<>();
    Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
    Thread.setDefaultUncaughtExceptionHandler((thread, why) -> uncaught.add(why));
    GroupWorkerOptions options =
        OPTIONS
            .threads(1)
            .onError(
                why -> {
                  throw new AssertionError("of onError", why);
                })
            .onLoss(
                lost -> {
                  throw new AssertionError("of onLoss");
                });
    try (GroupWorker worker =
        client.worker(
            options,
            event -> {
              throw new IllegalStateException("of the handler");
            })) {
      StreamObserver<ConsumeExpiredResponse> member = FakeServer.take(server.members);
      member.onNext(
          ConsumeExpiredResponse.newBuilder().setNamespace("default").setLost(7).build());
      assertEquals("of onLoss", FakeServer.take(uncaught).getMessage());
      for (int i = 1; i <= 2; ++i) {
        give(member, i, 1, "k" + i);
        assertEquals("of onError", FakeServer.take(uncaught).getMessage());
        assertTrue(settle(null).hasNack());
      }
      FakeServer.SettleCall refused = null;
      give(member, 3, 1, "k3");
      refused = FakeServer.take(server.settles);
      refused.fail(Code.UNAVAILABLE); // Which the settling thread tells.
      assertTrue(settle(null).hasNack());
      await(worker, counters -> counters.nacked() == 3 && counters.lost() == 7);
    } finally {
      Thread.setDefaultUncaughtExceptionHandler(before);
    }
  }

  @Test
  void aWorkerHoldsTwiceAsManyEventsAsItHasThreads() throws Exception {
    GroupWorkerOptions ten = OPTIONS.threads(10);
    List<Integer> asked = new ArrayList<>();
    for (GroupWorkerOptions options : List.of(OPTIONS, ten, ten.maxInFlight(5))) {
      try (GroupWorker worker = client.worker(options, event -> Settle.ack())) {
        asked.add(FakeServer.take(server.consumes).getMaxInFlight());
      }
    }
    assertEquals(List.of(8, 20, 5), asked);
  }

  @Test
  void aWorkerIsNotClosedInItsHandler() throws Exception {
    BlockingQueue<Throwable> told = new LinkedBlockingQueue<>();
    CompletableFuture<GroupWorker> self = new CompletableFuture<>();
    GroupWorker worker =
        client.worker(
            OPTIONS.onError(told::add),
            event -> {
              self.get().close();
              return Settle.ack();
            });
    self.complete(worker);
    give(FakeServer.take(server.members), 1, 1, "k");
    assertTrue(FakeServer.take(told) instanceof IllegalStateException);
    assertTrue(settle(null).hasNack());
    worker.join();
  }

  @Test
  void aClosedClientEndsItsWatchesAndWorkers() throws Exception {
    BlockingQueue<WatchBatch> batches = new LinkedBlockingQueue<>();
    Watch watch = client.watch(new WatchOptions(), batches::add);
    GroupWorker worker = client.worker(OPTIONS, event -> Settle.ack());
    FakeServer.take(batches);
    FakeServer.take(server.members);
    client.close();
    for (CompletableFuture<Void> ended : List.of(watch.ended(), worker.ended())) {
      ExecutionException error =
          assertThrows(ExecutionException.class, () -> ended.get(30, TimeUnit.SECONDS));
      assertEquals(Code.CANCELLED, ((TimecacheException) error.getCause()).code());
      assertEquals("CANCELLED: the client is closed", error.getCause().getMessage());
    }
  }

  @Test
  void anAnswerWithTooFewResultsFailsAllOfThem() throws Exception {
    server.answersTooFew = true;
    Batch batch = new Batch();
    List<CompletableFuture<Boolean>> futures =
        new ArrayList<>(List.of(batch.add(Operation.contains("k"))));
    assertThrows(TimecacheException.class, () -> client.execute(batch));
    Batch later = new Batch();
    futures.add(later.add(Operation.contains("k")));
    assertThrows(
        ExecutionException.class, () -> client.async().execute(later).get(30, TimeUnit.SECONDS));
    Pipeline pipeline = client.pipeline();
    futures.add(pipeline.add(Operation.contains("k")));
    for (CompletableFuture<Boolean> future : futures) {
      ExecutionException error =
          assertThrows(ExecutionException.class, () -> future.get(30, TimeUnit.SECONDS));
      assertEquals(Code.INTERNAL, ((TimecacheException) error.getCause()).code());
    }
    assertEquals(
        Code.INTERNAL, assertThrows(TimecacheException.class, pipeline::close).code());
  }

  @Test
  void settlementsWithTooFewResultsFail() throws Exception {
    assertEquals(List.of(), client.settle("g", List.of()));
    CompletableFuture<List<SettleResult>> results =
        CompletableFuture.supplyAsync(
            () -> client.settle("g", List.of(new Settlement(token(1, 1), Settle.ack()))));
    FakeServer.SettleCall call = FakeServer.take(server.settles);
    assertEquals(1, call.request().getSettlementsCount()); // None was sent for no settlements.
    call.observer().onNext(SettleExpiredResponse.getDefaultInstance());
    call.observer().onCompleted();
    assertEquals(Code.INTERNAL, failure(results).code());
  }

  @Test
  void settlementsWithTooFewResultsAreSentAgain() throws Exception {
    try (GroupWorker worker = client.worker(OPTIONS, event -> Settle.ack())) {
      give(FakeServer.take(server.members), 1, 1, "k");
      FakeServer.SettleCall call = FakeServer.take(server.settles);
      call.observer().onNext(SettleExpiredResponse.getDefaultInstance());
      call.observer().onCompleted();
      assertTrue(settle(null).hasAck());
      await(worker, counters -> counters.acked() == 1);
    }
  }

  @Test
  void onlyWhatIsSafeIsTriedAgain() {
    RetryPolicy quick = new RetryPolicy(3, Duration.ofMillis(1), Duration.ofMillis(1));
    try (TimecacheClient own = server.builder().retry(quick).build()) {
      own.get("k"); // Without a connection there is no other attempt.
      server.failure = Status.UNAVAILABLE;
      Map<String, Runnable> safe =
          Map.of(
              "get", () -> own.get("k"),
              "get later", () -> own.async().get("k").join(),
              "touch", () -> own.touch("k"),
              "contains", () -> own.contains("k"),
              "size", own::size,
              "describe", () -> own.getNamespace("n", false),
              "list", () -> own.listGroups(false),
              "put repeatably", () -> own.repeatable().put("k", "v"));
      safe.forEach((what, call) -> assertEquals(3, attempts(call), what));
      Batch batch = new Batch();
      batch.add(Operation.get("k"));
      batch.add(Operation.put("k", "v"));
      NamespaceOptions options = NamespaceOptions.getDefaultInstance();
      List<Settlement> settlements = List.of(new Settlement(token(1, 1), Settle.ack()));
      Map<String, Runnable> unsafe =
          Map.of(
              "put", () -> own.put("k", "v"),
              "put later", () -> own.async().put("k", "v").join(),
              "remove", () -> own.remove("k"),
              "add", () -> own.add("k", 1),
              "batch", () -> own.execute(batch),
              "settle", () -> own.settle("g", settlements),
              "create a namespace", () -> own.createNamespace("n", options),
              "update a namespace", () -> own.updateNamespace("n", options),
              "update a group", () -> own.updateGroup("g", GroupOptions.getDefaultInstance()),
              "delete a group", () -> own.deleteGroup("g"));
      unsafe.forEach((what, call) -> assertEquals(1, attempts(call), what));
    }
  }

  /** How often a call that fails is tried. */
  private int attempts(Runnable call) {
    server.headers.clear();
    assertThrows(RuntimeException.class, call::run);
    return server.headers.size();
  }

  @Test
  void anErrorWhoseDetailsAreGarbledIsToldWithoutThem() throws Exception {
    Metadata.Key<byte[]> details =
        Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);
    byte[] ofAnotherError = error(Code.NOT_FOUND, ErrorReason.KEY_NOT_FOUND).toByteArray();
    server.failure = Status.INVALID_ARGUMENT.withDescription("no");
    for (byte[] garbled : List.of(new byte[] {(byte) 0xff}, ofAnotherError)) {
      server.trailers = new Metadata();
      server.trailers.put(details, garbled);
      List<TimecacheException> errors = new ArrayList<>();
      errors.add(assertThrows(TimecacheException.class, () -> client.get("k")));
      errors.add(failure(client.async().get("k")));
      errors.add(failure(client.pipeline().add(Operation.get("k"))));
      try (Watcher watcher = client.watch(new WatchOptions())) {
        errors.add(assertThrows(TimecacheException.class, watcher::next));
      }
      for (TimecacheException error : errors) {
        assertEquals("INVALID_ARGUMENT: no", error.getMessage());
        assertEquals(Optional.empty(), error.reason());
      }
    }
  }

  @Test
  void aTokenFileIsReadAgainWhenTheTokenIsRefused(@TempDir Path directory) throws Exception {
    Path file = directory.resolve("token");
    Files.writeString(file, "one");
    server.token = "one";
    try (TimecacheClient own = server.builder().tokenFile(file).build();
        Watcher watcher = own.watch(new WatchOptions().pauses(Duration.ZERO, Duration.ZERO))) {
      watcher.next();
      Files.writeString(file, "two");
      server.token = "two";
      FakeServer.take(server.watches).onError(Status.UNAVAILABLE.asRuntimeException());
      assertTrue(watcher.next().reconnected());
      Files.writeString(file, "three");
      server.token = "three";
      assertTrue(own.get("k").isEmpty());
      Files.writeString(file, "four");
      server.token = "four";
      assertTrue(own.async().get("k").get(30, TimeUnit.SECONDS).isEmpty());
      // The one that was refused is not tried again.
      server.token = "five";
      server.headers.clear();
      assertEquals(
          Code.UNAUTHENTICATED,
          assertThrows(TimecacheException.class, () -> own.get("k")).code());
      assertEquals(1, server.headers.size());
    }
  }

  @Test
  void metadataOfAViewTakesThePlaceOfItsClients() throws Exception {
    Metadata.Key<String> other = Metadata.Key.of("x-other", Metadata.ASCII_STRING_MARSHALLER);
    Metadata metadata = new Metadata();
    metadata.put(other, "1");
    client.withRequestId("of-all").withMetadata(metadata).withRequestId("of-this").get("k");
    Metadata sent = FakeServer.take(server.headers);
    List<String> ids = new ArrayList<>();
    sent.getAll(Metadata.Key.of("x-request-id", Metadata.ASCII_STRING_MARSHALLER))
        .forEach(ids::add);
    assertEquals(List.of("of-this"), ids);
    assertEquals("1", sent.get(other));
  }

  @Test
  void aConnectionIsNotAwaitedBeyondTheLimit() throws Exception {
    try (ServerSocket silent = new ServerSocket(0)) {
      ManagedChannel channel =
          ManagedChannelBuilder.forAddress("127.0.0.1", silent.getLocalPort())
              .usePlaintext()
              .build();
      Connection connection = new Connection(channel, () -> {}, null);
      BlockingQueue<String> order = new LinkedBlockingQueue<>();
      connection.await().thenRun(() -> order.add("without a limit"));
      connection.await(1).thenRun(() -> order.add("with a limit"));
      assertEquals("with a limit", FakeServer.take(order));
      assertEquals("without a limit", FakeServer.take(order));
      channel.shutdownNow();
    }
  }

  @Test
  void aPipelineWhoseCloseIsInterruptedLeavesNoStream() throws Exception {
    Pipeline pipeline = client.pipeline();
    CompletableFuture<Boolean> pending = pipeline.add(Operation.contains("k"));
    Thread.currentThread().interrupt();
    TimecacheException error = assertThrows(TimecacheException.class, pipeline::close);
    assertTrue(Thread.interrupted());
    assertEquals(Code.CANCELLED, error.code());
    assertTrue(server.pipelineCancelled.await(30, TimeUnit.SECONDS));
    assertThrows(ExecutionException.class, () -> pending.get(30, TimeUnit.SECONDS));
  }

  @Test
  void aPipelineEndsIfNoAnswerComesWithinTheTimeout() throws Exception {
    Pipeline pipeline = client.withTimeout(Duration.ofMillis(200)).pipeline();
    // Nobody waits in the pipeline itself.
    assertEquals(Code.DEADLINE_EXCEEDED, failure(pipeline.add(Operation.contains("k"))).code());
    assertEquals(
        Code.DEADLINE_EXCEEDED, assertThrows(TimecacheException.class, pipeline::close).code());
    assertEquals(Code.DEADLINE_EXCEEDED, failure(pipeline.add(Operation.contains("k"))).code());
    // As one that waits for the server's word.
    Pipeline idle = client.withTimeout(Duration.ofMillis(200)).pipeline();
    assertEquals(
        Code.DEADLINE_EXCEEDED, assertThrows(TimecacheException.class, idle::close).code());
  }

  @Test
  void aPipelinesTimeoutDoesNotCountWhileFuturesComplete() throws Exception {
    Pipeline pipeline = client.withTimeout(Duration.ofHours(1)).pipeline();
    CountDownLatch called = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    CompletableFuture<Boolean> first = pipeline.add(Operation.contains("k"));
    CompletableFuture<Void> told =
        first.thenAccept(
            there -> {
              called.countDown();
              awaitQuietly(goOn);
            });
    try {
      FakeServer.take(server.pipelined).answer();
      assertTrue(called.await(30, TimeUnit.SECONDS));
      CompletableFuture<Boolean> second = pipeline.add(Operation.contains("k"));
      pipeline.check(System.nanoTime() + TimeUnit.HOURS.toNanos(2));
      FakeServer.PipelineRequest request = FakeServer.take(server.pipelined);
      goOn.countDown();
      told.get(30, TimeUnit.SECONDS);
      request.answer();
      assertFalse(second.get(30, TimeUnit.SECONDS));
      pipeline.await();
      // Not because nothing is looked for.
      CompletableFuture<Boolean> third = pipeline.add(Operation.contains("k"));
      FakeServer.take(server.pipelined);
      pipeline.check(System.nanoTime() + TimeUnit.HOURS.toNanos(2));
      assertEquals(Code.DEADLINE_EXCEEDED, failure(third).code());
    } finally {
      goOn.countDown();
    }
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
