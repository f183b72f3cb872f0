// The memory that all consumer groups of one map keep.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_BACKLOG_ACCOUNT_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_BACKLOG_ACCOUNT_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "server/engine/store/namespace_options.h"

namespace timecache::server {

// Counts batches of unsettled events, each once however many groups keep it,
// and the groups' state of each event. Thread-safe, without a lock.
class BacklogAccount {
 public:
  BacklogAccount() = default;
  BacklogAccount(const BacklogAccount&) = delete;
  BacklogAccount& operator=(const BacklogAccount&) = delete;

  // The map's budget for it. The followers of the log drop events beyond it.
  void SetLimit(int64_t bytes) {
    limit_.store(bytes, std::memory_order_relaxed);
  }
  int64_t limit_bytes() const { return limit_.load(std::memory_order_relaxed); }
  // Of the namespace, of which the map is one: a group's limit is divided, too.
  void SetPartitions(int64_t partitions) {
    partitions_.store(partitions, std::memory_order_relaxed);
  }
  // What this partition has of a group's max_backlog_bytes.
  int64_t ShareOf(int64_t max_backlog_bytes) const {
    const int64_t parts = partitions_.load(std::memory_order_relaxed);
    if (parts == 1) return max_backlog_bytes;
    return std::max((max_backlog_bytes + parts - 1) / parts, kMinBacklogBytes);
  }

  // Less, if negative.
  void Add(int64_t bytes) {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void AddInFlight(int64_t bytes) {
    in_flight_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void AddGroups(int64_t groups) {
    groups_.fetch_add(groups, std::memory_order_relaxed);
  }
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  int64_t in_flight_bytes() const {
    return in_flight_.load(std::memory_order_relaxed);
  }
  int64_t BytesBeyondLimit() const {
    return std::max<int64_t>(bytes() - limit_bytes(), 0);
  }

  // Whether a group whose members hold `own` bytes may deliver more. Events
  // that members hold are not dropped for the limit, so all of them together
  // hold at most half of it. Beyond that each group has its share of that half:
  // a group whose members settle nothing cannot keep the others from theirs.
  bool HasRoomInFlight(int64_t own) const {
    const int64_t most = limit_bytes() / kInFlightShare;
    const int64_t groups = groups_.load(std::memory_order_relaxed);
    return in_flight_bytes() < most ||
           own < most / std::max<int64_t>(groups, 1);
  }

  // The part of a limit that events held by members may take.
  static constexpr int64_t kInFlightShare = 2;

 private:
  std::atomic<int64_t> limit_{INT64_MAX};
  std::atomic<int64_t> partitions_{1};
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> in_flight_{0};
  std::atomic<int64_t> groups_{0};
};

// A part of an account, as large as it was set last. Not thread-safe.
class BacklogCharge {
 public:
  explicit BacklogCharge(BacklogAccount* account) : account_(account) {}
  BacklogCharge(const BacklogCharge&) = delete;
  BacklogCharge& operator=(const BacklogCharge&) = delete;
  ~BacklogCharge() { Set(0); }

  void Set(int64_t bytes) {
    if (bytes != bytes_) account_->Add(bytes - std::exchange(bytes_, bytes));
  }
  int64_t bytes() const { return bytes_; }

 private:
  BacklogAccount* const account_;
  int64_t bytes_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_BACKLOG_ACCOUNT_H_
