#include "server/rpc/admin/operator_calls.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"
#include "server/rpc/call/answer.h"

namespace timecache::server {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr int kDefaultConnections = 1'000;
constexpr int kMaxConnections = 10'000;

int64_t MicrosSince(SteadyTime then, SteadyTime now) {
  return std::max<int64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now - then).count(),
      0);
}

void SetPermission(const PatternVerbs& from, v1::Permission* to) {
  to->set_pattern(from.pattern);
  const google::protobuf::EnumDescriptor* const all =
      config::v1::Verb_descriptor();
  for (int i = 0; i < all->value_count(); ++i) {
    const auto verb = static_cast<config::v1::Verb>(all->value(i)->number());
    if (verb == config::v1::VERB_UNSPECIFIED || !from.verbs.Contains(verb)) {
      continue;
    }
    absl::string_view name = all->value(i)->name();
    absl::ConsumePrefix(&name, "VERB_");
    to->add_verbs(std::string(name));
  }
}

void SetConnection(const OpenConnections::Listed& from, int64_t now_us,
                   SteadyTime now, v1::Connection* to) {
  to->set_id(from.id);
  to->set_peer(from.peer);
  SetTime(now_us - MicrosSince(from.since, now), to->mutable_since());
  ConnectionUse::Caller caller = from.use->caller();
  to->set_principal(std::move(caller.principal));
  to->set_user_agent(std::move(caller.user_agent));
  to->set_calls(from.use->calls());
  to->set_open_calls(
      static_cast<uint64_t>(std::max<int64_t>(from.use->open_calls(), 0)));
  if (from.use->calls() == 0) return;
  // A call that no Look has seen has just begun.
  SetDuration(MicrosSince(from.use->used_at().value_or(now), now),
              to->mutable_idle());
}

absl::Status Authorize(Call& call) {
  return call.Authorize(config::v1::VERB_ADMIN, kWholeServer);
}

}  // namespace

grpc::ServerUnaryReactor* AnswerWhoAmI(const CallGate& gate,
                                       const OperatorSource& /*source*/,
                                       grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) {
  return Answer<v1::WhoAmIRequest, v1::WhoAmIResponse>(
      gate, methods::kWhoAmI, context, request, response, nullptr,
      [](const auto& unary) -> absl::Status {
        absl::Status known = unary->call().Identify();
        if (!known.ok()) return known;
        v1::WhoAmIResponse& to = unary->response();
        to.set_principal(unary->call().Principal());
        to.set_peer(unary->call().Peer());
        to.set_access_rules(unary->call().has_rules());
        for (const PatternVerbs& each : unary->call().Permissions()) {
          SetPermission(each, to.add_permissions());
        }
        unary->Finish(absl::OkStatus());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AnswerListConnections(
    const CallGate& gate, const OperatorSource& source,
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<v1::ListConnectionsRequest, v1::ListConnectionsResponse>(
      gate, methods::kListConnections, context, request, response, nullptr,
      [&source](const auto& unary) -> absl::Status {
        absl::Status access = Authorize(unary->call());
        if (!access.ok()) return access;
        const v1::ListConnectionsRequest& asked = unary->request();
        if (asked.page_size() < 0) {
          return InvalidField("page_size",
                              absl::StrCat("must not be negative, as ",
                                           asked.page_size(), " is"));
        }
        uint64_t after = 0;
        if (!asked.page_token().empty() &&
            !absl::SimpleAtoi(asked.page_token(), &after)) {
          return InvalidField("page_token",
                              "must be the next_page_token of a previous page");
        }
        const auto most = static_cast<size_t>(
            asked.page_size() == 0
                ? kDefaultConnections
                : std::min(asked.page_size(), kMaxConnections));
        auto listed = source.list_connections(after, most + 1);
        const bool more = listed.size() > most;
        if (more) listed.pop_back();
        const SteadyTime now = std::chrono::steady_clock::now();
        const int64_t now_us = source.now_us();
        v1::ListConnectionsResponse& to = unary->response();
        for (const OpenConnections::Listed& each : listed) {
          SetConnection(each, now_us, now, to.add_connections());
        }
        if (more) to.set_next_page_token(absl::StrCat(listed.back().id));
        unary->Finish(absl::OkStatus());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AnswerCloseConnection(
    const CallGate& gate, const OperatorSource& source,
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<v1::CloseConnectionRequest, v1::CloseConnectionResponse>(
      gate, methods::kCloseConnection, context, request, response, nullptr,
      [&source](const auto& unary) -> absl::Status {
        absl::Status access = Authorize(unary->call());
        if (!access.ok()) return access;
        const uint64_t id = unary->request().id();
        if (id == 0) return InvalidField("id", "is required");
        if (!source.close_connection(id)) {
          return ErrorWithReason(absl::StatusCode::kNotFound,
                                 Reason::kConnectionNotFound,
                                 absl::StrCat("no connection has the id ", id,
                                              ": list those that are open"));
        }
        unary->Finish(absl::OkStatus());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AnswerListSlowCalls(
    const CallGate& gate, const OperatorSource& source,
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<v1::ListSlowCallsRequest, v1::ListSlowCallsResponse>(
      gate, methods::kListSlowCalls, context, request, response, nullptr,
      [&source](const auto& unary) -> absl::Status {
        absl::Status access = Authorize(unary->call());
        if (!access.ok()) return access;
        if (source.describe_slow_calls != nullptr) {
          source.describe_slow_calls(&unary->response());
        }
        unary->Finish(absl::OkStatus());
        return absl::OkStatus();
      });
}

}  // namespace timecache::server
