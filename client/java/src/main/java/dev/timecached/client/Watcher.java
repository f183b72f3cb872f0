package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.ConsumeExpiredRequest;
import dev.timecached.v1.TimeCacheServiceGrpc;
import dev.timecached.v1.WatchExpiredRequest;
import dev.timecached.v1.WatchExpiringRequest;
import java.time.Duration;
import java.time.Instant;
import java.util.Iterator;
import java.util.Optional;

/**
 * A watch on the deaths in one or more namespaces.
 *
 * <p>Reconnects by itself, and goes on behind the last batch that {@code next} has returned: every
 * event comes exactly once, or is counted in {@code lost}. Only where there is nothing to go on
 * with, as a server without a journal was restarted or the namespace made anew, does it begin anew,
 * with the oldest event that is retained; it then says {@code logChanged}. To go on in another
 * process, store each batch's resume token once it is handled.
 *
 * <p>A break is: UNAVAILABLE, a stream that the server closed in good order (it stops) or reset
 * (ENHANCE_YOUR_CALM), a connection that is lost, {@link WatchOptions#silenceMax}, or, once, a message larger than the
 * channel takes. So is UNAUTHENTICATED where {@link TimecacheClientBuilder#tokenFile} now holds
 * another token than the one that was refused, as when tokens are replaced; that one is tried at
 * once, and only once; and, but for the first attempt, where the file cannot be read: it may hold
 * one later. Anything else that the server says ends the watch: NOT_FOUND (no such namespace or
 * group, or deleted meanwhile), INVALID_ARGUMENT, PERMISSION_DENIED, RESOURCE_EXHAUSTED
 * (MAX_WATCHERS) at the first attempt, and with {@link WatchOptions#failOnLoss} a loss. So does,
 * with CANCELLED, a client that is closed.
 *
 * <p>In a group, or with a lead time, there is no place to go on from: what was given and not
 * settled is given out again, what is going to die is told again.
 *
 * <p>{@code next} by one thread at a time; {@code close} by any. Holds at most two unread messages
 * (about 1 MiB each, more only for a larger value): who reads slowly is held up by flow control,
 * and finally told by {@code lost}. Has no thread of its own.
 */
public final class Watcher extends ResumingWatch<WatchBatch> {
  Watcher(Rpc rpc, String namespace, WatchOptions options) {
    super(rpc, namespace, options);
    options.check();
  }

  /**
   * The next batch. The first one of each namespace comes at once: from then on the watch stands,
   * and every later death there will be seen.
   *
   * @throws TimecacheException CANCELLED after close, or if the thread is interrupted, which does
   *     not end the watch; any other error is the watch's end, and every later call throws the same
   */
  @Override
  public WatchBatch next() {
    return super.next();
  }

  /** The next batch, or nothing if none comes within the timeout: the watch goes on then. */
  @Override
  public Optional<WatchBatch> next(Duration timeout) {
    return super.next(timeout);
  }

  /** The batches to come, until the watcher is closed. Throws what ends the watch otherwise. */
  @Override
  public Iterator<WatchBatch> iterator() {
    return super.iterator();
  }

  /** Ends the watch: a {@code next} that waits throws CANCELLED, as does every later one. */
  @Override
  public void close() {
    super.close();
  }

  /** Begins where the last stream has ended. */
  @Override
  Stream<?, ?> begin() {
    if (options.leadTime != null) {
      WatchExpiringRequest.Builder request =
          WatchExpiringRequest.newBuilder()
              .addAllNamespaces(namespaces)
              .setLeadTime(Times.toProto(options.leadTime))
              .setKeyPrefix(options.prefix)
              .setKeysOnly(options.keysOnly)
              .setMaxMessageBytes(maxMessageBytes);
      if (options.heartbeat != null) {
        request.setHeartbeatInterval(Times.toProto(options.heartbeat));
      }
      return new Stream<>(
          TimeCacheServiceGrpc.getWatchExpiringMethod(),
          request.build(),
          answer ->
              WatchBatch.of(
                  answer.getNamespace(),
                  answer.getEventsList(),
                  answer.getWatermark(),
                  0,
                  ByteString.EMPTY));
    }
    if (options.group != null) {
      ConsumeExpiredRequest.Builder request =
          ConsumeExpiredRequest.newBuilder()
              .addAllNamespaces(namespaces)
              .setGroup(options.group)
              // One that has to be made again leaves nothing out.
              .setStart(start(established || options.fromEarliest))
              .setKeysOnly(options.keysOnly)
              .setMaxMessageBytes(maxMessageBytes);
      if (options.maxInFlight != null) {
        request.setMaxInFlight(options.maxInFlight);
      }
      if (options.heartbeat != null) {
        request.setHeartbeatInterval(Times.toProto(options.heartbeat));
      }
      return new Stream<>(
          TimeCacheServiceGrpc.getConsumeExpiredMethod(),
          request.build(),
          answer ->
              WatchBatch.of(
                  answer.getNamespace(),
                  answer.getEventsList(),
                  answer.getWatermark(),
                  answer.getLost(),
                  ByteString.EMPTY)
                  .withDelivered(answer.getDeliveredWatermark()));
    }
    WatchExpiredRequest.Builder request =
        WatchExpiredRequest.newBuilder()
            .addAllNamespaces(namespaces)
            .setKeyPrefix(options.prefix)
            .setKeysOnly(options.keysOnly)
            .setFailOnLoss(options.failOnLoss)
            .setStart(start(beginsEarliest()))
            .addAllResumeTokens(resumeTokens())
            .setMaxMessageBytes(maxMessageBytes);
    if (options.heartbeat != null) {
      request.setHeartbeatInterval(Times.toProto(options.heartbeat));
    }
    return new Stream<>(
        TimeCacheServiceGrpc.getWatchExpiredMethod(),
        request.build(),
        answer ->
            WatchBatch.of(
                answer.getNamespace(),
                answer.getEventsList(),
                answer.getWatermark(),
                answer.getLost(),
                answer.getResumeToken()));
  }

  @Override
  Mark mark(WatchBatch batch) {
    return new Mark(batch.namespace(), batch.watermark(), batch.resumeToken());
  }

  @Override
  WatchBatch after(
      WatchBatch batch, boolean reconnected, boolean logChanged, Instant missedAfter) {
    return batch.after(reconnected, logChanged, missedAfter);
  }
}
