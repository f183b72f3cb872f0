#include "server/engine/shard/segment.h"

#include "server/base/check.h"

namespace timecache::server {

SegmentId SegmentTable::Allocate(uint32_t capacity, Use use,
                                 const RecordBase& base,
                                 Generation* generation) {
  SegmentId id = free_;
  if (id != kNoSegment) {
    free_ = (*this)[id].next;
    --free_count_;
  } else {
    TIMECACHED_CHECK(next_id_ < kMaxSegments);
    id = next_id_++;
    if (ChunkOf(id) >= chunks_.size()) {
      const SegmentId size = SizeOf(chunks_.size());
      chunks_.push_back(std::make_unique<Segment[]>(size));
      room_ += size;
      memory_bytes_ += size * sizeof(Segment);
      charge_.Set(static_cast<int64_t>(room_ * sizeof(Segment)));
    }
  }
  Segment& segment = (*this)[id];
  segment.data = AllocateBlock<char>(capacity);
  memory_bytes_ += capacity;
  segment.capacity = capacity;
  segment.base = base;
  Link(id, generation);
  if (use == Use::kOpen) generation->open = id;
  return id;
}

void SegmentTable::Link(SegmentId id, Generation* generation) {
  Segment& segment = (*this)[id];
  segment.generation = generation;
  segment.next = kNoSegment;
  segment.previous = generation->last;
  if (generation->last == kNoSegment) {
    generation->first = id;
  } else {
    (*this)[generation->last].next = id;
  }
  generation->last = id;
  generation->capacity += segment.capacity;
}

void SegmentTable::Unlink(SegmentId id) {
  Segment& segment = (*this)[id];
  Generation* const generation = segment.generation;
  if (segment.previous != kNoSegment) {
    (*this)[segment.previous].next = segment.next;
  } else {
    generation->first = segment.next;
  }
  if (segment.next != kNoSegment) {
    (*this)[segment.next].previous = segment.previous;
  } else {
    generation->last = segment.previous;
  }
  if (generation->open == id) generation->open = kNoSegment;
  generation->capacity -= segment.capacity;
}

void SegmentTable::Move(SegmentId id, Generation* to) {
  Unlink(id);
  Link(id, to);
}

Block<char[]> SegmentTable::Free(SegmentId id) {
  Unlink(id);
  Segment& segment = (*this)[id];
  memory_bytes_ -= segment.capacity;
  Block<char[]> data = std::move(segment.data);
  segment = Segment();
  segment.next = free_;
  free_ = id;
  ++free_count_;
  ShrinkIfEmpty();
  return data;
}

// Numbers begin anew, and the table keeps its first chunk. One that was very
// large gets small as it is emptied again.
void SegmentTable::ShrinkIfEmpty() {
  if (free_count_ != next_id_ - 1) return;
  free_ = kNoSegment;
  free_count_ = 0;
  next_id_ = kNoSegment + 1;
  for (int left = kMaxFreedChunks; left > 0 && chunks_.size() > 1; --left) {
    const SegmentId size = SizeOf(chunks_.size() - 1);
    chunks_.pop_back();
    room_ -= size;
    memory_bytes_ -= size * sizeof(Segment);
  }
  charge_.Set(static_cast<int64_t>(room_ * sizeof(Segment)));
}

}  // namespace timecache::server
