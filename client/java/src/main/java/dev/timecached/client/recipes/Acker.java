package dev.timecached.client.recipes;

import com.google.protobuf.ByteString;
import dev.timecached.client.CombineOptions;
import dev.timecached.client.CombineResult;
import dev.timecached.client.ExpiredEvent;
import dev.timecached.client.Operation;
import dev.timecached.client.TimecacheClient;
import java.time.Duration;
import java.util.Optional;

/**
 * Tracks whether all work derived from a message was done in time, as Storm's acker: trees of
 * tuples, each by its root's name. One number for a tree, in the entry NAME/ROOT of the client's
 * namespace: the xor of the ids of all tuples that were emitted or acknowledged, which is 0 when
 * each has been both. Tuples may be acknowledged in any order, also before {@code track}.
 *
 * <pre>{@code
 * Acker acker = new Acker(client, "acks");
 * long first = Acker.newId();
 * acker.track("message-7", first); // The spout, when it emits.
 * long a = Acker.newId();
 * acker.ack("message-7", first, a); // A bolt that emitted a for it.
 * acker.ack("message-7", a); // The last one: true, it is done.
 * }</pre>
 *
 * <p>Guarantee: a tracked tree ends in one of three ways. It is done: true is returned to exactly
 * one call. It has failed by time-out: its entry expires, exactly once, at most a bucket width
 * after its time to live ({@link #failedRoot}). Or {@code fail} has removed it. A lost or late
 * acknowledgement fails its own tree, never another; an acknowledgement after the end creates an
 * entry without a tree, which failedRoot ignores. Ids are random: the probability that a tree
 * counts as done by chance is 2^-63.
 *
 * <p>A {@code track} without an answer may have happened: emit under a new root. The old one, if it
 * is there, fails. An {@code ack} without an answer may have happened: do not repeat it, since
 * twice is not at all. The tree is done, though no caller received that, or fails. A root that was
 * tracked, and whose failure has not been delivered when the watch's watermark is beyond its time,
 * is done.
 *
 * <p>Cost: one round trip and O(1) for a call, less in a pipeline; about 40 B for a tree beside its
 * name. Immutable and thread-safe.
 */
public final class Acker {
  /**
   * In the number of a tree that is not tracked yet, or any more. A missing entry counts as this;
   * track takes it away.
   */
  private static final long UNTRACKED = 1;

  private final TimecacheClient client;
  private final ByteString prefix;
  private final CombineOptions options;

  /** An acker of this name, whose trees may take the namespace's time to live. */
  public Acker(TimecacheClient client, String name) {
    this(client, Recipes.prefix(name), new CombineOptions().initial(UNTRACKED).removeIfZero());
  }

  private Acker(TimecacheClient client, ByteString prefix, CombineOptions options) {
    this.client = client;
    this.prefix = prefix;
    this.options = options;
  }

  /** The same acker, whose trees may take this long: 1 ms to the namespace's max_ttl. */
  public Acker withTtl(Duration ttl) {
    return new Acker(client, prefix, options.ttl(ttl));
  }

  /**
   * The id of a tuple: random, not 0, and even, because the lowest bit says whether a tree is
   * tracked.
   */
  public static long newId() {
    while (true) {
      long id = Recipes.newId() & ~UNTRACKED;
      if (id != 0) {
        return id;
      }
    }
  }

  /** As {@link #track(ByteString, long...)}. */
  public boolean track(String root, long... emitted) {
    return track(Recipes.utf8(root), emitted);
  }

  /**
   * Begins a tree with the tuples that its source emits. True: all of them are acknowledged
   * already. Call it once for each root: do not reuse the name of a root for at least twice the
   * time to live.
   */
  public boolean track(ByteString root, long... emitted) {
    return client.call(trackOperation(root, emitted));
  }

  /** As {@link #ack(ByteString, long, long...)}. */
  public boolean ack(String root, long tuple, long... emitted) {
    return ack(Recipes.utf8(root), tuple, emitted);
  }

  /** A tuple was processed; these are the tuples derived from it. True: the tree is now done. */
  public boolean ack(ByteString root, long tuple, long... emitted) {
    return client.call(ackOperation(root, tuple, emitted));
  }

  /** As {@link #fail(ByteString)}. */
  public boolean fail(String root) {
    return fail(Recipes.utf8(root));
  }

  /** Gives up a tree. True: it existed, and no event follows. False: it is done, or has failed. */
  public boolean fail(ByteString root) {
    return client.remove(prefix.concat(root)).removed();
  }

  /** {@code track} for a batch or a pipeline. */
  public Operation<Boolean> trackOperation(ByteString root, long... emitted) {
    return combine(root, UNTRACKED, emitted);
  }

  /** {@code ack} for a batch or a pipeline. */
  public Operation<Boolean> ackOperation(ByteString root, long tuple, long... emitted) {
    return combine(root, tuple, emitted);
  }

  /**
   * The root of the tree whose failure this event of a watch or group reports; empty for other
   * keys, and for entries of late calls. An eviction or rotation fails a tree, too.
   */
  public Optional<ByteString> failedRoot(ExpiredEvent event) {
    if (event.cause() == ExpiredEvent.Cause.EXPIRING) {
      return Optional.empty();
    }
    try {
      if ((Long.parseLong(event.valueUtf8()) & UNTRACKED) != 0) {
        return Optional.empty();
      }
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
    return Recipes.member(prefix, event.key());
  }

  /** What the keys of its trees begin with: for the prefix of a watch. */
  public ByteString keyPrefix() {
    return prefix;
  }

  private Operation<Boolean> combine(ByteString root, long first, long[] more) {
    long xor = first;
    for (long id : more) {
      xor ^= id;
    }
    return Operation.xor(prefix.concat(root), xor, options).map(CombineResult::removed);
  }
}
