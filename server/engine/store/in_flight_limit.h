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

  void Add(int events = 1) { held_.fetch_add(events); }
  void Remove(int events = 1) {
    held_.fetch_sub(events);
    // Both sides write before they read: either this sees that there is a wait,
    // or AwaitRoom sees what this has taken.
    if (waits_.load() && waits_.exchange(false)) on_room_();
  }

  // How many more events the member may hold, and how many it holds.
  int room() const { return std::max(max_.load() - held_.load(), 0); }
  int held() const { return held_.load(); }
  // From now on it may hold so many more than it does: of a member whose limit is kept
  // elsewhere. By the thread that gives.
  void SetRoom(int events) { max_.store(held_.load() + events); }
  // Whether there is none: then `on_room` follows.
  bool AwaitRoom() {
    waits_.store(true);
    return room() == 0;
  }

 private:
  std::atomic<int> max_;
  const std::function<void()> on_room_;
  std::atomic<int> held_{0};
  std::atomic<bool> waits_{false};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_IN_FLIGHT_LIMIT_H_
