package dev.timecached.client.recipes;

import com.google.protobuf.ByteString;
import dev.timecached.client.AppendOptions;
import dev.timecached.client.Entry;
import dev.timecached.client.PutOptions;
import dev.timecached.client.TimecacheClient;
import dev.timecached.client.TimecacheException;
import dev.timecached.v1.ErrorReason;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * A list under one key of the client's namespace that is read often and changed by many clients.
 * {@code add} and {@code remove} append their change to the entry, and readers fold the changes:
 * neither reads nor rewrites the list, and no lock is needed. {@code update} changes it as a whole,
 * by version. It expires as a whole; {@code fold} reads the value of the event.
 *
 * <pre>{@code
 * Array hosts = new Array(client, "hosts");
 * long id = hosts.add("10.0.0.7");
 * Array.Contents all = hosts.read();
 * hosts.remove(id);
 * }</pre>
 *
 * <p>Guarantee: no concurrent change is lost. Each item has an id; an id is in the list at most
 * once, where it was first added, so that {@code add} and {@code remove} may be repeated: the
 * client does so by itself when a connection is lost.
 *
 * <p>An add, remove or update without an answer may have been applied. Repeat {@code remove}, and
 * {@code add(item)} with the same id, but only until the item is removed; a removed id must not be
 * added again. After an update without an answer, {@code read} shows whether it was applied.
 *
 * <p>Errors: FAILED_PRECONDITION (VALUE_TOO_LARGE): the entry is at the namespace's
 * max_value_bytes, also after a compaction, which a change then does, once. DATA_LOSS: the key's
 * value is no array.
 *
 * <p>Cost: {@code add} and {@code remove} send the item, or 9 B, and cost O(that), in one round
 * trip. {@code read} (one) and {@code compact} (two) transfer everything that was appended since
 * the last compaction, 13 B and the value for an item that was added. Immutable and thread-safe.
 */
public final class Array {
  // A record is one of these, the id, and, of what was added, the value's length in four bytes and
  // the value.
  private static final byte ADDED = '+';
  private static final byte REMOVED = '-';
  private static final int REMOVED_BYTES = 9;
  private static final int ADDED_BYTES = 13;

  private static final int MAX_TRIES = 16;

  /**
   * One item.
   *
   * @param id unsigned
   * @param value may be empty
   */
  public record Item(long id, ByteString value) {}

  /**
   * What an array holds.
   *
   * @param items in the order in which they were added
   * @param version the entry's; 0: there is none, or it was not read from one
   * @param storedBytes the entry's size
   * @param compactBytes its size after a compaction
   */
  public record Contents(List<Item> items, long version, int storedBytes, int compactBytes) {}

  private final TimecacheClient client;
  private final ByteString key;
  private final Duration ttl; // Null: the namespace's.
  private final boolean renew;

  /** The array of this key, with the namespace's time to live, which changes renew. */
  public Array(TimecacheClient client, String key) {
    this(client, Recipes.utf8(key));
  }

  /** The array of this key, with the namespace's time to live, which changes renew. */
  public Array(TimecacheClient client, ByteString key) {
    this(client, key, null, true);
  }

  private Array(TimecacheClient client, ByteString key, Duration ttl, boolean renew) {
    this.client = client;
    this.key = key;
    this.ttl = ttl;
    this.renew = renew;
  }

  /** The same array with a time to live of its own. */
  public Array withTtl(Duration ttl) {
    return new Array(client, key, ttl, renew);
  }

  /** The same array, whose changes do not renew it: its time counts from the creation. */
  public Array withoutRenewal() {
    return new Array(client, key, ttl, false);
  }

  /** Random, not 0. */
  public static long newId() {
    return Recipes.newId();
  }

  /** As {@link #add(ByteString)}. */
  public long add(String value) {
    return add(Recipes.utf8(value));
  }

  /** Adds a value at the end, and returns its id, which is new. */
  public long add(ByteString value) {
    Item item = new Item(newId(), value);
    add(item);
    return item.id();
  }

  /** The same with an id of the caller's. */
  public void add(Item item) {
    append(record(item), false);
  }

  /** Removes an item. An id that is not in the list is fine. */
  public void remove(long id) {
    try {
      append(ByteString.copyFrom(record(REMOVED, REMOVED_BYTES, id).flip()), true);
    } catch (TimecacheException e) {
      if (!e.is(ErrorReason.KEY_NOT_FOUND)) {
        throw e;
      }
    }
  }

