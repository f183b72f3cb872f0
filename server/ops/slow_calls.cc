#include "server/ops/slow_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace timecache::server {
namespace {

std::string Bounded(absl::string_view text) {
  return std::string(text.substr(0, SlowCalls::kMaxTextBytes));
}

}  // namespace

void SlowCalls::Add(const CallRecord& record, int64_t now_us) {
  SlowCall call = {now_us,
                   absl::StrCat(record.method.service, "/", record.method.name),
                   Bounded(record.details.Namespace()),
                   record.took_us,
                   static_cast<int>(record.code),
                   record.details.Operations(),
                   Bounded(record.details.Principal()),
                   Bounded(record.details.Peer()),
                   Bounded(record.details.RequestId())};
  absl::MutexLock lock(&mu_);
  calls_[added_++ % kMost] = std::move(call);
}

std::vector<SlowCall> SlowCalls::List() const {
  absl::MutexLock lock(&mu_);
  std::vector<SlowCall> calls;
  for (uint64_t i = added_; i > 0 && calls.size() < kMost; --i) {
    calls.push_back(calls_[(i - 1) % kMost]);
  }
  return calls;
}

}  // namespace timecache::server
