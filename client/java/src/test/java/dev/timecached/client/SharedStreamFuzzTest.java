package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Random cancellations, deadlines and breaks, under many callers: each call ends once, with its own
 * answer, and what may not be done twice is not sent twice. Its seed is in the names of threads.
 */
@Timeout(120)
final class SharedStreamFuzzTest {
  private static final int CALLERS = 8;
  private static final int CALLS = 400; // Of each.
  private static final Set<Code> ENDS =
      Set.of(Code.CANCELLED, Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE);

  private final FakeServer server = new FakeServer();
  private final Map<String, AtomicInteger> received = new ConcurrentHashMap<>();
  private final AtomicInteger ended = new AtomicInteger();
  private final AtomicInteger answered = new AtomicInteger();
  private volatile boolean isOver;

  /** Answers with the key; or breaks a stream, or ends it behind an answer, or takes its time. */
  private void serve(Random random) {
    Set<Object> over = new HashSet<>();
    while (!isOver) {
      try {
        FakeServer.PipelineRequest request = server.pipelined.poll(5, TimeUnit.MILLISECONDS);
        if (request == null || over.contains(request.observer())) {
          continue;
        }
        request.keys().forEach(key -> received(key).incrementAndGet());
        int what = random.nextInt(40);
        if (what == 0) {
          over.add(request.observer());
          request.breakOff(Code.UNAVAILABLE);
          continue;
        } else if (what < 4) {
          Thread.sleep(random.nextInt(8)); // Longer than some deadlines.
        }
        request.echo();
        if (what == 4) {
          over.add(request.observer());
          request.observer().onError(SharedStreamTest.draining());
        }
      } catch (IllegalStateException | io.grpc.StatusRuntimeException e) {
        // The stream has ended.
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }
  }

  private AtomicInteger received(String key) {
    return received.computeIfAbsent(key, unused -> new AtomicInteger());
  }

  private void call(TimecacheClient client, Random random, String key) {
    Duration timeout = Duration.ofMillis(random.nextInt(4) == 0 ? 1 + random.nextInt(6) : 60_000);
    TimecacheClient own = client.in("n" + random.nextInt(2)).withTimeout(timeout);
    boolean isPut = key.startsWith("put");
    try {
      ByteString value;
      if (random.nextInt(4) == 0) {
        value = isPut ? own.put(key, "v").previous().get().value() : own.get(key).get().value();
      } else {
        value = await(own, random, key);
      }
      assertEquals(key, value.toStringUtf8());
      answered.incrementAndGet();
    } catch (TimecacheException e) {
      assertTrue(ENDS.contains(e.code()), e.toString());
    }
    ended.incrementAndGet();
  }

  private static ByteString await(TimecacheClient client, Random random, String key) {
    return key.startsWith("put")
        ? await(client.async().put(key, "v"), client, random).previous().get().value()
        : await(client.async().get(key), client, random).get().value();
  }

  private static <R> R await(CompletableFuture<R> call, TimecacheClient client, Random random) {
    CompletableFuture<?> other = client.async().get("other");
    if (random.nextInt(3) == 0) {
      other.cancel(true);
    }
    if (random.nextInt(6) == 0) {
      call.cancel(true);
    }
    return Rpc.await(call);
  }

  @Test
  void eachCallEndsOnceWithItsOwnAnswer() throws Exception {
    long seed = System.nanoTime();
    server.holdsPlainCalls = true;
    RetryPolicy quick = new RetryPolicy(5, Duration.ofMillis(1), Duration.ofMillis(2));
    Thread serving = new Thread(() -> serve(new Random(seed)), "serving, seed " + seed);
    serving.start();
    List<CompletableFuture<Void>> callers = new ArrayList<>();
    try (TimecacheClient client = server.builder().retry(quick).build()) {
      for (int i = 0; i < CALLERS; ++i) {
        int caller = i;
        CompletableFuture<Void> done = new CompletableFuture<>();
        callers.add(done);
        Random random = new Random(seed + i + 1);
        new Thread(
                () -> {
                  try {
                    for (int j = 0; j < CALLS; ++j) {
                      String kind = random.nextBoolean() ? "put" : "get";
                      call(client, random, kind + " " + caller + " " + j);
                    }
                    done.complete(null);
                  } catch (Throwable e) {
                    done.completeExceptionally(new AssertionError("seed " + seed, e));
                  }
                },
                "caller " + i + ", seed " + seed)
            .start();
      }
      for (CompletableFuture<Void> caller : callers) {
        caller.get(100, TimeUnit.SECONDS);
      }
    } finally {
      isOver = true;
      serving.join();
      server.close();
    }
    assertEquals(CALLERS * CALLS, ended.get());
    assertTrue(answered.get() > CALLERS * CALLS / 4, answered + " answers");
    received.forEach(
        (key, times) -> assertTrue(!key.startsWith("put") || times.get() == 1, key));
  }
}
