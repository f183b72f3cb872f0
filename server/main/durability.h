// The journal of a server: opened, and its maps rebuilt.

#ifndef TIMECACHED_SERVER_MAIN_DURABILITY_H_
#define TIMECACHED_SERVER_MAIN_DURABILITY_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/durable/map_change_log.h"
#include "server/engine/registry.h"
#include "server/log/local/local_journal.h"
#include "server/main/recovery_metrics.h"
#include "server/main/service_manager.h"
#include "server/main/signals.h"
#include "server/ops/readiness.h"
#include "server/rpc/admin/backup_source.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// The journal of a server. Null, both, if it has none.
struct OpenedJournal {
  std::unique_ptr<MapChangeLogs> logs;
  // What only a journal on this disk has. Owned by `logs`.
  LocalJournal* local = nullptr;
};

// The journal in journal.directory, which is created if it is missing. None if
// none is configured. An error names the directory, the problem and a remedy.
absl::StatusOr<OpenedJournal> OpenJournal(
    const config::v1::ServerConfig& config);

// The receivers of a recovery's progress. None is owned.
struct RecoveryObservers {
  RecoveryMetrics* metrics;
  Readiness* readiness;
  // Each second, so that it waits as long as there is progress.
  const ServiceManager* manager;
  // Of a standby that forwards calls: whether it is ready to. A node owns, and this one
  // has caught up since it began, so that not all nodes that are ready are empty. Called
  // whenever it looks; null: it does not forward.
  std::function<void(bool)> ready = nullptr;
};

// Fills journal.directory from a backup: a directory, or "-" for an archive on
// standard input. Logs restore_done. ALREADY_EXISTS: it holds a journal.
// DATA_LOSS: the backup is damaged or incomplete. After an error, the directory
// has nothing of it. INVALID_ARGUMENT: no journal is configured, or standard
// input is a terminal.
absl::Status RestoreBackup(const std::string& from,
                           const config::v1::ServerConfig& config);

// Of `journal`, which must outlive it and its backups.
BackupSource BackupsOf(LocalJournal* journal);

// Adds the journal's maps to the registry; from now on durable maps are stored
// in the journal. A copy of a journal continues with a new identity
// (RecoveryOptions::copied). Logs recovery_started, recovery_progress each
// second, and recovery_done, or recovery_cancelled. CANCELLED: a termination
// signal has arrived meanwhile. FAILED_PRECONDITION: a clock that follows the
// machine's is further ahead of the journal than journal.max_clock_lead. After
// either, nothing was recorded, and a later start finds what this one found.
//
// Moves the clock to the journal's time, if that is later: time never goes back.
// The entries' times move by what the clock of the server before was behind.
absl::Status Recover(const config::v1::ServerConfig& config,
                     const Signals& signals, Clock* clock,
                     const RecoveryObservers& observers,
                     const OpenedJournal& journal, Registry* registry);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_DURABILITY_H_
