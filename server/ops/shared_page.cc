#include "server/ops/shared_page.h"

#include <algorithm>

namespace timecache::server {

using std::chrono::steady_clock;

std::chrono::nanoseconds SharedPage::RestAfter(std::chrono::nanoseconds took) {
  return std::min<std::chrono::nanoseconds>(took * kRest, kMaxRest);
}

SharedPage::Page SharedPage::Next() {
  absl::MutexLock lock(&mu_);
  // A page that is being made may have missed recent changes.
  const uint64_t wanted = made_ + (making_ ? 2 : 1);
  while (!stopped_ && made_ < wanted) {
    if (making_) {
      changed_.Wait(&mu_);
    } else if (steady_clock::now() < rests_until_) {
      changed_.WaitUntil(&mu_, rests_until_);
    } else {
      Make();
    }
  }
  return stopped_ ? nullptr : page_;
}

void SharedPage::Make() {
  making_ = true;
  mu_.Unlock();
  const auto start = steady_clock::now();
  auto page = std::make_shared<const std::string>(make_());
  const auto end = steady_clock::now();
  mu_.Lock();
  making_ = false;
  ++made_;
  page_ = std::move(page);
  rests_until_ = end + RestAfter(end - start);
  changed_.SignalAll();
}

SharedPage::Page SharedPage::Last() const {
  absl::MutexLock lock(&mu_);
  return page_;
}

void SharedPage::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
  changed_.SignalAll();
}

}  // namespace timecache::server
