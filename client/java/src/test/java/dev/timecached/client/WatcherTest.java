package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import dev.timecached.v1.Durability;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.NamespaceOptions;
import io.grpc.Status.Code;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@NeedsServer
@Timeout(180)
final class WatcherTest {
  private TestServer server;
  private TimecacheClient client;
  private VirtualClock clock;

  @BeforeEach
  void start() {
    server = TestServer.onVirtualClock("--journal", "{dir}/journal");
    client = server.client();
    clock = client.virtualClock();
  }

  @AfterEach
  void stop() {
    client.close();
    server.close();
  }

  private void makeNamespace(String name, Durability durability) {
    client.createNamespace(
        name,
        NamespaceOptions.newBuilder()
            .setTtl(Times.toProto(Duration.ofSeconds(10)))
            .setDurability(durability)
            .build());
  }

  /** The batches up to the clock's time. */
  private static List<WatchBatch> read(Watcher watcher, Instant until) {
    List<WatchBatch> batches = new ArrayList<>();
    do {
      batches.add(watcher.next());
    } while (batches.get(batches.size() - 1).watermark().isBefore(until));
    return batches;
  }

  private static List<String> keys(List<WatchBatch> batches) {
    return batches.stream()
        .flatMap(batch -> batch.events().stream())
        .map(ExpiredEvent::keyUtf8)
        .toList();
  }

  @Test
  void waitsNoLongerThanItIsTold() {
    try (Watcher watcher = client.watch(new WatchOptions())) {
      watcher.next();
      client.put("k", "v");
      clock.advance(Duration.ofSeconds(31));
      // As time stands still there are no heartbeats.
      while (watcher.next(Duration.ofMillis(20)).isPresent()) {}
      assertEquals(Optional.empty(), watcher.next(Duration.ofMillis(1)));
    }
  }

  @Test
  void whatHasEndedStaysSo() {
    try (Watcher watcher = client.in("absent").watch(new WatchOptions())) {
      for (int i = 0; i < 2; ++i) {
        TimecacheException error = assertThrows(TimecacheException.class, watcher::next);
        assertTrue(error.is(ErrorReason.NAMESPACE_NOT_FOUND));
      }
    }
    WatchOptions expiring = new WatchOptions().leadTime(Duration.ofSeconds(5)).fromEarliest();
    assertThrows(IllegalArgumentException.class, () -> client.watch(expiring));
  }

  @Test
  void iteratesUntilClosed() throws Exception {
    Watcher watcher = client.watch(new WatchOptions());
    CompletableFuture<Integer> batches = new CompletableFuture<>();
    CompletableFuture<Void> stands = new CompletableFuture<>();
    Thread reader =
        new Thread(
            () -> {
              int count = 0;
              for (WatchBatch batch : watcher) {
                ++count;
                stands.complete(null);
              }
              batches.complete(count);
            });
    reader.start();
    stands.get();
    watcher.close();
    assertEquals(1, batches.get());
    assertEquals(Code.CANCELLED, assertThrows(TimecacheException.class, watcher::next).code());
    Iterator<WatchBatch> closed = watcher.iterator();
    assertFalse(closed.hasNext());
  }

  @Test
  void callsAListener() throws Exception {
    BlockingQueue<WatchBatch> batches = new LinkedBlockingQueue<>();
    makeNamespace("orders", Durability.DURABILITY_MEMORY);
    Watch watch = client.in("orders").watch(new WatchOptions(), batches::add);
    batches.take();
    client.in("orders").put("k", "v");
    clock.advance(Duration.ofSeconds(11));
    WatchBatch batch = batches.take();
    while (batch.events().isEmpty()) {
      batch = batches.take();
    }
    assertEquals("k", batch.events().get(0).keyUtf8());
    client.deleteNamespace("orders");
    ExecutionException error = assertThrows(ExecutionException.class, () -> watch.ended().get());
    assertEquals(Code.NOT_FOUND, ((TimecacheException) error.getCause()).code());
    watch.close();
    Watch closed = client.watch(new WatchOptions(), batches::add);
    closed.close();
    closed.ended().get();
  }

  @Test
  void thereIsNoServer() {
    server.kill();
    try (TimecacheClient lost = server.client();
        Watcher watcher = lost.watch(new WatchOptions())) {
      assertEquals(Code.UNAVAILABLE, assertThrows(TimecacheException.class, watcher::next).code());
    }
    List<TimecacheException> breaks = new ArrayList<>();
    try (TimecacheClient lost = server.client();
        Watcher watcher =
            lost.watch(
                new WatchOptions()
                    .waitForServer()
                    .onBreak(
                        why -> {
                          breaks.add(why);
                          if (breaks.size() == 2) {
                            server.start();
                          }
                        }))) {
      assertEquals("default", watcher.next().namespace());
      assertTrue(breaks.size() >= 2);
    }
  }

  @Test
  void aKilledServerCostsADurableNamespaceNothing() {
    nothingIsMissedOver(server::kill);
  }

  @Test
  void aServerThatStopsCostsADurableNamespaceNothing() {
    nothingIsMissedOver(server::stop);
  }

  private void nothingIsMissedOver(Runnable end) {
    makeNamespace("durable", Durability.DURABILITY_SYNC);
    TimecacheClient durable = client.in("durable");
    try (Watcher watcher = durable.watch(new WatchOptions())) {
      ByteString token = watcher.next().resumeToken();
      List<String> told = new ArrayList<>();
      List<WatchBatch> all = new ArrayList<>();
      for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < 50; ++i) {
          durable.repeatable().put("k" + round + "/" + i, "v");
        }
        if (round % 2 == 0) {
          Instant now = clock.advance(Duration.ofSeconds(11));
          List<WatchBatch> read = read(watcher, now);
          told.addAll(keys(read));
          all.addAll(read);
          durable.put("late" + round, "v");
        }
        // The events of the second and fourth round were not read; the entries lived.
        end.run();
        server.start();
        TestServer.awaitServer(client);
      }
      List<WatchBatch> read = read(watcher, clock.advance(Duration.ofSeconds(11)));
      told.addAll(keys(read));
      all.addAll(read);
      assertEquals(202, told.size());
      assertEquals(202, told.stream().distinct().count());
      assertTrue(all.stream().anyMatch(WatchBatch::reconnected));
      assertTrue(all.stream().noneMatch(batch -> batch.logChanged() || batch.lost() > 0));
      try (Watcher again = durable.watch(new WatchOptions().resume("durable", token))) {
        assertEquals(told, keys(read(again, clock.now())));
      }
    }
  }

  @Test
  void aRestartedServerHasAnotherLog() {
    makeNamespace("fleeting", Durability.DURABILITY_MEMORY);
    try (Watcher watcher = client.in("fleeting").watch(new WatchOptions())) {
      Instant watermark = watcher.next().watermark();
      server.stop();
      server.start();
      // The watch would end where the namespace is not there.
      TestServer.awaitServer(client);
      makeNamespace("fleeting", Durability.DURABILITY_MEMORY);
      WatchBatch batch = watcher.next();
      while (!batch.logChanged()) {
        watermark = batch.watermark();
        batch = watcher.next();
      }
      assertEquals(Optional.of(watermark), batch.missedAfter());
    }
  }
}
