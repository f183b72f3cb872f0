// The part of a shard that walks all of its live entries.

#include "absl/strings/match.h"
#include "server/engine/shard/shard.h"

namespace timecache::server {

// One step of a walk. `visit` returns whether the entry counts.
template <typename Visit>
void Shard::Walk(int64_t now_us, int* entries_left, int64_t* bytes_left,
                 uint32_t* tag, const Visit& visit) {
  const SegmentTable* const segments = &segments_;
  int slots_left = kScanSlots;
  for (int steps = kScanSteps; steps > 0 && *tag < CompactIndex::kTags;
       --steps) {
    *tag = slots_.VisitFrom(*tag, [&](uint32_t, RecordRef ref) {
      --slots_left;
      const Segment& segment = (*segments)[SegmentOf(ref)];
      const int64_t death_us = segment.generation->death_us;
      if (death_us > now_us) {
        size_t size;
        const Record record = segment.Read(OffsetOf(ref), &size);
        if (visit(record, death_us)) {
          --*entries_left;
          *bytes_left -= record.payload_bytes();
        }
      }
      return slots_left > 0 && *entries_left > 0 && *bytes_left > 0;
    });
    if (slots_left <= 0 || *entries_left <= 0 || *bytes_left <= 0) return;
  }
}

void Shard::Scan(absl::string_view prefix, int64_t now_us, int* entries_left,
                 int64_t* bytes_left, uint32_t* tag,
                 const EntryVisitor& visit) {
  const TurnLock lock(&mu_);
  Walk(Observe(now_us), entries_left, bytes_left, tag,
       [&](const Record& record, int64_t) {
         if (!absl::StartsWith(record.key, prefix)) return false;
         visit(record.view());
         return true;
       });
}

void Shard::AppendAgain(int64_t now_us, int* entries_left, int64_t* bytes_left,
                        uint32_t* tag) {
  const TurnLock lock(&mu_);
  now_us = Observe(now_us);
  ChangeSink* const sink = sink_;
  const int shard = sink_shard_;
  Walk(now_us, entries_left, bytes_left, tag,
       [&](const Record& record, int64_t death_us) {
         sink->Add(shard, {.kind = Change::Kind::kStore,
                           .record = record,
                           .death_us = death_us,
                           .at_us = now_us});
         return true;
       });
}

}  // namespace timecache::server
