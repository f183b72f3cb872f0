import com.sun.management.OperatingSystemMXBean;
import dev.timecached.client.AsyncTimecache;
import dev.timecached.client.Batch;
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
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import java.util.function.IntConsumer;
import java.util.regex.Pattern;

/**
 * Measures this client beside Lettuce, for bench/clients/run.py, which says what the rows are.
 * Arguments: ADDRESS REDIS_PORT SECONDS [ROWS]; of ROWS, a regular expression, others are left out.
 */
public final class Benchmark {
  private static final int KEYS = 100_000;
  private static final int DEPTH = 100;
  private static final int WARM_UP_CALLS = 15_000; // Of a thread.
  private static final int TTL_SECONDS = 600;
  private static final String VALUE = "v".repeat(64);
  private static final PutOptions PUT = new PutOptions().ttl(Duration.ofSeconds(TTL_SECONDS));
  private static final String[] NAMES = new String[KEYS];

  /** Operations a second, and microseconds of CPU of this process for one. */
  private record Figures(double rate, double cpu) {}

  private interface Measurement {
    Figures run(double seconds) throws InterruptedException;
  }

  private static double seconds;
  private static Pattern rows;

  public static void main(String[] args) throws Exception {
    seconds = Double.parseDouble(args[2]);
    rows = Pattern.compile(args.length > 3 ? args[3] : ".*");
    for (int i = 0; i < KEYS; ++i) {
      NAMES[i] = String.format("key-%012d", i);
    }
    RedisClient lettuce = RedisClient.create("redis://127.0.0.1:" + args[1]);
    Duration timeout = Duration.ofMinutes(1);
    try (TimecacheClient client = TimecacheClient.builder(args[0]).timeout(timeout).build();
        StatefulRedisConnection<String, String> connection = lettuce.connect();
        Pipeline pipeline = client.pipeline(PipelineOptions.DEFAULT)) {
      warmUp(client, connection);
      measure(client, pipeline, connection);
    } finally {
      lettuce.shutdown();
    }
  }

  /** For the JIT compiler, which would be at work through all of the first rows. */
  private static void warmUp(
      TimecacheClient client, StatefulRedisConnection<String, String> connection)
      throws InterruptedException {
    RedisCommands<String, String> redis = connection.sync();
    SetArgs expire = SetArgs.Builder.ex(TTL_SECONDS);
    for (int threads : new int[] {16, 1}) {
      for (IntConsumer call :
          List.<IntConsumer>of(
              i -> client.put(NAMES[i], VALUE, PUT),
              i -> client.get(NAMES[i]),
              i -> redis.set(NAMES[i], VALUE, expire),
              i -> redis.get(NAMES[i]))) {
        for (double left = WARM_UP_CALLS * threads; left > 0; ) {
          left -= threads(threads, 1, call).run(seconds / 4).rate * seconds / 4;
        }
      }
    }
    System.out.println("warm-up");
  }

  private static void measure(
      TimecacheClient client, Pipeline pipeline, StatefulRedisConnection<String, String> connection)
      throws InterruptedException {
    RedisCommands<String, String> redis = connection.sync();
    RedisAsyncCommands<String, String> redisAsync = connection.async();
    AsyncTimecache async = client.async();
    SetArgs expire = SetArgs.Builder.ex(TTL_SECONDS);
    Function<String, CompletionStage<?>> set = key -> redisAsync.set(key, VALUE, expire);
    Function<String, CompletionStage<?>> get = redisAsync::get;
    Function<String, Operation<?>> put = key -> Operation.put(key, VALUE, PUT);
    Function<String, CompletionStage<?>> add = key -> pipeline.add(put.apply(key));
    Function<String, CompletionStage<?>> addGet = key -> pipeline.add(Operation.get(key));
    for (int threads : new int[] {1, 16, 64, 256}) {
      row(
          "put " + threads,
          threads(threads, 1, i -> client.put(NAMES[i], VALUE, PUT)),
          threads(threads, 1, i -> redis.set(NAMES[i], VALUE, expire)));
      row(
          "get " + threads,
          threads(threads, 1, i -> client.get(NAMES[i])),
          threads(threads, 1, i -> redis.get(NAMES[i])));
    }
    TimecacheClient alone = client.withBatching(false);
    row(
        "put 16 unary",
        threads(16, 1, i -> alone.put(NAMES[i], VALUE, PUT)),
        threads(16, 1, i -> redis.set(NAMES[i], VALUE, expire)));
    row(
        "get 16 unary",
        threads(16, 1, i -> alone.get(NAMES[i])),
        threads(16, 1, i -> redis.get(NAMES[i])));
    row("put batch", threads(1, DEPTH, batch(client, put)), threads(1, DEPTH, all(set)));
    row("get batch", threads(1, DEPTH, batch(client, Operation::get)), threads(1, DEPTH, all(get)));
    row("put pipeline", threads(1, DEPTH, all(add)), threads(1, DEPTH, all(set)));
    row("get pipeline", threads(1, DEPTH, all(addGet)), threads(1, DEPTH, all(get)));
    row("put stream", stream(add), stream(set));
    row("get stream", stream(addGet), stream(get));
    row("put futures", stream(key -> async.put(key, VALUE, PUT)), stream(set));
    row("get futures", stream(async::get), stream(get));
  }

