#include "server/rpc/watch/event_codec.h"

#include <cstddef>
#include <cstring>

#include "absl/strings/match.h"
#include "server/api/proto_time.h"
#include "server/base/check.h"
#include "server/base/clock.h"
#include "server/base/wire_format.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::server {
namespace {

constexpr char Tag(int number, int wire_type) {
  return static_cast<char>(WireTag(number, wire_type));
}

using v1::ExpiredEvent;
using v1::WatchExpiredResponse;
constexpr char kEvents =
    Tag(WatchExpiredResponse::kEventsFieldNumber, kLengthDelimited);
constexpr char kWatermark =
    Tag(WatchExpiredResponse::kWatermarkFieldNumber, kLengthDelimited);
constexpr char kLost = Tag(WatchExpiredResponse::kLostFieldNumber, kVarint);
constexpr char kResumeToken =
    Tag(WatchExpiredResponse::kResumeTokenFieldNumber, kLengthDelimited);
constexpr char kNamespace =
    Tag(ExpiredEvent::kNamespaceFieldNumber, kLengthDelimited);
static_assert(kNamespace == Tag(WatchExpiredResponse::kNamespaceFieldNumber,
                                kLengthDelimited));
// The responses of the three methods share these fields, as far as they have
// them.
template <typename Response>
constexpr bool kHasSameTags = Tag(Response::kNamespaceFieldNumber,
                                  kLengthDelimited) ==
                              kNamespace&& Tag(Response::kEventsFieldNumber,
                                               kLengthDelimited) ==
                              kEvents&& Tag(Response::kWatermarkFieldNumber,
                                            kLengthDelimited) == kWatermark;
static_assert(kHasSameTags<v1::ConsumeExpiredResponse>);
static_assert(kHasSameTags<v1::WatchExpiringResponse>);
static_assert(Tag(v1::ConsumeExpiredResponse::kLostFieldNumber, kVarint) ==
              kLost);
constexpr char kEventKey = Tag(ExpiredEvent::kKeyFieldNumber, kLengthDelimited);
constexpr char kValue = Tag(ExpiredEvent::kValueFieldNumber, kLengthDelimited);
constexpr char kParts = Tag(ExpiredEvent::kPartsFieldNumber, kLengthDelimited);
constexpr char kVersion = Tag(ExpiredEvent::kVersionFieldNumber, kVarint);
constexpr char kPutTime =
    Tag(ExpiredEvent::kPutTimeFieldNumber, kLengthDelimited);
constexpr char kDeadline =
    Tag(ExpiredEvent::kDeadlineFieldNumber, kLengthDelimited);
constexpr char kDeathTime =
    Tag(ExpiredEvent::kDeathTimeFieldNumber, kLengthDelimited);
constexpr char kDeliveredAt =
    Tag(ExpiredEvent::kDeliveredAtFieldNumber, kLengthDelimited);
constexpr char kCause = Tag(ExpiredEvent::kCauseFieldNumber, kVarint);
constexpr char kEventId = Tag(ExpiredEvent::kEventIdFieldNumber, kVarint);
constexpr char kAttempt = Tag(ExpiredEvent::kAttemptFieldNumber, kVarint);
constexpr char kReturns = Tag(ExpiredEvent::kReturnsFieldNumber, kVarint);
constexpr char kOmittedValueBytes =
    Tag(ExpiredEvent::kOmittedValueBytesFieldNumber, kVarint);
constexpr char kCreateTime =
    Tag(ExpiredEvent::kCreateTimeFieldNumber, kLengthDelimited);
// The one tag of two bytes.
constexpr char kOwnTtl =
    Tag(ExpiredEvent::kOwnTtlFieldNumber & 15, kLengthDelimited) |
    static_cast<char>(0x80);
constexpr char kOwnTtlBehind = ExpiredEvent::kOwnTtlFieldNumber >> 4;
// Of google.protobuf.Timestamp.
constexpr char kSeconds = Tag(1, kVarint);
constexpr char kNanos = Tag(2, kVarint);

constexpr size_t kMaxLengthBytes = 5;
constexpr int64_t kNanosInMicro = 1'000;
// Tag, length; tag and seconds; tag and nanos, which are less than 2^35.
constexpr size_t kMaxTimeBytes = 2 + (1 + kMaxVarintBytes) + (1 + 5);

// A field that is left out if it is 0 or empty, as proto3 has it.
char* PutNumber(char tag, uint64_t value, char* to) {
  if (value == 0) return to;
  *to++ = tag;
  return PutVarint(value, to);
}

size_t NumberSize(uint64_t value) {
  return value == 0 ? 0 : 1 + VarintSize(value);
}

char* PutRaw(absl::string_view bytes, char* to) {
  // A view of nothing may be null, which memcpy must not be given.
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}

char* PutBytes(char tag, absl::string_view bytes, char* to) {
  if (bytes.empty()) return to;
  *to++ = tag;
  return PutRaw(bytes, PutVarint(bytes.size(), to));
}

size_t BytesSize(absl::string_view bytes) {
  return bytes.empty() ? 0 : 1 + VarintSize(bytes.size()) + bytes.size();
}

// A google.protobuf.Timestamp, or a positive Duration.
class Time {
 public:
  explicit Time(int64_t time_us) {
    const TimeParts parts = PartsOfTime(time_us);
    seconds_ = static_cast<uint64_t>(parts.seconds);
    nanos_ = static_cast<uint64_t>(parts.nanos);
    size_ = NumberSize(seconds_) + NumberSize(nanos_);
  }

