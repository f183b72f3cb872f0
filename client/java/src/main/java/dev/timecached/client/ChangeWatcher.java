package dev.timecached.client;

import dev.timecached.v1.TimeCacheServiceGrpc;
import dev.timecached.v1.WatchChangesRequest;
import java.time.Duration;
import java.time.Instant;
import java.util.Iterator;
import java.util.Optional;

/**
 * A watch on the puts, renewals and removals in one or more namespaces that keep them, by their
 * change_retention: for caches beside the client, indexes, audits. What dies is not among them: see
 * {@link Watcher}.
 *
 * <p>Each change comes once, or is counted in {@code lost}; those of one key in their order. It
 * reconnects, goes on and ends as a {@link Watcher}; a namespace that keeps no changes ends it with
 * FAILED_PRECONDITION (NO_CHANGES). Changes are in the server's memory whatever the namespace's
 * durability: after its restart the first batch says {@code logChanged}, and the whole namespace
 * may have to be read.
 *
 * <p>{@code next} by one thread at a time; {@code close} by any.
 */
public final class ChangeWatcher extends ResumingWatch<ChangeBatch> {
  ChangeWatcher(Rpc rpc, String namespace, WatchOptions options) {
    super(rpc, namespace, options);
    options.checkForChanges();
  }

  /** The next batch, as {@link Watcher#next()}. */
  @Override
  public ChangeBatch next() {
    return super.next();
  }

  /** The next batch, or nothing if none comes within the timeout: the watch goes on then. */
  @Override
  public Optional<ChangeBatch> next(Duration timeout) {
    return super.next(timeout);
  }

  /** The batches to come, until the watcher is closed. Throws what ends the watch otherwise. */
  @Override
  public Iterator<ChangeBatch> iterator() {
    return super.iterator();
  }

  /** Ends the watch: a {@code next} that waits throws CANCELLED, as does every later one. */
  @Override
  public void close() {
    super.close();
  }

  @Override
  Stream<?, ?> begin() {
    WatchChangesRequest.Builder request =
        WatchChangesRequest.newBuilder()
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
        TimeCacheServiceGrpc.getWatchChangesMethod(), request.build(), ChangeBatch::of);
  }

  @Override
  Mark mark(ChangeBatch batch) {
    return new Mark(batch.namespace(), batch.watermark(), batch.resumeToken());
  }

  @Override
  ChangeBatch after(
      ChangeBatch batch, boolean reconnected, boolean logChanged, Instant missedAfter) {
    return batch.after(reconnected, logChanged, missedAfter);
  }
}
