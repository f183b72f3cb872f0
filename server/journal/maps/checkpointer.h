// Keeps the journal small.

#ifndef TIMECACHED_SERVER_JOURNAL_MAPS_CHECKPOINTER_H_
#define TIMECACHED_SERVER_JOURNAL_MAPS_CHECKPOINTER_H_

#include <cstdint>
#include <memory>

#include "server/engine/clock.h"
#include "server/engine/registry.h"
#include "server/journal/maps/map_change_log.h"

namespace timecache::server {

struct CheckpointerOptions {
  // A journal below this is left alone, unless its disk is full.
  uint64_t min_journal_bytes = uint64_t{256} << 20;
  // A round begins when the journal is larger than this times what it must
  // hold: entries that live, and events that are retained.
  uint64_t factor = 3;
  // One step tells so much again, and waits until that is kept.
  int step_entries = 1'024;
  int64_t step_bytes = 256 << 10;
};

// Trims the journal without snapshots. In a *round* all maps are told again,
// one after the other, a little at a time; what partitions have from before the
// round is then dropped, as soon as no event is retained that died before its
// map's walk was over: while a round, and the longest event_retention, last,
// the journal grows. An entry that lives long is written once more each round.
//
// Works on the logs' completions. Thread-safe.
class Checkpointer {
 public:
  struct Statistics {
    uint64_t rounds = 0;    // that are through, and have trimmed
    bool walking = false;   // a round tells maps again
    bool trimming = false;  // a round waits for events that are retained
  };

  // None is owned; all must outlive this.
  Checkpointer(MapChangeLogs* logs, Registry* registry, const Clock* clock,
               const CheckpointerOptions& options = {});
  // Waits for a step that is under way.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Begins a round if it is time for one, or ends one that may trim: to be
  // called once a second or so. O(maps).
  void Look();

  Statistics GetStatistics() const;

 private:
  // Shared with the step that is on its way when this ends.
  class Rounds;

  const std::shared_ptr<Rounds> rounds_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_JOURNAL_MAPS_CHECKPOINTER_H_
