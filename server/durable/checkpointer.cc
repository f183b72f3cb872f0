#include "server/durable/checkpointer.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/base/failpoint.h"
#include "server/base/lock_order.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server {
namespace {

// The overhead of an entry in the journal, besides its key and value.
constexpr int64_t kEntryBytes = 32;
// Without space, where trimming may help: a journal of whose bytes a trim can
// free this multiple of its needed content is worth a round.
constexpr uint64_t kLowSpaceFactor = 2;
// From a step that could not be stored to the next one.
constexpr std::chrono::seconds kRetryInterval{1};

using Maps = std::vector<std::shared_ptr<TimeCacheMap>>;

}  // namespace

class Checkpointer::Rounds : public std::enable_shared_from_this<Rounds> {
 public:
  Rounds(MapChangeLogs* logs, Registry* registry, const Clock* clock,
         const CheckpointerOptions& options)
      : logs_(*logs),
        registry_(*registry),
        clock_(*clock),
        options_(options),
        open_(logs->TakeOpenCheckpoint()) {}

  void Stop() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    maps_.clear();
  }

  void Look() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (stopped_ || writing_) return;
    if (open_.from.empty()) {
      BeginIfDue();
    } else {
      Begin(DurableMaps());
    }
  }

  Statistics GetStatistics() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return {rounds_, writing_};
  }

 private:
  using Phase = CheckpointPlace::Phase;

  Maps DurableMaps() const {
    Maps maps = registry_.List();
    maps.erase(std::remove_if(maps.begin(), maps.end(),
                              [](const auto& map) {
                                return map->change_log() == nullptr;
                              }),
               maps.end());
    return maps;
  }

  // The bytes that a round writes again, and those that must stay besides.
  // Groups share events in memory, but each is written with its own.
  static uint64_t HeldBytes(const Maps& maps) {
    int64_t held = 0;
    for (const auto& map : maps) {
      const NamespaceSize size = map->CountedSize();
      held += size.bytes + size.entries * kEntryBytes + map->retained_bytes();
      for (const auto& group : map->groups().List()) {
        held += group->GetStatistics().backlog_bytes;
      }
    }
    return static_cast<uint64_t>(held);
  }

  // Whether maps of this size can be written again.
  bool HasRoomFor(uint64_t held) const {
    return held <= logs_.journal().checkpoint_bytes_max();
  }

  void BeginIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const JournalStatistics journal = logs_.journal().statistics();
    if (journal.low_space ? journal.closed_bytes == 0
                          : journal.needed_bytes < options_.min_journal_bytes) {
      return;
    }
    // All records from here on have later positions: also those of a map that
    // is created before the list is, or after it.
    std::vector<uint64_t> from;
    for (uint32_t p = 0; p < logs_.journal().partitions(); ++p) {
      from.push_back(logs_.journal().End(p));
    }
    Maps maps = DurableMaps();
    const uint64_t held = HeldBytes(maps);
    if (journal.low_space
            ? journal.closed_bytes < kLowSpaceFactor * held || !HasRoomFor(held)
            : journal.needed_bytes < options_.factor * held) {
      return;
    }
    Failpoint("checkpoint.begin");
    open_ = {std::move(from), {}};
    Begin(std::move(maps));
  }

  void Begin(Maps maps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    maps_ = std::move(maps);
    writing_ = true;
    BeginMap();
  }

  // The last of maps_ is the one whose turn it is.
  void BeginMap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (maps_.empty()) return Trim();
    const auto begun = open_.places.find(maps_.back()->origin().log_id);
    if (begun != open_.places.end()) {
      place_ = begun->second;
    } else {
      place_ = CheckpointPlace();
      logs_.Of(*maps_.back())->AppendWalkBegins();
      Failpoint("checkpoint.walk_begun");
    }
    Next();
  }

  void Step() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (stopped_) return;
    if (logs_.journal().low_space() && !HasRoomFor(HeldBytes(DurableMaps()))) {
      return StepLater();
    }
    Failpoint("checkpoint.step");
    TimeCacheMap* const map = maps_.back().get();
    const int64_t now_us = clock_.NowUs();
    // What it says is stored.
    logs_.Of(*map)->AppendCheckpoint({open_.from, place_, now_us});
    switch (place_.phase) {
      case Phase::kEntries:
        StepEntries(map, now_us);
        break;
      case Phase::kEvents:
        if (!map->AppendRetained(now_us, options_.step_bytes,
                                 &place_.end_event)) {
          place_.phase = Phase::kGroups;
        }
        Failpoint("checkpoint.events_recorded");
        break;
      case Phase::kGroups:
        if (!map->groups().AppendAgain(options_.step_entries,
                                       options_.step_bytes, &place_.groups)) {
          place_.phase = Phase::kDone;
        }
        Failpoint("checkpoint.groups_recorded");
        break;
      case Phase::kDone:
        Failpoint("checkpoint.map_done");
        maps_.pop_back();
        return BeginMap();
    }
    Next();
  }

  // The walk ends in a step that has nothing to write: an append to an entry
  // may be stored with the entry that the walk has written, and behind the end.
  void StepEntries(TimeCacheMap* map, int64_t now_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const ScanPosition before = place_.entries;
    if (map->AppendAgain(now_us, options_.step_entries, options_.step_bytes,
                         &place_.entries) ||
        place_.entries != before) {
      Failpoint("checkpoint.step_recorded");
      return;
    }
    const MapCounts counts = map->EndWalk(now_us);
    logs_.Of(*map)->AppendWalkEnds(counts);
    Failpoint("checkpoint.walk_ended");
    place_.phase = Phase::kEvents;
    place_.end_event = counts.next_event;
  }

  // Another step, once the written changes are stored. Never at once: mu_ is
  // held.
  void Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    logs_.Of(*maps_.back())
        ->WhenAllKept([self = shared_from_this()](const absl::Status& status) {
          if (!status.ok()) return self->StepLater();
          self->logs_.work().Add([self] { self->Step(); });
        });
  }

  void StepLater() {
    logs_.work().AddAfter(kRetryInterval,
                          [self = shared_from_this()] { self->Step(); });
  }

  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Failpoint("checkpoint.trim");
    for (uint32_t p = 0; p < open_.from.size(); ++p) {
      // Positions that were the journal's are not beyond its end.
      logs_.journal().TrimBefore(p, open_.from[p]).IgnoreError();
      Failpoint("checkpoint.trim_one");
    }
    open_ = OpenCheckpoint();
    writing_ = false;
    ++rounds_;
    Failpoint("checkpoint.end");
  }

  MapChangeLogs& logs_;
  Registry& registry_;
  const Clock& clock_;
  const CheckpointerOptions options_;

  mutable absl::Mutex mu_ ABSL_ACQUIRED_BEFORE(lock_order::kMap);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t rounds_ ABSL_GUARDED_BY(mu_) = 0;
  // The round, with the places of maps at which the last process left them.
  OpenCheckpoint open_ ABSL_GUARDED_BY(mu_);
  // The maps that are still to be written again, and how far the last of them
  // is.
  Maps maps_ ABSL_GUARDED_BY(mu_);
  CheckpointPlace place_ ABSL_GUARDED_BY(mu_);
};

Checkpointer::Checkpointer(MapChangeLogs* logs, Registry* registry,
                           const Clock* clock,
                           const CheckpointerOptions& options)
    : rounds_(std::make_shared<Rounds>(logs, registry, clock, options)) {}

Checkpointer::~Checkpointer() { rounds_->Stop(); }

void Checkpointer::Look() { rounds_->Look(); }

Checkpointer::Statistics Checkpointer::GetStatistics() const {
  return rounds_->GetStatistics();
}

}  // namespace timecache::server
