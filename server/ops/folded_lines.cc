#include "server/ops/folded_lines.h"

#include <tuple>
#include <utility>

namespace timecache::server {

bool FoldedLines::Kind::operator<(const Kind& other) const {
  return std::tie(event, reason, name, group) <
         std::tie(other.event, other.reason, other.name, other.group);
}

bool FoldedLines::Add(Kind kind, uint64_t count, int64_t now_us) {
  absl::MutexLock lock(&mu_);
  auto it = kinds_.find(kind);
  if (it == kinds_.end() && kinds_.size() >= kMaxKinds) {
    kind.name = kOther;
    if (!kind.group.empty()) kind.group = kOther;
    it = kinds_.find(kind);
  }
  if (it != kinds_.end()) {
    it->second.waiting += count;
    return false;
  }
  kinds_.emplace(std::move(kind), State{now_us, 0});
  return true;
}

std::vector<FoldedLines::Line> FoldedLines::TakeDue(int64_t now_us) {
  std::vector<Line> lines;
  absl::MutexLock lock(&mu_);
  for (auto it = kinds_.begin(); it != kinds_.end();) {
    auto& [kind, state] = *it;
    if (now_us != kNeverUs && now_us - state.line_us < kIntervalUs) {
      ++it;
    } else if (state.waiting > 0) {
      lines.push_back({kind, std::exchange(state.waiting, 0)});
      state.line_us = now_us;
      ++it;
    } else {
      it = kinds_.erase(it);
    }
  }
  return lines;
}

}  // namespace timecache::server
