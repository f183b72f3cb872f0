package dev.timecached.client;

import com.google.protobuf.ByteString;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** What is known of the nodes that own a namespace's partitions. Thread-safe. */
final class NamespaceOwners {
  /** How precise it is when a namespace was last used: fewer writes than uses. */
  private static final long USE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /**
   * {@code addresses}: as the server gave them; null: not all have a node. {@code nodes}: null where
   * calls go as ever.
   */
  private record Known(List<String> addresses, OwnerNode[] nodes, Set<OwnerNode> distinct) {}

  final String name;
  private final Owners owners;
  private volatile Known known = new Known(List.of(), new OwnerNode[0], Set.of());
  private volatile long usedAt; // By the owners' clock, as all times.
  private volatile long askAt;
  private volatile boolean asking;

  // Guarded by this.
  private long askedAt;
  private boolean doubted; // Since then.

  NamespaceOwners(Owners owners, String name, long now) {
    this.owners = owners;
    this.name = name;
    usedAt = now;
    askAt = now;
  }

  /** To which node a call on a key goes. Null: to the one that others go to. */
  OwnerNode of(ByteString key) {
    OwnerNode[] nodes = known.nodes;
    return nodes.length == 0 ? null : owners.ready(nodes[Partitions.of(key, nodes.length)]);
  }

  /** The same of what must be done at once: null also for keys of several partitions. */
  OwnerNode ofAll(List<ByteString> keys) {
    OwnerNode[] nodes = known.nodes;
    if (nodes.length == 0) {
      return null;
    }
    int partition = Partitions.of(keys.get(0), nodes.length);
    boolean isOne = keys.stream().allMatch(key -> Partitions.of(key, nodes.length) == partition);
    return isOne ? owners.ready(nodes[partition]) : null;
  }

  void use(long now) {
    if (now - usedAt > USE_NANOS) {
      usedAt = now;
    }
  }

  long usedAt() {
    return usedAt;
  }

  boolean isDue(long now) {
    return now - askAt >= 0 && !asking;
  }

  /** False: another thread asks. */
  synchronized boolean beginToAsk(long now) {
    if (!isDue(now)) {
      return false;
    }
    asking = true;
    askedAt = now;
    doubted = false;
    return true;
  }

  /** It was answered, and what was said is good for so long. */
  synchronized void endAsking(long now, long goodNanos) {
    askAt = doubted ? askedAt + Owners.HURRY_NANOS : now + goodNanos;
    asking = false;
  }

  /** It may be wrong. */
  synchronized void doubt() {
    doubted = true;
    long soon = askedAt + Owners.HURRY_NANOS;
    if (soon - askAt < 0) {
      askAt = soon;
    }
  }

  boolean isKnownAs(List<String> addresses) {
    return addresses.equals(known.addresses);
  }

  /** Null addresses: some are to be looked at again the next time. */
  void know(List<String> addresses, OwnerNode[] nodes, Set<OwnerNode> distinct) {
    known = new Known(addresses, nodes, distinct);
  }

  /** Those that it names. */
  Set<OwnerNode> nodes() {
    return known.distinct;
  }
}
