#include "server/engine/shard/compact_index.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace timecache::server {
namespace {

constexpr uint32_t kSlots = CompactIndex::kSlotsPerLine;
// Chunks of at least 2^7 lines are blocks of their own, so that a page that
// grows takes another one of the size that others have set free; smaller ones
// are one block.
constexpr int kBlockShift = 7;
// Buddies with at most so many slots together are merged: far fewer than split
// a page, so that a map of about one size does neither.
constexpr uint32_t kMergedSlots = CompactIndex::kMaxPageLines * kSlots / 4;

// At a higher load runs of full lines become long.
bool IsFull(size_t slots, uint32_t lines) {
  return slots * 9 > size_t{lines} * kSlots * 7;
}
bool IsSparse(size_t slots, uint32_t lines) {
  return slots * 8 < size_t{lines} * kSlots * 3;
}

// The next larger size of a page: another chunk; 8 are 4 of the next size.
uint32_t Grown(uint32_t lines) {
  return lines + std::max<uint32_t>(1, std::bit_floor(lines) / 4);
}
uint32_t LinesFor(size_t slots) {
  uint32_t lines = 0;
  while (IsFull(slots, lines)) lines = Grown(lines);
  return lines;
}
// For a page that has lost slots, and may get them again.
uint32_t RoomyLinesFor(size_t slots) { return LinesFor(slots + slots / 4); }

}  // namespace

CompactIndex::Line CompactIndex::no_slots_ = {};

CompactIndex::CompactIndex()
    : directory_(AllocateBlock<Entry>(1)), memory_bytes_(sizeof(Entry)) {
  directory_[0] = {&first_};
}

CompactIndex::~CompactIndex() {
  VisitPages([this](Page* page) {
    FreeLines(page);
    if (page != &first_) FreeBlock()(page);
  });
}

template <typename Visit>
void CompactIndex::VisitPages(const Visit& visit) const {
  for (size_t i = 0; i < size_t{1} << bits_;) {
    Page* const page = directory_[i].page;
    i += EntriesOf(*page);
    visit(page);
  }
}

void CompactIndex::Copy(const Page& page, uint32_t first, uint32_t end,
                        Slots* to) {
  Slot* out = &to->at[to->count];
  for (uint32_t i = 0; i < page.lines; ++i) {
    // Without a branch: which slots are copied is unpredictable. There is room
    // for one more, which is not counted.
    for (const Slot slot : page.LineAt(i).slots) {
      *out = slot;
      const uint32_t tag = TagOfSlot(slot);
      out += static_cast<int>(slot != 0) & static_cast<int>(tag >= first) &
             static_cast<int>(tag < end);
    }
  }
  to->count = static_cast<size_t>(out - to->at.get());
}

CompactIndex::Slots CompactIndex::Collect(uint32_t tag, uint32_t* end) const {
  const Page& page = PageOf(tag);
  const uint64_t tags =
      TagsOf(page) * kVisitSlots / std::max<uint64_t>(page.size, 1) + 1;
  *end = static_cast<uint32_t>(
      std::min<uint64_t>(FirstTag(page, tag) + TagsOf(page), tag + tags));
  Slots found(page.size);
  Copy(page, tag, *end, &found);
  std::sort(found.at.get(), found.at.get() + found.count);
  return found;
}

// --- Insertion.

void CompactIndex::Insert(uint32_t tag, RecordRef ref) {
  Page* page = &PageOf(tag);
  if (IsFull(page->size + 1, page->lines)) {
    MakeRoom(tag);
    page = &PageOf(tag);
  }
  Place(page, MakeSlot(tag, ref));
  ++size_;
}

void CompactIndex::Place(Page* page, Slot slot) {
  const uint32_t home = page->Home(TagOfSlot(slot));
  uint32_t i = home;
  while (page->LineAt(i).full()) i = page->After(i);
  Line& line = page->LineAt(i);
  line.slots[line.FirstFree()] = slot;
  ++page->size;
  work_.longest_run = std::max(work_.longest_run, page->Distance(home, i));
}

void CompactIndex::MakeRoom(uint32_t tag) {
  for (;;) {
    Page& page = PageOf(tag);
    if (!IsFull(page.size + 1, page.lines)) return;
    if (page.lines >= kMaxPageLines && CanSplit(page)) {
      Split(tag);
    } else {
      Refill(&page, Grown(page.lines));
    }
  }
}

bool CompactIndex::CanSplit(const Page& page) const {
  const auto depth = static_cast<int>(page.depth);
  return depth < bits_ ||
         (depth < kTagBits && size_t{2} << bits_ <= kDirectorySlack * pages_);
}

// Into the lower and the upper half of its tags. Where all slots are in one of
// them, none moves.
void CompactIndex::Split(uint32_t tag) {
  Page& lower = PageOf(tag);
  if (static_cast<int>(lower.depth) == bits_) SetDirectory(bits_ + 1);
  const uint32_t first = FirstTag(lower, tag);
  ++lower.depth;
  const uint32_t middle = first + TagsOf(lower);
  Page* const upper = new (BlockPool::Default().Allocate(sizeof(Page))) Page();
  upper->depth = lower.depth;
  memory_bytes_ += sizeof(Page);
  ++pages_;
  if (static_cast<int>(lower.depth) == bits_) deepest_ += 2;
  SetPage(middle, upper);
  Slots below(lower.size);
  Copy(lower, first, middle, &below);
  if (below.count == lower.size) return;
  if (below.count == 0) return std::swap(lower, *upper);
  Slots above(lower.size);
  Copy(lower, middle, middle + TagsOf(lower), &above);
  const uint32_t lines = lower.lines;
  FreeLines(&lower);
  Fill(&lower, std::min(LinesFor(below.count), lines), below);
  Fill(upper, std::min(LinesFor(above.count), lines), above);
}

