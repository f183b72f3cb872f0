package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import dev.timecached.v1.SettleExpiredResponse;
import io.grpc.Metadata;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What becomes of calls that settle events of one group at the same time. */
@Timeout(120)
final class SharedSettlesTest {
  private static final Duration SHORT = Duration.ofMillis(30);

  private final FakeServer server = new FakeServer();
  private final ExecutorService executor = Executors.newSingleThreadExecutor();
  private final TimecacheClient client =
      server.builder().timeout(Duration.ofMinutes(1)).executor(executor).build();

  @AfterEach
  void stop() {
    client.close();
    server.close();
    executor.shutdownNow();
  }

  private static List<Settlement> events(String... tokens) {
    return List.of(tokens).stream()
        .map(token -> new Settlement(ByteString.copyFromUtf8(token), Settle.ack()))
        .toList();
  }

  private CompletableFuture<List<SettleResult>> settle(TimecacheClient view, String... tokens) {
    return view.async().settle("g", events(tokens));
  }

  private FakeServer.SettleCall take(String... tokens) throws Exception {
    FakeServer.SettleCall call = FakeServer.take(server.settles);
    assertEquals(
        List.of(tokens),
        call.request().getSettlementsList().stream()
            .map(one -> one.getDeliveryToken().toStringUtf8())
            .toList());
    return call;
  }

  /** With a version for each, which counts from there on. */
  private static void answer(FakeServer.SettleCall call, int version) {
    SettleExpiredResponse.Builder response = SettleExpiredResponse.newBuilder();
    for (int i = 0; i < call.request().getSettlementsCount(); ++i) {
      response.addResultsBuilder().setVersion(version + i);
    }
    call.observer().onNext(response.build());
    call.observer().onCompleted();
  }

  private static List<Long> versions(CompletableFuture<List<SettleResult>> call) throws Exception {
    return call.get(30, TimeUnit.SECONDS).stream().map(SettleResult::version).toList();
  }

  private static TimecacheException failure(CompletableFuture<?> future) {
    ExecutionException error =
        assertThrows(ExecutionException.class, () -> future.get(30, TimeUnit.SECONDS));
    return (TimecacheException) error.getCause();
  }

