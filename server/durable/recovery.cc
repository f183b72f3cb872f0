#include "server/durable/recovery.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/base/memory_budget.h"
#include "server/base/memory_reclaimer.h"
#include "server/durable/change_record.h"
#include "server/durable/map_record.h"
#include "server/durable/open_checkpoint.h"
#include "server/durable/shared_read.h"
#include "server/engine/map/map_replay.h"

namespace timecache::server {
namespace {

// How long those who read a log before a restart have to resume, at least.
constexpr int64_t kResumeUs = 10 * kMicrosPerSecond;

// A map that is being rebuilt.
struct Recovering {
  std::shared_ptr<TimeCacheMap> map;
  std::unique_ptr<MapReplay> replay;
  uint32_t partition = 0;
  // The latest description.
  NamespaceOptions options;
  // Whether deaths may be published: since its creation, or the end of a walk.
  bool complete = false;
  // Those of one name are in the order of their numbers.
  uint64_t number = 0;
  // Its deletion was not stored, though a newer one has its name.
  bool ended = false;
  // Records of its partition are missing.
  bool incomplete = false;
  // Where its creation is recorded; 0 where that was trimmed.
  uint64_t created = 0;
  // The last one.
  CheckpointMark mark;
  // From the end of the replay on.
  std::shared_ptr<MapChangeLog> log;
};

bool Pauses(const Recovering& recovering) {
  return recovering.options.restart_policy == RestartPolicy::kPause;
}

// How far a partition is read.
struct Place {
  // The next position.
  uint64_t next = 0;
  // Where the partition ended when the recovery began.
  uint64_t end = 0;
  // Missing positions.
  uint64_t lost = 0;
};

// The state that all threads share.
struct Shared {
  MapChangeLogs* logs = nullptr;
  Registry* registry = nullptr;
  const RecoveryOptions* options = nullptr;
  std::atomic<uint64_t> records_end{0};
  std::atomic<uint64_t> records{0};
  std::atomic<bool> failed{false};

  absl::Mutex mu;
  absl::Status status ABSL_GUARDED_BY(mu);
  RecoveryReport report ABSL_GUARDED_BY(mu);
  uint64_t next_version ABSL_GUARDED_BY(mu) = 0;
  // Those that are rebuilt.
  std::vector<Recovering> maps ABSL_GUARDED_BY(mu);
};

// The changes of the map that were recorded in this process.
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

bool Describes(MapRecordKind kind) {
  return kind == MapRecordKind::kCreated || kind == MapRecordKind::kOptions ||
         kind == MapRecordKind::kWalkBegins || kind == MapRecordKind::kWalkEnds;
}

constexpr uint64_t kChangesPerLook = 256;

// A record of a map, and the description that it has, if any.
struct Parsed {
  MapRecord record;
  std::optional<MapDescription> map;
};

absl::StatusOr<Parsed> Parse(absl::string_view bytes) {
  const absl::StatusOr<MapRecord> record = ReadMapRecord(bytes);
  if (!record.ok()) return record.status();
  Parsed parsed = {*record, std::nullopt};
  if (Describes(record->kind)) {
    absl::StatusOr<MapDescription> map = DecodeMap(*record);
    if (!map.ok()) return map.status();
    parsed.map = *std::move(map);
  }
  return parsed;
}

// Some of the partitions, in one pass.
//
// A journal that was salvaged lacks positions. A partition that lacks some is
// read once more, by rules of its own, when all descriptions of its maps are
// known: each map begins with its first record, whether or not its creation or
// the ends of a walk are lost.
class Part {
 public:
  // The `number`th of `read`.
  Part(Shared* shared, SharedRead* read, size_t number)
      : shared_(*shared), shared_read_(*read), number_(number) {}

