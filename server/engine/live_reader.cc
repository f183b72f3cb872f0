// The part of a shard that reads what is going to die.

#include <algorithm>

#include "server/engine/shard.h"

namespace timecache {

// Whether the place is still there: in another generation, it is in one that
// was killed and waits for its sweep.
bool Shard::Holds(const Generation& generation,
                  const SegmentPlace& place) const {
  if (place.segment == kNoSegment) return false;
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
                       absl::Span<LiveMark> marks) {
  absl::MutexLock lock(&mu_);
  after_us = std::max(after_us, Observe(now_us));
  size_t count = 0;
  for (auto it = generations_.upper_bound(after_us);
       it != generations_.end() && count < marks.size(); ++it) {
    const Generation& generation = *it->second;
    // At most the current one.
    if (generation.entries == 0) continue;
    marks[count++] = {it->first, EndOf(generation.last),
                      EndOf(generation.open)};
    if (it->first > until_us) break;
  }
  return count;
}

// Where there is something to read, in the order in which it was put; null if
// nowhere.
SegmentPlace* Shard::NextUnread(const Generation& generation,
                                LivePlace* place) const {
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
    // It was freed, or emptied and begun anew. A chain has few segments: their
    // size grows with its own.
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

bool Shard::ReadLive(int64_t death_us, int64_t now_us, LivePlace* place,
                     LiveVisitor visit) {
  absl::MutexLock lock(&mu_);
  if (death_us <= Observe(now_us)) return true;
  const auto it = generations_.find(death_us);
  if (it == generations_.end()) return true;
  const Generation& generation = *it->second;
  int64_t bytes = 0;
  for (int records = 0; records < kReadRecords && bytes < kReadBytes;
       ++records) {
    SegmentPlace* const at = NextUnread(generation, place);
    if (at == nullptr) {
      *place = {EndOf(generation.last), EndOf(generation.open), next_version_,
                now_us_};
      return true;
    }
    // One that was emptied, and has not begun anew.
    const Segment& segment = segments_[at->segment];
    if (at->offset >= segment.used) continue;
    size_t size;
    const Record record = segment.Read(at->offset, &size);
    const bool is_new = record.version >= place->read_version ||
                        record.put_us >= place->read_us;
    if (is_new && !IsRecordDead(segment.data.get() + at->offset)) {
      if (!visit(record)) return false;
      bytes += static_cast<int64_t>(record.key.size() + record.value.size());
    }
    at->offset += static_cast<uint32_t>(size);
  }
  return false;
}

int64_t Shard::width_us() const {
  absl::MutexLock lock(&mu_);
  return width_us_;
}

}  // namespace timecache
