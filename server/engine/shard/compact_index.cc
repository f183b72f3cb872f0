#include "server/engine/shard/compact_index.h"

#include <algorithm>
#include <cstring>

namespace timecache::server {
namespace {

// Lines that one insertion moves while the index grows: a growth by a fifth is
// due no sooner than after lines * kSlotsPerLine * 7/9 / 5 insertions, and done
// in two fifths of them.
constexpr int kGrowSteps = 2;
// The same for an erasure while it shrinks, by a quarter: the next one is due
// after lines * kSlotsPerLine * 3/8 / 4 erasures.
constexpr int kShrinkSteps = 2;

}  // namespace

CompactIndex::CompactIndex() { EnsureLine(0); }

Block<CompactIndex::Line[]> CompactIndex::MakeChunk(uint32_t lines) {
  auto chunk = AllocateBlock<Line>(lines);
  std::memset(static_cast<void*>(chunk.get()), 0, lines * sizeof(Line));
  return chunk;
}

void CompactIndex::AllocateLine(uint32_t line) {
  while (line >= lines_allocated_) {
    if (lines_allocated_ < kLinesPerChunk) {
      const uint32_t more = std::max<uint32_t>(1, lines_allocated_ * 2);
      auto chunk = MakeChunk(more);
      if (lines_allocated_ > 0) {
        std::memcpy(chunk.get(), chunks_[0].get(),
                    lines_allocated_ * sizeof(Line));
        chunks_[0] = std::move(chunk);
      } else {
        chunks_.push_back(std::move(chunk));
      }
      lines_allocated_ = more;
    } else {
      chunks_.push_back(MakeChunk(kLinesPerChunk));
      lines_allocated_ += kLinesPerChunk;
    }
  }
}

size_t CompactIndex::memory_bytes() const {
  return size_t{lines_allocated_} * sizeof(Line) +
         chunks_.capacity() * sizeof(chunks_[0]);
}

void CompactIndex::Place(Slot slot) {
  uint32_t i = Home(TagOfSlot(slot));
  const uint32_t home = i;
  for (;; ++i) {
    EnsureLine(i);
    Line& line = LineAt(i);
    if (line.full()) continue;
    line.slots[line.FirstFree()] = slot;
    longest_run_ = std::max(longest_run_, i - home);
    return;
  }
}

void CompactIndex::Insert(uint32_t tag, RecordRef ref) {
  Place(MakeSlot(tag, ref));
  ++size_;
  Resize();
}

void CompactIndex::Erase(Slot* slot) {
  const uint32_t home = Home(TagOfSlot(*slot));
  // Which line it stands in: at its home or a few lines on.
  uint32_t i = home;
  while (slot < LineAt(i).slots || slot >= LineAt(i).slots + kSlotsPerLine) ++i;
  for (;;) {
    Line& line = LineAt(i);
    const bool was_full = line.full();
    Slot* last = line.slots + kSlotsPerLine - 1;
    while (*last == 0) --last;
    *slot = *last;
    *last = 0;
    if (!was_full) break;
    // The line has room now: a slot further on that belongs here or before must
    // come back, or it would not be found past a line that is not full.
    Slot* displaced = nullptr;
    uint32_t j = i + 1;
    for (; j < lines_allocated_ && displaced == nullptr; ++j) {
      for (Slot& candidate : LineAt(j).slots) {
        if (candidate != 0 && Home(TagOfSlot(candidate)) <= i) {
          displaced = &candidate;
          break;
        }
      }
      if (displaced != nullptr || !LineAt(j).full()) break;
    }
    if (displaced == nullptr) break;
    *last = *displaced;
    slot = displaced;
    i = j;
  }
  --size_;
  Resize();
}

CompactIndex::Run CompactIndex::CollectLine(uint32_t tag, uint32_t* end) const {
  Run found;
  const uint32_t home = Home(tag);
  const bool upper = tag >= frontier_;
  *end = std::min(FirstTag(home + 1, upper ? large_ : small_), kTags);
  if (!upper) *end = std::min(*end, frontier_);
  for (uint32_t i = home; i < lines_allocated_; ++i) {
    for (Slot slot : LineAt(i).slots) {
      if (slot != 0 && TagOfSlot(slot) >= tag && TagOfSlot(slot) < *end) {
        found.push_back(slot);
      }
    }
    if (!LineAt(i).full()) break;
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Takes the run of slots from `line` out, moves the frontier, and puts them
// back by the new homes. Only tags between the old and the new frontier have
// another home, and all of them must stand in that run.
void CompactIndex::MoveFrontier(uint32_t line, uint32_t frontier) {
  Run moved;
  for (uint32_t i = line; i < lines_allocated_; ++i) {
    Line& from = LineAt(i);
    const bool full = from.full();
    for (Slot& slot : from.slots) {
      if (slot != 0) moved.push_back(slot);
      slot = 0;
    }
    if (!full) break;
  }
  frontier_ = frontier;
  for (Slot slot : moved) Place(slot);
}

void CompactIndex::ResizeStep() {
  if (motion_ == Motion::kGrowing) {
    // The highest line of the smaller table goes over to the larger one.
    const uint32_t line =
        static_cast<uint32_t>((uint64_t{frontier_ - 1} * small_) >> kTagBits);
    MoveFrontier(line, FirstTag(line, small_));
    if (frontier_ == 0) motion_ = Motion::kRest;
  } else if (motion_ == Motion::kShrinking) {
    // The lowest line of the larger table goes over to the smaller one.
    const uint32_t line =
        static_cast<uint32_t>((uint64_t{frontier_} * large_) >> kTagBits);
    MoveFrontier(line, std::min(FirstTag(line + 1, large_), kTags));
    if (frontier_ == kTags) {
      large_ = small_;
      frontier_ = 0;
      motion_ = Motion::kRest;
      FreeUnused();
    }
  }
}

void CompactIndex::Resize() {
  // In units of slots: grow above 7/9, shrink below 3/8.
  const size_t large = size_t{large_} * kSlotsPerLine;
  const size_t small = size_t{small_} * kSlotsPerLine;
  switch (motion_) {
    case Motion::kRest:
      if (size_ * 9 > large * 7 && large_ < kMaxLines) {
        small_ = large_;
        large_ += std::max<uint32_t>(1, large_ / 5);
        frontier_ = kTags;
        motion_ = Motion::kGrowing;
      } else if (size_ * 8 < large * 3 && large_ > 1) {
        small_ = large_ - std::max<uint32_t>(1, large_ / 4);
        motion_ = Motion::kShrinking;
      }
      break;
    case Motion::kShrinking:
      if (size_ * 9 > small * 7) motion_ = Motion::kGrowing;
      break;
    case Motion::kGrowing:
      break;
  }
  const int steps = motion_ == Motion::kGrowing ? kGrowSteps : kShrinkSteps;
  for (int i = 0; i < steps && motion_ != Motion::kRest; ++i) ResizeStep();
}

void CompactIndex::FreeUnused() {
  uint32_t used = large_;
  while (used < lines_allocated_ && LineAt(used - 1).full()) ++used;
  while (chunks_.size() > 1 && lines_allocated_ - kLinesPerChunk >= used) {
    chunks_.pop_back();
    lines_allocated_ -= kLinesPerChunk;
  }
}

}  // namespace timecache::server
