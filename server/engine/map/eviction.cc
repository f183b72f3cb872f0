// The part of a shard that evicts entries one by one.

#include "server/base/check.h"
#include "server/engine/shard/shard.h"

namespace timecache::server {

int64_t Shard::YoungestLocked() const {
  for (auto it = generations_.rbegin(); it != generations_.rend(); ++it) {
    if (it->second->entries > 0) return it->first;
  }
  return 0;
}

int64_t Shard::OldestPutLocked(int64_t death_us, int* records) {
  const auto it = generations_.find(death_us);
  if (it == generations_.end() || it->second->entries == 0) return kNeverUs;
  const Generation& generation = *it->second;
  SegmentPlace& place = evicted_;
  const SegmentTable* const segments = &segments_;
  const auto begin_of = [segments](SegmentId id) {
    return SegmentPlace{id, (*segments)[id].base.version, 0};
  };
  if (!Holds(generation, place)) place = begin_of(generation.first);
  for (; *records > 0; --*records) {
    const Segment& segment = segments_[place.segment];
    if (place.offset >= segment.used) {
      // After the last one, the remaining entries were put into the open
      // segment since.
      place = begin_of(segment.next != kNoSegment ? segment.next
                                                  : generation.first);
      continue;
    }
    size_t size;
    const Record record = segment.Read(place.offset, &size);
    if (!IsRecordDead(segment.data.get() + place.offset)) return record.put_us;
    place.offset += static_cast<uint32_t>(size);
  }
  return kNotYet;
}

bool Shard::EvictOldestLocked(const Kill& kill, Generation* dead) {
  if (!segments_.HasRoom()) return false;
  SegmentPlace& place = evicted_;
  Found old;
  old.segment = place.segment;
  old.offset = place.offset;
  old.record = segments_[old.segment].Read(old.offset, &old.size);
  const uint32_t tag = CompactIndex::TagOf(key_hash_(old.record.key));
  old.slot = slots_.FindExact(tag, MakeRef(old.segment, old.offset));
  TIMECACHED_CHECK(old.slot != nullptr);
  place.offset += static_cast<uint32_t>(old.size);
  EmitKill(Change::Kind::kEvict, kill, old.record.key);
  Evict(old, dead);
  return true;
}

// Moves a live entry to `dead`.
void Shard::Evict(const Found& old, Generation* dead) {
  Generation* const generation = segments_[old.segment].generation;
  const int64_t bytes = old.record.payload_bytes();
  ++dead->entries;
  dead->bytes += bytes;
  usage_->Subtract(1, bytes);
  if (old.segment != generation->open &&
      old.size == segments_[old.segment].used) {
    // It has a segment of its own, as large entries have: no copy.
    segments_.Move(old.segment, dead);
    --generation->entries;
    generation->bytes -= bytes;
    ReleaseIfEmpty(generation);
    return;
  }
  const uint32_t tag = CompactIndex::TagOf(key_hash_(old.record.key));
  Record record = old.record;
  record.capacity = 0;
  record.index = {};
  *old.slot = CompactIndex::MakeSlot(tag, Append(record, dead));
  Forget(old);
}

}  // namespace timecache::server
