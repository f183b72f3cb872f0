package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import dev.timecached.v1.ErrorReason;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Calls of a client with owner routing: which of two nodes they go to. */
@Timeout(20)
final class OwnerRoutingTest {
  private static final RetryPolicy QUICK =
      new RetryPolicy(3, Duration.ofMillis(1), Duration.ofMillis(1));
  private static final String OF_A = keyOf(0, "");
  private static final String OF_B = keyOf(1, "");

  /** The one that the client was given the address of, and an owner of the other partition. */
  private final OwningNode a = new OwningNode();
  private final OwningNode b = new OwningNode();

  private final AtomicLong now = new AtomicLong();
  private final List<TimecacheClient> clients = new ArrayList<>();

  OwnerRoutingTest() {
    a.owners = List.of(a.address(), b.address());
  }

  @AfterEach
  void stop() {
    clients.forEach(TimecacheClient::close);
    a.close();
    b.close();
  }

  /** A key of a partition of two. */
  private static String keyOf(int partition, String prefix) {
    for (int i = 0; ; ++i) {
      String key = prefix + "key-" + i;
      if (Partitions.of(ByteString.copyFromUtf8(key), 2) == partition) {
        return key;
      }
    }
  }

  private TimecacheClientBuilder builder() {
    return TimecacheClient.builder(a.address())
        .timeout(Duration.ofSeconds(60))
        .retry(QUICK)
        .ownerRouting(true)
        .ownerClock(now::get);
  }

  private TimecacheClient open(TimecacheClientBuilder builder) {
    TimecacheClient client = builder.build();
    clients.add(client);
    return client;
  }

