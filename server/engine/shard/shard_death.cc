// The part of a shard in which generations die and are swept.

#include <utility>

#include "server/base/check.h"
#include "server/engine/shard/shard.h"

namespace timecache::server {

void Shard::DetachDue(int64_t now_us, Detached* due) {
  const TurnLock lock(&mu_);
  DetachDueLocked(now_us, due);
  if (change_watch_ != nullptr) change_watch_->Flush(now_us);
}

void Shard::DetachDueLocked(int64_t now_us, Detached* due) {
  Observe(now_us);
  if (remembered_ != nullptr) {
    remembered_->Trim(now_us_);
    if (remembered_->empty()) remembered_ = nullptr;
  }
  if (answers_ != nullptr) {
    answers_->Trim(now_us_);
    if (answers_->empty()) answers_ = nullptr;
  }
  while (!generations_.empty() && generations_.begin()->first <= now_us) {
    std::unique_ptr<Generation> generation = TakeOut(generations_.begin());
    if (generation->entries > 0) {
      usage_->Subtract(generation->entries, generation->bytes);
      due->push_back(std::move(generation));
    } else {
      while (generation->first != kNoSegment) segments_.Free(generation->first);
    }
  }
}

std::unique_ptr<Generation> Shard::TakeOut(Generations::iterator generation) {
  std::unique_ptr<Generation> taken = std::move(generation->second);
  buckets_->Remove(generation->first);
  generations_.erase(generation);
  if (taken.get() == current_) current_ = nullptr;
  return taken;
}

int64_t Shard::NextDeathUs() const {
  const TurnLock lock(&mu_);
  return generations_.empty() ? kNeverUs : generations_.begin()->first;
}

int64_t Shard::OldestLocked() const {
  // At most the current generation is empty.
  for (const auto& [death_us, generation] : generations_) {
    if (generation->entries > 0) return death_us;
  }
  return kNeverUs;
}

std::unique_ptr<Generation> Shard::KillLocked(const Kill& kill) {
  const auto it = generations_.find(kill.death_us);
  if (it == generations_.end() || it->second->entries == 0) return nullptr;
  EmitKill(Change::Kind::kKill, kill, /*key=*/{});
  std::unique_ptr<Generation> generation = TakeOut(it);
  usage_->Subtract(generation->entries, generation->bytes);
  generation->death_us = Generation::kDead;
  return generation;
}

// Of a generation, or of the entry of `key`.
void Shard::EmitKill(Change::Kind kind, const Kill& kill,
                     absl::string_view key) {
  if (sink_ == nullptr) return;
  EmitChange({.kind = kind,
              .record = {.key = key},
              .death_us = kill.death_us,
              .at_us = kill.at_us,
              .kill = kill.number,
              .cause = kill.cause,
              .hash = kind == Change::Kind::kEvict ? key_hash_(key) : 0});
}

const Segment* Shard::DeadSegment(SegmentId id) {
  const TurnLock lock(&mu_);
  return &segments_[id];
}

void Shard::EraseDead(absl::Span<DeadRecord> records) {
  TIMECACHED_CHECK(records.size() <= kSweepLockRecords);
  const TurnLock lock(&mu_);
  for (const DeadRecord& record : records) slots_.Touch(record.tag);
  for (DeadRecord& record : records) {
    CompactIndex::Slot* slot = slots_.FindExact(record.tag, record.ref);
    record.live = slot != nullptr;
    if (slot != nullptr) slots_.Erase(slot);
  }
}

void Shard::FreeDead(SegmentId id) {
  Block<char[]> data;
  const TurnLock lock(&mu_);
  data = segments_.Free(id);
}

}  // namespace timecache::server
