// Watchers of one namespace, as many as wanted, that count what they get.

#ifndef TIMECACHED_BENCH_WATCH_WATCH_CLIENTS_H_
#define TIMECACHED_BENCH_WATCH_WATCH_CLIENTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "bench/watch/watch_connection.h"
#include "grpcpp/alarm.h"
#include "grpcpp/grpcpp.h"

namespace timecache::bench {

// When a message with an event in it arrived.
struct Arrival {
  absl::Time at;
  // Of its first event.
  absl::Time death;
  uint64_t events = 0;
  // To which of the watchers.
  int watcher = 0;
};

struct WatchPlan {
  std::string map;
  int watchers = 1;
  // All calls end by then, and the program with them.
  absl::Time give_up;
  // The first watcher has a connection of its own, can be stalled, and may
  // lose events.
  bool first_can_stall = false;
};

class EventWatcher;

// Any number of WatchExpired streams over about kMaxConnections connections,
// with a thread for each connection. Every watcher must get every event once,
// with its value: anything else, and a stream that ends before its time or does
// not end by the plan's give_up, ends the program.
// Used by one thread. An idle watcher costs no time.
class Watchers {
 public:
  static constexpr int kMaxConnections = 16;

  // Opens the streams; they stand once AwaitStanding() returns.
  Watchers(const std::string& address, const WatchPlan& plan);
  ~Watchers();
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  // Until each has had its first message.
  void AwaitStanding();

  // Each is to get so many events in all, lost ones counted, and no more.
  // Called before the last of them dies.
  void Expect(uint64_t events);
  // Until each has had them.
  void AwaitEvents();

  // From now on the first watcher reads nothing, and then reads again.
  void StallFirst();
  void ResumeFirst();

  // Ends the streams; returns all that came with an event in it, to all of the
  // watchers, ordered by time.
  std::vector<Arrival> Stop();

  // Of all events of all watchers, on the wire. After Stop().
  uint64_t event_bytes() const { return event_bytes_; }
  // Events that this watcher got, and that it was told that it lost. After
  // Stop().
  struct Sum {
    uint64_t events = 0;
    uint64_t lost = 0;
  };
  const std::vector<Sum>& sums() const { return sums_; }

 private:
  friend class EventWatcher;

  // From the connections' threads.
  void Standing();
  void Complete();
  bool stopping();

  const WatchPlan plan_;
  std::vector<std::unique_ptr<Connection>> connections_;
  // Ended before they are destroyed: by Stop().
  std::vector<std::unique_ptr<EventWatcher>> watchers_;
  std::vector<std::unique_ptr<grpc::Alarm>> alarms_;
  std::vector<Sum> sums_;
  uint64_t event_bytes_ = 0;
  // Events that each is to have had, in all.
  std::atomic<uint64_t> target_{UINT64_MAX};
  std::atomic<bool> first_stalled_{false};

  absl::Mutex mutex_;
  int standing_ ABSL_GUARDED_BY(mutex_) = 0;
  int complete_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_WATCH_WATCH_CLIENTS_H_
