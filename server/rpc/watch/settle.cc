#include "server/rpc/watch/settle.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/api/proto_time.h"
#include "server/api/status.h"
#include "server/base/error.h"
#include "server/engine/store/namespace_options.h"
#include "server/rpc/watch/delivery_token.h"

namespace timecache::server {
namespace {

absl::Status SetPutBack(const v1::PutBack& from, Settlement* to) {
  if (from.has_ttl()) {
    const absl::StatusOr<int64_t> ttl_us = ToMicros(from.ttl(), "ttl");
    if (!ttl_us.ok()) return ttl_us.status();
    // To the engine 0 is the one that the entry had.
    if (*ttl_us < kMinTtlUs) {
      return InvalidField("ttl", "must be at least 1ms");
    }
    to->ttl_us = *ttl_us;
  }
  to->allow_past = from.allow_past();
  if (!from.has_expire_at()) return absl::OkStatus();
  const absl::StatusOr<int64_t> time_us =
      ToMicros(from.expire_at(), "expire_at");
  if (time_us.ok()) to->expire_at_us = *time_us;
  return time_us.status();
}

absl::Status SetReason(const std::string& reason, absl::string_view field,
                       Settlement* to) {
  if (reason.size() > kMaxReasonBytes) {
    return InvalidField(field, absl::StrCat("must be at most ", kMaxReasonBytes,
                                            " bytes, not ", reason.size()));
  }
  to->reason = reason;
  return absl::OkStatus();
}

absl::Status SetAction(const v1::Settlement& from, Settlement* to) {
  switch (from.action_case()) {
    case v1::Settlement::kAck:
      to->action = SettleAction::kAck;
      return absl::OkStatus();
    case v1::Settlement::kNack: {
      to->action = SettleAction::kNack;
      if (absl::Status status =
              SetReason(from.nack().reason(), "nack.reason", to);
          !status.ok()) {
        return status;
      }
      if (!from.nack().has_delay()) return absl::OkStatus();
      const absl::StatusOr<int64_t> delay_us =
          ToMicros(from.nack().delay(), "delay");
      if (delay_us.ok()) to->delay_us = *delay_us;
      return delay_us.status();
    }
    case v1::Settlement::kPutBack:
      to->action = SettleAction::kPutBack;
      return SetPutBack(from.put_back(), to);
    case v1::Settlement::kExtend:
      to->action = SettleAction::kExtend;
      return absl::OkStatus();
    case v1::Settlement::kTerminate:
      to->action = SettleAction::kTerminate;
      return SetReason(from.terminate().reason(), "terminate.reason", to);
    case v1::Settlement::ACTION_NOT_SET:
      break;
  }
  return InvalidField("action",
                      "must be set: ack, nack, put_back, extend or terminate");
}

absl::Status ReadSettlement(const v1::Settlement& from, Settlement* to) {
  absl::Status status = ReadDeliveryToken(from.delivery_token(), to);
  return status.ok() ? SetAction(from, to) : status;
}

std::string SettlementFieldPath(const std::string& field) {
  if (field == "delay") return "nack.delay";
  const bool of_put_back =
      field == "ttl" || field == "expire_at" || field == "allow_past";
  return of_put_back ? absl::StrCat("put_back.", field) : field;
}

// A google.rpc.Status, as gRPC would carry it.
void SetError(const absl::Status& status, google::rpc::Status* to) {
  to->ParseFromString(
      ToGrpcStatus(status, SettlementFieldPath).error_details());
}

// A request, the store's input from it, and the store's results.
struct Settling {
  explicit Settling(const v1::SettleExpiredRequest& request) {
    const auto count = static_cast<size_t>(request.settlements_size());
    checked.reserve(count);
    settlements.reserve(count);
    for (const v1::Settlement& from : request.settlements()) {
      settlements.emplace_back();
      checked.push_back(ReadSettlement(from, &settlements.back()));
      if (!checked.back().ok()) settlements.pop_back();
    }
    results.resize(settlements.size());
  }

  void Answer(v1::SettleExpiredResponse* response,
              RefusalCount* refused_by_limits) const {
    response->mutable_results()->Reserve(static_cast<int>(checked.size()));
    auto result = results.begin();
    for (const absl::Status& check : checked) {
      v1::SettleResult* const to = response->add_results();
      if (!check.ok()) {
        SetError(check, to->mutable_error());
        continue;
      }
      if (!result->status.ok()) {
        SetError(result->status, to->mutable_error());
        refused_by_limits->Add(result->status);
      }
      to->set_version(result->version);
      ++result;
    }
  }

  // Of each settlement of the request: whether it is in `settlements`.
  std::vector<absl::Status> checked;
  std::vector<Settlement> settlements;
  std::vector<SettleResult> results;
};

}  // namespace

absl::StatusOr<Settlement> ToSettlement(const v1::Settlement& from) {
  Settlement to;
  if (absl::Status status = ReadSettlement(from, &to); !status.ok()) {
    return status;
  }
  return to;
}

void Settle(const v1::SettleExpiredRequest& request, Store* store,
            v1::SettleExpiredResponse* response, SettleDone done) {
  const int count = request.settlements_size();
  if (count == 0 || count > kMaxSettlements) {
    return done(InvalidField("settlements",
                             absl::StrCat("must be 1 to ", kMaxSettlements,
                                          " settlements, not ", count)),
                RefusalCount());
  }
  auto owned = std::make_unique<Settling>(request);
  auto* const settling = owned.get();
  store->Settle({request.namespace_(), request.group()}, settling->settlements,
                absl::MakeSpan(settling->results),
                [owned = std::move(owned), response,
                 done = std::move(done)](absl::Status status) mutable {
                  RefusalCount refused;
                  if (status.ok()) owned->Answer(response, &refused);
                  done(std::move(status), refused);
                });
}

}  // namespace timecache::server
