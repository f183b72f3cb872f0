// The reader of ChangeRecord.

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/coding.h"
#include "server/base/wire_format.h"
#include "server/durable/change_items.h"
#include "server/durable/change_record.h"
#include "server/durable/map_record.h"

namespace timecache::server {
namespace {

// What an event in a kRetainedItem takes at the least.
constexpr size_t kLeastEventBytes = 6;

absl::Status Malformed() {
  return absl::DataLossError("a record of the journal is no map's changes");
}

}  // namespace

// Takes numbers and bytes from the front of a record, until one is missing.
class ChangeReader {
 public:
  explicit ChangeReader(absl::string_view record) : left_(record) {}

  // Not behind an item that has no times or trace, and was to take some.
  bool ok() const { return ok_ && !times_.set && trace_.empty(); }
  bool done() const { return left_.empty(); }

  uint8_t Byte() {
    if (left_.empty()) return Fail();
    const auto byte = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  uint64_t Varint() {
    uint64_t value;
    return TakeVarint(&left_, &value) ? value : Fail();
  }
  int64_t Signed() {
    const uint64_t value = Varint();
    return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  absl::string_view Bytes() {
    const uint64_t size = Varint();
    if (size > left_.size()) {
      Fail();
      return {};
    }
    const absl::string_view bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return bytes;
  }

  // `*shard` gets -1 where there is none.
  Change Next(Change::Kind kind, int* shard) {
    Change change;
    change.kind = kind;
    const uint64_t number = Varint();
    *shard = number <= std::numeric_limits<int>::max()
                 ? static_cast<int>(number)
                 : -1;
    change.at_us = At();
    switch (kind) {
      case Change::Kind::kStore:
      case Change::Kind::kRenew:
        change.record.version = Version();
        TakeTimes(&change);
        break;
      case Change::Kind::kAppend:
        TakeAppend(&change);
        break;
      case Change::Kind::kKill:
      case Change::Kind::kEvict:
        TakeKill(&change);
        break;
      case Change::Kind::kRemember:
        change.death_us = WrappingPlus(change.at_us, Signed());
        break;
      case Change::Kind::kRemove:
        break;
      case Change::Kind::kAnswer:
        TakeAnswer(&change);
        return change;
    }
    if (kind == Change::Kind::kStore && !trace_.empty()) {
      change.record.trace = std::exchange(trace_, {}).data();
    }
    if (kind != Change::Kind::kKill) change.record.key = Bytes();
    if (kind == Change::Kind::kStore || kind == Change::Kind::kAppend) {
      change.record.value = Bytes();
    }
    return change;
  }
  Tick NextTick() {
    Tick tick;
    tick.watermark_us = At();
    tick.next_event = Varint();
    tick.retained_event = tick.next_event - Varint();
    tick.kills = Varint();
    return tick;
  }
  // The times of the item behind it, which Next or NextGroup must read.
  void NextTimes() { times_ = {true, OwnTtl(), Signed(), Signed()}; }
  // The same of its traceparent.
  void NextTrace() { trace_ = Trace(); }
  // The events are `*events`.
  RetainedEvents NextRetained(uint8_t item, std::vector<ExpiredEvent>* events) {
    const bool traces = item == kRetainedTracesItem;
    const bool times = traces || item == kRetainedTimesItem;
    RetainedEvents retained;
    retained.first_event = Event();
    const uint64_t count = Varint();
    if (count == 0 || count > left_.size() / kLeastEventBytes ||
        retained.first_event > UINT64_MAX - count) {
      Fail();
      return retained;
    }
    base_.event += count;
    retained.appended_us = At();
    retained.death = TakeDeath();
    retained.death.cause = TakeCause();
    events->resize(count);
    for (ExpiredEvent& event : *events) {
      const uint64_t parts = Varint();
      if (parts > 1) Fail();
      event.parts = parts == 1;
      TakeEvent(retained.death, &event);
      if (times) {
        event.own_ttl_us = OwnTtl();
        event.create_us = WrappingMinus(event.put_us, Signed());
      }
      if (!traces) continue;
      const uint64_t traced = Varint();
      if (traced > 1) Fail();
      if (traced == 1) event.trace = Trace();
    }
    retained.events = *events;
    return retained;
  }
  GroupChange NextGroup(GroupChange::Kind kind) {
    using Kind = GroupChange::Kind;
    GroupChange change;
    change.kind = kind;
    if (const absl::string_view name = Bytes(); !name.empty()) group_ = name;
    change.name = group_;
    switch (kind) {
      case Kind::kExists:
        TakeEvents(&change);
        TakeState(&change);
        break;
      case Kind::kOptions:
        change.options = Options();
        break;
      case Kind::kDeleted:
      case Kind::kLossReported:
        break;
      case Kind::kExpired:
        change.end = Varint();
        change.unreported = Varint();
        break;
      case Kind::kUnused:
        change.unused_since_us = Unused();
        break;
      case Kind::kKept:
        TakeKept(&change);
        break;
      case Kind::kPast:
        TakePast(&change);
        break;
      case Kind::kCounts:
        TakeCounts(&change);
        break;
      case Kind::kIdentity:
        change.id = Varint();
        break;
      case Kind::kLaterOptions:
        TakeLaterOptions(&change.options);
        break;
      case Kind::kSeek: {
        TakeEvents(&change);
        change.id = Varint();
        const uint64_t lost = Varint();
        change.unreported = lost >> 1;
        change.attempt = static_cast<int>(lost & 1);
        change.statistics.delivered = Varint();
        change.statistics.redelivered = Varint();
        change.statistics.skipped = Varint();
        break;
      }
      case Kind::kRetryDelays:
        TakeRetryDelays(&change.options.retry_delays_us);
        break;
      case Kind::kKeyPrefix:
        change.options.key_prefix = std::string(Bytes());
        break;
      case Kind::kReason:
        TakeEvents(&change);
        change.reason_text = Bytes();
        break;
      default:
        TakeEvents(&change);
        change.attempt = Int();
        if (change.fails()) change.ready_us = At();
    }
    return change;
  }

 private:
  static constexpr auto kMaxInt =
      static_cast<uint64_t>(std::numeric_limits<int>::max());

  uint8_t Fail() {
    ok_ = false;
    left_ = {};
    return 0;
  }
  int64_t At() {
    base_.at_us = WrappingPlus(base_.at_us, Signed());
    return base_.at_us;
  }
  uint64_t Version() {
    base_.version += static_cast<uint64_t>(Signed());
    return base_.version;
  }
  void TakeAppend(Change* change) {
    change->base_version = Version();
    base_.version += Varint();
    change->record.version = base_.version;
    const uint64_t renewed = Varint();
    if (renewed > 1) Fail();
    change->renewed = renewed == 1;
    if (change->renewed) TakeTimes(change);
  }
  void TakeTimes(Change* change) {
    Record& record = change->record;
    record.put_us = WrappingPlus(change->at_us, Signed());
    const uint64_t ttl = Varint();
    record.life_us = static_cast<int64_t>(ttl >> 1);
    record.create_us = record.put_us;
    if ((ttl & 1) != 0) record.own_ttl_us = record.life_us;
    if (const Times times = std::exchange(times_, Times()); times.set) {
      record.life_us = times.life_us;
      record.create_us = WrappingMinus(record.put_us, times.age_us);
      record.own_ttl_us = times.own_ttl_us;
    }
    // No entry's deadline is past the end of time.
    int64_t deadline_us;
    if (__builtin_add_overflow(record.put_us, record.life_us, &deadline_us)) {
      Fail();
    }
    change->death_us = WrappingPlus(deadline_us, Signed());
  }
  int64_t OwnTtl() {
    const uint64_t ttl_us = Varint();
    if (ttl_us > INT64_MAX) Fail();
    return static_cast<int64_t>(ttl_us);
  }
  void TakeAnswer(Change* change) {
    answer_ = {};
    AnswerView& answer = answer_.answer;
    answer.until_us = WrappingPlus(change->at_us, Signed());
    answer_.id.key_hash = Fixed();
    answer_.id.id_hash = Fixed();
    answer.version = Varint();
    answer.number = Signed();
    const uint64_t flags = Varint();
    if (flags > 15) Fail();
    answer.has_parts = (flags & 8) != 0;
    answer.duplicate = (flags & 4) != 0;
    answer.removed = (flags & 2) != 0;
    answer.found = (flags & 1) != 0;
    answer.value = Bytes();
    change->answer = &answer_;
  }
  absl::string_view Trace() {
    if (left_.size() < kTraceBytes) {
      Fail();
      return {};
    }
    const absl::string_view trace = left_.substr(0, kTraceBytes);
    left_.remove_prefix(kTraceBytes);
    return trace;
  }
  uint64_t Fixed() {
    if (left_.size() < sizeof(uint64_t)) return Fail();
    const auto number = NumberAt<uint64_t>(left_, 0);
    left_.remove_prefix(sizeof(number));
    return number;
  }
  void TakeKill(Change* change) {
    change->death_us = WrappingPlus(change->at_us, Signed());
    change->kill = Varint();
    change->cause = TakeCause();
  }
  Cause TakeCause() { return CauseOf(Varint()); }
  Cause CauseOf(uint64_t cause) {
    if (cause > static_cast<uint64_t>(Cause::kRotated)) Fail();
    return static_cast<Cause>(cause);
  }
  int Int() {
    const uint64_t value = Varint();
    if (value > kMaxInt) Fail();
    return static_cast<int>(value);
  }
  GroupOptions Options() {
    GroupOptions options;
    options.ack_timeout_us = static_cast<int64_t>(Varint());
    options.max_attempts = Int();
    options.max_backlog_bytes = static_cast<int64_t>(Varint());
    options.unused_ttl_us = static_cast<int64_t>(Varint());
    return options;
  }
  int64_t Unused() {
    const uint64_t unused = Varint();
    if (unused > 1) Fail();
    return unused == 1 ? At() : kNeverUs;
  }
  uint64_t Event() {
    base_.event += static_cast<uint64_t>(Signed());
    return base_.event;
  }
  void TakeEvents(GroupChange* change) {
    change->first = Event();
    base_.event += Varint();
    change->end = base_.event;
    if (change->end < change->first) Fail();
  }
  void TakeState(GroupChange* change) {
    change->options = Options();
    change->created_by = Bytes();
    change->unused_since_us = Unused();
    change->unreported = Varint();
    for (const GroupCount count : kItemCounts) {
      change->statistics.*count = Varint();
    }
  }
  void TakeKept(GroupChange* change) {
    change->first = Event();
    base_.event = change->end = change->first + 1;
    change->attempt = Int();
    change->ready_us = At();
    Death& death = change->death;
    death = TakeDeath();
    ExpiredEvent& event = change->event;
    uint64_t cause = Varint();
    event.parts = (cause & uint64_t{1} << kItemCauseBits) != 0;
    if (event.parts) cause -= uint64_t{1} << kItemCauseBits;
    death.cause = CauseOf(cause);
    TakeEvent(death, &event);
    event.trace = std::exchange(trace_, {});
    if (const Times times = std::exchange(times_, Times()); times.set) {
      event.create_us = WrappingMinus(event.put_us, times.age_us);
      event.own_ttl_us = times.own_ttl_us;
    }
  }
  void TakePast(GroupChange* change) {
    TakeEvents(change);
    change->ready_us = At();
    const uint64_t returns = Varint();
    if (returns >> 1 > kMaxInt) Fail();
    change->returns = static_cast<int>(returns >> 1);
    change->returned = (returns & 1) != 0;
    const uint64_t reason = Varint();
    if (reason > static_cast<uint64_t>(FailureReason::kTerminated)) Fail();
    change->reason = static_cast<FailureReason>(reason);
  }
  // As TakeCounts.
  void TakeLaterOptions(GroupOptions* options) {
    uint64_t left = Varint();
    ForEachLaterOption(
        GroupOptions(), options, [&](const auto& /*from*/, auto* to) {
          if (left == 0) return;
          *to = static_cast<std::decay_t<decltype(*to)>>(Varint());
          --left;
        });
    for (; left > 0 && ok_; --left) Varint();
  }
  void TakeRetryDelays(std::vector<int64_t>* delays_us) {
    const uint64_t number = Varint();
    if (number > kMaxRetryDelays) Fail();
    for (uint64_t i = 0; i < number && ok_; ++i) {
      delays_us->push_back(static_cast<int64_t>(Varint()));
    }
  }
  // Those that a newer version adds are at the end.
  void TakeCounts(GroupChange* change) {
    uint64_t left = Varint();
    for (const GroupCount count : kLaterGroupCounts) {
      if (left == 0) break;
      change->statistics.*count = Varint();
      --left;
    }
    for (; left > 0 && ok_; --left) Varint();
  }
  Death TakeDeath() {
    Death death;
    death.death_us = At();
    death.published_us = WrappingPlus(death.death_us, Signed());
    return death;
  }
  void TakeEvent(const Death& death, ExpiredEvent* event) {
    event->version = Version();
    event->put_us = event->create_us = WrappingPlus(death.death_us, Signed());
    event->deadline_us = WrappingPlus(event->put_us, Signed());
    event->own_ttl_us = 0;
    event->trace = {};
    event->key = Bytes();
    event->value = Bytes();
  }

  // Of a kTimesItem, until the item behind it is read.
  struct Times {
    bool set = false;
    int64_t own_ttl_us = 0;
    int64_t life_us = 0;
    int64_t age_us = 0;
  };

  absl::string_view left_;
  absl::string_view group_;
  Times times_;
  // Of a kTraceItem, as they are.
  absl::string_view trace_;
  // Of the last change that had one.
  AnswerTo answer_;
  bool ok_ = true;
  ChangeRecord::Base base_;
};

absl::Status ReadChangeRecord(absl::string_view record, ChangeVisitor change,
                              TickVisitor tick, GroupVisitor group,
                              RetainedVisitor retained) {
  ChangeReader reader(record);
  std::vector<ExpiredEvent> events;
  bool batch = false;
  const auto visit = [&](int shard, Change* next) {
    next->more_of_batch = batch && !reader.done();
    return change(shard, *next);
  };
  while (!reader.done()) {
    uint8_t kind = reader.Byte();
    if (kind == kBatchItem) {
      batch = true;
      continue;
    }
    if (kind == kTraceItem) {
      reader.NextTrace();
      kind = reader.Byte();
    }
    if (kind == kTimesItem) {
      reader.NextTimes();
      kind = reader.Byte();
    }
    absl::Status status;
    if (kind == kTickItem) {
      const Tick next = reader.NextTick();
      if (reader.ok()) status = tick(next);
    } else if ((kind >= static_cast<uint8_t>(Change::Kind::kStore) &&
                kind <= static_cast<uint8_t>(Change::Kind::kEvict)) ||
               kind == static_cast<uint8_t>(Change::Kind::kAppend) ||
               kind == static_cast<uint8_t>(Change::Kind::kRemember) ||
               kind == static_cast<uint8_t>(Change::Kind::kAnswer)) {
      int shard;
      Change next = reader.Next(static_cast<Change::Kind>(kind), &shard);
      if (reader.ok()) status = visit(shard, &next);
    } else if (kind == kStorePartsItem) {
      int shard;
      Change next = reader.Next(Change::Kind::kStore, &shard);
      next.record.parts = true;
      if (reader.ok()) status = visit(shard, &next);
    } else if (kind == kRetainedItem || kind == kRetainedTimesItem ||
               kind == kRetainedTracesItem) {
      const RetainedEvents next = reader.NextRetained(kind, &events);
      if (reader.ok()) status = retained(next);
    } else if (kind > kGroupItem &&
               kind <= kGroupItem + static_cast<int>(GroupChange::kLastKind)) {
      const GroupChange next =
          reader.NextGroup(static_cast<GroupChange::Kind>(kind - kGroupItem));
      if (reader.ok() && next.name.empty()) return Malformed();
      if (reader.ok()) status = group(next);
    } else {
      return OfNewerVersion(absl::StrCat(
          "a record of the journal has a change of a kind, ", kind, ","));
    }
    if (!reader.ok()) return Malformed();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace timecache::server
