// A storm of deaths over real connections: what all who watch it share.

#ifndef TIMECACHED_TESTS_INTEGRATION_WATCH_DELIVERY_STORM_H_
#define TIMECACHED_TESTS_INTEGRATION_WATCH_DELIVERY_STORM_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/support/test_server.h"

namespace timecache::test {

// Entries come in rounds, one bucket width apart, and die round by round. Each
// has a number, which its key and value tell, so that everybody knows when it
// must die.
//
// Thread-safe.
class DeliveryStorm {
 public:
  static constexpr char kNamespace[] = "storm";

  // One bucket of `per_round` entries in each of `rounds`. `retention_bytes` of
  // the namespace's log.
  DeliveryStorm(TestServer* server, int rounds, int per_round,
                int64_t retention_bytes);

  // Puts everything and lets everything die. Goes on only while nobody who
  // reads is more than kMaxLead rounds behind: who loses events does so because
  // it was away.
  void Run();

  int64_t entries() const { return int64_t{rounds_} * per_round_; }
  // When all is over.
  int64_t end_us() const { return end_us_; }
  // The number of the entry with this key and value; -1 if there is none.
  int64_t NumberOf(const std::string& key, const std::string& value) const;
  // When that entry dies.
  int64_t DeathOf(int64_t number) const;
  // How many die at or before `time_us`.
  int64_t DiedBy(int64_t time_us) const;

  // --- For those who watch: `watcher` is a number of its own.

  static constexpr int kMaxLead = 20;
  // It has been told all that died up to this.
  void Delivered(int watcher, int64_t watermark_us) ABSL_LOCKS_EXCLUDED(mu_);
  // It is away while this many rounds pass; 0: for good.
  void Leave(int watcher, int rounds) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  int64_t TimeOf(int round) const { return start_us_ + round * kWidthUs; }

  TestServer* const server_;
  const int rounds_;
  const int per_round_;
  const int64_t start_us_;
  const int64_t end_us_;

  absl::Mutex mu_;
  int64_t now_us_ ABSL_GUARDED_BY(mu_);
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  // How far each of those who read is, by number.
  std::map<int, int64_t> told_us_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_INTEGRATION_WATCH_DELIVERY_STORM_H_
