#include <stop_token>
#include <utility>

#include "client/cpp/src/admin/messages.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "client/cpp/src/rpc/steady_time.h"
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
      core_->connection, core_->server, &v1::ServerService::Stub::GetServer,
      v1::GetServerRequest(), CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  return FromMessage<ServerInfo>(*response);
}

absl::Status Client::BackupJournal(
    absl::FunctionRef<bool(BackupPiece piece)> visit,
    const CallOptions& call) const {
  if (absl::Status status = CheckMetadata(call); !status.ok()) return status;
  const SteadyTime deadline =
      SteadyAfter(call.timeout.value_or(absl::InfiniteDuration()));
  grpc::ClientContext context;
  Prepare(call, deadline, context);
  core_->connection.Await(deadline);
  const std::stop_callback cancel(call.cancellation,
                                  [&context] { context.TryCancel(); });
  auto reader =
      core_->server.BackupJournal(&context, v1::BackupJournalRequest());
  v1::BackupJournalResponse response;
  bool wanted = true;
  while (wanted && reader->Read(&response)) {
    wanted = visit({.total_bytes = response.total_bytes(),
                    .data = std::move(*response.mutable_data())});
  }
  if (!wanted) context.TryCancel();
  const grpc::Status status = reader->Finish();
  return wanted ? FromGrpcStatus(status) : CancelledByCaller();
}

absl::StatusOr<ServingStatus> Client::CheckHealth(
    const CallOptions& call) const {
  Health::Stub health(core_->channel);
  auto response =
      Call(core_->connection, health, &Health::Stub::Check,
           HealthCheckRequest(), CallPlan(options_, call, Repeat::kSafe));
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