  private static void row(String name, Measurement ours, Measurement peers)
      throws InterruptedException {
    if (!rows.matcher(name).matches()) {
      return;
    }
    ours.run(seconds / 4);
    peers.run(seconds / 4);
    Figures one = ours.run(seconds);
    Figures other = peers.run(seconds);
    System.out.printf(
        "%s\t%.3f\t%.3f\t%.3f\t%.3f%n", name, one.rate, one.cpu, other.rate, other.cpu);
  }

  private static IntConsumer batch(TimecacheClient client, Function<String, Operation<?>> make) {
    return i -> {
      Batch batch = new Batch();
      List<CompletableFuture<?>> futures = new ArrayList<>();
      for (int j = 0; j < DEPTH; ++j) {
        futures.add(batch.add(make.apply(NAMES[(i + j) % KEYS])));
      }
      client.execute(batch);
      futures.forEach(CompletableFuture::join);
    };
  }

  /** Begins all, and waits for all. */
  private static IntConsumer all(Function<String, CompletionStage<?>> call) {
    return i -> {
      List<CompletableFuture<?>> futures = new ArrayList<>();
      for (int j = 0; j < DEPTH; ++j) {
        futures.add(call.apply(NAMES[(i + j) % KEYS]).toCompletableFuture());
      }
      futures.forEach(CompletableFuture::join);
    };
  }

  private static long cpuNanos() {
    return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }

  private static Figures figures(long count, long begin, long cpu) {
    double used = (cpuNanos() - cpu) / 1e3;
    return new Figures(count / ((System.nanoTime() - begin) / 1e9), used / count);
  }

  /** Each thread does one call after the other, of so many operations each. */
  private static Measurement threads(int threads, int each, IntConsumer call) {
    return limit -> {
      LongAdder done = new LongAdder();
      Thread[] running = new Thread[threads];
      long begin = System.nanoTime();
      long cpu = cpuNanos();
      long end = begin + (long) (limit * 1e9);
      for (int t = 0; t < threads; ++t) {
        int first = t * (KEYS / threads);
        running[t] =
            new Thread(
                () -> {
                  for (int i = first; System.nanoTime() < end; i = (i + each) % KEYS) {
                    call.accept(i);
                    done.add(each);
                  }
                });
        running[t].start();
      }
      for (Thread thread : running) {
        thread.join();
      }
      return figures(done.sum(), begin, cpu);
    };
  }

  /** One thread, which begins another as soon as one of so many has ended. */
  private static Measurement stream(Function<String, CompletionStage<?>> call) {
    return limit -> {
      Semaphore free = new Semaphore(DEPTH);
      LongAdder done = new LongAdder();
      long begin = System.nanoTime();
      long cpu = cpuNanos();
      long end = begin + (long) (limit * 1e9);
      for (int i = 0; System.nanoTime() < end; i = (i + 1) % KEYS) {
        free.acquire();
        call.apply(NAMES[i])
            .whenComplete(
                (result, error) -> {
                  if (error == null) {
                    done.increment();
                  }
                  free.release();
                });
      }
      free.acquire(DEPTH);
      return figures(done.sum(), begin, cpu);
    };
  }
}
