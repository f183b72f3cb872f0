package dev.timecached.client.recipes;

import com.google.protobuf.ByteString;
import dev.timecached.client.ExpiredEvent;
import dev.timecached.client.GatherOptions;
import dev.timecached.client.GatheredParts;
import dev.timecached.client.Operation;
import dev.timecached.client.TimecacheClient;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * Joins tuples of several sources that have the same id, as Storm's SingleJoinBolt; the tuples of
 * an id wait in the entry NAME/ID of the client's namespace.
 *
 * <pre>{@code
 * Join join = new Join(client, "people", "gender", "age");
 * join.add("7", "gender", "female"); // Nothing yet.
 * Optional<Join.Row> row = join.add("7", "age", "42"); // Its tuples are female, 42.
 * }</pre>
 *
 * <p>Guarantee: each id ends in exactly one of two ways. It is complete: the row is returned to
 * exactly one call, the one that added the last tuple. Or it has failed by time-out: one event has
 * the tuples that arrived ({@link #incomplete}). A tuple that arrives after the end starts a new
 * row of the id, which fails alone.
 *
 * <p>Errors: ALREADY_EXISTS (PART_EXISTS): this source has added another tuple for the id, which is
 * kept. The same one again is fine, and changes nothing. FAILED_PRECONDITION (GATHER_MISMATCH): a
 * join of this name has other sources.
 *
 * <p>An add without an answer may have happened: add it again. If it completed the row, then the
 * row was lost with the response, and the repetition fails alone, by time-out; so an application
 * that must not lose a row keeps its tuples until the row is handled, as with an {@link Acker}.
 *
 * <p>Cost: one round trip for a tuple, less in a pipeline; O(its size) and, for the last one, O(the
 * row's). A waiting row takes its tuples, the names of all sources, and about 40 B: use short
 * names. Immutable and thread-safe.
 */
public final class Join {
  /**
   * A row.
   *
   * @param id what its tuples have in common
   * @param tuples one of each source, in the order of the sources
   */
  public record Row(ByteString id, List<ByteString> tuples) {}

  /**
   * A row that was not complete in time.
   *
   * @param id what its tuples have in common
   * @param tuples in the order of the sources; empty: it has not arrived
   */
  public record Incomplete(ByteString id, List<Optional<ByteString>> tuples) {}

  private final TimecacheClient client;
  private final ByteString prefix;
  private final List<ByteString> sources;
  private final GatherOptions options;

  /**
   * A join of this name. An id waits for its last tuple for the namespace's time to live.
   *
   * @param sources the streams: 1 to 1,024 different names of 1 to 256 B, the same of all joins of
   *     one name
   */
  public Join(TimecacheClient client, String name, String... sources) {
    this(client, name, List.of(sources).stream().map(Recipes::utf8).toList());
  }

  /** As {@link #Join(TimecacheClient, String, String...)}. */
  public Join(TimecacheClient client, String name, List<ByteString> sources) {
    this(client, Recipes.prefix(name), List.copyOf(sources), GatherOptions.expect(sources));
  }

  private Join(
      TimecacheClient client, ByteString prefix, List<ByteString> sources, GatherOptions options) {
    this.client = client;
    this.prefix = prefix;
    this.sources = sources;
    this.options = options;
  }

  /** The same join, where an id waits this long for its last tuple, from its first one on. */
  public Join withTtl(Duration ttl) {
    return new Join(client, prefix, sources, options.ttl(ttl));
  }

  /** As {@link #id(ByteString...)}. */
  public static ByteString id(String... fields) {
    return id(List.of(fields).stream().map(Recipes::utf8).toArray(ByteString[]::new));
  }

  /** An id of several fields: two are equal only if all of their fields are. */
  public static ByteString id(ByteString... fields) {
    // Each behind its length, so that ("a", "bc") is not ("ab", "c").
    ByteString id = ByteString.EMPTY;
    for (ByteString field : fields) {
      id = id.concat(Recipes.utf8(field.size() + ":")).concat(field);
    }
    return id;
  }

  /** As {@link #add(ByteString, ByteString, ByteString)}. */
  public Optional<Row> add(String id, String source, String tuple) {
    return add(Recipes.utf8(id), Recipes.utf8(source), Recipes.utf8(tuple));
  }

  /** Adds a tuple. The row, if this tuple completes it. */
  public Optional<Row> add(ByteString id, ByteString source, ByteString tuple) {
    return client.call(operation(id, source, tuple));
  }

  /** The same for a batch or a pipeline. */
  public Operation<Optional<Row>> operation(ByteString id, ByteString source, ByteString tuple) {
    return Operation.gather(prefix.concat(id), source, tuple, options)
        .map(result -> result.parts().map(parts -> new Row(id, row(parts))));
  }

  /**
   * The row whose failure this event of a watch or group reports; empty for other keys. An eviction
   * or rotation fails a row, too.
   */
  public Optional<Incomplete> incomplete(ExpiredEvent event) {
    if (event.cause() == ExpiredEvent.Cause.EXPIRING || event.parts().isEmpty()) {
      return Optional.empty();
    }
    return Recipes.member(prefix, event.key())
        .map(id -> new Incomplete(id, sorted(event.parts().get())));
  }

  /** What the keys of its rows begin with: for the prefix of a watch. */
  public ByteString keyPrefix() {
    return prefix;
  }

  private List<ByteString> row(GatheredParts parts) {
    return sorted(parts).stream().map(tuple -> tuple.orElse(ByteString.EMPTY)).toList();
  }

  /** In the order of the sources. */
  private List<Optional<ByteString>> sorted(GatheredParts gathered) {
    return sources.stream()
        .map(
            source ->
                gathered.parts().stream()
                    .filter(part -> part.name().equals(source))
                    .findFirst()
                    .map(GatheredParts.Part::value))
        .toList();
  }
}
