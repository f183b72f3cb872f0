#include "server/durable/open_checkpoint.h"

#include <algorithm>
#include <utility>

namespace timecache::server {

// Maps that were created meanwhile are in later records as a whole.
OpenCheckpoint FindOpenCheckpoint(const Journal& journal,
                                  std::vector<MarkedMap> marks) {
  OpenCheckpoint open;
  for (const MarkedMap& each : marks) {
    open.from = std::max(open.from, each.mark.from);
  }
  if (open.from.size() != journal.partitions()) return {};
  bool trimmed = true;
  for (uint32_t p = 0; p < journal.partitions(); ++p) {
    if (open.from[p] > journal.End(p)) return {};
    trimmed = trimmed && open.from[p] <= journal.First(p);
  }
  if (trimmed) return {};
  for (MarkedMap& each : marks) {
    if (each.mark.from == open.from) {
      open.places[each.log_id] = std::move(each.mark.place);
    } else if (each.created >= open.from[each.partition]) {
      open.places[each.log_id].phase = CheckpointPlace::Phase::kDone;
    }
  }
  return open;
}

}  // namespace timecache::server
