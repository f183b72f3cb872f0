// Namespaces as the client describes them: plain structs. Ranges and defaults
// are those of proto/timecache/v1/namespaces.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace timecache {

// What to do with a put that would pass max_entries or max_bytes.
enum class LimitPolicy {
  kReject,       // Refuse it: RESOURCE_EXHAUSTED.
  kEvictOldest,  // Kill the bucket that would die next, until the put fits.
};

// What a namespace survives; see the enum in namespaces.proto. All but kMemory
// need a journal in the server.
enum class Durability {
  kMemory,  // Nothing: it ends with the process.
  kAsync,   // A crash of the process; a loss of power takes at most 100 ms.
  kSync,    // A loss of power, too.
};

// What a restart of the server means for the entries of a durable namespace;
// see the enum in namespaces.proto.
enum class RestartPolicy {
  kFire,   // What was due meanwhile dies at start.
  kPause,  // The time for which the server was down does not count.
};

// How a namespace behaves. Unset: the default where one is made, no change
// where one is updated; in an answer of a server all are set.
struct NamespaceOptions {
  // Time to live of an entry that brings none of its own. 1 ms to 10 years.
  // Default 30 s.
  std::optional<absl::Duration> ttl = {};
  // Time buckets that ttl is divided into, plus the one that is dying: an entry
  // lives at most ttl / (num_buckets - 1) too long. 2 to 100,000, and so that
  // this is at least 100 us. Default 101.
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
  // What happens at these two. Default kReject.
  std::optional<LimitPolicy> limit_policy = {};
  // Largest value. 1 B to 16 MiB. Default 1 MiB.
  std::optional<uint32_t> max_value_bytes = {};
  // How long an event stays readable for watches that start at kEarliest: 0 to
  // 7 days, default 5 min; and the memory for such events: 1 MiB to 64 GiB,
  // default 64 MiB.
  std::optional<absl::Duration> event_retention = {};
  std::optional<uint64_t> event_retention_bytes = {};
  // Parts of the map with a lock of their own: a power of two from 1 to 256,
  // fixed at creation. Default 16.
  std::optional<uint32_t> num_shards = {};
  // Where events of consumer groups go that were given out max_attempts times.
  // Empty: nowhere. Default empty.
  std::optional<std::string> dead_letter_namespace = {};
  // Most operations a second. 0: no limit. Default 0.
  std::optional<uint32_t> max_operations_per_second = {};
  // Memory for the unsettled events of all consumer groups: 1 MiB to 64 GiB, or
  // 0, which stands for max_bytes + event_retention_bytes if max_bytes is set,
  // else for 256 MiB. Default 0.
  std::optional<uint64_t> max_backlog_bytes = {};
  // GroupOptions::unused_ttl of groups that their first member makes. Default 7
  // days.
  std::optional<absl::Duration> unused_group_ttl = {};
  // What it survives. kAsync and kSync may be changed into each other; whether
  // it is kMemory is fixed at creation. Default kMemory.
  std::optional<Durability> durability = {};
  // What a restart means for its entries. kPause needs kAsync or kSync. Default
  // kFire.
  std::optional<RestartPolicy> restart_policy = {};
};

// What a namespace holds and has done since it was made.
struct NamespaceStatistics {
  uint64_t entries = 0;       // Live.
  uint64_t bytes = 0;         // Of their keys and values.
  uint64_t memory_bytes = 0;  // Of the map, without retained events.
  uint64_t live_buckets = 0;  // Buckets with a live entry.
  uint64_t expired = 0;       // Entries whose time was up.
  uint64_t evicted = 0;       // Entries that died as the namespace was full.
  uint64_t rotated = 0;       // Entries that died in RotateNamespace.
  uint64_t events_retained = 0;
  uint64_t events_retained_bytes = 0;
  uint64_t watchers = 0;  // Streams.
  // Everything that died at or before this moment has been published.
  absl::Time watermark = {};
  // How late events were, from an entry's death to the publication of its event
  // and to its delivery to each watcher. The first two are upper bounds, from a
  // histogram with steps of a factor of two.
  absl::Duration lateness_p50 = {};
  absl::Duration lateness_p99 = {};
  absl::Duration lateness_max = {};
  // Events published later than one bucket width after their death.
  uint64_t bound_violations = 0;
  uint64_t rate_limited = 0;  // Operations beyond max_operations_per_second.
  uint64_t puts = 0;
  uint64_t hits = 0;    // Lookups (Get, Contains) that found an entry.
  uint64_t misses = 0;  // Lookups that found none.
  // That succeeded.
  uint64_t appends = 0;
  uint64_t combines = 0;
  uint64_t gathers = 0;
  // Events dropped before event_retention was over, for want of memory.
  uint64_t events_reclaimed = 0;
  uint64_t backlog_bytes = 0;  // Unsettled events of consumer groups.
  uint64_t backlog_limit_bytes = 0;
  uint64_t groups_expired = 0;  // Groups deleted after their unused_ttl.
};

struct Namespace {
  std::string name = {};
  NamespaceOptions options = {};
  std::optional<NamespaceStatistics> statistics = {};  // Where asked for.
  // ttl / (num_buckets - 1): the most that an entry may outlive its ttl.
  absl::Duration bucket_width = {};
};

}  // namespace timecache
