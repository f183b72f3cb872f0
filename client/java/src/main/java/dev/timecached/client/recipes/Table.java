package dev.timecached.client.recipes;

import com.google.protobuf.ByteString;
import dev.timecached.client.Entry;
import dev.timecached.client.PutOptions;
import dev.timecached.client.ScanOptions;
import dev.timecached.client.TimecacheClient;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A set in the client's namespace whose members expire: each member is an entry, NAME/MEMBER, so
 * that no second entry needs updating. No name of a table or other structure in a namespace may be
 * another one's name followed by a '/'.
 *
 * <pre>{@code
 * Table online = new Table(client, "online").withTtl(Duration.ofMinutes(1));
 * online.add("alice");
 * List<ByteString> who = online.list();
 * }</pre>
 *
 * <p>Guarantee: {@code add}, {@code remove} and {@code contains} of one member are atomic, from
 * whatever client. {@code list} has each member that is in the table during the whole of it exactly
 * once, and others at most once. Members expire one by one, each with an event ({@link #memberOf}).
 *
 * <p>An add or remove without an answer may have happened. A repeated call has the same effect;
 * only its result may be wrong because the first attempt was applied.
 *
 * <p>Cost: one round trip and O(1) for each call. {@code list} scans: O(entries of the namespace),
 * so give a table whose listing matters a namespace of its own. Immutable and thread-safe.
 */
public final class Table {
  private final TimecacheClient client;
  private final ByteString prefix;
  private final PutOptions options;

  /** A table of this name, whose members have the namespace's time to live. */
  public Table(TimecacheClient client, String name) {
    this(client, Recipes.prefix(name), new PutOptions().returnPrevious());
  }

  private Table(TimecacheClient client, ByteString prefix, PutOptions options) {
    this.client = client;
    this.prefix = prefix;
    this.options = options;
  }

  /**
   * The same table, whose members stay this long without being added again: 1 ms to the namespace's
   * max_ttl.
   */
  public Table withTtl(Duration ttl) {
    return new Table(client, prefix, options.ttl(ttl));
  }

  /** As {@link #add(ByteString)}. */
  public boolean add(String member) {
    return add(Recipes.utf8(member));
  }

  /** Adds a member, or renews its time to live. Whether it is new. */
  public boolean add(ByteString member) {
    return client.put(prefix.concat(member), ByteString.EMPTY, options).previous().isEmpty();
  }

  /** As {@link #remove(ByteString)}. */
  public boolean remove(String member) {
    return remove(Recipes.utf8(member));
  }

  /** Removes a member, without an event. Whether it was in the table. */
  public boolean remove(ByteString member) {
    return client.remove(prefix.concat(member)).removed();
  }

  /** As {@link #contains(ByteString)}. */
  public boolean contains(String member) {
    return contains(Recipes.utf8(member));
  }

  /** Whether a member is in the table. Never renews it. */
  public boolean contains(ByteString member) {
    return client.contains(prefix.concat(member));
  }

  /** All members, in bytewise order. */
  public List<ByteString> list() {
    try (Stream<Entry> entries = client.scan(new ScanOptions().prefix(prefix).keysOnly())) {
      return entries
          .map(entry -> entry.key().substring(prefix.size()))
          .sorted(ByteString.unsignedLexicographicalComparator())
          .toList();
    }
  }

  /** The member whose entry has this key, as that of an event. Empty: it is not of this table. */
  public Optional<ByteString> memberOf(ByteString key) {
    return Recipes.member(prefix, key);
  }

  /** What the keys of its members begin with: for the prefix of a watch. */
  public ByteString keyPrefix() {
    return prefix;
  }
}
