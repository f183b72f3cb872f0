import com.google.protobuf.ByteString;
import dev.timecached.client.Entry;
import dev.timecached.client.ExpiredEvent;
import dev.timecached.client.PutOptions;
import dev.timecached.client.RemoveOptions;
import dev.timecached.client.TimecacheClient;
import dev.timecached.client.TimecacheException;
import dev.timecached.client.Times;
import dev.timecached.client.Watch;
import dev.timecached.client.WatchOptions;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.NamespaceOptions;
import java.time.Duration;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.function.UnaryOperator;

/**
 * Sessions that end half an hour after they were last used, and are heard of when they do. Each
 * read renews a session, as the namespace is sliding; changes are lost to no one, as they say which
 * version they change.
 *
 * <p>Argument: the server's address. On a server with --virtual-clock it moves the clock on by
 * itself.
 */
public final class SessionStore {
  private static final Duration IDLE_TIME = Duration.ofMinutes(30);

  private final TimecacheClient sessions;

  private SessionStore(TimecacheClient client) {
    sessions = client.in("sessions");
  }

  private String create(String user) {
    String id = UUID.randomUUID().toString();
    sessions.put(id, user, new PutOptions().ifAbsent());
    return id;
  }

  private Optional<String> load(String id) {
    return sessions.get(id).map(Entry::valueUtf8);
  }

  /** False if the session has ended. Tries again where another has changed it meanwhile. */
  private boolean change(String id, UnaryOperator<String> change) {
    while (true) {
      Optional<Entry> entry = sessions.get(id);
      if (entry.isEmpty()) {
        return false;
      }
      String changed = change.apply(entry.get().valueUtf8());
      try {
        sessions.put(id, changed, new PutOptions().ifVersion(entry.get().version()));
        return true;
      } catch (TimecacheException e) {
        if (!e.is(ErrorReason.VERSION_MISMATCH) && !e.is(ErrorReason.KEY_NOT_FOUND)) {
          throw e;
        }
      }
    }
  }

  private Optional<String> logOut(String id) {
    RemoveOptions options = new RemoveOptions().returnPrevious();
    return sessions.remove(ByteString.copyFromUtf8(id), options).previous().map(Entry::valueUtf8);
  }

  public static void main(String[] args) throws InterruptedException {
    try (TimecacheClient client = TimecacheClient.connect(args[0])) {
      try {
        client.createNamespace(
            "sessions",
            NamespaceOptions.newBuilder()
                .setTtl(Times.toProto(IDLE_TIME))
                .setSliding(true)
                .build());
      } catch (TimecacheException e) {
        if (!e.is(ErrorReason.NAMESPACE_EXISTS)) {
          throw e;
        }
      }
      SessionStore store = new SessionStore(client);
      CountDownLatch stands = new CountDownLatch(1);
      CountDownLatch ended = new CountDownLatch(1);
      try (Watch watch =
          store.sessions.watch(
              new WatchOptions(),
              batch -> {
                stands.countDown();
                for (ExpiredEvent event : batch.events()) {
                  System.out.println("timed out: " + event.valueUtf8());
                  ended.countDown();
                }
              })) {
        stands.await();
        String ann = store.create("ann");
        String bob = store.create("bob");
        store.change(ann, value -> value + ", 1 book");
        advance(client, Duration.ofMinutes(20));
        System.out.println("still here: " + store.load(ann).orElseThrow());
        advance(client, Duration.ofMinutes(20));
        ended.await();
        System.out.println("bob is " + (store.load(bob).isPresent() ? "here" : "gone"));
        System.out.println("logged out: " + store.logOut(ann).orElseThrow());
      }
    }
  }

  private static void advance(TimecacheClient client, Duration by) throws InterruptedException {
    try {
      client.virtualClock().advance(by);
    } catch (TimecacheException e) {
      Thread.sleep(by.toMillis());
    }
  }
}
