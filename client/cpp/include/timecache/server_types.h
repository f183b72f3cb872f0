// The server as the client describes it: plain structs, those of
// proto/timecache/v1/server.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace timecache {

// A limit of the server, and what counts towards it now.
struct LimitUse {
  uint64_t used = 0;
  uint64_t max = 0;  // 0: no limit.
};

// What holds the memory that limits.max_memory_bytes counts.
struct MemoryShares {
  uint64_t entries_bytes = 0;
  uint64_t retained_bytes = 0;  // Events that logs retain.
  uint64_t backlog_bytes = 0;   // Events that only consumer groups hold.
};

// What the journal does to become smaller; see the enum in server.proto.
enum class CheckpointState {
  kUnknown,
  kIdle,
  kWriting,  // Live entries are written again.
  kWaiting,  // Until no event from before them is retained.
};

// The journal of a server with durable namespaces. Counts are since its start.
struct JournalStatus {
  std::string directory = {};
  uint64_t disk_bytes = 0;
  LimitUse waiting_bytes = {};      // Changes that wait for the disk.
  bool disk_full = false;           // Changes are refused: DISK_FULL.
  uint64_t commits = 0;             // Writes, with a sync where one had to be.
  uint64_t appends = 0;             // What they had: one for each namespace.
  uint64_t written_bytes = 0;       // To files.
  absl::Duration commit_time = {};  // Of all commits together.
  // 99 % of commits took no longer: an upper bound, within a factor of two.
  absl::Duration commit_p99 = {};
  uint64_t checkpoints = 0;  // That are over.
  CheckpointState checkpoint_state = CheckpointState::kUnknown;
};

// The server itself. Limits and the journal are unset for those who may not
// read all namespaces.
struct ServerInfo {
  std::string version = {};    // "0.1.0".
  absl::Time start_time = {};  // On the server's clock, as `now`.
  absl::Time now = {};         // When it answered.
  bool draining = false;       // It has been told to stop.
  std::optional<LimitUse> namespaces = {};
  std::optional<LimitUse> entries = {};
  std::optional<LimitUse> bytes = {};
  std::optional<LimitUse> watchers = {};
  std::optional<LimitUse> memory_bytes = {};
  std::optional<LimitUse> connections = {};
  std::optional<MemoryShares> memory_shares = {};
  // Unset as well if it has none: all of it ends with the process.
  std::optional<JournalStatus> journal = {};
};

// A piece of a backup of the server's journal.
struct BackupPiece {
  uint64_t total_bytes = 0;  // Of all pieces together.
  std::string data = {};     // At most 1 MiB, never empty.
};

// What grpc.health.v1.Health says of the server.
enum class ServingStatus {
  kUnknown,
  kServing,
  kNotServing,  // It is stopping, or has not begun.
};

}  // namespace timecache
