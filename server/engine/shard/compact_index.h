// The hash index of one shard: eight bytes an entry.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_COMPACT_INDEX_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_COMPACT_INDEX_H_

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "server/base/block_pool.h"

namespace timecache::server {

// Where a record stands: 22 bits of segment and 20 bits of offset. Never 0.
using RecordRef = uint64_t;
inline constexpr int kRefBits = 42;
inline constexpr RecordRef kMaxRef = RecordRef{1} << kRefBits;

// A multimap from a 22-bit tag (the top bits of a key's hash) to record
// references. A slot is tag and reference in eight bytes; a line is eight
// slots, one cache line.
//
// Extendible hashing (Fagin et al., 1979): the top bits of a tag choose an
// entry of the directory, which leads to a page. A page has the slots of one
// range of tags, in a hash table of its own: linear probing by lines, from a
// home that scatters the tags of the range over the page. Three things follow:
//   - A slot alone determines its home: pages grow, shrink, split and merge without
//     a key being read, each by itself. So no step is longer than a page, and
//     no order of insertions makes it longer: where many tags are close
//     together, the pages cover less.
//   - A page grows in steps of a quarter to a seventh, not by doubling: the
//     load of a growing index stays between 0.62 and 0.78, which is about
//     eleven bytes an entry.
//   - Pages are in order of tag, so that a walk in that order meets every entry
//     once, however pages are split and merged meanwhile.
//
// Not thread-safe. Find, Insert and Erase touch one or two lines, and a page's
// header of 64 bytes, which stays in the cache: one for some 8,000 entries.
class CompactIndex {
 public:
  static constexpr int kTagBits = 64 - kRefBits;
  static constexpr uint32_t kTags = uint32_t{1} << kTagBits;
  static constexpr int kSlotsPerLine = 8;
  // Beyond this many entries a line has the slots of less than two tags, and
  // lookups would slow down: the shard takes no more then (12.6 M).
  static constexpr size_t kMaxEntries =
      size_t{kTags} / 2 * kSlotsPerLine * 3 / 4;
  // Lines of a page, unless it is of one tag, or the directory would become
  // larger than kDirectorySlack entries for each page: tags have to be closer
  // together than random ones by that factor to make a larger page.
  static constexpr uint32_t kMaxPageLines = 1'792;
  static constexpr size_t kDirectorySlack = 256;

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
  ~CompactIndex();
  CompactIndex(const CompactIndex&) = delete;
  CompactIndex& operator=(const CompactIndex&) = delete;

  // The first slot of this tag whose reference satisfies `match`, or null.
  // Stays valid until the next Insert or Erase; its reference may be replaced
  // in place.
  template <typename Match>
  Slot* Find(uint32_t tag, Match&& match) {
    const Page& page = PageOf(tag);
    for (uint32_t i = page.Home(tag);; i = page.After(i)) {
      Line& line = page.LineAt(i);
      for (uint32_t found = line.Matches(tag); found != 0; found &= found - 1) {
        Slot& slot = line.slots[std::countr_zero(found)];
        if (match(RefOf(slot))) return &slot;
      }
      if (!line.full()) return nullptr;
    }
  }

  // The slot that holds exactly this, or null.
  Slot* FindExact(uint32_t tag, RecordRef ref) {
    return Find(tag, [ref](RecordRef found) { return found == ref; });
  }

  // The reference of the first slot of this tag, or 0: a guess at what Find will
  // look at, for prefetching. Not of the home line alone: one slot in ten is in
  // a later one, and would cost two cache misses that nothing overlaps.
  RecordRef FirstOf(uint32_t tag) const {
    const Page& page = PageOf(tag);
    for (uint32_t i = page.Home(tag);; i = page.After(i)) {
      const Line& line = page.LineAt(i);
      const uint32_t found = line.Matches(tag);
      if (found != 0) return RefOf(line.slots[std::countr_zero(found)]);
      if (!line.full()) return 0;
    }
  }

  // Whether Insert may be called.
  bool HasRoom() const { return size_ < kMaxEntries; }
  // So many times.
  bool HasRoomFor(size_t entries) const {
    return size_ + entries <= kMaxEntries;
  }
  void Insert(uint32_t tag, RecordRef ref);
  // Removes a slot that Find returned.
  void Erase(Slot* slot);

  // Brings a tag's home line into the cache.
  void Prefetch(uint32_t tag) const { __builtin_prefetch(&HomeLine(tag)); }
  // The same by a load whose result is unused: measured to be faster than a
  // prefetch when it also misses the TLB.
  void Touch(uint32_t tag) const {
    static_cast<void>(*static_cast<const volatile Slot*>(HomeLine(tag).slots));
  }

