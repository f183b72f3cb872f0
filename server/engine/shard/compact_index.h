// The hash index of one shard: eight bytes an entry.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_COMPACT_INDEX_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_COMPACT_INDEX_H_

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "server/engine/shard/block_pool.h"

namespace timecache::server {

// Where a record stands: 22 bits of segment and 20 bits of offset. Never 0.
using RecordRef = uint64_t;
inline constexpr int kRefBits = 42;
inline constexpr RecordRef kMaxRef = RecordRef{1} << kRefBits;

// A multimap from a 22-bit tag (the top bits of a key's hash) to record
// references. A slot is tag and reference in eight bytes; a line is eight
// slots, one cache line. A tag's home is the line at its share of the table,
// tag * lines / 2^22, and what does not fit there goes to the next line with
// room: linear probing by lines. So slots stand in order of tag, but for that
// overflow, and three things follow:
//   - A slot alone tells its home. The table grows and shrinks without a key
//     being read, two lines per call of Insert and Erase, in place: tags from
//     `frontier_` up live by the larger number of lines, tags below by the
//     smaller, and the frontier moves. No step is longer than a run of full
//     lines.
//   - Growth need not double: a fifth at a time keeps the load of a growing
//     table between 0.65 and 0.78, which is about eleven bytes an entry, and
//     moves slots two thirds as often as an eighth at a time.
//   - A walk in order of tag meets every entry once, however the table is
//     resized meanwhile.
//
// Not thread-safe. Find, Insert and Erase touch one or two cache lines.
class CompactIndex {
 public:
  static constexpr int kTagBits = 64 - kRefBits;
  static constexpr uint32_t kTags = uint32_t{1} << kTagBits;
  static constexpr int kSlotsPerLine = 8;
  // Past this many lines a line covers less than two tags, and lookups would
  // slow down: the shard takes no more entries then (more than 12 M).
  static constexpr uint32_t kMaxLines = kTags / 2;

  using Slot = uint64_t;

  static uint32_t TagOf(uint64_t hash) {
    return static_cast<uint32_t>(hash >> kRefBits);
  }
  static uint32_t TagOfSlot(Slot slot) {
    return static_cast<uint32_t>(slot >> kRefBits);
  }
  static RecordRef RefOf(Slot slot) { return slot & (kMaxRef - 1); }
  static Slot MakeSlot(uint32_t tag, RecordRef ref) {
    return (Slot{tag} << kRefBits) | ref;
  }

  CompactIndex();

  // The first slot of this tag whose reference satisfies `match`, or null.
  // Stays valid until the next Insert or Erase; its reference may be replaced
  // in place.
  template <typename Match>
  Slot* Find(uint32_t tag, Match&& match) {
    for (uint32_t i = Home(tag); i < lines_allocated_; ++i) {
      Line& line = LineAt(i);
      for (uint32_t found = line.Matches(tag); found != 0; found &= found - 1) {
        Slot& slot = line.slots[std::countr_zero(found)];
        if (match(RefOf(slot))) return &slot;
      }
      if (!line.full()) break;
    }
    return nullptr;
  }

  // The slot that holds exactly this, or null.
  Slot* FindExact(uint32_t tag, RecordRef ref) {
    return Find(tag, [ref](RecordRef found) { return found == ref; });
  }

  // The reference of the first slot of this tag in its home line, or 0: a guess
  // at what Find will look at, for prefetching.
  RecordRef FirstOf(uint32_t tag) const {
    const uint32_t home = Home(tag);
    if (home >= lines_allocated_) return 0;
    const Line& line = LineAt(home);
    const uint32_t found = line.Matches(tag);
    return found == 0 ? 0 : RefOf(line.slots[std::countr_zero(found)]);
  }

  // Whether Insert may be called.
  bool HasRoom() const { return size_ < kMaxEntries; }
  void Insert(uint32_t tag, RecordRef ref);
  // Removes a slot that Find returned.
  void Erase(Slot* slot);

  // Brings a tag's home line into the cache.
  void Prefetch(uint32_t tag) const {
    const uint32_t home = Home(tag);
    if (home < lines_allocated_) __builtin_prefetch(&LineAt(home));
  }
  // The same by a load whose result is unused: measured to be faster than a
  // prefetch when it also misses the TLB.
  void Touch(uint32_t tag) const {
    const uint32_t home = Home(tag);
    if (home < lines_allocated_) {
      static_cast<void>(*static_cast<const volatile Slot*>(LineAt(home).slots));
    }
  }

  // Calls visit(tag, ref) for all slots with `tag` and above whose home is the
  // line of `tag`, in order of tag; returns the first tag that was not visited
  // (kTags: none left). O(slots of a line and its overflow).
  template <typename Visit>
  uint32_t VisitLine(uint32_t tag, Visit&& visit) const {
    uint32_t end = kTags;
    for (Slot slot : CollectLine(tag, &end)) {
      visit(TagOfSlot(slot), RefOf(slot));
    }
    return end;
  }

