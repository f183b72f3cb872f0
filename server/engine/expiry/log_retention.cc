// What an expiry log drops: by age, by bytes, and where memory runs short.

#include <algorithm>
#include <utility>

#include "server/base/check.h"
#include "server/base/memory_budget.h"
#include "server/engine/expiry/expiry_log.h"

namespace timecache::server {
namespace {

// Most batches that are checked for one that only the log refers to.
constexpr size_t kMaxShared = 64;

bool IsOfFollowers(EventHolder::Kind kind) {
  return kind == EventHolder::Kind::kBacklog ||
         kind == EventHolder::Kind::kHeld;
}

}  // namespace

void ExpiryLog::SetRetention(int64_t retention_us, int64_t retention_bytes,
                             int64_t now_us) {
  Dropped dropped;
  absl::MutexLock lock(&mu_);
  retention_us_ = retention_us;
  retention_bytes_ = retention_bytes;
  TrimLocked(now_us, &dropped);
}

void ExpiryLog::Trim(int64_t now_us) {
  Dropped dropped;
  absl::MutexLock lock(&mu_);
  TrimLocked(now_us, &dropped);
}

uint64_t ExpiryLog::retained_event() const {
  absl::MutexLock lock(&mu_);
  return RetainedEventLocked();
}

// All events from there to the oldest that is retained, if all are known.
std::vector<LostEvents> ExpiryLog::LostFrom(uint64_t seq) const {
  std::vector<LostEvents> lost;
  if (dropped_end_ != RetainedEventLocked()) return lost;
  uint64_t first = dropped_end_;
  for (auto it = dropped_.rbegin(); it != dropped_.rend() && first > seq;
       ++it) {
    lost.push_back({std::min(it->events, first - seq), it->prefix});
    first -= lost.back().events;
  }
  if (first > seq) lost.clear();
  return lost;
}

void ExpiryLog::Remember(const Retained& dropped) {
  // Otherwise there are events in between that were never gathered.
  if (dropped_end_ != dropped.first_seq) dropped_.clear();
  dropped_end_ = dropped.end_seq();
  LostEvents lost = {
      dropped_end_ - dropped.first_seq,
      std::string(dropped.batch->common_prefix().substr(0, kMaxDroppedPrefix))};
  if (!dropped_.empty() && dropped_.back().prefix == lost.prefix) {
    dropped_.back().events += lost.events;
    return;
  }
  dropped_.push_back(std::move(lost));
  if (dropped_.size() <= kMaxDroppedRanges) return;
  // The two neighbours that have most in common become one.
  size_t best = 0;
  size_t most = 0;
  for (size_t i = 0; i + 1 < dropped_.size(); ++i) {
    const size_t common =
        CommonBytes(dropped_[i].prefix, dropped_[i + 1].prefix);
    if (common > most) {
      best = i;
      most = common;
    }
  }
  dropped_[best].events += dropped_[best + 1].events;
  dropped_[best].prefix.resize(most);
  dropped_.erase(dropped_.begin() + static_cast<ptrdiff_t>(best) + 1);
}

void ExpiryLog::DropOldest(Dropped* dropped) {
  Remember(retained_.front());
  bytes_ -= retained_.front().batch->bytes();
  MemoryBudget::Process().AddRetained(-retained_.front().batch->bytes());
  dropped->push_back(std::move(retained_.front().batch));
  retained_.pop_front();
}

void ExpiryLog::TrimLocked(int64_t now_us, Dropped* dropped) {
  // The newest batch stays, however large it is: otherwise no reader could ever
  // read it.
  const auto beyond = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const int64_t spared =
        replaying_ ? retained_.front().batch->bytes() : int64_t{0};
    return bytes_ - spared > retention_bytes_;
  };
  while (retained_.size() > 1 && beyond()) DropOldest(dropped);
  if (replaying_ || now_us < hold_until_us_) return;
  hold_until_us_ = INT64_MIN;
  if (retained_.empty() ||
      retained_.front().appended_us + retention_us_ > now_us) {
    return;
  }
  // Age drops only what every cursor has read.
  while (!retained_.empty() &&
         retained_.front().appended_us + retention_us_ <= now_us &&
         IsOldestRead()) {
    DropOldest(dropped);
  }
}

// Whether dropping some of the oldest frees memory: not while groups or
// messages refer to them.
bool ExpiryLog::CanDrop(Kind kind) const {
  if (retained_.empty()) return false;
  if (kind == Kind::kNewest) {
    return retained_.size() == 1 && retained_.front().batch.use_count() == 1 &&
           IsOldestRead();
  }
  const size_t most = std::min(retained_.size() - 1, kMaxShared);
  return std::any_of(
      retained_.begin(), retained_.begin() + static_cast<ptrdiff_t>(most),
      [](const Retained& r) { return r.batch.use_count() == 1; });
}

ExpiryLog::Follower* ExpiryLog::LargestFollower(Kind kind) const {
  const auto largest = std::max_element(
      followers_.begin(), followers_.end(), [kind](Follower* a, Follower* b) {
        return a->Backlog(kind).bytes < b->Backlog(kind).bytes;
      });
  return largest == followers_.end() ? nullptr : *largest;
}

EventHolder::Holding ExpiryLog::Held(Kind kind) const {
  if ((kind == Kind::kRetained && content_ != Content::kDeaths) ||
      (kind == Kind::kChanges && content_ != Content::kChanges)) {
    return {};
  }
  absl::MutexLock lock(&mu_);
  if (IsOfFollowers(kind)) {
    const Follower* const follower = LargestFollower(kind);
    if (follower == nullptr) return {};
    Holding holding = follower->Backlog(kind);
    if (kind == Kind::kHeld) holding.bytes = follower->KeptTogether();
    return holding;
  }
  if (!CanDrop(kind)) return {};
  const int64_t kept_bytes =
      kind != Kind::kNewest ? retained_.back().batch->bytes() : 0;
  return {bytes_ - kept_bytes, retained_.front().appended_us};
}

bool ExpiryLog::Drop(Kind kind, int64_t bytes) {
  Dropped dropped;
  absl::MutexLock lock(&mu_);
  if (!IsOfFollowers(kind)) return DropRetained(kind, bytes, &dropped);
  // The largest first. It may have nothing that can be dropped.
  std::vector<std::pair<int64_t, Follower*>> followers;
  for (Follower* const follower : followers_) {
    followers.emplace_back(follower->Backlog(kind).bytes, follower);
  }
  std::sort(followers.rbegin(), followers.rend());
  return std::any_of(followers.begin(), followers.end(), [&](const auto& each) {
    return each.second->DropBacklog(kind, bytes);
  });
}

bool ExpiryLog::DropRetained(Kind kind, int64_t bytes, Dropped* dropped) {
  const size_t keep = kind == Kind::kNewest ? 0 : 1;
  while (bytes > 0 && retained_.size() > keep && CanDrop(kind)) {
    const Retained& oldest = retained_.front();
    if (oldest.batch.use_count() == 1) bytes -= oldest.batch->bytes();
    reclaimed_ += static_cast<uint64_t>(oldest.batch->size());
    DropOldest(dropped);
  }
  return !dropped->empty();
}

int64_t ExpiryLog::NextTrimUs(int64_t now_us) const {
  absl::MutexLock lock(&mu_);
  if (retained_.empty()) return kNeverUs;
  const int64_t due_us =
      std::max(retained_.front().appended_us + retention_us_, hold_until_us_);
  return due_us > now_us ? due_us : now_us + kTrimRetryUs;
}

}  // namespace timecache::server
