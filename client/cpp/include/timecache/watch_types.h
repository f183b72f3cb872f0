// A Watcher's parameters and results: plain structs. Times are absolute and on
// the server's clock unless said otherwise.

#ifndef TIMECACHE_WATCH_TYPES_H_
#define TIMECACHE_WATCH_TYPES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "timecache/gathered_parts.h"

namespace timecache {

// Why an entry died.
enum class ExpiryCause {
  kUnknown,   // A cause that this client is too old to know.
  kExpired,   // Its time was up.
  kEvicted,   // The namespace was full; may come before the deadline.
  kRotated,   // RotateNamespace killed it; may come before the deadline.
  kExpiring,  // It is not dead: its time will be up at death_time (lead_time).
};

// An entry that died.
struct ExpiredEvent {
  std::string ns;  // The namespace it lived in.
  std::string key;
  std::string value;  // Empty with keys_only.
  // The size of a value that was left out because the event does not fit into
  // WatchOptions::max_message_bytes. Otherwise 0.
  uint64_t omitted_value_bytes = 0;
  // Distinguishes the value that died from later puts of the same key.
  uint64_t version = 0;
  absl::Time put_time;
  absl::Time deadline;
  absl::Time death_time;    // No reader saw it from then on.
  absl::Time delivered_at;  // When the server handed it to the stream.
  ExpiryCause cause = ExpiryCause::kUnknown;
  // In a consumer group only: the event's number, for people to read, and the
  // number of this attempt, from 1. Attempts that ended by kNack, or were not
  // settled in time, count.
  uint64_t event_id = 0;
  uint32_t attempt = 0;
  // In place of a value, if the key collected the parts of a Gather: the
  // collected parts, and the expected ones.
  std::optional<GatheredParts> parts = {};
  // As in Entry.
  absl::Time create_time = {};
  std::optional<absl::Duration> own_ttl = {};
  // In a consumer group only: how often the stream of a member that held the
  // event has ended before the member settled it. Such deliveries are no
  // attempts.
  uint32_t returns = 0;
  // In a consumer group only: names this delivery in its Settlement. Opaque; at
  // most 32 B.
  std::string delivery_token = {};
  // In a consumer group only: what the kNack of the last attempt that counted gave
  // as its reason.
  std::string last_reason = {};
  // See PutOptions. Empty: none.
  std::string traceparent = {};
};

// What has happened to an entry.
enum class ChangeKind {
  kUnknown,  // A kind that this client is too old to know.
  kPut,      // It has a new value: a Put, Append, Combine, Gather or put back.
  kRenewed,  // It has a new deadline, and the value that it had.
  // It is gone before its time: a Remove, a Combine that came to 0, a Gather that
  // is complete.
  kRemoved,
};

// A change of an entry.
struct ChangeEvent {
  std::string ns;  // Its namespace.
  ChangeKind kind = ChangeKind::kUnknown;
  std::string key;
  // With kPut: its value now. Empty with keys_only. Or the parts that it has
  // collected for a Gather.
  std::string value;
  std::optional<GatheredParts> parts = {};
  // As in ExpiredEvent.
  uint64_t omitted_value_bytes = 0;
  uint64_t version = 0;  // Its version now; with kRemoved its last one.
  // Its deadline now. Unset with kRemoved.
  std::optional<absl::Time> deadline = {};
  // When it happened: the order of the changes of one key, but not of several.
  absl::Time time;
};

enum class WatchStart {
  kNow,       // With the entries that die, or change, from then on.
  kEarliest,  // With the oldest retained event.
};

// A watch delivers the entries that died; with `group`, a member's share of
// these; with `lead_time`, entries that are about to die; with `changes`, those
// that were put, renewed or removed. With options that
// exclude each other the first Next returns INVALID_ARGUMENT.
struct WatchOptions {
  // 1 to 64 namespaces. Empty: the client's.
  std::vector<std::string> namespaces = {};
  // Where it starts in namespaces without a resume token. With `group`: where a
  // group that this watch creates starts.
  WatchStart start = WatchStart::kNow;
  // By namespace, where an earlier watch stopped, in this process or another:
  // WatchBatch::resume_token of the last batch that was handled.
  std::map<std::string, std::string> resume_tokens = {};
  std::string key_prefix = {};  // At most 4 KiB. Empty: all keys.
  bool keys_only = false;       // Leave the values out.
  // Longest time between two batches of one namespace, on the server's clock:
  // 10 ms to 1 h. Unset: 1 s.
  std::optional<absl::Duration> heartbeat_interval = {};
  // End when events are lost: with OUT_OF_RANGE (reason RESUME_POINT_TRIMMED)
  // instead of a batch with `lost`, with FAILED_PRECONDITION (LOG_CHANGED) or
  // OUT_OF_RANGE (RESUME_POINT_AHEAD) instead of one with `log_changed`.
  bool fail_on_loss = false;
  // Deliver entries that are to die within this time, in time to Touch them,
  // with the cause kExpiring: 1 ms to 10 years. An entry delivered before a
  // break may be delivered again after it, with the same version and deadline.
  // Not together with group, resume_tokens, fail_on_loss, start. Unset: deliver
  // entries that died.
  std::optional<absl::Duration> lead_time = {};
  // Join this consumer group: every event must be settled, by Client::Settle.
  // timecache/group_worker.h does all that. Not together with key_prefix,
  // resume_tokens, fail_on_loss.
  std::string group = {};
  // Deliver changes in place of deaths, as WatchBatch::changes: of namespaces that
  // keep them (NamespaceOptions::change_retention); others end the watch with
  // FAILED_PRECONDITION (NO_CHANGES), also if they stop to keep them. Not together
  // with group, lead_time.
  bool changes = false;
  // Most events of each namespace that this member holds unsettled: 1 to
  // 65,536. Unset: 1,000. Only with `group`.
  std::optional<uint32_t> max_in_flight = {};
  // Largest message that the client's channel accepts, at least 4 MiB; a value
  // that does not fit is left out. Unset: the limit of the channels of
  // timecache/channel.h, which is larger than any value. A watch whose channel
  // turns out to accept less continues with 4 MiB.
  std::optional<uint32_t> max_message_bytes = {};

