#include "server/rpc/admin/server_service.h"

#include <string>
#include <utility>

#include "server/base/error.h"
#include "server/rpc/call/answer.h"

namespace timecache::server {
namespace {

absl::Status NoCluster() {
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, Reason::kNoCluster,
      "the server is no node of a cluster: start it with --cluster NAME and "
      "--kafka-brokers LIST, or set cluster in its configuration");
}

}  // namespace

ServerService::ServerService(const CallGate* gate,
                             DescribeServer describe_server, Backups* backups,
                             ClusterSource cluster, OpenStreams* streams,
                             FairExecutor* executor, OperatorSource operators,
                             TailStream::Parts tails, CountedCalls* counted)
    : RawService(counted),
      gate_(*gate),
      describe_server_(std::move(describe_server)),
      cluster_(std::move(cluster)),
      operators_(std::move(operators)) {
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
  Serve<UnaryHandler>(
      methods::kGetCluster,
      [this](Context* context, const Bytes* request, Bytes* response) {
        return AnswerCluster(context, request, response);
      });
  Serve<UnaryHandler>(
      methods::kHandOver,
      [this](Context* context, const Bytes* request, Bytes* response) {
        return AnswerHandOver(context, request, response);
      });
  const auto serve = [this](const Method& method, auto answer) {
    Serve<UnaryHandler>(
        method, [this, answer](Context* context, const Bytes* request,
                               Bytes* response) {
          return answer(gate_, operators_, context, request, response);
        });
  };
  serve(methods::kWhoAmI, AnswerWhoAmI);
  serve(methods::kListConnections, AnswerListConnections);
  serve(methods::kCloseConnection, AnswerCloseConnection);
  serve(methods::kListSlowCalls, AnswerListSlowCalls);
  Serve<WriteHandler>(methods::kTailCalls, [this, tails](Context* context,
                                                         const Bytes* request) {
    return TailStream::Start(gate_, context, tails, *request);
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

grpc::ServerUnaryReactor* ServerService::AnswerCluster(Context* context,
                                                       const Bytes* bytes,
                                                       Bytes* answer) {
  return Answer<v1::GetClusterRequest, v1::GetClusterResponse>(
      gate_, methods::kGetCluster, context, bytes, answer, nullptr,
      [this](const auto& unary) -> absl::Status {
        const absl::Status access =
            unary->call().Authorize(config::v1::VERB_READ, kWholeServer);
        if (!access.ok()) return access;
        if (cluster_.describe == nullptr) return NoCluster();
        cluster_.describe(&unary->response());
        unary->Finish(absl::OkStatus());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* ServerService::AnswerHandOver(Context* context,
                                                        const Bytes* bytes,
                                                        Bytes* answer) {
  return Answer<v1::HandOverRequest, v1::HandOverResponse>(
      gate_, methods::kHandOver, context, bytes, answer, nullptr,
      [this](const auto& unary) -> absl::Status {
        const absl::Status access =
            unary->call().Authorize(config::v1::VERB_ADMIN, kWholeServer);
        if (!access.ok()) return access;
        if (cluster_.hand_over == nullptr) return NoCluster();
        if (absl::Status owns = gate_.CheckService(); !owns.ok()) return owns;
        cluster_.hand_over(unary->request().to(),
                           FinishWith(unary, [unary](const std::string& to) {
                             unary->response().set_to(to);
                           }));
        return absl::OkStatus();
      });
}

}  // namespace timecache::server
