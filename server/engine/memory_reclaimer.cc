#include "server/engine/memory_reclaimer.h"

#include <algorithm>

namespace timecache::server {
namespace {

using HolderKind = EventHolder::Kind;

MemoryBudget& Memory() { return MemoryBudget::Process(); }

}  // namespace

MemoryReclaimer& MemoryReclaimer::Process() {
  static MemoryReclaimer* const reclaimer = new MemoryReclaimer();
  return *reclaimer;
}

void MemoryReclaimer::Add(EventHolder* holder) {
  absl::MutexLock lock(&mu_);
  holders_.insert(holder);
}

void MemoryReclaimer::Remove(EventHolder* holder) {
  absl::MutexLock lock(&mu_);
  holders_.erase(holder);
}

bool MemoryReclaimer::StepNow() {
  absl::MutexLock lock(&mu_);
  if (Memory().BytesBeyond(MemoryBudget::kRetainedLow) == 0) {
    reclaiming_ = false;
    return false;
  }
  // Live entries may permanently hold more than the mark.
  const bool full = Memory().level() != MemoryBudget::Level::kRoom;
  if (!full && Memory().retained_bytes() < stuck_bytes_ + kTurnBytes) {
    stuck_bytes_ = std::min(stuck_bytes_, Memory().retained_bytes());
    return false;
  }
  const bool dropped = StepLocked();
  stuck_bytes_ = dropped ? -kTurnBytes : Memory().retained_bytes();
  reclaiming_ = dropped && Memory().BytesBeyond(MemoryBudget::kRetainedLow) > 0;
  return reclaiming_;
}

absl::Status MemoryReclaimer::MakeRoom(int64_t now_us) {
  absl::MutexLock lock(&mu_);
  while (Memory().level() != MemoryBudget::Level::kRoom) {
    const MemoryBudget::Shares shares = Memory().shares();
    const int64_t bytes = shares.retained_bytes + shares.backlog_bytes;
    if (now_us != kNeverUs && now_us == no_room_us_ &&
        bytes == no_room_bytes_) {
      return Memory().Error();
    }
    looks_.fetch_add(1, std::memory_order_relaxed);
    if (!StepLocked()) {
      no_room_us_ = now_us;
      no_room_bytes_ = bytes;
      return Memory().Error();
    }
    // The rest is Step's.
    reclaiming_ = true;
  }
  return absl::OkStatus();
}

// Returns whether anything was dropped.
bool MemoryReclaimer::StepLocked() {
  if (Reclaim(HolderKind::kRetained, MemoryBudget::kRetainedLow)) return true;
  if (Memory().level() == MemoryBudget::Level::kRoom) return false;
  return Reclaim(HolderKind::kNewest, MemoryBudget::kRetainedLow) ||
         Reclaim(HolderKind::kBacklog, MemoryBudget::kBacklogLow) ||
         Reclaim(HolderKind::kHeld, MemoryBudget::kBacklogLow);
}

bool MemoryReclaimer::Reclaim(HolderKind kind, int64_t low_mark) {
  std::vector<Candidate> candidates;
  for (EventHolder* const holder : holders_) {
    const EventHolder::Holding holding = holder->Held(kind);
    if (holding.bytes > 0) candidates.push_back({holder, holding});
  }
  const int64_t kept = kind == HolderKind::kHeld && !candidates.empty()
                           ? Memory().limit_bytes() / kHeldShare /
                                 static_cast<int64_t>(candidates.size())
                           : 0;
  bool dropped = false;
  // Freed by this step, or by another thread meanwhile.
  int64_t left = std::min(kStepBytes, Memory().BytesBeyond(low_mark));
  while (left > 0) {
    Candidate* const next = Next(&candidates, kept);
    if (next == nullptr) break;
    const int64_t turn =
        std::min({left, kTurnBytes, next->holding.bytes - kept});
    if (!next->holder->Drop(kind, turn)) {
      next->holding.bytes = 0;
      continue;
    }
    dropped = true;
    left = std::min(left - turn, Memory().BytesBeyond(low_mark));
    next->holding = next->holder->Held(kind);
  }
  return dropped;
}

// Of those that hold more than `kept` and no less than the average, the one
// with the oldest event; null if there is none.
MemoryReclaimer::Candidate* MemoryReclaimer::Next(
    std::vector<Candidate>* candidates, int64_t kept) {
  std::erase_if(*candidates, [kept](const Candidate& candidate) {
    return candidate.holding.bytes <= kept;
  });
  int64_t sum = 0;
  for (const Candidate& candidate : *candidates) sum += candidate.holding.bytes;
  const auto count = static_cast<int64_t>(candidates->size());
  Candidate* next = nullptr;
  for (Candidate& candidate : *candidates) {
    if (candidate.holding.bytes < sum / count) continue;
    if (next == nullptr ||
        candidate.holding.oldest_us < next->holding.oldest_us) {
      next = &candidate;
    }
  }
  return next;
}

}  // namespace timecache::server
