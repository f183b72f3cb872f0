package dev.timecached.client.recipes;

import java.time.Duration;

/** How a {@link Lock} is held. Immutable: each method returns options of its own. */
public final class LockOptions {
  final Duration ttl;
  final String owner;
  final Duration recheck;
  final Runnable onLost;

  /** Leases of 10 s, without a name. */
  public LockOptions() {
    this(Duration.ofSeconds(10), "", Duration.ofSeconds(5), null);
  }

  private LockOptions(Duration ttl, String owner, Duration recheck, Runnable onLost) {
    this.ttl = ttl;
    this.owner = owner;
    this.recheck = recheck;
    this.onLost = onLost;
  }

  /**
   * Duration of a lease that is not renewed: 1 ms to the namespace's max_ttl. Another owner gets
   * the lock at most a bucket width of the namespace later.
   */
  public LockOptions ttl(Duration ttl) {
    return new LockOptions(ttl, owner, recheck, onLost);
  }

  /** This owner's name, for people who read the entry: at most some 100 B. */
  public LockOptions owner(String owner) {
    return new LockOptions(ttl, owner, recheck, onLost);
  }

  /**
   * {@link Lock#acquire} tries at least this often while it waits, for a lock that ended without an
   * event: removed by hand, or with its namespace. 5 s unless given.
   */
  public LockOptions recheck(Duration interval) {
    return new LockOptions(ttl, owner, interval, onLost);
  }

  /**
   * Called once for each lease that ends without {@link Lock#release}: as soon as a call finds it
   * another's, and at the latest when {@link Lock#remaining} is over. The lease is then given up:
   * {@link Lock#renew} is false. Stop the work that the lock protects. On a thread of the common
   * pool.
   */
  public LockOptions onLost(Runnable onLost) {
    return new LockOptions(ttl, owner, recheck, onLost);
  }
}
