package dev.timecached.client;

import com.google.gson.JsonElement;
import com.google.protobuf.ByteString;
import dev.timecached.client.ConformanceTest.Args;
import dev.timecached.client.recipes.Acker;
import dev.timecached.client.recipes.Array;
import dev.timecached.client.recipes.Calls;
import dev.timecached.client.recipes.EventLog;
import dev.timecached.client.recipes.Join;
import dev.timecached.client.recipes.Lock;
import dev.timecached.client.recipes.LockOptions;
import dev.timecached.client.recipes.Table;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Function;

/** The steps {@code recipe} and {@code do} of the scenarios that are about recipes. */
final class RecipeSteps {
  private static final Map<String, Object> NOTHING = Map.of();

  /** A method of an object that a scenario has made. */
  private interface Methods {
    Object call(String method, Args args);
  }

  private final TimecacheClient client;
  private final Function<JsonElement, ByteString> bytes;
  private final Function<String, List<ExpiredEvent>> eventsOf;
  private final Map<String, Methods> made = new HashMap<>();

  /**
   * @param eventsOf what a watch has told up to now
   */
  RecipeSteps(
      TimecacheClient client,
      Function<JsonElement, ByteString> bytes,
      Function<String, List<ExpiredEvent>> eventsOf) {
    this.client = client;
    this.bytes = bytes;
    this.eventsOf = eventsOf;
  }

  void make(String kind, String name, Args args) {
    made.put(
        name,
        switch (kind) {
          case "lock" -> lock(args);
          case "table" -> table(args);
          case "array" -> array(args);
          case "join" -> join(args);
          case "acker" -> acker(args);
          case "event_log" -> eventLog(args);
          default -> throw new AssertionError("no such recipe: " + kind);
        });
  }

  Object call(String what, Args args) {
    String[] parts = what.split("\\.");
    if (parts.length == 2) {
      return made.get(parts[0]).call(parts[1], args);
    }
    return switch (what) {
      case "join_id" ->
          Map.of("id", Join.id(args.list("fields").stream().map(bytes).toArray(ByteString[]::new)));
      case "may_call" -> {
        long limit = args.get("limit").getAsLong();
        Duration window = duration(args, "window").orElseThrow();
        yield Map.of("allowed", Calls.mayCall(client, bytes(args, "caller"), limit, window));
      }
      case "answer_once" -> answerOnce(args);
      default -> throw new AssertionError("no such function: " + what);
    };
  }

  private Object answerOnce(Args args) {
    Duration workTime = duration(args, "work_time").orElseThrow();
    Duration remembered = duration(args, "remembered").orElseThrow();
    ByteString made = bytes(args, "answer");
    boolean[] worked = {false};
    ByteString answer =
        Calls.answerOnce(
            client,
            bytes(args, "request"),
            workTime,
            remembered,
            () -> {
              worked[0] = true;
              return made;
            });
    return Map.of("answer", answer, "worked", worked[0]);
  }

  private Methods lock(Args made) {
    LockOptions options = new LockOptions().owner(made.string("owner", ""));
    Optional<Duration> ttl = duration(made, "ttl");
    Lock lock = new Lock(client, bytes(made, "key"), ttl.map(options::ttl).orElse(options));
    return (method, args) ->
        switch (method) {
          case "try_acquire" -> {
            OptionalLong token = lock.tryAcquire();
            Map<String, Object> answer = new HashMap<>();
            answer.put("token", token.isPresent() ? token.getAsLong() : null);
            yield answer;
          }
          case "renew" -> Map.of("held", lock.renew());
          case "release" -> Map.of("held", lock.release());
          default -> throw noMethod(method);
        };
  }

  private Methods table(Args made) {
    Table plain = new Table(client, made.string("name"));
    Table table = duration(made, "ttl").map(plain::withTtl).orElse(plain);
    return (method, args) ->
        switch (method) {
          case "add" -> Map.of("new", table.add(bytes(args, "member")));
          case "remove" -> Map.of("removed", table.remove(bytes(args, "member")));
          case "contains" -> Map.of("contains", table.contains(bytes(args, "member")));
          case "list" -> Map.of("members", table.list());
          case "left" -> Map.of("members", ofEvents(args, event -> table.memberOf(event.key())));
          default -> throw noMethod(method);
        };
  }