  absl::Status Run(const std::vector<Journal::ReadFrom>& from) {
    for (const Journal::ReadFrom& each : from) {
      places_[each.partition] = {
          each.position, shared_.logs->journal().End(each.partition), 0};
    }
    absl::Status status =
        shared_read_.Read(number_, [this](uint32_t partition, uint64_t position,
                                          absl::string_view record) {
          Place& place = places_[partition];
          place.lost += position - place.next;
          place.next = position + 1;
          ++records_;
          record_bytes_ += record.size();
          return Visit(partition, position, record, &Part::Find);
        });
    if (status.ok()) status = Salvage(from);
    return status.ok() ? Finish() : status;
  }

 private:
  // The map of a record, which may begin with it; null if it has none: it was
  // deleted, or the record is from before a walk.
  using FindMap = Recovering* (Part::*)(uint32_t partition,
                                        const Parsed& parsed);

  // Reads the partitions again that lack records.
  absl::Status Salvage(const std::vector<Journal::ReadFrom>& from) {
    std::vector<Journal::ReadFrom> again;
    for (const Journal::ReadFrom& each : from) {
      Place& place = places_[each.partition];
      // Of a journal that is followed, more was read.
      if (place.next < place.end) place.lost += place.end - place.next;
      if (place.lost == 0) continue;
      again.push_back(each);
      shared_.records_end += place.end - each.position;
      absl::MutexLock lock(&shared_.mu);
      shared_.report.lost_records += place.lost;
    }
    if (again.empty()) return absl::OkStatus();
    absl::erase_if(maps_, [this](const auto& each) {
      return HasLosses(each.second.partition);
    });
    return shared_.logs->journal().Read(
        again, [this](uint32_t partition, uint64_t position,
                      absl::string_view record) {
          return Visit(partition, position, record, &Part::FindSalvaged);
        });
  }

  bool HasLosses(uint32_t partition) { return places_[partition].lost > 0; }

  absl::Status Visit(uint32_t partition, uint64_t position,
                     absl::string_view bytes, FindMap find) {
    absl::StatusOr<Parsed> parsed = Parse(bytes);
    absl::Status status = parsed.status();
    if (status.ok() && parsed->record.kind == MapRecordKind::kDeleted) {
      ended_.insert(parsed->record.log_id);
      descriptions_.erase(parsed->record.log_id);
      maps_.erase(parsed->record.log_id);
    } else if (status.ok()) {
      if (Recovering* const map = (this->*find)(partition, *parsed)) {
        status = Apply(position, *std::move(parsed), map);
      }
    }
    if (status.ok()) return Count(bytes.size());
    return absl::Status(
        status.code(),
        absl::StrCat("record ", position, " of partition ", partition,
                     " of the journal: ", status.message()));
  }

  Recovering* Find(uint32_t partition, const Parsed& parsed) {
    const uint64_t log_id = parsed.record.log_id;
    if (parsed.map.has_value()) {
      descriptions_.try_emplace(log_id, *parsed.map);
    }
    if (HasLosses(partition)) return nullptr;
    const auto it = maps_.find(log_id);
    if (it != maps_.end()) return &it->second;
    const bool created = parsed.record.kind == MapRecordKind::kCreated;
    const bool begins =
        created || parsed.record.kind == MapRecordKind::kWalkBegins;
    if (!begins || ended_.contains(log_id)) return nullptr;
    Recovering* const recovering = Make(partition, log_id, *parsed.map);
    recovering->complete = created;
    if (!created) recovering->replay->Silence();
    return recovering;
  }

  Recovering* FindSalvaged(uint32_t partition, const Parsed& parsed) {
    const uint64_t log_id = parsed.record.log_id;
    const auto it = maps_.find(log_id);
    if (it != maps_.end()) return &it->second;
    if (ended_.contains(log_id)) return nullptr;
    const auto known = descriptions_.find(log_id);
    if (known == descriptions_.end()) {
      unknown_.insert(log_id);
      return nullptr;
    }
    Recovering* const recovering =
        Make(partition, log_id, parsed.map.value_or(known->second));
    recovering->complete = true;
    recovering->replay->AllowLosses();
    return recovering;
  }

