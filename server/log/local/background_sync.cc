#include "server/log/local/background_sync.h"

#include <utility>

namespace timecache::server {

BackgroundSync::BackgroundSync(std::function<void()> ended)
    : ended_(std::move(ended)), thread_([this] { Run(); }) {}

BackgroundSync::~BackgroundSync() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    change_.SignalAll();
  }
  thread_.join();
}

void BackgroundSync::Begin(absl::AnyInvocable<absl::Status()> sync) {
  under_way_ = true;
  absl::MutexLock lock(&mu_);
  sync_ = std::move(sync);
  change_.SignalAll();
}

std::optional<absl::Status> BackgroundSync::End(bool wait) {
  if (!under_way_) return std::nullopt;
  absl::MutexLock lock(&mu_);
  while (wait && !result_.has_value()) change_.Wait(&mu_);
  if (result_.has_value()) under_way_ = false;
  return std::exchange(result_, std::nullopt);
}

void BackgroundSync::Run() {
  absl::MutexLock lock(&mu_);
  for (;;) {
    if (auto sync = std::exchange(sync_, nullptr)) {
      mu_.Unlock();
      absl::Status status = sync();
      mu_.Lock();
      result_ = std::move(status);
      change_.SignalAll();
      mu_.Unlock();
      ended_();
      mu_.Lock();
    } else if (stopping_) {
      return;
    } else {
      change_.Wait(&mu_);
    }
  }
}

}  // namespace timecache::server
