#include "server/rpc/watch/settle.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/proto_time.h"
#include "server/api/status.h"
#include "server/base/error.h"
#include "server/base/wire_reader.h"
#include "server/engine/store/namespace_options.h"
#include "server/rpc/call/request.h"
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

// A string field that is not UTF-8 is for the generated parser to refuse.
bool IsAscii(absl::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<uint8_t>(c) >= 0x80; });
}

v1::SettleExpiredResponse ToSettleResponse(const SettleAnswer& answer) {
  v1::SettleExpiredResponse response;
  const absl::Span<const absl::Status> checked = answer.request->checked();
  auto result = answer.results.begin();
  for (size_t i = 0; i < answer.request->count(); ++i) {
    v1::SettleResult* const to = response.add_results();
    if (!checked.empty() && !checked[i].ok()) {
      SetError(checked[i], to->mutable_error());
      continue;
    }
    if (!result->status.ok()) SetError(result->status, to->mutable_error());
    to->set_version(result->version);
    ++result;
  }
  return response;
}

}  // namespace

absl::StatusOr<Settlement> ToSettlement(const v1::Settlement& from) {
  Settlement to;
  if (absl::Status status = ReadSettlement(from, &to); !status.ok()) {
    return status;
  }
  return to;
}

// False for any other request, malformed or not.
bool SettleRequest::ReadAcks(absl::string_view bytes) {
  using Request = v1::SettleExpiredRequest;
  constexpr size_t kLeastBytes = 16;
  settlements_.reserve(std::min(bytes.size() / kLeastBytes, kMaxSettlements));
  for (WireReader reader(bytes); !reader.done();) {
    uint8_t tag;
    absl::string_view field;
    if (!reader.Tag(&tag) || !reader.Bytes(&field)) return false;
    switch (tag) {
      case WireTag(Request::kNamespaceFieldNumber, kLengthDelimited):
        if (!IsAscii(field)) return false;
        namespace_name_.assign(field.data(), field.size());
        break;
      case WireTag(Request::kGroupFieldNumber, kLengthDelimited):
        if (!IsAscii(field)) return false;
        group_.assign(field.data(), field.size());
        break;
      case WireTag(Request::kSettlementsFieldNumber, kLengthDelimited): {
        if (settlements_.size() == kMaxSettlements) return false;
        WireReader one(field);
        absl::string_view token;
        absl::string_view ack;
        if (!one.Skip(WireTag(v1::Settlement::kDeliveryTokenFieldNumber,
                              kLengthDelimited)) ||
            !one.Bytes(&token) ||
            !one.Skip(
                WireTag(v1::Settlement::kAckFieldNumber, kLengthDelimited)) ||
            !one.Rest(&ack) || !ack.empty() ||
            !ReadDeliveryToken(token, &settlements_.emplace_back()).ok()) {
          return false;
        }
        break;
      }
      default:
        return false;
    }
  }
  count_ = settlements_.size();
  return true;
}

// What was parsed.
void SettleRequest::Convert() {
  namespace_name_ = parsed_->namespace_();
  group_ = parsed_->group();
  count_ = static_cast<size_t>(parsed_->settlements_size());
  if (count_ > kMaxSettlements) return;
  checked_.reserve(count_);
  for (const v1::Settlement& from : parsed_->settlements()) {
    checked_.push_back(ReadSettlement(from, &settlements_.emplace_back()));
    if (!checked_.back().ok()) settlements_.pop_back();
  }
}

absl::Status TakeRequest(const grpc::ByteBuffer& bytes, SettleRequest* request,
                         absl::string_view large_field) {
  absl::Status status = CheckRequestSize(bytes, large_field);
  if (!status.ok()) return status;
  grpc::Slice slice;
  const bool whole = bytes.Valid() && (bytes.TrySingleSlice(&slice).ok() ||
                                       bytes.DumpToSingleSlice(&slice).ok());
  if (whole && request->ReadAcks({reinterpret_cast<const char*>(slice.begin()),
                                  slice.size()})) {
    // gRPC's, which reads it no more; its API gives handlers a const one.
    const_cast<grpc::ByteBuffer&>(bytes).Clear();
    return absl::OkStatus();
  }
  request->settlements_.clear();
  request->parsed_ = std::make_unique<v1::SettleExpiredRequest>();
  status = TakeRequest(bytes, request->parsed_.get(), large_field);
  if (status.ok()) request->Convert();
  return status;
}

grpc::ByteBuffer ToBytes(const SettleAnswer& answer, ResponseAccount* account) {
  const bool plain =
      answer.request->checked().empty() &&
      std::all_of(answer.results.begin(), answer.results.end(),
                  [](const SettleResult& result) {
                    return result.status.ok() && result.version == 0;
                  });
  if (!plain) return ToBytes(ToSettleResponse(answer), account);
  // Of an ACK the result is empty.
  constexpr uint8_t kResult =
      WireTag(v1::SettleExpiredResponse::kResultsFieldNumber, kLengthDelimited);
  const size_t size = 2 * answer.results.size();
  const grpc::Slice slice = NewSlice(account, size);
  auto* const to = const_cast<uint8_t*>(slice.begin());
  for (size_t i = 0; i < size; i += 2) {
    to[i] = kResult;
    to[i + 1] = 0;
  }
  return grpc::ByteBuffer(&slice, 1);
}

void Settle(const SettleRequest& request, Store* store, SettleAnswer* answer,
            SettleDone done) {
  const size_t count = request.count();
  if (count == 0 || count > kMaxSettlements) {
    return done(InvalidField("settlements",
                             absl::StrCat("must be 1 to ", kMaxSettlements,
                                          " settlements, not ", count)),
                RefusalCount());
  }
  answer->request = &request;
  answer->results.resize(request.settlements().size());
  store->Settle({request.namespace_name(), request.group()},
                request.settlements(), absl::MakeSpan(answer->results),
                [answer, done = std::move(done)](absl::Status status) mutable {
                  RefusalCount refused;
                  if (status.ok()) {
                    for (const SettleResult& result : answer->results) {
                      refused.Add(result.status);
                    }
                  }
                  done(std::move(status), refused);
                });
}

}  // namespace timecache::server
