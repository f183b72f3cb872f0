import dev.timecached.client.AsyncTimecache;
import dev.timecached.client.Operation;
import dev.timecached.client.Pipeline;
import dev.timecached.client.PipelineOptions;
import dev.timecached.client.PutOptions;
import dev.timecached.client.TimecacheClient;
import io.lettuce.core.RedisClient;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntConsumer;
import java.util.function.IntFunction;

/**
 * Operations a second of this client, and of Lettuce against Redis: puts with a time to live of 10
 * minutes, and gets, of 100,000 keys of 16 B with values of 64 B. Arguments: the address of a
 * timecached, the port of a Redis, seconds for each row.
 */
public final class Benchmark {
  private static final int KEYS = 100_000;
  private static final int DEPTH = 100;
  private static final String VALUE = "v".repeat(64);
  private static final PutOptions PUT = new PutOptions().ttl(Duration.ofMinutes(10));

  private static double seconds;

  public static void main(String[] args) throws Exception {
    seconds = Double.parseDouble(args[2]);
    String[] keys = new String[KEYS];
    for (int i = 0; i < KEYS; ++i) {
      keys[i] = String.format("key-%012d", i);
    }
    RedisClient lettuce = RedisClient.create("redis://127.0.0.1:" + args[1]);
    Duration timeout = Duration.ofMinutes(1);
    try (TimecacheClient client = TimecacheClient.builder(args[0]).timeout(timeout).build();
        StatefulRedisConnection<String, String> connection = lettuce.connect()) {
      AsyncTimecache async = client.async();
      RedisCommands<String, String> redis = connection.sync();
      RedisAsyncCommands<String, String> redisAsync = connection.async();
      SetArgs expire = SetArgs.Builder.ex(600);
      warmUp(client, redis);
      System.out.printf("%-28s %12s %12s%n", "operations/s", "timecached", "Lettuce");
      for (int threads : new int[] {1, 16}) {
        row(
            "put, " + threads + " threads",
            blocking(threads, i -> client.put(keys[i], VALUE, PUT)),
            blocking(threads, i -> redis.set(keys[i], VALUE, expire)));
        row(
            "get, " + threads + " threads",
            blocking(threads, i -> client.get(keys[i])),
            blocking(threads, i -> redis.get(keys[i])));
      }
      row(
          "put, " + DEPTH + " futures",
          inFlight(DEPTH, i -> async.put(keys[i], VALUE, PUT)),
          inFlight(DEPTH, i -> redisAsync.set(keys[i], VALUE, expire)));
      row(
          "get, " + DEPTH + " futures",
          inFlight(DEPTH, i -> async.get(keys[i])),
          inFlight(DEPTH, i -> redisAsync.get(keys[i])));
      PipelineOptions bounds = new PipelineOptions(DEPTH, 1 << 20, 16, DEPTH, 8 << 20);
      for (PipelineOptions bound : List.of(bounds, PipelineOptions.DEFAULT)) {
        int depth = bound.operationsInFlightMax();
        row(
            "put, pipeline, " + depth,
            pipelined(client, bound, i -> Operation.put(keys[i], VALUE, PUT)),
            inFlight(depth, i -> redisAsync.set(keys[i], VALUE, expire)));
        row(
            "get, pipeline, " + depth,
            pipelined(client, bound, i -> Operation.get(keys[i])),
            inFlight(depth, i -> redisAsync.get(keys[i])));
      }
    } finally {
      lettuce.shutdown();
    }
  }

  private static void row(String name, double timecached, double redis) {
    System.out.printf("%-28s %12.0f %12.0f%n", name, timecached, redis);
  }

  /** So that all rows have compiled code. */
  private static void warmUp(TimecacheClient client, RedisCommands<String, String> redis)
      throws InterruptedException {
    double chosen = seconds;
    seconds = Math.min(seconds, 1);
    blocking(4, i -> client.put("key", VALUE, PUT));
    blocking(4, i -> client.get("key"));
    blocking(4, i -> redis.set("key", VALUE));
    pipelined(client, PipelineOptions.DEFAULT, i -> Operation.get("key"));
    seconds = chosen;
  }

  private static long now() {
    return System.nanoTime();
  }

  private static long end() {
    return now() + (long) (seconds * 1e9);
  }

  /** Each thread does one after the other. */
  private static double blocking(int threads, IntConsumer call) throws InterruptedException {
    LongAdder done = new LongAdder();
    Thread[] running = new Thread[threads];
    long begin = now();
    long end = end();
    for (int t = 0; t < threads; ++t) {
      int first = t * (KEYS / threads);
      running[t] =
          new Thread(
              () -> {
                for (int i = first; now() < end; i = (i + 1) % KEYS) {
                  call.accept(i);
                  done.increment();
                }
              });
      running[t].start();
    }
    for (Thread thread : running) {
      thread.join();
    }
    return done.sum() / ((now() - begin) / 1e9);
  }

  /** One thread, which begins another as soon as one of so many has ended. */
  private static double inFlight(int depth, IntFunction<CompletionStage<?>> call)
      throws InterruptedException {
    Semaphore free = new Semaphore(depth);
    LongAdder done = new LongAdder();
    long begin = now();
    long end = end();
    for (int i = 0; now() < end; i = (i + 1) % KEYS) {
      free.acquire();
      call.apply(i)
          .whenComplete(
              (result, error) -> {
                if (error == null) {
                  done.increment();
                }
                free.release();
              });
    }
    free.acquire(depth);
    return done.sum() / ((now() - begin) / 1e9);
  }

  private static double pipelined(
      TimecacheClient client, PipelineOptions options, IntFunction<Operation<?>> operation) {
    LongAdder done = new LongAdder();
    long begin = now();
    long end = end();
    try (Pipeline pipeline = client.pipeline(options)) {
      for (int i = 0; now() < end; i = (i + 1) % KEYS) {
        pipeline
            .add(operation.apply(i))
            .whenComplete(
                (result, error) -> {
                  if (error == null) {
                    done.increment();
                  }
                });
      }
    }
    return done.sum() / ((now() - begin) / 1e9);
  }
}
