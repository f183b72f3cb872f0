#include <stop_token>
#include <utility>

#include "client/cpp/src/data/convert.h"
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

LimitUse ReadUse(const v1::LimitUse& proto) {
  return {.used = proto.used(), .max = proto.max()};
}

CheckpointState ReadState(v1::CheckpointState state) {
  switch (state) {
    case v1::CHECKPOINT_STATE_IDLE:
      return CheckpointState::kIdle;
    case v1::CHECKPOINT_STATE_WRITING:
      return CheckpointState::kWriting;
    case v1::CHECKPOINT_STATE_WAITING:
      return CheckpointState::kWaiting;
    default:
      return CheckpointState::kUnknown;
  }
}

JournalStatus ReadJournal(const v1::JournalStatus& proto) {
  return {.directory = proto.directory(),
          .disk_bytes = proto.disk_bytes(),
          .waiting_bytes = ReadUse(proto.waiting_bytes()),
          .disk_full = proto.disk_full(),
          .commits = proto.commits(),
          .appends = proto.appends(),
          .written_bytes = proto.written_bytes(),
          .commit_time = FromProto(proto.commit_time()),
          .commit_p99 = FromProto(proto.commit_p99()),
          .checkpoints = proto.checkpoints(),
          .checkpoint_state = ReadState(proto.checkpoint_state())};
}

ServerInfo ReadServer(const v1::GetServerResponse& proto) {
  ServerInfo server = {.version = proto.version(),
                       .start_time = FromProto(proto.start_time()),
                       .now = FromProto(proto.now()),
                       .draining = proto.draining()};
  if (proto.has_clock_offset()) {
    server.clock_offset = FromProto(proto.clock_offset());
  }
  if (proto.has_namespaces()) server.namespaces = ReadUse(proto.namespaces());
  if (proto.has_entries()) server.entries = ReadUse(proto.entries());
  if (proto.has_bytes()) server.bytes = ReadUse(proto.bytes());
  if (proto.has_watchers()) server.watchers = ReadUse(proto.watchers());
  if (proto.has_memory_bytes()) {
    server.memory_bytes = ReadUse(proto.memory_bytes());
  }
  if (proto.has_connections()) {
    server.connections = ReadUse(proto.connections());
  }
  if (proto.has_memory_shares()) {
    const v1::MemoryShares& shares = proto.memory_shares();
    server.memory_shares = {.entries_bytes = shares.entries_bytes(),
                            .retained_bytes = shares.retained_bytes(),
                            .backlog_bytes = shares.backlog_bytes()};
  }
  if (proto.has_journal()) server.journal = ReadJournal(proto.journal());
  return server;
}

}  // namespace

absl::StatusOr<ServerInfo> Client::GetServer(const CallOptions& call) const {
  auto response = Call(
      core_->connection, core_->server, &v1::ServerService::Stub::GetServer,
      v1::GetServerRequest(), CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  return ReadServer(*response);
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
