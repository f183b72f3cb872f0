package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.timecached.v1.Durability;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.GroupOptions;
import dev.timecached.v1.GroupStatistics;
import dev.timecached.v1.NamespaceOptions;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@NeedsServer
@Timeout(180)
final class GroupWorkerTest {
  private final BlockingQueue<ExpiredEvent> handled = new LinkedBlockingQueue<>();
  private TestServer server;
  private TimecacheClient client;
  private VirtualClock clock;

  @BeforeEach
  void start() {
    server = TestServer.onVirtualClock("--journal", "{dir}/journal");
    try (TimecacheClient admin = server.client()) {
      admin.createNamespace(
          "orders",
          NamespaceOptions.newBuilder()
              .setTtl(Times.toProto(Duration.ofSeconds(10)))
              .setDurability(Durability.DURABILITY_SYNC)
              .build());
    }
    client = server.builder().namespace("orders").build();
    clock = client.virtualClock();
  }

  @AfterEach
  void stop() {
    client.close();
    server.close();
  }

  private GroupStatistics awaitGroup(Predicate<GroupStatistics> condition) throws Exception {
    GroupStatistics statistics = null;
    for (int i = 0; i < 10_000; ++i) {
      try {
        statistics = client.getGroup("g", true).getStatistics();
        if (condition.test(statistics)) {
          return statistics;
        }
      } catch (TimecacheException e) {
        assertTrue(e.is(ErrorReason.GROUP_NOT_FOUND) || e.isConnectionLost(), e.getMessage());
      }
      Thread.sleep(5);
    }
    throw new AssertionError("the group does not get there: " + statistics);
  }

  @Test
  void settlesAsTheHandlerSays() throws Exception {
    List<Throwable> errors = new ArrayList<>();
    EventHandler handler =
        event -> {
          handled.add(event);
          return switch (event.keyUtf8()) {
            case "nacked" ->
                event.attempt() == 1 ? Settle.nack(Duration.ofSeconds(5)) : Settle.ack();
            case "thrown" -> {
              if (event.attempt() == 1) {
                throw new IllegalStateException("broken");
              }
              yield Settle.ack();
            }
            case "back" -> Settle.putBack(Duration.ofHours(1));
            default -> Settle.ack();
          };
        };
    try (GroupWorker worker =
        client.worker(new GroupWorkerOptions("g").onError(errors::add), handler)) {
      awaitGroup(group -> group.getMembers() == 1);
      for (String key : List.of("acked", "nacked", "thrown", "back")) {
        client.put(key, "v");
      }
      clock.advance(Duration.ofSeconds(11));
      awaitGroup(
          group -> group.getAcked() == 1 && group.getNacked() == 2 && group.getPutBack() == 1);
      assertEquals(4, handled.size());
      clock.advance(Duration.ofSeconds(1));
      awaitGroup(group -> group.getAcked() == 2);
      clock.advance(Duration.ofSeconds(4));
      awaitGroup(group -> group.getAcked() == 3);
      assertEquals(6, handled.size());
      assertTrue(client.contains("back"));
      assertEquals("broken", errors.get(0).getMessage());
      worker.close();
      assertEquals(new GroupWorkerCounters(6, 1, 3, 2, 1, 0, 0, 0, 0), worker.counters());
    }
  }

  @Test
  void aHandlerThatTakesLongerThanTheAckTimeoutKeepsItsEvent() throws Exception {
    client.createGroup(
        "g",
        GroupOptions.newBuilder()
            .setAckTimeout(Times.toProto(Duration.ofMillis(100)))
            .setMaxAttempts(2)
            .build(),
        false);
    CountDownLatch release = new CountDownLatch(1);
    EventHandler handler =
        EventHandler.acking(
            event -> {
              handled.add(event);
              release.await();
            });
    try (GroupWorker worker = client.worker(new GroupWorkerOptions("g").threads(1), handler)) {
      awaitGroup(group -> group.getMembers() == 1);
      client.put("k", "v");
      clock.advance(Duration.ofSeconds(11));
      FakeServer.take(handled);
      for (int i = 0; i < 5; ++i) {
        clock.advance(Duration.ofMillis(90));
        long before = awaitGroup(group -> true).getExtended();
        awaitGroup(group -> group.getExtended() > before);
      }
      release.countDown();
      GroupStatistics statistics = awaitGroup(group -> group.getAcked() == 1);
      assertEquals(0, statistics.getTimedOut() + statistics.getRedelivered());
      assertTrue(handled.isEmpty());
    } finally {
      release.countDown();
    }
  }

