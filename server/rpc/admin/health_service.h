// grpc.health.v1.Health: whether the server serves.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_HEALTH_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_HEALTH_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "server/base/lock_order.h"
#include "server/edge/connection/peer_address.h"
#include "server/edge/connection/peer_guard.h"
#include "server/edge/response/response_ledger.h"
#include "server/rpc/call/counted_calls.h"

namespace timecache::server {

class HealthWatch;

// Answers every caller: probes have no credentials. gRPC's own health service
// has no limit of watches and does not end them before the server cancels them.
//
// A watch costs about 18 KiB. At kMaxWatches a watch of the address that has
// most of them ends: an address with few is not refused because another takes
// all.
//
// Thread-safe. A change costs O(watches), a watch O(1), and at the limit
// O(addresses).
class HealthService final
    : public RawService<grpc::health::v1::Health::WithRawCallbackMethod_Check<
          grpc::health::v1::Health::WithRawCallbackMethod_Watch<
              grpc::health::v1::Health::Service>>> {
 public:
  static constexpr size_t kMaxWatches = 1'000;
  // A longer request is refused.
  static constexpr size_t kMaxRequestBytes = 1 << 10;

  // Calls are reported to `guard`, `ledger` counts watches on their
  // connections; neither is owned, both may be null.
  explicit HealthService(PeerGuard* guard, ResponseLedger* ledger = nullptr,
                         size_t max_watches = kMaxWatches)
      : guard_(guard), ledger_(ledger), max_watches_(max_watches) {}

  // Reports SERVING, as at first, or NOT_SERVING from now on, also to watches.
  void SetServing(bool serving) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all watches with UNAVAILABLE (DRAINING), also those whose clients do
  // not read, and accepts no more.
  void EndWatches() ABSL_LOCKS_EXCLUDED(mu_);

  size_t watches() const ABSL_LOCKS_EXCLUDED(mu_);
  // Watches that were refused, or ended in favour of others.
  uint64_t refused_watches() const ABSL_LOCKS_EXCLUDED(mu_);

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override;

 private:
  friend class HealthWatch;
  using Watches = std::vector<std::shared_ptr<HealthWatch>>;

  // Adds the watch, and sets its status. Otherwise an error.
  absl::Status Add(const std::shared_ptr<HealthWatch>& watch,
                   const PeerAddress& from) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(const HealthWatch* watch, const PeerAddress& from)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The newest watch of the address that has most, if it has more than `from`.
  std::shared_ptr<HealthWatch> TakeFromLargest(const PeerAddress& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Watches All() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Counts the call. CANCELLED if its connection is gone.
  absl::Status Admit(const grpc::CallbackServerContext& context) const;

  PeerGuard* const guard_;
  ResponseLedger* const ledger_;
  const size_t max_watches_;
  mutable absl::Mutex mu_ ABSL_ACQUIRED_BEFORE(lock_order::kStream);
  bool serving_ ABSL_GUARDED_BY(mu_) = true;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
  size_t count_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_map<PeerAddress, Watches> watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_HEALTH_SERVICE_H_
