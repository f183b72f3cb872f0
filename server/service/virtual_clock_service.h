// timecache.testing.v1.VirtualClock: a server's time in a test's hands.

#ifndef TIMECACHED_SERVER_SERVICE_VIRTUAL_CLOCK_SERVICE_H_
#define TIMECACHED_SERVER_SERVICE_VIRTUAL_CLOCK_SERVICE_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/clock.h"
#include "server/engine/reaper.h"
#include "server/service/call_gate.h"
#include "server/service/watch_hub.h"
#include "timecache/testing/v1/virtual_clock.grpc.pb.h"

namespace timecache {

// Thread-safe; Advance calls come one after the other. Not a callback service:
// Advance waits for the sweep, which a gRPC thread of the callback API must
// not.
class VirtualClockService final : public testing::v1::VirtualClock::Service {
 public:
  // None is owned; all must outlive the service.
  VirtualClockService(const CallGate* gate, ManualClock* clock, Reaper* reaper,
                      WatchHub* hub)
      : gate_(*gate), clock_(clock), reaper_(reaper), hub_(hub) {}

  grpc::Status Advance(grpc::ServerContext* context,
                       const testing::v1::AdvanceRequest* request,
                       testing::v1::AdvanceResponse* response) override;
  grpc::Status Now(grpc::ServerContext* context,
                   const testing::v1::NowRequest* request,
                   testing::v1::NowResponse* response) override;

 private:
  absl::Status AdvanceTo(const testing::v1::AdvanceRequest& request,
                         testing::v1::AdvanceResponse* response)
      ABSL_LOCKS_EXCLUDED(mu_);

  const CallGate& gate_;
  ManualClock* const clock_;
  Reaper* const reaper_;
  WatchHub* const hub_;
  // One Advance at a time.
  absl::Mutex mu_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_VIRTUAL_CLOCK_SERVICE_H_
