// A store whose maps last, on a disk in memory.

#ifndef TIMECACHED_TESTS_SUPPORT_JOURNAL_DURABLE_STORE_H_
#define TIMECACHED_TESTS_SUPPORT_JOURNAL_DURABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/base/clock.h"
#include "server/durable/checkpointer.h"
#include "server/durable/map_change_log.h"
#include "server/durable/recovery.h"
#include "server/engine/local_store.h"
#include "server/engine/parts/partitioned_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/log/local/local_journal.h"
#include "tests/support/engine/map_harness.h"
#include "tests/support/journal/memory_file_system.h"

namespace timecache::server {

// Options of a map of this durability that keeps its events for an hour.
NamespaceOptions DurableOptions(
    NamespaceDurability durability = NamespaceDurability::kSync);

// The engine of a server, from its start to its end and again. Its clock stands
// still. On a disk in memory, or, after UseDirectory, on a real one, for which
// what is about crashes is not. Thread-safe while it is open, but for what
// changes that.
class DurableStore {
 public:
  DurableStore();
  ~DurableStore();

  void UseDirectory(const std::string& directory) {
    directory_ = directory;
    options_.files = FileSystem::Posix();
  }
  // Opens the journal, and recovers; closes first what is open.
  absl::Status Open();
  void Close();
  // As kill -9, or a power loss, does.
  void Crash();
  void LosePower(MemoryFileSystem::Unsynced unsynced, std::mt19937_64* random);
  // The same in two parts, for who has calls under way: what is written behind
  // Freeze is lost, and once they are answered, Thaw goes on with the disk as
  // it was.
  void Freeze() { frozen_ = files_->Copy(); }
  void Freeze(MemoryFileSystem::Unsynced unsynced, std::mt19937_64* random);
  void Thaw() { GoOnWith(std::move(frozen_)); }

  // A backup's archive; and goes on with a disk that has it alone. Open takes
  // it for a copy.
  std::string BackUp();
  absl::Status Restore(const std::string& archive);
  // Closes, salvages the journal, and goes on with a disk that has what that
  // has made alone. Open takes it for a copy.
  absl::Status Salvage();
  // Closes, and goes on with that disk.
  void GoOnWith(std::unique_ptr<MemoryFileSystem> files);
  // Open ends before LocalJournal::NoteRecovered.
  void CrashBeforeNoting() { notes_ = false; }

  ManualClock& clock() { return clock_; }
  // Lets what is due die and be delivered.
  void AdvanceBy(int64_t step_us);

  Registry& registry() { return engine_->registry; }
  Store& store() { return engine_->store; }
  MapChangeLogs& logs() { return *engine_->logs; }
  Journal& journal() { return engine_->logs->journal(); }
  Checkpointer& checkpointer() { return *engine_->checkpointer; }
  std::shared_ptr<TimeCacheMap> map(absl::string_view name);
  // Where a cursor stands that has read all of the map's log.
  LogPoint End(absl::string_view name);
  MemoryFileSystem& files() { return *files_; }
  LocalJournalOptions& options() { return options_; }
  CheckpointerOptions& checkpointer_options() { return checkpointer_options_; }
  RecoveryOptions& recovery_options() { return recovery_options_; }
  const RecoveryReport& report() const { return report_; }

  // Wait until they are done; an error of a call is the result's.
  absl::Status Create(absl::string_view name,
                      const NamespaceOptions& options = DurableOptions());
  Result Execute(absl::string_view name, const Operation& operation);
  Result Put(absl::string_view name, absl::string_view key,
             absl::string_view value) {
    return Execute(name, Operation::Put(key, value));
  }
  // The value, "(none)", or the error.
  std::string Get(absl::string_view name, absl::string_view key);

 private:
  // In the order in which they may end.
  struct Engine {
    Engine(const Clock* clock, std::unique_ptr<Journal> journal);
    ~Engine();

    std::unique_ptr<MapChangeLogs> logs;
    Reaper reaper;
    Registry registry;
    LocalStore maps;
    PartitionedStore store;
    std::unique_ptr<Checkpointer> checkpointer;
  };

  ManualClock clock_{kStartUs};
  std::unique_ptr<MemoryFileSystem> files_ =
      std::make_unique<MemoryFileSystem>();
  std::unique_ptr<MemoryFileSystem> frozen_;
  std::string directory_;
  LocalJournalOptions options_;
  CheckpointerOptions checkpointer_options_;
  RecoveryOptions recovery_options_;
  std::unique_ptr<Engine> engine_;
  RecoveryReport report_;
  bool notes_ = true;
  // Of the machine: each power loss is the end of one.
  int boots_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_JOURNAL_DURABLE_STORE_H_
