package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import com.google.protobuf.Timestamp;
import dev.timecached.v1.GetDeathsRequest;
import dev.timecached.v1.GroupOptions;
import dev.timecached.v1.GroupPosition;
import dev.timecached.v1.NamespaceOptions;
import java.lang.reflect.RecordComponent;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/**
 * Runs the scenarios that all clients have in common, as their README says; with OWNER_ROUTING also
 * by a client that calls the owners of keys.
 */
@NeedsServer
@EnabledIfEnvironmentVariable(named = "CONFORMANCE", matches = ".+")
final class ConformanceTest {
  private static TestServer server;
  private static final List<TimecacheClient> clients = new ArrayList<>();
  private static TimecacheClient connection;

  @BeforeAll
  static void start() {
    server = TestServer.onVirtualClock();
    clients.add(server.client());
    if (System.getenv("OWNER_ROUTING") != null) {
      clients.add(server.builder().ownerRouting(true).build());
    }
  }

  @AfterAll
  static void stop() {
    clients.forEach(TimecacheClient::close);
    server.close();
  }

  @TestFactory
  @Timeout(600)
  Stream<DynamicTest> scenarios() throws Exception {
    List<DynamicTest> tests = new ArrayList<>();
    Path directory = Path.of(System.getenv("CONFORMANCE"));
    for (Path below : List.of(directory, directory.resolve("recipes"))) {
      try (Stream<Path> files = Files.list(below)) {
        for (Path file : files.filter(path -> path.toString().endsWith(".json")).sorted().toList()) {
          JsonObject content = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
          for (JsonElement scenario : content.getAsJsonArray("scenarios")) {
            for (int i = 0; i < 2 * clients.size(); ++i) {
              TimecacheClient client = clients.get(i / 2).withBatching(i % 2 == 0);
              Args args = new Args(scenario.getAsJsonObject());
              tests.add(
                  DynamicTest.dynamicTest(
                      file.getFileName()
                          + (" " + args.string("name"))
                          + (i % 2 == 0 ? "" : ", without batching")
                          + (i < 2 ? "" : ", at owners"),
                      () -> {
                        connection = client;
                        new Scenario().run(args);
                      }));
            }
          }
        }
      }
    }
    assertTrue(tests.size() > 0, "no scenarios");
    return tests.stream();
  }

  /** An object whose keys are all to be understood. */
  static final class Args {
    private final JsonObject object;
    private final Set<String> left;

    Args(JsonObject object) {
      this.object = object;
      left = new LinkedHashSet<>(object.keySet());
    }

    boolean has(String name) {
      return object.has(name);
    }

    JsonElement get(String name) {
      left.remove(name);
      return object.get(name);
    }

    String string(String name) {
      return get(name).getAsString();
    }

    String string(String name, String otherwise) {
      return has(name) ? string(name) : otherwise;
    }

    boolean flag(String name) {
      return has(name) && get(name).getAsBoolean();
    }

    Args args(String name) {
      return new Args(has(name) ? get(name).getAsJsonObject() : new JsonObject());
    }

    List<JsonElement> list(String name) {
      return has(name) ? get(name).getAsJsonArray().asList() : List.of();
    }

    void done() {
      if (!left.isEmpty()) {
        throw new AssertionError("not understood: " + left);
      }
    }
  }

  static Duration duration(String text) {
    if (!text.endsWith("s")) {
      throw new AssertionError("no duration: " + text);
    }
    BigDecimal seconds = new BigDecimal(text.substring(0, text.length() - 1));
    return Duration.ofNanos(seconds.movePointRight(9).longValueExact());
  }

  private static String snake(String camel) {
    return camel.replaceAll("([A-Z])", "_$1").toLowerCase();
  }

  /** As the proto's fields: maps, lists and values. */
  private static Object plain(Object value) {
    if (value instanceof Optional<?> optional) {
      return plain(optional.orElse(null));
    } else if (value instanceof List<?> list) {
      return list.stream().map(ConformanceTest::plain).toList();
    } else if (value instanceof Map<?, ?> map) {
      Map<Object, Object> plain = new HashMap<>();
      map.forEach((key, inner) -> plain.put(key, plain(inner)));
      return plain;
    } else if (value instanceof Timestamp time) {
      return Times.fromProto(time);
    } else if (value instanceof com.google.protobuf.Duration duration) {
      return Times.fromProto(duration);
    } else if (value instanceof EnumValueDescriptor constant) {
      String prefix = snake(constant.getType().getName()).substring(1).toUpperCase() + "_";
      return constant.getName().substring(prefix.length());
    } else if (value instanceof Enum<?> constant) {
      return constant.name();
    } else if (value instanceof Message message) {
      Map<String, Object> map = new LinkedHashMap<>();
      for (FieldDescriptor field : message.getDescriptorForType().getFields()) {
        boolean isUnset = field.hasPresence() && !message.hasField(field);
        map.put(field.getName(), isUnset ? null : plain(message.getField(field)));
      }
      return map;
    } else if (value instanceof Record record) {
      Map<String, Object> map = new LinkedHashMap<>();
      try {
        for (RecordComponent component : record.getClass().getRecordComponents()) {
          map.put(snake(component.getName()), plain(component.getAccessor().invoke(record)));
        }
      } catch (ReflectiveOperationException e) {
        throw new AssertionError(e);
      }
      return map;
    }
    return value;
  }

