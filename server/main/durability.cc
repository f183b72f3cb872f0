#include "server/main/durability.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/api/proto_time.h"
#include "server/durable/recovery.h"
#include "server/engine/shard/version_source.h"
#include "server/log/local/journal_copy.h"
#include "server/log/local/journal_tools.h"
#include "server/log/local/local_journal.h"
#include "server/main/millis_since.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Of a new journal. Each is recovered by one thread.
constexpr uint32_t kPartitions = 64;
constexpr unsigned kMaxRecoveryThreads = 8;
// How long a recovery may be without progress until the service manager may
// consider it stuck: includes rebuilding maps from the last records.
constexpr absl::Duration kPatience = absl::Minutes(2);

// Most namespaces with missing records that are named.
constexpr size_t kNamedMaps = 10;

// Notifies the observers, and logs, at most once a second, whichever thread
// calls.
class ProgressReporter {
 public:
  explicit ProgressReporter(const RecoveryObservers& observers)
      : observers_(observers) {}

  void operator()(const RecoveryProgress& progress) {
    const auto percent = static_cast<int>(
        progress.records * 100 / std::max<uint64_t>(progress.records_end, 1));
    observers_.metrics->Progress(progress);
    observers_.readiness->SetRecovered(percent);
    const int64_t now_ms = MillisSince(began_);
    int64_t due_ms = due_ms_;
    if (now_ms < due_ms ||
        !due_ms_.compare_exchange_strong(due_ms, now_ms + 1000)) {
      return;
    }
    observers_.manager->Starting(absl::StrCat("Recovering, ", percent, " %"),
                                 kPatience);
    if (progress.records == 0) return;
    Log(LogLevel::kInfo, "recovery_progress",
        {{"records", progress.records},
         {"of", progress.records_end},
         {"took_ms", now_ms}});
  }

 private:
  const RecoveryObservers& observers_;
  const SteadyClock::time_point began_ = SteadyClock::now();
  std::atomic<int64_t> due_ms_{0};
};

// The missing parts of a salvaged journal.
void LogLosses(const RecoveryReport& report) {
  if (report.lost_records == 0) return;
  const size_t named = std::min(report.incomplete.size(), kNamedMaps);
  std::string names = absl::StrJoin(
      report.incomplete.begin(),
      report.incomplete.begin() + static_cast<ptrdiff_t>(named), ", ");
  if (named < report.incomplete.size()) names += ", ...";
  Log(LogLevel::kWarning, "recovery_losses",
      {{"lost_records", report.lost_records},
       {"incomplete_namespaces", report.incomplete.size()},
       {"namespaces", names},
       {"unknown_namespaces", report.unknown.size()}});
}

std::string TimeText(int64_t us) {
  return absl::FormatTime(absl::FromUnixMicros(us), absl::UTCTimeZone());
}

absl::Status StartError(absl::string_view cannot_be,
                        const std::string& directory,
                        const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the journal cannot be ", cannot_be, ": the disk of ", directory,
        " is full: make the volume larger, or remove files that are not the "
        "journal's, and start again"));
  }
  return absl::Status(status.code(),
                      absl::StrCat("the journal cannot be ", cannot_be, ": ",
                                   status.message()));
}

// `journal_us` as the machine's clock now is.
absl::Status CheckClock(const config::v1::ServerConfig& config,
                        int64_t journal_us, int64_t now_us) {
  const absl::Duration lead = absl::Microseconds(now_us - journal_us);
  const absl::Duration max_lead = ToDuration(config.journal().max_clock_lead());
  // No server is older than that: the journal's clock was wrong then, as of a
  // machine that starts in 1970 and asks a time server later.
  const bool journal_was_wrong = journal_us < VersionSource::kEpochUs;
  if (lead <= max_lead || journal_was_wrong) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the journal in ", config.journal().directory(), " has come to ",
      TimeText(journal_us), ", and this machine's clock says ",
      TimeText(now_us), ", which is ", absl::FormatDuration(lead),
      " ahead: all entries that were due in between would expire, for good. "
      "Correct the clock; or, if it is right, and nothing durable has changed "
      "for so long, set journal.max_clock_lead to more than that"));
}

class LocalBackup final : public BackupBytes {
 public:
  explicit LocalBackup(std::unique_ptr<JournalBackup> backup)
      : backup_(std::move(backup)) {}
  uint64_t total_bytes() const override { return backup_->total_bytes(); }
  absl::StatusOr<std::string> Read(size_t bytes) override {
    return backup_->Read(bytes);
  }

 private:
  const std::unique_ptr<JournalBackup> backup_;
};

}  // namespace

