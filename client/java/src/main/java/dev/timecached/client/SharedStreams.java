package dev.timecached.client;

import io.grpc.Status;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;

/** The {@link SharedStream}s of a client and of all its views, to one node. Thread-safe. */
final class SharedStreams {
  static final int STREAMS_MAX = 64;

  private final Endpoints endpoints;
  private final Completions completions;
  private final OwnerNode owner; // Null: to the node that calls go to.
  private final Map<String, SharedStream> streams = new ConcurrentHashMap<>();
  private volatile boolean isOff; // The server has no Pipeline, or was retired.

  /** {@code executor}: where futures complete; null: threads that all clients share. */
  SharedStreams(Endpoints endpoints, Executor executor) {
    this.endpoints = endpoints;
    completions = new Completions(executor);
    owner = null;
  }

  /** Of the same client, to an owner. */
  SharedStreams(SharedStreams others, OwnerNode owner) {
    endpoints = others.endpoints;
    completions = others.completions;
    this.owner = owner;
  }

  Endpoints endpoints() {
    return endpoints;
  }

  Completions completions() {
    return completions;
  }

  /** Null: they go to the node that calls go to. */
  OwnerNode owner() {
    return owner;
  }

  /** Where the next stream goes. */
  Rpc.Route route() {
    if (owner != null) {
      return owner.route();
    }
    Connection current = endpoints.current();
    return new Rpc.Route(current, current.plain);
  }

  /**
   * The stream of a namespace. Null: a call goes alone, as so many other namespaces' are in use, or
   * the server knows no Pipeline, or is an owner no more.
   */
  SharedStream get(String namespace) {
    if (isOff) {
      return null;
    }
    SharedStream known = streams.get(namespace);
    return known != null ? known : make(namespace);
  }

  private synchronized SharedStream make(String namespace) {
    if (isOff) {
      return null;
    }
    if (!streams.containsKey(namespace) && streams.size() >= STREAMS_MAX && !evict()) {
      return null;
    }
    return streams.computeIfAbsent(namespace, name -> new SharedStream(this, name));
  }

  /** Closes the one that has been idle for the longest. */
  private boolean evict() {
    Map.Entry<String, SharedStream> idlest = null;
    long longest = -1;
    for (Map.Entry<String, SharedStream> one : streams.entrySet()) {
      long idle = one.getValue().idleNanos();
      if (idle > longest) {
        longest = idle;
        idlest = one;
      }
    }
    if (idlest == null || !idlest.getValue().close()) {
      return false;
    }
    streams.remove(idlest.getKey());
    return true;
  }

  /** Makes no more, and closes those that are there behind what was sent. */
  synchronized void retire() {
    isOff = true;
    streams.values().forEach(SharedStream::retire);
  }

  /** Whether a stream that ended so says that the server has none; calls then go alone. */
  boolean isUnknown(TimecacheException error) {
    boolean isUnknown = error.code() == Status.Code.UNIMPLEMENTED;
    isOff |= isUnknown;
    return isUnknown;
  }
}