  private static Map<String, Object> map(String key, Object value) {
    Map<String, Object> map = new HashMap<>();
    map.put(key, plain(value));
    return map;
  }

  private interface Call {
    Object run() throws Exception;
  }

  /** A watch or a member, and what it has brought since it was last asked. */
  private static final class Reader {
    final ResumingWatch<?> watcher;
    final List<String> namespaces;
    final Map<String, List<ExpiredEvent>> events = new HashMap<>();
    final Map<String, List<ChangeEvent>> changes = new HashMap<>();
    final Map<String, Instant> watermarks = new HashMap<>();
    final Map<String, Object> tokens = new HashMap<>();
    final Set<List<Object>> told = new LinkedHashSet<>();
    final boolean isExpiring;
    final boolean isMember;
    Instant delivered = Instant.MIN;
    long lost;

    Reader(TimecacheClient client, WatchOptions options, List<String> namespaces, String kind) {
      WatchOptions all = options.namespaces(namespaces.toArray(String[]::new));
      watcher = kind.equals("watch_changes") ? client.watchChanges(all) : client.watch(all);
      this.namespaces = namespaces;
      isExpiring = kind.equals("watch_expiring");
      isMember = kind.equals("member");
      while (watermarks.size() < namespaces.size()) {
        read(watcher.next());
      }
    }

    void read(Object next) {
      if (next instanceof ChangeBatch batch) {
        watermarks.put(batch.namespace(), batch.watermark());
        tokens.put(batch.namespace(), batch.resumeToken());
        lost += batch.lost();
        changes
            .computeIfAbsent(batch.namespace(), ns -> new ArrayList<>())
            .addAll(batch.changes());
        return;
      }
      WatchBatch batch = (WatchBatch) next;
      watermarks.put(batch.namespace(), batch.watermark());
      tokens.put(batch.namespace(), batch.resumeToken());
      delivered = batch.delivered().orElse(Instant.MIN);
      lost += batch.lost();
      for (ExpiredEvent event : batch.events()) {
        if (!isExpiring
            || told.add(
                List.of(event.namespace(), event.key(), event.version(), event.deadline()))) {
          events.computeIfAbsent(event.namespace(), ns -> new ArrayList<>()).add(event);
        }
      }
    }

    List<ExpiredEvent> takeEvents() {
      List<ExpiredEvent> all = new ArrayList<>();
      namespaces.forEach(name -> all.addAll(events.getOrDefault(name, List.of())));
      events.clear();
      return all;
    }

    /** What was read, and forgotten by this. */
    Map<String, Object> take() {
      Map<String, Object> answer = new HashMap<>();
      List<Object> all = new ArrayList<>(takeEvents());
      namespaces.forEach(name -> all.addAll(changes.getOrDefault(name, List.of())));
      changes.clear();
      answer.put("events", plain(all));
      answer.put("lost", lost);
      lost = 0;
      answer.put("resume_token", tokens.get(namespaces.get(0)));
      answer.put("resume_tokens", Map.copyOf(tokens));
      return answer;
    }
  }

  private record Worker(GroupWorker worker, BlockingQueue<ExpiredEvent> handled) {}

  private static final List<String> WATCHES =
      List.of("watch", "watch_expiring", "watch_changes", "member");

  private static final class Scenario {
    private final Map<String, Object> variables = new HashMap<>();
    private final Map<String, Reader> readers = new HashMap<>();
    private final Map<String, Worker> workers = new HashMap<>();
    private final RecipeSteps recipes =
        new RecipeSteps(connection.in("main"), this::bytes, this::readAll);
    private Instant start;

    void run(Args scenario) {
      scenario.string("name");
      scenario.string("about", "");
      VirtualClock clock = connection.virtualClock();
      start =
          clock.advanceTo(Instant.ofEpochSecond((clock.now().getEpochSecond() / 3600 + 1) * 3600));
      JsonObject namespaces = new JsonObject();
      if (scenario.has("namespaces")) {
        namespaces = scenario.get("namespaces").getAsJsonObject();
      } else {
        namespaces.add("main", new JsonObject());
      }
      for (String name : namespaces.keySet()) {
        deleteNamespace(name);
        connection.createNamespace(name, namespaceOptions(namespaces.get(name)));
      }
      List<JsonElement> steps = scenario.list("steps");
      scenario.done();
      try {
        for (int i = 0; i < steps.size(); ++i) {
          try {
            step(new Args(steps.get(i).getAsJsonObject()));
          } catch (Throwable e) {
            throw new AssertionError("step " + i + ": " + e.getMessage(), e);
          }
        }
      } finally {
        readers.values().forEach(reader -> reader.watcher.close());
        workers.values().forEach(worker -> worker.worker().close());
        namespaces.keySet().forEach(this::deleteNamespace);
      }
    }

