#include "server/rpc/watch/event_codec.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "server/base/wire_time.h"
#include "server/rpc/watch/delivery_token.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::server {
namespace {

using v1::ExpiredEvent;
using v1::WatchExpiredResponse;
static_assert(kStreamEvents == WatchExpiredResponse::kEventsFieldNumber &&
              kFetchedEvents == v1::FetchExpiredResponse::kEventsFieldNumber);
constexpr uint8_t kWatermark =
    WireTag(WatchExpiredResponse::kWatermarkFieldNumber, kLengthDelimited);
constexpr uint8_t kLost =
    WireTag(WatchExpiredResponse::kLostFieldNumber, kVarint);
constexpr uint8_t kResumeToken =
    WireTag(WatchExpiredResponse::kResumeTokenFieldNumber, kLengthDelimited);
constexpr uint8_t kDelivered =
    WireTag(v1::ConsumeExpiredResponse::kDeliveredWatermarkFieldNumber,
            kLengthDelimited);
constexpr uint8_t kNamespace =
    WireTag(WatchExpiredResponse::kNamespaceFieldNumber, kLengthDelimited);
constexpr uint8_t kEventId =
    WireTag(ExpiredEvent::kEventIdFieldNumber, kVarint);
constexpr uint8_t kAttempt =
    WireTag(ExpiredEvent::kAttemptFieldNumber, kVarint);
constexpr uint8_t kReturns =
    WireTag(ExpiredEvent::kReturnsFieldNumber, kVarint);
constexpr uint8_t kOmittedValueBytes =
    WireTag(ExpiredEvent::kOmittedValueBytesFieldNumber, kVarint);
constexpr uint8_t kOmittedChangeBytes =
    WireTag(v1::ChangeEvent::kOmittedValueBytesFieldNumber, kVarint);
// A tag of two bytes.
constexpr uint8_t kDeliveryToken =
    WireTag(ExpiredEvent::kDeliveryTokenFieldNumber - 16, kLengthDelimited) |
    0x80;
constexpr uint8_t kLastReason =
    WireTag(ExpiredEvent::kLastReasonFieldNumber - 16, kLengthDelimited) | 0x80;
constexpr uint8_t kSecondTokenTagByte = 1;
}  // namespace

std::string EncodeRest(absl::string_view map, int64_t watermark_us,
                       uint64_t lost, absl::string_view resume_token,
                       std::optional<int64_t> delivered_us) {
  std::string rest(wire::kSlack + 64 + map.size() + resume_token.size(), '\0');
  char* const end = rest.data() + rest.size();
  char* at = end;
  if (delivered_us.has_value()) {
    at = wire::WriteTime(kDelivered, *delivered_us, at);
  } else {
    at = wire::WriteBytes(kResumeToken, resume_token, at);
  }
  at = wire::WriteNumber(kLost, lost, at);
  at = wire::WriteTime(kWatermark, watermark_us, at);
  at = wire::WriteBytes(kNamespace, map, at);
  return std::string(at, end);
}

std::string EncodeFetchRest(int64_t watermark_us, uint64_t lost,
                            int64_t delivered_us) {
  using v1::FetchExpiredResponse;
  constexpr uint8_t kFetchWatermark =
      WireTag(FetchExpiredResponse::kWatermarkFieldNumber, kLengthDelimited);
  constexpr uint8_t kFetchLost =
      WireTag(FetchExpiredResponse::kLostFieldNumber, kVarint);
  constexpr uint8_t kFetchDelivered = WireTag(
      FetchExpiredResponse::kDeliveredWatermarkFieldNumber, kLengthDelimited);
  char buffer[wire::kSlack + 64];
  char* const end = buffer + sizeof buffer;
  char* at = wire::WriteTime(kFetchDelivered, delivered_us, end);
  at = wire::WriteNumber(kFetchLost, lost, at);
  at = wire::WriteTime(kFetchWatermark, watermark_us, at);
  return std::string(at, end);
}

std::shared_ptr<const EventBatch> Filter(
    const std::shared_ptr<const EventBatch>& batch,
    absl::string_view key_prefix, bool keys_only) {
  if (key_prefix.empty() && !keys_only) return batch;
  const std::shared_ptr<EventBatch> filtered = batch->NewLike();
  for (int i = 0; i < batch->size(); ++i) {
    if (!absl::StartsWith(batch->key(i), key_prefix)) continue;
    server::ExpiredEvent event = batch->event(i);
    if (keys_only) event.value = {};
    filtered->Add(event);
  }
  filtered->ShrinkToFit();
  return filtered;
}

void AppendDelivery(const Delivery& delivery, ValueForm form, std::string* to,
                    int field) {
  uint64_t size;
  const char* const body =
      GetVarint(delivery.batch->encoded(delivery.index).data() + 1, &size);
  absl::string_view before(body, size);
  absl::string_view behind;
  uint64_t omitted = 0;
  if (form != ValueForm::kWhole) {
    const absl::string_view value = delivery.event().value;
    if (form == ValueForm::kOmitted) omitted = value.size();
    if (!value.empty()) {
      const auto end = static_cast<size_t>(value.data() + value.size() - body);
      behind = before.substr(end);
      before = before.substr(0, end - BytesSize(value));
    }
  }
  char buffer[wire::kSlack + 4 * (1 + kMaxVarintBytes) + 3 +
              kMaxDeliveryTokenBytes + 4 + kMaxReasonBytes];
  char* const end = buffer + sizeof buffer;
  char* at = end;
  if (delivery.reason_text != nullptr) {
    at = wire::WriteBytes(kSecondTokenTagByte, *delivery.reason_text, at);
    at = wire::WriteByte(kLastReason, at);
  }
  if (delivery.attempt > 0) {
    char token[kMaxDeliveryTokenBytes];
    at = wire::WriteBytes(
        kSecondTokenTagByte,
        {token,
         static_cast<size_t>(WriteDeliveryToken(delivery, token) - token)},
        at);
    at = wire::WriteByte(kDeliveryToken, at);
  }
  at = wire::WriteNumber(kReturns, static_cast<uint64_t>(delivery.returns), at);
  at = wire::WriteNumber(delivery.batch->cause() == Cause::kChanged
                             ? kOmittedChangeBytes
                             : kOmittedValueBytes,
                         omitted, at);
  at = wire::WriteNumber(kAttempt, static_cast<uint64_t>(delivery.attempt), at);
  at = wire::WriteNumber(kEventId, delivery.event_id, at);
  const absl::string_view tail(at, static_cast<size_t>(end - at));
  size = before.size() + behind.size() + tail.size();
  const size_t begin = to->size();
  to->resize(begin + 1 + VarintSize(size) + size);
  char* out = to->data() + begin;
  *out++ = static_cast<char>(WireTag(field, kLengthDelimited));
  out = PutRaw(before, PutVarint(size, out));
  PutRaw(tail, PutRaw(behind, out));
}

}  // namespace timecache::server
