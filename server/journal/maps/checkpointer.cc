#include "server/journal/maps/checkpointer.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/map/time_cache_map.h"
#include "server/journal/local/failpoint.h"

namespace timecache::server {
namespace {

// The overhead of an entry in the journal, besides its key and value.
constexpr int64_t kEntryBytes = 32;
// On a full disk, where trimming may help: a journal whose closed segments are
// this multiple of its needed content is worth a round, if that takes no more
// than this part of the reserve. The open segment stays in any case: without
// another one, repeated rounds would use up the reserve.
constexpr uint64_t kLowSpaceFactor = 2;
constexpr uint64_t kReserveShare = 4;
// How much longer than event_retention a round waits for a watch that has not
// read events: it may have stopped reading.
constexpr int64_t kUnreadGraceUs = 600 * kMicrosPerSecond;
// From a step that could not be stored to the next one.
constexpr std::chrono::seconds kRetryInterval{1};

using Maps = std::vector<std::shared_ptr<TimeCacheMap>>;

MapChangeLog* LogOf(const TimeCacheMap& map) {
  return static_cast<MapChangeLog*>(map.change_log());
}

}  // namespace

class Checkpointer::Rounds : public std::enable_shared_from_this<Rounds> {
 public:
  Rounds(MapChangeLogs* logs, Registry* registry, const Clock* clock,
         const CheckpointerOptions& options)
      : logs_(*logs), registry_(*registry), clock_(*clock), options_(options) {}

  void Stop() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    maps_.clear();
  }

  void Look() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (stopped_) return;
    if (phase_ == Phase::kWait) {
      DropUnread();
      if (MayTrim()) {
        Failpoint("checkpoint.groups");
        phase_ = Phase::kGroups;
        BeginGroups();
      }
    }
    if (phase_ == Phase::kIdle) BeginIfDue();
  }

  Statistics GetStatistics() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return {rounds_, phase_ == Phase::kWalk, phase_ == Phase::kWait};
  }

 private:
  // Maps are written again; events from before are still retained; groups are
  // written again. Then all records from before the round are trimmed.
  enum class Phase { kIdle, kWalk, kWait, kGroups };
  // A map that was written again, and the first event of later deaths.
  struct Walked {
    std::weak_ptr<TimeCacheMap> map;
    uint64_t next_event;
  };

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

  // Whether maps of this size can be written again: on a full disk that may
  // take a part of the reserve, whose rest is for time.
  bool HasRoomFor(uint64_t held) const {
    return held <= logs_.journal().statistics().reserve_bytes / kReserveShare;
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
    from_ = std::move(from);
    maps_ = std::move(maps);
    phase_ = Phase::kWalk;
    BeginMap();
  }

  // The last of maps_ is the one whose turn it is.
  void BeginMap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    place_ = ScanPosition();
    if (maps_.empty()) {
      Failpoint("checkpoint.walked");
      phase_ = Phase::kWait;
      return;
    }
    LogOf(*maps_.back())->AppendWalkBegins();
    Failpoint("checkpoint.walk_begun");
    Next(*maps_.back());
  }

  void Step() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (stopped_) return;
    if (logs_.journal().low_space() && !HasRoomFor(HeldBytes(DurableMaps()))) {
      return StepLater();
    }
    Failpoint("checkpoint.step");
    if (phase_ == Phase::kWalk) {
      StepWalk();
    } else {
      StepGroups();
    }
  }

  void StepWalk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    TimeCacheMap* const map = maps_.back().get();
    if (map->AppendAgain(clock_.NowUs(), options_.step_entries,
                         options_.step_bytes, &place_)) {
      Failpoint("checkpoint.step_told");
      return Next(*map);
    }
    const MapCounts counts = map->EndWalk(clock_.NowUs());
    LogOf(*map)->AppendWalkEnds(counts);
    Failpoint("checkpoint.walk_ended");
    walked_.push_back({maps_.back(), counts.next_event});
    maps_.pop_back();
    BeginMap();
  }

  // The last of walked_ is the one whose turn it is.
  void BeginGroups() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    group_place_ = ConsumerGroups::Place();
    while (!walked_.empty()) {
      // Deleted maps have none.
      if (const auto map = walked_.back().map.lock()) return Next(*map);
      walked_.pop_back();
    }
    Trim();
  }

  void StepGroups() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto map = walked_.back().map.lock();
    if (map != nullptr) {
      if (map->groups().AppendAgain(walked_.back().next_event,
                                    options_.step_entries, options_.step_bytes,
                                    &group_place_)) {
        Failpoint("checkpoint.groups_told");
        return Next(*map);
      }
      if (!told_groups_) {
        // Until the last of it is stored.
        told_groups_ = true;
        return Next(*map);
      }
    }
    told_groups_ = false;
    walked_.pop_back();
    BeginGroups();
  }

  // Another step, once the written changes are stored. Never at once: mu_ is
  // held.
  void Next(const TimeCacheMap& map) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    LogOf(map)->WhenAllKept(
        [self = shared_from_this()](const absl::Status& status) {
          if (!status.ok()) return self->StepLater();
          self->logs_.completions().Add([self] { self->Step(); });
        });
  }

  void StepLater() {
    logs_.completions().AddAfter(kRetryInterval,
                                 [self = shared_from_this()] { self->Step(); });
  }

  void DropUnread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const Walked& walked : walked_) {
      const auto map = walked.map.lock();
      if (map != nullptr && map->first_event() < walked.next_event) {
        map->DropUnread(clock_.NowUs(), kUnreadGraceUs);
      }
    }
  }

  bool MayTrim() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return std::all_of(
        walked_.begin(), walked_.end(), [](const Walked& walked) {
          const auto map = walked.map.lock();
          return map == nullptr || map->first_event() >= walked.next_event;
        });
  }

  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Failpoint("checkpoint.trim");
    for (uint32_t p = 0; p < from_.size(); ++p) {
      // Positions that were the journal's are not beyond its end.
      logs_.journal().TrimBefore(p, from_[p]).IgnoreError();
      Failpoint("checkpoint.trim_one");
    }
    phase_ = Phase::kIdle;
    ++rounds_;
    Failpoint("checkpoint.end");
  }

  MapChangeLogs& logs_;
  Registry& registry_;
  const Clock& clock_;
  const CheckpointerOptions options_;

  mutable absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  Phase phase_ ABSL_GUARDED_BY(mu_) = Phase::kIdle;
  uint64_t rounds_ ABSL_GUARDED_BY(mu_) = 0;
  // Of the round: what to keep of each partition, the maps that are still to be
  // written again, the position of the walk of the last of them, and those that
  // were written, except for their groups.
  std::vector<uint64_t> from_ ABSL_GUARDED_BY(mu_);
  Maps maps_ ABSL_GUARDED_BY(mu_);
  ScanPosition place_ ABSL_GUARDED_BY(mu_);
  std::vector<Walked> walked_ ABSL_GUARDED_BY(mu_);
  ConsumerGroups::Place group_place_ ABSL_GUARDED_BY(mu_);
  bool told_groups_ ABSL_GUARDED_BY(mu_) = false;
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
