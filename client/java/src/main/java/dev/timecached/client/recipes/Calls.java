package dev.timecached.client.recipes;

import com.google.protobuf.ByteString;
import dev.timecached.client.CombineOptions;
import dev.timecached.client.Entry;
import dev.timecached.client.PutOptions;
import dev.timecached.client.TimecacheClient;
import dev.timecached.client.TimecacheException;
import dev.timecached.v1.ErrorReason;
import io.grpc.Status;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Supplier;

/** A rate limit, and an idempotency key. */
public final class Calls {
  private static final ByteString CALLS = Recipes.prefix("calls");
  private static final ByteString REQUEST = Recipes.prefix("request");

  /** Stands before each answer: a claim, which has none yet, is empty. */
  private static final ByteString ANSWERED = Recipes.utf8("=");

  private Calls() {}

  /** As {@link #mayCall(TimecacheClient, ByteString, long, Duration)}. */
  public static boolean mayCall(
      TimecacheClient client, String caller, long limit, Duration window) {
    return mayCall(client, Recipes.utf8(caller), limit, window);
  }

  /**
   * Whether this caller may call once more: {@code limit} times in a window, from all clients
   * together. The window begins with the caller's first call, and lasts a bucket width of the
   * namespace longer at most; calls that are refused do not make it longer. The count is the entry
   * {@code calls/CALLER} of the client's namespace, which must not be {@code sliding}.
   *
   * <p>One round trip, O(1). A call without an answer ({@link TimecacheException#maybeApplied}) may
   * have counted: decide whether to let it pass.
   */
  public static boolean mayCall(
      TimecacheClient client, ByteString caller, long limit, Duration window) {
    // The entry keeps the deadline of the first call.
    return client.add(CALLS.concat(caller), 1, new CombineOptions().ttl(window)).result() <= limit;
  }

  /** As {@link #answerOnce(TimecacheClient, ByteString, Duration, Duration, Supplier)}. */
  public static ByteString answerOnce(
      TimecacheClient client,
      String request,
      Duration workTime,
      Duration remembered,
      Supplier<ByteString> work) {
    return answerOnce(client, Recipes.utf8(request), workTime, remembered, work);
  }

  /**
   * The answer to a request, which is worked on once, however often it comes, and from whatever
   * client: later ones get the same answer for as long as it is remembered. It is the entry
   * {@code request/REQUEST} of the client's namespace. Two round trips for the first request, and
   * for later ones.
   *
   * @param workTime the longest duration of the work: after a crash a request is worked on again
   *     when it is over
   * @param remembered how long later requests get the same answer
   * @param work makes the answer, on the caller's thread; what it throws is thrown, and counts as a
   *     crash
   * @throws TimecacheException ABORTED: the request is being worked on, now or before a crash less
   *     than {@code workTime} ago; try again. A claim without an answer is such a crash.
   *     FAILED_PRECONDITION (KEY_NOT_FOUND, VERSION_MISMATCH): the work took longer than {@code
   *     workTime}, and may have been done again
   */
  public static ByteString answerOnce(
      TimecacheClient client,
      ByteString request,
      Duration workTime,
      Duration remembered,
      Supplier<ByteString> work) {
    ByteString key = REQUEST.concat(request);
    OptionalLong claim = claim(client, key, workTime);
    if (claim.isEmpty()) {
      Optional<ByteString> value = client.get(key).map(Entry::value);
      if (value.isEmpty() || value.get().isEmpty()) {
        throw TimecacheException.notApplied(Status.Code.ABORTED, "the request is being worked on");
      }
      return value.get().substring(ANSWERED.size());
    }
    ByteString answer = work.get();
    PutOptions options = new PutOptions().ttl(remembered).ifVersion(claim.getAsLong());
    client.put(key, ANSWERED.concat(answer), options);
    return answer;
  }

  /** Empty: another has claimed it. */
  private static OptionalLong claim(TimecacheClient client, ByteString key, Duration workTime) {
    try {
      PutOptions options = new PutOptions().ttl(workTime).ifAbsent();
      return OptionalLong.of(client.put(key, ByteString.EMPTY, options).version());
    } catch (TimecacheException e) {
      if (e.is(ErrorReason.KEY_EXISTS)) {
        return OptionalLong.empty();
      }
      throw e;
    }
  }
}
