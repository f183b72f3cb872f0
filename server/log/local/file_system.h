// The few operations on files that the journal needs, so that tests can inject
// faults and drop unsynced data.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_FILE_SYSTEM_H_
#define TIMECACHED_SERVER_LOG_LOCAL_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace timecache::server {

// Errors start with the path. NOT_FOUND: no such file. RESOURCE_EXHAUSTED: no
// room on the disk. UNAVAILABLE: no descriptor or memory at the moment. Others
// as absl::ErrnoToStatus has them.

// An open file. Closed, not synced, when destroyed. Reads are thread-safe, also
// beside a write to other bytes; all else is for one thread at a time, but for
// a sync, which may run beside a write: it syncs what was written before it.
class File {
 public:
  virtual ~File() = default;

  // Up to `bytes` from `offset`; fewer at the end of the file.
  virtual absl::StatusOr<size_t> Read(uint64_t offset, size_t bytes,
                                      char* to) const = 0;
  // All of `data`, or an error after none, some or all of it.
  virtual absl::Status Write(uint64_t offset, absl::string_view data) = 0;
  virtual absl::Status Truncate(uint64_t bytes) = 0;
  // Takes room on the disk for so many bytes from the beginning on, so that no
  // write of them can lack it, also one that follows another. The size stays;
  // Truncate frees all room beyond it. UNIMPLEMENTED: not on this file system.
  virtual absl::Status Allocate(uint64_t bytes) = 0;
  // What it takes on the disk.
  virtual absl::StatusOr<uint64_t> Allocated() const = 0;
  // Data and what is needed to read it (fdatasync).
  virtual absl::Status Sync() = 0;
  virtual absl::StatusOr<uint64_t> Size() const = 0;
};

// A lock on a directory, until it is destroyed. It is on the directory itself,
// so no file can be removed to get past it.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;

  // As FileSystem::SyncDirectory, but without another descriptor.
  virtual absl::Status Sync() = 0;
};

// Thread-safe. What changes names (create, rename, remove) survives a
// power loss after SyncDirectory.
class FileSystem {
 public:
  // The operating system's. Lives for ever.
  static FileSystem* Posix();

  virtual ~FileSystem() = default;

  virtual absl::StatusOr<std::unique_ptr<File>> Open(
      const std::string& path) = 0;
  // For reading alone.
  virtual absl::StatusOr<std::unique_ptr<File>> OpenToRead(
      const std::string& path) = 0;
  // Empty, also where there is one.
  virtual absl::StatusOr<std::unique_ptr<File>> Create(
      const std::string& path) = 0;
  // Replaces what has the name `to`.
  virtual absl::Status Rename(const std::string& from,
                              const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // And syncs its parent. OK if it is there.
  virtual absl::Status CreateDirectory(const std::string& path) = 0;
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
  // The names in it, in no order, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) = 0;
  // Earlier versions lock a file in it instead, `lock_file`: it is locked as
  // well, and kWriter creates it.
  // FAILED_PRECONDITION: locked by another process, or by this one.
  enum class LockedBy { kWriter, kReader };
  virtual absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(
      const std::string& directory, const std::string& lock_file,
      LockedBy by) = 0;
};

// All of a small file. RESOURCE_EXHAUSTED beyond 1 MiB.
absl::StatusOr<std::string> ReadSmallFile(FileSystem* files,
                                          const std::string& path);

// The name of a file until it is complete. A crash may leave one.
inline constexpr char kTemporarySuffix[] = ".tmp";

// Puts a file of these bytes into the directory, or leaves it as it was: under
// its temporary name first, synced, then renamed, and the directory synced.
absl::Status WriteFileAtomically(FileSystem* files,
                                 const std::string& directory,
                                 const std::string& name,
                                 absl::string_view data);

absl::Status RemoveIfThere(FileSystem* files, const std::string& path);

// ALREADY_EXISTS if there is something in it.
absl::Status CreateEmptyDirectory(FileSystem* files, const std::string& path);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_FILE_SYSTEM_H_
