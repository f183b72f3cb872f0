#include "server/rpc/watch/event_codec.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "server/api/proto_time.h"
#include "server/api/wire_entry.h"
#include "server/base/check.h"
#include "server/base/clock.h"
#include "server/base/wire_format.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::server {
namespace {

using v1::ExpiredEvent;
using v1::WatchExpiredResponse;
constexpr uint8_t kEvents =
    WireTag(WatchExpiredResponse::kEventsFieldNumber, kLengthDelimited);
constexpr uint8_t kWatermark =
    WireTag(WatchExpiredResponse::kWatermarkFieldNumber, kLengthDelimited);
constexpr uint8_t kLost =
    WireTag(WatchExpiredResponse::kLostFieldNumber, kVarint);
constexpr uint8_t kResumeToken =
    WireTag(WatchExpiredResponse::kResumeTokenFieldNumber, kLengthDelimited);
constexpr uint8_t kNamespace =
    WireTag(ExpiredEvent::kNamespaceFieldNumber, kLengthDelimited);
static_assert(kNamespace == WireTag(WatchExpiredResponse::kNamespaceFieldNumber,
                                    kLengthDelimited));
// The responses of the three methods share these fields, as far as they have
// them.
template <typename Response>
constexpr bool kHasSameTags = WireTag(Response::kNamespaceFieldNumber,
                                      kLengthDelimited) ==
                              kNamespace&& WireTag(Response::kEventsFieldNumber,
                                                   kLengthDelimited) ==
                              kEvents&& WireTag(Response::kWatermarkFieldNumber,
                                                kLengthDelimited) == kWatermark;
static_assert(kHasSameTags<v1::ConsumeExpiredResponse>);
static_assert(kHasSameTags<v1::WatchExpiringResponse>);
static_assert(WireTag(v1::ConsumeExpiredResponse::kLostFieldNumber, kVarint) ==
              kLost);
constexpr uint8_t kEventKey =
    WireTag(ExpiredEvent::kKeyFieldNumber, kLengthDelimited);
constexpr uint8_t kValue =
    WireTag(ExpiredEvent::kValueFieldNumber, kLengthDelimited);
constexpr uint8_t kParts =
    WireTag(ExpiredEvent::kPartsFieldNumber, kLengthDelimited);
constexpr uint8_t kVersion =
    WireTag(ExpiredEvent::kVersionFieldNumber, kVarint);
constexpr uint8_t kPutTime =
    WireTag(ExpiredEvent::kPutTimeFieldNumber, kLengthDelimited);
constexpr uint8_t kDeadline =
    WireTag(ExpiredEvent::kDeadlineFieldNumber, kLengthDelimited);
constexpr uint8_t kDeathTime =
    WireTag(ExpiredEvent::kDeathTimeFieldNumber, kLengthDelimited);
constexpr uint8_t kDeliveredAt =
    WireTag(ExpiredEvent::kDeliveredAtFieldNumber, kLengthDelimited);
constexpr uint8_t kCause = WireTag(ExpiredEvent::kCauseFieldNumber, kVarint);
constexpr uint8_t kEventId =
    WireTag(ExpiredEvent::kEventIdFieldNumber, kVarint);
constexpr uint8_t kAttempt =
    WireTag(ExpiredEvent::kAttemptFieldNumber, kVarint);
constexpr uint8_t kReturns =
    WireTag(ExpiredEvent::kReturnsFieldNumber, kVarint);
constexpr uint8_t kOmittedValueBytes =
    WireTag(ExpiredEvent::kOmittedValueBytesFieldNumber, kVarint);
constexpr uint8_t kCreateTime =
    WireTag(ExpiredEvent::kCreateTimeFieldNumber, kLengthDelimited);
// The one tag of two bytes.
constexpr uint8_t kOwnTtl =
    WireTag(ExpiredEvent::kOwnTtlFieldNumber & 15, kLengthDelimited) | 0x80;
constexpr uint8_t kOwnTtlBehind = ExpiredEvent::kOwnTtlFieldNumber >> 4;

constexpr size_t kMaxLengthBytes = 5;
constexpr int64_t kNanosInMicro = 1'000;
// The most bytes of an event behind its value: of its own, and of its batch.
constexpr size_t kMaxTailBytes =
    (1 + kMaxVarintBytes) + 3 * wire::kMaxTimeBytes + (1 + wire::kMaxTimeBytes);
constexpr size_t kMaxDeathBytes = 2 * wire::kMaxTimeBytes + 2;

int64_t TimeUs(absl::string_view time) {
  int64_t time_us = 0;
  const char* at = time.data();
  while (at != time.data() + time.size()) {
    const auto tag = static_cast<uint8_t>(*at++);
    uint64_t value;
    at = GetVarint(at, &value);
    time_us += tag == wire::kSecondsTag
                   ? static_cast<int64_t>(value) * kMicrosPerSecond
                   : static_cast<int64_t>(value) / kNanosInMicro;
  }
  return time_us;
}

v1::ExpiryCause ToProto(Cause cause) {
  switch (cause) {
    case Cause::kExpired:
      return v1::EXPIRY_CAUSE_EXPIRED;
    case Cause::kEvicted:
      return v1::EXPIRY_CAUSE_EVICTED;
    case Cause::kRotated:
      return v1::EXPIRY_CAUSE_ROTATED;
    case Cause::kExpiring:
      return v1::EXPIRY_CAUSE_EXPIRING;
  }
  return v1::EXPIRY_CAUSE_UNSPECIFIED;
}

v1::DeadLetterReason ToProto(FailureReason reason) {
  switch (reason) {
    case FailureReason::kUnknown:
      break;
    case FailureReason::kNacked:
      return v1::DEAD_LETTER_REASON_NACKED;
    case FailureReason::kTimedOut:
      return v1::DEAD_LETTER_REASON_TIMED_OUT;
  }
  return v1::DEAD_LETTER_REASON_UNSPECIFIED;
}

// An event of this size as a field.
char* PutHead(size_t size, char* to) {
  *to++ = static_cast<char>(kEvents);
  return PutVarint(size, to);
}

// The frame is the part of every event before the key (the namespace) and after
// the deadline (death, delivery, cause); its first byte is the length of the
// former. A namespace has at most 63 bytes.
class WireEventFormat final : public EventFormat {
 public:
  std::string Frame(absl::string_view map, const Death& death) const override {
    char buffer[wire::kSlack + 256];
    char* const end = buffer + sizeof buffer;
    char* at = wire::WriteNumber(
        kCause, static_cast<uint64_t>(ToProto(death.cause)), end);
    at = wire::WriteTime(kDeliveredAt, death.published_us, at);
    at = wire::WriteTime(kDeathTime, death.death_us, at);
    const char* const behind = at;
    TIMECACHED_CHECK(map.size() < 0x80);
    at = wire::WriteBytes(kNamespace, map, at);
    at = wire::WriteByte(static_cast<uint8_t>(behind - at), at);
    return std::string(at, end);
  }

