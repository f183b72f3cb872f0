// The server as the client describes it: plain structs, those of
// proto/timecache/v1/server.proto.

#ifndef TIMECACHE_SERVER_TYPES_H_
#define TIMECACHE_SERVER_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace timecache {

// A limit of the server and its current use.
struct LimitUse {
  uint64_t used = 0;
  uint64_t max = 0;  // 0: no limit.
};

// How the memory that limits.max_memory_bytes counts is used.
struct MemoryShares {
  uint64_t entries_bytes = 0;
  uint64_t retained_bytes = 0;  // Events that logs retain.
  uint64_t backlog_bytes = 0;   // Events that only consumer groups hold.
};

// How the journal is made smaller; see the enum in server.proto.
enum class CheckpointState {
  kUnknown,
  kIdle,
  kWriting,  // Live entries are being rewritten.
  kWaiting,  // Until no earlier event is retained.
};

// The journal of a server with durable namespaces. Counts are since its start.
struct JournalStatus {
  std::string directory = {};  // In a cluster, the topic.
  uint64_t disk_bytes = 0;
  LimitUse waiting_bytes = {};      // Changes that wait for the disk.
  bool disk_full = false;           // Changes are refused: DISK_FULL.
  uint64_t commits = 0;             // Writes, with a sync where needed.
  uint64_t appends = 0;             // In the commits: one for each namespace.
  uint64_t written_bytes = 0;       // To files.
  absl::Duration commit_time = {};  // Of all commits together.
  // 99 % of commits took no longer: an upper bound, within a factor of two.
  absl::Duration commit_p99 = {};
  uint64_t checkpoints = 0;  // Completed ones.
  CheckpointState checkpoint_state = CheckpointState::kUnknown;
};

// The server itself. Limits and the journal are unset for callers that may not
// read all namespaces.
struct ServerInfo {
  std::string version = {};    // "0.1.0".
  absl::Time start_time = {};  // On the server's clock, as `now`.
  absl::Time now = {};         // When it answered.
  // How far the machine's wall clock is ahead of `now`; negative: behind it. The
  // server's time follows it slowly. Unset with a virtual clock.
  std::optional<absl::Duration> clock_offset = {};
  bool draining = false;  // Whether it is stopping.
  std::optional<LimitUse> namespaces = {};
  std::optional<LimitUse> entries = {};
  std::optional<LimitUse> bytes = {};
  std::optional<LimitUse> watchers = {};
  std::optional<LimitUse> memory_bytes = {};
  std::optional<LimitUse> connections = {};
  std::optional<MemoryShares> memory_shares = {};
  // Also unset if the server has no journal: all namespaces then end with the
  // process.
  std::optional<JournalStatus> journal = {};
};

// A piece of a backup of the server's journal.
struct BackupPiece {
  uint64_t total_bytes = 0;  // Of all together; in a cluster an estimate.
  std::string data = {};     // At most 1 MiB, never empty.
};

// What grpc.health.v1.Health reports of the server.
enum class ServingStatus {
  kUnknown,
  kServing,
  kNotServing,  // It is stopping, or has not started.
};

}  // namespace timecache

#endif  // TIMECACHE_SERVER_TYPES_H_
