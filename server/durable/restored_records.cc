#include "server/durable/restored_records.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"
#include "server/durable/map_record.h"
#include "server/engine/store/partitions.h"

namespace timecache::server {
namespace {

constexpr size_t kInFlightBytesMax = size_t{32} << 20;
constexpr size_t kRestoredBatchBytes = size_t{256} << 10;
constexpr std::chrono::milliseconds kLookInterval{100};

// Appends that are done in any order.
class Appends {
 public:
  Appends(Journal* to, std::function<bool()> cancelled)
      : to_(*to), cancelled_(std::move(cancelled)) {}

  absl::Status Append(uint32_t partition, std::vector<std::string> records,
                      size_t bytes) {
    if (absl::Status status = AwaitAtMost(kInFlightBytesMax); !status.ok()) {
      return status;
    }
    {
      absl::MutexLock lock(&state_->mu);
      state_->bytes += bytes;
    }
    to_.Append(partition, std::move(records), Durability::kSync,
               [state = state_, bytes](const absl::StatusOr<uint64_t>& position,
                                       const std::vector<std::string>&) {
                 absl::MutexLock lock(&state->mu);
                 state->bytes -= bytes;
                 if (state->status.ok()) state->status = position.status();
                 state->done.Signal();
               });
    return absl::OkStatus();
  }

  absl::Status AwaitAll() { return AwaitAtMost(0); }

 private:
  // The last appends may outlive this.
  struct State {
    absl::Mutex mu;
    SteadyCondVar done;
    size_t bytes ABSL_GUARDED_BY(mu) = 0;
    absl::Status status ABSL_GUARDED_BY(mu);
  };

  absl::Status AwaitAtMost(size_t bytes) {
    absl::MutexLock lock(&state_->mu);
    while (state_->status.ok() && state_->bytes > bytes) {
      if (cancelled_()) return absl::CancelledError("it was interrupted");
      state_->done.WaitFor(&state_->mu, kLookInterval);
    }
    return state_->status;
  }

  Journal& to_;
  const std::function<bool()> cancelled_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

class RecordRestorer {
 public:
  RecordRestorer(Journal* to, std::function<bool()> cancelled)
      : partitions_(to->partitions()),
        append_bytes_(
            std::min(kRestoredBatchBytes, kInFlightBytesMax / partitions_)),
        batches_(partitions_),
        appends_(to, std::move(cancelled)) {}

  // All descriptions of a map say its name.
  absl::Status Learn(uint32_t partition, uint64_t position,
                     absl::string_view bytes) {
    const auto next = next_.try_emplace(partition, position).first;
    if (position != next->second++) {
      return absl::FailedPreconditionError(absl::StrCat(
          "partition ", partition, " lacks the records before position ",
          position,
          ", as after a salvage: start a server with the journal, and "
          "move its namespaces by timecachectl dump and load"));
    }
    const absl::StatusOr<MapRecord> record = ReadMapRecord(bytes);
    if (!record.ok()) return record.status();
    switch (record->kind) {
      case MapRecordKind::kCreated:
      case MapRecordKind::kOptions:
      case MapRecordKind::kWalkBegins:
      case MapRecordKind::kWalkEnds: {
        const absl::StatusOr<MapDescription> map = DecodeMap(*record);
        if (!map.ok()) return map.status();
        to_[record->log_id] = SlotOfMap(map->name, partitions_);
        return absl::OkStatus();
      }
      default:
        return absl::OkStatus();
    }
  }

  absl::Status AppendToAll(const std::string& record) {
    for (uint32_t p = 0; p < partitions_; ++p) {
      if (absl::Status status = Append(p, record); !status.ok()) return status;
      if (absl::Status status = Flush(p); !status.ok()) return status;
    }
    return appends_.AwaitAll();
  }

  absl::Status Add(absl::string_view bytes) {
    const absl::StatusOr<MapRecord> record = ReadMapRecord(bytes);
    if (!record.ok()) return record.status();
    const auto to = to_.find(record->log_id);
    if (to == to_.end()) return absl::OkStatus();
    ++restored_.records;
    if (record->kind != MapRecordKind::kCheckpoint) {
      return Append(to->second, std::string(bytes));
    }
    // Its positions are those of the other journal: a round begins anew.
    absl::StatusOr<CheckpointMark> mark = DecodeCheckpoint(*record);
    if (!mark.ok()) return mark.status();
    mark->from.clear();
    return Append(to->second, EncodeCheckpoint(record->log_id, *mark));
  }

  RestoredRecords restored() const { return {restored_.records, to_.size()}; }

 private:
  struct Batch {
    std::vector<std::string> records;
    size_t bytes = 0;
  };

  absl::Status Append(uint32_t partition, std::string record) {
    Batch& batch = batches_[partition];
    // Both would be more than an append may have.
    if (record.size() > append_bytes_) {
      if (absl::Status status = Flush(partition); !status.ok()) return status;
    }
    batch.bytes += record.size();
    batch.records.push_back(std::move(record));
    return batch.bytes < append_bytes_ ? absl::OkStatus() : Flush(partition);
  }

  absl::Status Flush(uint32_t partition) {
    Batch batch = std::exchange(batches_[partition], {});
    if (batch.records.empty()) return absl::OkStatus();
    return appends_.Append(partition, std::move(batch.records), batch.bytes);
  }

  const uint32_t partitions_;
  const size_t append_bytes_;
  // Of the journal that is read, the next position of each partition.
  absl::flat_hash_map<uint32_t, uint64_t> next_;
  // Partitions, by the ids of the maps' logs.
  absl::flat_hash_map<uint64_t, uint32_t> to_;
  std::vector<Batch> batches_;
  Appends appends_;
  RestoredRecords restored_;
};

}  // namespace

absl::StatusOr<RestoredRecords> RestoreRecords(
    absl::FunctionRef<absl::Status(Journal::Visitor)> read, Journal* to,
    const Clock& clock, std::function<bool()> cancelled) {
  RecordRestorer restorer(to, std::move(cancelled));
  absl::Status status = read(
      [&](uint32_t partition, uint64_t position, absl::string_view record) {
        return restorer.Learn(partition, position, record);
      });
  if (status.ok()) {
    status = restorer.AppendToAll(
        MapRecordPrefix(MapRecordKind::kRestoreBegins, /*log_id=*/0));
  }
  if (status.ok()) {
    status = read([&](uint32_t, uint64_t, absl::string_view record) {
      return restorer.Add(record);
    });
  }
  if (status.ok()) {
    status = restorer.AppendToAll(EncodeRestoreEnds(clock.NowUs()));
  }
  if (!status.ok()) return status;
  return restorer.restored();
}

}  // namespace timecache::server
