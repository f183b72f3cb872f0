package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import dev.timecached.v1.ErrorReason;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What a client knows of owners, when it asks, and which nodes it calls: on a clock of its own. */
final class OwnersTest {
  private static final ByteString KEY = ByteString.copyFromUtf8("key");
  private static final TimecacheException BROKEN =
      TimecacheException.of(Code.UNAVAILABLE, "the connection broke");

  /** Connects as soon as it is asked to, while it may. */
  private static final class FakeChannel extends ManagedChannel {
    ConnectivityState state = ConnectivityState.IDLE;
    boolean connects = true;
    boolean isShutdown;
    private final List<Runnable> followers = new ArrayList<>();

    void become(ConnectivityState next) {
      state = next;
      List<Runnable> told = new ArrayList<>(followers);
      followers.clear();
      told.forEach(Runnable::run);
    }

    @Override
    public ConnectivityState getState(boolean requestsConnection) {
      if (requestsConnection && !isShutdown && state != ConnectivityState.READY) {
        become(connects ? ConnectivityState.READY : ConnectivityState.TRANSIENT_FAILURE);
      }
      return state;
    }

    @Override
    public void notifyWhenStateChanged(ConnectivityState source, Runnable callback) {
      followers.add(callback);
    }

    @Override
    public ManagedChannel shutdown() {
      isShutdown = true;
      become(ConnectivityState.SHUTDOWN);
      return this;
    }

    @Override
    public ManagedChannel shutdownNow() {
      return shutdown();
    }

    @Override
    public boolean isShutdown() {
      return isShutdown;
    }

    @Override
    public boolean isTerminated() {
      return isShutdown;
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
      return isShutdown;
    }

    @Override
    public <Q, A> ClientCall<Q, A> newCall(MethodDescriptor<Q, A> method, CallOptions options) {
      throw new AssertionError("no call is made");
    }

    @Override
    public String authority() {
      return "fake";
    }
  }

  private record Question(String namespace, CompletableFuture<List<String>> answer) {}

