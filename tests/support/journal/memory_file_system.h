// A disk in memory that forgets, fails and is full when a test wants it.

#ifndef TIMECACHED_TESTS_SUPPORT_JOURNAL_MEMORY_FILE_SYSTEM_H_
#define TIMECACHED_TESTS_SUPPORT_JOURNAL_MEMORY_FILE_SYSTEM_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/log/local/file_system.h"

namespace timecache::server {

// Of each file, what was synced and what was written since are apart, and so
// are the names of each directory. Thread-safe.
class MemoryFileSystem final : public FileSystem {
 public:
  // What a power loss does to what was not synced.
  enum class Unsynced {
    kDropped,
    // Each block of 512 bytes of each write is kept or not, and each change of
    // names, at random.
    kKeptInPart,
  };

  void LosePower(Unsynced unsynced, std::mt19937_64* random)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Called before each write (with its size) and each sync (with 0) of a path:
  // an error is returned instead. A write that fails has written half. Others
  // may write while it is called for a file's sync; then that is not synced.
  // Waits for calls that are under way.
  using Fault = std::function<absl::Status(const std::string& path,
                                           uint64_t bytes, bool sync)>;
  void SetFault(Fault fault) ABSL_LOCKS_EXCLUDED(mu_);
  // The bytes that all files may have together, and RESOURCE_EXHAUSTED beyond.
  void SetRoom(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Others take all the room there is, and whatever becomes free.
  void TakeAllRoom() ABSL_LOCKS_EXCLUDED(mu_);
  // Called before each truncation, creation and renaming of a path: an error is
  // returned instead.
  using ChangeFault = std::function<absl::Status(const std::string& path)>;
  void SetChangeFault(ChangeFault fault) ABSL_LOCKS_EXCLUDED(mu_);
  // As for a process that is killed after so many changes: the later ones fail,
  // and change nothing.
  void KillAfter(int changes) ABSL_LOCKS_EXCLUDED(mu_);
  // Syncs succeed and do nothing.
  void IgnoreSyncs() ABSL_LOCKS_EXCLUDED(mu_);

  uint64_t syncs(const std::string& path_part) const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t used_bytes() const ABSL_LOCKS_EXCLUDED(mu_);
  // The bytes of a file, to look at and to damage; as if synced.
  std::string Contents(const std::string& path) const ABSL_LOCKS_EXCLUDED(mu_);
  void SetContents(const std::string& path, std::string contents)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The paths of all files, sorted.
  std::vector<std::string> Paths() const ABSL_LOCKS_EXCLUDED(mu_);
  // Another disk, as this one would be behind a power loss.
  std::unique_ptr<MemoryFileSystem> CopyWithoutPower(
      Unsynced unsynced, std::mt19937_64* random) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Another disk in the same state, without faults.
  std::unique_ptr<MemoryFileSystem> Copy() const ABSL_LOCKS_EXCLUDED(mu_);

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> OpenToRead(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> Create(
      const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(
      const std::string& directory, const std::string& lock_file,
      LockedBy by) override;

 private:
  friend class MemoryFile;
  friend class MemoryLock;
  struct Write {
    uint64_t offset;  // for a truncation, the size
    std::string data;
    bool truncate;
  };
  struct Node {
    std::string now;
    std::string synced;
    std::vector<Write> since;  // the last sync
    // Room that it has, whatever its size.
    uint64_t allocated = 0;
    uint64_t room() const { return std::max<uint64_t>(now.size(), allocated); }
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;

  static void Apply(const Write& write, std::string* to);
  absl::Status WriteTo(const std::string& path, Node* node, Write write);
  absl::Status Allocate(const std::string& path, Node* node, uint64_t bytes);
  absl::Status CheckChange(const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What is free after a change is taken, if others take all.
  void TakeFreedRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status SyncNode(const std::string& path, Node* node);
  // An error from the change on before which the process was killed.
  absl::Status CheckAlive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t UsedBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckFault(const std::string& path, uint64_t bytes, bool sync)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  Names now_ ABSL_GUARDED_BY(mu_);
  Names synced_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> locks_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, uint64_t> syncs_ ABSL_GUARDED_BY(mu_);
  Fault fault_ ABSL_GUARDED_BY(mu_);
  ChangeFault change_fault_ ABSL_GUARDED_BY(mu_);
  bool greedy_ ABSL_GUARDED_BY(mu_) = false;
  // Files of which a sync is under way.
  int syncing_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t room_ ABSL_GUARDED_BY(mu_) = UINT64_MAX;
  int changes_left_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int>::max();
  bool ignore_syncs_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_JOURNAL_MEMORY_FILE_SYSTEM_H_
