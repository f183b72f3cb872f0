#include "server/durable/change_record.h"

#include <algorithm>
#include <iterator>

#include "server/base/coding.h"
#include "server/base/wire_format.h"
#include "server/durable/change_items.h"

namespace timecache::server {
namespace {

uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^
         static_cast<uint64_t>(value >> 63);
}

void PutSigned(std::string* to, int64_t value) { PutVarint(ZigZag(value), to); }

void PutBytes(std::string* to, absl::string_view bytes) {
  char size[kMaxVarintBytes];
  to->append(size, static_cast<size_t>(PutVarint(bytes.size(), size) - size));
  to->append(bytes.data(), bytes.size());
}

// Whether a record's times need a kTimesItem.
bool HasOtherTimes(const Record& record) {
  const bool own_ttl =
      record.own_ttl_us != 0 && record.own_ttl_us != record.life_us;
  return own_ttl || record.life_us < 0 || record.create_us != record.put_us;
}

bool HasOtherTimes(const ExpiredEvent& event) {
  return event.own_ttl_us != 0 || event.create_us != event.put_us;
}

constexpr size_t kMaxTimesItemBytes = 1 + 3 * kMaxVarintBytes;

// A kTimesItem; returns its end.
char* PutOtherTimes(const Record& record, char* to) {
  *to++ = static_cast<char>(kTimesItem);
  to = PutVarint(static_cast<uint64_t>(record.own_ttl_us), to);
  to = PutVarint(ZigZag(record.life_us), to);
  return PutVarint(ZigZag(WrappingMinus(record.put_us, record.create_us)), to);
}

// Of a record; 0 behind a kTimesItem.
uint64_t TtlAndOwn(const Record& record) {
  if (HasOtherTimes(record)) return 0;
  return static_cast<uint64_t>(record.life_us) << 1 |
         (record.own_ttl_us != 0 ? 1 : 0);
}

void PutOptions(std::string* to, const GroupOptions& options) {
  PutVarint(static_cast<uint64_t>(options.ack_timeout_us), to);
  PutVarint(static_cast<uint64_t>(options.max_attempts), to);
  PutVarint(static_cast<uint64_t>(options.max_backlog_bytes), to);
  PutVarint(static_cast<uint64_t>(options.unused_ttl_us), to);
}

void PutLaterOptions(std::string* to, const GroupOptions& options) {
  uint64_t number = 0;
  GroupOptions copy;
  ForEachLaterOption(options, &copy,
                     [&](const auto& /*from*/, auto* /*to*/) { ++number; });
  PutVarint(number, to);
  ForEachLaterOption(options, &copy, [&](const auto& from, auto* /*to*/) {
    PutVarint(static_cast<uint64_t>(from), to);
  });
}

}  // namespace

void ChangeRecord::PutVersion(uint64_t version) {
  PutSigned(&bytes_, static_cast<int64_t>(version - base_.version));
  base_.version = version;
}

void ChangeRecord::PutTimes(const Change& change) {
  const Record& record = change.record;
  PutSigned(&bytes_, WrappingMinus(record.put_us, change.at_us));
  PutVarint(TtlAndOwn(record), &bytes_);
  PutSigned(&bytes_, WrappingMinus(change.death_us, record.deadline_us()));
}

void ChangeRecord::PutTrace(absl::string_view trace) {
  char packed[kTraceBytes];
  PackTrace(trace, packed);
  bytes_.append(packed, sizeof(packed));
}

void ChangeRecord::PutTimesItem(const Record& record) {
  char item[kMaxTimesItemBytes];
  bytes_.append(item, static_cast<size_t>(PutOtherTimes(record, item) - item));
}

