package sessions;

import java.io.Serializable;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.springframework.session.Session;

/** A session, and what has changed in it since it was read. For one thread, as a request has it. */
public final class TimecacheSession implements Session {
  /** What is stored of a session; the entry has its times. */
  record Content(Instant creationTime, HashMap<String, Object> attributes)
      implements Serializable {
    private static final long serialVersionUID = 1;
  }

  private String id;
  private final Instant creationTime;
  private final Map<String, Object> attributes;
  private Instant lastAccessedTime;
  private Duration maxInactiveInterval;

  String storedId; // Null: it is new.
  long version; // Of the entry that was read or written last.
  final Map<String, Object> changes = new HashMap<>(); // Null: removed.
  boolean hasNewInterval;
  boolean wasAccessed;

  /** A new one. */
  TimecacheSession(Duration maxInactiveInterval, Instant now) {
    id = UUID.randomUUID().toString();
    creationTime = now;
    attributes = new HashMap<>();
    lastAccessedTime = now;
    this.maxInactiveInterval = maxInactiveInterval;
  }

  /** One that was read. */
  TimecacheSession(
      String id,
      Content content,
      long version,
      Instant lastAccessedTime,
      Duration maxInactiveInterval) {
    this.id = id;
    storedId = id;
    creationTime = content.creationTime();
    attributes = content.attributes();
    this.version = version;
    this.lastAccessedTime = lastAccessedTime;
    this.maxInactiveInterval = maxInactiveInterval;
  }

  Content content() {
    return new Content(creationTime, new HashMap<>(attributes));
  }

  /** Takes what another request has stored, with the changes of this one in it. */
  void rebase(TimecacheSession stored) {
    version = stored.version;
    attributes.clear();
    attributes.putAll(stored.attributes);
    changes.forEach(this::apply);
  }

  private void apply(String name, Object value) {
    if (value == null) {
      attributes.remove(name);
    } else {
      attributes.put(name, value);
    }
  }

  /** After it was stored. */
  void isStored(long version) {
    this.version = version;
    storedId = id;
    changes.clear();
    hasNewInterval = false;
    wasAccessed = false;
  }

  @Override
  public String getId() {
    return id;
  }

  @Override
  public String changeSessionId() {
    id = UUID.randomUUID().toString();
    return id;
  }

  @Override
  @SuppressWarnings("unchecked")
  public <T> T getAttribute(String name) {
    return (T) attributes.get(name);
  }

  @Override
  public Set<String> getAttributeNames() {
    return Set.copyOf(attributes.keySet());
  }

  @Override
  public void setAttribute(String name, Object value) {
    apply(name, value);
    changes.put(name, value);
  }

  @Override
  public void removeAttribute(String name) {
    setAttribute(name, null);
  }

  @Override
  public Instant getCreationTime() {
    return creationTime;
  }

  /** Spring says so in each request. The server notes it when the session is saved. */
  @Override
  public void setLastAccessedTime(Instant time) {
    lastAccessedTime = time;
    wasAccessed = true;
  }

  @Override
  public Instant getLastAccessedTime() {
    return lastAccessedTime;
  }

  /**
   * How long it lives unused: up to the namespace's max_ttl.
   *
   * @throws IllegalArgumentException for a session that is never to end
   */
  @Override
  public void setMaxInactiveInterval(Duration interval) {
    if (interval.isNegative() || interval.isZero()) {
      throw new IllegalArgumentException("a session of timecached ends some day");
    }
    hasNewInterval |= !interval.equals(maxInactiveInterval);
    maxInactiveInterval = interval;
  }

  @Override
  public Duration getMaxInactiveInterval() {
    return maxInactiveInterval;
  }

  /** The server does not give out a session that has ended. */
  @Override
  public boolean isExpired() {
    return false;
  }
}
