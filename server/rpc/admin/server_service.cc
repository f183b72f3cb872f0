#include "server/rpc/admin/server_service.h"

#include <utility>

#include "server/rpc/call/answer.h"

namespace timecache::server {

ServerService::ServerService(const CallGate* gate,
                             DescribeServer describe_server, Backups* backups,
                             OpenStreams* streams, FairExecutor* executor,
                             CountedCalls* counted)
    : RawService(counted),
      gate_(*gate),
      describe_server_(std::move(describe_server)) {
  Serve<UnaryHandler>(
      methods::kGetServer,
      [this](Context* context, const Bytes* request, Bytes* response) {
        return AnswerServer(context, request, response);
      });
  Serve<WriteHandler>(methods::kBackupJournal,
                      [=, this](Context* context, const Bytes* request) {
                        return BackupStream::Start(gate_, context, backups,
                                                   streams, executor, *request);
                      });
}

grpc::ServerUnaryReactor* ServerService::AnswerServer(Context* context,
                                                      const Bytes* bytes,
                                                      Bytes* answer) {
  return Answer<v1::GetServerRequest, v1::GetServerResponse>(
      gate_, methods::kGetServer, context, bytes, answer, nullptr,
      [this](const auto& unary) -> absl::Status {
        Call* const call = &unary->call();
        const absl::Status access = call->AuthorizeAnywhere();
        if (!access.ok()) return access;
        // The total of all namespaces is only for callers that may read all of
        // them.
        describe_server_(call->May(config::v1::VERB_READ, kWholeServer),
                         &unary->response());
        unary->Finish(absl::OkStatus());
        return absl::OkStatus();
      });
}

}  // namespace timecache::server
