#include "server/engine/parts/partitioned_batch.h"

#include <array>
#include <atomic>
#include <memory>
#include <utility>

#include "server/engine/parts/gather.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/partitions.h"
#include "server/engine/store/stale_names.h"

namespace timecache::server {

PartitionedBatch::PartitionedBatch(PartitionDirectory::Names names,
                                   absl::Span<const Operation> operations)
    : names_(std::move(names)),
      operations_(operations.size()),
      results_(operations.size()),
      places_(operations.size()) {
  std::array<size_t, kMaxPartitions> counts = {};
  std::vector<uint8_t> partitions;
  partitions.reserve(operations.size());
  for (const Operation& op : operations) {
    const int partition =
        PartitionOfKey(op.key, static_cast<int>(names_->size()));
    partitions.push_back(static_cast<uint8_t>(partition));
    ++counts[partitions.back()];
  }
  std::array<size_t, kMaxPartitions> next;
  size_t begin = 0;
  for (size_t i = 0; i < names_->size(); ++i) {
    next[i] = begin;
    if (counts[i] == 0) continue;
    parts_.push_back({&(*names_)[i], begin, counts[i]});
    begin += counts[i];
  }
  for (size_t i = 0; i < operations.size(); ++i) {
    const size_t to = next[partitions[i]]++;
    operations_[to] = operations[i];
    places_[to] = static_cast<uint32_t>(i);
  }
}

// Whether an operation of the part has been done, or refused. See BatchProgress.
bool PartitionedBatch::Part::HasResult(size_t i, const Result& result) const {
  if (progress.done || i < progress.begun) return true;
  if (!progress.admitted.has_value()) return false;
  return i >= *progress.admitted || (i < progress.reached && !result.waits);
}

void PartitionedBatch::TakeTurn(Store* maps, absl::Span<Result> results,
                                BatchProgress* progress, Store::Done done) {
  if (!std::exchange(begun_, true)) {
    // For the memory of their values.
    for (size_t i = 0; i < results.size(); ++i) {
      results_[i] = std::move(results[places_[i]]);
    }
    for (Part& part : parts_) part.progress.in_turns = progress->in_turns;
  }
  const uint64_t until =
      progress->in_turns
          ? progress->room.copied() + BatchProgress::kTurnCopiedBytes
          : UINT64_MAX;
  const size_t first = first_;
  bool stopped = false;
  const auto completed = std::make_shared<std::atomic<size_t>>(0);
  const auto start = [&](size_t i, Store::Done part_done) {
    if (i == parts_.size()) {
      if (*completed < i) CheckApplied(*progress);
      return part_done(absl::OkStatus());
    }
    const size_t index = (first + i) % parts_.size();
    Part& part = parts_[index];
    const bool waits = stopped || progress->room.copied() >= until;
    if (part.ended() || waits) {
      if (!part.ended() && !std::exchange(stopped, true)) first_ = index;
      ++*completed;
      return part_done(absl::OkStatus());
    }
    part.progress.room = progress->room;
    maps->Execute(
        *part.name,
        absl::MakeConstSpan(operations_).subspan(part.begin, part.count),
        absl::MakeSpan(results_).subspan(part.begin, part.count),
        &part.progress,
        [&part, completed,
         part_done = std::move(part_done)](absl::Status status) mutable {
          part.error = std::move(status);
          ++*completed;
          part_done(absl::OkStatus());
        });
    progress->room = part.progress.room;
  };
  // With one more, behind the parts: until then nothing ends.
  GatherStatus(parts_.size() + 1, start,
               [this, results, progress, done = std::move(done)](
                   const absl::Status& /*always OK*/) mutable {
                 done(EndTurn(results, progress));
               });
}

// While some parts wait for what they have applied.
void PartitionedBatch::CheckApplied(const BatchProgress& progress) const {
  if (!progress.on_applied) return;
  for (const Part& part : parts_) {
    if (!part.progress.done) return;
  }
  progress.on_applied();
}

// Gives back the results that are there.
absl::Status PartitionedBatch::EndTurn(absl::Span<Result> results,
                                       BatchProgress* progress) {
  bool all_ended = true;
  size_t failed = 0;
  for (const Part& part : parts_) {
    all_ended &= part.ended();
    if (!part.error.ok()) ++failed;
  }
  if (failed == parts_.size()) {
    // The call may be made anew: it is kept until here.
    const std::shared_ptr<void> self = std::move(progress->state);
    // Others than stale names say more: some of it may be applied.
    for (const Part& part : parts_) {
      if (!IsStale(part.error)) return part.error;
    }
    return parts_.front().error;
  }
  for (const Part& part : parts_) {
    for (size_t i = 0; i < part.count; ++i) {
      uint32_t& place = places_[part.begin + i];
      if (place == kGiven) continue;
      Result& from = results_[part.begin + i];
      Result& to = results[place];
      if (part.HasResult(i, from)) {
        to = std::move(from);
        to.waits = false;
        place = kGiven;
      } else if (!part.error.ok()) {
        to.Clear();
        to.status = part.error;
        place = kGiven;
      } else {
        to.waits = true;
      }
    }
  }
  progress->reached = results.size();
  progress->done = all_ended;
  if (all_ended) progress->begun = results.size();
  return absl::OkStatus();
}

}  // namespace timecache::server