    private void deleteNamespace(String name) {
      try {
        connection.deleteNamespace(name);
      } catch (TimecacheException e) {
        if (e.code() != io.grpc.Status.Code.NOT_FOUND) {
          throw e;
        }
      }
    }

    private void step(Args step) throws Exception {
      if (step.has("call")) {
        call(step);
      } else if (step.has("recipe")) {
        Args args = step.args("args");
        recipes.make(step.string("recipe"), step.string("as"), args);
        args.done();
      } else if (step.has("do")) {
        doRecipe(step);
      } else if (step.has("advance")) {
        connection.virtualClock().advance(duration(step.string("advance")));
      } else if (WATCHES.stream().anyMatch(step::has)) {
        open(step);
      } else if (step.has("worker")) {
        startWorker(step);
      } else if (step.has("events")) {
        events(step);
      } else if (step.has("handled")) {
        handled(step);
      } else {
        String name = step.string("close");
        if (readers.containsKey(name)) {
          readers.remove(name).watcher.close();
        } else {
          workers.get(name).worker().close();
        }
      }
      step.done();
    }

    private void doRecipe(Args step) throws Exception {
      Args args = step.args("args");
      String what = step.string("do");
      Call call = () -> plain(recipes.call(what, args));
      if (step.has("error")) {
        fails(call, step.get("error"));
      } else {
        Object answer = call.run();
        if (step.has("expect")) {
          match(step.get("expect"), answer, "answer");
        }
        save(step, answer);
      }
      args.done();
    }

    /** What a watch has told up to now. */
    private List<ExpiredEvent> readAll(String name) {
      Reader reader = readers.get(name);
      Instant now = connection.virtualClock().now();
      while (reader.watermarks.values().stream().anyMatch(time -> time.isBefore(now))) {
        reader.read(reader.watcher.next());
      }
      return reader.takeEvents();
    }

    // Arguments.

    private Object resolved(JsonElement value) {
      String name = value.getAsJsonObject().get("var").getAsString();
      if (!variables.containsKey(name)) {
        throw new AssertionError("not saved: " + name);
      }
      return variables.get(name);
    }

    private static boolean is(JsonElement value, String key) {
      return value.isJsonObject()
          && value.getAsJsonObject().size() > 0
          && value.getAsJsonObject().has(key);
    }

    private ByteString bytes(JsonElement value) {
      if (is(value, "var")) {
        return (ByteString) resolved(value);
      } else if (is(value, "hex")) {
        String hex = value.getAsJsonObject().get("hex").getAsString();
        return ByteString.copyFrom(HexFormat.of().parseHex(hex));
      } else if (is(value, "repeat")) {
        JsonObject repeat = value.getAsJsonObject();
        return ByteString.copyFromUtf8(
            repeat.get("repeat").getAsString().repeat(repeat.get("times").getAsInt()));
      }
      return ByteString.copyFromUtf8(value.getAsString());
    }

    private ByteString bytes(Args args, String name) {
      return args.has(name) ? bytes(args.get(name)) : ByteString.EMPTY;
    }

    private Instant time(Args args, String name) {
      return start.plus(duration(args.args(name).string("at")));
    }

    private String text(JsonElement value) {
      return is(value, "var") ? (String) resolved(value) : value.getAsString();
    }

    private long number(JsonElement value) {
      return is(value, "var")
          ? ((Number) resolved(value)).longValue()
          : value.getAsBigDecimal().longValueExact();
    }

    private static NamespaceOptions namespaceOptions(JsonElement options) {
      return fill(NamespaceOptions.newBuilder(), options.getAsJsonObject()).build();
    }

    private static GroupOptions groupOptions(Args args) {
      JsonObject options =
          args.has("options") ? args.get("options").getAsJsonObject() : new JsonObject();
      return fill(GroupOptions.newBuilder(), options).build();
    }

    private static <B extends Message.Builder> B fill(B builder, JsonObject object) {
      for (String name : object.keySet()) {
        FieldDescriptor field = builder.getDescriptorForType().findFieldByName(name);
        JsonElement value = object.get(name);
        if (Objects.requireNonNull(field, name).isRepeated()) {
          for (JsonElement one : value.getAsJsonArray()) {
            builder.addRepeatedField(field, Times.toProto(duration(one.getAsString())));
          }
          continue;
        }
        builder.setField(
            field,
            switch (field.getJavaType()) {
              case MESSAGE -> Times.toProto(duration(value.getAsString()));
              case BYTE_STRING ->
                  value.isJsonPrimitive()
                      ? ByteString.copyFromUtf8(value.getAsString())
                      : ByteString.copyFrom(
                          HexFormat.of()
                              .parseHex(value.getAsJsonObject().get("hex").getAsString()));
              case ENUM ->
                  field
                      .getEnumType()
                      .findValueByName(
                          snake(field.getEnumType().getName()).substring(1).toUpperCase()
                              + "_"
                              + value.getAsString());
              case BOOLEAN -> value.getAsBoolean();
              case INT -> value.getAsInt();
              case LONG -> value.getAsLong();
              default -> value.getAsString();
            });
      }
      return builder;
    }

