#include "server/journal/maps/recovery.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/engine/map/map_replay.h"
#include "server/journal/maps/change_record.h"
#include "server/journal/maps/map_record.h"

namespace timecache::server {
namespace {

// A map that is being made again.
struct Recovering {
  std::shared_ptr<TimeCacheMap> map;
  std::unique_ptr<MapReplay> replay;
  // As told last.
  MapOptions options;
  // Whether what dies may be told: since its creation, or the end of a walk.
  bool complete = false;
};

// What all threads share.
struct Shared {
  MapChangeLogs* logs = nullptr;
  Registry* registry = nullptr;
  const RecoveryOptions* options = nullptr;
  uint64_t records_end = 0;
  std::atomic<uint64_t> records{0};
  std::atomic<bool> failed{false};

  absl::Mutex mu;
  absl::Status status ABSL_GUARDED_BY(mu);
  RecoveryReport report ABSL_GUARDED_BY(mu);
  uint64_t next_version ABSL_GUARDED_BY(mu) = 0;
  std::vector<std::shared_ptr<TimeCacheMap>> maps ABSL_GUARDED_BY(mu);
};

// What was told of the map in this process.
absl::Status AwaitKept(const TimeCacheMap& map) {
  absl::Notification kept;
  absl::Status status;
  map.change_log()->WhenAllKept([&](const absl::Status& result) {
    status = result;
    kept.Notify();
  });
  kept.WaitForNotification();
  return status;
}

// Some of the partitions.
class Part {
 public:
  explicit Part(Shared* shared) : shared_(*shared) {}

  absl::Status Run(std::vector<Journal::ReadFrom> from) {
    for (const Journal::ReadFrom& each : from) {
      next_[each.partition] = each.position;
    }
    absl::Status status = shared_.logs->journal().Read(
        from, [this](uint32_t partition, uint64_t position,
                     absl::string_view record) {
          if (shared_.failed)
            return absl::CancelledError("another part failed");
          NotePosition(partition, position);
          absl::Status status = Apply(record);
          if (status.ok()) return Count(record.size());
          return absl::Status(
              status.code(),
              absl::StrCat("record ", position, " of partition ", partition,
                           " of the journal: ", status.message()));
        });
    return status.ok() ? Finish() : status;
  }

 private:
  absl::Status Apply(absl::string_view bytes) {
    const absl::StatusOr<MapRecord> record = ReadMapRecord(bytes);
    if (!record.ok()) return record.status();
    const auto it = maps_.find(record->log_id);
    switch (record->kind) {
      case MapRecordKind::kCreated:
      case MapRecordKind::kOptions:
      case MapRecordKind::kWalkBegins:
      case MapRecordKind::kWalkEnds:
        return Describe(*record, it == maps_.end() ? nullptr : &it->second);
      case MapRecordKind::kDeleted:
        if (it != maps_.end()) maps_.erase(it);
        return absl::OkStatus();
      case MapRecordKind::kChanges:
        // Of a map that is deleted, or from before a walk.
        if (it == maps_.end()) return absl::OkStatus();
        return Replay(record->body, it->second.replay.get());
      case MapRecordKind::kTimeSkip: {
        const absl::StatusOr<TimeSkip> skip = DecodeTimeSkip(*record);
        if (skip.ok() && it != maps_.end()) it->second.replay->Apply(*skip);
        return skip.status();
      }
    }
    return absl::OkStatus();
  }

  // Positions are lost only in a journal that was salvaged.
  void NotePosition(uint32_t partition, uint64_t position) {
    uint64_t& next = next_[partition];
    if (position != next && !losses_) {
      losses_ = true;
      for (auto& [log_id, map] : maps_) map.replay->AllowLosses();
    }
    next = position + 1;
  }

  absl::Status Describe(const MapRecord& record, Recovering* recovering) {
    absl::StatusOr<MapDescription> map = DecodeMap(record);
    if (!map.ok()) return map.status();
    const bool created = record.kind == MapRecordKind::kCreated;
    if (recovering == nullptr &&
        (created || record.kind == MapRecordKind::kWalkBegins)) {
      recovering = &maps_[record.log_id];
      recovering->map =
          shared_.registry->Make(map->name, map->options, map->origin);
      recovering->replay = std::make_unique<MapReplay>(recovering->map.get());
      if (losses_) recovering->replay->AllowLosses();
      recovering->complete = created;
      if (!created) recovering->replay->Silence();
    }
    // From before a walk.
    if (recovering == nullptr) return absl::OkStatus();
    recovering->map->SetLogFork(map->origin.fork);
    if (record.kind == MapRecordKind::kWalkEnds) {
      recovering->replay->Begin(map->counts);
      recovering->complete = true;
    }
    recovering->options = std::move(map->options);
    return absl::OkStatus();
  }

  static absl::Status Replay(absl::string_view changes, MapReplay* replay) {
    return ReadChangeRecord(
        changes,
        [replay](int shard, const Change& change) {
          return replay->Apply(shard, change);
        },
        [replay](const Tick& tick) { return replay->Apply(tick); },
        [replay](const GroupChange& change) { return replay->Apply(change); });
  }

