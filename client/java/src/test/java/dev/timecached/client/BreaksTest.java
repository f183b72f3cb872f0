package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.rpc.BadRequest;
import dev.timecached.v1.DeadLetterReason;
import dev.timecached.v1.ScanResponse;
import dev.timecached.v1.WatchExpiredResponse;
import io.grpc.Status;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.io.IOException;
import java.net.ServerSocket;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is left of a call whose stream breaks, and what goes on. */
@Timeout(120)
final class BreaksTest {
  private static final RetryPolicy QUICK =
      new RetryPolicy(3, Duration.ofMillis(1), Duration.ofMillis(1));

  private final FakeServer server = new FakeServer();
  private final TimecacheClient client = server.builder().retry(QUICK).build();

  @AfterEach
  void stop() {
    client.close();
    server.close();
  }

  private static TimecacheException failure(Runnable call) {
    return assertThrows(TimecacheException.class, call::run);
  }

  @Test
  void aWatchGoesOnThroughResetsWithEnhanceYourCalm() throws Exception {
    byte[] message =
        WatchExpiredResponse.newBuilder().setNamespace("default").build().toByteArray();
    List<TimecacheException> breaks = new ArrayList<>();
    WatchOptions options =
        new WatchOptions().onBreak(breaks::add).pauses(Duration.ofMillis(1), Duration.ofMillis(1));
    try (ResetServer resets = new ResetServer(message);
        TimecacheClient own = TimecacheClient.connect(resets.address());
        Watcher watcher = own.watch(options)) {
      for (int i = 0; i < 4; ++i) {
        assertEquals("default", watcher.next().namespace());
      }
    }
    assertTrue(breaks.size() >= 3);
    breaks.forEach(why -> assertEquals(Code.RESOURCE_EXHAUSTED, why.code(), why.getMessage()));
  }

  @Test
  void aCallThatIsResetMayHaveBeenDone() throws IOException {
    try (ResetServer resets = new ResetServer(null);
        TimecacheClient own = TimecacheClient.connect(resets.address())) {
      TimecacheException error = failure(() -> own.put("k", "v"));
      assertEquals(Code.RESOURCE_EXHAUSTED, error.code());
      assertTrue(error.isConnectionLost());
      assertTrue(error.maybeApplied());
    }
  }

  @Test
  void aCallWithoutAConnectionWasNotDone() throws Exception {
    try (ServerSocket silent = new ServerSocket(0)) {
      String address = "127.0.0.1:" + silent.getLocalPort();
      try (TimecacheClient mute =
          TimecacheClient.builder(address).timeout(Duration.ofMillis(50)).build()) {
        TimecacheException error = failure(() -> mute.put("k", "v"));
        assertEquals(Code.DEADLINE_EXCEEDED, error.code());
        assertFalse(error.maybeApplied());
      }
      silent.close();
      try (TimecacheClient lost = TimecacheClient.connect(address)) {
        assertEquals(Code.UNAVAILABLE, failure(() -> lost.put("k", "v")).code());
        assertFalse(failure(() -> lost.put("k", "v")).maybeApplied());
        assertFalse(failure(() -> lost.scan().count()).maybeApplied());
        ExecutionException later =
            assertThrows(ExecutionException.class, () -> lost.async().put("k", "v").get());
        assertFalse(((TimecacheException) later.getCause()).maybeApplied());
      }
    }
  }

  @Test
  void anAttemptBeforeTheLastMayHaveBeenDone() {
    server.failure = Status.UNAVAILABLE;
    assertTrue(failure(() -> client.put("k", "v")).maybeApplied());
    server.failure = Status.FAILED_PRECONDITION;
    assertFalse(failure(() -> client.put("k", "v")).maybeApplied());
    server.failures.add(Status.UNAVAILABLE);
    TimecacheException second = failure(() -> client.repeatable().put("k", "v"));
    assertEquals(Code.FAILED_PRECONDITION, second.code());
    assertTrue(second.maybeApplied());
  }

  @Test
  void aClosedClientSaysSo() throws Exception {
    client.get("k");
    Pipeline pipeline = client.pipeline();
    CompletableFuture<Boolean> sent = pipeline.add(Operation.contains("k"));
    FakeServer.take(server.pipelined);
    client.close();
    ExecutionException under =
        assertThrows(ExecutionException.class, () -> sent.get(30, TimeUnit.SECONDS));
    TimecacheException told = (TimecacheException) under.getCause();
    assertEquals(Code.CANCELLED, told.code());
    assertTrue(told.maybeApplied());
    List<Runnable> calls =
        List.of(
            () -> client.get("k"),
            () -> client.put("k", "v"),
            () -> client.scan().count(),
            () -> client.watch(new WatchOptions()).next(),
            () -> Rpc.await(client.async().get("k")));
    for (Runnable call : calls) {
      TimecacheException error = failure(call);
      assertEquals("CANCELLED: the client is closed", error.getMessage());
      assertFalse(error.maybeApplied());
    }
  }

  private static ScanResponse page(String keys, String position) {
    ScanResponse.Builder page =
        ScanResponse.newBuilder().setPosition(ByteString.copyFromUtf8(position));
    keys.chars()
        .forEach(key -> page.addEntriesBuilder().setKey(ByteString.copyFrom(new byte[] {(byte) key})));
    return page.build();
  }

