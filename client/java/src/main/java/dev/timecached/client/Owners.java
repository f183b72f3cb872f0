package dev.timecached.client;

import dev.timecached.v1.GetOwnersRequest;
import dev.timecached.v1.GetOwnersResponse;
import dev.timecached.v1.NamespaceServiceGrpc;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.LongSupplier;

/**
 * Which nodes own the partitions of the namespaces that a client and its views use, for calls to go
 * there: see {@link TimecacheClientBuilder#ownerRouting}. It is asked for in the background, when a
 * namespace is used. Thread-safe; a look-up takes no lock, nor memory.
 */
final class Owners {
  static final int NAMESPACES_MAX = 1_000;
  static final int NODES_MAX = 64;

  /** How long an answer is good; unless a node is in doubt: not asked again within HURRY_NANOS. */
  static final long GOOD_NANOS = TimeUnit.SECONDS.toNanos(5);

  static final long HURRY_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  /** After an error: one that is likely to stay so, and another one. */
  static final long REFUSED_NANOS = TimeUnit.SECONDS.toNanos(60);

  static final long FAILED_NANOS = TimeUnit.SECONDS.toNanos(1);

  static final Duration ASK_TIMEOUT = Duration.ofSeconds(5);

  private final Endpoints endpoints;
  private final Function<String, CompletableFuture<List<String>>> ask;
  private final Function<String, Connection> connect;
  private final LongSupplier clock;
  private final Map<String, NamespaceOwners> namespaces = new ConcurrentHashMap<>();

  // Guarded by this.
  private final Map<String, OwnerNode> nodes = new HashMap<>(); // Those that are named.
  private final List<OwnerNode> retired = new ArrayList<>(); // Whose calls may be under way.
  private boolean closed;

  /**
   * {@code ask}: for the addresses of a namespace's owners, without waiting. {@code connect}: as of
   * Endpoints. {@code clock}: nanoseconds.
   */
  Owners(
      Endpoints endpoints,
      Function<String, CompletableFuture<List<String>>> ask,
      Function<String, Connection> connect,
      LongSupplier clock) {
    this.endpoints = endpoints;
    this.ask = ask;
    this.connect = connect;
    this.clock = clock;
  }

  /** Asks the node that calls go to. */
  static Function<String, CompletableFuture<List<String>>> question(Rpc rpc) {
    return namespace ->
        rpc.start(
            NamespaceServiceGrpc.getGetOwnersMethod(),
            GetOwnersRequest.newBuilder().setName(namespace).build(),
            rpc.transportAttempts(false, System.nanoTime() + rpc.timeoutNanos()),
            null,
            null,
            GetOwnersResponse::getAddressesList);
  }

  long now() {
    return clock.getAsLong();
  }

  Connection connect(String address) {
    return connect.apply(address);
  }

  /** What is known of a namespace, which is used now. */
  NamespaceOwners in(String namespace) {
    long now = now();
    NamespaceOwners known = namespaces.get(namespace);
    if (known == null) {
      known = add(namespace, now);
    }
    known.use(now);
    if (known.isDue(now)) {
      ask(known, now);
    }
    return known;
  }

  /** The node, if calls go there now; null: to the one that others go to, which it may be. */
  OwnerNode ready(OwnerNode node) {
    return node == null
            || node.address.equals(endpoints.current().address())
            || !node.isReady(now())
        ? null
        : node;
  }

  private NamespaceOwners add(String namespace, long now) {
    NamespaceOwners added;
    List<OwnerNode> unnamed = new ArrayList<>();
    synchronized (this) {
      if (namespaces.size() >= NAMESPACES_MAX && !namespaces.containsKey(namespace)) {
        namespaces.values().stream()
            .min((a, b) -> Long.signum(a.usedAt() - b.usedAt())) // As System.nanoTime() asks for.
            .ifPresent(
                idlest -> {
                  namespaces.remove(idlest.name);
                  release(idlest.nodes(), unnamed);
                });
      }
      added = namespaces.computeIfAbsent(namespace, name -> new NamespaceOwners(this, name, now));
    }
    unnamed.forEach(OwnerNode::retire);
    return added;
  }

  private void ask(NamespaceOwners about, long now) {
    if (about.beginToAsk(now)) {
      ask.apply(about.name)
          .whenComplete(
              (addresses, why) -> {
                if (why == null) {
                  know(about, addresses);
                  about.endAsking(now(), GOOD_NANOS);
                } else {
                  failed(about, TimecacheException.of(why));
                }
              });
    }
  }

  private void failed(NamespaceOwners about, TimecacheException why) {
    boolean isRefused =
        switch (why.code()) {
          case FAILED_PRECONDITION, UNIMPLEMENTED, PERMISSION_DENIED -> true;
          default -> false;
        };
    // Where it was not answered, what was known may still hold.
    if (isRefused || why.code() == Status.Code.NOT_FOUND) {
      know(about, List.of());
    }
    about.endAsking(now(), isRefused ? REFUSED_NANOS : FAILED_NANOS);
  }

  private void know(NamespaceOwners about, List<String> addresses) {
    List<OwnerNode> unnamed = new ArrayList<>();
    synchronized (this) {
      // It may have been forgotten meanwhile.
      if (closed || namespaces.get(about.name) != about || about.isKnownAs(addresses)) {
        return;
      }
      OwnerNode[] byPartition = new OwnerNode[addresses.size()];
      boolean isComplete = true;
      for (int i = 0; i < byPartition.length; ++i) {
        String address = addresses.get(i);
        byPartition[i] = address.isEmpty() ? null : node(address);
        isComplete &= byPartition[i] != null || address.isEmpty();
      }
      Set<OwnerNode> distinct = new HashSet<>(Arrays.asList(byPartition));
      distinct.remove(null);
      distinct.forEach(node -> ++node.namespaces);
      Set<OwnerNode> before = about.nodes();
      about.know(isComplete ? List.copyOf(addresses) : null, byPartition, distinct);
      release(before, unnamed);
    }
    unnamed.forEach(OwnerNode::retire);
  }

  /** Null: it is one too many. */
  private OwnerNode node(String address) {
    OwnerNode known = nodes.get(address);
    if (known != null || nodes.size() >= NODES_MAX) {
      return known;
    }
    OwnerNode made = new OwnerNode(this, address, endpoints.streams);
    nodes.put(address, made);
    return made;
  }

  private void release(Collection<OwnerNode> named, List<OwnerNode> unnamed) {
    for (OwnerNode node : named) {
      if (--node.namespaces == 0) {
        nodes.remove(node.address);
        unnamed.add(node);
      }
    }
    retired.removeIf(OwnerNode::isGone);
    retired.addAll(unnamed);
  }

  /** Calls there have failed: whatever names it is asked for again when it is used next. */
  void doubt(OwnerNode node) {
    for (NamespaceOwners one : namespaces.values()) {
      if (one.nodes().contains(node)) {
        one.doubt();
      }
    }
  }

  /** No more connections are made. Returns those that were, which are to be ended. */
  synchronized List<ManagedChannel> close() {
    closed = true;
    List<OwnerNode> all = new ArrayList<>(nodes.values());
    all.addAll(retired);
    return all.stream().map(OwnerNode::close).filter(Objects::nonNull).toList();
  }
}
