// timecache.testing.v1.VirtualClockService: lets a test control a server's
// time.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_VIRTUAL_CLOCK_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_VIRTUAL_CLOCK_SERVICE_H_

#include <functional>
#include <queue>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"
#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/counted_calls.h"
#include "server/rpc/watch/watch_hub.h"
#include "timecache/testing/v1/virtual_clock.grpc.pb.h"

namespace timecache::server {

// Thread-safe; Advance calls come one after the other. Costs a thread, since
// Advance waits for the sweep, which gRPC's threads must not.
class VirtualClockService final
    : public RawService<testing::v1::VirtualClockService::Service> {
 public:
  // `flush` waits until all that is due at the clock's time has been published.
  // Nothing is owned; all must outlive the service.
  VirtualClockService(const CallGate* gate, ManualClock* clock,
                      std::function<void()> flush, WatchHub* hub);
  // No call must be open any more.
  ~VirtualClockService() override;

 private:
  grpc::ServerUnaryReactor* AnswerAdvance(Context* context,
                                          const Bytes* request, Bytes* response)
      ABSL_LOCKS_EXCLUDED(mu_);
  grpc::ServerUnaryReactor* AnswerNow(Context* context, const Bytes* request,
                                      Bytes* response);
  // Advances, one after the other, until the service ends.
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status AdvanceTo(const testing::v1::AdvanceRequest& request,
                         testing::v1::AdvanceResponse* response);

  const CallGate& gate_;
  ManualClock* const clock_;
  const std::function<void()> flush_;
  WatchHub* const hub_;

  absl::Mutex mu_;
  std::queue<std::function<void()>> advances_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_VIRTUAL_CLOCK_SERVICE_H_