absl::Status RestoreBackup(const std::string& from,
                           const config::v1::ServerConfig& config) {
  const auto began = SteadyClock::now();
  const std::string& directory = config.journal().directory();
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        "--restore needs --journal DIRECTORY: where the journal will be");
  }
  const auto report =
      from == "-" ? RestoreInput(directory)
                  : RestoreJournal(FileSystem::Posix(), from, directory);
  if (!report.ok()) {
    const absl::string_view advice =
        absl::IsAlreadyExists(report.status())
            ? "; a backup is restored once, into an empty directory: start "
              "without --restore, or name another --journal"
            : "";
    return absl::Status(report.status().code(),
                        absl::StrCat("the backup cannot be restored: ",
                                     report.status().message(), advice));
  }
  Log(LogLevel::kInfo, "restore_done",
      {{"from", from},
       {"journal", directory},
       {"records", report->Records()},
       {"took_ms", MillisSince(began)}});
  return absl::OkStatus();
}

BackupSource BackupsOf(LocalJournal* journal) {
  return [journal] {
    return std::make_unique<LocalBackup>(journal->OpenBackup());
  };
}

absl::StatusOr<OpenedJournal> OpenJournal(
    const config::v1::ServerConfig& config) {
  const std::string& directory = config.journal().directory();
  if (directory.empty()) return OpenedJournal();
  LocalJournalOptions options;
  options.reserve_bytes = config.journal().reserve_bytes();
  auto journal = LocalJournal::Open(directory, options);
  if (absl::IsInvalidArgument(journal.status())) {
    // A new one.
    options.partitions = kPartitions;
    journal = LocalJournal::Open(directory, options);
  }
  if (!journal.ok()) {
    return StartError("opened", directory, journal.status());
  }
  if (options.reserve_bytes > 0 && (*journal)->reserve_bytes() == 0) {
    Log(LogLevel::kWarning, "journal_without_reserve",
        {{"journal", directory},
         {"message",
          "its file system cannot reserve room: when the disk is full, events "
          "wait. Put the journal on ext4 or xfs, or set journal.reserve_bytes "
          "to 0 to accept that"}});
  }
  OpenedJournal opened;
  opened.local = journal->get();
  opened.logs = std::make_unique<MapChangeLogs>(*std::move(journal));
  return opened;
}

absl::Status Recover(const config::v1::ServerConfig& config,
                     const Signals& signals, Clock* clock,
                     const RecoveryObservers& observers,
                     const OpenedJournal& journal, Registry* registry) {
  const auto began = SteadyClock::now();
  MapChangeLogs* const logs = journal.logs.get();
  registry->SetChangeLogs(logs);
  observers.metrics->Begin();
  observers.readiness->SetRecovered(0);
  Log(LogLevel::kInfo, "recovery_started",
      {{"journal", config.journal().directory()},
       {"bytes", logs->journal().statistics().disk_bytes}});
  ProgressReporter progress(observers);
  RecoveryOptions options;
  options.threads = static_cast<int>(
      std::clamp(std::thread::hardware_concurrency(), 1u, kMaxRecoveryThreads));
  options.progress = std::ref(progress);
  options.clock = clock;
  options.cancelled = [&signals] { return signals.EndPending(); };
  options.copied = journal.local->copied();
  options.may_have_lost_power = journal.local->may_have_lost_power();
  if (clock->OffsetUs().has_value()) {
    options.clock_behind_us = journal.local->clock_behind_us();
    options.check_time = [&](int64_t last_us) {
      // A new journal has no time.
      return last_us == INT64_MIN
                 ? absl::OkStatus()
                 : CheckClock(config, last_us + options.clock_behind_us,
                              clock->NowUs());
    };
  }
  const absl::StatusOr<RecoveryReport> report =
      RecoverMaps(logs, registry, options);
  if (absl::IsCancelled(report.status())) {
    Log(LogLevel::kInfo, "recovery_cancelled",
        {{"took_ms", MillisSince(began)}});
  }
  absl::Status status = report.status();
  if (status.ok()) status = journal.local->NoteRecovered();
  // The entries have moved.
  if (status.ok() && options.clock_behind_us > 0) {
    status = journal.local->NoteClockBehind(0);
  }
  if (absl::IsResourceExhausted(status)) {
    return StartError("recovered", config.journal().directory(), status);
  }
  if (!status.ok()) return status;
  clock->AdvanceTo(report->last_us);
  observers.metrics->Finish(*report);
  LogLosses(*report);
  Log(LogLevel::kInfo, "recovery_done",
      {{"namespaces", report->namespaces},
       {"entries", report->entries},
       {"records", report->records},
       {"record_bytes", report->record_bytes},
       {"copied", options.copied},
       {"forked", report->forked},
       {"took_ms", MillisSince(began)}});
  return absl::OkStatus();
}

}  // namespace timecache::server
