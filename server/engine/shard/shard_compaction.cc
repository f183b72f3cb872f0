// The part of a shard that moves live records out of sparse segments.

#include "server/engine/shard/shard.h"

namespace timecache::server {

// The live records of a sparse segment move to the end of their generation, a
// few at each mutation: every mutation leaves at most one dead record behind,
// and a segment is half dead before it is walked, so that the walk keeps ahead
// of the garbage. What one mutation finds the next one moves: until then the
// lines of the index are on their way.
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
    Segment& segment = segments_[id];
    if (segment.compacted >= segment.used ||
        segment.generation->death_us <= now_us_) {
      sparse_.pop_front();
      continue;
    }
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

}  // namespace timecache::server
