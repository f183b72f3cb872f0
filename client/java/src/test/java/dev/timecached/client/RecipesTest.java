package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import dev.timecached.client.recipes.Acker;
import dev.timecached.client.recipes.Array;
import dev.timecached.client.recipes.Calls;
import dev.timecached.client.recipes.EventLog;
import dev.timecached.client.recipes.Join;
import dev.timecached.client.recipes.Lock;
import dev.timecached.client.recipes.LockOptions;
import dev.timecached.client.recipes.Table;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.NamespaceOptions;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.Status.Code;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The recipes; that their bytes are those of the other clients, the scenarios say. */
@NeedsServer
@Timeout(180)
final class RecipesTest {
  private static final Duration TTL = Duration.ofSeconds(10);
  private static final Duration WIDTH = Duration.ofSeconds(1);
  private static final Duration SECOND = Duration.ofSeconds(1);
  private static final Duration CHUNK = Duration.ofSeconds(2); // Of a log.
  private static final Duration FOREVER = Duration.ofDays(10_000);

  private static TestServer server;
  private static TimecacheClient connection;
  private static ManagedChannel channel;

  /** Calls of this method happen, and are not answered, where a test uses {@code broken}. */
  private static volatile String unanswered = "";

  private TimecacheClient client; // In a namespace of the test's own.
  private TimecacheClient broken;

  @BeforeAll
  static void start() {
    server = TestServer.onVirtualClock();
    connection = server.client();
    channel =
        ManagedChannelBuilder.forTarget(server.address())
            .usePlaintext()
            .intercept(new Unanswered())
            .build();
  }

  @AfterAll
  static void stop() {
    channel.shutdownNow();
    connection.close();
    server.close();
  }

  @BeforeEach
  void makeNamespace() {
    connection.createNamespace(
        "test",
        NamespaceOptions.newBuilder().setTtl(Times.toProto(TTL)).setNumBuckets(11).build());
    client = connection.in("test");
    broken =
        TimecacheClient.of(channel)
            .withTimeout(Duration.ofMinutes(1))
            .withBatching(false) // For the names of methods.
            .in("test");
    unanswered = "";
  }

  @AfterEach
  void deleteNamespace() {
    connection.deleteNamespace("test");
  }

