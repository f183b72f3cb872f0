#include "client/examples/expected_sessions.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace timecache::sessionize {

void ExpectedSessions::Add(const LogLine& line) {
  clock_ = std::max(clock_, line.time);
  EndedSession& open = open_[line.visitor];
  if (open.session.requests > 0 && open.ended_at <= clock_) {
    ended_.push_back(std::exchange(open, {}));
  }
  open.visitor = line.visitor;
  AddRequest(line, open.session);
  open.ended_at =
      absl::UnixEpoch() + absl::Ceil(clock_ + ttl_ - absl::UnixEpoch(), width_);
}

std::vector<EndedSession> ExpectedSessions::Finish() {
  for (auto& [visitor, open] : open_) ended_.push_back(std::move(open));
  open_.clear();
  std::sort(ended_.begin(), ended_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.ended_at, a.visitor) < std::tie(b.ended_at, b.visitor);
  });
  return std::exchange(ended_, {});
}

}  // namespace timecache::sessionize
