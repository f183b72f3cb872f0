// A machine's clocks that a test moves.

#ifndef TIMECACHED_TESTS_SUPPORT_CLUSTER_FAKE_BOOT_CLOCK_H_
#define TIMECACHED_TESTS_SUPPORT_CLUSTER_FAKE_BOOT_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "server/cluster/boot_clock.h"

namespace timecache::server {

// Thread-safe.
class FakeBootClock final : public BootClock {
 public:
  // 2027-01-15T08:00:00Z.
  static constexpr int64_t kStartUs = 1'800'000'000'000'000;

  int64_t NowNs() const override { return now_ns_; }
  int64_t WallUs() const override { return kStartUs + now_ns_ / 1'000; }

  void Pass(absl::Duration time) { now_ns_ += absl::ToInt64Nanoseconds(time); }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000};
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_CLUSTER_FAKE_BOOT_CLOCK_H_
