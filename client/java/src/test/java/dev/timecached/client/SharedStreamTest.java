package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.OperationResult;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What becomes of plain calls that share a stream. */
@Timeout(120)
final class SharedStreamTest {
  private static final RetryPolicy QUICK =
      new RetryPolicy(3, Duration.ofMillis(1), Duration.ofMillis(1));
  private static final Duration SHORT = Duration.ofMillis(30);

  private final FakeServer server = new FakeServer();
  private final TimecacheClient client =
      server.builder().retry(QUICK).timeout(Duration.ofMinutes(1)).build();
  private final AsyncTimecache async = client.async();
  private final List<CompletableFuture<?>> filling = new ArrayList<>();

  @BeforeEach
  void hold() {
    server.holdsPlainCalls = true;
  }

  @AfterEach
  void stop() {
    client.close();
    server.close();
  }

  private FakeServer.PipelineRequest take(String... keys) throws Exception {
    FakeServer.PipelineRequest request = FakeServer.take(server.pipelined);
    assertEquals(List.of(keys), request.keys());
    assertTrue(request.request().getIndependent());
    return request;
  }

  /** As many messages are under way as may be; what comes now waits. */
  private List<FakeServer.PipelineRequest> fill() throws Exception {
    List<FakeServer.PipelineRequest> sent = new ArrayList<>();
    for (int i = 0; i < SharedStream.MESSAGES_MAX; ++i) {
      filling.add(async.get("fill" + i));
      sent.add(take("fill" + i));
    }
    return sent;
  }

  private void empty(List<FakeServer.PipelineRequest> sent) throws Exception {
    sent.forEach(FakeServer.PipelineRequest::answer);
    for (CompletableFuture<?> one : filling) {
      result(one);
    }
  }

  private static TimecacheException failure(CompletableFuture<?> future) {
    ExecutionException error =
        assertThrows(ExecutionException.class, () -> future.get(30, TimeUnit.SECONDS));
    return (TimecacheException) error.getCause();
  }

  private static <R> R result(CompletableFuture<R> future) throws Exception {
    return future.get(30, TimeUnit.SECONDS);
  }

  private static void assertEnds(Code code, boolean maybeApplied, CompletableFuture<?> future) {
    TimecacheException error = failure(future);
    assertEquals(code, error.code(), error.getMessage());
    assertEquals(maybeApplied, error.maybeApplied());
  }

  private static OperationResult error(Code code, ErrorReason reason) {
    OperationResult.Builder result = OperationResult.newBuilder();
    result
        .getErrorBuilder()
        .setCode(code.value())
        .addDetails(Any.pack(ErrorInfo.newBuilder().setReason(reason.name()).build()));
    return result.build();
  }

  static StatusRuntimeException draining() {
    return StatusProto.toStatusRuntimeException(
        error(Code.UNAVAILABLE, ErrorReason.DRAINING).getError());
  }

  @Test
  void whatComesWhileMessagesAreUnderWayGoesWithTheNext() throws Exception {
    List<FakeServer.PipelineRequest> sent = fill();
    CompletableFuture<PutResult> put = async.put("a", "1");
    CompletableFuture<Optional<Entry>> get =
        CompletableFuture.supplyAsync(() -> client.withTimeout(Duration.ofHours(1)).get("b"));
    while (queued("default") < 2) {
      Thread.onSpinWait();
    }
    empty(sent);
    FakeServer.PipelineRequest both = FakeServer.take(server.pipelined);
    assertEquals(2, both.request().getOperationsCount());
    assertEquals("default", both.request().getNamespace());
    both.answer(
        one ->
            one.hasPut()
                ? OperationResult.newBuilder()
                    .setPut(dev.timecached.v1.PutResponse.newBuilder().setVersion(7))
                    .build()
                : error(Code.NOT_FOUND, ErrorReason.NAMESPACE_NOT_FOUND));
    assertEquals(7, result(put).version());
    TimecacheException why = failure(get);
    assertTrue(why.is(ErrorReason.NAMESPACE_NOT_FOUND));
    assertFalse(why.maybeApplied());
    assertTrue(why.requestId().isPresent()); // That of the stream.
  }

  private int queued(String namespace) {
    return client.streams().get(namespace).queued();
  }

