// Shows the operations of calls to those who read a sample of them.

#ifndef TIMECACHED_SERVER_RPC_CALL_CALL_TAILS_H_
#define TIMECACHED_SERVER_RPC_CALL_CALL_TAILS_H_

#include <atomic>
#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/api/call_observer.h"
#include "server/engine/store/operation.h"

namespace timecache::server {

// Reads the operations on one namespace.
class CallTail {
 public:
  virtual ~CallTail() = default;
  // The namespace; does not change.
  virtual absl::string_view name() const = 0;
  // Operations of one call that were tried, and the result of each. On the
  // call's thread, from several at once: must be quick and must not block.
  virtual void OnOperations(const CallDetails& call,
                            absl::Span<const Operation> operations,
                            absl::Span<const Result> results) = 0;
};

// Thread-safe. Where there is no reader a call costs one read of a flag.
class CallTails {
 public:
  static constexpr size_t kMost = 4;

  CallTails() = default;
  CallTails(const CallTails&) = delete;
  CallTails& operator=(const CallTails&) = delete;

  // Whether there is a reader, so that Observe is to be called.
  bool any() const { return any_.load(std::memory_order_relaxed); }
  void Observe(const CallDetails& call, absl::string_view name,
               absl::Span<const Operation> operations,
               absl::Span<const Result> results) ABSL_LOCKS_EXCLUDED(mu_);

  // RESOURCE_EXHAUSTED (MAX_TAILS) if there are kMost. `tail` is not owned, and
  // must live until Remove.
  absl::Status Add(CallTail* tail) ABSL_LOCKS_EXCLUDED(mu_);
  // Does nothing for one that is not there. `tail` is not called any more when
  // it returns.
  void Remove(CallTail* tail) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::atomic<bool> any_{false};
  absl::Mutex mu_;
  std::vector<CallTail*> tails_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_CALL_TAILS_H_