  // Calls visit(tag, ref) for slots with `tag` and above, in order of tag,
  // until it has returned false and all slots of that tag are visited, or for
  // about kVisitSlots; returns the first tag that was not visited (kTags: none
  // left). Calls prefetch(ref) some slots ahead. O(slots of a page).
  template <typename Visit, typename Prefetch>
  uint32_t VisitFrom(uint32_t tag, Visit&& visit, Prefetch&& prefetch) const {
    constexpr size_t kAhead = 12;
    uint32_t end;
    const Slots slots = Collect(tag, &end);
    for (size_t i = 0; i < std::min(kAhead, slots.count); ++i) {
      prefetch(RefOf(slots.at[i]));
    }
    for (size_t i = 0; i < slots.count; ++i) {
      if (i + kAhead < slots.count) prefetch(RefOf(slots.at[i + kAhead]));
      if (visit(TagOfSlot(slots.at[i]), RefOf(slots.at[i]))) continue;
      const uint32_t last = TagOfSlot(slots.at[i]);
      while (++i < slots.count && TagOfSlot(slots.at[i]) == last) {
        visit(last, RefOf(slots.at[i]));
      }
      return last + 1;
    }
    return end;
  }
  template <typename Visit>
  uint32_t VisitFrom(uint32_t tag, Visit&& visit) const {
    return VisitFrom(tag, visit, [](RecordRef) {});
  }

  size_t size() const { return size_; }
  // Asked from the allocator.
  size_t memory_bytes() const { return memory_bytes_; }

  // What bounds the work of a call, ever: how many lines a slot was put away
  // from its home, and the lines of a page. And the sum of all slots that moved
  // to another line.
  struct Work {
    uint32_t longest_run = 0;
    uint32_t largest_page = 0;
    uint64_t slots_moved = 0;
  };
  const Work& work() const { return work_; }

 private:
  static constexpr size_t kVisitSlots = 1'024;

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

  // A page of so many lines has chunks of 2^k lines: this k.
  static int ChunkShift(uint32_t lines) {
    return static_cast<int>(std::bit_width(lines | 4)) - 3;
  }

  // The slots of the tags whose top `depth` bits are the same, in 4 to 7 chunks
  // of 2^k lines, or up to 3 of one. What a lookup needs is one cache line.
  struct alignas(64) Page {
    static constexpr uint32_t kMaxChunks = 7;

    Line* chunks[kMaxChunks] = {&no_slots_};
    // 0: chunks[0] is an empty line that all such pages share.
    uint32_t lines = 0;
    uint32_t size : 27 = 0;
    uint32_t depth : 5 = 0;

    // Fibonacci hashing: spreads close tags evenly, over any number of lines.
    uint32_t Home(uint32_t tag) const {
      const uint32_t scattered = tag * 0x9e3779b1;
      return static_cast<uint32_t>(uint64_t{scattered} * lines >> 32);
    }
    uint32_t After(uint32_t line) const {
      return line + 1 == lines ? 0 : line + 1;
    }
    // How far `line` is behind `home`.
    uint32_t Distance(uint32_t home, uint32_t line) const {
      return line >= home ? line - home : line + lines - home;
    }
    Line& LineAt(uint32_t i) const {
      const int shift = ChunkShift(lines);
      return chunks[i >> shift][i & ((uint32_t{1} << shift) - 1)];
    }
  };

  // Never written.
  static Line no_slots_;

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

  // Some slots, apart from their page.
  struct Slots {
    explicit Slots(size_t room)
        : at(AllocateBlock<Slot>(std::bit_ceil(room + 1))) {}
    Block<Slot[]> at;
    size_t count = 0;
  };

  struct Entry {
    Page* page;
  };

  Page& PageOf(uint32_t tag) const {
    return *directory_[tag >> (kTagBits - bits_)].page;
  }
  const Line& HomeLine(uint32_t tag) const {
    const Page& page = PageOf(tag);
    return page.LineAt(page.Home(tag));
  }
  size_t EntriesOf(const Page& page) const {
    return size_t{1} << (bits_ - static_cast<int>(page.depth));
  }
  // The first tag of the page that has `tag`, and the number of its tags.
  static uint32_t FirstTag(const Page& page, uint32_t tag) {
    return tag & ~(TagsOf(page) - 1);
  }
  static uint32_t TagsOf(const Page& page) { return kTags >> page.depth; }

  // Adds the page's slots of the tags from `first` to before `end`.
  static void Copy(const Page& page, uint32_t first, uint32_t end, Slots* to);
  Slots Collect(uint32_t tag, uint32_t* end) const;

  void Place(Page* page, Slot slot);
  void FreeLines(Page* page);
  // Gives a page without lines so many, and these slots.
  void Fill(Page* page, uint32_t lines, const Slots& slots);
  void Refill(Page* page, uint32_t lines);
  void MakeRoom(uint32_t tag);
  bool CanSplit(const Page& page) const;
  void Split(uint32_t tag);
  void GiveBack(uint32_t tag);
  bool Merge(uint32_t tag);
  void SetDirectory(int bits);
  void SetPage(uint32_t tag, Page* page);
  template <typename Visit>
  void VisitPages(const Visit& visit) const;

  size_t size_ = 0;
  // Entry i has the page of the tags whose top bits_ bits are i.
  int bits_ = 0;
  Block<Entry[]> directory_;
  size_t pages_ = 1;
  // Those of depth bits_: without any, the directory is halved.
  size_t deepest_ = 1;
  // The page of tag 0: a small map has no other.
  Page first_;
  size_t memory_bytes_ = 0;
  Work work_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_COMPACT_INDEX_H_
