// grpc.health.v1.Health: whether the server serves.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_HEALTH_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_HEALTH_SERVICE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "server/base/lock_order.h"
#include "server/edge/connection/peer_guard.h"
#include "server/edge/response/response_ledger.h"
#include "server/rpc/call/counted_calls.h"

namespace timecache::server {

// Answers every caller: probes have no credentials. gRPC 1.51's own health
// service does not end watches when the server stops, so a client that watches
// makes a stop take the whole grace period; and its calls cannot be counted.
//
// Thread-safe. A watch costs about 18 KiB, a change O(watches).
class HealthService final
    : public RawService<grpc::health::v1::Health::Service> {
 public:
  // A longer request is refused.
  static constexpr size_t kMaxRequestBytes = 1 << 10;

  // Calls are reported to `guard`, `ledger` counts watches on their
  // connections, `counted` checks; none is owned.
  HealthService(PeerGuard* guard, ResponseLedger* ledger,
                CountedCalls* counted);

  // Reports SERVING, as at first, or NOT_SERVING from now on, also to watches.
  void SetServing(bool serving) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all watches with UNAVAILABLE (DRAINING), also those whose clients do
  // not read, and accepts no more.
  void EndWatches() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class WatchReactor;

  grpc::ServerUnaryReactor* AnswerCheck(Context* context, const Bytes* request,
                                        Bytes* response)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The watch gets each status from now on. An error once they have ended.
  absl::Status Add(const std::shared_ptr<WatchReactor>& watch)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(const WatchReactor* watch) ABSL_LOCKS_EXCLUDED(mu_);

  // Counts the call. CANCELLED if its connection is gone.
  absl::Status Admit(const grpc::CallbackServerContext& context) const;

  PeerGuard* const guard_;
  ResponseLedger* const ledger_;
  absl::Mutex mu_ ABSL_ACQUIRED_BEFORE(lock_order::kStream);
  bool serving_ ABSL_GUARDED_BY(mu_) = true;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_map<const WatchReactor*, std::shared_ptr<WatchReactor>>
      watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_HEALTH_SERVICE_H_
