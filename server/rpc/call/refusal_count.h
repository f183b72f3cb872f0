// Counts refusals by limits within a request that as a whole succeeds.

#ifndef TIMECACHED_SERVER_RPC_CALL_REFUSAL_COUNT_H_
#define TIMECACHED_SERVER_RPC_CALL_REFUSAL_COUNT_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "server/rpc/call/call.h"

namespace timecache::server {

// Counts the errors of one request's parts that are RESOURCE_EXHAUSTED, by
// their message. Not thread-safe. Costs nothing while there is none.
class RefusalCount {
 public:
  // Of further messages, all are counted with the last.
  static constexpr size_t kMaxMessages = 8;

  // OK and other errors are not counted.
  void Add(const absl::Status& status) {
    if (!absl::IsResourceExhausted(status)) return;
    for (auto& [known, count] : refused_) {
      if (known.message() != status.message()) continue;
      ++count;
      return;
    }
    if (refused_.size() < kMaxMessages) {
      refused_.emplace_back(status, 1);
    } else {
      ++refused_.back().second;
    }
  }

  // Reports the counts to `call`; of a batch of its.
  void Count(const Call& call) const { Count(call, call); }
  void Count(const Call& call, const CallDetails& batch) const {
    for (const auto& [status, count] : refused_) {
      call.CountRefused(status, count, batch);
    }
  }

 private:
  absl::InlinedVector<std::pair<absl::Status, uint64_t>, 1> refused_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_REFUSAL_COUNT_H_
