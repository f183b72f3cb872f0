#include "client/cli/server_clock.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {

absl::StatusOr<absl::Time> ServerClock::Reached(absl::Duration age_max) {
  const absl::Time now = absl::Now();
  // A clock that was set back has no age.
  if (now - asked_at_ <= age_max && now >= asked_at_) return reached_;
  const auto server = client_.GetServer();
  if (!server.ok()) return server.status();
  asked_at_ = now;
  reached_ = server->now;
  return reached_;
}

absl::Duration TimeLeft(const Entry& entry, absl::Time server_time) {
  return std::max(entry.deadline - server_time, absl::ZeroDuration());
}

std::string LeftText(absl::Duration left) {
  return DurationText(absl::Trunc(left, absl::Milliseconds(1)));
}

}  // namespace timecache::cli
