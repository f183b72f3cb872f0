// The source of BackupJournal's streams.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_BACKUP_SOURCE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_BACKUP_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace timecache::server {

// One backup. The files that it reads are kept until it is destroyed. Used by
// one thread at a time.
class BackupBytes {
 public:
  virtual ~BackupBytes() = default;
  virtual uint64_t total_bytes() const = 0;
  // The next ones, at most so many; none at the end. May wait for a disk.
  virtual absl::StatusOr<std::string> Read(size_t bytes) = 0;
};

// Starts a backup of the current state. Thread-safe; quick.
using BackupSource = std::function<std::unique_ptr<BackupBytes>()>;

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_BACKUP_SOURCE_H_
