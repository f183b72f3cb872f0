// Where records lie: segments, and the table that a record reference leads
// through.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_SEGMENT_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_SEGMENT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/base/block_pool.h"
#include "server/base/memory_budget.h"
#include "server/engine/shard/compact_index.h"
#include "server/engine/shard/record.h"

namespace timecache::server {

using SegmentId = uint32_t;
inline constexpr SegmentId kNoSegment = 0;
inline constexpr int kOffsetBits = 20;
inline constexpr SegmentId kMaxSegments = SegmentId{1}
                                          << (kRefBits - kOffsetBits);
// Where a record may begin; only one larger than this reaches past it.
inline constexpr uint32_t kMaxSegmentBytes = uint32_t{1} << kOffsetBits;
// Records above this size get a segment of their own.
inline constexpr size_t kMaxSharedRecordBytes = kMaxSegmentBytes / 4;

inline RecordRef MakeRef(SegmentId id, uint32_t offset) {
  return (RecordRef{id} << kOffsetBits) | offset;
}
inline SegmentId SegmentOf(RecordRef ref) {
  return static_cast<SegmentId>(ref >> kOffsetBits);
}
inline uint32_t OffsetOf(RecordRef ref) {
  return static_cast<uint32_t>(ref & (kMaxSegmentBytes - 1));
}

struct Generation;

// A stretch of memory with records of one generation, appended one after the
// other. One cache line, so that a lookup misses the cache once here.
struct alignas(64) Segment {
  Block<char[]> data;
  uint32_t capacity = 0;
  uint32_t used = 0;
  // Bytes of records that no index slot refers to any more.
  uint32_t dead = 0;
  // How far compaction has come, or kNotCompacting.
  uint32_t compacted = kNotCompacting;
  // Its version is the segment's stamp: no other segment of the shard ever has
  // the same, this one neither once it was emptied and begins anew, and it
  // grows along a generation's chain.
  RecordBase base;
  Generation* generation = nullptr;
  // Neighbours in the generation's chain.
  SegmentId previous = kNoSegment;
  SegmentId next = kNoSegment;

  static constexpr uint32_t kNotCompacting = UINT32_MAX;

  Record Read(uint32_t offset, size_t* size) const {
    return DecodeRecord(data.get() + offset, base, size);
  }
  // Into a fresh record.
  void Read(uint32_t offset, Record* record, size_t* size) const {
    DecodeRecord(data.get() + offset, base, record, size);
  }
};
static_assert(sizeof(Segment) == 64);

// A place in a segment, good for as long as this has the same stamp.
struct SegmentPlace {
  SegmentId segment = kNoSegment;
  uint64_t stamp = 0;
  uint32_t offset = 0;

  bool operator==(const SegmentPlace&) const = default;
};

// The segments of one shard that die together.
struct Generation {
  explicit Generation(int64_t death) : death_us(death) {}

  // When it dies; kDead once it was killed by hand.
  int64_t death_us;
  // The ends of the chain, which grows at its last.
  SegmentId first = kNoSegment;
  SegmentId last = kNoSegment;
  // The one that is appended to, which only large records in segments of their
  // own may stand behind; kNoSegment if there is none.
  SegmentId open = kNoSegment;
  // Records that are live except by the clock.
  uint32_t entries = 0;
  // Capacity of the chain, by which the next segment is sized.
  int64_t capacity = 0;
  // Of the records that are live except by the clock: keys and values.
  int64_t bytes = 0;
  // The number of its last entry in the shard's list of changes; 0: none.
  uint64_t change = 0;
  // Itself, and its places in the shard's order and in LiveBuckets.
  MemoryCharge charge{kBytes};

  static constexpr int64_t kDead = INT64_MIN;
  static constexpr int64_t kBytes = 112;
};
// An entry may have a generation of its own.
static_assert(sizeof(Generation) <= 56);

// Owns a shard's segments and gives them numbers. A segment keeps its address
// as long as it has its number. Not thread-safe, but a segment whose generation
// is dead may be read outside the lock that guards the table.
class SegmentTable {
 public:
  Segment& operator[](SegmentId id) { return At(id); }
  const Segment& operator[](SegmentId id) const { return At(id); }
  // Whether there is a segment of this number, maybe a free one: others have
  // no memory.
  bool Has(SegmentId id) const { return id < next_id_; }

  // Whether Allocate has numbers left for one more mutation and what it
  // compacts.
  bool HasRoom() const { return HasRoomFor(1); }
  // For so many mutations, up to kMaxSegments / kReserve.
  bool HasRoomFor(size_t mutations) const {
    return kMaxSegments - next_id_ + free_count_ >= mutations * kReserve;
  }

  // A segment of `capacity` bytes at the end of the generation's chain: the one
  // to append to from now on, or one for a single record.
  enum class Use { kOpen, kSingle };
  SegmentId Allocate(uint32_t capacity, Use use, const RecordBase& base,
                     Generation* generation);

  // Takes a segment out of its chain and to the end of another's.
  void Move(SegmentId id, Generation* to);

  // Takes a segment out of its chain and frees its number. Returns its memory,
  // which the caller frees outside of the lock if possible.
  Block<char[]> Free(SegmentId id);

  // Asked from the allocator.
  size_t memory_bytes() const { return memory_bytes_; }

 private:
  void Unlink(SegmentId id);
  void Link(SegmentId id, Generation* generation);
  void ShrinkIfEmpty();

  // Chunks of 4, 8, 16, 32 and then of 64 segments, so that the table of a
  // shard with few is small. Their numbers begin at the fourth.
  static constexpr SegmentId kSegmentsPerChunk = 64;
  static constexpr SegmentId kFirstChunk = 4;
  static constexpr size_t kSmallChunks = 4;
  static size_t ChunkOf(SegmentId id) {
    const SegmentId at = id + kFirstChunk;
    return at >= kSegmentsPerChunk
               ? at / kSegmentsPerChunk + kSmallChunks - 1
               : static_cast<size_t>(std::bit_width(at)) - 3;
  }
  static SegmentId SizeOf(size_t chunk) {
    return chunk < kSmallChunks ? kFirstChunk << chunk : kSegmentsPerChunk;
  }
  Segment& At(SegmentId id) const {
    const SegmentId at = id + kFirstChunk;
    if (at >= kSegmentsPerChunk) [[likely]] {
      return chunks_[at / kSegmentsPerChunk + kSmallChunks - 1]
                    [at % kSegmentsPerChunk];
    }
    return chunks_[ChunkOf(id)][at - std::bit_floor(at)];
  }
  // Chunks that one call frees, under a shard's lock.
  static constexpr int kMaxFreedChunks = 256;

  static constexpr SegmentId kReserve = 16;
  std::vector<std::unique_ptr<Segment[]>> chunks_;
  // Free numbers, linked by Segment::next.
  SegmentId free_ = kNoSegment;
  SegmentId free_count_ = 0;
  SegmentId next_id_ = kNoSegment + 1;
  size_t memory_bytes_ = 0;
  // Segments of chunks_.
  size_t room_ = 0;
  // Of these; segments' memory is counted where it comes from.
  MemoryCharge charge_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_SEGMENT_H_
