// How a namespace behaves, and the arithmetic of its time buckets.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_NAMESPACE_OPTIONS_H_
#define TIMECACHED_SERVER_ENGINE_STORE_NAMESPACE_OPTIONS_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/clock.h"

namespace timecache::server {

inline constexpr int64_t kMaxKeyBytes = 4 << 10;
inline constexpr int64_t kMaxValueBytesLimit = 16 << 20;
inline constexpr int64_t kMinTtlUs = 1'000;
inline constexpr int64_t kMaxTtlUs = int64_t{3650} * 86'400 * kMicrosPerSecond;
inline constexpr int64_t kMinBucketWidthUs = 100;
inline constexpr int kMinBuckets = 2;
inline constexpr int kMaxBuckets = 100'000;
inline constexpr int kMaxShards = 256;
inline constexpr int64_t kMaxRetentionUs =
    int64_t{7} * 86'400 * kMicrosPerSecond;
inline constexpr int64_t kMinRetentionBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxRetentionBytes = int64_t{64} << 30;
inline constexpr int64_t kMinBacklogBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxBacklogBytes = int64_t{64} << 30;
inline constexpr int64_t kMinUnusedTtlUs = kMicrosPerSecond;

enum class LimitPolicy { kReject, kEvictOldest };

// Which failures a namespace's entries and events survive; see Durability in
// namespaces.proto.
enum class NamespaceDurability { kMemory, kAsync, kSync };

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
};

// INVALID_ARGUMENT that names the first field out of its range, and the range.
absl::Status Validate(const NamespaceOptions& options);

// INVALID_ARGUMENT about `field` unless a group may be unused for so long.
absl::Status CheckUnusedTtl(absl::string_view field, int64_t us);

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

// w = ttl / (num_buckets - 1), rounded down: a narrower bucket keeps the
// promise.
inline int64_t BucketWidthUs(const NamespaceOptions& options) {
  return options.ttl_us / (options.num_buckets - 1);
}

inline bool IsDurable(const NamespaceOptions& options) {
  return options.durability != NamespaceDurability::kMemory;
}

// When an entry with this deadline dies: the first multiple of the width at or
// after it. Storm's rotation, with the clock in place of the cleaner's sleeps.
inline int64_t DeathTimeUs(int64_t deadline_us, int64_t width_us) {
  return (deadline_us + width_us - 1) / width_us * width_us;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_NAMESPACE_OPTIONS_H_