  size_t size() const { return size_; }
  // Asked from the allocator.
  size_t memory_bytes() const;
  // The most lines that a slot was ever away from its home: the bound of all
  // steps.
  uint32_t longest_run() const { return longest_run_; }

 private:
  struct alignas(64) Line {
    Slot slots[kSlotsPerLine];
    // Slots are filled from the front.
    bool full() const { return slots[kSlotsPerLine - 1] != 0; }
    // Of a line that is not full; halves what is left, without a branch.
    int FirstFree() const {
      static_assert(kSlotsPerLine == 8);
      int i = slots[3] != 0 ? 4 : 0;
      i += slots[i + 1] != 0 ? 2 : 0;
      return i + (slots[i] != 0 ? 1 : 0);
    }
    // A bit for each taken slot of this tag. Without a branch, because its
    // position is unpredictable.
    uint32_t Matches(uint32_t tag) const {
      uint32_t found = SlotsWithTag(slots, tag);
      // Empty slots look like those of tag 0.
      for (int i = kSlotsPerLine; tag == 0 && i-- > 0 && slots[i] == 0;) {
        found &= ~(uint32_t{1} << i);
      }
      return found;
    }
  };

  // A bit for each slot of a line with this tag.
  static uint32_t SlotsWithTag(const Slot* slots, uint32_t tag) {
    static_assert(kSlotsPerLine == 8);
#ifdef __SSE2__
    // A tag is in the upper half of its slot: four slots' halves to a vector.
    const auto* const pairs = reinterpret_cast<const __m128i*>(slots);
    const auto equal = [wanted = _mm_set1_epi32(static_cast<int>(tag))](
                           __m128i first, __m128i second) {
      const __m128 halves =
          _mm_shuffle_ps(_mm_castsi128_ps(first), _mm_castsi128_ps(second),
                         _MM_SHUFFLE(3, 1, 3, 1));
      const __m128i tags =
          _mm_srli_epi32(_mm_castps_si128(halves), kRefBits - 32);
      return _mm_cmpeq_epi32(tags, wanted);
    };
    const __m128i found = _mm_packs_epi32(
        equal(_mm_load_si128(pairs), _mm_load_si128(pairs + 1)),
        equal(_mm_load_si128(pairs + 2), _mm_load_si128(pairs + 3)));
    return static_cast<uint32_t>(
        _mm_movemask_epi8(_mm_packs_epi16(found, _mm_setzero_si128())));
#else
    uint32_t found = 0;
    for (int i = 0; i < kSlotsPerLine; ++i) {
      found |= uint32_t{TagOfSlot(slots[i]) == tag} << i;
    }
    return found;
#endif
  }

  // The slots of a run of full lines and the line that ends it. At a load of
  // 7/9 runs of more than a few lines are rare, and the longest of a million
  // lines is some fifty; only a key that died many times over and was never
  // swept makes longer ones.
  using Run = absl::InlinedVector<Slot, 64>;

  static constexpr uint32_t kLinesPerChunk = 512;
  static constexpr size_t kMaxEntries =
      size_t{kMaxLines} * kSlotsPerLine * 3 / 4;

  uint32_t Home(uint32_t tag) const {
    const uint64_t lines = tag >= frontier_ ? large_ : small_;
    return static_cast<uint32_t>((tag * lines) >> kTagBits);
  }
  // The first tag whose home is `line` in a table of `lines`.
  static uint32_t FirstTag(uint64_t line, uint64_t lines) {
    return static_cast<uint32_t>(((line << kTagBits) + lines - 1) / lines);
  }
  Line& LineAt(uint32_t i) {
    return chunks_[i / kLinesPerChunk][i % kLinesPerChunk];
  }
  const Line& LineAt(uint32_t i) const {
    return chunks_[i / kLinesPerChunk][i % kLinesPerChunk];
  }

  static Block<Line[]> MakeChunk(uint32_t lines);
  void EnsureLine(uint32_t line) {
    if (line >= lines_allocated_) AllocateLine(line);
  }
  void AllocateLine(uint32_t line);
  void Place(Slot slot);
  Run CollectLine(uint32_t tag, uint32_t* end) const;
  void MoveFrontier(uint32_t line, uint32_t frontier);
  void Resize();
  void ResizeStep();
  void FreeUnused();

  size_t size_ = 0;
  // Tags from frontier_ up have their home in a table of large_ lines, those
  // below in one of small_. At rest frontier_ is 0 and small_ says nothing.
  uint32_t large_ = 1;
  uint32_t small_ = 1;
  uint32_t frontier_ = 0;
  enum class Motion : uint8_t { kRest, kGrowing, kShrinking };
  Motion motion_ = Motion::kRest;
  uint32_t longest_run_ = 0;

  // Lines come in chunks, so that growth copies none; only the first chunk
  // begins small and doubles, so that a small map stays small.
  uint32_t lines_allocated_ = 0;
  std::vector<Block<Line[]>> chunks_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_COMPACT_INDEX_H_