  @Test
  void aCancelledCallIsTakenBackOrItsAnswerDropped() throws Exception {
    List<FakeServer.PipelineRequest> sent = fill();
    CompletableFuture<PutResult> unsent = async.put("unsent", "1");
    CompletableFuture<PutResult> other = async.put("other", "1");
    assertTrue(unsent.cancel(true));
    empty(sent);
    FakeServer.PipelineRequest request = take("other");
    assertTrue(other.cancel(true));
    CompletableFuture<PutResult> next = async.put("next", "1");
    request.answer();
    take("next").answer();
    result(next);
    assertTrue(unsent.isCancelled() && other.isCancelled());
  }

  @Test
  void aThreadThatIsInterruptedLeavesItsCall() throws Exception {
    CompletableFuture<TimecacheException> ended = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              ended.complete(
                  assertThrows(TimecacheException.class, () -> client.put("k", "v")));
            });
    thread.start();
    FakeServer.PipelineRequest request = take("k");
    CompletableFuture<PutResult> other = async.put("other", "v");
    thread.interrupt();
    assertEquals(Code.CANCELLED, result(ended).code());
    assertTrue(result(ended).maybeApplied());
    request.answer();
    take("other").answer();
    result(other);
  }

  @Test
  void aServerIsFarWhereEvenTheShortestAnswerTookLong() {
    SharedStream.AnswerTimes times = new SharedStream.AnswerTimes();
    for (long shortest : new long[] {SharedStream.AnswerTimes.LONG_NANOS, 1}) {
      for (int i = 1; i < SharedStream.AnswerTimes.ANSWERS; ++i) {
        times.add(Long.MAX_VALUE);
      }
      times.add(shortest);
      assertEquals(shortest == SharedStream.AnswerTimes.LONG_NANOS, times.areLong());
    }
  }

  @Test
  void aDeadlineEndsItsCallAlone() throws Exception {
    AsyncTimecache hurried = client.withTimeout(SHORT).async();
    List<FakeServer.PipelineRequest> sent = fill();
    CompletableFuture<PutResult> unsent = hurried.put("unsent", "1");
    assertEnds(Code.DEADLINE_EXCEEDED, false, unsent);
    assertEquals(
        Code.DEADLINE_EXCEEDED,
        assertThrows(TimecacheException.class, () -> client.withTimeout(SHORT).get("k")).code());
    empty(sent);
    CompletableFuture<PutResult> late = hurried.put("late", "1");
    CompletableFuture<PutResult> other = async.put("other", "1");
    FakeServer.PipelineRequest first = take("late");
    FakeServer.PipelineRequest second = take("other");
    assertEnds(Code.DEADLINE_EXCEEDED, true, late);
    // No answer came for so long: what comes now goes by another stream.
    CompletableFuture<PutResult> next = async.put("next", "1");
    FakeServer.PipelineRequest elsewhere = take("next");
    assertFalse(elsewhere.observer() == first.observer());
    elsewhere.answer();
    result(next);
    first.answer();
    second.answer();
    result(other);
  }

  @Test
  void aStreamThatDoesNotAnswerIsGivenUpWithTheNextOne() throws Exception {
    CompletableFuture<PutResult> unsafe = async.put("unsafe", "1");
    take("unsafe");
    AsyncTimecache hurried = client.withTimeout(SHORT).async();
    assertEnds(Code.DEADLINE_EXCEEDED, true, hurried.get("late"));
    take("late");
    CompletableFuture<Optional<Entry>> safe = async.get("safe");
    take("safe");
    assertEnds(Code.DEADLINE_EXCEEDED, true, hurried.get("late"));
    take("late");
    assertEnds(Code.UNAVAILABLE, true, unsafe);
    assertEnds(Code.DEADLINE_EXCEEDED, true, hurried.get("late"));
    take("late");
    take("safe").answer();
    assertTrue(result(safe).isEmpty());
  }

  @Test
  void aBreakFailsWhatWasSentAndIsNotSafe() throws Exception {
    CompletableFuture<Optional<Entry>> safe = async.get("safe");
    take("safe");
    CompletableFuture<PutResult> unsafe = async.put("unsafe", "1");
    FakeServer.PipelineRequest sent = take("unsafe");
    List<CompletableFuture<?>> unsent = new ArrayList<>();
    for (String key : List.of("1", "2", "3")) {
      unsent.add(async.put(key, "1"));
    }
    sent.breakOff(Code.UNAVAILABLE);
    FakeServer.PipelineRequest again = take("safe", "1", "2", "3");
    TimecacheException error = failure(unsafe);
    assertEquals("UNAVAILABLE: broke", error.getMessage());
    assertTrue(error.maybeApplied());
    again.answer();
    result(safe);
    for (CompletableFuture<?> one : unsent) {
      result(one);
    }
    // Once they were sent they have their attempts, and no more.
    CompletableFuture<Optional<Entry>> get = async.get("k");
    for (int i = 0; i < QUICK.maxAttempts(); ++i) {
      take("k").breakOff(Code.UNAVAILABLE);
    }
    assertEnds(Code.UNAVAILABLE, true, get);
  }

  @Test
  void repeatedCallsKeepTheirOrder() throws Exception {
    AsyncTimecache repeatable = client.repeatable().async();
    List<CompletableFuture<PutResult>> puts = new ArrayList<>();
    puts.add(repeatable.put("1", ""));
    take("1");
    puts.add(repeatable.put("2", ""));
    FakeServer.PipelineRequest sent = take("2");
    puts.add(repeatable.put("3", ""));
    sent.breakOff(Code.UNAVAILABLE);
    take("1", "2", "3").answer();
    for (CompletableFuture<PutResult> put : puts) {
      result(put);
    }
  }

  /** The first message takes until a test says so to be sent, and so the second to be begun. */
  private static final class SlowSends implements ClientInterceptor {
    final CountDownLatch firstReturns = new CountDownLatch(1);
    final CountDownLatch secondBegan = new CountDownLatch(1);
    final CountDownLatch secondGoesOn = new CountDownLatch(1);
    private final AtomicInteger messages = new AtomicInteger();

    @Override
    public <Q, A> ClientCall<Q, A> interceptCall(
        MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void sendMessage(Q message) {
          int number = messages.incrementAndGet();
          if (number == 2) {
            secondBegan.countDown();
            await(secondGoesOn);
          }
          super.sendMessage(message);
          if (number == 1) {
            await(firstReturns);
          }
        }
      };
    }

    static void await(CountDownLatch latch) {
      try {
        assertTrue(latch.await(30, TimeUnit.SECONDS));
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }
  }

  @Test
  void whoStillSendsByAStreamThatBrokeLetsNoOtherOvertakeOnTheNext() throws Exception {
    SlowSends slow = new SlowSends();
    ManagedChannel channel = server.channel(slow);
    try (TimecacheClient own = TimecacheClient.of(channel).withTimeout(Duration.ofMinutes(1))) {
      CompletableFuture<CompletableFuture<Optional<Entry>>> first = new CompletableFuture<>();
      new Thread(() -> first.complete(own.async().get("first"))).start();
      take("first").breakOff(Code.UNAVAILABLE);
      SlowSends.await(slow.secondBegan); // The same call on the next stream.
      slow.firstReturns.countDown();
      CompletableFuture<Optional<Entry>> sent = result(first);
      CompletableFuture<Optional<Entry>> other = own.async().get("other");
      slow.secondGoesOn.countDown();
      FakeServer.take(server.pipelined).echo();
      FakeServer.take(server.pipelined).echo();
      assertEquals("first", result(sent).get().value().toStringUtf8());
      assertEquals("other", result(other).get().value().toStringUtf8());
    } finally {
      channel.shutdownNow();
    }
  }

  @Test
  void whatIsBeingSentMayBeDoneThoughItsTimeIsUp() throws Exception {
    SlowSends slow = new SlowSends();
    slow.firstReturns.countDown();
    ManagedChannel channel = server.channel(slow);
    try (TimecacheClient own = TimecacheClient.of(channel).withTimeout(Duration.ofMinutes(1))) {
      CompletableFuture<PutResult> first = own.async().put("first", "v");
      take("first").breakOff(Code.UNAVAILABLE);
      failure(first);
      // It is to be begun before.
      TimecacheClient hurried = own.withTimeout(Duration.ofMillis(500));
      CompletableFuture<CompletableFuture<PutResult>> late = new CompletableFuture<>();
      new Thread(() -> late.complete(hurried.async().put("late", "v"))).start();
      SlowSends.await(slow.secondBegan);
      CompletableFuture<Optional<Entry>> next = own.async().get("next");
      take("next").answer(); // By another stream, as the time of the one before is up.
      result(next);
      slow.secondGoesOn.countDown();
      take("late");
      assertEnds(Code.DEADLINE_EXCEEDED, true, result(late));
    } finally {
      channel.shutdownNow();
    }
  }

  @Test
  void anUnknownNamespaceIsNoMatterOfAnothers() throws Exception {
    CompletableFuture<PutResult> absent = client.in("absent").async().put("k", "v");
    FakeServer.PipelineRequest request = take("k");
    CompletableFuture<PutResult> other = async.put("other", "v");
    request.breakOff(Code.NOT_FOUND);
    assertEquals(Code.NOT_FOUND, failure(absent).code());
    take("other").answer();
    result(other);
    CompletableFuture<PutResult> again = client.in("absent").async().put("k", "v");
    take("k").answer(); // It has been made.
    result(again);
  }

  @Test
  void someCallsGoAlone() throws Exception {
    fill();
    String large = "v".repeat(PlainCall.SHARED_BYTES_MAX);
    client.put("large", large);
    result(async.put("large", large));
    client.withBatching(false).put("alone", "v");
    Metadata metadata = new Metadata();
    metadata.put(Metadata.Key.of("x-proxy", Metadata.ASCII_STRING_MARSHALLER), "1");
    client.withMetadata(metadata).put("metadata", "v");
    for (String key : List.of("large", "large", "alone", "metadata")) {
      assertEquals(key, FakeServer.take(server.puts).getKey().toStringUtf8());
    }
    assertTrue(server.pipelined.isEmpty());
  }

  @Test
  void anAnswerThatIsTooLargeIsAskedForAlone() throws Exception {
    OperationResult tooLarge = error(Code.RESOURCE_EXHAUSTED, ErrorReason.MAX_RESPONSE_BYTES);
    CompletableFuture<Optional<Entry>> later = async.get("k");
    take("k").answer(one -> tooLarge);
    assertTrue(result(later).isEmpty());
    CompletableFuture<Optional<Entry>> blocking =
        CompletableFuture.supplyAsync(() -> client.get("k"));
    take("k").answer(one -> tooLarge);
    assertTrue(result(blocking).isEmpty());
  }

  @Test
  void aServerWithoutPipelineIsCalledAlone() throws Exception {
    server.failures.add(Status.UNIMPLEMENTED);
    result(async.put("first", "v"));
    client.put("second", "v");
    assertEquals("first", FakeServer.take(server.puts).getKey().toStringUtf8());
    assertEquals("second", FakeServer.take(server.puts).getKey().toStringUtf8());
    assertTrue(server.pipelined.isEmpty());
  }

  @Test
  void whatAStreamThatEndsBehindAnAnswerHasNotDoneGoesWithTheNext() throws Exception {
    CompletableFuture<PutResult> first = async.put("1", "v");
    FakeServer.PipelineRequest request = take("1");
    CompletableFuture<PutResult> second = async.put("2", "v");
    take("2");
    CompletableFuture<PutResult> third = async.put("3", "v");
    request.answer();
    request.observer().onError(draining());
    result(first);
    FakeServer.PipelineRequest next = FakeServer.take(server.pipelined);
    if (next.keys().equals(List.of("3"))) { // It was sent as the answer came.
      next = FakeServer.take(server.pipelined);
    }
    assertEquals(List.of("2", "3"), next.keys());
    next.observer().onError(draining()); // At once: as of a call that is alone.
    assertEnds(Code.UNAVAILABLE, false, second);
    assertEnds(Code.UNAVAILABLE, false, third);
  }

  @Test
  void theIdleStreamOfAnotherNamespaceMakesRoom() throws Exception {
    server.holdsPlainCalls = false;
    for (int i = 0; i < SharedStreams.STREAMS_MAX; ++i) {
      client.in("n" + i).put("k", "v");
    }
    client.in("n0").put("k", "v");
    client.in("another").put("k", "v");
    FakeServer.take(server.halfClosed).onCompleted(); // That of n1.
    assertTrue(client.streams().get("n0").idleNanos() >= 0);
    server.holdsPlainCalls = true;
    server.puts.clear();
    List<CompletableFuture<?>> busy = new ArrayList<>();
    List<FakeServer.PipelineRequest> requests = new ArrayList<>();
    for (int i = 0; i < SharedStreams.STREAMS_MAX; ++i) {
      busy.add(client.in("m" + i).async().put("k", "v"));
      requests.add(take("k"));
    }
    client.in("alone").put("alone", "v");
    assertEquals("alone", FakeServer.take(server.puts).getKey().toStringUtf8());
    requests.forEach(FakeServer.PipelineRequest::answer);
    for (CompletableFuture<?> one : busy) {
      result(one);
    }
  }

  @Test
  void whatIsUnderWayEndsWithTheClient() throws Exception {
    CompletableFuture<PutResult> sent = async.put("sent", "v");
    take("sent");
    fillRest();
    CompletableFuture<PutResult> unsent = async.put("unsent", "v");
    CompletableFuture<TimecacheException> blocked =
        CompletableFuture.supplyAsync(
            () -> assertThrows(TimecacheException.class, () -> client.put("blocked", "v")));
    while (queued("default") < 2) {
      Thread.onSpinWait();
    }
    client.close();
    assertEnds(Code.CANCELLED, true, sent);
    assertEnds(Code.CANCELLED, false, unsent);
    assertEquals("CANCELLED: the client is closed", result(blocked).getMessage());
    assertEnds(Code.CANCELLED, false, async.put("later", "v"));
  }

  private void fillRest() throws Exception {
    for (int i = 1; i < SharedStream.MESSAGES_MAX; ++i) {
      async.get("fill" + i);
      take("fill" + i);
    }
  }

  @Test
  void idsAndTracesGoWithTheOperation() throws Exception {
    String trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    CompletableFuture<PutResult> put =
        client.withRequestId("call-7").withTraceparent(trace).async().put("k", "v");
    FakeServer.PipelineRequest request = take("k");
    assertEquals("call-7", request.request().getOperations(0).getRequestId());
    assertEquals(trace, request.request().getOperations(0).getTraceparent());
    assertEquals("", request.request().getOperations(0).getPut().getTraceparent());
    request.answer(one -> error(Code.FAILED_PRECONDITION, ErrorReason.KEY_EXISTS));
    assertEquals(Optional.of("call-7"), failure(put).requestId());
  }

  @Test
  void callsWaitForRoom() throws Exception {
    List<FakeServer.PipelineRequest> sent = fill();
    List<CompletableFuture<?>> queued = new ArrayList<>();
    for (int i = 0; i < SharedStream.QUEUED_OPERATIONS_MAX; ++i) {
      queued.add(async.put("k", "v"));
    }
    TimecacheException full =
        assertThrows(
            TimecacheException.class, () -> client.withTimeout(SHORT).put("more", "v"));
    assertEquals(Code.DEADLINE_EXCEEDED, full.code());
    assertFalse(full.maybeApplied());
    assertEnds(
        Code.DEADLINE_EXCEEDED, false, client.withTimeout(SHORT).async().put("more", "v"));
    CompletableFuture<PutResult> waits =
        CompletableFuture.supplyAsync(() -> client.put("more", "v"));
    server.holdsPlainCalls = false;
    empty(sent);
    result(waits);
    for (CompletableFuture<?> one : queued) {
      result(one);
    }
  }

  @Test
  void aFutureMayWaitForAnotherOfTheSameMessage() throws Exception {
    List<FakeServer.PipelineRequest> sent = fill();
    CompletableFuture<PutResult> first = async.put("1", "v");
    CompletableFuture<PutResult> second = async.put("2", "v");
    CompletableFuture<Void> both = first.thenAccept(unused -> second.join());
    CompletableFuture<Optional<Entry>> nested = first.thenApply(unused -> client.get("3"));
    empty(sent);
    take("1", "2").answer();
    take("3").answer();
    result(both);
    assertTrue(result(nested).isEmpty());
    assertNull(server.pipelined.poll());
  }
}
