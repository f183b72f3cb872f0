package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.GroupStatistics;
import io.grpc.Status.Code;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is open as the server's tokens are replaced, and with them that of the client. */
@NeedsServer
@Timeout(180)
final class TokenTest {
  private static final String ADMIN = "admin";
  private static final Duration HOUR = Duration.ofHours(1);

  private final BlockingQueue<TimecacheException> told = new LinkedBlockingQueue<>();
  private final BlockingQueue<String> begun = new LinkedBlockingQueue<>();
  private final Semaphore goOn = new Semaphore(0); // Of handlers.
  private TestServer server;
  private Path token;
  private TimecacheClient admin;
  private TimecacheClient client; // With the token of the file.

  @BeforeEach
  void start() throws Exception {
    server = new TestServer("--config", "{dir}/server.yaml", "--virtual-clock");
    token = server.directory.resolve("token");
    replace(token, "one");
    accept("one", ADMIN);
    replace(
        server.directory.resolve("server.yaml"),
        """
        listeners: [{address: "127.0.0.1:0"}]
        access: {file: %s/access.yaml}
        log: {format: json}
        """
            .formatted(server.directory));
    server.start();
    admin = server.builder().token(ADMIN).build();
    client = server.builder().tokenFile(token).build();
  }

  @AfterEach
  void stop() {
    goOn.release(100);
    client.close();
    admin.close();
    server.close();
  }

  /** In one step. */
  private static void replace(Path file, String text) throws IOException {
    Path part = Files.writeString(file.resolveSibling(file.getFileName() + ".part"), text);
    Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
  }

