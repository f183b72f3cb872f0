// The clock that decides when an entry dies: the server's. It may be a virtual
// one, or wrong by hours: an entry's times mean something only beside it.

#ifndef TIMECACHED_CLIENT_CLI_SERVER_CLOCK_H_
#define TIMECACHED_CLIENT_CLI_SERVER_CLOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/client.h"

namespace timecache::cli {

// Reads it by GetServer, and not at every use. Not thread-safe.
class ServerClock {
 public:
  // `client` must outlive it.
  explicit ServerClock(const Client& client) : client_(client) {}

  // A time that the clock has reached, never one that is still to come: what it
  // said when it was last asked, which is done anew after `age_max`.
  absl::StatusOr<absl::Time> Reached(absl::Duration age_max);

  // When it was last asked, on this machine's clock.
  absl::Time asked_at() const { return asked_at_; }

 private:
  const Client& client_;
  absl::Time reached_ = absl::InfinitePast();
  absl::Time asked_at_ = absl::InfinitePast();
};

// Until the deadline. Zero behind it: until its bucket dies the entry is there.
absl::Duration TimeLeft(const Entry& entry, absl::Time server_time);

// "29.5s", to the millisecond.
std::string LeftText(absl::Duration left);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_SERVER_CLOCK_H_
