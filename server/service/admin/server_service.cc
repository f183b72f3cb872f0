#include "server/service/admin/server_service.h"

#include "server/service/admin/answer.h"

namespace timecache::server {

grpc::ServerUnaryReactor* ServerService::GetServer(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::GetServerRequest;
  using Response = v1::GetServerResponse;
  return Answer<Request, Response>(
      gate_, methods::kGetServer, context, bytes, answer, nullptr,
      [this](const SharedCall<Request, Response>& unary) -> absl::Status {
        Call* const call = &unary->call();
        const absl::Status access = call->AuthorizeAnywhere();
        if (!access.ok()) return access;
        // How much all namespaces hold is for who may read all of them.
        describe_server_(call->May(config::v1::VERB_READ, kWholeServer),
                         &unary->response());
        unary->Finish(absl::OkStatus());
        return absl::OkStatus();
      });
}

}  // namespace timecache::server
