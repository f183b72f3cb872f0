package dev.timecached.client;

import dev.timecached.v1.ErrorReason;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * The servers that a client may call, with a connection each, and the one that it calls now.
 * Connections are made when they are first needed, and closed together. Thread-safe.
 */
final class Endpoints {
  /** Most addresses of a client. */
  static final int MAX_ADDRESSES = 16;

  /** Most owners that servers named and the caller did not: later ones are not called. */
  private static final int MAX_OTHERS = 16;

  private static final long CLUSTER_SILENCE_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final List<String> addresses;
  private final Function<String, Connection> connect; // Null: the connection is the caller's.
  private volatile Connection current;
  final SharedStreams streams;
  final SharedSettles settles = new SharedSettles();
  private Owners owners; // Null: calls do not go to owners. Set before the first.

  // Guarded by this.
  private final Map<String, Connection> connections = new HashMap<>();
  private int index; // Of the address that was current last.
  private boolean closed;

  /**
   * {@code connect} throws a RuntimeException for an address that is not to be called. {@code
   * executor}: where futures complete; null: one for all clients.
   */
  Endpoints(List<String> addresses, Function<String, Connection> connect, Executor executor) {
    this.addresses = addresses;
    this.connect = connect;
    streams = new SharedStreams(this, executor);
    current = connect.apply(addresses.get(0));
    connections.put(addresses.get(0), current);
  }

  /** Of a channel of the caller's making. */
  Endpoints(Connection only) {
    addresses = List.of("");
    connect = null;
    streams = new SharedStreams(this, null);
    current = only;
    connections.put("", only);
  }

  /** One address, or several that are separated by commas. IllegalArgumentException: one is none. */
  static List<String> split(String address) {
    String[] parts = address.split(",", -1);
    if (parts.length > MAX_ADDRESSES) {
      throw new IllegalArgumentException(
          parts.length + " addresses: at most " + MAX_ADDRESSES + " are allowed");
    }
    List<String> addresses = new ArrayList<>();
    for (String part : parts) {
      String one = parts.length > 1 ? part.strip() : part;
      check(one);
      addresses.add(one);
    }
    return List.copyOf(addresses);
  }

  private static void check(String address) {
    // Without a port gRPC would take that of HTTP.
    if (address.lastIndexOf(':') <= address.lastIndexOf(']')) {
      throw new IllegalArgumentException(
          "address \"" + address + "\": must be host:port or unix:/path");
    }
  }

  /** How many addresses the caller gave. */
  int size() {
    return addresses.size();
  }

  Connection current() {
    return current;
  }

  /** Null: calls do not go to owners. */
  Owners owners() {
    return owners;
  }

  /** Before the first call. */
  void callOwners(Owners owners) {
    this.owners = owners;
  }

  /** Closes all, and waits a moment for them to end. */
  void close() {
    List<ManagedChannel> channels = new ArrayList<>();
    synchronized (this) {
      closed = true;
      connections.values().forEach(connection -> channels.add(connection.channel()));
    }
    if (owners != null) {
      channels.addAll(owners.close());
    }
    channels.forEach(ManagedChannel::shutdownNow);
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(1);
    try {
      for (ManagedChannel channel : channels) {
        channel.awaitTermination(until - System.nanoTime(), TimeUnit.NANOSECONDS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * After a call or stream there has failed: makes the owner that the error names current, or the
   * next address, if another may do better. A node that did not answer in time may hang; if it does
   * not, the next one names it.
   */
  synchronized void moveOn(Connection from, TimecacheException error) {
    boolean hangs = size() > 1 && error.code() == Status.Code.DEADLINE_EXCEEDED;
    if (closed || current != from || !(hangs || error.isConnectionLost())) {
      return;
    }
    Connection next =
        error.is(ErrorReason.NOT_OWNER)
            ? owner(error.metadata().getOrDefault("owner_address", ""))
            : null;
    if (next == from) {
      next = null;
    }
    for (int i = 0; i < addresses.size() && next == null; ++i) {
      index = (index + 1) % addresses.size();
      next = at(addresses.get(index));
    }
    current = next == null ? from : next;
  }

  private Connection owner(String address) {
    int listed = addresses.indexOf(address);
    if (listed >= 0) {
      index = listed;
    } else if (!connections.containsKey(address)
        && connections.size() >= addresses.size() + MAX_OTHERS) {
      return null;
    }
    return at(address);
  }

  /** Null: no connection to it can be made. */
  private Connection at(String address) {
    Connection known = connections.get(address);
    if (known != null || connect == null) {
      return known;
    }
    try {
      check(address);
      Connection made = connect.apply(address);
      connections.put(address, made);
      return made;
    } catch (RuntimeException e) {
      return null;
    }
  }

  /**
   * For how many nanoseconds a watch may bring nothing: unless that is given, a node of a cluster
   * that hangs is left. Null: not given.
   */
  long silenceNanos(Duration silence, Duration heartbeat) {
    if (silence != null || size() == 1) {
      return silence == null ? Long.MAX_VALUE / 2 : Times.nanos(silence);
    }
    return Math.max(CLUSTER_SILENCE_NANOS, heartbeat == null ? 0 : 4 * Times.nanos(heartbeat));
  }

  /** Of one call or stream. */
  Failover failover() {
    return new Failover();
  }

  /** When a call, or the start of a stream, is tried at another address. Not thread-safe. */
  final class Failover {
    private final Backoff backoff = new Backoff(Duration.ofMillis(20), Duration.ofMillis(100));
    private int unreached; // Addresses, one after the other.

    /**
     * Nanoseconds until the next attempt; negative: that is not for other addresses to decide.
     * {@code isLost}: another address may not have the error, and nothing was done.
     */
    long pauseAfter(TimecacheException error, boolean isLost) {
      if (error.is(ErrorReason.NOT_OWNER)) {
        unreached = 0;
        return backoff.nextNanos();
      }
      return isLost && ++unreached < size() ? 0 : -1;
    }

    /** After a success. */
    void reset() {
      backoff.reset();
      unreached = 0;
    }
  }
}
