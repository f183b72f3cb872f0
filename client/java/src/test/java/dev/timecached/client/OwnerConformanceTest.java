package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import dev.timecached.v1.NamespaceOptions;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** Calls at three nodes that share the ownership: hardly one is forwarded. */
@NeedsServer
@EnabledIfEnvironmentVariable(named = "OWNER_ROUTING", matches = ".+")
@Timeout(120)
final class OwnerConformanceTest {
  private static final int KEYS = 1000;
  private static final Pattern FORWARDED = Pattern.compile("\"forwarded_calls\":(\\d+)");

  /** What creating a namespace and asking for its owners may take. */
  private static final int OTHER_CALLS = 200;

  private int calls; // Before owners were known.

  /** Makes many calls on each of the keys, and returns how many calls the nodes have forwarded. */
  private long forwarded(boolean ownerRouting) {
    try (TestServer server = TestServer.onVirtualClock()) {
      try (TimecacheClient all = server.builder().ownerRouting(ownerRouting).build()) {
        all.createNamespace("spread", NamespaceOptions.getDefaultInstance());
        TimecacheClient client = all.in("spread");
        if (ownerRouting) {
          learn(client);
        }
        for (int i = 0; i < KEYS; ++i) {
          client.put("key-" + i, "value-" + i);
          client.withBatching(false).touch("key-" + i);
        }
        List<CompletableFuture<String>> values = new ArrayList<>();
        for (int i = 0; i < KEYS; ++i) {
          values.add(client.async().get("key-" + i).thenApply(one -> one.orElseThrow().valueUtf8()));
        }
        Batch batch = new Batch();
        for (int i = 0; i < KEYS; ++i) {
          values.add(
              batch.add(Operation.get("key-" + i)).thenApply(one -> one.orElseThrow().valueUtf8()));
        }
        client.execute(batch);
        for (int i = 0; i < values.size(); ++i) {
          assertEquals("value-" + i % KEYS, values.get(i).join());
        }
      }
      server.stop();
      Matcher matcher = FORWARDED.matcher(server.log());
      assertTrue(matcher.find(), server.log());
      return Long.parseLong(matcher.group(1));
    }
  }

  /** Until calls go to all nodes but the one that was called first. */
  private void learn(TimecacheClient client) {
    Set<OwnerNode> owners = new HashSet<>();
    while (owners.size() < 2) {
      for (int i = 0; i < 100; ++i) {
        ByteString key = ByteString.copyFromUtf8("key-" + i);
        OwnerNode owner = client.ownerOf(key);
        if (owner != null) {
          owners.add(owner);
        }
      }
      client.get("key-" + ++calls);
    }
  }

  @Test
  void hardlyOneIsForwarded() {
    assertTrue(forwarded(false) > KEYS, "it is no cluster");
    long forwarded = forwarded(true);
    assertTrue(forwarded <= calls + OTHER_CALLS, forwarded + " after " + calls);
  }
}
