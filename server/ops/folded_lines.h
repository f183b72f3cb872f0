// Folds repeated events into one log line.

#ifndef TIMECACHED_SERVER_OPS_FOLDED_LINES_H_
#define TIMECACHED_SERVER_OPS_FOLDED_LINES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"

namespace timecache::server {

// Counts occurrences by kind, so that the log has the first one at once and
// then, as long as there are more, one line for each kIntervalUs that says how
// many. Each occurrence is counted in exactly one line.
//
// Thread-safe. Costs a lock and a look-up an occurrence; memory for kMaxKinds
// at most.
class FoldedLines {
 public:
  static constexpr int64_t kIntervalUs = 10 * kMicrosPerSecond;
  // With more at a time, further namespaces share the kinds of kOther.
  static constexpr size_t kMaxKinds = 1024;
  static constexpr char kOther[] = "_other";

  struct Kind {
    std::string event;
    std::string reason;
    std::string name;   // The namespace.
    std::string group;  // Empty for none.

    bool operator<(const Kind& other) const;
  };
  struct Line {
    Kind kind;
    uint64_t count = 0;
  };

  // Returns whether the caller is to write a line now, for these `count`. Else
  // they wait for TakeDue.
  bool Add(Kind kind, uint64_t count, int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);

  // The waiting counts of the kinds whose last line is kIntervalUs old: the
  // caller writes a line for each. Call it regularly; kNeverUs takes all.
  std::vector<Line> TakeDue(int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct State {
    int64_t line_us = 0;
    uint64_t waiting = 0;
  };

  absl::Mutex mu_;
  // Kinds with a line in the last kIntervalUs.
  absl::btree_map<Kind, State> kinds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_FOLDED_LINES_H_
