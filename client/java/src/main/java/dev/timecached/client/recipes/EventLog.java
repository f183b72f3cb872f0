package dev.timecached.client.recipes;

import com.google.protobuf.ByteString;
import dev.timecached.client.AppendOptions;
import dev.timecached.client.Batch;
import dev.timecached.client.Entry;
import dev.timecached.client.Operation;
import dev.timecached.client.TimecacheClient;
import dev.timecached.client.TimecacheException;
import dev.timecached.v1.ErrorReason;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * A log of recent events, written and read by many clients, in chunks of time: the entry NAME/N of
 * the client's namespace has those from N x chunk on, and lives for chunks x chunk. An old chunk
 * expires as any entry; a watch on {@code keyPrefix} archives it ({@code decode}).
 *
 * <pre>{@code
 * EventLog log = new EventLog(client, "audit", Duration.ofMinutes(1), 61);
 * log.append(Instant.now(), "alice logged in");
 * EventLog.Page lastHour = log.read(Instant.now().minusSeconds(3600), Instant.now());
 * }</pre>
 *
 * <p>Guarantee: an event can be read for at least (chunks - 1) x chunk after its time, if it is
 * appended at its time: the clocks of the writers and of the server must agree; their difference
 * shortens this time. Each event comes once, also if {@code append} was repeated. {@code readNew}
 * gives each event that is appended at most one chunk after its time exactly once, in whatever
 * order writers are; later ones only {@code read} gives.
 *
 * <p>An append without an answer may have happened. The client repeats it where its connection was
 * lost; after another error append the same {@link Event} again: readers recognise it by its id.
 *
 * <p>Errors: FAILED_PRECONDITION (VALUE_TOO_LARGE): a chunk has room for the namespace's
 * max_value_bytes; take shorter chunks, or several logs. The namespace's max_ttl must be at least
 * chunks x chunk. DATA_LOSS: the value of a chunk's key is none.
 *
 * <p>Cost: {@code append} is one round trip, and sends the event and 20 B. Reading transfers whole
 * chunks, as many as fit into a response (3 MiB) for each round trip; so {@code readNew} transfers
 * at least two chunks. Immutable and thread-safe.
 */
public final class EventLog {
  /** Of an event before its data: the id, the time in microseconds, the data's length. */
  private static final int HEADER_BYTES = 20;

  /** An offset behind every event of a chunk. */
  private static final long ALL_OF_IT = Long.MAX_VALUE;

  private static final int MAX_OPERATIONS = 4096;

  /**
   * What has happened.
   *
   * @param time with a resolution of 1 us
   * @param data may be empty
   * @param id identifies it: from {@link #newId}
   */
  public record Event(Instant time, ByteString data, long id) {}

  /**
   * A reader's position: plain numbers, which may be stored.
   *
   * @param chunk the newest one that was read
   * @param offset bytes of it that were read
   * @param previousOffset the same of the chunk before
   */
  public record Position(long chunk, long offset, long previousOffset) {}

  /**
   * What was read.
   *
   * @param events of {@code read} by time; of {@code readNew} by chunk and, within one, by arrival
   * @param mayHaveMissed requested events may have expired
   * @param position of {@code readNew}: behind the events; else empty
   */
  public record Page(List<Event> events, boolean mayHaveMissed, Optional<Position> position) {}

  private final TimecacheClient client;
  private final ByteString prefix;
  private final long chunkMicros;
  private final int chunks;

  /**
   * A log of this name.
   *
   * @param chunk the period that the events of one entry cover, at least 1 ms
   * @param chunks how many of them are kept, 2 to 4,096
   */
  public EventLog(TimecacheClient client, String name, Duration chunk, int chunks) {
    this.client = client;
    this.chunks = chunks;
    prefix = Recipes.prefix(name);
    chunkMicros = chunk.toNanos() / 1000;
  }

  /** Random, not 0. */
  public static long newId() {
    return Recipes.newId();
  }

  /** As {@link #append(Event)}, with a new id. */
  public void append(Instant time, String data) {
    append(new Event(time, Recipes.utf8(data), newId()));
  }

  /** Appends an event. */
  public void append(Event event) {
    long micros = micros(event.time);
    ByteBuffer header = Recipes.allocate(HEADER_BYTES);
    header.putLong(event.id).putLong(micros).putInt(event.data.size()).flip();
    ByteString record = ByteString.copyFrom(header).concat(event.data);
    Duration ttl = Duration.of(chunkMicros, ChronoUnit.MICROS).multipliedBy(chunks);
    client.repeatable().append(key(chunkOf(micros)), record, new AppendOptions().ttl(ttl));
  }

