// Named places of the journal's work at which a test may end the process.

#ifndef TIMECACHED_SERVER_BASE_FAILPOINT_H_
#define TIMECACHED_SERVER_BASE_FAILPOINT_H_

#include <atomic>

#include "absl/strings/string_view.h"

namespace timecache::server {

// Of a journal: before and after each step of a commit, a roll to the next
// segment, a trim, a backup, its restore and a close.
inline constexpr absl::string_view kFailpoints[] = {
    "commit.begin",   "commit.written", "commit.synced",     "commit.published",
    "roll.begin",     "roll.created",   "roll.end",          "trim.begin",
    "trim.written",   "trim.removed",   "trim.end",          "backup.begin",
    "backup.segment", "restore.copied", "restore.described", "restore.end",
    "close.begin",    "close.written",  "open.cut",          "open.end",
};

// Of a Checkpointer, whose lock is held: before and after each step of a round,
// in their order.
inline constexpr absl::string_view kCheckpointFailpoints[] = {
    "checkpoint.begin",            // a round is due
    "checkpoint.walk_begun",       // a map's walk has begun, and is recorded
    "checkpoint.step",             // earlier changes are stored
    "checkpoint.step_recorded",    // and more are written
    "checkpoint.walk_ended",       // the end of a map's walk is recorded
    "checkpoint.events_recorded",  // some of its retained events are written
    "checkpoint.groups_recorded",  // some of its groups are written
    "checkpoint.map_done",         // all of it is written and stored
    "checkpoint.trim",             // and of all maps
    "checkpoint.trim_one",  // of one partition is dropped what was before
    "checkpoint.end",       // and of all
};

namespace internal {
inline std::atomic<void (*)(absl::string_view)> failpoint_hook = nullptr;
}  // namespace internal

// Called with the name at each failpoint, on the thread that does the work,
// without locks of the journal; null for nothing. For tests alone.
inline void SetFailpointHook(void (*hook)(absl::string_view name)) {
  internal::failpoint_hook.store(hook);
}

// Without a hook, as always but in tests, this is a load and a predicted
// branch, a few times a commit.
inline void Failpoint(absl::string_view name) {
  if (auto* const hook = internal::failpoint_hook.load(); hook) [[unlikely]] {
    hook(name);
  }
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_FAILPOINT_H_