  Recovering* Make(uint32_t partition, uint64_t log_id,
                   const MapDescription& map) {
    Recovering& recovering = maps_[log_id];
    recovering.map = shared_.registry->Make(map.name, map.options, map.origin);
    recovering.replay = std::make_unique<MapReplay>(recovering.map.get());
    recovering.replay->SetCancelled([this] { return !Look().ok(); });
    recovering.partition = partition;
    recovering.number = ++made_;
    recovering.options = map.options;
    return &recovering;
  }

  absl::Status Apply(uint64_t position, Parsed parsed, Recovering* recovering) {
    const MapRecord& record = parsed.record;
    switch (record.kind) {
      case MapRecordKind::kCreated:
        recovering->created = position;
        [[fallthrough]];
      case MapRecordKind::kOptions:
      case MapRecordKind::kWalkBegins:
      case MapRecordKind::kWalkEnds:
        Describe(record.kind, *std::move(parsed.map), recovering);
        break;
      case MapRecordKind::kChanges:
        return Replay(record.body, recovering->replay.get());
      case MapRecordKind::kTimeSkip:
      case MapRecordKind::kDowntime: {
        const absl::StatusOr<TimeSkip> skip = DecodeTimeSkip(record);
        if (skip.ok()) recovering->replay->Apply(*skip);
        return skip.status();
      }
      case MapRecordKind::kCheckpoint: {
        absl::StatusOr<CheckpointMark> mark = DecodeCheckpoint(record);
        if (!mark.ok()) return mark.status();
        recovering->replay->Observe(mark->at_us);
        // Others are not written again, and no new group may begin with them.
        if (mark->place.phase > CheckpointPlace::Phase::kEvents) {
          recovering->replay->DropBefore(mark->place.end_event);
        }
        recovering->mark = *std::move(mark);
        break;
      }
      case MapRecordKind::kDeleted:
        break;
    }
    return absl::OkStatus();
  }

  static void Describe(MapRecordKind kind, MapDescription map,
                       Recovering* recovering) {
    recovering->map->SetLogFork(map.origin.fork);
    if (kind == MapRecordKind::kWalkEnds) {
      recovering->replay->Begin(map.counts);
      recovering->complete = true;
    }
    recovering->options = std::move(map.options);
  }

  absl::Status Replay(absl::string_view changes, MapReplay* replay) {
    const auto after = [this](const absl::Status& status) {
      return status.ok() && ++changes_ % kChangesPerLook == 0 ? Look() : status;
    };
    return ReadChangeRecord(
        changes,
        [&](int shard, const Change& change) {
          return after(replay->Apply(shard, change));
        },
        [&](const Tick& tick) { return after(replay->Apply(tick)); },
        [&](const GroupChange& change) { return after(replay->Apply(change)); },
        [&](const RetainedEvents& events) {
          replay->Apply(events);
          return after(absl::OkStatus());
        });
  }

  // Says how far it is, and keeps the process within its memory, as far as
  // retained events can be dropped: which the server before had dropped is
  // recorded only with the next tick. CANCELLED if the caller has cancelled the
  // recovery, or another part has failed. Called after each bounded step,
  // however large a record is.
  absl::Status Look() {
    if (MemoryBudget::Process().level() != MemoryBudget::Level::kRoom) {
      MemoryReclaimer::Process().MakeRoom(/*now_us=*/0).IgnoreError();
    }
    const RecoveryOptions& options = *shared_.options;
    if (options.progress) {
      options.progress({shared_.records, shared_.records_end});
    }
    return shared_.failed || (options.cancelled && options.cancelled())
               ? absl::CancelledError("the recovery was cancelled")
               : absl::OkStatus();
  }

  absl::Status Count(size_t bytes) {
    bytes_ += bytes;
    const uint64_t records = ++shared_.records;
    const RecoveryOptions& options = *shared_.options;
    if (records % options.progress_records != 0 &&
        bytes_ - reported_bytes_ < options.progress_bytes) {
      return absl::OkStatus();
    }
    reported_bytes_ = bytes_;
    return Look();
  }

