// Namespaces as the client describes them: plain structs. Ranges and defaults
// are those of proto/timecache/v1/namespaces.proto.

#ifndef TIMECACHE_NAMESPACE_TYPES_H_
#define TIMECACHE_NAMESPACE_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace timecache {

// What to do with a put that would exceed max_entries or max_bytes.
enum class LimitPolicy {
  kReject,       // Refuse it: RESOURCE_EXHAUSTED.
  kEvictOldest,  // Kill the bucket that would die next, until the put fits.
};

// Which failures a namespace survives; see the enum in namespaces.proto. All
// but kMemory need a journal in the server.
enum class Durability {
  kMemory,      // None: it ends with the process.
  kAsync,       // A crash of the process; a power loss loses at most 100 ms.
  kSync,        // A loss of power, too.
  kReplicated,  // The loss of a machine; only in a cluster.
};

// What a restart of the server means for the entries of a durable namespace;
// see the enum in namespaces.proto.
enum class RestartPolicy {
  kFire,   // Entries that were due meanwhile die at start.
  kPause,  // The time for which the server was down does not count.
};

// How a namespace behaves. Unset: the default when it is created, no change
// when it is updated; in a response all are set.
struct NamespaceOptions {
  // Time to live of an entry that is put without its own. 1 ms to 10 years.
  // Default 30 s.
  std::optional<absl::Duration> ttl = {};
  // Time buckets that ttl is divided into, plus the one that is dying: an entry
  // lives at most ttl / (num_buckets - 1) longer than its ttl. 2 to 100,000,
  // such that this is at least 100 us. Default 101.
  std::optional<uint32_t> num_buckets = {};
  // Longest own time to live of an entry. ttl to 10 years. Default 7 days, or
  // ttl if that is longer.
  std::optional<absl::Duration> max_ttl = {};
  // Whether Get renews the time to live. Default false.
  std::optional<bool> sliding = {};
  // Most live entries, and most bytes of their keys and values. 0: no limit.
  // Default 0.
  std::optional<uint64_t> max_entries = {};
  std::optional<uint64_t> max_bytes = {};
  // What happens at these two limits. Default kReject.
  std::optional<LimitPolicy> limit_policy = {};
  // Largest value. 1 B to 16 MiB. Default 1 MiB.
  std::optional<uint32_t> max_value_bytes = {};
  // How long an event stays readable for watches that start at kEarliest: 0 to
  // 7 days, default 5 min; and the memory for such events: 1 MiB to 64 GiB,
  // default 64 MiB.
  std::optional<absl::Duration> event_retention = {};
  std::optional<uint64_t> event_retention_bytes = {};
  // Number of parts of the namespace, each with its own lock: a power of two
  // from 1 to 256, fixed at creation. Default 16.
  std::optional<uint32_t> num_shards = {};
  // The namespace for events of consumer groups that were delivered
  // max_attempts times. Empty: none. Default empty.
  std::optional<std::string> dead_letter_namespace = {};
  // Most operations a second. 0: no limit. Default 0.
  std::optional<uint32_t> max_operations_per_second = {};
  // Memory for the unsettled events of all consumer groups: 1 MiB to 64 GiB, or
  // 0, which stands for max_bytes + event_retention_bytes if max_bytes is set,
  // else for 256 MiB. Default 0.
  std::optional<uint64_t> max_backlog_bytes = {};
  // GroupOptions::unused_ttl of groups that their first member creates. Default
  // 7 days.
  std::optional<absl::Duration> unused_group_ttl = {};
  // Which failures it survives. kAsync and kSync may be changed into each
  // other; whether it is kMemory is fixed at creation. Default kMemory.
  std::optional<Durability> durability = {};
  // What a restart means for its entries. kPause needs another durability than kMemory. Default
  // kFire.
  std::optional<RestartPolicy> restart_policy = {};
  // Longest life of an entry since its create_time, whatever renews it or is put
  // over it. ttl to 10 years, or 0: no bound. Default 0.
  std::optional<absl::Duration> max_life = {};
  // How long the answer to a call with an idempotency_id is remembered: 0, no
  // call may have one, or 1 ms to 7 days. Default 0. And how many answers are,
  // 150 B each: 1,000 to 1,000,000. Default 100,000.
  std::optional<absl::Duration> idempotency_window = {};
  std::optional<uint64_t> idempotency_max_ids = {};
  // How long puts, renewals and removals stay readable (WatchOptions::changes): 0,
  // they are not kept, or 1 ms to 7 days. Default 0. And in how much memory:
  // 1 MiB to 64 GiB. Default 64 MiB.
  std::optional<absl::Duration> change_retention = {};
  std::optional<uint64_t> change_retention_bytes = {};
  // Number of partitions, each with entries, events and groups of its own, and a
  // share of the limits: 1 to 64, fixed at creation. Keys of an atomic batch must
  // be in one: those with the same text in {}, as order:{42} and lock:{42}, are.
  // Default: the server's default_partitions, 1.
  std::optional<uint32_t> num_partitions = {};
};