  /**
   * The events from {@code from} on, before {@code to}. mayHaveMissed: {@code from} is more than
   * (chunks - 1) x chunk before {@code to}.
   */
  public Page read(Instant from, Instant to) {
    if (!from.isBefore(to)) {
      return new Page(List.of(), false, Optional.empty());
    }
    long last = chunkOf(micros(to.minusNanos(1)));
    long oldest = last - chunks + 1;
    long begin = chunkOf(micros(from));
    List<Event> events = new ArrayList<>();
    for (ByteString value : get(Math.max(begin, oldest - 1), last)) {
      decode(value, 0, events);
    }
    events.removeIf(event -> event.time.isBefore(from) || !event.time.isBefore(to));
    events.sort(Comparator.comparing(Event::time));
    return new Page(events, begin < oldest, Optional.empty());
  }

  /** The position from which {@code readNew} starts with the events of this time's chunk. */
  public Position positionAt(Instant time) {
    return new Position(chunkOf(micros(time)), 0, ALL_OF_IT);
  }

  /**
   * The events since a position, up to the chunk of {@code now}, and the position behind them.
   * mayHaveMissed: the last call was more than (chunks - 1) x chunk ago.
   */
  public Page readNew(Position position, Instant now) {
    long last = Math.max(chunkOf(micros(now)), position.chunk);
    long oldest = last - chunks + 1;
    // A chunk more may still live, and the one before the position's may have got late events.
    long first = Math.max(position.chunk - 1, oldest - 1);
    ByteString[] values = get(first, last);
    List<Event> events = new ArrayList<>();
    for (int i = 0; i < values.length; ++i) {
      long chunk = first + i;
      long offset = chunk == position.chunk ? position.offset : 0;
      decode(values[i], chunk == position.chunk - 1 ? position.previousOffset : offset, events);
    }
    long previous = values.length < 2 ? 0 : values[values.length - 2].size();
    Position next = new Position(last, values[values.length - 1].size(), previous);
    return new Page(events, position.chunk < oldest, Optional.of(next));
  }

  /** The events in a chunk's value, as that of an event. DATA_LOSS: it is no chunk. */
  public static List<Event> decode(ByteString value) {
    List<Event> events = new ArrayList<>();
    decode(value, 0, events);
    return events;
  }

  /** What the keys of its chunks begin with: for the prefix of a watch. */
  public ByteString keyPrefix() {
    return prefix;
  }

  /** The events of which a byte lies behind {@code offset}. */
  private static void decode(ByteString value, long offset, List<Event> events) {
    Set<Long> ids = new HashSet<>();
    ByteBuffer bytes = Recipes.read(value);
    while (bytes.hasRemaining()) {
      int at = bytes.position();
      int begin = at + HEADER_BYTES;
      int size = begin <= value.size() ? bytes.getInt(begin - Integer.BYTES) : -1;
      if (size < 0 || size > value.size() - begin) {
        throw TimecacheException.notApplied(
            Status.Code.DATA_LOSS,
            String.format(
                "the value is no chunk of events: byte %d of %d begins no whole one",
                at, value.size()));
      }
      long id = bytes.getLong();
      Instant time = Instant.EPOCH.plus(bytes.getLong(), ChronoUnit.MICROS);
      bytes.position(begin + size);
      // Repeated events were read the first time.
      if (ids.add(id) && at >= offset) {
        events.add(new Event(time, value.substring(begin, begin + size), id));
      }
    }
  }

  private static long micros(Instant time) {
    return Math.addExact(
        Math.multiplyExact(time.getEpochSecond(), 1_000_000L), time.getNano() / 1000);
  }

  private long chunkOf(long micros) {
    return Math.floorDiv(micros, chunkMicros);
  }

  private ByteString key(long chunk) {
    return prefix.concat(Recipes.utf8(Long.toString(chunk)));
  }

  /** The values of these chunks; empty for missing ones. */
  private ByteString[] get(long first, long last) {
    ByteString[] values = new ByteString[Math.toIntExact(last - first + 1)];
    Arrays.fill(values, ByteString.EMPTY);
    List<Integer> wanted = new ArrayList<>();
    for (int i = 0; i < values.length; ++i) {
      wanted.add(i);
    }
    while (!wanted.isEmpty()) {
      List<Integer> asked = wanted.subList(0, Math.min(wanted.size(), MAX_OPERATIONS));
      Batch batch = new Batch();
      List<CompletableFuture<Optional<Entry>>> results =
          asked.stream().map(i -> batch.add(Operation.get(key(first + i)))).toList();
      client.repeatable().execute(batch);
      // What does not fit into this response fits into a later one: each has one at least.
      List<Integer> left = new ArrayList<>();
      for (int i = 0; i < asked.size(); ++i) {
        try {
          values[asked.get(i)] = results.get(i).join().map(Entry::value).orElse(ByteString.EMPTY);
        } catch (CompletionException e) {
          TimecacheException why = (TimecacheException) e.getCause();
          if (!why.is(ErrorReason.MAX_RESPONSE_BYTES)) {
            throw why;
          }
          left.add(asked.get(i));
        }
      }
      left.addAll(wanted.subList(asked.size(), wanted.size()));
      wanted = left;
    }
    return values;
  }
}