  size_t MaxOverhead(absl::string_view frame) const override {
    return (1 + kMaxLengthBytes) + frame.size() + 2 * (1 + kMaxLengthBytes) +
           kMaxTailBytes;
  }

  char* Write(absl::string_view frame, const server::ExpiredEvent& event,
              char* to) const override {
    const auto before_bytes = static_cast<uint8_t>(frame[0]);
    const absl::string_view before = frame.substr(1, before_bytes);
    // What is behind the value, to know the size.
    char buffer[wire::kSlack + kMaxTailBytes + kMaxDeathBytes];
    char* const end = buffer + sizeof buffer;
    char* at = end;
    if (event.own_ttl_us != 0) {
      at = wire::WriteTime(kOwnTtlBehind, event.own_ttl_us, at);
      at = wire::WriteByte(kOwnTtl, at);
    }
    at = wire::WriteTime(kCreateTime, event.create_us, at);
    at = wire::WriteRaw(frame.substr(1 + size_t{before_bytes}), at);
    at = wire::WriteTime(kDeadline, event.deadline_us, at);
    at = wire::WriteTime(kPutTime, event.put_us, at);
    at = wire::WriteNumber(kVersion, event.version, at);
    const absl::string_view tail(at, static_cast<size_t>(end - at));
    to = PutHead(before.size() + BytesSize(event.key) + BytesSize(event.value) +
                     tail.size(),
                 to);
    to = PutRaw(before, to);
    to = PutBytes(kEventKey, event.key, to);
    to = PutBytes(event.parts ? kParts : kValue, event.value, to);
    return PutRaw(tail, to);
  }

