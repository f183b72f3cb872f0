#include <string>
#include <utility>

#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "timecache/client.h"

namespace timecache {
namespace {

CallerInfo CallerOf(v1::WhoAmIResponse&& from) {
  CallerInfo to = {.principal = std::move(*from.mutable_principal()),
                   .peer = std::move(*from.mutable_peer()),
                   .access_rules = from.access_rules()};
  for (const v1::Permission& each : from.permissions()) {
    to.permissions.push_back(
        {each.pattern(), {each.verbs().begin(), each.verbs().end()}});
  }
  return to;
}

ClientConnection ConnectionOf(v1::Connection&& from) {
  ClientConnection to = {.id = from.id(),
                         .peer = std::move(*from.mutable_peer()),
                         .since = FromProto(from.since()),
                         .principal = std::move(*from.mutable_principal()),
                         .user_agent = std::move(*from.mutable_user_agent()),
                         .open_calls = from.open_calls(),
                         .calls = from.calls()};
  if (from.has_idle()) to.idle = FromProto(from.idle());
  return to;
}

SlowCall SlowCallOf(v1::SlowCall&& from) {
  return {.time = FromProto(from.time()),
          .method = std::move(*from.mutable_method()),
          .ns = std::move(*from.mutable_namespace_()),
          .duration = FromProto(from.duration()),
          .code = std::move(*from.mutable_code()),
          .operations = from.operations(),
          .principal = std::move(*from.mutable_principal()),
          .peer = std::move(*from.mutable_peer()),
          .request_id = std::move(*from.mutable_request_id())};
}

TailedCalls TailedOf(v1::TailCallsResponse&& from) {
  TailedCalls to = {.skipped = from.skipped()};
  for (v1::TailedCall& each : *from.mutable_calls()) {
    to.calls.push_back({.time = FromProto(each.time()),
                        .operation = std::move(*each.mutable_operation()),
                        .key = std::move(*each.mutable_key()),
                        .value_bytes = each.value_bytes(),
                        .code = std::move(*each.mutable_code()),
                        .reason = std::move(*each.mutable_reason()),
                        .hit = each.hit(),
                        .principal = std::move(*each.mutable_principal()),
                        .peer = std::move(*each.mutable_peer())});
  }
  return to;
}

}  // namespace

absl::StatusOr<CallerInfo> Client::WhoAmI(const CallOptions& call) const {
  auto response = Call(core_->endpoints, &Endpoint::server,
                       &v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest(),
                       CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  return CallerOf(*std::move(response));
}

absl::StatusOr<std::vector<ClientConnection>> Client::ListConnections(
    const CallOptions& call) const {
  std::vector<ClientConnection> connections;
  v1::ListConnectionsRequest request;
  do {
    auto response = Call(core_->endpoints, &Endpoint::server,
                         &v1::ServerService::Stub::ListConnections, request,
                         CallPlan(options_, call, Repeat::kSafe));
    if (!response.ok()) return response.status();
    for (v1::Connection& each : *response->mutable_connections()) {
      connections.push_back(ConnectionOf(std::move(each)));
    }
    request.set_page_token(response->next_page_token());
  } while (!request.page_token().empty());
  return connections;
}

absl::Status Client::CloseConnection(uint64_t id,
                                     const CallOptions& call) const {
  v1::CloseConnectionRequest request;
  request.set_id(id);
  return Call(core_->endpoints, &Endpoint::server,
              &v1::ServerService::Stub::CloseConnection, request,
              CallPlan(options_, call, Repeat::kUnsafe))
      .status();
}

absl::StatusOr<SlowCallList> Client::ListSlowCalls(
    const CallOptions& call) const {
  auto response =
      Call(core_->endpoints, &Endpoint::server,
           &v1::ServerService::Stub::ListSlowCalls, v1::ListSlowCallsRequest(),
           CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  SlowCallList list;
  for (v1::SlowCall& each : *response->mutable_calls()) {
    list.calls.push_back(SlowCallOf(std::move(each)));
  }
  if (response->has_threshold()) {
    list.threshold = FromProto(response->threshold());
  }
  return list;
}

absl::Status Client::TailCalls(
    const TailOptions& options,
    absl::FunctionRef<bool(TailedCalls sample)> visit,
    const CallOptions& call) const {
  v1::TailCallsRequest request;
  request.set_namespace_(options_.default_namespace);
  request.set_key_prefix(options.key_prefix);
  request.set_max_per_second(options.max_per_second);
  bool wanted = true;
  const absl::Status status = Attempt(
      core_->endpoints,
      CallPlan(
          {.timeout = absl::InfiniteDuration(), .retry = {.max_attempts = 1}},
          call, Repeat::kUnsafe),
      [&](Endpoint& endpoint, grpc::ClientContext& context) {
        auto reader = endpoint.server.TailCalls(&context, request);
        v1::TailCallsResponse response;
        while (wanted && reader->Read(&response)) {
          wanted = visit(TailedOf(std::move(response)));
        }
        if (!wanted) context.TryCancel();
        return reader->Finish();
      });
  return wanted ? status : absl::OkStatus();
}

}  // namespace timecache
