package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import dev.timecached.v1.ChangeKind;
import dev.timecached.v1.GroupOptions;
import dev.timecached.v1.GroupPosition;
import dev.timecached.v1.WatchChangesResponse;
import io.grpc.Status;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What calls ask for, and what is made of the answers. */
@Timeout(120)
final class CallsTest {
  private static final RetryPolicy QUICK =
      new RetryPolicy(3, Duration.ofMillis(1), Duration.ofMillis(1));

  private final FakeServer server = new FakeServer();
  private final TimecacheClient client = server.builder().retry(QUICK).build();

  @AfterEach
  void stop() {
    client.close();
    server.close();
  }

  @Test
  void groupsStartAndMove() throws Exception {
    ByteString token = ByteString.copyFromUtf8("t");
    for (GroupPosition position :
        List.of(
            Positions.now(),
            Positions.earliest(),
            Positions.after(Instant.ofEpochSecond(5)),
            Positions.after(token))) {
      client.createGroup("g", GroupOptions.getDefaultInstance(), position);
      assertEquals(position, FakeServer.take(server.created).getStart());
      assertEquals(7, client.seekGroup("g", position, true).getUnsettled());
      assertEquals(position, server.sought.peek().getPosition());
      assertTrue(FakeServer.take(server.sought).getDropUnsettled());
    }
  }

  @Test
  void unsettledEventsAreListedInPages() {
    List<UnsettledEvent> events =
        client.listUnsettled("g", new UnsettledOptions().prefix("k").pageSize(1)).toList();
    assertEquals(List.of("k", "k2"), events.stream().map(one -> one.event().keyUtf8()).toList());
    assertEquals(UnsettledEvent.State.IN_FLIGHT, events.get(1).state());
    assertEquals(3, events.get(1).memberId());
    assertEquals(Optional.of(Instant.ofEpochSecond(1)), events.get(1).since());
    assertEquals(Optional.empty(), events.get(1).due());
  }

  @Test
  void eventsAreFetched() throws Exception {
    FetchOptions options = new FetchOptions().maxEvents(5).waiting(Duration.ofSeconds(20));
    WatchBatch batch = client.fetchExpired("g", options);
    assertEquals("default", batch.namespace());
    assertEquals("k", batch.events().get(0).keyUtf8());
    assertEquals(2, batch.lost());
    assertEquals(Optional.of(Instant.ofEpochSecond(9)), batch.delivered());
    assertEquals(5, server.fetches.peek().getMaxEvents());
    assertEquals(20, FakeServer.take(server.fetches).getWait().getSeconds());
  }

  @Test
  void changesGoOnAfterABreak() throws Exception {
    WatchOptions options =
        new WatchOptions().prefix("k").pauses(Duration.ofMillis(1), Duration.ofMillis(1));
    try (ChangeWatcher watcher = client.watchChanges(options)) {
      for (int i = 1; i <= 2; ++i) {
        CompletableFuture<ChangeBatch> next = CompletableFuture.supplyAsync(watcher::next);
        FakeServer.ChangesCall call = FakeServer.take(server.changes);
        assertEquals("k", call.request().getKeyPrefix().toStringUtf8());
        assertEquals(i - 1, call.request().getResumeTokensCount());
        WatchChangesResponse.Builder answer =
            WatchChangesResponse.newBuilder()
                .setNamespace("default")
                .setLost(3)
                .setResumeToken(ByteString.copyFromUtf8("t"));
        answer.addChangesBuilder().setKind(ChangeKind.CHANGE_KIND_RENEWED).setVersion(i);
        call.observer().onNext(answer.build());
        ChangeBatch batch = next.join();
        assertEquals(ChangeEvent.Kind.RENEWED, batch.changes().get(0).kind());
        assertEquals(i, batch.changes().get(0).version());
        assertEquals(3, batch.lost());
        assertEquals(i == 2, batch.reconnected());
        call.observer().onError(Status.UNAVAILABLE.asRuntimeException());
      }
    }
    assertThrows(
        IllegalArgumentException.class, () -> client.watchChanges(new WatchOptions().group("g")));
  }

  private static PutOptions withId() {
    return new PutOptions().idempotencyId(ByteString.copyFromUtf8("1"));
  }

  @Test
  void batchesThatAreSafeAreRepeated() throws Exception {
    client.get("warm");
    server.answersBatches = true;
    server.failures.add(Status.UNAVAILABLE);
    server.failures.add(Status.UNAVAILABLE);
    Batch safe = new Batch().atomic();
    safe.add(Operation.put("k", "v", withId()));
    safe.add(Operation.contains("other", new ContainsOptions().ifVersion(7)));
    client.execute(safe);
    assertTrue(server.batches.peek().getAtomic());
    assertEquals(7, FakeServer.take(server.batches).getOperations(1).getContains().getIfVersion());
    server.failures.add(Status.UNAVAILABLE);
    Batch once = new Batch();
    once.add(Operation.put("k", "v"));
    assertThrows(TimecacheException.class, () -> client.execute(once));
    server.failures.add(Status.UNAVAILABLE);
    Batch later = new Batch();
    later.add(Operation.get("k"));
    client.async().execute(later).join();
  }

  @Test
  void aPipelineOfSafeOperationsGoesOn() throws Exception {
    client.get("warm");
    try (Pipeline pipeline = client.pipeline()) {
      CompletableFuture<PutResult> put = pipeline.add(Operation.put("k", "v", withId()));
      FakeServer.take(server.pipelined)
          .observer()
          .onError(Status.UNAVAILABLE.asRuntimeException());
      FakeServer.PipelineRequest again = FakeServer.take(server.pipelined);
      assertEquals("k", again.request().getOperations(0).getPut().getKey().toStringUtf8());
      again.answer();
      put.join();
      // That one may not be done twice.
      CompletableFuture<PutResult> once = pipeline.add(Operation.put("k", "v"));
      FakeServer.take(server.pipelined)
          .observer()
          .onError(Status.UNAVAILABLE.asRuntimeException());
      assertThrows(CompletionException.class, once::join);
      assertThrows(TimecacheException.class, pipeline::close);
    } catch (TimecacheException e) {
      assertEquals(Status.Code.UNAVAILABLE, e.code()); // The second close says so, too.
    }
  }

  @Test
  void aPipelineGivesUp() throws Exception {
    client.get("warm");
    Pipeline pipeline = client.pipeline();
    CompletableFuture<Optional<Entry>> get = pipeline.add(Operation.get("k"));
    for (int i = 0; i < QUICK.maxAttempts(); ++i) {
      FakeServer.take(server.pipelined)
          .observer()
          .onError(Status.UNAVAILABLE.asRuntimeException());
    }
    assertThrows(CompletionException.class, get::join);
    assertThrows(TimecacheException.class, pipeline::close);
  }
}