  server::ExpiredEvent Read(absl::string_view /*frame*/,
                            const char* from) const override {
    uint64_t size;
    const char* at = GetVarint(from + 1, &size);
    const char* const end = at + size;
    server::ExpiredEvent event;
    while (at != end) {
      const auto tag = static_cast<uint8_t>(*at++);
      if (tag == kOwnTtl) ++at;
      uint64_t number;
      at = GetVarint(at, &number);
      if (tag == kVersion) event.version = number;
      if ((tag & 7) != kLengthDelimited) continue;
      const absl::string_view bytes(at, number);
      at += number;
      if (tag == kEventKey) event.key = bytes;
      if (tag == kValue || tag == kParts) event.value = bytes;
      if (tag == kParts) event.parts = true;
      if (tag == kPutTime) event.put_us = TimeUs(bytes);
      if (tag == kDeadline) event.deadline_us = TimeUs(bytes);
      if (tag == kCreateTime) event.create_us = TimeUs(bytes);
      if (tag == kOwnTtl) event.own_ttl_us = TimeUs(bytes);
    }
    return event;
  }

  // Write puts it after the frame's first part.
  absl::string_view ReadKey(absl::string_view frame,
                            const char* from) const override {
    uint64_t size;
    const char* at = GetVarint(from + 1, &size);
    at = GetVarint(at + static_cast<uint8_t>(frame[0]) + 1, &size);
    return {at, size};
  }

  // A timecache.v1.ExpiredEvent. Letters are rare: what others than deliveries
  // have is left to protobuf.
  std::string WriteDeadLetter(absl::string_view frame,
                              const server::ExpiredEvent& event,
                              const DeadLetterNote& note) const override {
    std::string out(MaxOverhead(frame) + event.key.size() + event.value.size(),
                    '\0');
    out.resize(
        static_cast<size_t>(Write(frame, event, out.data()) - out.data()));
    uint64_t size;
    // Without the tag and the length that make it a field.
    out.erase(
        0, static_cast<size_t>(GetVarint(out.data() + 1, &size) - out.data()));
    ExpiredEvent rest;
    rest.set_event_id(note.event_id);
    rest.set_attempt(static_cast<uint32_t>(note.attempts));
    rest.set_returns(static_cast<uint32_t>(note.returns));
    v1::DeadLetter* const letter = rest.mutable_dead_letter();
    letter->set_group(note.group.data(), note.group.size());
    letter->set_attempts(static_cast<uint32_t>(note.attempts));
    letter->set_reason(ToProto(note.reason));
    SetTime(note.time_us, letter->mutable_time());
    rest.AppendToString(&out);
    return out;
  }
};

}  // namespace

const EventFormat* WireFormat() {
  static const WireEventFormat format;
  return &format;
}

std::string EncodeRest(absl::string_view map, int64_t watermark_us,
                       uint64_t lost, absl::string_view resume_token) {
  std::string rest(wire::kSlack + kMaxTailBytes + map.size() + 2 +
                       resume_token.size() + kMaxLengthBytes,
                   '\0');
  char* const end = rest.data() + rest.size();
  char* at = wire::WriteBytes(kResumeToken, resume_token, end);
  at = wire::WriteNumber(kLost, lost, at);
  at = wire::WriteTime(kWatermark, watermark_us, at);
  at = wire::WriteBytes(kNamespace, map, at);
  return std::string(at, end);
}

std::shared_ptr<const EventBatch> Filter(
    const std::shared_ptr<const EventBatch>& batch, absl::string_view map,
    absl::string_view key_prefix, bool keys_only) {
  if (key_prefix.empty() && !keys_only && batch->format() == WireFormat()) {
    return batch;
  }
  auto filtered =
      std::make_shared<EventBatch>(map, batch->death(), WireFormat());
  for (int i = 0; i < batch->size(); ++i) {
    if (!absl::StartsWith(batch->key(i), key_prefix)) continue;
    server::ExpiredEvent event = batch->event(i);
    if (keys_only) event.value = {};
    filtered->Add(event);
  }
  filtered->ShrinkToFit();
  return filtered;
}

void AppendDelivery(const Delivery& delivery, ValueForm form, std::string* to) {
  TIMECACHED_CHECK(delivery.batch->format() == WireFormat());
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
  char buffer[wire::kSlack + 4 * (1 + kMaxVarintBytes)];
  char* const end = buffer + sizeof buffer;
  char* at =
      wire::WriteNumber(kReturns, static_cast<uint64_t>(delivery.returns), end);
  at = wire::WriteNumber(kOmittedValueBytes, omitted, at);
  at = wire::WriteNumber(kAttempt, static_cast<uint64_t>(delivery.attempt), at);
  at = wire::WriteNumber(kEventId, delivery.event_id, at);
  const absl::string_view tail(at, static_cast<size_t>(end - at));
  size = before.size() + behind.size() + tail.size();
  const size_t begin = to->size();
  to->resize(begin + 1 + VarintSize(size) + size);
  PutRaw(tail,
         PutRaw(behind, PutRaw(before, PutHead(size, to->data() + begin))));
}

}  // namespace timecache::server