  // CANCELLED if nobody wants it any more.
  absl::Status Count(size_t bytes) {
    bytes_ += bytes;
    const uint64_t records = ++shared_.records;
    const RecoveryOptions& options = *shared_.options;
    if (records % options.progress_records != 0 &&
        bytes_ - told_bytes_ < options.progress_bytes) {
      return absl::OkStatus();
    }
    told_bytes_ = bytes_;
    if (options.progress) options.progress({records, shared_.records_end});
    return options.cancelled && options.cancelled()
               ? absl::CancelledError("the recovery was cancelled")
               : absl::OkStatus();
  }

  absl::Status Finish() {
    for (auto& [log_id, recovering] : maps_) {
      TimeCacheMap* const map = recovering.map.get();
      if (!recovering.complete) {
        return absl::DataLossError(
            absl::StrCat("the journal has not all of namespace ", map->name(),
                         ": its beginning was dropped, and what was to take "
                         "its place is not whole"));
      }
      const uint64_t version = recovering.replay->Finish();
      const int64_t last_us = recovering.replay->last_us();
      map->Update(recovering.options, last_us);
      // Behind the last tick: what comes later may be another event in each.
      if (shared_.options->copied) map->ForkLog();
      const auto log = shared_.logs->Resume(recovering.map);
      map->SetChangeLog(log);
      // With the fork.
      if (shared_.options->copied) log->TellOptions(map->options());
      SkipTime(recovering, log.get());
      absl::MutexLock lock(&shared_.mu);
      RecoveryReport& report = shared_.report;
      ++report.namespaces;
      report.entries += static_cast<uint64_t>(map->CountedSize().entries);
      report.last_us = std::max(report.last_us, last_us);
      shared_.next_version = std::max(shared_.next_version, version);
      shared_.maps.push_back(std::move(recovering.map));
    }
    absl::MutexLock lock(&shared_.mu);
    shared_.report.record_bytes += bytes_;
    return absl::OkStatus();
  }

  // Behind all that the journal tells of the map.
  void SkipTime(const Recovering& recovering, MapChangeLog* log) {
    const TimeSkip skip = {recovering.replay->last_us(),
                           shared_.options->now_us};
    if (recovering.options.restart_policy != RestartPolicy::kPause ||
        recovering.map->CountedSize().entries == 0 ||
        skip.to_us <= skip.from_us) {
      return;
    }
    log->TellTimeSkip(skip);
    recovering.replay->Apply(skip);
  }

  Shared& shared_;
  absl::flat_hash_map<uint64_t, Recovering> maps_;
  // The position to come, by partition, and whether one did not.
  absl::flat_hash_map<uint32_t, uint64_t> next_;
  bool losses_ = false;
  uint64_t bytes_ = 0;
  // As of the last progress.
  uint64_t told_bytes_ = 0;
};

// What it was copied from goes on with the versions behind the copy, at most
// VersionSource::kPerMicro a microsecond: a client of both should not see one
// twice, also where the clock says nothing (it stands still, or is behind). Up
// to 18 minutes' worth, so that the clock soon comes to it.
uint64_t RandomVersionGap() {
  constexpr uint64_t kMin = uint64_t{1} << 32;
  std::random_device random;
  return std::uniform_int_distribution<uint64_t>(kMin, 2 * kMin)(random);
}

}  // namespace

absl::StatusOr<RecoveryReport> RecoverMaps(MapChangeLogs* logs,
                                           Registry* registry,
                                           const RecoveryOptions& options) {
  const Journal& journal = logs->journal();
  Shared shared;
  shared.logs = logs;
  shared.registry = registry;
  shared.options = &options;
  const auto threads = static_cast<size_t>(std::max(options.threads, 1));
  std::vector<std::vector<Journal::ReadFrom>> parts(threads);
  for (uint32_t partition = 0; partition < journal.partitions(); ++partition) {
    const uint64_t first = journal.First(partition);
    const uint64_t records = journal.End(partition) - first;
    if (records == 0) continue;
    shared.records_end += records;
    parts[partition % threads].push_back({partition, first});
  }
  if (options.progress) options.progress({0, shared.records_end});
  std::vector<std::thread> running;
  for (auto& from : parts) {
    if (from.empty()) continue;
    running.emplace_back([&shared, from = std::move(from)]() mutable {
      absl::Status status = Part(&shared).Run(std::move(from));
      if (status.ok()) return;
      absl::MutexLock lock(&shared.mu);
      if (!shared.failed.exchange(true)) shared.status = std::move(status);
    });
  }
  for (std::thread& thread : running) thread.join();

  absl::MutexLock lock(&shared.mu);
  if (!shared.status.ok()) return shared.status;
  for (const auto& map : shared.maps) {
    if (absl::Status status = AwaitKept(*map); !status.ok()) return status;
  }
  // Before the first of them is used.
  registry->RaiseVersions(shared.next_version +
                          (options.copied ? RandomVersionGap() : 0));
  for (const auto& map : shared.maps) {
    if (absl::Status status = registry->Add(map); !status.ok()) {
      return absl::DataLossError(absl::StrCat("the journal has two namespaces ",
                                              map->name(), " at once"));
    }
  }
  shared.report.records = shared.records;
  return shared.report;
}

}  // namespace timecache::server