  private Methods array(Args made) {
    Array plain = new Array(client, bytes(made, "key"));
    Array living = duration(made, "ttl").map(plain::withTtl).orElse(plain);
    boolean renews = !made.has("renew") || made.flag("renew");
    Array array = renews ? living : living.withoutRenewal();
    return (method, args) -> {
      switch (method) {
        case "add" -> array.add(new Array.Item(id(args.get("id")), bytes(args, "value")));
        case "remove" -> array.remove(id(args.get("id")));
        case "compact" -> array.compact();
        case "read" -> {
          Array.Contents contents = array.read();
          return Map.of(
              "items",
              contents.items().stream()
                  .map(item -> Map.of("id", text(item.id()), "value", item.value()))
                  .toList(),
              "version",
              contents.version(),
              "stored_bytes",
              contents.storedBytes(),
              "compact_bytes",
              contents.compactBytes());
        }
        default -> throw noMethod(method);
      }
      return NOTHING;
    };
  }

  private Methods join(Args made) {
    List<ByteString> sources = made.list("sources").stream().map(bytes).toList();
    Join plain = new Join(client, made.string("name"), sources);
    Join join = duration(made, "ttl").map(plain::withTtl).orElse(plain);
    return (method, args) -> {
      if (method.equals("incomplete")) {
        return Map.of("rows", ofEvents(args, join::incomplete));
      } else if (!method.equals("add")) {
        throw noMethod(method);
      }
      Map<String, Object> answer = new HashMap<>();
      ByteString id = bytes(args, "id");
      answer.put("row", join.add(id, bytes(args, "source"), bytes(args, "tuple")).orElse(null));
      return answer;
    };
  }

  private Methods acker(Args made) {
    Acker plain = new Acker(client, made.string("name"));
    Acker acker = duration(made, "ttl").map(plain::withTtl).orElse(plain);
    return (method, args) -> {
      if (method.equals("failed")) {
        return Map.of("roots", ofEvents(args, acker::failedRoot));
      }
      ByteString root = bytes(args, "root");
      long[] emitted = args.list("emitted").stream().mapToLong(RecipeSteps::id).toArray();
      return switch (method) {
        case "track" -> Map.of("done", acker.track(root, emitted));
        case "ack" -> Map.of("done", acker.ack(root, id(args.get("tuple")), emitted));
        case "fail" -> Map.of("existed", acker.fail(root));
        default -> throw noMethod(method);
      };
    };
  }

  private Methods eventLog(Args made) {
    Duration chunk = duration(made, "chunk").orElseThrow();
    EventLog log = new EventLog(client, made.string("name"), chunk, made.get("chunks").getAsInt());
    EventLog.Position[] position = {log.positionAt(Instant.EPOCH)};
    return (method, args) ->
        switch (method) {
          case "append" -> {
            Instant time = time(args, "time_us");
            log.append(new EventLog.Event(time, bytes(args, "data"), id(args.get("id"))));
            yield NOTHING;
          }
          case "read" -> page(log.read(time(args, "from_us"), time(args, "to_us")));
          case "position_at" -> position[0] = log.positionAt(time(args, "time_us"));
          case "read_new" -> {
            EventLog.Page page = log.readNew(position[0], time(args, "now_us"));
            position[0] = page.position().orElseThrow();
            yield page(page);
          }
          default -> throw noMethod(method);
        };
  }

  private static Map<String, Object> page(EventLog.Page page) {
    Map<String, Object> answer = new HashMap<>();
    answer.put(
        "events",
        page.events().stream()
            .map(
                event ->
                    Map.of(
                        "id",
                        text(event.id()),
                        "time_us",
                        ChronoUnit.MICROS.between(Instant.EPOCH, event.time()),
                        "data",
                        event.data()))
            .toList());
    answer.put("may_have_missed", page.mayHaveMissed());
    answer.put("position", page.position().orElse(null));
    return answer;
  }

  private <T> List<T> ofEvents(Args args, Function<ExpiredEvent, Optional<T>> read) {
    return eventsOf.apply(args.string("events")).stream()
        .map(read)
        .flatMap(Optional::stream)
        .toList();
  }

  private ByteString bytes(Args args, String name) {
    return bytes.apply(args.get(name));
  }

  private static Optional<Duration> duration(Args args, String name) {
    return args.has(name)
        ? Optional.of(ConformanceTest.duration(args.string(name)))
        : Optional.empty();
  }

  private static Instant time(Args args, String name) {
    return Instant.EPOCH.plus(args.get(name).getAsLong(), ChronoUnit.MICROS);
  }

  /** Unsigned. */
  private static long id(JsonElement id) {
    return new BigInteger(id.getAsString()).longValue();
  }

  private static String text(long id) {
    return Long.toUnsignedString(id);
  }

  private static AssertionError noMethod(String method) {
    return new AssertionError("no such method: " + method);
  }
}
