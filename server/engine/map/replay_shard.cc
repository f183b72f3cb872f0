// The part of a shard that is made again from its changes.

#include <algorithm>
#include <utility>

#include "server/engine/map/shard.h"

namespace timecache::server {

void Shard::TellAgain(int64_t now_us, int* entries_left, int64_t* bytes_left,
                      uint32_t* tag) {
  absl::MutexLock lock(&mu_);
  now_us = Observe(now_us);
  const SegmentTable* const segments = &segments_;
  for (int lines = kScanLines; lines > 0; --lines) {
    if (*tag >= CompactIndex::kTags) return;
    if (*entries_left <= 0 || *bytes_left <= 0) return;
    *tag = slots_.VisitLine(
        *tag, [&](uint32_t, RecordRef ref) ABSL_NO_THREAD_SAFETY_ANALYSIS {
          const Segment& segment = (*segments)[SegmentOf(ref)];
          const int64_t death_us = segment.generation->death_us;
          if (death_us <= now_us) return;
          size_t size;
          const Record record = segment.Read(OffsetOf(ref), &size);
          Tell({.kind = Change::Kind::kStore,
                .record = record,
                .death_us = death_us,
                .at_us = now_us});
          --*entries_left;
          *bytes_left -= static_cast<int64_t>(size);
        });
  }
}

void Shard::Replay(const Change& change, std::unique_ptr<Generation>* dead) {
  absl::MutexLock lock(&mu_);
  // Versions of segments stand beside those of their records, which are then
  // small.
  next_version_ = std::max(next_version_, change.record.version + 1);
  versions_end_ = UINT64_MAX;
  const auto bytes_of = [](const Record& record) {
    return static_cast<int64_t>(record.key.size() + record.value.size());
  };
  const Kill kill = {.death_us = change.death_us,
                     .at_us = change.at_us,
                     .number = change.kill,
                     .cause = change.cause};
  if (change.kind == Change::Kind::kKill) {
    *dead = KillLocked(kill);
    return;
  }
  if (change.kind != Change::Kind::kEvict) Observe(change.at_us);
  const uint32_t tag = CompactIndex::TagOf(key_hash_(change.record.key));
  const Found old = FindLive(tag, change.record.key);
  const bool found = old.slot != nullptr;
  Record record = change.record;
  switch (change.kind) {
    case Change::Kind::kRenew:
      if (!found || old.record.version != record.version) return;
      record.value = old.record.value;
      [[fallthrough]];
    case Change::Kind::kStore: {
      usage_->Subtract(found ? 0 : -1,
                       (found ? bytes_of(old.record) : 0) - bytes_of(record));
      Outcome outcome;
      Store(record, change.death_us, tag, old, &outcome);
      break;
    }
    case Change::Kind::kRemove:
      if (!found) return;
      usage_->Subtract(1, bytes_of(old.record));
      Forget(old);
      slots_.Erase(old.slot);
      break;
    case Change::Kind::kEvict:
      if (!found) return;
      if (*dead == nullptr) {
        *dead = std::make_unique<Generation>(Generation::kDead);
      }
      Evict(old, dead->get());
      break;
    case Change::Kind::kKill:
      break;
  }
  CompactStep();
}

uint64_t Shard::EndReplay() {
  absl::MutexLock lock(&mu_);
  versions_end_ = next_version_;
  return next_version_;
}

}  // namespace timecache::server
