// The journals of the slots that a node owns, as one.

#ifndef TIMECACHED_SERVER_MAIN_SLOT_JOURNALS_H_
#define TIMECACHED_SERVER_MAIN_SLOT_JOURNALS_H_

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/durable/checkpointer.h"
#include "server/durable/map_change_log.h"
#include "server/main/journal_metrics.h"

namespace timecache::server {

// What is so now is of those that are there; counts are also of those that were, so that
// they never go back when a slot moves. Thread-safe.
class SlotJournals {
 public:
  // Neither is owned; both must be there until Remove.
  void Add(MapChangeLogs* logs, const Checkpointer* checkpointer)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(MapChangeLogs* logs) ABSL_LOCKS_EXCLUDED(mu_);

  // Sums, and whether any is full, or writes a checkpoint. O(slots).
  JournalFigures Sum() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  std::map<MapChangeLogs*, const Checkpointer*> owned_ ABSL_GUARDED_BY(mu_);
  // Counts alone.
  JournalFigures former_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_SLOT_JOURNALS_H_