    private Operation<?> operation(String kind, Args args) {
      ByteString key = bytes(args, "key");
      boolean hasTtl = args.has("ttl");
      Duration ttl = hasTtl ? duration(args.string("ttl")) : null;
      boolean touches = !kind.equals("touch") && args.has("touch");
      boolean touch = touches && args.flag("touch");
      String condition = args.string("condition", "");
      boolean hasVersion = args.has("if_version");
      long version = hasVersion ? number(args.get("if_version")) : 0;
      boolean returnPrevious = args.flag("return_previous");
      boolean hasId = args.has("idempotency_id");
      ByteString id = hasId ? bytes(args, "idempotency_id") : ByteString.EMPTY;
      String trace = args.has("traceparent") ? text(args.get("traceparent")) : "";
      switch (kind) {
        case "put" -> {
          PutOptions options = new PutOptions();
          options = hasTtl ? options.ttl(ttl) : options;
          options = condition.equals("IF_ABSENT") ? options.ifAbsent() : options;
          options = condition.equals("IF_PRESENT") ? options.ifPresent() : options;
          options = hasVersion ? options.ifVersion(version) : options;
          options = returnPrevious ? options.returnPrevious() : options;
          options = args.flag("keep_deadline") ? options.keepDeadline() : options;
          options = args.has("expire_at") ? options.expireAt(time(args, "expire_at")) : options;
          options = args.flag("allow_past") ? options.allowPast() : options;
          options = hasId ? options.idempotencyId(id) : options;
          options = trace.isEmpty() ? options : options.traceparent(trace);
          return Operation.put(key, bytes(args, "value"), options);
        }
        case "get" -> {
          if (touch) {
            return Operation.getAndTouch(key);
          }
          return touches ? Operation.getWithoutTouch(key) : Operation.get(key);
        }
        case "remove" -> {
          RemoveOptions options = new RemoveOptions();
          options = hasVersion ? options.ifVersion(version) : options;
          options = returnPrevious ? options.returnPrevious() : options;
          options = hasId ? options.idempotencyId(id) : options;
          return Operation.remove(key, options);
        }
        case "contains" -> {
          ContainsOptions options = new ContainsOptions();
          options = condition.equals("IF_ABSENT") ? options.ifAbsent() : options;
          options = condition.equals("IF_PRESENT") ? options.ifPresent() : options;
          options = hasVersion ? options.ifVersion(version) : options;
          return Operation.contains(key, options);
        }
        case "touch" -> {
          TouchOptions options = new TouchOptions();
          options = hasTtl ? options.ttl(ttl) : options;
          options = hasVersion ? options.ifVersion(version) : options;
          options = args.has("expire_at") ? options.expireAt(time(args, "expire_at")) : options;
          options = args.flag("allow_past") ? options.allowPast() : options;
          options = args.flag("namespace_ttl") ? options.namespaceTtl() : options;
          return Operation.touch(key, options);
        }
        case "append" -> {
          AppendOptions options = new AppendOptions();
          options = hasTtl ? options.ttl(ttl) : options;
          options = condition.equals("IF_ABSENT") ? options.ifAbsent() : options;
          options = condition.equals("IF_PRESENT") ? options.ifPresent() : options;
          options = hasVersion ? options.ifVersion(version) : options;
          options = touch ? options.touch() : options;
          options = hasId ? options.idempotencyId(id) : options;
          options = trace.isEmpty() ? options : options.traceparent(trace);
          return Operation.append(key, bytes(args, "value"), options);
        }
        case "combine" -> {
          CombineOptions options = new CombineOptions();
          options = args.has("initial") ? options.initial(number(args.get("initial"))) : options;
          options = args.flag("remove_if_zero") ? options.removeIfZero() : options;
          options = touch ? options.touch() : options;
          options = hasTtl ? options.ttl(ttl) : options;
          options = hasVersion ? options.ifVersion(version) : options;
          options = hasId ? options.idempotencyId(id) : options;
          options = trace.isEmpty() ? options : options.traceparent(trace);
          return args.has("add")
              ? Operation.add(key, number(args.get("add")), options)
              : Operation.xor(key, number(args.get("xor")), options);
        }
        case "gather" -> {
          GatherOptions options =
              args.has("expected_names")
                  ? GatherOptions.expect(
                      args.list("expected_names").stream().map(this::bytes).toList())
                  : args.has("expected_parts")
                      ? GatherOptions.expect((int) number(args.get("expected_parts")))
                      : GatherOptions.asBefore();
          options = args.flag("keep_first") ? options.keepFirst() : options;
          options =
              args.has("remember")
                  ? options.remember(duration(args.string("remember")))
                  : options;
          options = touch ? options.touch() : options;
          options = hasTtl ? options.ttl(ttl) : options;
          options = hasId ? options.idempotencyId(id) : options;
          options = trace.isEmpty() ? options : options.traceparent(trace);
          return Operation.gather(key, bytes(args, "part"), bytes(args, "value"), options);
        }
        default -> throw new AssertionError("no such operation: " + kind);
      }
    }

    private static Object answer(String kind, Object result) {
      return switch (kind) {
        case "get" -> map("entry", result);
        case "contains" -> map("contains", result);
        case "touch" -> {
          Map<String, Object> touched = map("touched", ((OptionalLong) result).isPresent());
          ((OptionalLong) result).ifPresent(version -> touched.put("version", version));
          yield touched;
        }
        default -> plain(result);
      };
    }

