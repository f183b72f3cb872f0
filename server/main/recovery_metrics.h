// Metrics of the recovery at start, for Prometheus.

#ifndef TIMECACHED_SERVER_MAIN_RECOVERY_METRICS_H_
#define TIMECACHED_SERVER_MAIN_RECOVERY_METRICS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "prometheus/collectable.h"
#include "server/durable/recovery.h"

namespace timecache::server {

// No metrics before Begin. Begin and Finish are called once each, one after the
// other; otherwise thread-safe, a few atomics a call.
class RecoveryMetrics final : public prometheus::Collectable {
 public:
  void Begin();
  void Progress(const RecoveryProgress& progress);
  void Finish(const RecoveryReport& report);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  enum class State { kNone, kRunning, kDone };
  using Clock = std::chrono::steady_clock;

  // Before the state says so, the times and what Finish sets are not read.
  std::atomic<State> state_{State::kNone};
  Clock::time_point began_;
  Clock::time_point ended_;
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> records_end_{0};
  uint64_t namespaces_ = 0;
  uint64_t entries_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_RECOVERY_METRICS_H_