  private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 1000); // It wraps around.
  private final List<Question> asked = new ArrayList<>();
  private final Map<String, FakeChannel> channels = new HashMap<>(); // By address.
  private final Endpoints endpoints =
      new Endpoints(
          List.of("default:1", "other:1"),
          address -> new Connection(new FakeChannel(), address, () -> {}, null, true),
          null);
  private final Owners owners =
      new Owners(
          endpoints,
          namespace -> {
            asked.add(new Question(namespace, new CompletableFuture<>()));
            return asked.get(asked.size() - 1).answer;
          },
          this::connect,
          now::get);

  private Connection connect(String address) {
    if (address.startsWith("wrong")) {
      throw new IllegalArgumentException(address);
    }
    FakeChannel channel = channels.computeIfAbsent(address, unused -> new FakeChannel());
    return new Connection(channel, address, () -> {}, null, true);
  }

  private void pass(Duration time) {
    now.addAndGet(time.toNanos());
  }

  private void answer(String... addresses) {
    asked.get(asked.size() - 1).answer.complete(List.of(addresses));
  }

  private void fail(Code code, ErrorReason reason) {
    com.google.rpc.Status.Builder status =
        com.google.rpc.Status.newBuilder().setCode(code.value());
    if (reason != null) {
      status.addDetails(Any.pack(ErrorInfo.newBuilder().setReason(reason.name()).build()));
    }
    asked.get(asked.size() - 1).answer.completeExceptionally(TimecacheException.of(status.build()));
  }

  /** Where a call goes; null: to the default node. */
  private OwnerNode use(String namespace) {
    return owners.in(namespace).of(KEY);
  }

  /** In a namespace that is known, and whose owner is connected. */
  private OwnerNode learn(String namespace, String... addresses) {
    use(namespace);
    answer(addresses);
    use(namespace);
    return use(namespace);
  }

  @Test
  void theFirstCallsDoNotWaitForTheAnswer() {
    assertNull(use("ns"));
    assertNull(use("ns"));
    assertEquals(List.of("ns"), asked.stream().map(Question::namespace).toList());
    answer("a:1");
    assertNull(use("ns")); // It connects.
    assertEquals("a:1", use("ns").address);
    assertEquals(1, asked.size());
  }

  @Test
  void eachPartitionHasItsOwner() {
    learn("ns", "a:1", "b:1", "", "c:1");
    for (int i = 0; i < 100; ++i) {
      ByteString key = ByteString.copyFromUtf8("key-" + i);
      owners.in("ns").of(key);
      OwnerNode owner = owners.in("ns").of(key);
      String wanted = List.of("a:1", "b:1", "", "c:1").get(Partitions.of(key, 4));
      assertEquals(wanted, owner == null ? "" : owner.address);
    }
  }

  @Test
  void whatIsDoneAtOnceHasAnOwnerIfItIsInOnePartition() {
    learn("ns", "a:1", "b:1");
    List<ByteString> one =
        List.of(ByteString.copyFromUtf8("x{key}"), KEY, ByteString.copyFromUtf8("{key}y"));
    assertSame(use("ns"), owners.in("ns").ofAll(one));
    List<ByteString> many =
        IntStream.range(0, 20).mapToObj(i -> ByteString.copyFromUtf8("key-" + i)).toList();
    assertNull(owners.in("ns").ofAll(many));
    assertNull(owners.in("unknown").ofAll(one));
  }

  @Test
  void anAnswerIsGoodForFiveSeconds() {
    learn("ns", "a:1");
    pass(Duration.ofMillis(4_999));
    use("ns");
    assertEquals(1, asked.size());
    pass(Duration.ofMillis(1));
    assertEquals("a:1", use("ns").address); // Meanwhile.
    use("ns");
    assertEquals(2, asked.size()); // One question at a time.
    answer("b:1");
    use("ns");
    assertEquals("b:1", use("ns").address);
  }

  @Test
  void errorsSayWhenItIsAskedAgain() {
    record Case(Code code, ErrorReason reason, int seconds) {}
    for (Case one :
        List.of(
            new Case(Code.FAILED_PRECONDITION, ErrorReason.NO_CLUSTER, 60),
            new Case(Code.UNIMPLEMENTED, null, 60),
            new Case(Code.PERMISSION_DENIED, null, 60),
            new Case(Code.NOT_FOUND, ErrorReason.NAMESPACE_NOT_FOUND, 1),
            new Case(Code.UNAVAILABLE, null, 1),
            new Case(Code.DEADLINE_EXCEEDED, null, 1))) {
      String namespace = one.code().name();
      assertNull(use(namespace));
      int before = asked.size();
      fail(one.code(), one.reason());
      pass(Duration.ofSeconds(one.seconds()).minusNanos(1));
      assertNull(use(namespace));
      assertEquals(before, asked.size(), namespace);
      pass(Duration.ofNanos(1));
      assertNull(use(namespace));
      assertEquals(before + 1, asked.size(), namespace);
    }
  }

  @Test
  void whatIsKnownHoldsUntilItIsDenied() {
    learn("ns", "a:1");
    pass(Duration.ofSeconds(5));
    assertEquals("a:1", use("ns").address);
    fail(Code.UNAVAILABLE, null);
    pass(Duration.ofSeconds(1));
    assertEquals("a:1", use("ns").address);
    fail(Code.NOT_FOUND, ErrorReason.NAMESPACE_NOT_FOUND);
    assertNull(use("ns"));
    assertTrue(channels.get("a:1").isShutdown);
  }

  @Test
  void aNodeInDoubtIsAskedForAtOnceButNotMoreOften() {
    OwnerNode node = learn("ns", "a:1");
    learn("same", "a:1");
    learn("other", "b:1");
    int before = asked.size();
    node.disowned();
    use("ns");
    assertEquals(before, asked.size());
    pass(Duration.ofMillis(100));
    assertSame(node, use("ns"));
    use("same");
    use("other");
    assertEquals(before + 2, asked.size());
    // The answer may have been made before.
    node.disowned();
    answer("a:1");
    asked.get(before).answer.complete(List.of("a:1"));
    use("ns");
    assertEquals(before + 2, asked.size());
    pass(Duration.ofMillis(100));
    use("ns");
    assertEquals(before + 3, asked.size());
  }

  @Test
  void aNodeThatFailsIsLeftOutForTwiceAsLongEachTime() {
    OwnerNode node = learn("ns", "a:1");
    node.answered();
    for (int seconds : List.of(1, 2, 4, 8, 16, 30, 30)) {
      node.ended(BROKEN);
      node.ended(BROKEN); // Of the same break.
      pass(Duration.ofSeconds(seconds).minusNanos(1));
      assertNull(use("ns"));
      pass(Duration.ofNanos(1));
      assertSame(node, use("ns"));
    }
    node.ended(TimecacheException.of(Code.DEADLINE_EXCEEDED, ""));
    assertNull(use("ns"));
    pass(Duration.ofSeconds(30));
    node.answered();
    node.ended(BROKEN);
    pass(Duration.ofSeconds(1));
    assertSame(node, use("ns"));
    node.ended(TimecacheException.of(Code.NOT_FOUND, ""));
    assertSame(node, use("ns"));
  }

  @Test
  void aNodeThatIsNotReachedIsLeftOutAndComesBack() {
    FakeChannel down = new FakeChannel();
    down.connects = false;
    channels.put("a:1", down);
    assertNull(learn("ns", "a:1"));
    pass(Duration.ofMillis(100));
    assertNull(use("ns"));
    assertEquals(2, asked.size()); // It is in doubt.
    answer("a:1");
    down.become(ConnectivityState.READY);
    assertNull(use("ns"));
    pass(Duration.ofMillis(900));
    assertEquals("a:1", use("ns").address);
    down.connects = true;
    down.become(ConnectivityState.IDLE);
    assertNull(use("ns")); // It connects again.
    assertEquals("a:1", use("ns").address);
  }

  @Test
  void aNodeThatMayNotBeCalledIsLeftAlone() {
    assertNull(learn("ns", "wrong"));
    pass(Duration.ofSeconds(29));
    assertNull(use("ns"));
    assertEquals(Map.of(), channels);
  }

  @Test
  void theNodeThatCallsGoToNeedsNoOtherConnection() {
    assertNull(learn("ns", "default:1"));
    assertEquals(Map.of(), channels);
    endpoints.moveOn(endpoints.current(), BROKEN);
    use("ns");
    assertEquals("default:1", use("ns").address);
  }

  @Test
  void theNamespaceThatWasNotUsedForLongestIsForgotten() {
    for (int i = 0; i < Owners.NAMESPACES_MAX; ++i) {
      pass(Duration.ofMillis(2));
      use("ns-" + i);
      answer(i == 1 ? "b:1" : "a:1");
      use("ns-" + i);
    }
    use("ns-0");
    pass(Duration.ofMillis(2));
    assertEquals(Owners.NAMESPACES_MAX, asked.size());
    use("one more"); // In place of ns-1.
    assertTrue(channels.get("b:1").isShutdown);
    assertFalse(channels.get("a:1").isShutdown);
    use("ns-0");
    assertEquals(Owners.NAMESPACES_MAX + 1, asked.size());
    use("ns-1");
    assertEquals(Owners.NAMESPACES_MAX + 2, asked.size());
  }

  @Test
  void whatIsForgottenMeanwhileIsNotLearnt() {
    use("first");
    for (int i = 0; i < Owners.NAMESPACES_MAX; ++i) {
      pass(Duration.ofMillis(2));
      use("ns-" + i);
    }
    asked.get(0).answer.complete(List.of("a:1"));
    use("first");
    assertEquals(Map.of(), channels);
  }

  @Test
  void nodesAreBounded() {
    List<String> addresses =
        IntStream.range(0, Owners.NODES_MAX).mapToObj(i -> "node-" + i + ":1").toList();
    learn("many", addresses.toArray(String[]::new));
    assertNull(learn("ns", "a:1"));
    // It is looked at again though the answer is the same.
    pass(Duration.ofSeconds(5));
    use("many");
    answer("node-0:1");
    use("ns");
    answer("a:1");
    use("ns");
    assertEquals("a:1", use("ns").address);
  }

  @Test
  void aNodeThatNoNamespaceNamesIsClosed() {
    learn("ns", "a:1", "a:1");
    OwnerNode node = learn("other", "a:1");
    pass(Duration.ofSeconds(5));
    use("ns");
    answer("b:1");
    assertFalse(channels.get("a:1").isShutdown);
    use("other");
    answer("b:1");
    assertTrue(channels.get("a:1").isShutdown);
    assertTrue(node.isGone());
    assertFalse(node.isReady(now.get()));
  }

  @Test
  void closingEndsAllConnections() {
    learn("ns", "a:1");
    learn("other", "b:1");
    endpoints.callOwners(owners);
    pass(Duration.ofSeconds(5));
    use("ns");
    endpoints.close();
    assertTrue(channels.values().stream().allMatch(ManagedChannel::isShutdown));
    answer("c:1");
    use("ns");
    assertEquals(2, channels.size());
  }
}
