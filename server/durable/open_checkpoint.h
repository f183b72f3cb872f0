// A round of the Checkpointer that goes on after a restart.

#ifndef TIMECACHED_SERVER_DURABLE_OPEN_CHECKPOINT_H_
#define TIMECACHED_SERVER_DURABLE_OPEN_CHECKPOINT_H_

#include <cstdint>
#include <vector>

#include "server/durable/map_record.h"
#include "server/log/journal.h"

namespace timecache::server {

// How far the Checkpointer was with a map.
struct MarkedMap {
  uint64_t log_id;
  uint32_t partition;
  // Where its creation is recorded; 0 where that was trimmed.
  uint64_t created;
  // The last one.
  CheckpointMark mark;
};

// The last round, unless its end has trimmed the journal.
OpenCheckpoint FindOpenCheckpoint(const Journal& journal,
                                  std::vector<MarkedMap> marks);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_OPEN_CHECKPOINT_H_
