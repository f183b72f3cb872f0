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
  // A round starts when the journal is larger than this multiple of its needed
  // content: live entries and retained events.
  uint64_t factor = 3;
  // Bytes that one step writes again before it waits until they are stored.
  int step_entries = 1'024;
  int64_t step_bytes = 256 << 10;
};

// Trims the journal without snapshots. In a *round* all maps are written again,
// one after the other, in small steps; the partitions' records from before the
// round are then dropped, as soon as no event is retained that died before its
// map's walk ended: during a round, and the longest event_retention, the
// journal grows. A long-lived entry is written once more each round.
//
// Runs on the logs' completions. Thread-safe.
class Checkpointer {
 public:
  struct Statistics {
    uint64_t rounds = 0;    // that are through, and have trimmed
    bool walking = false;   // a round writes maps again
    bool trimming = false;  // a round waits for events that are retained
  };

  // None is owned; all must outlive this.
  Checkpointer(MapChangeLogs* logs, Registry* registry, const Clock* clock,
               const CheckpointerOptions& options = {});
  // Waits for a step in progress.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Starts a round if one is due, or ends one that may trim. Call it about once
  // a second. O(maps).
  void Look();

  Statistics GetStatistics() const;

 private:
  // Shared with a step that is in progress when this is destroyed.
  class Rounds;

  const std::shared_ptr<Rounds> rounds_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_JOURNAL_MAPS_CHECKPOINTER_H_
