// Rebuilds a map from the recorded changes of another one.

#ifndef TIMECACHED_SERVER_ENGINE_MAP_MAP_REPLAY_H_
#define TIMECACHED_SERVER_ENGINE_MAP_MAP_REPLAY_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "server/engine/groups/groups_replay.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/shard/change.h"

namespace timecache::server {

// Takes the changes and ticks of a map, in order, into a new one of the same
// name, options and origin. Deaths are published as before: the same events, in
// the same order, with the same numbers.
//
// Changes before some point may be missing, if TimeCacheMap::AppendAgain wrote
// the live entries after it, then AppendRetained the events of the log, and
// then ConsumerGroups::AppendAgain the groups' events. Deaths before the end of
// the first walk may be incomplete, and are not published: see Silence.
//
// Within one stored generation, changes of groups come in their order or all of
// them first, but none after a tick that was recorded after it.
//
// Used by one thread, before any other use of the map. Costs about as much as
// the original operations.
class MapReplay {
 public:
  // `map` must be journaled and outlive this.
  explicit MapReplay(TimeCacheMap* map);
  MapReplay(const MapReplay&) = delete;
  MapReplay& operator=(const MapReplay&) = delete;

  // Before all else: any changes and ticks may be missing, and those that are
  // there are true. What was appended to an entry after a missing change is
  // left out, and so is an atomic batch that did so. A tick whose number of
  // events is not that of the entries that are known has lost all of them,
  // because which of them had which number is unknown: the log skips them, and
  // has none from before them.
  void AllowLosses() { losses_ = true; }

  // Before all other calls. Asked again and again while a tick is applied, after
  // a bounded part of its deaths; true ends that with CANCELLED, and the map is
  // of no use. Called without locks. May be null.
  void SetCancelled(std::function<bool()> cancelled) {
    cancelled_ = std::move(cancelled);
  }

  // Before all other calls: nothing is published until Begin.
  void Silence() { first_event_ = UINT64_MAX; }
  // The walk ended with these counts (TimeCacheMap::EndWalk): events after them
  // are published.
  void Begin(const MapCounts& counts);

  // DATA_LOSS: no map writes such a change, or an entry is missing that was
  // appended to. The bytes of a change with more_of_batch must stay until the
  // last of its batch.
  absl::Status Apply(int shard, const Change& change);
  // DATA_LOSS if the changes before it do not yield its number of events, and
  // no losses are allowed. CANCELLED: see SetCancelled.
  absl::Status Apply(const Tick& tick);

  // After all changes of one process, before those of the next. O(entries), if
  // they move, and O(batches).
  void Apply(const TimeSkip& skip);

  // The log has these events, too.
  void Apply(const RetainedEvents& events);

  // DATA_LOSS: no map writes such a change.
  absl::Status Apply(const GroupChange& change) {
    // Before the end of a walk: groups are written again after it.
    if (first_event_ == UINT64_MAX) return absl::OkStatus();
    // Events with an outcome had been published.
    if (losses_ && change.names_events()) map_.sweeper_.SkipTo(change.end);
    return groups_.Apply(change);
  }

  // The end of the changes: deaths without a tick wait for the next one. All
  // versions that the map's source gives from now on must be at least what this
  // returns.
  uint64_t Finish();

  // The log has dropped all events before this one.
  void DropBefore(uint64_t event) { map_.log_.DropBefore(event); }

  // The map has seen this time.
  void Observe(int64_t at_us) { last_us_ = std::max(last_us_, at_us); }
  // The latest time of any change or tick.
  int64_t last_us() const { return last_us_; }

 private:
  struct BatchChange {
    int shard;
    Change change;
    AnswerTo answer;
  };
  absl::Status CheckShard(int shard) const;
  absl::Status ApplyOne(int shard, const Change& change);
  absl::Status AddToBatch(int shard, const Change& change);
  // What died by the tick, for the sweeper.
  absl::Status AddDeaths(const Tick& tick);
  // The first of killed_; silent, if it is.
  DeadBucket FirstKilled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(map_.advance_mu_);
  std::vector<DeadBucket> TakeDue(int64_t now_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(map_.advance_mu_);
  // The deaths up to the tick, in order.
  std::vector<DeadBucket> TakeDead(const Tick& tick)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(map_.advance_mu_);

  TimeCacheMap& map_;
  GroupsReplay groups_;
  // The first event to publish. Events before these counts are never published.
  uint64_t first_event_;
  MapCounts silent_;
  bool losses_ = false;
  // Where there are losses: of the atomic batch that is being read.
  std::vector<BatchChange> batch_;
  std::function<bool()> cancelled_;
  int64_t last_us_ = INT64_MIN;
  // Killed, and not published yet: when, by which kill, and in which shards.
  struct Killed {
    Cause cause = Cause::kRotated;
    std::map<int, std::unique_ptr<Generation>> parts;
  };
  std::map<std::pair<int64_t, uint64_t>, Killed> killed_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_MAP_MAP_REPLAY_H_
