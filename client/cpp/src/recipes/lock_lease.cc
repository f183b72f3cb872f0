#include "client/cpp/src/recipes/lock_lease.h"

#include <algorithm>
#include <utility>

namespace timecache {
namespace {

absl::Duration LeaseTimeLeft(SteadyTime until) {
  return until == kSteadyNever
             ? absl::InfiniteDuration()
             : std::max(absl::ZeroDuration(),
                        absl::FromChrono(until - SteadyNow()));
}

}  // namespace

Lock::Lease::Lease(std::function<void()> on_lost)
    : on_lost_(std::move(on_lost)) {}

Lock::Lease::~Lease() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

std::optional<uint64_t> Lock::Lease::token() const {
  absl::MutexLock lock(&mu_);
  return token_;
}

absl::Duration Lock::Lease::remaining() const {
  absl::MutexLock lock(&mu_);
  return token_ ? LeaseTimeLeft(safe_until_) : absl::ZeroDuration();
}

void Lock::Lease::Begin(uint64_t token, SteadyTime safe_until) {
  {
    absl::MutexLock lock(&mu_);
    token_ = token;
    safe_until_ = safe_until;
    is_watched_ = on_lost_ != nullptr;
    changed_.Signal();
  }
  if (on_lost_ && !thread_.joinable()) {
    thread_ = std::thread([this] { Watch(); });
  }
}

bool Lock::Lease::Extend(SteadyTime safe_until) {
  absl::MutexLock lock(&mu_);
  if (!token_) return false;
  safe_until_ = safe_until;
  is_watched_ = on_lost_ != nullptr;
  changed_.Signal();
  return true;
}

void Lock::Lease::GiveUp() {
  absl::MutexLock lock(&mu_);
  is_watched_ = false;
  changed_.Signal();
}

void Lock::Lease::End() {
  bool is_loss = false;
  {
    absl::MutexLock lock(&mu_);
    is_loss = Forget();
    changed_.Signal();
  }
  if (is_loss) on_lost_();
}

void Lock::Lease::Watch() {
  while (AwaitLoss()) on_lost_();
}

bool Lock::Lease::AwaitLoss() {
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    const absl::Duration left =
        is_watched_ ? LeaseTimeLeft(safe_until_) : absl::InfiniteDuration();
    if (left <= absl::ZeroDuration()) return Forget();
    changed_.WaitWithTimeout(&mu_, left);
  }
  return false;
}

bool Lock::Lease::Forget() {
  token_.reset();
  return std::exchange(is_watched_, false);
}

}  // namespace timecache
