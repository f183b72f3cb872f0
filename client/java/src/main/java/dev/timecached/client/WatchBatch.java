package dev.timecached.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/**
 * What died in one namespace, in order of death.
 *
 * @param namespace the one that this is about
 * @param events may be empty: a heartbeat
 * @param watermark everything of this namespace that died at or before this moment, and passes the
 *     filter, has come, or is counted in {@code lost}. Never goes back, but with {@code
 *     logChanged}. In a group: all of that has been settled, too. With a lead time: all that was in
 *     the map at this moment, and going to die within it, has been told
 * @param lost events that this watch missed since the namespace's last batch, or its resume token:
 *     exact, with a prefix an upper bound. It read too slowly, or was away for longer than they
 *     are retained. In a group: that the group lost
 * @param resumeToken for {@link WatchOptions#resume}: brings a later watch behind this batch. To be
 *     stored when the batch has been handled. At most 128 B. Empty in a group and with a lead time
 * @param reconnected whether this is the namespace's first batch after a break. For information:
 *     what died meanwhile is in this batch and the next ones
 * @param logChanged whether this is the first batch of another log: the server was restarted
 *     without a journal, or the namespace deleted and made again. The watch goes on with the oldest
 *     event of that log; what the old one still had to tell is lost, in number unknown
 * @param missedAfter with {@code logChanged}: what died after this moment, the namespace's last
 *     watermark of the old log, may be lost; empty if this watch had none
 * @param delivered in a group: everything of this namespace that died at or before this moment has
 *     been given to a member, in this batch or an earlier one of any member, or is settled, or
 *     counted in {@code lost}: nothing more comes from before it, but for attempts that fail. Goes
 *     back only where the group is moved. Empty while no moment is known, and otherwise
 */
public record WatchBatch(
    String namespace,
    List<ExpiredEvent> events,
    Instant watermark,
    long lost,
    ByteString resumeToken,
    boolean reconnected,
    boolean logChanged,
    Optional<Instant> missedAfter,
    Optional<Instant> delivered) {

  static WatchBatch of(
      String namespace,
      List<dev.timecached.v1.ExpiredEvent> events,
      Timestamp watermark,
      long lost,
      ByteString resumeToken) {
    return new WatchBatch(
        namespace,
        events.stream().map(ExpiredEvent::of).toList(),
        Times.fromProto(watermark),
        lost,
        resumeToken,
        false,
        false,
        Optional.empty(),
        Optional.empty());
  }

  WatchBatch after(boolean reconnected, boolean logChanged, Instant missedAfter) {
    return new WatchBatch(
        namespace,
        events,
        watermark,
        lost,
        resumeToken,
        reconnected,
        logChanged,
        Optional.ofNullable(missedAfter),
        delivered);
  }

  /** 1970 stands for no moment. */
  WatchBatch withDelivered(Timestamp moment) {
    boolean isKnown = moment.getSeconds() != 0 || moment.getNanos() != 0;
    return new WatchBatch(
        namespace,
        events,
        watermark,
        lost,
        resumeToken,
        reconnected,
        logChanged,
        missedAfter,
        isKnown ? Optional.of(Times.fromProto(moment)) : Optional.empty());
  }
}
