// What is said of the journal: metrics, and its status in GetServer.

#ifndef TIMECACHED_SERVER_MAIN_JOURNAL_METRICS_H_
#define TIMECACHED_SERVER_MAIN_JOURNAL_METRICS_H_

#include <string>
#include <vector>

#include "prometheus/collectable.h"
#include "server/durable/checkpointer.h"
#include "server/durable/map_change_log.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// Thread-safe.
class JournalMetrics final : public prometheus::Collectable {
 public:
  // Neither is owned; both must outlive this.
  JournalMetrics(MapChangeLogs* logs, const Checkpointer* checkpointer)
      : logs_(*logs), checkpointer_(*checkpointer) {}

  // O(segments of the journal).
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  MapChangeLogs& logs_;
  const Checkpointer& checkpointer_;
};

// Describes it in GetServer. `place`: its directory, or its topic. A standby has no
// checkpointer: null. Thread-safe, O(segments of the journal).
void DescribeJournal(const std::string& place, MapChangeLogs* logs,
                     const Checkpointer* checkpointer,
                     v1::JournalStatus* status);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_JOURNAL_METRICS_H_