    // Steps.

    private void call(Args step) throws Exception {
      String name = step.string("call");
      JsonElement arguments = step.has("args") ? step.get("args") : new JsonObject();
      Call call =
          () -> {
            Args args = new Args(arguments.getAsJsonObject());
            TimecacheClient client = connection.in(args.string("namespace", "main"));
            Object answer = call(name, args, client);
            args.done();
            return answer;
          };
      if (step.has("error")) {
        fails(call, step.get("error"));
        return;
      }
      JsonElement expect = step.has("expect") ? step.get("expect") : new JsonObject();
      boolean eventually = step.flag("eventually");
      long giveUpAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
      Object answer;
      while (true) {
        answer = call.run();
        try {
          match(expect, answer, name);
          break;
        } catch (AssertionError e) {
          if (!eventually || System.nanoTime() - giveUpAt > 0) {
            throw e;
          }
          Thread.sleep(10);
        }
      }
      save(step, answer);
    }

    private Object call(String name, Args args, TimecacheClient client) {
      switch (name) {
        case "size":
          return plain(client.size());
        case "execute", "pipeline":
          return operations(name, args, client);
        case "scan":
          ScanOptions scan = new ScanOptions().prefix(bytes(args, "key_prefix"));
          try (Stream<Entry> entries =
              client.scan(args.flag("keys_only") ? scan.keysOnly() : scan)) {
            return map("entries", entries.toList());
          }
        case "settle":
          List<Settlement> settlements = new ArrayList<>();
          args.list("settlements")
              .forEach(one -> settlements.add(settlement(new Args(one.getAsJsonObject()))));
          return map("results", client.settle(args.string("group"), settlements));
        case "create_group":
          return plain(
              client.createGroup(args.string("name"), groupOptions(args), position(args, "start")));
        case "seek_group":
          return plain(
              client.seekGroup(
                  args.string("name"),
                  position(args, "position"),
                  args.flag("drop_unsettled")));
        case "list_members":
          return map("members", client.listMembers(args.string("name")));
        case "list_unsettled":
          UnsettledOptions list = new UnsettledOptions().prefix(bytes(args, "key_prefix"));
          list = args.flag("include_values") ? list.includeValues() : list;
          return map("events", client.listUnsettled(args.string("name"), list).toList());
        case "dead_letters":
          ScanOptions letters = new ScanOptions().prefix(bytes(args, "key_prefix"));
          try (Stream<Entry> entries = client.scan(letters)) {
            return map("letters", entries.map(DeadLetter::decode).map(Scenario::letter).toList());
          }
        case "fetch_expired":
          return fetch(args, client);
        case "get_group":
          return plain(client.getGroup(args.string("name"), args.flag("include_statistics")));
        case "list_groups":
          return map("groups", client.listGroups(args.flag("include_statistics")));
        case "update_group":
          return plain(
              client.updateGroup(args.string("name"), groupOptions(args), toDefault(args)));
        case "delete_group":
          client.deleteGroup(args.string("name"));
          return Map.of();
        case "create_namespace":
          return plain(
              client.createNamespace(
                  args.string("name"),
                  namespaceOptions(args.has("options") ? args.get("options") : new JsonObject())));
        case "get_namespace":
          return plain(client.getNamespace(args.string("name"), args.flag("include_statistics")));
        case "list_namespaces":
          return map("namespaces", client.listNamespaces(args.flag("include_statistics")));
        case "update_namespace":
          return plain(
              client.updateNamespace(
                  args.string("name"),
                  namespaceOptions(args.has("options") ? args.get("options") : new JsonObject()),
                  toDefault(args)));
        case "delete_namespace":
          client.deleteNamespace(args.string("name"));
          return Map.of();
        case "rotate_namespace":
          return map("entries", client.rotateNamespace(args.string("name")));
        case "get_deaths":
          GetDeathsRequest.Builder request =
              GetDeathsRequest.newBuilder().setName(args.string("name"));
          if (args.has("max_bars")) {
            request.setMaxBars((int) number(args.get("max_bars")));
          }
          if (args.has("within")) {
            request.setWithin(Times.toProto(duration(args.string("within"))));
          }
          return plain(client.getDeaths(request.build()));
        case "get_hot_keys":
          int maxKeys = args.has("max_keys") ? (int) number(args.get("max_keys")) : 0;
          return plain(client.getHotKeys(args.string("name"), maxKeys));
        case "who_am_i":
          return plain(client.whoAmI());
        case "list_slow_calls":
          return plain(client.listSlowCalls());
        case "list_connections":
          return map("connections", client.listConnections());
        case "close_connection":
          client.closeConnection(number(args.get("id")));
          return Map.of();
        case "get_server":
          return plain(client.getServer());
        case "get_cluster":
          return plain(client.getCluster());
        case "hand_over":
          return map("to", client.handOver(args.has("to") ? args.string("to") : ""));
        default:
          return answer(name, client.call(operation(name, args)));
      }
    }