// The numbers are put together first: a put is three appends.
void ChangeRecord::PutStore(int shard, const Change& change) {
  const Record& record = change.record;
  if (record.trace != nullptr) [[unlikely]] {
    bytes_.push_back(static_cast<char>(kTraceItem));
    PutTrace(record.view().trace);
  }
  char head[kMaxTimesItemBytes + 1 + 7 * kMaxVarintBytes];
  char* to = head;
  uint64_t ttl_and_own = 0;
  if (HasOtherTimes(record)) {
    to = PutOtherTimes(record, to);
  } else {
    ttl_and_own = TtlAndOwn(record);
  }
  *to++ = static_cast<char>(record.parts ? kStorePartsItem
                                         : static_cast<uint8_t>(change.kind));
  to = PutVarint(static_cast<uint64_t>(shard), to);
  to = PutVarint(ZigZag(WrappingMinus(change.at_us, base_.at_us)), to);
  base_.at_us = change.at_us;
  to = PutVarint(ZigZag(static_cast<int64_t>(record.version - base_.version)),
                 to);
  base_.version = record.version;
  to = PutVarint(ZigZag(WrappingMinus(record.put_us, change.at_us)), to);
  to = PutVarint(ttl_and_own, to);
  to = PutVarint(ZigZag(WrappingMinus(change.death_us, record.deadline_us())),
                 to);
  to = PutVarint(record.key.size(), to);
  bytes_.append(head, static_cast<size_t>(to - head));
  bytes_.append(record.key.data(), record.key.size());
  PutBytes(&bytes_, record.value);
}

void ChangeRecord::BeginBatch() {
  bytes_.push_back(static_cast<char>(kBatchItem));
}

void ChangeRecord::Add(int shard, const Change& change) {
  if (change.kind == Change::Kind::kStore) {
    PutStore(shard, change);
  } else if (change.kind != Change::Kind::kAnswer) {
    PutChange(shard, change);
  }
  if (change.answer != nullptr) [[unlikely]] {
    PutAnswer(shard, change);
  }
}

void ChangeRecord::PutAnswer(int shard, const Change& change) {
  const AnswerView& answer = change.answer->answer;
  bytes_.push_back(static_cast<char>(Change::Kind::kAnswer));
  PutVarint(static_cast<uint64_t>(shard), &bytes_);
  PutAt(change.at_us);
  PutSigned(&bytes_, WrappingMinus(answer.until_us, change.at_us));
  PutNumber(&bytes_, change.answer->id.key_hash);
  PutNumber(&bytes_, change.answer->id.id_hash);
  PutVarint(answer.version, &bytes_);
  PutSigned(&bytes_, answer.number);
  PutVarint((answer.has_parts ? 8u : 0u) | (answer.duplicate ? 4u : 0u) |
                (answer.removed ? 2u : 0u) | (answer.found ? 1u : 0u),
            &bytes_);
  PutBytes(&bytes_, answer.value);
}

void ChangeRecord::PutChange(int shard, const Change& change) {
  const Record& record = change.record;
  const bool has_times = change.kind == Change::Kind::kRenew || change.renewed;
  if (has_times && HasOtherTimes(record)) PutTimesItem(record);
  bytes_.push_back(static_cast<char>(change.kind));
  PutVarint(static_cast<uint64_t>(shard), &bytes_);
  PutSigned(&bytes_, WrappingMinus(change.at_us, base_.at_us));
  base_.at_us = change.at_us;
  switch (change.kind) {
    case Change::Kind::kAppend:
      PutVersion(change.base_version);
      PutVarint(change.record.version - change.base_version, &bytes_);
      base_.version = change.record.version;
      PutVarint(change.renewed ? 1 : 0, &bytes_);
      if (change.renewed) PutTimes(change);
      PutBytes(&bytes_, change.record.key);
      PutBytes(&bytes_, change.record.value);
      break;
    case Change::Kind::kRenew:
      PutVersion(change.record.version);
      PutTimes(change);
      PutBytes(&bytes_, change.record.key);
      break;
    case Change::Kind::kRemember:
      PutSigned(&bytes_, WrappingMinus(change.death_us, change.at_us));
      PutBytes(&bytes_, change.record.key);
      break;
    case Change::Kind::kRemove:
      PutBytes(&bytes_, change.record.key);
      break;
    case Change::Kind::kKill:
    case Change::Kind::kEvict:
      PutSigned(&bytes_, WrappingMinus(change.death_us, change.at_us));
      PutVarint(change.kill, &bytes_);
      PutVarint(static_cast<uint64_t>(change.cause), &bytes_);
      if (change.kind == Change::Kind::kEvict) {
        PutBytes(&bytes_, change.record.key);
      }
      break;
    case Change::Kind::kStore:
    case Change::Kind::kAnswer:
      break;
  }
}