  /** A thread that settles, and waits for another's request to end. */
  private Thread waiting(CompletableFuture<List<SettleResult>> results, String... tokens) {
    Thread thread =
        new Thread(
            () -> {
              try {
                results.complete(client.settle("g", events(tokens)));
              } catch (RuntimeException e) {
                results.completeExceptionally(e);
              }
            });
    thread.start();
    while (thread.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
    return thread;
  }

  @Test
  void callsThatComeMeanwhileShareTheNextRequest() throws Exception {
    CompletableFuture<List<SettleResult>> first = new CompletableFuture<>();
    Thread thread = new Thread(() -> first.complete(client.settle("g", events("a"))));
    thread.start();
    FakeServer.SettleCall call = take("a");
    CompletableFuture<List<SettleResult>> later = settle(client, "b", "c");
    CompletableFuture<List<SettleResult>> blocking = new CompletableFuture<>();
    waiting(blocking, "d");
    CompletableFuture<List<SettleResult>> other = client.async().settle("h", events("e"));
    answer(take("e"), 9); // Another group's goes at once.
    answer(call, 1);
    answer(take("b", "c", "d"), 2);
    assertEquals(List.of(1L), versions(first));
    assertEquals(List.of(2L, 3L), versions(later));
    assertEquals(List.of(4L), versions(blocking));
    assertEquals(List.of(9L), versions(other));
    CompletableFuture<List<SettleResult>> last = settle(client, "f");
    answer(take("f"), 5);
    assertEquals(List.of(5L), versions(last));
  }

  @Test
  void aRequestThatFailsFailsItsCalls() throws Exception {
    settle(client, "a");
    FakeServer.SettleCall call = take("a");
    CompletableFuture<List<SettleResult>> later = settle(client, "b");
    CompletableFuture<List<SettleResult>> blocking = new CompletableFuture<>();
    waiting(blocking, "c");
    answer(call, 1);
    take("b", "c").fail(Code.UNAVAILABLE);
    assertEquals(Code.UNAVAILABLE, failure(later).code());
    assertEquals(Code.UNAVAILABLE, failure(blocking).code());
    assertTrue(failure(blocking).maybeApplied());
  }

  @Test
  void aMalformedCallFailsAlone() throws Exception {
    settle(client, "a");
    FakeServer.SettleCall call = take("a");
    CompletableFuture<List<SettleResult>> malformed = settle(client, "b");
    CompletableFuture<List<SettleResult>> good = settle(client, "c");
    answer(call, 1);
    take("b", "c").fail(Code.INVALID_ARGUMENT);
    for (int i = 0; i < 2; ++i) {
      FakeServer.SettleCall one = FakeServer.take(server.settles);
      if (one.request().getSettlements(0).getDeliveryToken().toStringUtf8().equals("b")) {
        one.fail(Code.INVALID_ARGUMENT);
      } else {
        answer(one, 3);
      }
    }
    assertEquals(Code.INVALID_ARGUMENT, failure(malformed).code());
    assertFalse(failure(malformed).maybeApplied());
    assertEquals(List.of(3L), versions(good));
  }

  @Test
  void aDeadlineLeavesTheOthers() throws Exception {
    settle(client, "a");
    FakeServer.SettleCall call = take("a");
    TimecacheException late = failure(settle(client.withTimeout(SHORT), "b"));
    assertEquals(Code.DEADLINE_EXCEEDED, late.code());
    assertFalse(late.maybeApplied());
    CompletableFuture<List<SettleResult>> good = settle(client, "c");
    CompletableFuture<List<SettleResult>> sent =
        settle(client.withTimeout(Duration.ofSeconds(3)), "d");
    answer(call, 1);
    call = take("c", "d");
    assertEquals(Code.DEADLINE_EXCEEDED, failure(sent).code());
    assertTrue(failure(sent).maybeApplied());
    answer(call, 2);
    assertEquals(List.of(2L), versions(good));
  }

  @Test
  void whatIsCancelledBeforeItIsSentIsNotSent() throws Exception {
    settle(client, "a");
    FakeServer.SettleCall call = take("a");
    assertTrue(settle(client, "b").cancel(true));
    CompletableFuture<List<SettleResult>> interrupted = new CompletableFuture<>();
    waiting(interrupted, "c").interrupt();
    assertEquals(Code.CANCELLED, failure(interrupted).code());
    assertFalse(failure(interrupted).maybeApplied());
    CompletableFuture<List<SettleResult>> good = settle(client, "d");
    answer(call, 1);
    answer(take("d"), 2);
    assertEquals(List.of(2L), versions(good));
  }

  @Test
  void cancellingTheOnlyCallOfARequestEndsIt() throws Exception {
    CompletableFuture<List<SettleResult>> first = settle(client, "a");
    take("a");
    CompletableFuture<List<SettleResult>> interrupted = new CompletableFuture<>();
    Thread thread = waiting(interrupted, "b");
    first.cancel(true);
    take("b");
    CompletableFuture<List<SettleResult>> next = settle(client, "c");
    thread.interrupt();
    assertEquals(Code.CANCELLED, failure(interrupted).code());
    assertTrue(failure(interrupted).maybeApplied());
    answer(take("c"), 3);
    assertEquals(List.of(3L), versions(next));
  }

  @Test
  void callsWithWhatARequestHasOnceGoAlone() throws Exception {
    Metadata metadata = new Metadata();
    metadata.put(Metadata.Key.of("tenant", Metadata.ASCII_STRING_MARSHALLER), "t");
    settle(client, "a");
    take("a");
    for (TimecacheClient view :
        List.of(
            client.withBatching(false),
            client.withMetadata(metadata),
            client.withRequestId("r"),
            client.withTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            client.repeatable())) {
      settle(view, "b");
      take("b");
    }
    settle(client, "x".repeat(PlainCall.SHARED_BYTES_MAX));
    assertEquals(1, FakeServer.take(server.settles).request().getSettlementsCount());
  }

  @Test
  void aRequestHasNoMoreThanTheServerTakes() throws Exception {
    settle(client, "a");
    FakeServer.SettleCall call = take("a");
    List<Settlement> many = Collections.nCopies(Settler.SETTLEMENTS_MAX / 2, events("b").get(0));
    CompletableFuture<?> half = client.async().settle("g", many);
    CompletableFuture<?> otherHalf = client.async().settle("g", many);
    CompletableFuture<List<SettleResult>> last = settle(client, "c");
    answer(call, 1);
    call = FakeServer.take(server.settles);
    assertEquals(Settler.SETTLEMENTS_MAX, call.request().getSettlementsCount());
    answer(call, 1);
    answer(take("c"), 7);
    half.get(30, TimeUnit.SECONDS);
    otherHalf.get(30, TimeUnit.SECONDS);
    assertEquals(List.of(7L), versions(last));
  }

  @Test
  void aThreadOfTheExecutorMaySettle() throws Exception {
    CompletableFuture<List<SettleResult>> first = settle(client, "a");
    CompletableFuture<List<SettleResult>> inside =
        first.thenApply(unused -> client.settle("g", events("c")));
    FakeServer.SettleCall call = take("a");
    CompletableFuture<List<SettleResult>> second = settle(client, "b");
    answer(call, 1);
    answer(take("b"), 2); // While the executor's only thread waits for the next request.
    answer(take("c"), 3);
    assertEquals(List.of(3L), versions(inside));
    assertEquals(List.of(2L), versions(second));
  }
}
