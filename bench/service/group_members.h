// Members of one consumer group that settle all that they are given.

#ifndef TIMECACHED_BENCH_SERVICE_GROUP_MEMBERS_H_
#define TIMECACHED_BENCH_SERVICE_GROUP_MEMBERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "bench/watch/watch_connection.h"

namespace timecache::bench {

struct GroupPlan {
  std::string map;
  std::string group;
  int members = 1;
  int max_in_flight = 1;
  // The number of events. All of them are delivered once and settled.
  uint64_t events = 0;
  // All calls end by then, and the program with them.
  absl::Time give_up;
};

class Member;

// Members over at most kMaxConnections connections, with a thread for each
// connection. An event that is lost, delivered twice or not settled at its
// first attempt ends the program, as does a stream that ends before its time.
// Used by one thread.
class Members {
 public:
  static constexpr int kMaxConnections = 8;

  // Opens the streams; they stand once AwaitStanding() returns.
  Members(const std::string& address, const GroupPlan& plan);
  ~Members();
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  // Until each has had its first message.
  void AwaitStanding();
  // Until all events are settled. Returns when the last answer came.
  absl::Time AwaitSettled();
  void Stop();

  // After Stop().
  struct Sum {
    uint64_t events = 0;
    uint64_t messages = 0;
    // Calls of SettleExpired.
    uint64_t settles = 0;
  };
  // Of each member.
  const std::vector<Sum>& sums() const { return sums_; }

 private:
  friend class Member;

  // From the connections' threads.
  void Standing();
  void Settled(uint64_t events, absl::Time now);
  bool stopping();

  const GroupPlan plan_;
  std::vector<std::unique_ptr<Connection>> connections_;
  // Ended before they are destroyed: by Stop().
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Sum> sums_;

  absl::Mutex mutex_;
  int standing_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t settled_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_SERVICE_GROUP_MEMBERS_H_