void ChangeRecord::Add(const Tick& tick) {
  bytes_.push_back(static_cast<char>(kTickItem));
  PutAt(tick.watermark_us);
  PutVarint(tick.next_event, &bytes_);
  PutVarint(tick.next_event - tick.retained_event, &bytes_);
  PutVarint(tick.kills, &bytes_);
}

void ChangeRecord::PutAt(int64_t at_us) {
  PutSigned(&bytes_, WrappingMinus(at_us, base_.at_us));
  base_.at_us = at_us;
}

void ChangeRecord::Add(const GroupChange& change) {
  using Kind = GroupChange::Kind;
  if (change.kind == Kind::kKept && !change.event.trace.empty()) {
    bytes_.push_back(static_cast<char>(kTraceItem));
    PutTrace(change.event.trace);
  }
  if (change.kind == Kind::kKept && HasOtherTimes(change.event)) {
    Record times;
    times.own_ttl_us = change.event.own_ttl_us;
    times.put_us = change.event.put_us;
    times.create_us = change.event.create_us;
    PutTimesItem(times);
  }
  bytes_.push_back(
      static_cast<char>(kGroupItem + static_cast<int>(change.kind)));
  if (change.name == base_.group) {
    PutBytes(&bytes_, "");
  } else {
    PutBytes(&bytes_, change.name);
    base_.group = std::string(change.name);
  }
  switch (change.kind) {
    case Kind::kExists:
      PutEvents(change);
      PutState(change);
      break;
    case Kind::kOptions:
      PutOptions(&bytes_, change.options);
      break;
    case Kind::kDeleted:
    case Kind::kLossReported:
      break;
    case Kind::kExpired:
      PutVarint(change.end, &bytes_);
      PutVarint(change.unreported, &bytes_);
      break;
    case Kind::kUnused:
      PutUnused(change);
      break;
    case Kind::kKept:
      PutKept(change);
      break;
    case Kind::kPast:
      PutEvents(change);
      PutAt(change.ready_us);
      PutVarint(static_cast<uint64_t>(change.returns) << 1 |
                    (change.returned ? 1 : 0),
                &bytes_);
      PutVarint(static_cast<uint64_t>(change.reason), &bytes_);
      break;
    case Kind::kIdentity:
      PutVarint(change.id, &bytes_);
      break;
    case Kind::kLaterOptions:
      PutLaterOptions(&bytes_, change.options);
      break;
    case Kind::kSeek:
      PutEvents(change);
      PutVarint(change.id, &bytes_);
      PutVarint(change.unreported << 1 |
                    static_cast<uint64_t>(change.attempt == 1 ? 1 : 0),
                &bytes_);
      PutVarint(change.statistics.delivered, &bytes_);
      PutVarint(change.statistics.redelivered, &bytes_);
      PutVarint(change.statistics.skipped, &bytes_);
      break;
    case Kind::kRetryDelays:
      PutVarint(change.options.retry_delays_us.size(), &bytes_);
      for (const int64_t delay_us : change.options.retry_delays_us) {
        PutVarint(static_cast<uint64_t>(delay_us), &bytes_);
      }
      break;
    case Kind::kKeyPrefix:
      PutBytes(&bytes_, change.options.key_prefix);
      break;
    case Kind::kReason:
      PutEvents(change);
      PutBytes(&bytes_, change.reason_text);
      break;
    case Kind::kCounts:
      PutVarint(std::size(kLaterGroupCounts), &bytes_);
      for (const GroupCount count : kLaterGroupCounts) {
        PutVarint(change.statistics.*count, &bytes_);
      }
      break;
    default:
      PutEvents(change);
      PutVarint(static_cast<uint64_t>(change.attempt), &bytes_);
      if (change.fails()) PutAt(change.ready_us);
  }
}