  // As a field. It is there even if the time is 0.
  size_t FieldSize() const { return 2 + size_; }
  char* Put(char tag, char* to) const {
    *to++ = tag;
    *to++ = static_cast<char>(size_);
    return PutNumber(kNanos, nanos_, PutNumber(kSeconds, seconds_, to));
  }

 private:
  uint64_t seconds_;
  uint64_t nanos_;
  size_t size_;
};

int64_t TimeUs(absl::string_view time) {
  int64_t time_us = 0;
  const char* at = time.data();
  while (at != time.data() + time.size()) {
    const char tag = *at++;
    uint64_t value;
    at = GetVarint(at, &value);
    time_us += tag == kSeconds ? static_cast<int64_t>(value) * kMicrosPerSecond
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

// The frame is the part of every event before the key (the namespace) and after
// the deadline (death, delivery, cause); its first byte is the length of the
// former. A namespace has at most 63 bytes.
class WireEventFormat final : public EventFormat {
 public:
  std::string Frame(absl::string_view map, const Death& death) const override {
    const size_t before = BytesSize(map);
    const Time death_time(death.death_us);
    const Time delivered_at(death.published_us);
    const auto cause = static_cast<uint64_t>(ToProto(death.cause));
    std::string frame(1 + before + death_time.FieldSize() +
                          delivered_at.FieldSize() + NumberSize(cause),
                      '\0');
    char* to = frame.data();
    *to++ = static_cast<char>(before);
    to = PutBytes(kNamespace, map, to);
    to = death_time.Put(kDeathTime, to);
    to = delivered_at.Put(kDeliveredAt, to);
    PutNumber(kCause, cause, to);
    return frame;
  }

  size_t MaxOverhead(absl::string_view frame) const override {
    return (1 + kMaxLengthBytes) + frame.size() + 2 * (1 + kMaxLengthBytes) +
           (1 + kMaxVarintBytes) + 3 * kMaxTimeBytes + (1 + kMaxTimeBytes);
  }

  char* Write(absl::string_view frame, const server::ExpiredEvent& event,
              char* to) const override {
    const auto before_bytes = static_cast<uint8_t>(frame[0]);
    const absl::string_view before = frame.substr(1, before_bytes);
    const absl::string_view behind = frame.substr(1 + size_t{before_bytes});
    const Time put_time(event.put_us);
    const Time deadline(event.deadline_us);
    const Time create_time(event.create_us);
    const Time own_ttl(event.own_ttl_us);
    const bool has_own = event.own_ttl_us != 0;
    const size_t size = before.size() + BytesSize(event.key) +
                        BytesSize(event.value) + NumberSize(event.version) +
                        put_time.FieldSize() + deadline.FieldSize() +
                        behind.size() + create_time.FieldSize() +
                        (has_own ? 1 + own_ttl.FieldSize() : 0);
    *to++ = kEvents;
    to = PutVarint(size, to);
    to = PutRaw(before, to);
    to = PutBytes(kEventKey, event.key, to);
    to = PutBytes(event.parts ? kParts : kValue, event.value, to);
    to = PutNumber(kVersion, event.version, to);
    to = put_time.Put(kPutTime, to);
    to = deadline.Put(kDeadline, to);
    to = PutRaw(behind, to);
    to = create_time.Put(kCreateTime, to);
    if (!has_own) return to;
    *to++ = kOwnTtl;
    return own_ttl.Put(kOwnTtlBehind, to);
  }

  server::ExpiredEvent Read(absl::string_view /*frame*/,
                            const char* from) const override {
    uint64_t size;
    const char* at = GetVarint(from + 1, &size);
    const char* const end = at + size;
    server::ExpiredEvent event;
    while (at != end) {
      const char tag = *at++;
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
  const Time watermark(watermark_us);
  std::string rest(BytesSize(map) + watermark.FieldSize() + NumberSize(lost) +
                       BytesSize(resume_token),
                   '\0');
  char* to = PutBytes(kNamespace, map, rest.data());
  to = watermark.Put(kWatermark, to);
  to = PutNumber(kLost, lost, to);
  PutBytes(kResumeToken, resume_token, to);
  return rest;
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
  const auto attempt = static_cast<uint64_t>(delivery.attempt);
  const auto returns = static_cast<uint64_t>(delivery.returns);
  size = before.size() + behind.size() + NumberSize(delivery.event_id) +
         NumberSize(attempt) + NumberSize(omitted) + NumberSize(returns);
  const size_t begin = to->size();
  to->resize(begin + 1 + VarintSize(size) + size);
  char* at = to->data() + begin;
  *at++ = kEvents;
  at = PutVarint(size, at);
  at = PutRaw(before, at);
  at = PutRaw(behind, at);
  at = PutNumber(kEventId, delivery.event_id, at);
  at = PutNumber(kAttempt, attempt, at);
  at = PutNumber(kOmittedValueBytes, omitted, at);
  PutNumber(kReturns, returns, at);
}

}  // namespace timecache::server
