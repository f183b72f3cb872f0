// Keeps the journal small.

#ifndef TIMECACHED_SERVER_DURABLE_CHECKPOINTER_H_
#define TIMECACHED_SERVER_DURABLE_CHECKPOINTER_H_

#include <cstdint>
#include <memory>

#include "server/base/clock.h"
#include "server/durable/map_change_log.h"
#include "server/engine/registry.h"

namespace timecache::server {

struct CheckpointerOptions {
  // A journal below this is left alone, unless its disk is full.
  uint64_t min_journal_bytes = uint64_t{256} << 20;
  // A round starts when the journal is larger than this multiple of its needed
  // content: live entries, retained events and what groups keep.
  uint64_t factor = 3;
  // Bytes that one step writes again before it waits until they are stored.
  int step_entries = 1'024;
  int64_t step_bytes = 256 << 10;
};

// Trims the journal without snapshots. In a *round* all maps are written again,
// one after the other, in small steps: the entries, then the events that are
// retained, then the groups with what they keep. The partitions' records from
// before the round are then dropped. So the journal grows during a round by
// what is needed and by what is written meanwhile. What lives long is written
// once more each round.
//
// The steps are recorded, and a round goes on where the last process left it.
//
// Runs on the logs' completions. Thread-safe.
class Checkpointer {
 public:
  struct Statistics {
    uint64_t rounds = 0;   // that are through, and have trimmed
    bool writing = false;  // a round is under way
  };

  // None is owned; all must outlive this. The first Look continues the round
  // that recovery has found.
  Checkpointer(MapChangeLogs* logs, Registry* registry, const Clock* clock,
               const CheckpointerOptions& options = {});
  // Waits for a step in progress.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Starts a round if one is due. Call it about once a second. O(maps).
  void Look();

  Statistics GetStatistics() const;

 private:
  // Shared with a step that is in progress when this is destroyed.
  class Rounds;

  const std::shared_ptr<Rounds> rounds_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_CHECKPOINTER_H_
