#include "server/engine/store/event_encoding.h"

#include "absl/strings/match.h"
#include "server/base/check.h"
#include "server/base/wire_reader.h"
#include "server/base/wire_time.h"
#include "server/engine/store/traceparent.h"

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
// Fields 16, 17 and 20: tags of two bytes, with the same second one.
constexpr uint8_t kEventOwnTtl = WireTag(0, kLengthDelimited) | 0x80;
constexpr uint8_t kEventDeadLetter = WireTag(1, kLengthDelimited) | 0x80;
constexpr uint8_t kEventTraceparent = WireTag(4, kLengthDelimited) | 0x80;
constexpr uint8_t kSecondTagByte = 1;
// Of DeadLetter.
constexpr uint8_t kLetterGroup = WireTag(1, kLengthDelimited);
constexpr uint8_t kLetterAttempts = WireTag(2, kVarint);
constexpr uint8_t kLetterReason = WireTag(3, kVarint);
constexpr uint8_t kLetterTime = WireTag(4, kLengthDelimited);
constexpr uint8_t kLetterReasonText = WireTag(5, kLengthDelimited);

// Of ChangeEvent, the field `changes` of WatchChangesResponse: kEvents, too.
constexpr uint8_t kChangeKind = WireTag(1, kVarint);
constexpr uint8_t kChangeKey = WireTag(2, kLengthDelimited);
constexpr uint8_t kChangeValue = WireTag(3, kLengthDelimited);
constexpr uint8_t kChangeParts = WireTag(4, kLengthDelimited);
constexpr uint8_t kChangeVersion = WireTag(5, kVarint);
constexpr uint8_t kChangeDeadline = WireTag(6, kLengthDelimited);
constexpr uint8_t kChangeTime = WireTag(7, kLengthDelimited);

constexpr size_t kMaxEventLengthBytes = 5;
// The most bytes of an event behind its value: of its own, and of its batch.
constexpr size_t kMaxEventTailBytes =
    (1 + kMaxVarintBytes) + 3 * wire::kMaxTimeBytes + (1 + wire::kMaxTimeBytes);
constexpr size_t kMaxEventDeathBytes = 2 * wire::kMaxTimeBytes + 2;
// Of an event that has one.
constexpr size_t kTraceFieldBytes = 3 + kTraceTextBytes;

}  // namespace

EventEncoding::EventEncoding(absl::string_view map, const Death& death) {
  if (death.cause == Cause::kChanged) {
    shared_ = std::string(1, '\0');
    return;
  }
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

size_t EventEncoding::MaxBytes(const ExpiredEvent& event) const {
  return MaxOverhead() + event.key.size() + event.value.size() +
         (event.trace.empty() ? 0 : kTraceFieldBytes);
}

char* EventEncoding::Write(const ExpiredEvent& event, char* to) const {
  if (OfChanges()) return WriteChange(event, to);
  const absl::string_view shared = shared_;
  const auto before_bytes = static_cast<uint8_t>(shared[0]);
  const absl::string_view before = shared.substr(1, before_bytes);
  // What is behind the value, to know the size.
  char buffer[wire::kSlack + kMaxEventTailBytes + kMaxEventDeathBytes +
              kTraceFieldBytes];
  char* const end = buffer + sizeof buffer;
  char* at = end;
  if (!event.trace.empty()) [[unlikely]] {
    at -= kTraceTextBytes;
    FormatTrace(event.trace, at);
    at = wire::WriteByte(kTraceTextBytes, at);
    at = wire::WriteByte(kSecondTagByte, at);
    at = wire::WriteByte(kEventTraceparent, at);
  }
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

// The key comes first, as in an event without a namespace: see ReadKey.
char* EventEncoding::WriteChange(const ExpiredEvent& change, char* to) {
  char buffer[wire::kSlack + kMaxEventTailBytes];
  char* const end = buffer + sizeof buffer;
  char* at = wire::WriteTime(kChangeTime, change.put_us, end);
  if (change.change != ChangeKind::kRemoved) {
    at = wire::WriteTime(kChangeDeadline, change.deadline_us, at);
  }
  at = wire::WriteNumber(kChangeVersion, change.version, at);
  at = wire::WriteNumber(kChangeKind, static_cast<uint64_t>(change.change), at);
  const absl::string_view tail(at, static_cast<size_t>(end - at));
  *to++ = static_cast<char>(kEvents);
  to = PutVarint(BytesSize(change.key) + BytesSize(change.value) + tail.size(),
                 to);
  to = PutBytes(kChangeKey, change.key, to);
  to = PutBytes(change.parts ? kChangeParts : kChangeValue, change.value, to);
  return PutRaw(tail, to);
}

ExpiredEvent EventEncoding::ReadChange(const char* at, const char* end) {
  ExpiredEvent change;
  while (at != end) {
    const auto tag = static_cast<uint8_t>(*at++);
    uint64_t number;
    at = GetVarint(at, &number);
    if (tag == kChangeKind) change.change = static_cast<ChangeKind>(number);
    if (tag == kChangeVersion) change.version = number;
    if ((tag & 7) != kLengthDelimited) continue;
    const absl::string_view bytes(at, number);
    at += number;
    if (tag == kChangeKey) change.key = bytes;
    if (tag == kChangeValue || tag == kChangeParts) change.value = bytes;
    if (tag == kChangeParts) change.parts = true;
    if (tag == kChangeDeadline) change.deadline_us = wire::ReadTimeUs(bytes);
    if (tag == kChangeTime) change.put_us = wire::ReadTimeUs(bytes);
  }
  return change;
}

ExpiredEvent EventEncoding::Read(const char* from) const {
  uint64_t size;
  const char* at = GetVarint(from + 1, &size);
  const char* const end = at + size;
  if (OfChanges()) return ReadChange(at, end);
  ExpiredEvent event;
  while (at != end) {
    const auto tag = static_cast<uint8_t>(*at++);
    if (tag == kEventOwnTtl || tag == kEventTraceparent) ++at;
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
    if (tag == kEventTraceparent) event.trace = bytes;
  }
  return event;
}

size_t EventEncoding::SizeOf(absl::string_view events) const {
  WireReader all(events);
  absl::string_view event;
  if (!all.Skip(kEvents) || !all.Bytes(&event)) return 0;
  WireReader left(event);
  // Read and ReadKey go by this.
  const auto before =
      absl::string_view(shared_).substr(1, static_cast<uint8_t>(shared_[0]));
  if (!absl::StartsWith(event, before)) return 0;
  const absl::string_view fields = event.substr(before.size());
  if (fields.empty() || static_cast<uint8_t>(fields[0]) != kEventKey) return 0;
  while (!left.done()) {
    uint8_t tag = 0;
    uint64_t number = 0;
    absl::string_view bytes;
    left.Tag(&tag);
    if ((tag & 0x80) != 0 && !left.Skip(kSecondTagByte)) return 0;
    if (!((tag & 7) == kLengthDelimited ? left.Bytes(&bytes)
                                        : left.Varint(&number))) {
      return 0;
    }
  }
  return events.size() - all.left();
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
  std::string letter(MaxBytes(event), '\0');
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
