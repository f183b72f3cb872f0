// A control log in memory, for several members of one process.

#ifndef TIMECACHED_TESTS_SUPPORT_CLUSTER_MEMORY_CONTROL_LOG_H_
#define TIMECACHED_TESTS_SUPPORT_CLUSTER_MEMORY_CONTROL_LOG_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_cond_var.h"
#include "server/cluster/boot_clock.h"
#include "server/cluster/control_log.h"

namespace timecache::server {

// What all nodes read. Thread-safe.
class MemoryControlTopic {
 public:
  // The brokers' clock. Not owned.
  explicit MemoryControlTopic(const BootClock* clock) : clock_(clock) {}

  void Append(const ControlRecord& record) {
    absl::MutexLock lock(&mu_);
    if (away_) return;
    ControlEntry& entry = entries_.emplace_back();
    entry.offset = static_cast<int64_t>(entries_.size()) - 1;
    entry.append_time_ms = clock_->WallUs() / 1'000;
    entry.record = record;
    changed_.SignalAll();
  }
  // Records are lost while the brokers are away.
  void SetAway(bool away) {
    absl::MutexLock lock(&mu_);
    away_ = away;
  }
  void Lose(const absl::Status& why) {
    absl::MutexLock lock(&mu_);
    lost_ = why;
    changed_.SignalAll();
  }
  std::vector<ControlEntry> entries() const {
    absl::MutexLock lock(&mu_);
    return entries_;
  }

 private:
  friend class MemoryControlLog;

  const BootClock* const clock_;
  mutable absl::Mutex mu_;
  SteadyCondVar changed_;
  std::vector<ControlEntry> entries_ ABSL_GUARDED_BY(mu_);
  bool away_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
};

// A node's.
class MemoryControlLog final : public ControlLog {
 public:
  // Not owned.
  explicit MemoryControlLog(MemoryControlTopic* topic) : topic_(topic) {}

  bool Append(const ControlRecord& record) override {
    topic_->Append(record);
    return true;
  }

  // The clock stands still while it waits: it looks again soon.
  absl::StatusOr<std::vector<ControlEntry>> Poll(
      absl::Duration timeout) override {
    absl::MutexLock lock(&topic_->mu_);
    if (read_ == topic_->entries_.size() && topic_->lost_.ok() && !woken_) {
      topic_->changed_.WaitFor(&topic_->mu_,
                               timeout > absl::ZeroDuration()
                                   ? std::chrono::milliseconds(2)
                                   : std::chrono::milliseconds(0));
    }
    woken_ = false;
    if (!topic_->lost_.ok()) return topic_->lost_;
    if (deaf_) return std::vector<ControlEntry>();
    const std::vector<ControlEntry> read(
        topic_->entries_.begin() + static_cast<int64_t>(read_),
        topic_->entries_.end());
    read_ = topic_->entries_.size();
    return read;
  }

  // Reads nothing from now on, or goes on.
  void SetDeaf(bool deaf) {
    absl::MutexLock lock(&topic_->mu_);
    deaf_ = deaf;
  }

  void Wake() override {
    absl::MutexLock lock(&topic_->mu_);
    woken_ = true;
    topic_->changed_.SignalAll();
  }

 private:
  MemoryControlTopic* const topic_;
  // With the topic's lock.
  size_t read_ = 0;
  bool woken_ = false;
  bool deaf_ = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_CLUSTER_MEMORY_CONTROL_LOG_H_
