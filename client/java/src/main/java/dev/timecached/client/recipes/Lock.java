package dev.timecached.client.recipes;

import com.google.protobuf.ByteString;
import dev.timecached.client.Entry;
import dev.timecached.client.PutOptions;
import dev.timecached.client.TimecacheClient;
import dev.timecached.client.TimecacheException;
import dev.timecached.client.TouchOptions;
import dev.timecached.client.WatchBatch;
import dev.timecached.client.WatchOptions;
import dev.timecached.client.Watcher;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * One contender for a lock, which is an entry of the client's namespace: a lease with a fencing
 * token.
 *
 * <pre>{@code
 * Lock lock = new Lock(client, "lock/report", new LockOptions().onLost(work::stop));
 * OptionalLong token = lock.acquire(Duration.ofSeconds(30));
 * if (token.isPresent()) {
 *   storage.write(report, token.getAsLong());
 *   lock.release();
 * }
 * }</pre>
 *
 * <p>Guarantee: of two owners, the later one has the larger token. A lease is not mutual exclusion
 * by itself: an owner that is suspended beyond its time to live notices too late, {@code onLost} or
 * not. What the lock protects must remember the largest token that it has seen, and refuse smaller
 * ones; then only the last owner acts on it. Holds over restarts in a durable namespace; in another
 * one a restart frees the lock, and tokens still grow.
 *
 * <p>Calls without an answer ({@link TimecacheException#maybeApplied}): an acquisition may have
 * happened. The next {@code tryAcquire} of the same Lock finds its own mark in the entry and takes
 * it over; without one the lock is free after at most its ttl. A renewal may have happened: the
 * lease lasts at least until {@code remaining} is over; renew again. A release may have happened:
 * release again, which is safe. Its loss is not reported any more.
 *
 * <p>Cost: one round trip to acquire a lock that is free, three for one that was just released, two
 * to find it taken; one to renew and to release. A waiter has one watch, and tries when the lock
 * expires. A release writes an empty value that lives 1 ms: the lock is free at once for the next
 * attempt, and waiters receive the expiry at most a bucket width later. So give locks a namespace
 * with narrow buckets (ttl 10 s, 101 buckets: 0.1 s). It must not be {@code sliding}: reads would
 * renew leases. Waiters are not ordered.
 *
 * <p>Each contender has a Lock of its own, and makes one call of it at a time; {@code token} and
 * {@code remaining} are for any thread.
 */
public final class Lock {
  /** The value of a lock that was released. */
  private static final ByteString FREE = ByteString.EMPTY;

  private static final Duration SHORTEST_TTL = Duration.ofMillis(1);

  /** A lock that changes hands this often while it is asked for is taken. */
  private static final int MAX_TRIES = 4;

  /** From its acquisition until it is released or lost. */
  private static final class Lease {
    final long token;
    long safeUntil; // By System.nanoTime().
    CompletableFuture<Void> end; // Null: its loss is not reported.

    Lease(long token) {
      this.token = token;
    }
  }

  private final TimecacheClient client;
  private final ByteString key;
  private final LockOptions options;

  /** The value of the entry while this Lock has it: no other Lock writes it. */
  private final ByteString mark;

  private Lease lease; // Guarded by this. Null: none is held.

  /** A contender for the lock of this key. */
  public Lock(TimecacheClient client, String key, LockOptions options) {
    this(client, Recipes.utf8(key), options);
  }

  /** A contender for the lock of this key. */
  public Lock(TimecacheClient client, ByteString key, LockOptions options) {
    this.client = client;
    this.key = key;
    this.options = options;
    String name = options.owner.isEmpty() ? "" : options.owner + " ";
    mark = Recipes.utf8(name + String.format("%016x%016x", Recipes.newId(), Recipes.newId()));
  }

  /** The fencing token, or empty: another owner has it. Renews a lease that this Lock has. */
  public OptionalLong tryAcquire() {
    for (int i = 0; i < MAX_TRIES; ++i) {
      OptionalLong token = put(new PutOptions().ifAbsent());
      if (token.isPresent()) {
        return token;
      }
      Optional<Entry> entry = client.get(key);
      if (entry.isEmpty()) {
        continue;
      }
      long version = entry.get().version();
      if (entry.get().value().equals(mark)) {
        token = takeOver(version);
      } else if (entry.get().value().equals(FREE)) {
        token = put(new PutOptions().ifVersion(version));
      } else {
        break;
      }
      if (token.isPresent()) {
        return token;
      }
    }
    lose(held());
    return OptionalLong.empty();
  }

  /** The same, but waits for the lock: empty if that takes longer than the timeout. */
  public OptionalLong acquire(Duration timeout) {
    long giveUpAt = System.nanoTime() + Recipes.nanos(timeout);
    OptionalLong token = tryAcquire();
    if (token.isPresent()) {
      return token;
    }
    try (Watcher watcher = client.watch(new WatchOptions().prefix(key).keysOnly())) {
      // A lock that ends before the watch stands has no event: its first batch is a reason to try.
      boolean stands = false;
      long recheckAt = System.nanoTime() + Recipes.nanos(options.recheck);
      for (long now; giveUpAt - (now = System.nanoTime()) > 0; ) {
        Duration left = Duration.ofNanos(Math.max(0, Math.min(giveUpAt - now, recheckAt - now)));
        Optional<WatchBatch> batch = watcher.next(left);
        boolean mayBeFree = System.nanoTime() - recheckAt >= 0;
        if (batch.isPresent()) {
          mayBeFree |= !stands || mayFree(batch.get());
          stands = true;
        }
        if (!mayBeFree) {
          continue;
        }
        token = tryAcquire();
        if (token.isPresent()) {
          return token;
        }
        recheckAt = System.nanoTime() + Recipes.nanos(options.recheck);
      }
    }
    return OptionalLong.empty();
  }

  /**
   * Renews the lease's time to live; its token does not change. False: the lease is not held, or
   * was lost; stop the work that the lock protects.
   */
  public boolean renew() {
    Lease current = held();
    if (current == null) {
      return false;
    }
    long sentAt = System.nanoTime();
    if (!touch(current.token)) {
      lose(current);
    }
    synchronized (this) {
      if (lease != current) {
        return false; // Perhaps since its time was over before the answer came.
      }
      current.safeUntil = sentAt + Recipes.nanos(options.ttl);
      return true;
    }
  }

  /** Frees the lock, if this owner still has it. False: it did not. */
  public boolean release() {
    Lease current = held();
    if (current == null) {
      return false;
    }
    stopReporting(current);
    boolean isReleased = true;
    try {
      client.put(key, FREE, new PutOptions().ttl(SHORTEST_TTL).ifVersion(current.token));
    } catch (TimecacheException e) {
      if (!Recipes.isPreconditionFailed(e)) {
        throw e;
      }
      isReleased = false;
    }
    lose(current);
    return isReleased;
  }

  /** The lease's token, as last known here. */
  public synchronized OptionalLong token() {
    return lease == null ? OptionalLong.empty() : OptionalLong.of(lease.token);
  }

  /**
   * How long the lease lasts for certain, on this machine's clock; zero when it may be over. Counts
   * from before the last successful call was sent.
   */
  public synchronized Duration remaining() {
    long nanos = lease == null ? 0 : lease.safeUntil - System.nanoTime();
    return Duration.ofNanos(Math.max(0, nanos));
  }

  private boolean mayFree(WatchBatch batch) {
    return batch.lost() > 0
        || batch.logChanged()
        || batch.events().stream().anyMatch(event -> event.key().equals(key));
  }

  /** Empty: the key is there, or not with this version. */
  private OptionalLong put(PutOptions condition) {
    long sentAt = System.nanoTime();
    try {
      return own(client.put(key, mark, condition.ttl(options.ttl)).version(), sentAt);
    } catch (TimecacheException e) {
      if (Recipes.isPreconditionFailed(e)) {
        return OptionalLong.empty();
      }
      throw e;
    }
  }

  /** Of an entry with this Lock's mark: of its lease, or of a call without an answer. */
  private OptionalLong takeOver(long version) {
    long sentAt = System.nanoTime();
    // A renewal, which says from when on its time counts.
    return touch(version) ? own(version, sentAt) : OptionalLong.empty();
  }

  private boolean touch(long version) {
    try {
      client.touch(key, new TouchOptions().ifVersion(version));
      return true;
    } catch (TimecacheException e) {
      if (Recipes.isPreconditionFailed(e)) {
        return false;
      }
      throw e;
    }
  }

  private synchronized Lease held() {
    return lease;
  }

  private synchronized OptionalLong own(long token, long sentAt) {
    if (lease != null && lease.token != token) {
      lose(lease);
    }
    if (lease == null) {
      lease = new Lease(token);
    }
    lease.safeUntil = sentAt + Recipes.nanos(options.ttl);
    if (options.onLost != null && lease.end == null) {
      await(lease);
    }
    return OptionalLong.of(token);
  }

  /** Reports the lease's loss when its time is over. */
  private synchronized void await(Lease waiting) {
    long left = Math.max(0, waiting.safeUntil - System.nanoTime());
    waiting.end = new CompletableFuture<Void>().completeOnTimeout(null, left, TimeUnit.NANOSECONDS);
    waiting.end.thenRunAsync(() -> end(waiting));
  }

  private synchronized void end(Lease waiting) {
    if (lease != waiting || waiting.end == null) {
      return;
    }
    if (waiting.safeUntil - System.nanoTime() > 0) {
      await(waiting);
    } else {
      lose(waiting);
    }
  }

  private synchronized void stopReporting(Lease current) {
    if (current.end != null) {
      current.end.cancel(false);
      current.end = null;
    }
  }

  private synchronized void lose(Lease lost) {
    if (lost == null || lease != lost) {
      return;
    }
    lease = null;
    if (lost.end != null) {
      stopReporting(lost);
      CompletableFuture.delayedExecutor(0, TimeUnit.NANOSECONDS).execute(options.onLost);
    }
  }
}