    private GroupPosition position(Args args, String name) {
      if (!args.has(name)) {
        return GroupPosition.getDefaultInstance();
      }
      Args position = args.args(name);
      GroupPosition result;
      if (position.has("time")) {
        result = Positions.after(time(position, "time"));
      } else if (position.has("resume_token")) {
        result = Positions.after(bytes(position, "resume_token"));
      } else {
        boolean isEarliest = position.string("start", "NOW").equals("EARLIEST");
        result = isEarliest ? Positions.earliest() : Positions.now();
      }
      position.done();
      return result;
    }

    private Object fetch(Args args, TimecacheClient client) {
      FetchOptions options = new FetchOptions();
      options = args.string("start", "").equals("EARLIEST") ? options.fromEarliest() : options;
      if (args.has("max_events")) {
        options = options.maxEvents((int) number(args.get("max_events")));
      }
      if (args.has("wait")) {
        options = options.waiting(duration(args.string("wait")));
      }
      options = args.flag("keys_only") ? options.keysOnly() : options;
      WatchBatch batch = client.fetchExpired(args.string("group"), options);
      Map<String, Object> answer = map("events", batch.events());
      answer.put("watermark", batch.watermark());
      answer.put("lost", batch.lost());
      answer.put("delivered_watermark", batch.delivered().orElse(Instant.EPOCH));
      return answer;
    }

    private static Object letter(DeadLetter letter) {
      @SuppressWarnings("unchecked")
      Map<String, Object> event = (Map<String, Object>) plain(letter.event());
      @SuppressWarnings("unchecked")
      Map<String, Object> why = (Map<String, Object>) plain(letter);
      why.remove("event");
      event.put("dead_letter", why);
      return event;
    }

    private static String[] toDefault(Args args) {
      return args.list("to_default").stream().map(JsonElement::getAsString).toArray(String[]::new);
    }

    private Object operations(String name, Args args, TimecacheClient client) {
      List<String> kinds = new ArrayList<>();
      List<Operation<?>> operations = new ArrayList<>();
      for (JsonElement element : args.list("operations")) {
        String kind = element.getAsJsonObject().keySet().iterator().next();
        Args operation = new Args(element.getAsJsonObject()).args(kind);
        kinds.add(kind);
        operations.add(operation(kind, operation));
        operation.done();
      }
      List<CompletableFuture<?>> futures = new ArrayList<>();
      if (name.equals("execute")) {
        Batch batch = args.flag("atomic") ? new Batch().atomic() : new Batch();
        operations.forEach(operation -> futures.add(batch.add(operation)));
        client.execute(batch);
      } else {
        try (Pipeline pipeline = client.pipeline()) {
          operations.forEach(operation -> futures.add(pipeline.add(operation)));
        }
      }
      List<Object> results = new ArrayList<>();
      for (int i = 0; i < futures.size(); ++i) {
        try {
          results.add(map(kinds.get(i), answer(kinds.get(i), futures.get(i).join())));
        } catch (CompletionException e) {
          results.add(map("error", e.getCause()));
        }
      }
      return map("results", results);
    }

    private Settlement settlement(Args args) {
      Settle how;
      if (args.has("ack")) {
        how = settle("ack", args.args("ack"));
      } else if (args.has("nack")) {
        how = settle("nack", args.args("nack"));
      } else if (args.has("terminate")) {
        how = settle("terminate", args.args("terminate"));
      } else if (args.has("extend")) {
        how = settle("extend", args.args("extend"));
      } else {
        how = settle("put_back", args.args("put_back"));
      }
      Settlement settlement = new Settlement(bytes(args, "delivery_token"), how);
      args.done();
      return settlement;
    }

    private Settle settle(String kind, Args args) {
      Settle settle =
          switch (kind) {
            case "ack" -> Settle.ack();
            case "nack" ->
                args.has("delay")
                    ? Settle.nack(duration(args.string("delay")), args.string("reason", ""))
                    : Settle.nack(args.string("reason", ""));
            case "terminate" -> Settle.terminate(args.string("reason", ""));
            case "extend" -> Settle.extend();
            case "put_back" ->
                args.has("expire_at")
                    ? Settle.putBack(time(args, "expire_at"), args.flag("allow_past"))
                    : args.has("ttl") ? Settle.putBack(duration(args.string("ttl"))) : Settle.putBack();
            default -> throw new AssertionError("no such settlement: " + kind);
          };
      args.done();
      return settle;
    }

