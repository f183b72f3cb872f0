#include "server/cluster/boot_clock.h"

#include <ctime>

namespace timecache::server {
namespace {

int64_t ReadNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class ThisBootClock final : public BootClock {
 public:
  int64_t NowNs() const override { return ReadNs(CLOCK_BOOTTIME); }
  int64_t WallUs() const override { return ReadNs(CLOCK_REALTIME) / 1'000; }
};

}  // namespace

const BootClock& BootClock::System() {
  static const ThisBootClock clock;
  return clock;
}

}  // namespace timecache::server