  // Keep trying even if the first attempt finds no server. Off: Next then
  // returns UNAVAILABLE, so that a wrong address is reported at once.
  bool wait_for_server = false;
  // Pauses between attempts to reconnect, doubling from the first to the
  // second, each shortened at random by up to half.
  absl::Duration min_pause = absl::Milliseconds(100);
  absl::Duration max_pause = absl::Seconds(1);
  // A stream without a message for this long, on this machine's clock, counts
  // as broken: several heartbeat_intervals are a good value. The default is 10
  // s, or 4 heartbeat_intervals if that is longer, for a client with several
  // addresses. With one it is off, because a virtual clock that stands still
  // has no heartbeats; a dead connection is detected within 40 s in any case
  // (timecache/channel.h).
  absl::Duration silence_max = absl::InfiniteDuration();
  // Called after every break and every failed attempt, on the thread that is in
  // Next, before the pause. May Cancel the watch.
  std::function<void(const absl::Status& why)> on_break = {};
};

// The entries that died in one namespace, in order of death.
struct WatchBatch {
  std::string ns;
  std::vector<ExpiredEvent> events;  // May be empty: a heartbeat.
  // In place of these with WatchOptions::changes, each once; those of one key in
  // their order. What is said of events below goes for them.
  std::vector<ChangeEvent> changes = {};
  // Every entry of this namespace that died at or before this moment, and
  // passes the filter, has been delivered, or is counted in `lost`. Never goes
  // back, not even across a break, except with log_changed. In a group: every
  // such entry has been settled, too. With lead_time: all entries that were
  // live at this moment, and were to die within lead_time, have been delivered.
  absl::Time watermark;
  // In a group only: every such entry has been delivered to a member at least
  // once, or is settled or lost. A batch comes as soon as it is past the last death
  // of the group's, also without events.
  absl::Time delivered_watermark = absl::UnixEpoch();
  // Events that this watch missed since the namespace's last batch, or its
  // resume token: exact, with a key_prefix an upper bound. The watch read too
  // slowly, or was disconnected for longer than the events are retained. In a group: events
  // that the group lost.
  uint64_t lost = 0;
  // How many of the events are without their value because it did not fit.
  uint64_t omitted_values = 0;
  // For WatchOptions::resume_tokens: a later watch with it continues after this
  // batch. Store it when the batch has been handled. At most 128 B, or 2 KiB of
  // a namespace of several partitions. Valid until the namespace is deleted, or
  // the server stops and the namespace is not durable; see log_changed. Empty in
  // a group and with lead_time.
  std::string resume_token;
  // Whether this is the namespace's first batch after a break. For information
  // only: the events of the meantime are in this batch and the next ones.
  bool reconnected = false;
  // Whether this is the first batch from another log: the server was restarted,
  // or the namespace deleted and created again. The watch continues with the
  // oldest event of that log; the undelivered events of the old one, about
  // deaths after `missed_after`, are lost; their number is unknown.
  bool log_changed = false;
  // With log_changed: the namespace's last watermark of the old log;
  // absl::InfinitePast() if this watch had none.
  absl::Time missed_after = absl::InfinitePast();
};

// Client::FetchExpired.
struct FetchOptions {
  // Where a group that this call creates starts.
  WatchStart start = WatchStart::kNow;
  std::optional<uint32_t> max_events = {};  // 1 to 8,192. Unset: 100.
  // How long the server waits for the first event, on its own clock: up to 1 min.
  // The call's timeout is longer by this, unless CallOptions has one. Unset: not
  // at all.
  std::optional<absl::Duration> wait = {};
  bool keys_only = false;                          // Leave the values out.
  std::optional<uint32_t> max_message_bytes = {};  // As in WatchOptions.
};

// Events that the caller is to settle.
struct FetchedEvents {
  std::vector<ExpiredEvent> events = {};  // May be empty.
  // As in WatchBatch, of a group.
  absl::Time watermark = {};
  absl::Time delivered_watermark = {};
  uint64_t lost = 0;
  uint64_t omitted_values = 0;
};

}  // namespace timecache

#endif  // TIMECACHE_WATCH_TYPES_H_
