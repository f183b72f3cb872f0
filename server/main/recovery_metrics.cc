#include "server/main/recovery_metrics.h"

#include "server/ops/metric_family.h"

namespace timecache::server {

void RecoveryMetrics::Begin() {
  began_ = Clock::now();
  state_ = State::kRunning;
}

void RecoveryMetrics::Progress(const RecoveryProgress& progress) {
  records_end_ = progress.records_end;
  // Threads may report theirs in another order.
  uint64_t seen = records_;
  while (seen < progress.records &&
         !records_.compare_exchange_weak(seen, progress.records)) {
  }
}

void RecoveryMetrics::Finish(const RecoveryReport& report) {
  records_ = report.records;
  namespaces_ = report.namespaces;
  entries_ = report.entries;
  ended_ = Clock::now();
  state_ = State::kDone;
}

std::vector<prometheus::MetricFamily> RecoveryMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  const State state = state_;
  if (state == State::kNone) return families;
  const bool done = state == State::kDone;
  const auto gauge = [&families](const MetricInfo& info, double value) {
    AddSample({}, value, &families.emplace_back(NewFamily(info)));
  };
  gauge({"timecache_recovery_running",
         "1 while the journal is read at the start; nothing is served then."},
        done ? 0 : 1);
  gauge({"timecache_recovery_seconds",
         "How long the recovery took, or has taken so far."},
        std::chrono::duration<double>((done ? ended_ : Clock::now()) - began_)
            .count());
  gauge({"timecache_recovery_records", "Records that the recovery has read."},
        static_cast<double>(records_));
  gauge({"timecache_recovery_records_expected",
         "Records that the recovery has to read in all."},
        static_cast<double>(records_end_));
  gauge({"timecache_recovery_namespaces",
         "Restored durable namespaces; 0 until the recovery is done."},
        done ? static_cast<double>(namespaces_) : 0);
  gauge({"timecache_recovery_entries",
         "Restored entries; 0 until the recovery is done."},
        done ? static_cast<double>(entries_) : 0);
  return families;
}

}  // namespace timecache::server
