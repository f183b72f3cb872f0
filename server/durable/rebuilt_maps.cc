#include "server/durable/rebuilt_maps.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "server/base/memory_budget.h"
#include "server/base/memory_reclaimer.h"
#include "server/durable/change_record.h"
#include "server/durable/map_record.h"

namespace timecache::server {
namespace {

constexpr uint64_t kChangesPerLook = 256;

// Of one thread.
class MapRebuilder {
 public:
  explicit MapRebuilder(RebuiltMaps* all) : all_(*all) {}

  absl::Status Run(const std::vector<Journal::ReadFrom>& partitions,
                   size_t part, SharedRead* read) {
    for (const Journal::ReadFrom& from : partitions) {
      places_[from.partition].next = from.position;
    }
    absl::Status status =
        read->Read(part, [this](uint32_t partition, uint64_t position,
                                absl::string_view record) {
          Place& place = places_[partition];
          place.lost += position - place.next;
          place.next = position + 1;
          ++records_;
          record_bytes_ += record.size();
          return Visit(partition, position, record);
        });
    if (status.ok()) status = Salvage(partitions);
    return status.ok() ? Finish() : status;
  }

 private:
  // How far a partition is read.
  struct Place {
    // The next position.
    uint64_t next = 0;
    // Missing positions.
    uint64_t lost = 0;
  };

  // Reads the partitions again that lack records.
  absl::Status Salvage(const std::vector<Journal::ReadFrom>& partitions) {
    std::vector<Journal::ReadFrom> again;
    for (const Journal::ReadFrom& from : partitions) {
      Place& place = places_[from.partition];
      const uint64_t end = all_.journal.End(from.partition);
      place.lost += end - place.next;
      if (place.lost == 0) continue;
      lost_records_ += place.lost;
      all_.records_end += end - from.position;
      again.push_back(from);
    }
    if (again.empty()) return absl::OkStatus();
    salvaging_ = true;
    absl::erase_if(maps_, [this](const auto& each) {
      return HasLosses(each.second.marked.partition);
    });
    return all_.journal.Read(again,
                             [this](uint32_t partition, uint64_t position,
                                    absl::string_view record) {
                               return Visit(partition, position, record);
                             });
  }

  bool HasLosses(uint32_t partition) { return places_[partition].lost > 0; }

  absl::Status Visit(uint32_t partition, uint64_t position,
                     absl::string_view bytes) {
    const absl::StatusOr<MapRecord> record = ReadMapRecord(bytes);
    absl::Status status =
        record.ok() ? Apply(partition, position, *record) : record.status();
    if (status.ok()) return Count(bytes.size());
    return absl::Status(
        status.code(),
        absl::StrCat("record ", position, " of partition ", partition,
                     " of the journal: ", status.message()));
  }

  absl::Status Apply(uint32_t partition, uint64_t position,
                     const MapRecord& record) {
    switch (record.kind) {
      case MapRecordKind::kDeleted:
        ended_.insert(record.log_id);
        descriptions_.erase(record.log_id);
        maps_.erase(record.log_id);
        return absl::OkStatus();
      case MapRecordKind::kCreated:
      case MapRecordKind::kOptions:
      case MapRecordKind::kWalkBegins:
      case MapRecordKind::kWalkEnds:
        return Describe(partition, position, record);
      case MapRecordKind::kRestoreBegins:
        restoring_.insert(partition);
        return absl::OkStatus();
      case MapRecordKind::kRestoreEnds:
        return EndRestore(partition, record);
      default:
        RebuiltMap* const map = Find(partition, record, nullptr);
        return map != nullptr ? ApplyTo(map, record) : absl::OkStatus();
    }
  }

  absl::Status EndRestore(uint32_t partition, const MapRecord& record) {
    const absl::StatusOr<int64_t> at_us = DecodeRestoreEnds(record);
    if (!at_us.ok()) return at_us.status();
    restoring_.erase(partition);
    restored_us_ = std::max(restored_us_, *at_us);
    for (auto& [log_id, map] : maps_) {
      if (map.marked.partition == partition) map.copied = true;
    }
    return absl::OkStatus();
  }

  // The map of a record, which may begin with it; null if it has none: it was
  // deleted, or the record is from before a walk. `described` is what the record
  // says of it, if it does.
  RebuiltMap* Find(uint32_t partition, const MapRecord& record,
                   const MapDescription* described) {
    if (!salvaging_ && HasLosses(partition)) return nullptr;
    const auto it = maps_.find(record.log_id);
    if (it != maps_.end()) return &it->second;
    if (ended_.contains(record.log_id)) return nullptr;
    const bool created = record.kind == MapRecordKind::kCreated;
    if (!salvaging_ && !created && record.kind != MapRecordKind::kWalkBegins) {
      return nullptr;
    }
    if (described == nullptr) {
      const auto known = descriptions_.find(record.log_id);
      if (known == descriptions_.end()) {
        unknown_.insert(record.log_id);
        return nullptr;
      }
      described = &known->second;
    }
    RebuiltMap* const map = Make(partition, record.log_id, *described);
    map->complete = created || salvaging_;
    if (salvaging_) {
      map->replay->AllowLosses();
    } else if (!created) {
      map->replay->Silence();
    }
    return map;
  }

  RebuiltMap* Make(uint32_t partition, uint64_t log_id,
                   const MapDescription& described) {
    RebuiltMap& made = maps_[log_id];
    made.map =
        all_.registry.Make(described.name, described.options, described.origin);
    made.replay = std::make_unique<MapReplay>(made.map.get());
    made.replay->SetCancelled([this] { return !Look().ok(); });
    made.marked.log_id = log_id;
    made.marked.partition = partition;
    newest_[described.name] = log_id;
    return &made;
  }