  /** Begins a scan on a thread of its own. */
  private CompletableFuture<String> scan(StringBuilder seen) {
    return CompletableFuture.supplyAsync(
        () -> {
          client.scan().forEach(entry -> seen.append(entry.keyUtf8()));
          return seen.toString();
        });
  }

  private FakeServer.ScanCall takeScan(String position) throws Exception {
    FakeServer.ScanCall call = FakeServer.take(server.scans);
    assertEquals(position, call.request().getPosition().toStringUtf8());
    return call;
  }

  @Test
  void aScanGoesOnBehindItsLastPage() throws Exception {
    CompletableFuture<String> scan = scan(new StringBuilder());
    takeScan("").observer().onError(Status.UNAVAILABLE.asException()); // Begun anew.
    FakeServer.ScanCall first = takeScan("");
    first.observer().onNext(page("ab", "p1"));
    first.observer().onNext(page("cd", "p2"));
    first.observer().onError(Status.UNAVAILABLE.asException());
    takeScan("p2").observer().onError(Status.DEADLINE_EXCEEDED.asException());
    FakeServer.ScanCall last = takeScan("p2");
    last.observer().onNext(page("e", "p3"));
    last.observer().onCompleted();
    assertEquals("abcde", scan.get(30, TimeUnit.SECONDS));
  }

  @Test
  void aScanThatCannotGoOnThrowsWhatBrokeIt() throws Exception {
    StringBuilder seen = new StringBuilder();
    CompletableFuture<String> restarted = scan(seen);
    FakeServer.ScanCall call = takeScan("");
    call.observer().onNext(page("a", "p1"));
    call.observer().onError(Status.UNAVAILABLE.withDescription("broke").asException());
    BadRequest wrong =
        BadRequest.newBuilder()
            .addFieldViolations(BadRequest.FieldViolation.newBuilder().setField("position"))
            .build();
    StatusRuntimeException refusal =
        StatusProto.toStatusRuntimeException(
            com.google.rpc.Status.newBuilder()
                .setCode(Code.INVALID_ARGUMENT.value())
                .addDetails(Any.pack(wrong))
                .build());
    takeScan("p1").observer().onError(refusal);
    assertEquals("UNAVAILABLE: broke", causeOf(restarted).getMessage());

    CompletableFuture<String> older = scan(seen);
    call = takeScan("");
    call.observer().onNext(page("b", ""));
    call.observer().onError(Status.UNAVAILABLE.withDescription("broke").asException());
    assertEquals("UNAVAILABLE: broke", causeOf(older).getMessage());
    assertEquals("ab", seen.toString());
  }

  @Test
  void aScanWithoutProgressEnds() throws Exception {
    CompletableFuture<String> scan = scan(new StringBuilder());
    for (int i = 0; i < QUICK.maxAttempts(); ++i) {
      takeScan("").observer().onError(Status.UNAVAILABLE.asException());
    }
    assertEquals(Code.UNAVAILABLE, causeOf(scan).code());
  }

  private static TimecacheException causeOf(CompletableFuture<?> future) {
    return (TimecacheException)
        assertThrows(ExecutionException.class, () -> future.get(30, TimeUnit.SECONDS)).getCause();
  }

  private static Entry letter(String key, ByteString value) {
    dev.timecached.v1.Entry.Builder entry = dev.timecached.v1.Entry.newBuilder().setValue(value);
    entry.getCreateTimeBuilder().setSeconds(9);
    return Entry.of(entry.build(), ByteString.copyFromUtf8(key));
  }

  @Test
  void deadLettersAreDecodedAlsoThoseOfEarlierServers() {
    dev.timecached.v1.ExpiredEvent.Builder event =
        dev.timecached.v1.ExpiredEvent.newBuilder()
            .setNamespace("orders")
            .setKey(ByteString.copyFromUtf8("o-1"))
            .setEventId(7)
            .setAttempt(5);
    DeadLetter old = DeadLetter.decode(letter("orders/billing/7", event.build().toByteString()));
    assertEquals("o-1", old.event().keyUtf8());
    assertEquals(
        List.of("billing", 5, Optional.empty(), Instant.ofEpochSecond(9)),
        List.of(old.group(), old.attempts(), old.reason(), old.time()));

    for (String key :
        List.of("orders/billing/8", "orders/7", "other/billing/7", "orders//7", "orders/a/b/7")) {
      Entry none = letter(key, event.build().toByteString());
      assertThrows(IllegalArgumentException.class, () -> DeadLetter.decode(none), key);
    }
    for (ByteString value : List.of(ByteString.EMPTY, ByteString.copyFromUtf8("{\"total\":42}"))) {
      Entry none = letter("orders/billing/7", value);
      assertThrows(IllegalArgumentException.class, () -> DeadLetter.decode(none));
    }

    event
        .getDeadLetterBuilder()
        .setGroup("billing")
        .setAttempts(3)
        .setReason(DeadLetterReason.DEAD_LETTER_REASON_TIMED_OUT)
        .getTimeBuilder()
        .setSeconds(1000);
    DeadLetter now = DeadLetter.decode(letter("any key", event.build().toByteString()));
    assertEquals(
        List.of(
            "billing", 3, Optional.of(DeadLetter.Reason.TIMED_OUT), Instant.ofEpochSecond(1000)),
        List.of(now.group(), now.attempts(), now.reason(), now.time()));
  }
}
