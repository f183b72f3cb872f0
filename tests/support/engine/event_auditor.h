// Holds what a watcher is told against what should have died.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_EVENT_AUDITOR_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_EVENT_AUDITOR_H_

#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/engine/expiry/expiry_log.h"
#include "tests/support/engine/map_harness.h"
#include "tests/support/engine/reference_model.h"

namespace timecache::server {

// Fails the test at the first event that is wrong, comes twice, out of order or
// after a watermark that said it had come; and at a watermark that is ahead of
// the events.
//
// Not thread-safe.
class EventAuditor {
 public:
  // `may_lose`: the watcher is too slow on purpose. Then a missing event is no
  // failure, as long as it is counted.
  explicit EventAuditor(bool may_lose) : may_lose_(may_lose) {}

  // What the model says has died.
  void Expect(std::vector<ReferenceModel::Death> deaths);

  // One chunk of the watcher's, in the order of reading.
  void Check(const ExpiryLog::Chunk& chunk);

  // After everything has been swept and read.
  void CheckComplete() const;

  uint64_t died() const { return died_; }
  uint64_t delivered() const { return delivered_; }
  uint64_t lost() const { return lost_; }
  int64_t watermark_us() const { return watermark_us_; }
  // Death time and version of each event that was told since this was last
  // called.
  std::vector<std::pair<int64_t, uint64_t>> TakeTold() {
    return std::exchange(told_, {});
  }

 private:
  void CheckEvent(const ExpiredEvent& event, const EventBatch& batch);

  const bool may_lose_;
  std::unordered_map<uint64_t, ReferenceModel::Death> expected_;
  // Latest possible death and version of each expected event.
  std::set<std::pair<int64_t, uint64_t>> by_death_;
  std::vector<std::pair<int64_t, uint64_t>> told_;
  uint64_t died_ = 0;
  uint64_t delivered_ = 0;
  uint64_t lost_ = 0;
  int64_t latest_death_us_ = INT64_MIN;
  int64_t watermark_us_ = INT64_MIN;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_EVENT_AUDITOR_H_
