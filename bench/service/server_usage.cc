#include "bench/service/server_usage.h"

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace timecache::bench {
namespace {

[[noreturn]] void Ended(pid_t pid) {
  throw std::runtime_error("process " + std::to_string(pid) + " has ended");
}

}  // namespace

double CpuUs(pid_t pid) {
  clockid_t clock;
  timespec time = {};
  if (clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    Ended(pid);
  }
  return static_cast<double>(time.tv_sec) * 1e6 +
         static_cast<double>(time.tv_nsec) * 1e-3;
}

double ResidentKib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  int64_t all_pages = 0;
  int64_t resident_pages = 0;
  if (!(file >> all_pages >> resident_pages)) Ended(pid);
  return static_cast<double>(resident_pages * sysconf(_SC_PAGESIZE)) / 1024;
}

}  // namespace timecache::bench
