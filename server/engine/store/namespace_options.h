// How a namespace behaves, and the arithmetic of its time buckets.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_NAMESPACE_OPTIONS_H_
#define TIMECACHED_SERVER_ENGINE_STORE_NAMESPACE_OPTIONS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/clock.h"
#include "server/base/range_check.h"
#include "server/base/rate_limit.h"

namespace timecache::server {

inline constexpr int64_t kMaxKeyBytes = 4 << 10;
inline constexpr int64_t kMaxValueBytesLimit = 16 << 20;
inline constexpr int64_t kMinTtlUs = 1'000;
inline constexpr int64_t kMaxTtlUs = int64_t{3650} * 86'400 * kMicrosPerSecond;
inline constexpr int64_t kMinBucketWidthUs = 100;
inline constexpr int kMinBuckets = 2;
inline constexpr int kMaxBuckets = 100'000;
inline constexpr int kMaxShards = 256;
inline constexpr int kMaxPartitions = 64;
inline constexpr int64_t kMaxRetentionUs =
    int64_t{7} * 86'400 * kMicrosPerSecond;
inline constexpr int64_t kMinRetentionBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxRetentionBytes = int64_t{64} << 30;
inline constexpr int64_t kMinBacklogBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxBacklogBytes = int64_t{64} << 30;
inline constexpr int64_t kMinUnusedTtlUs = kMicrosPerSecond;
inline constexpr int64_t kMaxIdempotencyWindowUs =
    int64_t{7} * 86'400 * kMicrosPerSecond;
inline constexpr int64_t kMinIdempotencyIds = 1'000;
inline constexpr int64_t kMaxIdempotencyIds = 1'000'000;

enum class LimitPolicy { kReject, kEvictOldest };

// Which failures a namespace's entries and events survive; see Durability in
// namespaces.proto.
enum class NamespaceDurability { kMemory, kAsync, kSync, kReplicated };

// See RestartPolicy in namespaces.proto.
enum class RestartPolicy { kFire, kPause };

// The options of a namespace. Ranges and meanings are those of NamespaceOptions
// in proto/timecache/v1/namespaces.proto; a limit of 0 is no limit.
struct NamespaceOptions {
  int64_t ttl_us = 30 * kMicrosPerSecond;
  int num_buckets = 101;
  int64_t max_ttl_us = int64_t{7} * 86'400 * kMicrosPerSecond;
  bool sliding = false;
  int64_t max_entries = 0;
  int64_t max_bytes = 0;
  LimitPolicy limit_policy = LimitPolicy::kReject;
  int64_t max_value_bytes = 1 << 20;
  int64_t retention_us = 300 * kMicrosPerSecond;
  int64_t retention_bytes = 64 << 20;
  int num_shards = 16;
  // The namespace for events that consumer groups deliver without success;
  // empty: none. Not the namespace itself.
  std::string dead_letter_namespace;
  int64_t max_operations_per_second = 0;
  // Limit of the memory of all consumer groups together; 0: see
  // BacklogLimitBytes.
  int64_t max_backlog_bytes = 0;
  // unused_ttl of groups that are created by their first member; 0: they stay.
  int64_t unused_group_ttl_us = int64_t{7} * 86'400 * kMicrosPerSecond;
  // Fixed between kMemory and the others when the namespace is created.
  NamespaceDurability durability = NamespaceDurability::kMemory;
  // kPause: only of one that is durable.
  RestartPolicy restart_policy = RestartPolicy::kFire;
  // Of an entry since it was created, however often it is renewed.
  int64_t max_life_us = 0;
  // How long answers to requests with an idempotency id are remembered; 0: there
  // are none. And how many.
  int64_t idempotency_window_us = 0;
  int64_t idempotency_max_ids = 100'000;
  // How long changes stay readable; 0: there are none. And in how many bytes.
  int64_t change_retention_us = 0;
  int64_t change_retention_bytes = 64 << 20;
  // See partitions.h. Fixed when the namespace is created.
  int num_partitions = 1;

