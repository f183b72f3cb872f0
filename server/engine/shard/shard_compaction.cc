// The part of a shard that frees memory: counts the dead records of its
// segments, and moves live records out of sparse ones.

#include "server/engine/shard/shard.h"

namespace timecache::server {

// The live records of a sparse segment move to the end of their generation, a
// few at each mutation: every mutation leaves at most one dead record behind,
// and a segment is half dead before it is walked, so that the walk keeps ahead
// of the garbage. Records that one mutation finds the next one moves: until
// then the lines of the index are being prefetched.
void Shard::CompactStep() {
  for (const Moving& moving : moving_) Move(moving);
  moving_.clear();
  if (!sparse_.empty()) FindMoving();
}

void Shard::FindMoving() {
  for (int passed = 0; passed < kCompactRecords && !sparse_.empty() &&
                       moving_.size() < kCompactMoves;
       ++passed) {
    const SegmentId id = sparse_.front();
    if (!segments_.Has(id) || segments_[id].compacted >= segments_[id].used ||
        segments_[id].generation->death_us <= now_us_) {
      sparse_.pop_front();
      continue;
    }
    Segment& segment = segments_[id];
    const uint32_t offset = segment.compacted;
    const char* const at = segment.data.get() + offset;
    size_t size;
    const Record record = segment.Read(offset, &size);
    segment.compacted += static_cast<uint32_t>(size);
    if (IsRecordDead(at)) continue;
    moving_.push_back(
        {MakeRef(id, offset), CompactIndex::TagOf(key_hash_(record.key))});
    slots_.Prefetch(moving_.back().tag);
  }
}

void Shard::Move(const Moving& moving) {
  CompactIndex::Slot* const slot = slots_.FindExact(moving.tag, moving.ref);
  // It has died since.
  if (slot == nullptr) return;
  const SegmentId id = SegmentOf(moving.ref);
  const uint32_t offset = OffsetOf(moving.ref);
  const Segment& segment = segments_[id];
  if (segment.generation->death_us <= now_us_) return;
  size_t size;
  const Record record = segment.Read(offset, &size);
  copied_bytes_ += record.value.size();
  *slot =
      CompactIndex::MakeSlot(moving.tag, Append(record, segment.generation));
  MarkDead(id, offset, size);
}

void Shard::Forget(const Found& old) {
  Generation* generation = segments_[old.segment].generation;
  --generation->entries;
  generation->bytes -= old.record.payload_bytes();
  MarkDead(old.segment, old.offset, old.size);
  ReleaseIfEmpty(generation);
}

void Shard::MarkDead(SegmentId id, uint32_t offset, size_t size) {
  Segment& segment = segments_[id];
  MarkRecordDead(segment.data.get() + offset);
  segment.dead += static_cast<uint32_t>(size);
  const bool open = id == segment.generation->open;
  if (segment.dead < segment.used) {
    if (!open) QueueIfSparse(id);
  } else if (open && id == segment.generation->last) {
    segment.used = segment.dead = 0;
  } else {
    segments_.Free(id);
  }
}

void Shard::QueueIfSparse(SegmentId id) {
  Segment& segment = segments_[id];
  // Evictions continue with a segment that they have started: moving its live
  // records would make them the youngest.
  if (segment.compacted == Segment::kNotCompacting &&
      segment.dead > segment.used / 2 && evicted_.segment != id) {
    segment.compacted = 0;
    sparse_.push_back(id);
  }
}

void Shard::ReleaseIfEmpty(Generation* generation) {
  if (generation->entries > 0 || generation == current_) return;
  while (generation->first != kNoSegment) segments_.Free(generation->first);
  TakeOut(generations_.find(generation->death_us));
}

}  // namespace timecache::server
