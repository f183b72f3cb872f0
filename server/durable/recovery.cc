#include "server/durable/recovery.h"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/durable/rebuilt_maps.h"

namespace timecache::server {
namespace {

// How long those who read a log before a restart have to resume, at least.
constexpr int64_t kResumeUs = 10 * kMicrosPerSecond;

absl::Status RebuildAll(int threads, RebuiltMaps* all) {
  const Journal& journal = all->journal;
  std::vector<std::vector<Journal::ReadFrom>> parts(
      static_cast<size_t>(std::max(threads, 1)));
  for (uint32_t partition = 0; partition < journal.partitions(); ++partition) {
    const uint64_t first = journal.First(partition);
    const uint64_t records = journal.End(partition) - first;
    if (records == 0 && !all->options.follow) continue;
    all->records_end += records;
    parts[partition % parts.size()].push_back({partition, first});
  }
  if (all->options.progress) all->options.progress({0, all->records_end});
  std::erase_if(parts, [](const auto& from) { return from.empty(); });
  SharedRead read(&journal, parts);
  // That of the first thread that fails, and sets `failed`.
  absl::Status result;
  std::vector<std::thread> running;
  for (size_t part = 0; part < parts.size(); ++part) {
    running.emplace_back([&, part] {
      absl::Status status = RebuildMaps(parts[part], part, &read, all);
      if (!status.ok() && !all->failed.exchange(true)) {
        result = std::move(status);
      }
    });
  }
  // An error is that of all threads.
  read.Run(all->options.follow).IgnoreError();
  for (std::thread& thread : running) thread.join();
  return result;
}

// Records what a start changes in a rebuilt map.
void Continue(const RecoveryOptions& options, MapChangeLogs* logs,
              RebuiltMap* rebuilt, RecoveryReport* report) {
  TimeCacheMap* const map = rebuilt->map.get();
  const bool forks =
      !rebuilt->ended &&
      (options.copied || rebuilt->copied ||
       (options.may_have_lost_power &&
        rebuilt->options.durability == NamespaceDurability::kAsync));
  // After the last tick: later events may differ between the two logs.
  if (forks) map->ForkLog();
  // Of a copy, from a journal of the other kind; with the identity.
  const NamespaceDurability kept =
      NearestDurability(rebuilt->options.durability, logs->kind());
  if (kept != rebuilt->options.durability) {
    rebuilt->options.durability = kept;
    map->Update(rebuilt->options, rebuilt->replay->last_us());
  }
  rebuilt->log = logs->Resume(rebuilt->map);
  map->SetChangeLog(rebuilt->log);
  if (rebuilt->ended) {
    // Otherwise it would exist again once the newer one is deleted.
    rebuilt->log->AppendDeleted();
    return;
  }
  if (forks) rebuilt->log->AppendFork();
  if (map->partition() == 0) ++report->namespaces;
  report->forked += forks ? 1 : 0;
  if (rebuilt->lacks_records &&
      std::find(report->incomplete.begin(), report->incomplete.end(),
                map->namespace_name()) == report->incomplete.end()) {
    report->incomplete.push_back(map->namespace_name());
  }
  report->entries += static_cast<uint64_t>(map->CountedSize().entries);
}

// The changes of the map that were recorded in this process.
absl::Status AwaitKept(const RebuiltMap& rebuilt) {
  absl::Notification kept;
  absl::Status status;
  rebuilt.log->WhenAllKept([&](const absl::Status& result) {
    status = result;
    kept.Notify();
  });
  kept.WaitForNotification();
  return status;
}

void Skip(const RebuiltMap& rebuilt, const TimeSkip& skip) {
  if (skip.to_us <= skip.from_us) return;
  rebuilt.log->AppendTimeSkip(skip);
  rebuilt.replay->Apply(skip);
}

// The entries' times move, of maps that pause by all time that is not recorded,
// of others by what the clock was behind: time has passed as the clock before
// this one counted it.
void MoveEntries(const RebuiltMap& rebuilt, int64_t behind_us, int64_t now_us) {
  if (rebuilt.ended || (!rebuilt.pauses() && behind_us == 0)) return;
  const TimeCacheMap& map = *rebuilt.map;
  if (map.CountedSize().entries == 0 && map.retained_bytes() == 0) return;
  const int64_t last_us = rebuilt.replay->last_us();
  Skip(rebuilt,
       {last_us, rebuilt.pauses() ? now_us : last_us + behind_us, true});
}

// Downtime is no age of retained events. After all records of the map: the
// server lived until `last_us`, at least, and maps that are idle have no records
// of it. Needs no room on the disk now: if it is not stored, the next recovery
// takes this life for downtime, too.
void SkipDowntime(const RebuiltMap& rebuilt, int64_t last_us, int64_t now_us) {
  if (rebuilt.pauses() || rebuilt.map->retained_bytes() == 0) return;
  Skip(rebuilt, {last_us, now_us, false});
}

// The original continues with the versions after the copy (and records lost in
// a power loss had such, too), at most VersionSource::kPerMicro a microsecond:
// a client of both should not see a version twice, even if the clock does not
// help (it stands still, or is behind). Up to 18 minutes' worth, so that the
// clock soon reaches it.
uint64_t RandomVersionGap() {
  constexpr uint64_t kMin = uint64_t{1} << 32;
  std::random_device random;
  return std::uniform_int_distribution<uint64_t>(kMin, 2 * kMin)(random);
}

}  // namespace

absl::StatusOr<RecoveryReport> RecoverMaps(MapChangeLogs* logs,
                                           Registry* registry,
                                           const RecoveryOptions& options) {
  RebuiltMaps all(&logs->journal(), registry, &options);
  absl::Status status = RebuildAll(options.threads, &all);
  absl::MutexLock lock(&all.mu);
  RecoveryReport& report = all.report;
  const int64_t last_us = report.last_us;
  if (status.ok() && options.check_time) {
    status = options.check_time(std::max(last_us, all.restored_us));
  }
  if (!status.ok()) return status;

  const int64_t now_us =
      options.clock != nullptr ? options.clock->NowUs() : last_us;
  // No further than now, which a clock that was set back since may be before.
  // A journal without a time has nothing to move.
  const int64_t behind_us =
      last_us == INT64_MIN
          ? 0
          : std::clamp(now_us - last_us, int64_t{0}, options.clock_behind_us);
  for (RebuiltMap& each : all.maps) {
    Continue(options, logs, &each, &report);
    MoveEntries(each, behind_us, now_us);
  }
  for (const RebuiltMap& each : all.maps) {
    if (status = AwaitKept(each); !status.ok()) return status;
  }
  // Before the first of them is used.
  registry->RaiseVersions(all.next_version +
                          (report.forked > 0 ? RandomVersionGap() : 0));
  std::vector<MarkedMap> marks;
  for (RebuiltMap& each : all.maps) {
    if (each.ended) continue;
    SkipDowntime(each, last_us + behind_us, now_us);
    each.map->BeginLife(std::max(last_us, now_us));
    each.map->HoldEvents(std::max(last_us, now_us) + kResumeUs);
    marks.push_back(std::move(each.marked));
    if (!registry->Add(each.map).ok()) {
      return absl::DataLossError(absl::StrCat("the journal has two namespaces ",
                                              each.map->name(), " at once"));
    }
  }
  if (report.lost_records == 0) {
    logs->SetOpenCheckpoint(FindOpenCheckpoint(all.journal, std::move(marks)));
  }
  return report;
}

}  // namespace timecache::server
