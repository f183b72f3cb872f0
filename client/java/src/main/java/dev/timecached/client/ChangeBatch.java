package dev.timecached.client;

import com.google.protobuf.ByteString;
import dev.timecached.v1.WatchChangesResponse;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/**
 * What has changed in one namespace. What is not said here is as in {@link WatchBatch}.
 *
 * @param namespace the one that this is about
 * @param changes may be empty: a heartbeat. Those of one key are in their order
 * @param watermark every change from at or before this moment has come, or is counted in {@code
 *     lost}
 * @param lost changes that this watch missed
 * @param resumeToken for {@link WatchOptions#resume} of a later watch on changes. Good until the
 *     server stops
 * @param reconnected whether this is the namespace's first batch after a break
 * @param logChanged whether this is the first batch of another log
 * @param missedAfter with {@code logChanged}: what changed after this moment may be lost
 */
public record ChangeBatch(
    String namespace,
    List<ChangeEvent> changes,
    Instant watermark,
    long lost,
    ByteString resumeToken,
    boolean reconnected,
    boolean logChanged,
    Optional<Instant> missedAfter) {

  static ChangeBatch of(WatchChangesResponse answer) {
    return new ChangeBatch(
        answer.getNamespace(),
        answer.getChangesList().stream().map(ChangeEvent::of).toList(),
        Times.fromProto(answer.getWatermark()),
        answer.getLost(),
        answer.getResumeToken(),
        false,
        false,
        Optional.empty());
  }

  ChangeBatch after(boolean reconnected, boolean logChanged, Instant missedAfter) {
    return new ChangeBatch(
        namespace,
        changes,
        watermark,
        lost,
        resumeToken,
        reconnected,
        logChanged,
        Optional.ofNullable(missedAfter));
  }
}
