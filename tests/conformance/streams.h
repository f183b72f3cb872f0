// The watches and the workers of a scenario, which go on beside its steps.

#ifndef TIMECACHED_TESTS_CONFORMANCE_STREAMS_H_
#define TIMECACHED_TESTS_CONFORMANCE_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tests/conformance/json_values.h"
#include "tests/conformance/matcher.h"
#include "timecache/client.h"
#include "timecache/group_worker.h"
#include "timecache/watcher.h"

namespace timecache::conformance {

// How long a scenario waits for what has to come.
inline constexpr absl::Duration kPatience = absl::Minutes(1);

// Not thread-safe.
class Watch {
 public:
  Watch(const Client& client, WatchOptions options);

  bool is_member() const { return is_member_; }

  // Each reads until it has what it says, and returns the client's error if
  // the stream ends before: where each namespace begins; all until a time; so
  // many events.
  absl::Status ReadStart();
  absl::Status ReadTo(absl::Time now);
  absl::Status ReadEvents(size_t count);
  // Of a group: so many, and until all that died at or before that is delivered.
  absl::Status ReadDelivered(size_t count, absl::Time until);

  // What has come since the last time, as a step may expect and save it.
  Json Take();
  std::vector<ExpiredEvent> TakeEvents() { return std::exchange(events_, {}); }

 private:
  size_t Place(const std::string& ns) const;
  template <typename Enough>
  absl::Status Read(const Enough& is_enough);

  const std::vector<std::string> namespaces_;
  const bool is_member_;
  const bool is_expiring_;
  const bool is_of_changes_;
  Watcher watcher_;
  std::map<std::string, absl::Time> watermarks_;
  std::map<std::string, absl::Time> delivered_;
  std::map<std::string, std::string> tokens_;
  std::vector<ExpiredEvent> events_;
  std::vector<ChangeEvent> changes_;
  std::set<std::tuple<std::string, std::string, uint64_t, absl::Time>> told_;
  uint64_t lost_ = 0;
};

// Handles events as its script says: by key, one action for each delivery, the
// last one for all that follow; ack for other keys. Thread-safe.
class Worker {
 public:
  // `matcher` must outlive the worker.
  Worker(const Client& client, GroupWorkerOptions options, Json script,
         const Matcher& matcher);

  absl::Status Stop() { return worker_.Stop(); }

  // Waits for so many events; what has come since the last time.
  Json Take(size_t count) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Settle Handle(const ExpiredEvent& event) ABSL_LOCKS_EXCLUDED(mu_);

  const Matcher& matcher_;
  absl::Mutex mu_;
  Json script_ ABSL_GUARDED_BY(mu_);
  std::vector<ExpiredEvent> handled_ ABSL_GUARDED_BY(mu_);
  GroupWorker worker_;
};

}  // namespace timecache::conformance

#endif  // TIMECACHED_TESTS_CONFORMANCE_STREAMS_H_
