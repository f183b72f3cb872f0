#include "server/base/memory_reclaimer.h"

#include <algorithm>

#include "server/base/block_pool.h"

namespace timecache::server {
namespace {

using HolderKind = EventHolder::Kind;

MemoryBudget& Memory() { return MemoryBudget::Process(); }

// Of what a step may drop.
int64_t EventBytes() {
  const MemoryBudget::Shares shares = Memory().shares();
  return shares.retained_bytes + shares.backlog_bytes;
}

// What nothing needs goes first. Of a small limit even a few slabs are much.
bool GiveBackIdle() {
  const size_t keep =
      Memory().level() != MemoryBudget::Level::kRoom
          ? 0
          : std::min(BlockPool::kMaxIdleSlabs,
                     static_cast<size_t>(Memory().limit_bytes()) /
                         (256 * BlockPool::kSlabBytes));
  return BlockPool::Default().GiveBackNow(MemoryReclaimer::kStepBytes, keep);
}

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
  const bool dropped = GiveBackIdle() || StepLocked();
  stuck_bytes_ = dropped ? -kTurnBytes : Memory().retained_bytes();
  reclaiming_ = dropped && Memory().BytesBeyond(MemoryBudget::kRetainedLow) > 0;
  return reclaiming_;
}

// Another clock, as of a test, may be behind the last one.
bool MemoryReclaimer::IsPausing(int64_t now_us) const {
  return now_us != kNeverUs && Memory().idle_bytes() == 0 &&
         now_us >= no_room_us_.load(std::memory_order_relaxed) &&
         now_us < no_room_until_us_.load(std::memory_order_relaxed) &&
         EventBytes() - no_room_bytes_.load(std::memory_order_relaxed) <
             kTurnBytes;
}

absl::Status MemoryReclaimer::MakeRoom(int64_t now_us) {
  if (IsPausing(now_us) && Memory().level() != MemoryBudget::Level::kRoom) {
    return Memory().Error();
  }
  absl::MutexLock lock(&mu_);
  while (Memory().level() != MemoryBudget::Level::kRoom) {
    if (GiveBackIdle()) continue;
    // Those that waited for the lock meanwhile need not look, either.
    if (IsPausing(now_us)) return Memory().Error();
    const int64_t bytes = EventBytes();
    looks_.fetch_add(1, std::memory_order_relaxed);
    if (!StepLocked()) {
      if (now_us != kNeverUs) {
        no_room_bytes_.store(bytes, std::memory_order_relaxed);
        no_room_us_.store(now_us, std::memory_order_relaxed);
        no_room_until_us_.store(
            now_us + kPauseUs +
                kPausePerLogUs * static_cast<int64_t>(holders_.size()),
            std::memory_order_relaxed);
      }
      return Memory().Error();
    }
    // The rest is Step's.
    reclaiming_ = true;
  }
  return absl::OkStatus();
}

// Returns whether anything was dropped.
bool MemoryReclaimer::StepLocked() {
  if (Reclaim(HolderKind::kChanges, MemoryBudget::kRetainedLow) ||
      Reclaim(HolderKind::kRetained, MemoryBudget::kRetainedLow)) {
    return true;
  }
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
