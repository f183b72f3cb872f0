#include <utility>

#include "client/cpp/src/admin/messages.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "timecache/client.h"

namespace timecache {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

}  // namespace

absl::StatusOr<ServerInfo> Client::GetServer(const CallOptions& call) const {
  auto response = Call(
      core_->endpoints, &Endpoint::server, &v1::ServerService::Stub::GetServer,
      v1::GetServerRequest(), CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  return FromMessage<ServerInfo>(*response);
}

absl::Status Client::BackupJournal(
    absl::FunctionRef<bool(BackupPiece piece)> visit,
    const CallOptions& call) const {
  bool wanted = true;
  const absl::Status status = Attempt(
      core_->endpoints,
      CallPlan(
          {.timeout = absl::InfiniteDuration(), .retry = {.max_attempts = 1}},
          call, Repeat::kUnsafe),
      [&](Endpoint& endpoint, grpc::ClientContext& context) {
        auto reader =
            endpoint.server.BackupJournal(&context, v1::BackupJournalRequest());
        v1::BackupJournalResponse response;
        while (wanted && reader->Read(&response)) {
          wanted = visit({.total_bytes = response.total_bytes(),
                          .data = std::move(*response.mutable_data())});
        }
        if (!wanted) context.TryCancel();
        return reader->Finish();
      });
  return wanted ? status : CancelledByCaller();
}

absl::StatusOr<ServingStatus> Client::CheckHealth(
    const CallOptions& call) const {
  auto response =
      Call(core_->endpoints, &Health::Stub::Check, HealthCheckRequest(),
           CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  switch (response->status()) {
    case HealthCheckResponse::SERVING:
      return ServingStatus::kServing;
    case HealthCheckResponse::NOT_SERVING:
      return ServingStatus::kNotServing;
    default:
      return ServingStatus::kUnknown;
  }
}

}  // namespace timecache
