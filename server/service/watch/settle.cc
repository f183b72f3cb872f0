#include "server/service/watch/settle.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/engine/error.h"
#include "server/engine/map/options.h"
#include "server/service/call/convert.h"
#include "server/service/call/status.h"

namespace timecache {
namespace {

absl::StatusOr<SettleAction> ToAction(v1::SettleAction action) {
  switch (action) {
    case v1::SETTLE_ACTION_ACK:
      return SettleAction::kAck;
    case v1::SETTLE_ACTION_NACK:
      return SettleAction::kNack;
    case v1::SETTLE_ACTION_PUT_BACK:
      return SettleAction::kPutBack;
    case v1::SETTLE_ACTION_UNSPECIFIED:
      return InvalidField("action", "must be set to ACK, NACK or PUT_BACK");
    default:
      return InvalidField("action", absl::StrCat("has no value ", action));
  }
}

// A google.rpc.Status, as gRPC would carry it.
void SetError(const absl::Status& status, google::rpc::Status* to) {
  to->ParseFromString(ToGrpcStatus(status).error_details());
}

}  // namespace

absl::StatusOr<Settlement> ToSettlement(const v1::Settlement& from) {
  const absl::StatusOr<SettleAction> action = ToAction(from.action());
  if (!action.ok()) return action.status();
  Settlement to;
  to.action = *action;
  to.event_id = from.event_id();
  // One that the engine cannot count to has not been given out either.
  to.attempt = static_cast<int>(
      std::min(from.attempt(), uint32_t{std::numeric_limits<int32_t>::max()}));
  if (from.has_delay()) {
    if (to.action != SettleAction::kNack) {
      return InvalidField("delay", "goes with NACK only");
    }
    const absl::StatusOr<int64_t> delay_us = ToMicros(from.delay(), "delay");
    if (!delay_us.ok()) return delay_us.status();
    to.delay_us = *delay_us;
  }
  if (from.has_ttl()) {
    if (to.action != SettleAction::kPutBack) {
      return InvalidField("ttl", "goes with PUT_BACK only");
    }
    const absl::StatusOr<int64_t> ttl_us = ToMicros(from.ttl(), "ttl");
    if (!ttl_us.ok()) return ttl_us.status();
    // To the engine 0 is the namespace's.
    if (*ttl_us < kMinTtlUs) return InvalidField("ttl", "must be at least 1ms");
    to.ttl_us = *ttl_us;
  }
  return to;
}

absl::Status Settle(const v1::SettleExpiredRequest& request,
                    const Registry& registry, int64_t now_us,
                    v1::SettleExpiredResponse* response,
                    RefusalCount* refused_by_limits) {
  const int count = request.settlements_size();
  if (count == 0 || count > kMaxSettlements) {
    return InvalidField("settlements",
                        absl::StrCat("must be 1 to ", kMaxSettlements,
                                     " settlements, not ", count));
  }
  const auto map = registry.Find(request.namespace_());
  if (!map.ok()) return map.status();

  std::vector<absl::Status> refused;
  std::vector<Settlement> settlements;
  refused.reserve(static_cast<size_t>(count));
  settlements.reserve(static_cast<size_t>(count));
  for (const v1::Settlement& from : request.settlements()) {
    const absl::StatusOr<Settlement> settlement = ToSettlement(from);
    refused.push_back(settlement.status());
    if (settlement.ok()) settlements.push_back(*settlement);
  }
  std::vector<SettleResult> results(settlements.size());
  absl::Status status = (*map)->groups().Settle(
      request.group(), settlements, now_us, absl::MakeSpan(results));
  if (!status.ok()) return status;

  response->mutable_results()->Reserve(count);
  auto result = results.begin();
  for (const absl::Status& refusal : refused) {
    v1::SettleResult* const to = response->add_results();
    if (!refusal.ok()) {
      SetError(refusal, to->mutable_error());
      continue;
    }
    if (!result->status.ok()) {
      SetError(result->status, to->mutable_error());
      if (refused_by_limits != nullptr) refused_by_limits->Add(result->status);
    }
    to->set_version(result->version);
    ++result;
  }
  return absl::OkStatus();
}

}  // namespace timecache