  absl::Status Finish() {
    // A map is deleted before another one of its name is created, but the
    // record of the deletion may come after that of the creation, with a crash
    // in between.
    absl::flat_hash_map<std::string, uint64_t> newest;
    for (const auto& [log_id, recovering] : maps_) {
      uint64_t& number = newest[recovering.map->name()];
      number = std::max(number, recovering.number);
    }
    for (auto& [log_id, recovering] : maps_) {
      recovering.ended = recovering.number < newest[recovering.map->name()];
      if (!recovering.ended && !recovering.complete) {
        return absl::DataLossError(absl::StrCat(
            "the journal lacks a part of namespace ", recovering.map->name(),
            ": its first records were trimmed, and their replacement is "
            "incomplete"));
      }
      if (absl::Status status = Look(); !status.ok()) return status;
      Finish(&recovering);
    }
    absl::MutexLock lock(&shared_.mu);
    RecoveryReport& report = shared_.report;
    report.records += records_;
    report.record_bytes += record_bytes_;
    report.unknown.insert(report.unknown.end(), unknown_.begin(),
                          unknown_.end());
    return absl::OkStatus();
  }

  // Records nothing.
  void Finish(Recovering* recovering) {
    // Until the downtime is known.
    recovering->map->HoldEvents(kNeverUs);
    const uint64_t version = recovering->replay->Finish();
    recovering->replay->SetCancelled(nullptr);
    const int64_t last_us = recovering->replay->last_us();
    recovering->map->Update(recovering->options, last_us);
    recovering->incomplete = HasLosses(recovering->partition);
    absl::MutexLock lock(&shared_.mu);
    shared_.next_version = std::max(shared_.next_version, version);
    shared_.report.last_us = std::max(shared_.report.last_us, last_us);
    shared_.maps.push_back(std::move(*recovering));
  }

  Shared& shared_;
  SharedRead& shared_read_;
  const size_t number_;
  // By the id of its log, as all others of maps.
  absl::flat_hash_map<uint64_t, Recovering> maps_;
  absl::flat_hash_map<uint32_t, Place> places_;
  uint64_t made_ = 0;
  // The first of each map that was read.
  absl::flat_hash_map<uint64_t, MapDescription> descriptions_;
  // Maps that are deleted: if read again, from the beginning on.
  absl::flat_hash_set<uint64_t> ended_;
  // Maps that no record describes.
  absl::flat_hash_set<uint64_t> unknown_;
  // Of the journal, each once.
  uint64_t records_ = 0;
  uint64_t record_bytes_ = 0;
  // Progress.
  uint64_t bytes_ = 0;
  uint64_t reported_bytes_ = 0;
  uint64_t changes_ = 0;
};

// Records what a start changes in a rebuilt map.
void Continue(const RecoveryOptions& options, MapChangeLogs* logs,
              Recovering* recovering, RecoveryReport* report) {
  TimeCacheMap* const map = recovering->map.get();
  const bool forks = !recovering->ended &&
                     (options.copied || (options.may_have_lost_power &&
                                         recovering->options.durability ==
                                             NamespaceDurability::kAsync));
  // After the last tick: later events may differ between the two logs.
  if (forks) map->ForkLog();
  recovering->log = logs->Resume(recovering->map);
  map->SetChangeLog(recovering->log);
  if (recovering->ended) {
    // Otherwise it would exist again once the newer one is deleted.
    recovering->log->AppendDeleted();
    return;
  }
  if (forks) recovering->log->AppendFork();
  ++report->namespaces;
  report->forked += forks ? 1 : 0;
  if (recovering->incomplete) report->incomplete.push_back(map->name());
  report->entries += static_cast<uint64_t>(map->CountedSize().entries);
}

void Skip(const Recovering& recovering, const TimeSkip& skip) {
  if (skip.to_us <= skip.from_us) return;
  recovering.log->AppendTimeSkip(skip);
  recovering.replay->Apply(skip);
}

// The entries' times move, of maps that pause by all time that is not recorded,
// of others by what the clock was behind: time has passed as the clock before
// this one counted it.
void MoveEntries(const Recovering& recovering, int64_t behind_us,
                 int64_t now_us) {
  TimeCacheMap* const map = recovering.map.get();
  if (map->CountedSize().entries == 0 && map->retained_bytes() == 0) return;
  const int64_t last_us = recovering.replay->last_us();
  Skip(recovering,
       {last_us, Pauses(recovering) ? now_us : last_us + behind_us, true});
}

// Downtime is no age of retained events. After all records of the map: the
// server lived until `last_us`, at least, and maps that are idle have no records
// of it.
void SkipDowntime(const Recovering& recovering, int64_t last_us,
                  int64_t now_us) {
  if (recovering.map->retained_bytes() == 0) return;
  Skip(recovering, {last_us, now_us, false});
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
    if (records == 0 && !options.follow) continue;
    shared.records_end += records;
    parts[partition % threads].push_back({partition, first});
  }
  if (options.progress) options.progress({0, shared.records_end});
  std::erase_if(parts, [](const auto& from) { return from.empty(); });
  SharedRead read(&journal, parts);
  std::vector<std::thread> running;
  for (size_t part = 0; part < parts.size(); ++part) {
    running.emplace_back([&, part] {
      absl::Status status = Part(&shared, &read, part).Run(parts[part]);
      if (status.ok()) return;
      absl::MutexLock lock(&shared.mu);
      if (!shared.failed.exchange(true)) shared.status = std::move(status);
    });
  }
  // An error is that of all parts.
  read.Run(options.follow).IgnoreError();
  for (std::thread& thread : running) thread.join();

