#include "server/rpc/call/call_tails.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace timecache::server {

void CallTails::Observe(const CallDetails& call, absl::string_view name,
                        absl::Span<const Operation> operations,
                        absl::Span<const Result> results) {
  absl::ReaderMutexLock lock(&mu_);
  for (CallTail* tail : tails_) {
    if (tail->name() == name) tail->OnOperations(call, operations, results);
  }
}

absl::Status CallTails::Add(CallTail* tail) {
  absl::MutexLock lock(&mu_);
  if (tails_.size() >= kMost) {
    return ErrorWithReason(
        absl::StatusCode::kResourceExhausted, Reason::kMaxTails,
        absl::StrCat(kMost,
                     " streams of TailCalls are open, which is the most: wait "
                     "for one to end"));
  }
  tails_.push_back(tail);
  any_.store(true, std::memory_order_relaxed);
  return absl::OkStatus();
}

void CallTails::Remove(CallTail* tail) {
  absl::MutexLock lock(&mu_);
  tails_.erase(std::remove(tails_.begin(), tails_.end(), tail), tails_.end());
  any_.store(!tails_.empty(), std::memory_order_relaxed);
}

}  // namespace timecache::server
