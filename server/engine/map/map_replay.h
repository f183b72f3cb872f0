// Makes a map again from the changes that another one told.

#ifndef TIMECACHED_SERVER_ENGINE_MAP_MAP_REPLAY_H_
#define TIMECACHED_SERVER_ENGINE_MAP_MAP_REPLAY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "server/engine/groups/groups_replay.h"
#include "server/engine/map/change.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server {

// Takes the changes and ticks of a map, in order, into a new one of the same
// name, options and origin. What died is told as it was: the same events, in
// the same order, with the same numbers.
//
// Changes may be missing before some point, if TimeCacheMap::AppendAgain has
// told behind it what was live, and then ConsumerGroups::AppendAgain what
// groups keep. What dies before the end of the first walk may be incomplete,
// and is not told: see Silence.
//
// Of what is kept together, changes of groups come in their order or all of
// them first, but none after a tick that was told after it.
//
// Used by one thread, before anybody else uses the map. Costs about what the
// operations did.
class MapReplay {
 public:
  // `map` must be journaled and outlive this.
  explicit MapReplay(TimeCacheMap* map);
  MapReplay(const MapReplay&) = delete;
  MapReplay& operator=(const MapReplay&) = delete;

  // Before all else: any changes and ticks may be missing, and those that are
  // there are true. What was appended to an entry after a missing change is
  // left out. A tick whose number of events is not that of the entries that are
  // known has lost all of them, because which of them had which number is
  // unknown: the log skips them, and has none from before them.
  void AllowLosses() { losses_ = true; }

  // Before all else: nothing is told until Begin.
  void Silence() { first_event_ = UINT64_MAX; }
  // The walk was over, with these counts (TimeCacheMap::EndWalk): what comes
  // behind them is told.
  void Begin(const MapCounts& counts);

  // DATA_LOSS: no map tells this, or an entry is missing that was appended to.
  absl::Status Apply(int shard, const Change& change);
  // DATA_LOSS if the changes before it do not come to its number of events, and
  // no losses are allowed.
  absl::Status Apply(const Tick& tick);

  // Behind all changes of one process, before those of the next. O(entries).
  void Apply(const TimeSkip& skip);

  // DATA_LOSS: no map tells this.
  absl::Status Apply(const GroupChange& change) {
    // Before the end of a walk: groups are told again behind it.
    if (first_event_ == UINT64_MAX) return absl::OkStatus();
    // Events of which something became had been told.
    if (losses_ && change.names_events()) map_.sweeper_.SkipTo(change.end);
    return groups_.Apply(change);
  }

  // Nothing comes any more: deaths that no tick has told wait for the next one.
  // All versions that the map's source gives from now on must be at least what
  // this returns.
  uint64_t Finish();

  // The latest time that a change or a tick told of.
  int64_t last_us() const { return last_us_; }

 private:
  // The first of killed_; silent, if it is.
  DeadBucket FirstKilled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(map_.advance_mu_);
  std::vector<DeadBucket> TakeDue(int64_t now_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(map_.advance_mu_);
  // What is dead by the tick, in order.
  std::vector<DeadBucket> TakeDead(const Tick& tick)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(map_.advance_mu_);

  TimeCacheMap& map_;
  GroupsReplay groups_;
  // The first event that is told. What these count is not, whenever its turn
  // comes.
  uint64_t first_event_;
  MapCounts silent_;
  bool losses_ = false;
  int64_t last_us_ = INT64_MIN;
  // Killed, and not told yet: by when and which, and of which shards.
  struct Killed {
    Cause cause = Cause::kRotated;
    std::map<int, std::unique_ptr<Generation>> parts;
  };
  std::map<std::pair<int64_t, uint64_t>, Killed> killed_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_MAP_MAP_REPLAY_H_
