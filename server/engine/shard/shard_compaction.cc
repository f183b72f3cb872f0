// The part of a shard that frees memory: counts the dead records of its
// segments, and moves live records out of sparse ones.

#include <utility>

#include "server/engine/shard/shard.h"

namespace timecache::server {
namespace {

bool IsSparse(const Segment& segment) {
  return segment.dead > segment.used / 2;
}

}  // namespace

// A live record moves to where another has died. Where none fits, the live
// records of a sparse segment move to the end of their generation, a few at each
// mutation: every mutation leaves at most one dead record behind, and a segment
// is half dead before it is walked, so that the walk keeps ahead of the garbage.
// Records that one mutation finds the next one moves: until then the lines of
// the index are being prefetched.
void Shard::CompactStep() {
  for (const Moving& moving : moving_) Move(moving);
  moving_.clear();
  if (!sparse_.empty()) FindMoving();
  if (hole_.place.segment == kNoSegment) {
    if (--until_look_ == 0) FindGarbage();
    return;
  }
  if (misfits_ < kManyMisfits || misfits_ % kManyMisfits == 0) {
    FindFiller();
  } else {
    ++misfits_;
    hole_ = {};
  }
}

// The dead records of a segment that is never half dead would stay as long as
// its generation is only overwritten in place. So mutations that leave none
// compact segments with fewer of them, one after the other, at the pace of one
// mutation for kLookBytes: a move of 100 bytes for four such mutations.
void Shard::FindGarbage() {
  until_look_ = kLookEvery;
  if (!sparse_.empty()) return;
  if (!segments_.Has(++looked_at_)) {
    looked_at_ = kNoSegment;
    return;
  }
  Segment& segment = segments_[looked_at_];
  if (segment.dead <= segment.used / kLeastGarbageShare) return;
  const Generation* const generation = segment.generation;
  if (generation->death_us <= now_us_ || looked_at_ == generation->open ||
      !MayFill(segment) || (generation == current_ && usage_->limited())) {
    return;
  }
  segment.compacted = 0;
  sparse_.push_back(looked_at_);
  until_look_ += segment.used / kLookBytes;
}

// Whether there still is a segment that has the place, and is not dead.
bool Shard::Holds(const SegmentPlace& place) const {
  if (place.segment == kNoSegment || !segments_.Has(place.segment)) {
    return false;
  }
  const Segment& segment = segments_[place.segment];
  return segment.base.version == place.stamp && place.offset < segment.used &&
         segment.generation->death_us > now_us_;
}

// Whether a record may be written there: not behind a walk that frees the
// segment, nor behind evictions.
bool Shard::MayFill(const Segment& segment) const {
  return segment.compacted == Segment::kNotCompacting &&
         !Holds(*segment.generation, evicted_);
}

// The first segment of the chain that records may be taken from, or none.
SegmentId Shard::DonorOf(const Generation& generation) const {
  SegmentId id = generation.first;
  for (int passed = 0; passed < kCompactRecords && id != generation.open;
       ++passed) {
    const Segment& segment = segments_[id];
    const bool walked = segment.compacted != Segment::kNotCompacting &&
                        segment.compacted >= segment.used;
    if (!walked && segment.capacity <= kMaxSharedRecordBytes) return id;
    id = segment.next;
    if (id == kNoSegment) break;
  }
  return kNoSegment;
}

// The next live record of the generation's first segment moves into the place
// of the one that has died, if it fits. So where all take as many bytes, the
// chain is consumed at its beginning and has no dead records elsewhere, at one
// move for each that dies. It moves forward: a reader of the chain that has not
// read it yet does so there.
void Shard::FindFiller() {
  const Hole hole = std::exchange(hole_, {});
  if (!Holds(hole.place)) return;
  const Segment& to = segments_[hole.place.segment];
  if (!MayFill(to)) {
    // No hole elsewhere may ever take the rest of it.
    if (sparse_.empty() && to.compacted < to.used && IsSparse(to) &&
        evicted_.segment != hole.place.segment) {
      sparse_.push_back(hole.place.segment);
    }
    return;
  }
  // Where entries may be evicted one by one, the oldest is to stay the first.
  if (to.generation == current_ && usage_->limited()) return;
  const SegmentId id = DonorOf(*to.generation);
  if (id == kNoSegment) return;
  Segment& from = segments_[id];
  if (from.base.version >= hole.place.stamp) return;
  if (from.compacted == Segment::kNotCompacting) from.compacted = 0;
  for (int passed = 0; passed < kCompactRecords && from.compacted < from.used;
       ++passed) {
    const uint32_t offset = from.compacted;
    const char* const at = from.data.get() + offset;
    size_t size;
    const Record record = from.Read(offset, &size);
    if (IsRecordDead(at)) {
      from.compacted += static_cast<uint32_t>(size);
      continue;
    }
    // Against the base there it takes mostly as many bytes as here.
    // One that does not fit moves to the end: or it would keep those behind it.
    const bool fits = size == hole.size;
    misfits_ = fits ? 0 : misfits_ + 1;
    from.compacted += static_cast<uint32_t>(size);
    moving_.push_back({MakeRef(id, offset),
                       CompactIndex::TagOf(key_hash_(record.key)),
                       fits ? hole : Hole()});
    slots_.Prefetch(moving_.back().tag);
    // Where the next one will be looked for.
    __builtin_prefetch(at + size);
    __builtin_prefetch(at + 2 * size);
    return;
  }
}

// Writes the record into the hole; returns 0 if it has no room there.
RecordRef Shard::Fill(const Record& record, const Generation* generation,
                      const Hole& hole) {
  if (!Holds(hole.place)) return 0;
  Segment& segment = segments_[hole.place.segment];
  if (segment.generation != generation || !MayFill(segment)) return 0;
  if (EncodedSize(record, segment.base) != hole.size) return 0;
  EncodeRecord(record, segment.base, segment.data.get() + hole.place.offset);
  segment.dead -= static_cast<uint32_t>(hole.size);
  return MakeRef(hole.place.segment, hole.place.offset);
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
        {MakeRef(id, offset), CompactIndex::TagOf(key_hash_(record.key)), {}});
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
  RecordRef to = Fill(record, segment.generation, moving.hole);
  if (to == 0) to = Append(record, segment.generation);
  *slot = CompactIndex::MakeSlot(moving.tag, to);
  MarkDead(id, offset, size);
}

void Shard::Forget(const Found& old) {
  Generation* generation = segments_[old.segment].generation;
  --generation->entries;
  generation->bytes -= old.record.payload_bytes();
  hole_ = {{old.segment, segments_[old.segment].base.version, old.offset},
           old.size};
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
  if (segment.compacted == Segment::kNotCompacting && IsSparse(segment) &&
      evicted_.segment != id) {
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
