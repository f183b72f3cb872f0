// The part of a shard that reads entries about to die.

#include <algorithm>
#include <utility>

#include "server/engine/shard/shard.h"

namespace timecache::server {

// Whether the position is still valid: in another generation, it is in one that
// was killed and waits for its sweep.
bool Shard::Holds(const Generation& generation,
                  const SegmentPlace& place) const {
  if (place.segment == kNoSegment || !segments_.Has(place.segment)) {
    return false;
  }
  const Segment& segment = segments_[place.segment];
  return segment.generation == &generation &&
         segment.base.version == place.stamp;
}

SegmentPlace Shard::EndOf(SegmentId id) const {
  if (id == kNoSegment) return {};
  const Segment& segment = segments_[id];
  return {id, segment.base.version, segment.used};
}

size_t Shard::ListLive(int64_t after_us, int64_t until_us, int64_t now_us,
                       absl::Span<int64_t> deaths) {
  const TurnLock lock(&mu_);
  after_us = std::max(after_us, Observe(now_us));
  size_t count = 0;
  for (auto it = generations_.upper_bound(after_us);
       it != generations_.end() && count < deaths.size(); ++it) {
    // At most the current one.
    if (it->second->entries == 0) continue;
    deaths[count++] = it->first;
    if (it->first > until_us) break;
  }
  return count;
}

size_t Shard::CountLive(int64_t after_us, int64_t now_us,
                        absl::Span<LiveDeath> deaths) {
  const TurnLock lock(&mu_);
  after_us = std::max(after_us, Observe(now_us));
  size_t count = 0;
  for (auto it = generations_.upper_bound(after_us);
       it != generations_.end() && count < deaths.size(); ++it) {
    if (it->second->entries == 0) continue;
    deaths[count++] = {it->first, it->second->entries, it->second->bytes};
  }
  return count;
}

// Where there is something to read, in the order in which it was put; null if
// nowhere.
SegmentPlace* Shard::NextUnread(const Generation& generation,
                                LivePosition* place) const {
  SegmentPlace& last = place->last;
  SegmentPlace& open = place->open;
  if (open.stamp != last.stamp && Holds(generation, open) &&
      open.offset < segments_[open.segment].used) {
    return &open;
  }
  SegmentId next = kNoSegment;
  if (Holds(generation, last)) {
    const Segment& segment = segments_[last.segment];
    if (last.offset < segment.used) return &last;
    next = segment.next;
    if (last.segment == generation.open || last.stamp == open.stamp) {
      open = last;
    }
  } else {
    // It was freed, or emptied and reused. A chain has few segments: their size
    // grows with its own.
    for (SegmentId id = generation.last;
         id != kNoSegment && segments_[id].base.version > last.stamp;
         id = segments_[id].previous) {
      next = id;
    }
  }
  if (next == kNoSegment) return nullptr;
  last = {next, segments_[next].base.version, 0};
  return &last;
}

// Returns whether nothing is left to read.
bool Shard::ReadSome(const Generation& generation, LivePosition* place,
                     LiveVisitor visit) const {
  int64_t bytes = 0;
  for (int records = 0; records < kReadRecords && bytes < kReadBytes;
       ++records) {
    SegmentPlace* const at = NextUnread(generation, place);
    if (at == nullptr) return true;
    // One that was emptied, and is not reused yet.
    const Segment& segment = segments_[at->segment];
    if (at->offset >= segment.used) continue;
    size_t size;
    const Record record = segment.Read(at->offset, &size);
    const bool is_new = record.version >= place->read_version ||
                        record.put_us >= place->read_us;
    if (is_new && !IsRecordDead(segment.data.get() + at->offset)) {
      if (!visit(record)) return false;
      bytes += record.payload_bytes();
    }
    at->offset += static_cast<uint32_t>(size);
  }
  return false;
}

bool Shard::ReadLive(int64_t death_us, int64_t now_us, LivePosition* place,
                     LiveVisitor visit) {
  const TurnLock lock(&mu_);
  if (death_us <= Observe(now_us)) return true;
  const auto it = generations_.find(death_us);
  return it == generations_.end() || ReadSome(*it->second, place, visit);
}

void Shard::TrackChanges(const std::atomic<int64_t>* until_us,
                         size_t max_changes) {
  const TurnLock lock(&mu_);
  track_until_us_ = until_us;
  max_changes_ = max_changes;
  if (until_us == nullptr) DropChanges(changes_.size());
  missed_changes_ = false;
}

// Before a record is appended.
void Shard::NoteChange(Generation* generation) {
  if (track_until_us_ == nullptr || generation->change >= first_change_ ||
      generation->death_us > track_until_us_->load(std::memory_order_relaxed)) {
    return;
  }
  if (changes_.size() >= max_changes_) {
    // Their reader must check all generations anyway.
    DropChanges(changes_.size());
    missed_changes_ = true;
  }
  generation->change = first_change_ + changes_.size();
  changes_.push_back({generation->death_us,
                      {EndOf(generation->last), EndOf(generation->open),
                       next_version_, now_us_}});
  DropChanges(0);
}

// The oldest ones; their generations may change again.
void Shard::DropChanges(size_t count) {
  constexpr size_t kChargeStep = 64;
  changes_.Drop(count);
  first_change_ += count;
  const size_t steps = (changes_.size() + kChargeStep - 1) / kChargeStep;
  changes_charge_.Set(
      static_cast<int64_t>(steps * kChargeStep * sizeof(LiveChange)));
}

bool Shard::ReadChanges(int64_t now_us, uint64_t* until_change, bool* missed,
                        ChangeVisitor visit) {
  const TurnLock lock(&mu_);
  now_us = Observe(now_us);
  if (*until_change == 0) *until_change = first_change_ + changes_.size();
  *missed = std::exchange(missed_changes_, false) || *missed;
  for (int gone = 0; gone < kReadRecords && first_change_ < *until_change;
       ++gone) {
    LiveChange& change = changes_.front();
    const int64_t death_us = change.death_us;
    const auto it = generations_.find(death_us);
    // One that died, or was reused and then has another entry.
    const bool is_gone = death_us <= now_us || it == generations_.end() ||
                         it->second->change != first_change_;
    if (is_gone) {
      DropChanges(1);
      continue;
    }
    const bool through =
        ReadSome(*it->second, &change.place, [&](const Record& record) {
          visit(death_us, record);
          return true;
        });
    if (through) DropChanges(1);
    break;
  }
  return first_change_ >= *until_change;
}

int64_t Shard::width_us() const {
  const TurnLock lock(&mu_);
  return width_us_;
}

}  // namespace timecache::server
