package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Plain calls of many threads while the server is killed or stopped, and starts again. */
@NeedsServer
@Timeout(180)
final class RestartTest {
  private static final int CALLERS = 8;

  private final AtomicInteger succeeded = new AtomicInteger();
  private volatile boolean isOver;

  /** Puts and gets keys of its own. An error is of a lost connection, and of nothing else. */
  private void call(TimecacheClient client, int caller) {
    for (int i = 0; !isOver; ++i) {
      String key = "key " + caller + " " + i;
      try {
        client.put(key, key);
        Optional<Entry> entry = client.async().get(key).get(60, TimeUnit.SECONDS);
        entry.ifPresent(found -> assertEquals(key, found.valueUtf8()));
        succeeded.incrementAndGet();
      } catch (TimecacheException e) {
        assertTrue(e.isConnectionLost(), e.toString());
      } catch (Exception e) {
        assertTrue(((TimecacheException) e.getCause()).isConnectionLost(), e.toString());
      }
    }
  }

  private void awaitSuccesses() {
    int before = succeeded.get();
    while (succeeded.get() < before + 10 * CALLERS) {
      Rpc.sleep(1_000_000);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void callsGoOnAfterwards(boolean batching) throws Exception {
    try (TestServer server = new TestServer()) {
      server.start();
      try (TimecacheClient client =
          server.builder().batching(batching).timeout(Duration.ofSeconds(60)).build()) {
        List<CompletableFuture<Void>> callers = new ArrayList<>();
        for (int i = 0; i < CALLERS; ++i) {
          int caller = i;
          CompletableFuture<Void> done = new CompletableFuture<>();
          callers.add(done);
          new Thread(
                  () -> {
                    try {
                      call(client, caller);
                      done.complete(null);
                    } catch (Throwable e) {
                      done.completeExceptionally(e);
                    }
                  })
              .start();
        }
        for (int i = 0; i < 4; ++i) {
          awaitSuccesses();
          if (i % 2 == 0) {
            server.kill();
          } else {
            server.stop();
          }
          server.start();
        }
        awaitSuccesses();
        isOver = true;
        for (CompletableFuture<Void> caller : callers) {
          caller.get(60, TimeUnit.SECONDS);
        }
      }
    }
  }
}
