// The part of a shard that is rebuilt from its changes.

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "server/engine/shard/shard.h"

namespace timecache::server {

bool Shard::Replay(const Change& change, std::unique_ptr<Generation>* dead) {
  const TurnLock lock(&mu_);
  // Versions of segments stand beside those of their records, which are then
  // small.
  next_version_ = std::max(next_version_, change.record.version + 1);
  versions_end_ = UINT64_MAX;
  const Kill kill = {.death_us = change.death_us,
                     .at_us = change.at_us,
                     .number = change.kill,
                     .cause = change.cause};
  if (change.kind == Change::Kind::kKill) {
    *dead = KillLocked(kill);
    return true;
  }
  if (change.kind != Change::Kind::kEvict) Observe(change.at_us);
  if (change.kind == Change::Kind::kRemember) {
    uint64_t hash = 0;
    std::memcpy(&hash, change.record.key.data(),
                std::min(change.record.key.size(), sizeof(hash)));
    Remember(hash, change.death_us);
    return true;
  }
  if (change.answer != nullptr) KeepAnswer(*change.answer);
  if (change.kind == Change::Kind::kAnswer) return true;
  const uint32_t tag = CompactIndex::TagOf(key_hash_(change.record.key));
  const Found old = FindLive(tag, change.record.key);
  const bool found = old.slot != nullptr;
  Record record = change.record;
  // It lies in the shard that reported the change.
  record.index = {};
  switch (change.kind) {
    case Change::Kind::kRenew:
      if (!found || old.record.version != record.version) return true;
      record.CopyValue(old.record);
      record.create_us = old.record.create_us;
      [[fallthrough]];
    case Change::Kind::kStore: {
      usage_->Subtract(found ? 0 : -1,
                       old.record.payload_bytes() - record.payload_bytes());
      Outcome outcome;
      Store(record, change.death_us, tag, old, &outcome);
      break;
    }
    case Change::Kind::kAppend: {
      if (!found || old.record.version != change.base_version) {
        return found && old.record.version >= record.version;
      }
      const absl::string_view more = record.value;
      usage_->Subtract(0, -static_cast<int64_t>(more.size()));
      if (change.renewed) {
        record.create_us = old.record.create_us;
      } else {
        record.CopyTimes(old.record);
      }
      record.CopyValue(old.record);
      Outcome outcome;
      StoreLonger(record, more, change.renewed ? change.death_us : DeathOf(old),
                  tag, old, &outcome);
      break;
    }
    case Change::Kind::kRemove:
      if (!found) return true;
      usage_->Subtract(1, old.record.payload_bytes());
      Forget(old);
      slots_.Erase(old.slot);
      break;
    case Change::Kind::kEvict:
      if (!found) return true;
      if (*dead == nullptr) {
        *dead = std::make_unique<Generation>(Generation::kDead);
      }
      Evict(old, dead->get());
      break;
    case Change::Kind::kKill:
    case Change::Kind::kRemember:
    case Change::Kind::kAnswer:
      break;
  }
  CompactStep();
  return true;
}

bool Shard::CanReplay(const Change& change) {
  if (change.kind != Change::Kind::kAppend) return true;
  const TurnLock lock(&mu_);
  Observe(change.at_us);
  const uint32_t tag = CompactIndex::TagOf(key_hash_(change.record.key));
  const Found old = FindLive(tag, change.record.key);
  return old.slot != nullptr && (old.record.version == change.base_version ||
                                 old.record.version >= change.record.version);
}

void Shard::Skip(const TimeSkip& skip) {
  const int64_t by_us = skip.to_us - skip.from_us;
  const TurnLock lock(&mu_);
  Observe(skip.to_us);
  if (remembered_ != nullptr) remembered_->Skip(skip.from_us, by_us);
  if (answers_ != nullptr) answers_->Skip(skip.from_us, by_us);
  const auto first = generations_.upper_bound(skip.from_us);
  std::vector<std::unique_ptr<Generation>> live;
  for (auto it = first; it != generations_.end(); ++it) {
    buckets_->Remove(it->first);
    live.push_back(std::move(it->second));
  }
  generations_.erase(first, generations_.end());
  for (std::unique_ptr<Generation>& generation : live) {
    generation->death_us += by_us;
    for (SegmentId id = generation->first; id != kNoSegment;
         id = segments_[id].next) {
      MovePutTimes(&segments_[id], by_us);
    }
    const int64_t death_us = generation->death_us;
    buckets_->Add(death_us);
    generations_.emplace(death_us, std::move(generation));
  }
}

void Shard::MovePutTimes(Segment* segment, int64_t by_us) {
  const RecordBase old_base = segment->base;
  segment->base.put_us += by_us;
  for (uint32_t offset = 0; offset < segment->used;) {
    char* const at = segment->data.get() + offset;
    size_t size;
    Record record = DecodeRecord(at, old_base, &size);
    // As far from the base as it was, it takes as many bytes.
    if (!IsRecordDead(at)) {
      record.put_us += by_us;
      record.create_us += by_us;
      EncodeRecord(record, segment->base, at);
    }
    offset += static_cast<uint32_t>(size);
  }
}

uint64_t Shard::EndReplay(int64_t now_us) {
  const TurnLock lock(&mu_);
  Observe(now_us);
  versions_end_ = next_version_;
  return next_version_;
}

}  // namespace timecache::server
