// What is said of the journal: metrics, and its status in GetServer.

#ifndef TIMECACHED_SERVER_MAIN_JOURNAL_METRICS_H_
#define TIMECACHED_SERVER_MAIN_JOURNAL_METRICS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prometheus/collectable.h"
#include "server/durable/checkpointer.h"
#include "server/durable/map_change_log.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// Of one journal, or of those of several slots together.
struct JournalFigures {
  JournalStatistics journal;
  int64_t open_bytes = 0;
  int64_t open_bytes_max = 0;
  bool disk_full = false;
  // None: a standby has no checkpointer.
  std::optional<Checkpointer::Statistics> checkpoints;
};

// `checkpointer` may be null. O(segments of the journal).
JournalFigures FiguresOf(MapChangeLogs* logs, const Checkpointer* checkpointer);

// Thread-safe.
class JournalMetrics final : public prometheus::Collectable {
 public:
  // `figures` is called in each Collect, on its thread.
  explicit JournalMetrics(std::function<JournalFigures()> figures)
      : figures_(std::move(figures)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::function<JournalFigures()> figures_;
};

// Describes it in GetServer. `place`: its directory, or its topic.
void DescribeJournal(const std::string& place, const JournalFigures& figures,
                     v1::JournalStatus* status);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_JOURNAL_METRICS_H_
