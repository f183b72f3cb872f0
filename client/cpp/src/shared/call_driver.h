// The thread of a client's calls that do not block. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_SHARED_CALL_DRIVER_H_
#define TIMECACHED_CLIENT_CPP_SRC_SHARED_CALL_DRIVER_H_

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "client/cpp/src/shared/call_stream.h"
#include "grpcpp/completion_queue.h"

namespace timecache {

// Polls for streams, and runs the callbacks of their calls: so that one thread runs
// them all, whichever nodes they went to. Thread-safe.
class CallDriver final : public StreamDriver {
 public:
  CallDriver() : thread_([this] { Run(); }) {}
  // All streams have been closed.
  ~CallDriver() override;

  // Expires its calls from now on, as long as it exists.
  void Add(const std::shared_ptr<CallStream>& stream);

  grpc::CompletionQueue& queue() override { return queue_; }
  void ExpireAt(SteadyTime time) override;

 private:
  void Run();
  void Expire();

  grpc::CompletionQueue queue_;
  std::atomic<SteadyTime> expire_at_{kSteadyNever};
  absl::Mutex mu_;
  std::vector<std::weak_ptr<CallStream>> streams_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // Last: it works with the rest.
};

// The one of a client, which starts when it is first wanted. Thread-safe.
class LazyCallDriver {
 public:
  CallDriver& Get() {
    absl::MutexLock lock(&mu_);
    if (!driver_) driver_ = std::make_unique<CallDriver>();
    return *driver_;
  }

 private:
  absl::Mutex mu_;
  std::unique_ptr<CallDriver> driver_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_SHARED_CALL_DRIVER_H_
