// Where a shard's records lie: generations, and chains of segments.

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "server/base/check.h"
#include "server/engine/shard/part_index.h"
#include "server/engine/shard/shard.h"

namespace timecache::server {
namespace {

// What is wasted in a chain of c bytes with segments of s bytes is half a
// segment at either end and a header for each of its c / s: least when s is the
// root of 64 c. But most blocks are of one size, so that any chain can use what
// others have freed.
uint32_t SegmentBytesFor(int64_t chain_bytes) {
  const double root = std::sqrt(static_cast<double>(chain_bytes));
  constexpr double usual = 16 << 10;
  const double most = kMaxSegmentBytes;
  const double size =
      std::min(std::max(std::min(32 * root, usual), 8 * root), most);
  return std::bit_floor(static_cast<uint32_t>(size));
}

// Of a chain's first segment: where every entry has its own TTL, it often stays
// the only one, and has the only record. As malloc rounds it.
uint32_t FirstSegmentBytes(size_t record_bytes) {
  return static_cast<uint32_t>((record_bytes + 7) / 16 * 16 + 8);
}

}  // namespace

// Stores the record and reports the change: of a renewal without the value.
void Shard::StoreAs(Change::Kind kind, const Record& record, int64_t death_us,
                    uint32_t tag, const Found& old, Outcome* outcome) {
  if (atomic_ == Atomic::kChecking) [[unlikely]] {
    return;
  }
  if (sink_ != nullptr) {
    Change change = {.kind = kind,
                     .record = record,
                     .death_us = death_us,
                     .at_us = now_us_,
                     .hash = old.hash};
    // A rebuild takes the rest from the existing entry.
    if (kind == Change::Kind::kRenew) {
      change.record.value = {};
      change.record.create_us = record.put_us;
      change.record.parts = false;
      change.record.capacity = 0;
    }
    EmitChange(change);
  }
  Store(record, death_us, tag, old, outcome);
}

// Writes `record` where `old` is, if it may stay there, else into its
// generation. Returns where it is.
RecordRef Shard::Store(const Record& record, int64_t death_us, uint32_t tag,
                       const Found& old, Outcome* outcome) {
  if (NeedsPartIndex(record)) {
    const std::string index = MakePartIndex(record.value, key_hash_);
    Record indexed = record;
    indexed.index = index;
    return Store(indexed, death_us, tag, old, outcome);
  }
  if (old.slot != nullptr) {
    Segment& segment = segments_[old.segment];
    if (segment.generation->death_us == death_us &&
        EncodeRecordWithin(record, segment.base, old.size, old.size,
                           segment.data.get() + old.offset) != 0) {
      segment.generation->bytes +=
          record.payload_bytes() - old.record.payload_bytes();
      return MakeRef(old.segment, old.offset);
    }
    if (record.value.data() == old.record.value.data()) {
      if (MoveSegment(record, death_us, old, outcome)) {
        return MakeRef(old.segment, old.offset);
      }
      copied_bytes_ += record.value.size();
    }
  }
  Generation* generation = GenerationFor(death_us, outcome);
  NoteChange(generation);
  const RecordRef ref = Append(record, generation);
  ++generation->entries;
  generation->bytes += record.payload_bytes();
  if (old.slot != nullptr) {
    *old.slot = CompactIndex::MakeSlot(tag, ref);
    Forget(old);
  } else {
    slots_.Insert(tag, ref);
  }
  return ref;
}

// A large record has a segment of its own, and that moves: no copy. False if it
// has none, or the record would have another size there. A small one that happens
// to fill its segment is copied: among others it costs lookups no cache miss.
bool Shard::MoveSegment(const Record& record, int64_t death_us,
                        const Found& old, Outcome* outcome) {
  Segment& segment = segments_[old.segment];
  if (old.size <= kMaxSharedRecordBytes || old.size != segment.capacity) {
    return false;
  }
  const RecordBase base = NewBase(record);
  if (EncodedSize(record, base) != old.size) return false;
  Generation* const to = GenerationFor(death_us, outcome);
  NoteChange(to);
  FreeEmptyOpen(*to);
  Generation* const from = segment.generation;
  segment.base = base;
  EncodeRecord(record, base, segment.data.get());
  segments_.Move(old.segment, to);
  ++to->entries;
  to->bytes += record.payload_bytes();
  --from->entries;
  from->bytes -= old.record.payload_bytes();
  ReleaseIfEmpty(from);
  return true;
}

Generation* Shard::GenerationFor(int64_t death_us, Outcome* outcome) {
  if (current_ != nullptr && current_->death_us == death_us) return current_;
  std::unique_ptr<Generation>& generation = generations_[death_us];
  if (generation == nullptr) {
    generation = std::make_unique<Generation>(death_us);
    buckets_->Add(death_us);
    outcome->new_death_us = death_us;
  }
  Generation* const last = std::exchange(current_, generation.get());
  if (last != nullptr) ReleaseIfEmpty(last);
  return current_;
}

// Before a segment comes behind it: it would be reused with a later stamp than
// that one's.
void Shard::FreeEmptyOpen(const Generation& generation) {
  const SegmentId open = generation.open;
  if (open != kNoSegment && segments_[open].used == 0) segments_.Free(open);
}

RecordRef Shard::Append(const Record& record, Generation* generation) {
  const SegmentId last = generation->open;
  if (last != kNoSegment) {
    Segment& open = segments_[last];
    if (open.used == 0) open.base = NewBase(record);
    const size_t room =
        open.used < kMaxSegmentBytes ? open.capacity - open.used : 0;
    const size_t size = EncodeRecordWithin(record, open.base, 0, room,
                                           open.data.get() + open.used);
    if (size != 0) {
      const RecordRef ref = MakeRef(last, open.used);
      open.used += static_cast<uint32_t>(size);
      return ref;
    }
  }
  const RecordBase base = NewBase(record);
  const size_t size = EncodedSize(record, base);
  SegmentId id;
  if (size > kMaxSharedRecordBytes) {
    FreeEmptyOpen(*generation);
    id = segments_.Allocate(static_cast<uint32_t>(size),
                            SegmentTable::Use::kSingle, base, generation);
  } else {
    uint32_t capacity = std::max(SegmentBytesFor(generation->capacity),
                                 FirstSegmentBytes(size));
    // A chain that goes on takes records like this one: let several fit.
    if (last != kNoSegment) {
      capacity =
          std::max(capacity, std::bit_ceil(static_cast<uint32_t>(size) * 2));
    }
    id = segments_.Allocate(capacity, SegmentTable::Use::kOpen, base,
                            generation);
    if (last != kNoSegment) {
      if (segments_[last].used == segments_[last].dead) {
        segments_.Free(last);
      } else {
        QueueIfSparse(last);
      }
    }
  }
  Segment& segment = segments_[id];
  EncodeRecord(record, base, segment.data.get());
  segment.used = static_cast<uint32_t>(size);
  return MakeRef(id, 0);
}

// What a segment that begins with this record is written against. Its version
// is no entry's: the segment's stamp.
RecordBase Shard::NewBase(const Record& record) {
  return {NewVersion(), record.put_us, record.life_us};
}

}  // namespace timecache::server
