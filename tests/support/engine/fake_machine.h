// A machine whose time passes as a test says.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_FAKE_MACHINE_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_FAKE_MACHINE_H_

#include <cstdint>

#include "server/base/clock.h"

namespace timecache::server {

// For one thread.
class FakeMachine final : public MachineTime {
 public:
  // 2027-01-15T08:00:00Z.
  static constexpr int64_t kStartUs = 1'800'000'000 * kMicrosPerSecond;

  explicit FakeMachine(int64_t wall_us = kStartUs) : wall_us_(wall_us) {}

  int64_t SteadyNs() const override { return steady_us_ * 1'000; }
  int64_t WallUs() const override { return wall_us_; }

  void Pass(int64_t us) {
    steady_us_ += us;
    wall_us_ += us;
  }
  // As a time server's answer, or a person, does.
  void SetWall(int64_t by_us) { wall_us_ += by_us; }

 private:
  int64_t steady_us_ = 77 * kMicrosPerSecond;
  int64_t wall_us_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_FAKE_MACHINE_H_
