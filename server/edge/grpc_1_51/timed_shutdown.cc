#include "server/edge/grpc_1_51/timed_shutdown.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/grpc.h"
#include "server/base/steady_cond_var.h"

namespace timecache::server {
namespace {

// Cancels a server's calls at a time, unless it was stopped before.
class Canceller {
 public:
  Canceller(grpc::Server* server,
            std::chrono::steady_clock::time_point deadline,
            std::function<void()> meanwhile)
      : server_(server->c_server()),
        deadline_(deadline),
        meanwhile_(std::move(meanwhile)),
        thread_([this] { Run(); }) {}
  ~Canceller() { thread_.join(); }

  // Whether nothing was cancelled.
  bool Stop() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    wake_.Signal();
    return !cancelled_;
  }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    while (!stopped_ && std::chrono::steady_clock::now() < deadline_) {
      wake_.WaitUntil(
          &mu_, std::min(deadline_,
                         std::chrono::steady_clock::now() + kLookInterval));
      meanwhile_();
    }
    if (stopped_) return;
    cancelled_ = true;
    grpc_server_cancel_all_calls(server_);
  }

  grpc_server* const server_;
  const std::chrono::steady_clock::time_point deadline_;
  const std::function<void()> meanwhile_;
  absl::Mutex mu_;
  SteadyCondVar wake_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace

bool ShutDown(grpc::Server* server,
              std::chrono::steady_clock::time_point deadline,
              std::function<void()> meanwhile) {
  Canceller canceller(server, deadline, std::move(meanwhile));
  server->Shutdown();
  return canceller.Stop();
}

}  // namespace timecache::server
