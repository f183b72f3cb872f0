// The part of a shard that walks all of its live entries.

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "server/engine/shard/shard.h"

namespace timecache::server {
namespace {

// The bits of a hash below its tag.
uint64_t RestOf(uint64_t hash) { return hash & (kMaxRef - 1); }

}  // namespace

// One step of a walk. `visit` returns whether the entry counts.
template <typename Visit>
void Shard::Walk(int64_t now_us, int* entries_left, int64_t* bytes_left,
                 uint32_t* tag, const Visit& visit) {
  const SegmentTable* const segments = &segments_;
  int slots_left = kScanSlots;
  for (int steps = kScanSteps; steps > 0 && *tag < CompactIndex::kTags;
       --steps) {
    const auto visit_slot = [&](uint32_t found, RecordRef ref) {
      --slots_left;
      const Segment& segment = (*segments)[SegmentOf(ref)];
      const int64_t death_us = segment.generation->death_us;
      if (death_us > now_us) {
        size_t size;
        const Record record = segment.Read(OffsetOf(ref), &size);
        if (visit(record, death_us, found)) {
          --*entries_left;
          *bytes_left -= record.payload_bytes();
        }
      }
      return slots_left > 0 && *entries_left > 0 && *bytes_left > 0;
    };
    // In order of tags, records lie anywhere.
    *tag = slots_.VisitFrom(*tag, visit_slot, [segments](RecordRef ref) {
      __builtin_prefetch((*segments)[SegmentOf(ref)].data.get() +
                         OffsetOf(ref));
    });
    if (slots_left <= 0 || *entries_left <= 0 || *bytes_left <= 0) return;
  }
}

void Shard::Scan(absl::string_view prefix, int64_t now_us, int* entries_left,
                 int64_t* bytes_left, ScanPosition* position,
                 const EntryVisitor& visit) {
  const ScanPosition from = *position;
  ScanPosition next = from;
  // Those of one tag, of which the index does not know the order.
  absl::InlinedVector<std::pair<uint64_t, Record>, 4> same_tag;
  const auto visit_tag = [&] {
    std::sort(same_tag.begin(), same_tag.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [rest, record] : same_tag) {
      next.rest = rest + 1;
      visit({record.view(), next});
    }
    same_tag.clear();
  };
  const TurnLock lock(&mu_);
  Walk(Observe(now_us), entries_left, bytes_left, &position->tag,
       [&](const Record& record, int64_t, uint32_t tag) {
         if (!absl::StartsWith(record.key, prefix)) return false;
         const uint64_t rest = RestOf(key_hash_(record.key));
         if (tag == from.tag && rest < from.rest) return false;
         if (tag != next.tag) visit_tag();
         next.tag = tag;
         same_tag.emplace_back(rest, record);
         return true;
       });
  visit_tag();
  position->rest = 0;
}

void Shard::AppendAgain(int64_t now_us, int* entries_left, int64_t* bytes_left,
                        uint32_t* tag) {
  const TurnLock lock(&mu_);
  now_us = Observe(now_us);
  ChangeSink* const sink = sink_;
  const int shard = sink_shard_;
  // At once: they are few thousand, and have no order.
  if (*tag == 0 && remembered_ != nullptr) {
    for (const auto& [hash, until_us] : remembered_->all()) {
      if (until_us > now_us) EmitRemember(hash, until_us);
    }
  }
  if (*tag == 0 && answers_ != nullptr) {
    for (const auto& [id, kept] : answers_->all()) {
      if (kept.until_us <= now_us) continue;
      EmitAnswer({id,
                  {kept.until_us, kept.version, kept.number, kept.found,
                   kept.removed, kept.duplicate, kept.has_parts, kept.value}});
    }
  }
  Walk(now_us, entries_left, bytes_left, tag,
       [&](const Record& record, int64_t death_us, uint32_t) {
         sink->Add(shard, {.kind = Change::Kind::kStore,
                           .record = record,
                           .death_us = death_us,
                           .at_us = now_us,
                           .hash = key_hash_(record.key)});
         return true;
       });
}

}  // namespace timecache::server