    private void open(Args step) throws Exception {
      String kind = WATCHES.stream().filter(step::has).findFirst().orElseThrow();
      String name = step.string(kind);
      Args args = step.args("args");
      WatchOptions options = new WatchOptions();
      if (args.string("start", "").equals("EARLIEST")) {
        options = options.fromEarliest();
      }
      if (args.has("resume_tokens")) {
        JsonObject tokens = args.get("resume_tokens").getAsJsonObject();
        for (String namespace : tokens.keySet()) {
          options = options.resume(namespace, bytes(tokens.get(namespace)));
        }
      }
      options = args.flag("fail_on_loss") ? options.failOnLoss() : options;
      options = args.flag("keys_only") ? options.keysOnly() : options;
      options = args.has("key_prefix") ? options.prefix(bytes(args, "key_prefix")) : options;
      options = args.has("group") ? options.group(args.string("group")) : options;
      if (args.has("max_in_flight")) {
        options = options.maxInFlight((int) number(args.get("max_in_flight")));
      }
      if (args.has("lead_time")) {
        options = options.leadTime(duration(args.string("lead_time")));
      }
      if (args.has("heartbeat_interval")) {
        options = options.heartbeat(duration(args.string("heartbeat_interval")));
      }
      List<String> namespaces =
          args.has("namespaces")
              ? args.list("namespaces").stream().map(JsonElement::getAsString).toList()
              : List.of("main");
      args.done();
      WatchOptions chosen = options;
      Call call = () -> new Reader(connection, chosen, namespaces, kind);
      if (step.has("error")) {
        fails(call, step.get("error"));
      } else {
        readers.put(name, (Reader) call.run());
      }
    }

    private void events(Args step) throws Exception {
      Reader reader = readers.get(step.string("events"));
      JsonElement expect = step.has("expect") ? step.get("expect") : new JsonArray();
      Instant delivered = step.has("delivered") ? time(step, "delivered") : Instant.MIN;
      Call read =
          () -> {
            Instant now = connection.virtualClock().now();
            long giveUpAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (reader.isMember
                ? (count(reader) < size(expect) || reader.delivered.isBefore(delivered))
                    && System.nanoTime() - giveUpAt < 0
                : reader.watermarks.values().stream().anyMatch(time -> time.isBefore(now))) {
              reader.watcher.next(Duration.ofSeconds(60)).ifPresent(reader::read);
            }
            if (reader.isMember && reader.delivered.isBefore(delivered)) {
              throw new AssertionError("delivered: only up to " + reader.delivered);
            }
            return reader.take();
          };
      if (step.has("error")) {
        fails(read, step.get("error"));
        return;
      }
      Object answer = read.run();
      match(expect, ((Map<?, ?>) answer).get("events"), "events");
      long lost = step.has("lost") ? number(step.get("lost")) : 0;
      if (!((Map<?, ?>) answer).get("lost").equals(lost)) {
        throw new AssertionError("lost: expected " + lost + ": " + answer);
      }
      save(step, answer);
    }

    private static int count(Reader reader) {
      return reader.events.values().stream().mapToInt(List::size).sum();
    }

    private static int size(JsonElement expect) {
      return is(expect, "unordered")
          ? expect.getAsJsonObject().getAsJsonArray("unordered").size()
          : expect.getAsJsonArray().size();
    }

    private void startWorker(Args step) throws Exception {
      String name = step.string("worker");
      Args args = step.args("args");
      String group = args.string("group");
      TimecacheClient client = connection.in(args.string("namespace", "main"));
      GroupWorkerOptions options = new GroupWorkerOptions(group);
      options = args.string("start", "").equals("EARLIEST") ? options.fromEarliest() : options;
      options = args.flag("keys_only") ? options.keysOnly() : options;
      if (args.has("max_in_flight")) {
        options = options.maxInFlight((int) number(args.get("max_in_flight")));
      }
      if (args.has("concurrency")) {
        options = options.threads((int) number(args.get("concurrency")));
      }
      if (args.has("retry_delay")) {
        options = options.retryDelay(duration(args.string("retry_delay")));
      }
      args.done();
      JsonObject script =
          step.has("handler") ? step.get("handler").getAsJsonObject() : new JsonObject();
      Map<String, Integer> calls = new HashMap<>();
      BlockingQueue<ExpiredEvent> handled = new LinkedBlockingQueue<>();
      GroupWorker worker =
          client.worker(
              options,
              event -> {
                int call;
                synchronized (calls) {
                  call = calls.merge(event.keyUtf8(), 1, Integer::sum) - 1;
                }
                handled.add(event);
                if (!script.has(event.keyUtf8())) {
                  return Settle.ack();
                }
                JsonArray answers = script.getAsJsonArray(event.keyUtf8());
                JsonObject answer =
                    answers.get(Math.min(call, answers.size() - 1)).getAsJsonObject();
                String kind = answer.keySet().iterator().next();
                if (kind.equals("throw")) {
                  throw new IllegalStateException(answer.get(kind).getAsString());
                }
                return settle(kind, new Args(answer.getAsJsonObject(kind)));
              });
      workers.put(name, new Worker(worker, handled));
      while (true) {
        try {
          if (client.getGroup(group, true).getStatistics().getMembers() > 0) {
            return;
          }
        } catch (TimecacheException e) {
          if (e.code() != io.grpc.Status.Code.NOT_FOUND || worker.ended().isDone()) {
            throw e;
          }
        }
        Thread.sleep(5);
      }
    }

    private void handled(Args step) throws Exception {
      Worker worker = workers.get(step.string("handled"));
      JsonElement expect = step.get("expect");
      List<Object> events = new ArrayList<>();
      while (events.size() < size(expect)) {
        ExpiredEvent event = worker.handled().poll(10, TimeUnit.SECONDS);
        if (event == null) {
          break;
        }
        events.add(plain(event));
      }
      match(expect, events, "handled");
    }