  private static void until(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      assertFalse(Thread.currentThread().isInterrupted(), "in vain");
      Thread.yield();
    }
  }

  /** Calls until the second node gets them. */
  private void reach(TimecacheClient client) {
    until(
        () -> {
          client.contains(OF_B);
          return !b.keys.isEmpty();
        });
    a.keys.clear();
    b.keys.clear();
  }

  /** A client that knows the owners. */
  private TimecacheClient client(boolean batching) {
    TimecacheClient client = open(builder().batching(batching));
    reach(client);
    return client;
  }

  private static TimecacheException failure(CompletableFuture<?> future) {
    CompletionException error = assertThrows(CompletionException.class, future::join);
    return (TimecacheException) error.getCause();
  }

  private static com.google.rpc.Status status(Code code, ErrorReason reason) {
    return com.google.rpc.Status.newBuilder()
        .setCode(code.value())
        .addDetails(Any.pack(ErrorInfo.newBuilder().setReason(reason.name()).build()))
        .build();
  }

  private static StatusRuntimeException error(Code code, ErrorReason reason) {
    return StatusProto.toStatusRuntimeException(status(code, reason));
  }

  private static StatusRuntimeException broken() {
    return Code.UNAVAILABLE.toStatus().withDescription("it broke").asRuntimeException();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void operationsOnAKeyGoToItsOwner(boolean batching) {
    TimecacheClient client = client(batching);
    for (String key : List.of(OF_A, OF_B)) {
      client.put(key, "1");
      client.get(key);
      client.remove(key);
      client.contains(key);
      client.touch(key);
      client.append(key, "1");
      client.add(key, 1);
      client.gather(key, "part", "1", GatherOptions.expect("part"));
    }
    assertEquals(List.of(OF_A, OF_A, OF_A, OF_A, OF_A, OF_A, OF_A, OF_A), a.keys);
    assertEquals(List.of(OF_B, OF_B, OF_B, OF_B, OF_B, OF_B, OF_B, OF_B), b.keys);
    assertEquals(batching, b.unaries.isEmpty());
    assertEquals(1, a.asked.size());
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void futuresAndLargeCallsDoSo(boolean batching) {
    TimecacheClient client = client(batching);
    client.async().put(OF_B, "1").join();
    client.async().put(OF_A, "1").join();
    ByteString large = ByteString.copyFrom(new byte[PlainCall.SHARED_BYTES_MAX + 1]);
    client.put(ByteString.copyFromUtf8(OF_B), large);
    client.withRequestId("id").withTimeout(Duration.ofSeconds(10)).get(OF_B);
    assertEquals(List.of(OF_B, OF_B, OF_B), b.keys);
    assertEquals(List.of(OF_A), a.keys);
  }

  @Test
  void keysOfOneHashTagGoTogether() {
    TimecacheClient client = client(true);
    client.put("{" + OF_B + "}" + OF_A, "1");
    client.put("{" + OF_A + "}" + OF_B, "1");
    assertEquals(List.of("{" + OF_B + "}" + OF_A), b.keys);
    assertEquals(List.of("{" + OF_A + "}" + OF_B), a.keys);
  }

  @Test
  void withoutItNothingIsAskedFor() {
    TimecacheClient client = open(builder().ownerRouting(false));
    client.put(OF_B, "1");
    client.async().put(OF_B, "1").join();
    client.execute(batchOf(OF_A, OF_B));
    assertEquals(List.of(OF_B, OF_B, OF_A, OF_B), a.keys);
    assertEquals(List.of(), a.asked);
    assertEquals(List.of(), b.keys);
  }

  @Test
  void aServerWithoutAClusterIsAskedOnce() {
    a.refusal = error(Code.FAILED_PRECONDITION, ErrorReason.NO_CLUSTER);
    TimecacheClient client = open(builder());
    for (int i = 0; i < 100; ++i) {
      client.put(OF_B, "1");
    }
    until(() -> !a.asked.isEmpty());
    assertEquals(100, a.keys.size());
    assertEquals(List.of("default"), a.asked);
  }

  @Test
  void eachNamespaceHasItsOwners() {
    TimecacheClient client = client(true);
    a.owners = List.of(a.address());
    client.in("other").put(OF_B, "1");
    until(() -> a.asked.equals(List.of("default", "other")));
    client.in("other").put(OF_B, "1");
    assertEquals(List.of(), b.keys);
    assertEquals(List.of(OF_B, OF_B), a.keys);
  }

  @Test
  void whatIsNotOnOneKeyGoesWhereItDoes() {
    TimecacheClient client = client(true);
    client.size();
    try (Pipeline pipeline = client.pipeline()) {
      pipeline.add(Operation.put(OF_B, "1"));
    }
    assertEquals(List.of(OF_B), a.keys);
    assertEquals(List.of(), b.keys);
  }

  private static Batch batchOf(String... keys) {
    Batch batch = new Batch();
    for (String key : keys) {
      batch.add(Operation.put(key, "1"));
    }
    return batch;
  }

  private static final List<BiConsumer<TimecacheClient, Batch>> EXECUTIONS =
      List.of(TimecacheClient::execute, (client, batch) -> client.async().execute(batch).join());

  @Test
  void aBatchIsSplitByOwners() {
    TimecacheClient client = client(true);
    for (BiConsumer<TimecacheClient, Batch> execution : EXECUTIONS) {
      Batch batch = new Batch();
      List<CompletableFuture<PutResult>> results = new ArrayList<>();
      List<String> keys = new ArrayList<>();
      for (int i = 0; i < 100; ++i) {
        keys.add(keyOf(i % 3 == 0 ? 0 : 1, i + "-"));
        results.add(batch.add(Operation.put(keys.get(i), "1")));
      }
      execution.accept(client, batch);
      for (int i = 0; i < 100; ++i) {
        assertEquals(keys.get(i).hashCode(), results.get(i).join().version());
      }
      assertEquals(
          keys.stream().filter(key -> Partitions.of(ByteString.copyFromUtf8(key), 2) == 0).toList(),
          a.keys);
      assertEquals(
          keys.stream().filter(key -> Partitions.of(ByteString.copyFromUtf8(key), 2) == 1).toList(),
          b.keys);
      a.keys.clear();
      b.keys.clear();
    }
    assertEquals(2, a.batches.size());
    assertEquals(2, b.batches.size());
  }

  @Test
  void aBatchOfOneOwnerIsOneRequest() {
    TimecacheClient client = client(true);
    EXECUTIONS.forEach(
        execution -> execution.accept(client, batchOf(OF_B, "{" + OF_B + "}", OF_B)));
    assertEquals(List.of(3, 3), b.batches);
    assertEquals(List.of(), a.batches);
    EXECUTIONS.forEach(execution -> execution.accept(client, new Batch()));
    assertEquals(2, b.batches.size());
  }

  @Test
  void anAtomicBatchStaysWhole() {
    TimecacheClient client = client(true);
    EXECUTIONS.forEach(
        execution -> execution.accept(client, batchOf(OF_B, "{" + OF_B + "}").atomic()));
    assertEquals(List.of(2, 2), b.batches);
    EXECUTIONS.forEach(execution -> execution.accept(client, batchOf(OF_A, OF_B).atomic()));
    assertEquals(List.of(2, 2), a.batches);
    assertEquals(List.of(2, 2), b.batches);
  }

  @Test
  void aPartThatFailsTellsItsOperations() {
    TimecacheClient client = client(true);
    b.error = broken();
    for (BiConsumer<TimecacheClient, Batch> execution : EXECUTIONS) {
      Batch batch = new Batch();
      CompletableFuture<PutResult> ofA = batch.add(Operation.put(OF_A, "1"));
      CompletableFuture<PutResult> ofB = batch.add(Operation.put(OF_B, "1"));
      execution.accept(client, batch);
      assertEquals(OF_A.hashCode(), ofA.join().version());
      assertTrue(failure(ofB).maybeApplied());
      b.error = null;
      comeBack(client);
      b.error = broken();
    }
    a.error = broken();
    Batch batch = new Batch();
    CompletableFuture<PutResult> ofA = batch.add(Operation.put(OF_A, "1"));
    CompletableFuture<PutResult> ofB = batch.add(Operation.put(OF_B, "1"));
    assertThrows(TimecacheException.class, () -> client.execute(batch));
    assertTrue(ofA.isCompletedExceptionally() && ofB.isCompletedExceptionally());
    TimecacheException error = failure(client.async().execute(batchOf(OF_A, OF_B)));
    assertEquals(Code.UNAVAILABLE, error.code());
  }

  /** Until the second node is not left out any more. */
  private void comeBack(TimecacheClient client) {
    b.keys.clear();
    until(
        () -> {
          now.addAndGet(Owners.HURRY_NANOS);
          client.contains(OF_B);
          return !b.keys.isEmpty();
        });
    a.keys.clear();
    b.keys.clear();
  }

  @Test
  void aBatchThatIsCancelledIsCancelledAtAllOwners() {
    TimecacheClient client = client(true);
    b.hangs = true;
    CompletableFuture<Void> future = client.async().execute(batchOf(OF_A, OF_B));
    until(() -> b.held.size() == 1);
    future.cancel(true);
    until(() -> b.cancelled.get() == 1);
  }

  @Test
  void anInterruptedBatchIsCancelled() throws Exception {
    TimecacheClient client = client(true);
    b.hangs = true;
    List<Throwable> thrown = new CopyOnWriteArrayList<>();
    Thread thread =
        new Thread(
            () ->
                thrown.add(
                    assertThrows(
                        TimecacheException.class, () -> client.execute(batchOf(OF_A, OF_B)))));
    thread.start();
    until(() -> b.held.size() == 1);
    thread.interrupt();
    thread.join();
    assertEquals(Code.CANCELLED, ((TimecacheException) thrown.get(0)).code());
    until(() -> b.cancelled.get() == 1);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void anOwnerThatIsDownIsLeftOutUntilItComesBack(boolean batching) {
    TimecacheClient client = client(batching);
    b.stop();
    client.get(OF_B); // It may be sent before the connection is found to be closed.
    for (int i = 0; i < 20; ++i) {
      client.put(OF_B, "1");
      client.execute(batchOf(OF_A, OF_B));
    }
    assertEquals(61, a.keys.size());
    b.start();
    comeBack(client);
  }

  @Test
  void anOwnerThatIsDownFromTheBeginningIsNotWaitedFor() {
    b.stop();
    TimecacheClient client = open(builder());
    until(
        () -> {
          client.put(OF_B, "1");
          return !a.asked.isEmpty();
        });
    for (int i = 0; i < 100; ++i) {
      client.put(OF_B, "1");
    }
    assertTrue(a.keys.size() > 100);
    b.start();
    comeBack(client);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatAnOwnerRefusesIsDoneByTheOther(boolean batching) {
    TimecacheClient client = open(builder().batching(batching).retry(RetryPolicy.NONE));
    reach(client);
    for (ErrorReason reason : List.of(ErrorReason.NOT_OWNER, ErrorReason.DRAINING)) {
      b.error = error(Code.UNAVAILABLE, reason);
      int asked = a.asked.size();
      client.put(OF_B, "1");
      client.async().put(OF_B, "1").join();
      client.execute(batchOf(OF_B));
      assertEquals(List.of(OF_B, OF_B, OF_B), a.keys);
      now.addAndGet(Owners.HURRY_NANOS);
      client.put(OF_B, "1");
      until(() -> a.asked.size() > asked); // One may have been under way.
      b.error = null;
      comeBack(client);
    }
  }

  @Test
  void anOperationThatAnOwnerRefusesIsDoneByTheOther() {
    TimecacheClient client = client(true);
    b.resultError = status(Code.UNAVAILABLE, ErrorReason.NOT_OWNER);
    List<CompletableFuture<PutResult>> puts = new ArrayList<>();
    for (int i = 0; i < 50; ++i) {
      puts.add(client.async().put(OF_B, "1"));
    }
    client.put(OF_B, "1");
    puts.forEach(put -> assertEquals(OF_B.hashCode(), put.join().version()));
    assertEquals(51, a.keys.size());
    b.resultError = status(Code.FAILED_PRECONDITION, ErrorReason.VERSION_MISMATCH);
    TimecacheException error =
        assertThrows(TimecacheException.class, () -> client.put(OF_B, "1"));
    assertEquals(Code.FAILED_PRECONDITION, error.code());
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatAnOwnerMayHaveDoneIsRepeatedIfThatIsSafe(boolean batching) {
    for (Function<TimecacheClient, Object> call :
        List.<Function<TimecacheClient, Object>>of(
            client -> client.get(OF_B), client -> client.async().get(OF_B).join())) {
      TimecacheClient client = client(batching);
      b.error = broken();
      call.apply(client);
      assertEquals(List.of(OF_B), a.keys);
      b.error = null;
      comeBack(client);
      b.error = broken();
      TimecacheException error =
          assertThrows(TimecacheException.class, () -> client.put(OF_B, "1"));
      assertTrue(error.maybeApplied());
      assertEquals(Code.UNAVAILABLE, error.code());
      client.put(OF_B, "1"); // It is left out.
      assertEquals(List.of(OF_B), a.keys);
      b.error = null;
      b.keys.clear();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void anOwnerThatHangsIsLeftOut(boolean batching) {
    TimecacheClient client = client(batching);
    b.hangs = true;
    TimecacheException error =
        assertThrows(
            TimecacheException.class,
            () -> client.withTimeout(Duration.ofMillis(100)).put(OF_B, "1"));
    assertEquals(Code.DEADLINE_EXCEEDED, error.code());
    assertTrue(error.maybeApplied());
    client.put(OF_B, "1");
    assertEquals(List.of(OF_B), a.keys);
  }

  @Test
  void whatWaitsForAnOwnerThatHangsGoesToTheOther() {
    TimecacheClient client = client(true);
    b.hangs = true;
    List<CompletableFuture<?>> sent = new ArrayList<>();
    AsyncTimecache hasty = client.withTimeout(Duration.ofMillis(500)).async();
    for (int i = 0; i < SharedStream.MESSAGES_MAX; ++i) {
      sent.add(hasty.put(OF_B, "1"));
      int messages = i + 1;
      until(() -> b.held.size() == messages);
    }
    CompletableFuture<PutResult> waits = client.async().put(OF_B, "1");
    assertEquals(OF_B.hashCode(), waits.join().version());
    sent.forEach(one -> assertEquals(Code.DEADLINE_EXCEEDED, failure(one).code()));
    assertEquals(List.of(OF_B), a.keys);
  }

  @Test
  void whatWaitsKeepsItsOrder() throws Exception {
    TimecacheClient client = client(true);
    b.hangs = true;
    List<CompletableFuture<?>> sent = new ArrayList<>();
    for (int i = 0; i < SharedStream.MESSAGES_MAX; ++i) {
      sent.add(client.async().put(OF_B, "1"));
      int messages = i + 1;
      until(() -> b.held.size() == messages);
    }
    List<CompletableFuture<PutResult>> waits = new ArrayList<>();
    List<String> keys = new ArrayList<>();
    for (int i = 0; i < 1000; ++i) {
      keys.add("{" + OF_B + "}" + i);
      waits.add(client.async().put(keys.get(i), "1"));
    }
    CompletableFuture<PutResult> cancelled = client.async().put(OF_B, "never");
    cancelled.cancel(true);
    b.stop();
    waits.forEach(CompletableFuture::join);
    assertEquals(keys, a.keys);
    sent.forEach(one -> assertTrue(failure(one).maybeApplied()));
  }

  @Test
  void callsUnderWayEndWhereTheOwnerIsNamedNoMore() throws Exception {
    TimecacheClient client = client(true);
    b.holds = true;
    CompletableFuture<PutResult> put = client.async().put(OF_B, "1");
    OwningNode.Held held = FakeServer.take(b.held);
    a.owners = List.of(a.address(), a.address());
    now.addAndGet(Owners.GOOD_NANOS);
    until(
        () -> {
          client.execute(batchOf(OF_B)); // By an RPC: answers on the stream are in order.
          return !a.batches.isEmpty();
        });
    held.answer();
    assertEquals(OF_B.hashCode(), put.join().version());
    until(() -> b.connections.get() == 0);
    client.put(OF_B, "1");
    assertEquals(0, b.connections.get());
  }

  @Test
  void spansNameTheOwner() {
    List<String> addresses = new CopyOnWriteArrayList<>();
    Tracing tracing =
        new Tracing() {
          @Override
          public CallSpan startCall(Call call) {
            addresses.add(call.method() + " " + call.address());
            return new CallSpan() {
              @Override
              public void inject(BiConsumer<String, String> headers) {}

              @Override
              public void retry(TimecacheException why) {}

              @Override
              public void end(Throwable why) {}
            };
          }

          @Override
          public HandlerSpan startHandler(String group, ExpiredEvent event) {
            throw new AssertionError();
          }
        };
    TimecacheClient client = open(builder().tracing(tracing));
    reach(client);
    addresses.clear();
    client.put(OF_A, "1");
    client.put(OF_B, "1");
    client.execute(batchOf(OF_A, OF_B));
    assertEquals(
        List.of(
            "Put " + a.address(),
            "Put " + b.address(),
            "Execute " + a.address(),
            "Execute " + b.address()),
        addresses);
  }

  @Test
  void closingEndsWhatIsUnderWayAtOwners() {
    TimecacheClient client = client(true);
    b.hangs = true;
    CompletableFuture<PutResult> put = client.async().put(OF_B, "1");
    until(() -> b.held.size() == 1);
    client.close();
    TimecacheException error = failure(put);
    assertEquals(Code.CANCELLED, error.code());
    assertTrue(error.maybeApplied());
    TimecacheException later =
        assertThrows(TimecacheException.class, () -> client.put(OF_B, "1"));
    assertEquals(Code.CANCELLED, later.code());
    assertFalse(later.maybeApplied());
  }

  @Test
  void everyCallEndsHoweverOwnersFail() {
    // Also those whose streams are given up one after the other, as others on them were late.
    TimecacheClient client =
        open(builder().retry(new RetryPolicy(100, Duration.ofMillis(1), Duration.ofMillis(10))));
    reach(client);
    Random random = new Random(7);
    BlockingQueue<CompletableFuture<?>> calls = new LinkedBlockingQueue<>();
    int cancelled = 0;
    for (int i = 0; i < 20_000; ++i) {
      CompletableFuture<?> call = client.async().get("key-" + random.nextInt(100));
      calls.add(call);
      switch (random.nextInt(400)) {
        case 0 -> b.error = broken();
        case 1 -> b.error = error(Code.UNAVAILABLE, ErrorReason.NOT_OWNER);
        case 2 -> b.resultError = status(Code.UNAVAILABLE, ErrorReason.NOT_OWNER);
        case 3, 4 -> {
          b.error = null;
          b.resultError = null;
        }
        case 5 -> cancelled += call.cancel(true) ? 1 : 0;
        case 6 -> b.breakStreams(broken());
        case 7 -> now.addAndGet(Owners.FAILED_NANOS);
        case 8 -> now.addAndGet(OwnerNode.PAUSE_NANOS_MAX);
        case 10 -> a.owners = List.of(a.address(), b.address());
        case 11 -> a.owners = List.of(a.address(), a.address());
        case 9 -> client.withTimeout(Duration.ofMillis(1)).async().get(OF_B);
        default -> {}
      }
    }
    List<String> failures = new ArrayList<>();
    for (CompletableFuture<?> call : calls) {
      try {
        call.get(60, TimeUnit.SECONDS);
      } catch (CancellationException e) {
        --cancelled;
      } catch (Exception e) {
        failures.add(String.valueOf(e.getCause()));
      }
    }
    assertEquals(0, cancelled);
    assertEquals(List.of(), failures);
  }
}
