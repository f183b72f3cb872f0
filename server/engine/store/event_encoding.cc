#include "server/engine/store/event_encoding.h"

#include "server/base/check.h"
#include "server/base/wire_time.h"

namespace timecache::server {
namespace {

// The fields of watch.proto.
constexpr uint8_t kEvents = WireTag(2, kLengthDelimited);
// Of ExpiredEvent.
constexpr uint8_t kEventNamespace = WireTag(1, kLengthDelimited);
constexpr uint8_t kEventKey = WireTag(2, kLengthDelimited);
constexpr uint8_t kEventValue = WireTag(3, kLengthDelimited);
constexpr uint8_t kEventVersion = WireTag(4, kVarint);
constexpr uint8_t kEventPutTime = WireTag(5, kLengthDelimited);
constexpr uint8_t kEventDeadline = WireTag(6, kLengthDelimited);
constexpr uint8_t kEventDeathTime = WireTag(7, kLengthDelimited);
constexpr uint8_t kEventDeliveredAt = WireTag(8, kLengthDelimited);
constexpr uint8_t kEventCause = WireTag(9, kVarint);
constexpr uint8_t kEventId = WireTag(10, kVarint);
constexpr uint8_t kEventAttempt = WireTag(11, kVarint);
constexpr uint8_t kEventParts = WireTag(13, kLengthDelimited);
constexpr uint8_t kEventReturns = WireTag(14, kVarint);
constexpr uint8_t kEventCreateTime = WireTag(15, kLengthDelimited);
// Fields 16 and 17: tags of two bytes, with the same second one.
constexpr uint8_t kEventOwnTtl = WireTag(0, kLengthDelimited) | 0x80;
constexpr uint8_t kEventDeadLetter = WireTag(1, kLengthDelimited) | 0x80;
constexpr uint8_t kSecondTagByte = 1;
// Of DeadLetter.
constexpr uint8_t kLetterGroup = WireTag(1, kLengthDelimited);
constexpr uint8_t kLetterAttempts = WireTag(2, kVarint);
constexpr uint8_t kLetterReason = WireTag(3, kVarint);
constexpr uint8_t kLetterTime = WireTag(4, kLengthDelimited);
constexpr uint8_t kLetterReasonText = WireTag(5, kLengthDelimited);

constexpr size_t kMaxEventLengthBytes = 5;
// The most bytes of an event behind its value: of its own, and of its batch.
constexpr size_t kMaxEventTailBytes =
    (1 + kMaxVarintBytes) + 3 * wire::kMaxTimeBytes + (1 + wire::kMaxTimeBytes);
constexpr size_t kMaxEventDeathBytes = 2 * wire::kMaxTimeBytes + 2;

}  // namespace

EventEncoding::EventEncoding(absl::string_view map, const Death& death) {
  char buffer[wire::kSlack + 256];
  char* const end = buffer + sizeof buffer;
  // The proto's first cause is the unspecified one.
  char* at = wire::WriteNumber(kEventCause,
                               static_cast<uint64_t>(death.cause) + 1, end);
  at = wire::WriteTime(kEventDeliveredAt, death.published_us, at);
  at = wire::WriteTime(kEventDeathTime, death.death_us, at);
  const char* const behind = at;
  TIMECACHED_CHECK(map.size() < 0x80);
  at = wire::WriteBytes(kEventNamespace, map, at);
  at = wire::WriteByte(static_cast<uint8_t>(behind - at), at);
  shared_ = std::string(at, end);
}

size_t EventEncoding::MaxOverhead() const {
  return (1 + kMaxEventLengthBytes) + shared_.size() +
         2 * (1 + kMaxEventLengthBytes) + kMaxEventTailBytes;
}

char* EventEncoding::Write(const ExpiredEvent& event, char* to) const {
  const absl::string_view shared = shared_;
  const auto before_bytes = static_cast<uint8_t>(shared[0]);
  const absl::string_view before = shared.substr(1, before_bytes);
  // What is behind the value, to know the size.
  char buffer[wire::kSlack + kMaxEventTailBytes + kMaxEventDeathBytes];
  char* const end = buffer + sizeof buffer;
  char* at = end;
  if (event.own_ttl_us != 0) {
    at = wire::WriteTime(kSecondTagByte, event.own_ttl_us, at);
    at = wire::WriteByte(kEventOwnTtl, at);
  }
  at = wire::WriteTime(kEventCreateTime, event.create_us, at);
  at = wire::WriteRaw(shared.substr(1 + size_t{before_bytes}), at);
  at = wire::WriteTime(kEventDeadline, event.deadline_us, at);
  at = wire::WriteTime(kEventPutTime, event.put_us, at);
  at = wire::WriteNumber(kEventVersion, event.version, at);
  const absl::string_view tail(at, static_cast<size_t>(end - at));
  *to++ = static_cast<char>(kEvents);
  to = PutVarint(before.size() + BytesSize(event.key) + BytesSize(event.value) +
                     tail.size(),
                 to);
  to = PutRaw(before, to);
  to = PutBytes(kEventKey, event.key, to);
  to = PutBytes(event.parts ? kEventParts : kEventValue, event.value, to);
  return PutRaw(tail, to);
}

ExpiredEvent EventEncoding::Read(const char* from) {
  uint64_t size;
  const char* at = GetVarint(from + 1, &size);
  const char* const end = at + size;
  ExpiredEvent event;
  while (at != end) {
    const auto tag = static_cast<uint8_t>(*at++);
    if (tag == kEventOwnTtl) ++at;
    uint64_t number;
    at = GetVarint(at, &number);
    if (tag == kEventVersion) event.version = number;
    if ((tag & 7) != kLengthDelimited) continue;
    const absl::string_view bytes(at, number);
    at += number;
    if (tag == kEventKey) event.key = bytes;
    if (tag == kEventValue || tag == kEventParts) event.value = bytes;
    if (tag == kEventParts) event.parts = true;
    if (tag == kEventPutTime) event.put_us = wire::ReadTimeUs(bytes);
    if (tag == kEventDeadline) event.deadline_us = wire::ReadTimeUs(bytes);
    if (tag == kEventCreateTime) event.create_us = wire::ReadTimeUs(bytes);
    if (tag == kEventOwnTtl) event.own_ttl_us = wire::ReadTimeUs(bytes);
  }
  return event;
}

// Write puts it after what all events have before it.
absl::string_view EventEncoding::ReadKey(const char* from) const {
  uint64_t size;
  const char* at = GetVarint(from + 1, &size);
  at = GetVarint(at + static_cast<uint8_t>(shared_[0]) + 1, &size);
  return {at, size};
}

std::string EventEncoding::WriteDeadLetter(const ExpiredEvent& event,
                                           const DeadLetterNote& note) const {
  std::string letter(MaxOverhead() + event.key.size() + event.value.size(),
                     '\0');
  letter.resize(
      static_cast<size_t>(Write(event, letter.data()) - letter.data()));
  uint64_t size;
  // Without the tag and the length that make it a field.
  letter.erase(0, static_cast<size_t>(GetVarint(letter.data() + 1, &size) -
                                      letter.data()));
  std::string rest(
      wire::kSlack + 128 + note.group.size() + note.reason_text.size(), '\0');
  char* const end = rest.data() + rest.size();
  char* at = wire::WriteBytes(kLetterReasonText, note.reason_text, end);
  at = wire::WriteTime(kLetterTime, note.time_us, at);
  at = wire::WriteNumber(kLetterReason, static_cast<uint64_t>(note.reason), at);
  at = wire::WriteNumber(kLetterAttempts, static_cast<uint64_t>(note.attempts),
                         at);
  at = wire::WriteBytes(kLetterGroup, note.group, at);
  at = wire::WriteHead(kSecondTagByte, end, at);
  at = wire::WriteByte(kEventDeadLetter, at);
  at =
      wire::WriteNumber(kEventReturns, static_cast<uint64_t>(note.returns), at);
  at = wire::WriteNumber(kEventAttempt, static_cast<uint64_t>(note.attempts),
                         at);
  at = wire::WriteNumber(kEventId, note.event_id, at);
  return letter.append(at, end);
}

}  // namespace timecache::server
