#include "server/rpc/admin/server_service.h"

#include "server/rpc/call/answer.h"

namespace timecache::server {

grpc::ServerUnaryReactor* ServerService::GetServer(Context* context,
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

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServerService::BackupJournal(
    Context* context, const Bytes* request) {
  return BackupStream::Start(gate_, context, backups_, streams_, executor_,
                             *request);
}

}  // namespace timecache::server