  /** Whose holders may do everything. The server looks every second, and ends others' streams. */
  private void accept(String... tokens) throws Exception {
    List<String> digests = new ArrayList<>();
    for (String one : tokens) {
      byte[] bytes = one.getBytes(StandardCharsets.UTF_8);
      digests.add(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes)));
    }
    replace(
        server.directory.resolve("access.yaml"),
        """
        principals: [{name: member, token_sha256: %s}]
        rules: [{principals: [member], namespaces: ["*"], verbs: [read, write, watch, settle, admin]}]
        """
            .formatted(digests));
  }

  private static void assertRefused(TimecacheException error) {
    assertEquals(Code.UNAUTHENTICATED, error.code());
    assertTrue(error.is(ErrorReason.UNKNOWN_TOKEN), error.getMessage());
  }

  private static WatchBatch read(Watcher watcher, Predicate<WatchBatch> condition) {
    WatchBatch batch = watcher.next();
    while (!condition.test(batch)) {
      batch = watcher.next();
    }
    return batch;
  }

  /** The only event that comes. */
  private static ExpiredEvent readEvent(Watcher watcher) {
    List<ExpiredEvent> events = read(watcher, batch -> !batch.events().isEmpty()).events();
    assertEquals(1, events.size());
    return events.get(0);
  }

  private void awaitGroup(Predicate<GroupStatistics> condition) throws Exception {
    for (int i = 0; i < 10_000; ++i) {
      try {
        if (condition.test(admin.getGroup("g", true).getStatistics())) {
          return;
        }
      } catch (TimecacheException e) {
        assertTrue(e.is(ErrorReason.GROUP_NOT_FOUND), e.getMessage());
      }
      Thread.sleep(5);
    }
    throw new AssertionError("the group does not get there");
  }

  private static void awaitCounters(GroupWorker worker, Predicate<GroupWorkerCounters> condition)
      throws Exception {
    for (int i = 0; !condition.test(worker.counters()); ++i) {
      assertTrue(i < 10_000, () -> "does not get there: " + worker.counters());
      Thread.sleep(5);
    }
  }

  /** One whose handlers wait for goOn. */
  private GroupWorker worker(GroupWorkerOptions options) throws Exception {
    GroupWorker worker =
        client.worker(
            options,
            EventHandler.acking(
                event -> {
                  begun.add(event.keyUtf8());
                  goOn.acquire();
                }));
    awaitGroup(group -> group.getMembers() == 1);
    return worker;
  }

  private void letDie(String... keys) {
    for (String key : keys) {
      admin.put(key, "v");
    }
    admin.virtualClock().advance(Duration.ofMinutes(1));
  }

  @Test
  void whatIsOpenGoesOnWithAnotherToken() throws Exception {
    List<List<TimecacheException>> breaks = new ArrayList<>();
    List<Watcher> watchers = new ArrayList<>();
    for (WatchOptions options :
        List.of(
            new WatchOptions(),
            new WatchOptions().group("g"),
            new WatchOptions().leadTime(HOUR))) {
      List<TimecacheException> own = new ArrayList<>();
      breaks.add(own);
      // The other token is tried at once: nothing here waits for the pause.
      watchers.add(client.watch(options.pauses(HOUR, HOUR).onBreak(own::add)));
    }
    watchers.forEach(Watcher::next);
    for (String next : List.of("two", "three")) {
      replace(token, next);
      accept(next, ADMIN);
      for (Watcher watcher : watchers) {
        assertEquals(List.of(), read(watcher, WatchBatch::reconnected).events());
      }
      admin.put(next, "v", new PutOptions().ttl(Duration.ofMinutes(10)));
      admin.virtualClock().advance(Duration.ofSeconds(1));
      assertEquals(next, readEvent(watchers.get(2)).keyUtf8());
      admin.virtualClock().advance(Duration.ofMinutes(20));
      assertEquals(next, readEvent(watchers.get(0)).keyUtf8());
      ExpiredEvent given = readEvent(watchers.get(1));
      assertEquals(next, given.keyUtf8());
      // Else it would be given out again.
      client.settle("g", List.of(Settlement.of(given, Settle.ack())));
    }
    for (List<TimecacheException> own : breaks) {
      assertEquals(2, own.size());
      own.forEach(TokenTest::assertRefused);
    }
    watchers.forEach(Watcher::close);
  }

  @Test
  void whatAWorkerHasNotBegunGoesToAnotherMember() throws Exception {
    CountDownLatch othersHaveIt = new CountDownLatch(1);
    GroupWorkerOptions options =
        new GroupWorkerOptions("g")
            .threads(1)
            .maxInFlight(10)
            .pauses(HOUR, HOUR)
            .onError(
                why -> {
                  told.add((TimecacheException) why);
                  try {
                    othersHaveIt.await(); // Before it comes back.
                  } catch (InterruptedException e) {
                    throw new AssertionError(e);
                  }
                });
    GroupWorker worker = worker(options);
    letDie("one", "other");
    FakeServer.take(begun);
    awaitGroup(group -> group.getInFlight() == 2);
    Watcher other = admin.watch(new WatchOptions().group("g"));
    other.next();
    replace(token, "two");
    accept("two", ADMIN);
    assertRefused(FakeServer.take(told));
    Map<String, Settlement> given = new HashMap<>();
    while (given.size() < 2) {
      other
          .next()
          .events()
          .forEach(event -> given.put(event.keyUtf8(), Settlement.of(event, Settle.ack())));
    }
    othersHaveIt.countDown();
    awaitGroup(group -> group.getMembers() == 2);
    goOn.release();
    awaitCounters(worker, counters -> counters.handled() == 1);
    admin.settle("g", List.copyOf(given.values()));
    other.close();
    awaitGroup(group -> group.getMembers() == 1);
    letDie("later");
    assertEquals("later", FakeServer.take(begun));
    goOn.release();
    awaitGroup(group -> group.getBacklog() + group.getInFlight() == 0);
    worker.close();
    assertEquals(2, worker.counters().handled());
    // The other member may have settled what this one handled, too.
    told.forEach(why -> assertTrue(why.is(ErrorReason.EVENT_NOT_UNSETTLED), why::toString));
  }

  @Test
  void aWorkerThatStopsDoesNotComeBackButSettles() throws Exception {
    GroupWorker worker =
        worker(new GroupWorkerOptions("g").onError(why -> told.add((TimecacheException) why)));
    letDie("k");
    FakeServer.take(begun);
    worker.requestStop();
    replace(token, "two");
    accept("two", ADMIN);
    assertRefused(FakeServer.take(told));
    awaitGroup(group -> group.getMembers() == 0);
    goOn.release();
    worker.join();
    assertEquals(1, worker.counters().acked());
    GroupStatistics group = admin.getGroup("g", true).getStatistics();
    assertEquals(0, group.getMembers() + group.getBacklog() + group.getInFlight());
  }

  @Test
  void whatIsOpenWaitsForAFileThatCannotBeRead() throws Exception {
    Duration quick = Duration.ofMillis(1);
    GroupWorker worker =
        worker(
            new GroupWorkerOptions("g")
                .pauses(quick, quick)
                .onError(why -> told.add((TimecacheException) why)));
    letDie("k");
    FakeServer.take(begun);
    List<TimecacheException> breaks = new ArrayList<>();
    WatchOptions options =
        new WatchOptions()
            .pauses(quick, quick)
            .onBreak(
                why -> {
                  breaks.add(why);
                  if (breaks.size() == 2) {
                    replaceQuietly("two");
                  }
                });
    try (Watcher watcher = client.watch(options)) {
      watcher.next();
      Files.delete(token);
      accept("two", ADMIN);
      int ofStream = 0;
      int ofSettlement = 0;
      while (ofStream < 2 || ofSettlement < 2) {
        TimecacheException why = FakeServer.take(told);
        if (why.code() == Code.UNAVAILABLE) {
          assertTrue(why.getMessage().startsWith("UNAVAILABLE: token file: "), why.getMessage());
          if (++ofStream == 1) {
            goOn.release(100);
          }
        } else {
          assertRefused(why);
          ++ofSettlement;
        }
      }
      // One that does not stand yet says what the server has said.
      try (Watcher late = client.watch(new WatchOptions())) {
        assertRefused(assertThrows(TimecacheException.class, late::next));
      }
      assertFalse(Files.exists(token));
      assertTrue(watcher.next().reconnected());
      assertEquals(Code.UNAVAILABLE, breaks.get(0).code());
    }
    awaitCounters(worker, counters -> counters.acked() == 1);
    worker.close();
    // It may have come again before it was settled, and have been handled twice.
    assertEquals(0, worker.counters().unsettled());
    awaitGroup(group -> group.getBacklog() + group.getInFlight() == 0);
  }

  private void replaceQuietly(String text) {
    try {
      replace(token, text);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void everOtherTokensEndAWatchAtTheSecond() throws Exception {
    try (FakeServer refusing = new FakeServer()) {
      refusing.token = "another";
      refusing.onRefusal = () -> replaceQuietly("token-" + refusing.headers.size());
      try (TimecacheClient own = refusing.builder().tokenFile(token).build();
          Watcher watcher = own.watch(new WatchOptions().waitForServer())) {
        TimecacheException error = assertThrows(TimecacheException.class, watcher::next);
        assertEquals(Code.UNAUTHENTICATED, error.code());
        assertEquals(2, refusing.headers.size());
      }
    }
  }
}
