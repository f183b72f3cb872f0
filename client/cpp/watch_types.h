// What a Watcher takes and gives: plain structs. Times are absolute and on the
// server's clock unless said otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace timecache::inline client {

// Why an entry died.
enum class ExpiryCause {
  kUnknown,  // A cause that this client is too old to know.
  kExpired,  // Its time was up.
  kEvicted,  // The namespace was full; may come before the deadline.
  kRotated,  // Its bucket was killed by hand; may come before the deadline.
};

// An entry that died.
struct ExpiredEvent {
  std::string ns;  // The namespace it lived in.
  std::string key;
  std::string value;  // Empty with keys_only.
  // Tells a re-put of the same key from the value that died.
  uint64_t version = 0;
  absl::Time put_time;
  absl::Time deadline;
  absl::Time death_time;    // From here on no reader saw it.
  absl::Time delivered_at;  // When the server handed it to the stream.
  ExpiryCause cause = ExpiryCause::kUnknown;
};

// Where a watch, or a watch after a break, starts.
enum class WatchStart {
  kNow,       // With what dies from then on.
  kEarliest,  // With the oldest event that is still retained.
};

struct WatchOptions {
  // 1 to 64 namespaces. Empty: the client's.
  std::vector<std::string> namespaces = {};
  WatchStart start = WatchStart::kNow;
  std::string key_prefix = {};  // At most 4 KiB. Empty: all keys.
  bool keys_only = false;       // Leave the values out.
  // Longest time between two batches of one namespace, on the server's clock:
  // 10 ms to 1 h. Unset: 1 s.
  std::optional<absl::Duration> heartbeat_interval = {};

  // Where to start after a break. kNow: what died during the break is missed.
  // kEarliest: what is retained of it comes; what came before the break is
  // dropped, but events of its very moment may come twice (same version, same
  // death_time).
  WatchStart restart = WatchStart::kNow;
  // Keep trying when the first attempt finds no server, too. Off: Next then
  // ends with UNAVAILABLE, so that a wrong address is told at once.
  bool wait_for_server = false;
  // Pauses between attempts to reconnect: doubled from the one to the other,
  // each shortened at random by up to half.
  absl::Duration min_pause = absl::Milliseconds(100);
  absl::Duration max_pause = absl::Seconds(5);
  // A stream that brings nothing for this long, on this machine's clock, is
  // taken for broken: several heartbeat_intervals are a good value. Off by
  // default, because a virtual clock that stands still has no heartbeats; a
  // connection that is dead is noticed within 40 s anyhow
  // (client/cpp/channel.h).
  absl::Duration silence_max = absl::InfiniteDuration();
  // Told of every break and of every attempt that fails, on the thread that is
  // in Next, before the pause.
  std::function<void(const absl::Status& why)> on_break = {};
};

// What died in one namespace, in order of death.
struct WatchBatch {
  std::string ns;
  std::vector<ExpiredEvent> events;  // May be empty: a heartbeat.
  // Everything of this namespace that died at or before this moment, and passes
  // the filter, has come, or is counted in `lost`, or fell into a break. Never
  // goes back, but after a break with restart = kEarliest.
  absl::Time watermark;
  // Events that this watch missed since the namespace's last batch, before any
  // filter, because it read too slowly.
  uint64_t lost = 0;
  // Whether this is the namespace's first batch after a break: events that died
  // between `missed_after` and this batch may be missing, in number unknown.
  bool reconnected = false;
  // The namespace's last watermark before the break; absl::InfinitePast() if
  // there was none. Meaningful only with `reconnected`.
  absl::Time missed_after = absl::InfinitePast();
};

}  // namespace timecache::inline client
