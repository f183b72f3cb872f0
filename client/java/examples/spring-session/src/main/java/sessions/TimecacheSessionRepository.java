package sessions;

import com.google.protobuf.ByteString;
import dev.timecached.client.Batch;
import dev.timecached.client.Codec;
import dev.timecached.client.Entry;
import dev.timecached.client.ExpiredEvent;
import dev.timecached.client.Operation;
import dev.timecached.client.PutOptions;
import dev.timecached.client.PutResult;
import dev.timecached.client.RemoveOptions;
import dev.timecached.client.TimecacheClient;
import dev.timecached.client.TimecacheException;
import dev.timecached.client.TouchOptions;
import dev.timecached.v1.ErrorReason;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import org.springframework.core.serializer.support.DeserializingConverter;
import org.springframework.core.serializer.support.SerializingConverter;
import org.springframework.session.SessionRepository;

/**
 * Sessions in a namespace of timecached, an entry each.
 *
 * <p>The entry's time to live is the session's maxInactiveInterval, and is renewed by each request;
 * its put time is the last access. A request that changes nothing sends no value, only a touch. One
 * that changes something says which version it has read: where another request was faster, its
 * attributes stay, and those of this one are put over them. A session that has ended, or was deleted,
 * does not come back by a request that still has it. Thread-safe.
 */
public final class TimecacheSessionRepository implements SessionRepository<TimecacheSession> {
  // As Spring's other repositories do: whoever may write to the namespace is trusted.
  private static final Codec<TimecacheSession.Content> CODEC =
      Codec.bytes(
          new SerializingConverter()::convert,
          bytes -> (TimecacheSession.Content) new DeserializingConverter().convert(bytes));

  private final TimecacheClient sessions;
  private final Duration maxInactiveInterval;

  /** {@code sessions}: of their namespace. {@code maxInactiveInterval}: of new ones. */
  public TimecacheSessionRepository(TimecacheClient sessions, Duration maxInactiveInterval) {
    this.sessions = sessions;
    this.maxInactiveInterval = maxInactiveInterval;
  }

  @Override
  public TimecacheSession createSession() {
    return new TimecacheSession(maxInactiveInterval, Instant.now());
  }

  @Override
  public TimecacheSession findById(String id) {
    // Whether the request renews it is said by its save.
    return sessions.getWithoutTouch(id).map(entry -> read(id, entry)).orElse(null);
  }

  private TimecacheSession read(String id, Entry entry) {
    return new TimecacheSession(
        id,
        entry.value(CODEC),
        entry.version(),
        entry.putTime(),
        entry.ownTtl().orElse(maxInactiveInterval));
  }

  /** The session of an event: with its attributes, unlike in stores that tell a key alone. */
  TimecacheSession ended(ExpiredEvent event) {
    return new TimecacheSession(
        event.keyUtf8(),
        event.value(CODEC),
        event.version(),
        event.putTime(),
        event.ownTtl().orElse(maxInactiveInterval));
  }

  @Override
  public void save(TimecacheSession session) {
    if (session.storedId == null) {
      PutOptions options = new PutOptions().ifAbsent().ttl(session.getMaxInactiveInterval());
      session.isStored(put(session, options).version());
    } else if (!session.storedId.equals(session.getId())) {
      move(session);
    } else if (!session.changes.isEmpty()) {
      change(session);
    } else if (session.wasAccessed || session.hasNewInterval) {
      sessions.touch(
          session.getId(), new TouchOptions().ttl(session.getMaxInactiveInterval()));
      session.isStored(session.version);
    }
  }

  private PutResult put(TimecacheSession session, PutOptions options) {
    return sessions.put(session.getId(), CODEC.encode(session.content()), options);
  }

  private void change(TimecacheSession session) {
    while (true) {
      PutOptions options =
          new PutOptions().ifVersion(session.version).ttl(session.getMaxInactiveInterval());
      try {
        session.isStored(put(session, options).version());
        return;
      } catch (TimecacheException e) {
        if (!e.is(ErrorReason.VERSION_MISMATCH) && !e.is(ErrorReason.KEY_NOT_FOUND)) {
          throw e;
        }
      }
      if (!rebase(session)) {
        return;
      }
    }
  }

  /** False: the session has ended. */
  private boolean rebase(TimecacheSession session) {
    TimecacheSession stored = findById(session.storedId);
    if (stored == null) {
      return false;
    }
    session.rebase(stored);
    return true;
  }

  /** Under its new id, and no more under the old one: both, or neither. */
  private void move(TimecacheSession session) {
    while (true) {
      Batch batch = new Batch().atomic();
      CompletableFuture<?> removed =
          batch.add(
              Operation.remove(session.storedId, new RemoveOptions().ifVersion(session.version)));
      CompletableFuture<PutResult> put =
          batch.add(
              Operation.put(
                  ByteString.copyFromUtf8(session.getId()),
                  CODEC.encode(session.content()),
                  new PutOptions().ifAbsent().ttl(session.getMaxInactiveInterval())));
      sessions.execute(batch);
      if (!removed.isCompletedExceptionally()) {
        session.isStored(put.join().version());
        return;
      }
      if (!rebase(session)) {
        return;
      }
    }
  }

  @Override
  public void deleteById(String id) {
    sessions.remove(id);
  }
}
