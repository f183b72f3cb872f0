#include "timecache/settle.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/events/shared_settles.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "timecache/client.h"

namespace timecache {
namespace {

v1::Settlement MakeSettlement(const Settlement& settlement) {
  v1::Settlement proto;
  proto.set_delivery_token(settlement.delivery_token);
  switch (settlement.how.action) {
    case SettleAction::kAck:
      proto.mutable_ack();
      break;
    case SettleAction::kNack:
      if (settlement.how.delay) {
        *proto.mutable_nack()->mutable_delay() = ToProto(*settlement.how.delay);
      }
      proto.mutable_nack()->set_reason(settlement.how.reason);
      break;
    case SettleAction::kPutBack:
      SetLife(settlement.how, *proto.mutable_put_back());
      break;
    case SettleAction::kExtend:
      proto.mutable_extend();
      break;
    case SettleAction::kTerminate:
      proto.mutable_terminate()->set_reason(settlement.how.reason);
      break;
  }
  return proto;
}

}  // namespace

absl::StatusOr<std::vector<SettleResult>> Client::Settle(
    std::string_view group, const std::vector<Settlement>& settlements,
    const CallOptions& call) const {
  std::vector<SettleResult> results;
  if (settlements.empty()) return results;
  v1::SettleExpiredRequest request;
  request.set_namespace_(options_.default_namespace);
  request.set_group(std::string(group));
  for (const Settlement& settlement : settlements) {
    *request.add_settlements() = MakeSettlement(settlement);
  }
  const CallPlan plan(options_, call, Repeat::kUnsafe);
  const auto send = [&](const v1::SettleExpiredRequest& sent) {
    auto response =
        Call(core_->endpoints, &Endpoint::cache,
             &v1::TimeCacheService::Stub::SettleExpired, sent, plan);
    if (response.ok() && response->results_size() != sent.settlements_size()) {
      response = absl::InternalError(absl::StrCat(
          "the server gave ", response->results_size(), " results for ",
          sent.settlements_size(), " settlements: is it of this version?"));
    }
    return response;
  };
  const auto response =
      SharedSettles::Takes(options_, call, request)
          ? core_->shared_settles.Do(std::move(request), plan.deadline(), send)
          : send(request);
  if (!response.ok()) return response.status();
  results.reserve(settlements.size());
  for (const v1::SettleResult& result : response->results()) {
    results.push_back(
        {.status = FromRpcStatus(result.error()), .version = result.version()});
  }
  return results;
}

}  // namespace timecache