  private static final class Unanswered implements ClientInterceptor {
    @Override
    public <Q, A> ClientCall<Q, A> interceptCall(
        MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
      if (!unanswered.equals(method.getBareMethodName())) {
        return next.newCall(method, options);
      }
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<A> listener, Metadata headers) {
          super.start(
              new SimpleForwardingClientCallListener<>(listener) {
                @Override
                public void onMessage(A message) {}

                @Override
                public void onClose(Status status, Metadata trailers) {
                  super.onClose(Status.DEADLINE_EXCEEDED, trailers);
                }
              },
              headers);
        }
      };
    }
  }

  private static void pass(Duration time) {
    connection.virtualClock().advance(time);
  }

  private Watcher watch(ByteString prefix) {
    Watcher watcher = client.watch(new WatchOptions().prefix(prefix));
    watcher.next();
    return watcher;
  }

  /** All that the watch has of deaths up to now. */
  private static List<ExpiredEvent> read(Watcher watcher) {
    Instant now = connection.virtualClock().now();
    List<ExpiredEvent> events = new ArrayList<>();
    WatchBatch batch;
    do {
      batch = watcher.next();
      events.addAll(batch.events());
    } while (batch.watermark().isBefore(now));
    return events;
  }

  private static void fails(Code code, ErrorReason reason, Runnable call) {
    TimecacheException e = assertThrows(TimecacheException.class, call::run);
    assertEquals(code, e.code());
    assertEquals(Optional.ofNullable(reason).map(Enum::name), e.reason());
  }

  private static List<String> texts(List<ByteString> values) {
    return values.stream().map(ByteString::toStringUtf8).toList();
  }

  private Lock lock(String owner) {
    return new Lock(client, "lock", options(owner));
  }

  private static LockOptions options(String owner) {
    return new LockOptions().ttl(TTL).owner(owner).recheck(FOREVER);
  }

  @Test
  void oneHasTheLockAndTheEntrySaysWho() {
    Lock a = lock("a");
    Lock b = lock("b");
    OptionalLong token = a.tryAcquire();
    assertTrue(token.isPresent());
    assertEquals(OptionalLong.empty(), b.tryAcquire());
    assertEquals(token, a.token());
    assertEquals(OptionalLong.empty(), b.token());
    assertTrue(a.remaining().compareTo(TTL) <= 0 && !a.remaining().isZero());
    assertEquals(Duration.ZERO, b.remaining());
    assertTrue(client.get("lock").orElseThrow().valueUtf8().matches("a [0-9a-f]{32}"));
  }

  @Test
  void renewalsKeepTheTokenAndTheLock() {
    Lock a = lock("a");
    Lock b = lock("b");
    OptionalLong token = a.tryAcquire();
    for (int i = 0; i < 3; ++i) {
      pass(TTL.minus(SECOND));
      assertTrue(a.renew());
      assertEquals(token, a.token());
      assertTrue(b.tryAcquire().isEmpty());
    }
    pass(TTL.minus(SECOND));
    assertEquals(token, a.tryAcquire(), "to ask for it again is to renew it");
    pass(TTL.minus(SECOND));
    assertTrue(b.tryAcquire().isEmpty());
    // Who lost it neither renews nor releases.
    pass(SECOND.plus(WIDTH));
    assertTrue(b.tryAcquire().getAsLong() > token.getAsLong());
    assertFalse(a.renew());
    assertTrue(a.token().isEmpty());
    assertFalse(a.release());
    assertTrue(b.renew());
  }

  @Test
  void aReleasedLockIsFreeAtOnceForWhoAsks() {
    Lock a = lock("a");
    Lock b = lock("b");
    long first = a.tryAcquire().getAsLong();
    assertTrue(a.release());
    assertFalse(a.release());
    assertTrue(b.tryAcquire().getAsLong() > first);
    pass(TTL.minus(WIDTH));
    assertTrue(a.tryAcquire().isEmpty(), "what is left of the release ends nothing");
  }

  @Test
  void aWaiterGetsTheLockOrGivesUp() {
    Lock a = lock("a");
    Lock b = lock("b");
    a.tryAcquire();
    assertTrue(b.acquire(Duration.ZERO).isEmpty());
    assertTrue(b.acquire(Duration.ofMillis(20)).isEmpty());
    var expired = CompletableFuture.supplyAsync(() -> b.acquire(FOREVER));
    pass(TTL.plus(WIDTH));
    assertTrue(expired.join().isPresent());
    Lock c = lock("c");
    var released = CompletableFuture.supplyAsync(() -> c.acquire(FOREVER));
    assertTrue(b.release());
    pass(Duration.ofMillis(1).plus(WIDTH));
    assertTrue(released.join().isPresent());
    // Where no event comes.
    Lock d = new Lock(client, "lock", options("d").recheck(Duration.ofMillis(2)));
    var removed = CompletableFuture.supplyAsync(() -> d.acquire(FOREVER));
    client.remove("lock");
    assertTrue(removed.join().isPresent());
  }

  @Test
  void aLossIsReportedOnceAndAReleaseIsNone() throws Exception {
    BlockingQueue<String> losses = new LinkedBlockingQueue<>();
    Lock found = new Lock(client, "lock", options("a").onLost(() -> losses.add("found")));
    found.tryAcquire();
    assertTrue(found.renew());
    client.remove("lock");
    Lock b = lock("b");
    b.tryAcquire();
    assertFalse(found.renew());
    assertEquals("found", losses.take());
    assertTrue(found.tryAcquire().isEmpty());
    b.release();
    // On this machine's clock, whatever the server's says.
    LockOptions brief = options("c").ttl(Duration.ofMillis(5));
    Lock late = new Lock(client, "lock", brief.onLost(() -> losses.add("late")));
    assertTrue(late.tryAcquire().isPresent());
    assertEquals("late", losses.take());
    assertTrue(late.token().isEmpty());
    assertEquals(Duration.ZERO, late.remaining());
    assertFalse(late.renew());
    assertTrue(late.tryAcquire().isPresent(), "which takes it over");
    assertEquals("late", losses.take());
    client.remove("lock");
    Lock released = new Lock(client, "lock", options("d").onLost(() -> losses.add("released")));
    released.tryAcquire();
    assertTrue(released.release());
    assertFalse(released.renew());
    assertEquals(0, losses.size());
  }

  @Test
  void anAcquisitionWithoutAnAnswerIsTakenOver() {
    Lock a = new Lock(broken, "lock", options("a"));
    Lock b = lock("b");
    unanswered = "Put";
    fails(Code.DEADLINE_EXCEEDED, null, a::tryAcquire);
    assertTrue(a.token().isEmpty());
    assertTrue(b.tryAcquire().isEmpty());
    unanswered = "";
    assertEquals(client.get("lock").orElseThrow().version(), a.tryAcquire().getAsLong());
    unanswered = "Put";
    fails(Code.DEADLINE_EXCEEDED, null, a::release);
    assertTrue(b.tryAcquire().getAsLong() > a.token().getAsLong());
    unanswered = "";
    assertFalse(a.release());
    assertTrue(b.renew());
  }

  @Test
  void callsAreLimitedInAWindow() {
    for (int i = 0; i < 5; ++i) {
      assertEquals(i < 3, Calls.mayCall(client, "alice", 3, SECOND));
    }
    assertTrue(Calls.mayCall(client, "bob", 3, SECOND));
    pass(SECOND.plus(WIDTH));
    assertTrue(Calls.mayCall(client, "alice", 3, SECOND));
  }

  @Test
  void aRequestIsWorkedOnOnce() {
    AtomicInteger worked = new AtomicInteger();
    Duration workTime = Duration.ofSeconds(5);
    class Asking {
      String ask(String request) {
        return Calls.answerOnce(
                client,
                request,
                workTime,
                TTL,
                () -> ByteString.copyFromUtf8("answer " + worked.incrementAndGet()))
            .toStringUtf8();
      }
    }
    Asking asking = new Asking();
    assertEquals("answer 1", asking.ask("1"));
    assertEquals("answer 1", asking.ask("1"));
    assertEquals("answer 2", asking.ask("2"));
    pass(TTL.plus(WIDTH));
    assertEquals("answer 3", asking.ask("1"));
    // Meanwhile it comes again; and an empty answer is one.
    Calls.answerOnce(
        client,
        "3",
        workTime,
        TTL,
        () -> {
          fails(Code.ABORTED, null, () -> asking.ask("3"));
          return ByteString.EMPTY;
        });
    assertEquals("", asking.ask("3"));
    Runnable late =
        () ->
            Calls.answerOnce(
                client,
                "4",
                workTime,
                TTL,
                () -> {
                  pass(workTime.plus(WIDTH));
                  return ByteString.EMPTY;
                });
    fails(Code.FAILED_PRECONDITION, ErrorReason.KEY_NOT_FOUND, late);
  }

  @Test
  void membersOfATableExpireOneByOne() {
    Table table = new Table(client, "online").withTtl(TTL);
    try (Watcher watcher = watch(table.keyPrefix())) {
      assertTrue(table.add("bob"));
      assertTrue(table.add("alice"));
      assertFalse(table.add("bob"));
      assertTrue(new Table(client, "onliner").add("x"));
      assertTrue(table.contains("bob"));
      assertFalse(table.contains("carol"));
      assertEquals(List.of("alice", "bob"), texts(table.list()));
      assertTrue(table.remove("bob"));
      assertFalse(table.remove("bob"));
      table.add("stays");
      pass(TTL.minus(SECOND));
      assertFalse(table.add("stays"));
      pass(SECOND.plus(WIDTH));
      assertEquals(List.of("stays"), texts(table.list()));
      assertEquals(
          List.of("alice"),
          texts(read(watcher).stream().map(e -> table.memberOf(e.key()).orElseThrow()).toList()));
      assertTrue(table.memberOf(ByteString.copyFromUtf8("onliner/x")).isEmpty());
    }
  }

  private static List<String> values(Array array) {
    return texts(array.read().items().stream().map(Array.Item::value).toList());
  }

  @Test
  void itemsOfAnArrayCountOnce() {
    Array array = new Array(client, "hosts");
    assertEquals(new Array.Contents(List.of(), 0, 0, 0), array.read());
    array.remove(7);
    assertEquals(0, array.read().version(), "a removal makes no array");
    long a = array.add("a");
    array.add("");
    array.add("a");
    assertEquals(List.of("a", "", "a"), values(array));
    array.remove(a);
    array.remove(a);
    array.add(new Array.Item(a, ByteString.copyFromUtf8("a"))); // An attempt that arrives late.
    assertEquals(List.of("", "a"), values(array));
    Array.Item item = new Array.Item(Array.newId(), ByteString.copyFromUtf8("once"));
    unanswered = "Append";
    fails(Code.DEADLINE_EXCEEDED, null, () -> new Array(broken, "hosts").add(item));
    array.add(item);
    assertEquals(List.of("", "a", "once"), values(array));
    Instant deadline = client.get("hosts").orElseThrow().deadline();
    pass(SECOND);
    int compactBytes = array.read().compactBytes();
    array.compact();
    assertEquals(compactBytes, array.read().storedBytes());
    assertEquals(deadline, client.get("hosts").orElseThrow().deadline());
    assertEquals(List.of("", "a", "once"), values(array));
  }

  @Test
  void aFullArrayIsCompactedOnceAndAnotherValueIsNone() {
    connection.updateNamespace("test", NamespaceOptions.newBuilder().setMaxValueBytes(256).build());
    Array array = new Array(client, "a");
    for (int i = 0; i < 40; ++i) {
      array.remove(array.add("item " + i));
    }
    assertEquals(List.of(), array.read().items());
    Runnable fill =
        () -> {
          while (true) {
            array.add("item");
          }
        };
    fails(Code.FAILED_PRECONDITION, ErrorReason.VALUE_TOO_LARGE, fill);
    assertTrue(array.read().items().size() > 10);
    client.put("a", "some text");
    fails(Code.DATA_LOSS, null, array::read);
    fails(Code.DATA_LOSS, null, array::compact);
    fails(Code.DATA_LOSS, null, () -> Array.fold(ByteString.copyFromUtf8("+1234")));
  }

  @Test
  void noChangeOfAnArrayIsLost() {
    Array array = new Array(client, "a");
    for (String value : List.of("b", "a")) {
      ByteString bytes = ByteString.copyFromUtf8(value);
      array.update(items -> items.add(0, new Array.Item(Array.newId(), bytes)));
    }
    assertEquals(List.of("a", "b"), values(array));
    fails(Code.ABORTED, null, () -> array.update(items -> array.add("c")));
    int before = values(array).size();
    var adding =
        CompletableFuture.allOf(
            IntStream.range(0, 4)
                .mapToObj(
                    i ->
                        CompletableFuture.runAsync(
                            () -> {
                              for (int j = 0; j < 20; ++j) {
                                long id = array.add(i + "-" + j);
                                if (j % 2 == 0) {
                                  array.remove(id);
                                }
                              }
                            }))
                .toArray(CompletableFuture[]::new));
    while (!adding.isDone()) {
      try {
        array.compact();
      } catch (TimecacheException e) {
        assertEquals(Code.ABORTED, e.code());
      }
    }
    adding.join();
    assertEquals(before + 4 * 10, values(array).size());
  }

  @Test
  void aRowOfAJoinIsCompleteOrFailsWithWhatCame() {
    Join join = new Join(client, "people", "gender", "age").withTtl(TTL);
    try (Watcher watcher = watch(join.keyPrefix())) {
      assertTrue(join.add("7", "age", "42").isEmpty());
      assertTrue(join.add("7", "age", "42").isEmpty(), "the same again is fine");
      fails(Code.ALREADY_EXISTS, ErrorReason.PART_EXISTS, () -> join.add("7", "age", "43"));
      Join.Row row = join.add("7", "gender", "female").orElseThrow();
      assertEquals("7", row.id().toStringUtf8());
      assertEquals(List.of("female", "42"), texts(row.tuples()));
      Batch batch = new Batch();
      ByteString id = ByteString.copyFromUtf8("8");
      batch.add(join.operation(id, ByteString.copyFromUtf8("age"), id));
      var last = batch.add(join.operation(id, ByteString.copyFromUtf8("gender"), id));
      client.execute(batch);
      assertEquals(List.of("8", "8"), texts(last.join().orElseThrow().tuples()));
      join.add("9", "age", "1");
      pass(TTL.plus(WIDTH));
      assertTrue(join.add("9", "gender", "male").isEmpty(), "too late: it begins anew");
      assertEquals(
          List.of(
              Optional.of(
                  new Join.Incomplete(
                      ByteString.copyFromUtf8("9"),
                      List.of(Optional.empty(), Optional.of(ByteString.copyFromUtf8("1")))))),
          read(watcher).stream().map(join::incomplete).toList());
    }
    assertNotEquals(Join.id("a", "bc"), Join.id("ab", "c"));
  }

  @Test
  void aTreeIsDoneOnceOrFailsOnce() {
    Acker acker = new Acker(client, "acks").withTtl(TTL);
    try (Watcher watcher = watch(acker.keyPrefix())) {
      long a = Acker.newId();
      long b = Acker.newId();
      long c = Acker.newId();
      assertEquals(0, a & 1);
      assertFalse(acker.track("m", a));
      assertFalse(acker.ack("m", a, b, c));
      CompletableFuture<Boolean> done;
      try (Pipeline pipeline = client.pipeline()) {
        pipeline.add(acker.ackOperation(ByteString.copyFromUtf8("m"), b));
        done = pipeline.add(acker.ackOperation(ByteString.copyFromUtf8("m"), c));
      }
      assertTrue(done.join());
      assertFalse(acker.ack("early", a));
      assertTrue(acker.track("early", a));
      acker.track("given up", a);
      assertTrue(acker.fail("given up"));
      assertFalse(acker.fail("given up"));
      acker.track("lost", a);
      acker.ack("never tracked", a);
      pass(TTL.plus(WIDTH));
      assertEquals(List.of("lost"), failed(acker, watcher));
      assertFalse(acker.ack("lost", a), "too late");
      pass(TTL.plus(WIDTH));
      assertEquals(List.of(), failed(acker, watcher));
    }
  }

  private static List<String> failed(Acker acker, Watcher watcher) {
    return texts(read(watcher).stream().map(acker::failedRoot).flatMap(Optional::stream).toList());
  }

  private static List<String> data(List<EventLog.Event> events) {
    return texts(events.stream().map(EventLog.Event::data).toList());
  }

  /** The next chunk's begin, where the clock is then. */
  private static Instant beginOfChunk() {
    VirtualClock clock = connection.virtualClock();
    return clock.advanceTo(Instant.ofEpochSecond(clock.now().getEpochSecond() / 2 * 2 + 2));
  }

  @Test
  void aReaderOfALogGoesOnBehindWhatItHasSeen() {
    EventLog log = new EventLog(client, "log", CHUNK, 5);
    Instant begin = beginOfChunk();
    log.append(begin.plusSeconds(1), "1");
    log.append(begin, "0");
    EventLog.Page page = log.readNew(log.positionAt(begin), begin);
    assertEquals(List.of("1", "0"), data(page.events()));
    page = log.readNew(page.position().orElseThrow(), begin);
    assertEquals(List.of(), page.events());
    pass(CHUNK);
    Instant now = begin.plus(CHUNK);
    log.append(now, "2");
    EventLog.Event late =
        new EventLog.Event(
            begin.plusMillis(1500), ByteString.copyFromUtf8("late"), EventLog.newId());
    unanswered = "Append";
    EventLog cut = new EventLog(broken, "log", CHUNK, 5);
    fails(Code.DEADLINE_EXCEEDED, null, () -> cut.append(late));
    log.append(late);
    page = log.readNew(page.position().orElseThrow(), now);
    assertEquals(List.of("late", "2"), data(page.events()));
    assertFalse(page.mayHaveMissed());
    assertEquals(List.of("0", "1", "late"), data(log.read(begin, now).events()));
    Instant afterBegin = begin.plus(1, ChronoUnit.MICROS);
    assertEquals(
        List.of("1", "late", "2"),
        data(log.read(afterBegin, now.plus(1, ChronoUnit.MICROS)).events()));
    assertEquals(List.of(), log.read(begin, begin).events());
    try (Watcher watcher = watch(log.keyPrefix())) {
      pass(CHUNK.multipliedBy(6));
      page = log.readNew(page.position().orElseThrow(), now.plus(CHUNK.multipliedBy(6)));
      assertTrue(page.mayHaveMissed());
      ByteString died = read(watcher).get(0).value();
      assertEquals(List.of("1", "0", "late"), data(EventLog.decode(died)));
      fails(Code.DATA_LOSS, null, () -> EventLog.decode(died.substring(0, 30)));
    }
  }

  @Test
  void chunksThatDoNotFitIntoOneResponseAreReadToTheEnd() {
    EventLog log = new EventLog(client, "log", CHUNK, 5);
    Instant begin = beginOfChunk();
    String large = "x".repeat(450_000);
    for (int i = 0; i < 10; ++i) {
      log.append(begin.plusSeconds(i), i + large);
    }
    List<EventLog.Event> events = log.read(begin, begin.plusSeconds(10)).events();
    assertEquals(
        IntStream.range(0, 10).mapToObj(String::valueOf).toList(),
        data(events).stream().map(text -> text.substring(0, 1)).toList());
    fails(
        Code.FAILED_PRECONDITION,
        ErrorReason.VALUE_TOO_LARGE,
        () -> log.append(begin, large + large));
  }
}