  private static ExpiredEvent firstOf(Watcher member) {
    for (; ; ) {
      WatchBatch batch = member.next();
      if (!batch.events().isEmpty()) {
        return batch.events().get(0);
      }
    }
  }

  @Test
  void theEndOfAMemberIsNoAttemptAndALetterSaysWhyItIsOne() throws Exception {
    client.createNamespace("dead", NamespaceOptions.getDefaultInstance());
    client.updateNamespace(
        "orders", NamespaceOptions.newBuilder().setDeadLetterNamespace("dead").build());
    client.createGroup("g", GroupOptions.newBuilder().setMaxAttempts(1).build(), false);
    client.put("k", "v", new PutOptions().ttl(Duration.ofSeconds(5)));
    clock.advance(Duration.ofSeconds(11));
    WatchOptions member = new WatchOptions().group("g");
    Settlement stale;
    try (Watcher first = client.watch(member)) {
      ExpiredEvent event = firstOf(first);
      stale = Settlement.of(event, Settle.nack());
      assertEquals(List.of(1, 0), List.of(event.attempt(), event.returns()));
      assertEquals(Optional.of(Duration.ofSeconds(5)), event.ownTtl());
      assertEquals(event.putTime(), event.createTime());
    }
    try (Watcher second = client.watch(member)) {
      ExpiredEvent event = firstOf(second);
      assertEquals(List.of(1, 1), List.of(event.attempt(), event.returns()));
      List<Settlement> settlements =
          List.of(
              stale,
              Settlement.of(event, Settle.extend()),
              Settlement.of(event, Settle.nack()));
      List<SettleResult> results = client.settle("g", settlements);
      assertTrue(results.get(0).error().orElseThrow().is(ErrorReason.STALE_ATTEMPT));
      assertTrue(results.get(1).error().isEmpty());
      assertTrue(results.get(2).error().isEmpty());
    }
    awaitGroup(group -> group.getDeadLettered() == 1);
    List<Entry> letters;
    do {
      letters = client.in("dead").scan().toList();
    } while (letters.isEmpty());
    DeadLetter letter = DeadLetter.decode(letters.get(0));
    assertEquals("k", letter.event().keyUtf8());
    assertEquals("orders", letter.event().namespace());
    assertEquals(
        List.of("g", 1, Optional.of(DeadLetter.Reason.NACKED), clock.now()),
        List.of(letter.group(), letter.attempts(), letter.reason(), letter.time()));
  }

