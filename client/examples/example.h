// Shared by the smaller examples.

#ifndef TIMECACHED_CLIENT_EXAMPLES_EXAMPLE_H_
#define TIMECACHED_CLIENT_EXAMPLES_EXAMPLE_H_

#include <cstdio>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/virtual_clock.h"
#include "timecache/watcher.h"

namespace timecache::examples {

// The server's time, which may be a virtual one.
class Time {
 public:
  explicit Time(const Client& client) : clock_(client) {}

  absl::StatusOr<absl::Time> Now() const {
    const auto now = clock_.Now();
    if (absl::IsUnimplemented(now.status())) return absl::Now();
    return now;
  }

  // Moves a virtual clock; waits for a real one.
  absl::Status Pass(absl::Duration time) const {
    const absl::Status passed = clock_.Advance(time).status();
    if (!absl::IsUnimplemented(passed)) return passed;
    absl::SleepFor(time);
    return absl::OkStatus();
  }

 private:
  VirtualClock clock_;
};

// An established watch: it delivers every later death.
inline absl::Status Begin(Watcher& watcher) { return watcher.Next().status(); }

// The exit code of an example that ends with this status.
inline int Exit(const char* name, const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", name, status.ToString().c_str());
  return 1;
}

}  // namespace timecache::examples

#endif  // TIMECACHED_CLIENT_EXAMPLES_EXAMPLE_H_