// Which deaths GetDeaths counts, and how finely.
struct DeathsOptions {
  // Most bars: 1 to 1,000. 0: 60.
  uint32_t max_bars = 0;
  // Only what dies within this time from now is in bars. 1 ms to 10 years.
  // Unset: all.
  std::optional<absl::Duration> within = {};
};

// Entries that die after `begin`, and at or before `end`.
struct DeathBar {
  absl::Time begin = {};
  absl::Time end = {};
  uint64_t entries = 0;
  uint64_t bytes = 0;  // Of their keys and values.
};

// What dies when, unless it is renewed, removed or put anew until then.
struct DeathsAhead {
  absl::Time server_time = {};  // What lives now is counted.
  // In order of time, of equal length, from the next death on.
  std::vector<DeathBar> bars = {};
  // What dies after the last bar.
  uint64_t later_entries = 0;
  uint64_t later_bytes = 0;
};

// What a namespace holds and has done since it was created.
// A key that is used much: estimates by a sample.
struct HotKey {
  std::string key;
  double reads_per_second = 0;   // Operations that change nothing.
  double writes_per_second = 0;  // Others.
  uint64_t value_bytes = 0;      // When a value was last seen.
};

struct HotKeys {
  std::vector<HotKey> keys = {};     // The most used first.
  absl::Duration window = {};        // The time that the sample covers.
  uint64_t sampled = 0;              // Operations in it.
  double operations_per_second = 0;  // All of the namespace.
};

struct NamespaceStatistics {
  uint64_t entries = 0;       // Live.
  uint64_t bytes = 0;         // Of their keys and values.
  uint64_t memory_bytes = 0;  // Of the map, without retained events.
  uint64_t live_buckets = 0;  // Buckets with a live entry.
  uint64_t expired = 0;       // Entries whose time was up.
  uint64_t evicted = 0;       // Entries that died because it was full.
  uint64_t rotated = 0;       // Entries that died in RotateNamespace.
  uint64_t events_retained = 0;
  uint64_t events_retained_bytes = 0;
  uint64_t watchers = 0;  // Streams.
  // Every entry that died at or before this moment has been published.
  absl::Time watermark = {};
  // How late events were, from an entry's death to the publication of its event
  // and to its delivery to each watcher. The first two are upper bounds, from a
  // histogram with steps of a factor of two.
  absl::Duration lateness_p50 = {};
  absl::Duration lateness_p99 = {};
  absl::Duration lateness_max = {};
  // Events published later than one bucket width after their death.
  uint64_t bound_violations = 0;
  // Of `expired`, the entries that were due while the server was down: their
  // lateness is in none of the above.
  uint64_t expired_while_down = 0;
  uint64_t rate_limited = 0;  // Operations beyond max_operations_per_second.
  uint64_t puts = 0;
  uint64_t hits = 0;    // Lookups (Get, Contains) that found an entry.
  uint64_t misses = 0;  // Lookups that found none.
  // Those that succeeded.
  uint64_t appends = 0;
  uint64_t combines = 0;
  uint64_t gathers = 0;
  // Changes that a watch from kEarliest would read now, and their memory.
  uint64_t changes_retained = 0;
  uint64_t changes_retained_bytes = 0;
  // Events dropped before event_retention was over, because memory ran short.
  uint64_t events_reclaimed = 0;
  uint64_t backlog_bytes = 0;  // Unsettled events of consumer groups.
  uint64_t backlog_limit_bytes = 0;
  uint64_t groups_expired = 0;  // Groups deleted after their unused_ttl.
};

struct Namespace {
  std::string name = {};
  NamespaceOptions options = {};
  std::optional<NamespaceStatistics> statistics = {};  // If asked for.
  // ttl / (num_buckets - 1): the longest time by which an entry may outlive its
  // ttl.
  absl::Duration bucket_width = {};
  // Of a create or an update: what is allowed and probably not meant, a
  // sentence each, for people.
  std::vector<std::string> warnings = {};
};

}  // namespace timecache

#endif  // TIMECACHE_NAMESPACE_TYPES_H_