// --- Erasure.

void CompactIndex::Erase(Slot* slot) {
  const uint32_t tag = TagOfSlot(*slot);
  Page& page = PageOf(tag);
  // Which line it stands in: at its home or a few lines on.
  uint32_t i = page.Home(tag);
  while (slot < page.LineAt(i).slots ||
         slot >= page.LineAt(i).slots + kSlotsPerLine) {
    i = page.After(i);
  }
  for (;;) {
    Line& line = page.LineAt(i);
    const bool was_full = line.full();
    Slot* last = line.slots + kSlotsPerLine - 1;
    while (*last == 0) --last;
    *slot = *last;
    *last = 0;
    if (!was_full) break;
    // The line has room now: a slot further on that belongs here or before must
    // come back, or it would not be found past a line that is not full.
    Slot* displaced = nullptr;
    uint32_t j = page.After(i);
    for (; displaced == nullptr; j = page.After(j)) {
      Line& next = page.LineAt(j);
      for (Slot& candidate : next.slots) {
        if (candidate == 0) break;
        const uint32_t home = page.Home(TagOfSlot(candidate));
        if (page.Distance(home, i) < page.Distance(home, j)) {
          displaced = &candidate;
          break;
        }
      }
      if (displaced != nullptr || !next.full()) break;
    }
    if (displaced == nullptr) break;
    *last = *displaced;
    slot = displaced;
    i = j;
    ++work_.slots_moved;
  }
  --page.size;
  --size_;
  if (page.size == 0 || IsSparse(page.size, page.lines)) GiveBack(tag);
}

void CompactIndex::GiveBack(uint32_t tag) {
  while (Merge(tag)) {
  }
  Page& page = PageOf(tag);
  const uint32_t lines = RoomyLinesFor(page.size);
  if (lines < page.lines) Refill(&page, lines);
}

// Merges the tag's page with its buddy, if they have few slots.
bool CompactIndex::Merge(uint32_t tag) {
  Page* lower = &PageOf(tag);
  if (lower->depth == 0) return false;
  const uint32_t first = FirstTag(*lower, tag);
  const uint32_t bit = TagsOf(*lower);
  Page* upper = &PageOf(first ^ bit);
  const uint32_t size = lower->size + upper->size;
  if (upper->depth != lower->depth || size > kMergedSlots) return false;
  if ((first & bit) != 0) std::swap(lower, upper);
  Slots slots(size);
  Copy(*lower, 0, kTags, &slots);
  Copy(*upper, 0, kTags, &slots);
  if (static_cast<int>(lower->depth) == bits_) deepest_ -= 2;
  --lower->depth;
  SetPage(first & ~bit, lower);
  FreeLines(upper);
  FreeBlock()(upper);
  memory_bytes_ -= sizeof(Page);
  --pages_;
  FreeLines(lower);
  Fill(lower, RoomyLinesFor(size), slots);
  while (deepest_ == 0) SetDirectory(bits_ - 1);
  return true;
}

// --- Pages and the directory.

void CompactIndex::FreeLines(Page* page) {
  if (page->lines == 0) return;
  const int shift = ChunkShift(page->lines);
  const uint32_t blocks = shift < kBlockShift ? 1 : page->lines >> shift;
  for (uint32_t i = 0; i < blocks; ++i) FreeBlock()(page->chunks[i]);
  memory_bytes_ -= page->lines * sizeof(Line);
  page->lines = 0;
  page->size = 0;
  page->chunks[0] = &no_slots_;
}

void CompactIndex::Fill(Page* page, uint32_t lines, const Slots& slots) {
  if (lines == 0) return;
  const uint32_t chunk_lines = uint32_t{1} << ChunkShift(lines);
  const uint32_t block_lines =
      ChunkShift(lines) < kBlockShift ? lines : chunk_lines;
  Line* block = nullptr;
  for (uint32_t i = 0; i < lines; i += chunk_lines) {
    if (i % block_lines == 0) {
      block = AllocateBlock<Line>(block_lines, /*lasting=*/true).release();
      std::memset(static_cast<void*>(block), 0, block_lines * sizeof(Line));
    }
    page->chunks[i / chunk_lines] = block + i % block_lines;
  }
  page->lines = lines;
  memory_bytes_ += lines * sizeof(Line);
  for (size_t i = 0; i < slots.count; ++i) Place(page, slots.at[i]);
  work_.slots_moved += slots.count;
  work_.largest_page = std::max(work_.largest_page, lines);
}

void CompactIndex::Refill(Page* page, uint32_t lines) {
  Slots slots(page->size);
  Copy(*page, 0, kTags, &slots);
  FreeLines(page);
  Fill(page, lines, slots);
}

void CompactIndex::SetDirectory(int bits) {
  auto directory = AllocateBlock<Entry>(size_t{1} << bits);
  for (size_t i = 0; i < size_t{1} << bits; ++i) {
    directory[i] = directory_[i << bits_ >> bits];
  }
  memory_bytes_ += sizeof(Entry) << bits;
  memory_bytes_ -= sizeof(Entry) << bits_;
  directory_ = std::move(directory);
  bits_ = bits;
  deepest_ = 0;
  VisitPages([this](const Page* page) {
    deepest_ += static_cast<int>(page->depth) == bits_ ? 1 : 0;
  });
}

// All tags that share their first page->depth bits with `tag` have this page.
void CompactIndex::SetPage(uint32_t tag, Page* page) {
  std::fill_n(&directory_[tag >> (kTagBits - bits_)], EntriesOf(*page),
              Entry{page});
}

}  // namespace timecache::server
