// What a Watcher takes and gives: plain structs. Times are absolute and on the
// server's clock unless said otherwise.
#pragma once

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
  kRotated,   // Its bucket was killed by hand; may come before the deadline.
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
  // Tells a re-put of the same key from the value that died.
  uint64_t version = 0;
  absl::Time put_time;
  absl::Time deadline;
  absl::Time death_time;    // From here on no reader saw it.
  absl::Time delivered_at;  // When the server handed it to the stream.
  ExpiryCause cause = ExpiryCause::kUnknown;
  // In a consumer group only: what names the event in a Settlement, and how
  // often it has been given out, this time included.
  uint64_t event_id = 0;
  uint32_t attempt = 0;
  // In place of a value, where the key collected the parts of a Gather: those
  // that came, and what was expected.
  std::optional<GatheredParts> parts = {};
};

enum class WatchStart {
  kNow,       // With what dies from then on.
  kEarliest,  // With the oldest event that is still retained.
};

// A watch tells what died; with `group`, a member's share of that; with
// `lead_time`, what is going to die. Where options are given that do not go
// together, the first Next ends it with INVALID_ARGUMENT.
struct WatchOptions {
  // 1 to 64 namespaces. Empty: the client's.
  std::vector<std::string> namespaces = {};
  // Where it starts in namespaces without a resume token. With `group`: where a
  // group starts that is not there yet, and is made by this.
  WatchStart start = WatchStart::kNow;
  // By namespace, where an earlier watch has stopped, of this process or
  // another: WatchBatch::resume_token of the last batch that it has handled.
  std::map<std::string, std::string> resume_tokens = {};
  std::string key_prefix = {};  // At most 4 KiB. Empty: all keys.
  bool keys_only = false;       // Leave the values out.
  // Longest time between two batches of one namespace, on the server's clock:
  // 10 ms to 1 h. Unset: 1 s.
  std::optional<absl::Duration> heartbeat_interval = {};
  // End where events are lost: with OUT_OF_RANGE (reason RESUME_POINT_TRIMMED)
  // in place of a batch with `lost`, with FAILED_PRECONDITION (LOG_CHANGED) or
  // OUT_OF_RANGE (RESUME_POINT_AHEAD) in place of one with `log_changed`.
  bool fail_on_loss = false;
  // Tell what is going to die within this time, in time to Touch it, with the
  // cause kExpiring: 1 ms to 10 years. What was told before a break may be told
  // again after it, under the same version and deadline. Not together with
  // group, resume_tokens, fail_on_loss, start. Unset: tell what died.
  std::optional<absl::Duration> lead_time = {};
  // Be a member of this consumer group: every event must be settled, by
  // Client::Settle. timecache/group_worker.h does all that by itself. Not
  // together with key_prefix, resume_tokens, fail_on_loss.
  std::string group = {};
  // Most events of each namespace that this member holds unsettled: 1 to
  // 65,536. Unset: 1,000. Only with `group`.
  std::optional<uint32_t> max_in_flight = {};
  // Largest message that the client's channel takes, at least 4 MiB; a value
  // that does not fit is left out. Unset: what channels of timecache/channel.h
  // take, which is larger than any value. A watch whose channel turns out to
  // take less goes on with 4 MiB.
  std::optional<uint32_t> max_message_bytes = {};

  // Keep trying when the first attempt finds no server, too. Off: Next then
  // ends with UNAVAILABLE, so that a wrong address is told at once.
  bool wait_for_server = false;
  // Pauses between attempts to reconnect: doubled from the one to the other,
  // each shortened at random by up to half.
  absl::Duration min_pause = absl::Milliseconds(100);
  absl::Duration max_pause = absl::Seconds(1);
  // A stream that brings nothing for this long, on this machine's clock, is
  // taken for broken: several heartbeat_intervals are a good value. Off by
  // default, because a virtual clock that stands still has no heartbeats; a
  // connection that is dead is noticed within 40 s anyhow
  // (timecache/channel.h).
  absl::Duration silence_max = absl::InfiniteDuration();
  // Told of every break and of every attempt that fails, on the thread that is
  // in Next, before the pause. May Cancel the watch.
  std::function<void(const absl::Status& why)> on_break = {};
};

// What died in one namespace, in order of death.
struct WatchBatch {
  std::string ns;
  std::vector<ExpiredEvent> events;  // May be empty: a heartbeat.
  // Everything of this namespace that died at or before this moment, and passes
  // the filter, has come, or is counted in `lost`. Never goes back, not over a
  // break either, but with log_changed. In a group: all of that has been
  // settled, too. With lead_time: all that was in the map at this moment, and
  // going to die within lead_time, has been told.
  absl::Time watermark;
  // Events that this watch missed since the namespace's last batch, or its
  // resume token, before any filter: exact. It read too slowly, or was away for
  // longer than they are retained. In a group: that the group lost.
  uint64_t lost = 0;
  // How many of the events come without a value that did not fit.
  uint64_t omitted_values = 0;
  // For WatchOptions::resume_tokens: brings a later watch behind this batch. To
  // be stored when the batch has been handled. At most 128 B. Good until the
  // namespace is deleted, or the server stops and the namespace is not durable;
  // see log_changed. Empty in a group and with lead_time.
  std::string resume_token;
  // Whether this is the namespace's first batch after a break. For information:
  // what died meanwhile is in this batch and the next ones.
  bool reconnected = false;
  // Whether this is the first batch from another log: the server was restarted,
  // or the namespace deleted and made again. The watch goes on with the oldest
  // event of that log; what the old one still had to tell, about deaths after
  // `missed_after`, is lost, in number unknown.
  bool log_changed = false;
  // With log_changed: the namespace's last watermark of the old log;
  // absl::InfinitePast() if this watch had none.
  absl::Time missed_after = absl::InfinitePast();
};

}  // namespace timecache
