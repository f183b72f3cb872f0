// How many events a member of a consumer group may hold in all partitions of a
// namespace together.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_IN_FLIGHT_LIMIT_H_
#define TIMECACHED_SERVER_ENGINE_STORE_IN_FLIGHT_LIMIT_H_

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

namespace timecache::server {

// The groups of the partitions count what they give to the member and take from
// it. Only one thread at a time gives, so the limit is kept exactly. Thread-safe,
// without a lock.
class InFlightLimit {
 public:
  // `on_room` is called when there is room again after AwaitRoom found none: at
  // most once for each time, from any thread and under a group's lock.
  InFlightLimit(int max, std::function<void()> on_room)
      : max_(max), on_room_(std::move(on_room)) {}
  InFlightLimit(const InFlightLimit&) = delete;
  InFlightLimit& operator=(const InFlightLimit&) = delete;

  void Add() { held_.fetch_add(1); }
  void Remove() {
    held_.fetch_sub(1);
    // Both sides write before they read: either this sees that there is a wait,
    // or AwaitRoom sees what this has taken.
    if (waits_.load() && waits_.exchange(false)) on_room_();
  }

  // How many more events the member may hold.
  int room() const { return std::max(max_ - held_.load(), 0); }
  // Whether there is none: then `on_room` follows.
  bool AwaitRoom() {
    waits_.store(true);
    return room() == 0;
  }

 private:
  const int max_;
  const std::function<void()> on_room_;
  std::atomic<int> held_{0};
  std::atomic<bool> waits_{false};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_IN_FLIGHT_LIMIT_H_