  /** What it holds; nothing, where there is no entry. */
  public Contents read() {
    Optional<Entry> entry = client.get(key);
    Contents contents = fold(entry.map(Entry::value).orElse(ByteString.EMPTY));
    return new Contents(
        contents.items,
        entry.map(Entry::version).orElse(0L),
        contents.storedBytes,
        contents.compactBytes);
  }

  /**
   * Reads the list, lets {@code change} change it, and stores it if the entry has not changed
   * meanwhile; otherwise starts again, up to 16 times: then ABORTED. {@code change} may be called
   * several times, and gives new items an id by {@link #newId}.
   */
  public void update(Consumer<List<Item>> change) {
    rewrite(change, renew);
  }

  /**
   * Rewrites the entry without removed items; keeps its deadline. Worth the transfer when
   * storedBytes is a multiple of compactBytes. ABORTED as in {@code update}.
   */
  public void compact() {
    rewrite(items -> {}, false);
  }

  /** Decodes an entry's value, as that of an event. DATA_LOSS: it is no array. */
  public static Contents fold(ByteString value) {
    List<Item> items = new ArrayList<>(); // With null for those that were removed.
    Map<Long, Integer> places = new HashMap<>();
    ByteBuffer bytes = Recipes.read(value);
    while (bytes.hasRemaining()) {
      int begin = bytes.position();
      byte kind = bytes.get();
      boolean isAdded = kind == ADDED;
      if ((!isAdded && kind != REMOVED)
          || bytes.remaining() < (isAdded ? ADDED_BYTES : REMOVED_BYTES) - 1) {
        throw noArray(value, begin);
      }
      long id = bytes.getLong();
      int size = isAdded ? bytes.getInt() : 0;
      if (size < 0 || size > bytes.remaining()) {
        throw noArray(value, begin);
      }
      int at = bytes.position();
      bytes.position(at + size);
      Integer place = places.putIfAbsent(id, items.size());
      // Later records of a removed id are repetitions of earlier calls.
      if (place == null) {
        items.add(isAdded ? new Item(id, value.substring(at, at + size)) : null);
      } else if (!isAdded) {
        items.set(place, null);
      }
    }
    items.removeIf(Objects::isNull);
    int compactBytes = items.stream().mapToInt(item -> ADDED_BYTES + item.value.size()).sum();
    return new Contents(List.copyOf(items), 0, value.size(), compactBytes);
  }

  private void append(ByteString record, boolean onlyIfPresent) {
    AppendOptions options = new AppendOptions();
    if (ttl != null) {
      options = options.ttl(ttl);
    }
    if (onlyIfPresent) {
      options = options.ifPresent();
    } else if (renew) {
      options = options.touch();
    }
    // A record that comes twice is folded once.
    TimecacheClient repeatable = client.repeatable();
    try {
      repeatable.append(key, record, options);
    } catch (TimecacheException e) {
      if (!e.is(ErrorReason.VALUE_TOO_LARGE)) {
        throw e;
      }
      compact();
      repeatable.append(key, record, options);
    }
  }

  private void rewrite(Consumer<List<Item>> change, boolean renews) {
    for (int i = 0; i < MAX_TRIES; ++i) {
      Contents contents = read();
      boolean exists = contents.version != 0;
      List<Item> items = new ArrayList<>(contents.items);
      change.accept(items);
      if (!exists && items.isEmpty()) {
        return;
      }
      PutOptions options = new PutOptions();
      options = exists ? options.ifVersion(contents.version) : options.ifAbsent();
      if (exists && !renews) {
        options = options.keepDeadline();
      } else if (ttl != null) {
        options = options.ttl(ttl);
      }
      try {
        client.put(key, ByteString.copyFrom(items.stream().map(Array::record).toList()), options);
        return;
      } catch (TimecacheException e) {
        if (!Recipes.isPreconditionFailed(e)) {
          throw e;
        }
      }
    }
    throw TimecacheException.notApplied(
        Status.Code.ABORTED,
        String.format(
            "the array \"%s\" was changed %d times while it was to be rewritten",
            key.toStringUtf8(), MAX_TRIES));
  }

  private static ByteString record(Item item) {
    ByteBuffer header = record(ADDED, ADDED_BYTES, item.id).putInt(item.value.size());
    return ByteString.copyFrom(header.flip()).concat(item.value);
  }

  private static ByteBuffer record(byte kind, int size, long id) {
    return Recipes.allocate(size).put(kind).putLong(id);
  }

  private static TimecacheException noArray(ByteString value, int at) {
    return TimecacheException.notApplied(
        Status.Code.DATA_LOSS,
        "the value is no array: byte " + at + " of " + value.size() + " begins no whole record");
  }
}