void ChangeRecord::PutEvents(const GroupChange& change) {
  PutSigned(&bytes_, static_cast<int64_t>(change.first - base_.event));
  PutVarint(change.end - change.first, &bytes_);
  base_.event = change.end;
}

void ChangeRecord::PutUnused(const GroupChange& change) {
  const bool unused = change.unused_since_us != kNeverUs;
  PutVarint(unused ? 1 : 0, &bytes_);
  if (unused) PutAt(change.unused_since_us);
}

void ChangeRecord::PutState(const GroupChange& change) {
  PutOptions(&bytes_, change.options);
  PutBytes(&bytes_, change.created_by);
  PutUnused(change);
  PutVarint(change.unreported, &bytes_);
  for (const GroupCount count : kItemCounts) {
    PutVarint(change.statistics.*count, &bytes_);
  }
}

void ChangeRecord::PutKept(const GroupChange& change) {
  const ExpiredEvent& event = change.event;
  const Death& death = change.death;
  PutSigned(&bytes_, static_cast<int64_t>(change.first - base_.event));
  base_.event = change.first + 1;
  PutVarint(static_cast<uint64_t>(change.attempt), &bytes_);
  PutAt(change.ready_us);
  PutAt(death.death_us);
  PutSigned(&bytes_, WrappingMinus(death.published_us, death.death_us));
  PutVarint(static_cast<uint64_t>(death.cause) |
                (event.parts ? uint64_t{1} << kItemCauseBits : 0),
            &bytes_);
  PutEvent(event, death);
}

void ChangeRecord::PutEvent(const ExpiredEvent& event, const Death& death) {
  PutVersion(event.version);
  PutSigned(&bytes_, WrappingMinus(event.put_us, death.death_us));
  PutSigned(&bytes_, WrappingMinus(event.deadline_us, event.put_us));
  PutBytes(&bytes_, event.key);
  PutBytes(&bytes_, event.value);
}

void ChangeRecord::PutEventTimes(const ExpiredEvent& event) {
  PutVarint(static_cast<uint64_t>(event.own_ttl_us), &bytes_);
  PutSigned(&bytes_, WrappingMinus(event.put_us, event.create_us));
}

void ChangeRecord::Add(const RetainedEvents& events) {
  const Death& death = events.death;
  const bool traces =
      std::any_of(events.events.begin(), events.events.end(),
                  [](const ExpiredEvent& e) { return !e.trace.empty(); });
  const bool times =
      traces ||
      std::any_of(events.events.begin(), events.events.end(),
                  [](const ExpiredEvent& e) { return HasOtherTimes(e); });
  bytes_.push_back(static_cast<char>(traces  ? kRetainedTracesItem
                                     : times ? kRetainedTimesItem
                                             : kRetainedItem));
  PutSigned(&bytes_, static_cast<int64_t>(events.first_event - base_.event));
  PutVarint(events.events.size(), &bytes_);
  base_.event = events.end_event();
  PutAt(events.appended_us);
  PutAt(death.death_us);
  PutSigned(&bytes_, WrappingMinus(death.published_us, death.death_us));
  PutVarint(static_cast<uint64_t>(death.cause), &bytes_);
  for (const ExpiredEvent& event : events.events) {
    PutVarint(event.parts ? 1 : 0, &bytes_);
    PutEvent(event, death);
    if (times) PutEventTimes(event);
    if (!traces) continue;
    PutVarint(event.trace.empty() ? 0 : 1, &bytes_);
    if (!event.trace.empty()) PutTrace(event.trace);
  }
}

}  // namespace timecache::server