  absl::Status Describe(uint32_t partition, uint64_t position,
                        const MapRecord& record) {
    absl::StatusOr<MapDescription> described = DecodeMap(record);
    if (!described.ok()) return described.status();
    descriptions_.try_emplace(record.log_id, *described);
    RebuiltMap* const map = Find(partition, record, &*described);
    if (map == nullptr) return absl::OkStatus();
    map->map->SetLogFork(described->origin.fork);
    // A process that describes a restored map has changed its identity before.
    map->copied = false;
    if (record.kind == MapRecordKind::kCreated) map->marked.created = position;
    if (record.kind == MapRecordKind::kWalkEnds) {
      map->replay->Begin(described->counts);
      map->complete = true;
    }
    map->options = std::move(described->options);
    return absl::OkStatus();
  }

  absl::Status ApplyTo(RebuiltMap* map, const MapRecord& record) {
    MapReplay* const replay = map->replay.get();
    if (record.kind == MapRecordKind::kChanges) {
      return Replay(record.body, replay);
    }
    if (record.kind == MapRecordKind::kCheckpoint) {
      absl::StatusOr<CheckpointMark> mark = DecodeCheckpoint(record);
      if (!mark.ok()) return mark.status();
      replay->Observe(mark->at_us);
      // Others are not written again, and no new group may begin with them.
      if (mark->place.phase > CheckpointPlace::Phase::kEvents) {
        replay->DropBefore(mark->place.end_event);
      }
      map->marked.mark = *std::move(mark);
      return absl::OkStatus();
    }
    const absl::StatusOr<TimeSkip> skip = DecodeTimeSkip(record);
    if (skip.ok()) replay->Apply(*skip);
    return skip.status();
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
  // recovery, or another thread has failed. Called after each bounded step,
  // however large a record is.
  absl::Status Look() {
    if (MemoryBudget::Process().level() != MemoryBudget::Level::kRoom) {
      MemoryReclaimer::Process().MakeRoom(/*now_us=*/0).IgnoreError();
    }
    const RecoveryOptions& options = all_.options;
    if (options.progress) options.progress({all_.records, all_.records_end});
    return all_.failed || (options.cancelled && options.cancelled())
               ? absl::CancelledError("the recovery was cancelled")
               : absl::OkStatus();
  }

  absl::Status Count(size_t bytes) {
    unreported_bytes_ += bytes;
    const uint64_t records = ++all_.records;
    if (records % all_.options.progress_records != 0 &&
        unreported_bytes_ < all_.options.progress_bytes) {
      return absl::OkStatus();
    }
    unreported_bytes_ = 0;
    return Look();
  }

  absl::Status Finish() {
    if (!restoring_.empty() && !salvaging_) {
      return absl::FailedPreconditionError(
          "the journal has a part of a backup, whose restore was interrupted: "
          "make its topics anew (delete them, then run timecached cluster "
          "init), and restore the backup again");
    }
    for (auto& [log_id, map] : maps_) {
      // A map is deleted before another one of its name is created, but the
      // record of the deletion may come after that of the creation, with a crash
      // in between.
      map.ended = newest_[map.map->name()] != log_id;
      if (!map.ended && !map.complete) {
        return absl::DataLossError(absl::StrCat(
            "the journal lacks a part of namespace ", map.map->namespace_name(),
            ": its first records were trimmed, and their replacement is "
            "incomplete"));
      }
      if (absl::Status status = Look(); !status.ok()) return status;
      Finish(&map);
    }
    absl::MutexLock lock(&all_.mu);
    RecoveryReport& report = all_.report;
    report.records += records_;
    report.record_bytes += record_bytes_;
    report.lost_records += lost_records_;
    all_.restored_us = std::max(all_.restored_us, restored_us_);
    report.unknown.insert(report.unknown.end(), unknown_.begin(),
                          unknown_.end());
    return absl::OkStatus();
  }

  void Finish(RebuiltMap* map) {
    // Until the downtime is known.
    map->map->HoldEvents(kNeverUs);
    const uint64_t version = map->replay->Finish();
    map->replay->SetCancelled(nullptr);
    const int64_t last_us = map->replay->last_us();
    map->map->Update(map->options, last_us);
    map->lacks_records = HasLosses(map->marked.partition);
    absl::MutexLock lock(&all_.mu);
    all_.next_version = std::max(all_.next_version, version);
    all_.report.last_us = std::max(all_.report.last_us, last_us);
    all_.maps.push_back(std::move(*map));
  }

  RebuiltMaps& all_;
  absl::flat_hash_map<uint32_t, Place> places_;
  // In the second pass.
  bool salvaging_ = false;
  // By the id of its log, as all others of maps.
  absl::flat_hash_map<uint64_t, RebuiltMap> maps_;
  // The last that was made of each name.
  absl::flat_hash_map<std::string, uint64_t> newest_;
  // The first of each map that was read.
  absl::flat_hash_map<uint64_t, MapDescription> descriptions_;
  // Maps that are deleted: if read again, from the beginning on.
  absl::flat_hash_set<uint64_t> ended_;
  // Partitions with a kRestoreBegins without its end, and the last end.
  absl::flat_hash_set<uint32_t> restoring_;
  int64_t restored_us_ = INT64_MIN;
  // Maps that no record describes.
  absl::flat_hash_set<uint64_t> unknown_;
  // Of the journal, each once.
  uint64_t records_ = 0;
  uint64_t record_bytes_ = 0;
  uint64_t lost_records_ = 0;
  // Progress.
  uint64_t unreported_bytes_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace

absl::Status RebuildMaps(const std::vector<Journal::ReadFrom>& partitions,
                         size_t part, SharedRead* read, RebuiltMaps* all) {
  return MapRebuilder(all).Run(partitions, part, read);
}

}  // namespace timecache::server