    // Answers.

    private void fails(Call call, JsonElement error) throws Exception {
      Object answer;
      try {
        answer = call.run();
      } catch (TimecacheException e) {
        match(error, e, "error");
        return;
      }
      throw new AssertionError("expected " + error + ", came " + answer);
    }

    private void save(Args step, Object answer) {
      Args save = step.args("save");
      for (String name : save.object.keySet()) {
        Object value = answer;
        for (String part : save.string(name).split("\\.|(?=\\[)")) {
          value =
              part.startsWith("[")
                  ? ((List<?>) value).get(Integer.parseInt(part.substring(1, part.length() - 1)))
                  : ((Map<?, ?>) value).get(part);
        }
        variables.put(name, value);
      }
    }

    private static boolean isDefault(Object value) {
      return value == null
          || value.equals(false)
          || value.equals("")
          || value.equals(ByteString.EMPTY)
          || value instanceof Number number && number.doubleValue() == 0
          || value instanceof List<?> list && list.isEmpty();
    }

    private void match(JsonElement expected, Object actual, String path) {
      if (!matches(expected, actual, path)) {
        throw new AssertionError(path + ": expected " + expected + ", came " + actual);
      }
    }

    private boolean matches(JsonElement expected, Object actual, String path) {
      if (expected.isJsonNull()) {
        return actual == null;
      } else if (is(expected, "any")) {
        return !isDefault(actual);
      } else if (is(expected, "gt")) {
        JsonElement bound = expected.getAsJsonObject().get("gt");
        BigDecimal least =
            new BigDecimal(is(bound, "var") ? resolved(bound).toString() : bound.getAsString());
        return new BigDecimal(actual.toString()).compareTo(least) > 0;
      } else if (is(expected, "var")) {
        Object value = resolved(expected);
        return value instanceof Number
            ? actual != null && ((Number) actual).longValue() == ((Number) value).longValue()
            : value.equals(actual);
      } else if (actual == null) {
        return expected.isJsonArray() && expected.getAsJsonArray().isEmpty()
            || expected.isJsonPrimitive()
                && List.of("0", "false", "").contains(expected.getAsString());
      } else if (actual instanceof TimecacheException error) {
        error(expected.getAsJsonObject(), error, path);
        return true;
      } else if (is(expected, "begins")) {
        JsonObject about = expected.getAsJsonObject();
        return ((ByteString) actual).startsWith(bytes(about.get("begins")))
            && ((ByteString) actual).size() == about.get("size").getAsInt();
      } else if (actual instanceof ByteString bytes) {
        return bytes.equals(bytes(expected));
      } else if (actual instanceof Instant time) {
        return time.equals(start.plus(duration(new Args(expected.getAsJsonObject()).string("at"))));
      } else if (actual instanceof Duration duration) {
        return duration.equals(duration(expected.getAsString()));
      } else if (actual instanceof Number number) {
        return expected.getAsBigDecimal().longValueExact() == number.longValue();
      } else if (actual instanceof Boolean flag) {
        return expected.getAsBoolean() == flag;
      } else if (actual instanceof List<?> list) {
        return list(expected, list, path);
      } else if (actual instanceof Map<?, ?> map) {
        for (String name : expected.getAsJsonObject().keySet()) {
          if (!map.containsKey(name) && !name.equals("version")) {
            throw new AssertionError(path + ": has no field " + name + ": " + map);
          }
          match(expected.getAsJsonObject().get(name), map.get(name), path + "." + name);
        }
        return true;
      }
      return expected.getAsString().equals(actual);
    }

    private boolean list(JsonElement expected, List<?> actual, String path) {
      boolean isUnordered = is(expected, "unordered");
      JsonArray elements =
          isUnordered
              ? expected.getAsJsonObject().getAsJsonArray("unordered")
              : expected.getAsJsonArray();
      if (elements.size() != actual.size()) {
        return false;
      }
      List<Object> left = new ArrayList<>(actual);
      for (int i = 0; i < elements.size(); ++i) {
        JsonElement element = elements.get(i);
        if (!isUnordered) {
          match(element, actual.get(i), path + "[" + i + "]");
        } else if (!removeMatch(element, left, path)) {
          return false;
        }
      }
      return true;
    }

    private boolean removeMatch(JsonElement element, List<Object> left, String path) {
      return left.removeIf(
          new java.util.function.Predicate<>() {
            private boolean found;

            @Override
            public boolean test(Object one) {
              if (found) {
                return false;
              }
              try {
                match(element, one, path);
                return found = true;
              } catch (AssertionError e) {
                return false;
              }
            }
          });
    }

    private void error(JsonObject expected, TimecacheException actual, String path) {
      Map<String, Object> error = new HashMap<>();
      error.put("code", actual.code().name());
      error.put("reason", actual.reason().orElse(null));
      error.put(
          "field",
          actual.fieldViolations().isEmpty() ? null : actual.fieldViolations().get(0).field());
      error.put("metadata", new HashMap<>(actual.metadata()));
      error.put("retry_delay", actual.retryDelay().orElse(null));
      match(expected, error, path);
    }
  }
}