  friend bool operator==(const NamespaceOptions&,
                         const NamespaceOptions&) = default;
};

// What an option may be: a duration in microseconds or a number, or a choice, up
// to its last value. Means nothing for flags and names.
struct OptionRange {
  int64_t least = 0;
  int64_t most = 0;
  bool is_duration = false;
};
// 0, or at least `least_us`.
inline OptionRange UnusedTtlRange(int64_t us) {
  return {us == 0 ? 0 : kMinUnusedTtlUs, kMaxTtlUs, true};
}

// Calls `visit(name, &field, range)` for each option, with its name in the
// proto: so the options are checked, read and written without another list of
// them. A number of the proto is an integer here, a Duration an int64_t, and a
// value of an enum one more than here, as it begins with UNSPECIFIED.
template <typename Options, typename Visit>
requires std::is_same_v<std::remove_const_t<Options>, NamespaceOptions>
void VisitOptions(Options* o, const Visit& visit) {
  const auto duration = [](int64_t least_us, int64_t most_us) {
    return OptionRange{least_us, most_us, true};
  };
  visit("ttl", &o->ttl_us, duration(kMinTtlUs, kMaxTtlUs));
  visit("num_buckets", &o->num_buckets, OptionRange{kMinBuckets, kMaxBuckets});
  visit("max_ttl", &o->max_ttl_us, duration(o->ttl_us, kMaxTtlUs));
  visit("sliding", &o->sliding, OptionRange{});
  visit("max_entries", &o->max_entries, OptionRange{0, INT64_MAX});
  visit("max_bytes", &o->max_bytes, OptionRange{0, INT64_MAX});
  visit("limit_policy", &o->limit_policy,
        OptionRange{0, static_cast<int64_t>(LimitPolicy::kEvictOldest)});
  visit("max_value_bytes", &o->max_value_bytes,
        OptionRange{1, kMaxValueBytesLimit});
  visit("event_retention", &o->retention_us, duration(0, kMaxRetentionUs));
  visit("event_retention_bytes", &o->retention_bytes,
        OptionRange{kMinRetentionBytes, kMaxRetentionBytes});
  visit("num_shards", &o->num_shards, OptionRange{1, kMaxShards});
  visit("dead_letter_namespace", &o->dead_letter_namespace, OptionRange{});
  visit("max_operations_per_second", &o->max_operations_per_second,
        OptionRange{0, RateLimit::kMaxPerSecond});
  visit("max_backlog_bytes", &o->max_backlog_bytes,
        OptionRange{o->max_backlog_bytes == 0 ? 0 : kMinBacklogBytes,
                    kMaxBacklogBytes});
  visit("unused_group_ttl", &o->unused_group_ttl_us,
        UnusedTtlRange(o->unused_group_ttl_us));
  visit("durability", &o->durability,
        OptionRange{0, static_cast<int64_t>(NamespaceDurability::kReplicated)});
  visit("restart_policy", &o->restart_policy,
        OptionRange{0, static_cast<int64_t>(RestartPolicy::kPause)});
  visit("max_life", &o->max_life_us,
        duration(o->max_life_us == 0 ? 0 : o->ttl_us, kMaxTtlUs));
  visit("idempotency_window", &o->idempotency_window_us,
        duration(o->idempotency_window_us == 0 ? 0 : kMinTtlUs,
                 kMaxIdempotencyWindowUs));
  visit("idempotency_max_ids", &o->idempotency_max_ids,
        OptionRange{kMinIdempotencyIds, kMaxIdempotencyIds});
  visit("change_retention", &o->change_retention_us,
        duration(o->change_retention_us == 0 ? 0 : kMinTtlUs, kMaxRetentionUs));
  visit("change_retention_bytes", &o->change_retention_bytes,
        OptionRange{kMinRetentionBytes, kMaxRetentionBytes});
  visit("num_partitions", &o->num_partitions, OptionRange{1, kMaxPartitions});
}

// INVALID_ARGUMENT that names the first of the options that is out of its range,
// and the range.
template <typename Options>
absl::Status CheckRanges(const Options& options) {
  absl::Status status;
  VisitOptions(&options, [&](const char* name, const auto* field,
                             const OptionRange& range) {
    using Field = std::remove_cvref_t<decltype(*field)>;
    if constexpr (std::is_enum_v<Field> || std::is_same_v<Field, int> ||
                  std::is_same_v<Field, int64_t>) {
      const auto value = static_cast<int64_t>(*field);
      status.Update(range.is_duration
                        ? CheckDuration(name, value, range.least, range.most)
                        : CheckNumber(name, value, range.least, range.most));
    }
  });
  return status;
}

// INVALID_ARGUMENT that names the first field that cannot be so.
absl::Status Validate(const NamespaceOptions& options);

// INVALID_ARGUMENT unless `name` is [a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?
absl::Status ValidateNamespaceName(absl::string_view name);

// Limit of the memory of all consumer groups of a namespace: the option if it
// is set, otherwise as much as the namespace itself may hold, of entries and of
// retained events. Without a limit of entries, the default of one group.
inline int64_t BacklogLimitBytes(const NamespaceOptions& options) {
  constexpr int64_t kUnlimited = int64_t{256} << 20;
  if (options.max_backlog_bytes != 0) return options.max_backlog_bytes;
  if (options.max_bytes == 0) return kUnlimited;
  return std::min(options.max_bytes, kMaxBacklogBytes) +
         options.retention_bytes;
}

// What a partition of a namespace with these options applies: of each limit its
// share, rounded up, and at least what the option may be where less would keep
// nothing. The same options, if there is one partition.
NamespaceOptions ShareOf(const NamespaceOptions& options);

// w = ttl / (num_buckets - 1), rounded down: a narrower bucket keeps the
// promise.
inline int64_t BucketWidthUs(const NamespaceOptions& options) {
  return options.ttl_us / (options.num_buckets - 1);
}

inline bool IsDurable(const NamespaceOptions& options) {
  return options.durability != NamespaceDurability::kMemory;
}

// What a server keeps its durable namespaces in.
enum class JournalKind { kNone, kDisk, kCluster };

// OK, or INVALID_ARGUMENT: the server keeps nothing of that durability; says
// what to do.
absl::Status CheckDurability(NamespaceDurability durability, JournalKind kind);

// What a map of that durability has in a journal of this kind, to which it has come in
// a backup: where a journal is a disk's, SYNC in place of REPLICATED; in a cluster,
// REPLICATED in place of both others.
inline NamespaceDurability NearestDurability(NamespaceDurability durability,
                                             JournalKind kind) {
  if (durability == NamespaceDurability::kMemory) return durability;
  if (kind == JournalKind::kCluster) return NamespaceDurability::kReplicated;
  return durability == NamespaceDurability::kReplicated
             ? NamespaceDurability::kSync
             : durability;
}

// Whether nothing is shown before the journal has it.
inline bool IsSync(NamespaceDurability durability) {
  return durability == NamespaceDurability::kSync ||
         durability == NamespaceDurability::kReplicated;
}

// When an entry with this deadline dies: the first multiple of the width at or
// after it. Storm's rotation, with the clock in place of the cleaner's sleeps.
inline int64_t DeathTimeUs(int64_t deadline_us, int64_t width_us) {
  return (deadline_us + width_us - 1) / width_us * width_us;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_NAMESPACE_OPTIONS_H_