  absl::MutexLock lock(&shared.mu);
  if (!shared.status.ok()) return shared.status;
  if (options.check_time) {
    absl::Status status = options.check_time(shared.report.last_us);
    if (!status.ok()) return status;
  }
  const int64_t last_us = shared.report.last_us;
  const int64_t now_us =
      options.clock != nullptr ? options.clock->NowUs() : last_us;
  // No further than now, which a clock that was set back since may be before.
  // A journal without a time has nothing to move.
  const int64_t behind_us =
      last_us == INT64_MIN
          ? 0
          : std::clamp(now_us - last_us, int64_t{0}, options.clock_behind_us);
  for (Recovering& each : shared.maps) {
    Continue(options, logs, &each, &shared.report);
    if (!each.ended && (Pauses(each) || behind_us > 0)) {
      MoveEntries(each, behind_us, now_us);
    }
  }
  for (const Recovering& each : shared.maps) {
    if (absl::Status status = AwaitKept(*each.map); !status.ok()) return status;
  }
  // Before the first of them is used.
  registry->RaiseVersions(shared.next_version +
                          (shared.report.forked > 0 ? RandomVersionGap() : 0));
  std::vector<MarkedMap> marks;
  for (Recovering& each : shared.maps) {
    if (each.ended) continue;
    // Needs no room on the disk now: if it is not stored, the next recovery
    // takes this life for downtime, too.
    if (!Pauses(each)) SkipDowntime(each, last_us + behind_us, now_us);
    each.map->BeginLife(std::max(last_us, now_us));
    each.map->HoldEvents(std::max(last_us, now_us) + kResumeUs);
    marks.push_back({each.map->origin().log_id, each.partition, each.created,
                     std::move(each.mark)});
    if (absl::Status status = registry->Add(each.map); !status.ok()) {
      return absl::DataLossError(absl::StrCat("the journal has two namespaces ",
                                              each.map->name(), " at once"));
    }
  }
  if (shared.report.lost_records == 0) {
    logs->SetOpenCheckpoint(FindOpenCheckpoint(journal, std::move(marks)));
  }
  return shared.report;
}

}  // namespace timecache::server
