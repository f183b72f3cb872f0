// A client that watches the server's health.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_HEALTH_WATCH_H_
#define TIMECACHED_SERVER_RPC_ADMIN_HEALTH_WATCH_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpc/health/v1/health.pb.h"
#include "grpcpp/grpcpp.h"
#include "server/edge/connection/peer_address.h"
#include "server/edge/response/response_account.h"
#include "server/rpc/call/stream_reactor.h"

namespace timecache::server {

class HealthService;

// Sends the status, and each one after it; of those that arrive while one is
// being sent, only the last. Thread-safe. Lives until OnDone.
class HealthWatch final
    : public StreamReactor<HealthWatch,
                           grpc::ServerWriteReactor<grpc::ByteBuffer>> {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // None is owned. `account`: its connection's, or null. `known`: whether there
  // is such a service; otherwise the client receives only SERVICE_UNKNOWN.
  HealthWatch(HealthService* service, grpc::CallbackServerContext* context,
              ResponseAccountRef account, bool known)
      : StreamReactor(context),
        service_(service),
        account_(std::move(account)),
        from_(PeerEndpoint::OfGrpcPeer(context->peer()).address()),
        known_(known) {
    if (account_) account_->BeginCall();
  }
  ~HealthWatch() override {
    if (account_) account_->EndCall(std::nullopt);
  }

  // Adds it to the service's watches, or ends it.
  static HealthWatch* Start(std::shared_ptr<HealthWatch> watch);
  // One that ends at once.
  static HealthWatch* Refuse(std::shared_ptr<HealthWatch> watch,
                             const absl::Status& status);

  void Send(bool serving) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends after the message in flight, or without waiting for a client that does
  // not read it.
  void End(const absl::Status& status, bool wait) ABSL_LOCKS_EXCLUDED(mu_);

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Leave() override;
  // Writes the due status, or ends.
  void Continue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  HealthService* const service_;
  const ResponseAccountRef account_;
  const PeerAddress from_;
  const bool known_;

  std::optional<Status> due_ ABSL_GUARDED_BY(mu_);
  std::optional<Status> told_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_HEALTH_WATCH_H_