  @Test
  void leavesTheDelayToItsGroupAndGivesUpWithAReason() throws Exception {
    client.createNamespace("dead", NamespaceOptions.getDefaultInstance());
    client.updateNamespace(
        "orders", NamespaceOptions.newBuilder().setDeadLetterNamespace("dead").build());
    GroupOptions options =
        GroupOptions.newBuilder()
            .setRetryDelay(com.google.protobuf.Duration.newBuilder().setSeconds(20))
            .setRetryMultiplier(1)
            .build();
    client.createGroup("g", options, false);
    EventHandler handler =
        event -> {
          handled.add(event);
          return switch (event.attempt()) {
            case 1 -> Settle.nack("no card");
            case 2 -> throw new IllegalStateException("broken");
            default -> Settle.terminate("stolen card");
          };
        };
    try (GroupWorker worker =
        client.worker(new GroupWorkerOptions("g").groupRetryDelay().onError(e -> {}), handler)) {
      awaitGroup(group -> group.getMembers() == 1);
      client.put("k", "v");
      clock.advance(Duration.ofSeconds(11));
      for (int attempt = 1; attempt < 3; ++attempt) {
        int nacked = attempt;
        awaitGroup(group -> group.getNacked() == nacked);
        clock.advance(Duration.ofSeconds(19));
        assertEquals(attempt, handled.size());
        clock.advance(Duration.ofSeconds(1));
      }
      awaitGroup(group -> group.getDeadLettered() == 1);
      assertEquals(
          List.of("", "no card", ""), handled.stream().map(ExpiredEvent::lastReason).toList());
      worker.close();
      assertEquals(new GroupWorkerCounters(3, 1, 0, 2, 0, 1, 0, 0, 0), worker.counters());
    }
    DeadLetter letter = DeadLetter.decode(client.in("dead").scan().findFirst().orElseThrow());
    assertEquals(
        List.of(3, Optional.of(DeadLetter.Reason.TERMINATED), "stolen card"),
        List.of(letter.attempts(), letter.reason(), letter.reasonText()));
  }

  @Test
  void stopsGracefully() throws Exception {
    CountDownLatch begun = new CountDownLatch(2);
    CountDownLatch release = new CountDownLatch(1);
    GroupWorker worker =
        client.worker(
            new GroupWorkerOptions("g").threads(2),
            EventHandler.acking(
                event -> {
                  begun.countDown();
                  release.await();
                }));
    awaitGroup(group -> group.getMembers() == 1);
    for (int i = 0; i < 10; ++i) {
      client.put("k" + i, "v");
    }
    clock.advance(Duration.ofSeconds(11));
    begun.await();
    worker.requestStop();
    release.countDown();
    worker.join();
    assertEquals(2, worker.counters().acked());
    awaitGroup(group -> group.getMembers() == 0 && group.getBacklog() == 8);
    // The others are for whoever comes.
    GroupWorker next =
        client.worker(new GroupWorkerOptions("g"), EventHandler.acking(handled::add));
    awaitGroup(group -> group.getAcked() == 10);
    next.close();
    assertEquals(8, handled.size());
  }

  @Test
  void endsWithItsGroup() throws Exception {
    GroupWorker worker = client.worker(new GroupWorkerOptions("g"), event -> Settle.ack());
    awaitGroup(group -> group.getMembers() == 1);
    client.deleteGroup("g");
    assertTrue(
        assertThrows(TimecacheException.class, worker::join).is(ErrorReason.GROUP_NOT_FOUND));
    GroupWorker lost =
        client.in("absent").worker(new GroupWorkerOptions("g"), event -> Settle.ack());
    assertEquals(Code.NOT_FOUND, assertThrows(TimecacheException.class, lost::join).code());
  }

  @Test
  void aKilledServerCostsNoEvent() throws Exception {
    Set<String> keys = ConcurrentHashMap.newKeySet();
    Set<String> expected = new HashSet<>();
    EventHandler handler =
        EventHandler.acking(
            event -> {
              Thread.sleep(5); // So that the server is killed in the midst of it.
              keys.add(event.keyUtf8());
            });
    GroupWorkerOptions options =
        new GroupWorkerOptions("g").pauses(Duration.ofMillis(10), Duration.ofMillis(100));
    try (GroupWorker worker = client.worker(options, handler)) {
      awaitGroup(group -> group.getMembers() == 1);
      for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 100; ++i) {
          client.put("k" + round + "/" + i, "v");
          expected.add("k" + round + "/" + i);
        }
        clock.advance(Duration.ofSeconds(11));
        server.kill();
        server.start();
        TestServer.awaitServer(client);
      }
      awaitGroup(group -> group.getMembers() == 1 && group.getBacklog() + group.getInFlight() == 0);
      assertEquals(expected, keys);
      assertEquals(0, worker.counters().unsettled());
    }
  }
}
