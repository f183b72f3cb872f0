// The clocks of a machine that a cluster's leases go by.

#ifndef TIMECACHED_SERVER_CLUSTER_BOOT_CLOCK_H_
#define TIMECACHED_SERVER_CLUSTER_BOOT_CLOCK_H_

#include <cstdint>

namespace timecache::server {

// Thread-safe. A read costs some 25 ns, without a system call.
class BootClock {
 public:
  virtual ~BootClock() = default;
  // Since the start of the machine; counts the time during which it is suspended,
  // and is not set. Nanoseconds.
  virtual int64_t NowNs() const = 0;
  // Since the Unix epoch, in microseconds; may be set at any time.
  virtual int64_t WallUs() const = 0;

  // This machine's.
  static const BootClock& System();
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_BOOT_CLOCK_H_
