#include "server/journal/maps/change_record.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/common/varint.h"

namespace timecache::server {
namespace {

// A record is a row of items. Each begins with a byte: Change::Kind, kTick,
// kStoreParts, or kGroup + GroupChange::Kind. Numbers are varints, signed ones
// zigzag.
//
//   kStore   shard  at  version  put  ttl << 1 | own  death  key  value
//            kStoreParts: the value is GatheredParts
//   kAppend  shard  at  base  version - base  renewed, and if it is, put
//            ttl << 1 | own  death;  key  bytes
//   kRenew   shard  at  version  put  ttl << 1 | own  death  key
//   kRemove  shard  at  key
//   kKill    shard  at  death  number  cause
//   kEvict   shard  at  death  number  cause  key
//   kTick    watermark  next event  next event - retained event  kills
//
//   kGroup +
//   kExists        group  first  end - first  options  creator  unused
//                  unreported  statistics
//   kOptions       group  options
//   kDeleted       group
//   kExpired       group  end  unreported
//   kUnused        group  unused
//   kLossReported  group
//   kKept          group  first  attempt  ready  death  published
//                  parts << 2 | cause  version  put  deadline  key  value
//   the others     group  first  end - first  attempt  and, if they fail, ready
//
// `at`, `version`, `base`, `watermark`, `ready`, `death`, `first` and `end` are
// differences from the item before that had one: all times from the same row,
// and base and version from the same. put is one from `at` or, of a kept event,
// from the death; death one from the deadline or, of a kill, from `at`; a kept
// event's deadline one from put. A key, a value or a name is its length and its
// bytes. A group without a name is that of the item before. `unused` is 0 for
// none, or 1 and a time.
constexpr uint8_t kTick = 6;
constexpr uint8_t kStoreParts = 8;
constexpr uint8_t kGroup = 16;
// Of a kept event's cause.
constexpr int kCauseBits = 2;

// Differences wrap: what is read is what was written.
uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^
         static_cast<uint64_t>(value >> 63);
}

void PutSigned(std::string* to, int64_t value) { PutVarint(ZigZag(value), to); }

int64_t Minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) -
                              static_cast<uint64_t>(b));
}

int64_t Plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}

void PutBytes(std::string* to, absl::string_view bytes) {
  char size[kMaxVarintBytes];
  to->append(size, static_cast<size_t>(PutVarint(bytes.size(), size) - size));
  to->append(bytes.data(), bytes.size());
}

void PutOptions(std::string* to, const GroupOptions& options) {
  PutVarint(static_cast<uint64_t>(options.ack_timeout_us), to);
  PutVarint(static_cast<uint64_t>(options.max_attempts), to);
  PutVarint(static_cast<uint64_t>(options.max_backlog_bytes), to);
  PutVarint(static_cast<uint64_t>(options.unused_ttl_us), to);
}

// What a record has of a group's statistics.
using Count = uint64_t GroupStatistics::*;
constexpr Count kCounts[] = {
    &GroupStatistics::delivered,
    &GroupStatistics::redelivered,
    &GroupStatistics::acked,
    &GroupStatistics::nacked,
    &GroupStatistics::put_back,
    &GroupStatistics::timed_out,
    &GroupStatistics::dead_lettered,
    &GroupStatistics::dead_letter_failures,
    &GroupStatistics::dead_letters_denied,
    &GroupStatistics::dead_letters_dropped,
    &GroupStatistics::lost,
};

absl::Status Malformed() {
  return absl::DataLossError("a record of the journal is no map's changes");
}

}  // namespace

void ChangeRecord::PutVersion(uint64_t version) {
  PutSigned(&bytes_, static_cast<int64_t>(version - base_.version));
  base_.version = version;
}

void ChangeRecord::PutTimes(const Change& change) {
  const Record& record = change.record;
  PutSigned(&bytes_, Minus(record.put_us, change.at_us));
  PutVarint(
      static_cast<uint64_t>(record.ttl_us) << 1 | (record.own_ttl ? 1 : 0),
      &bytes_);
  PutSigned(&bytes_, Minus(change.death_us, record.deadline_us()));
}

// The numbers are put together first: a put is three appends.
void ChangeRecord::AddStore(int shard, const Change& change) {
  const Record& record = change.record;
  char head[1 + 7 * kMaxVarintBytes];
  char* to = head;
  *to++ = static_cast<char>(record.parts ? kStoreParts
                                         : static_cast<uint8_t>(change.kind));
  to = PutVarint(static_cast<uint64_t>(shard), to);
  to = PutVarint(ZigZag(Minus(change.at_us, base_.at_us)), to);
  base_.at_us = change.at_us;
  to = PutVarint(ZigZag(static_cast<int64_t>(record.version - base_.version)),
                 to);
  base_.version = record.version;
  to = PutVarint(ZigZag(Minus(record.put_us, change.at_us)), to);
  to = PutVarint(
      static_cast<uint64_t>(record.ttl_us) << 1 | (record.own_ttl ? 1 : 0), to);
  to = PutVarint(ZigZag(Minus(change.death_us, record.deadline_us())), to);
  to = PutVarint(record.key.size(), to);
  bytes_.append(head, static_cast<size_t>(to - head));
  bytes_.append(record.key.data(), record.key.size());
  PutBytes(&bytes_, record.value);
}

void ChangeRecord::Add(int shard, const Change& change) {
  if (change.kind == Change::Kind::kStore) return AddStore(shard, change);
  bytes_.push_back(static_cast<char>(change.kind));
  PutVarint(static_cast<uint64_t>(shard), &bytes_);
  PutSigned(&bytes_, Minus(change.at_us, base_.at_us));
  base_.at_us = change.at_us;
  switch (change.kind) {
    case Change::Kind::kStore:
      break;
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
    case Change::Kind::kRemove:
      PutBytes(&bytes_, change.record.key);
      break;
    case Change::Kind::kKill:
    case Change::Kind::kEvict:
      PutSigned(&bytes_, Minus(change.death_us, change.at_us));
      PutVarint(change.kill, &bytes_);
      PutVarint(static_cast<uint64_t>(change.cause), &bytes_);
      if (change.kind == Change::Kind::kEvict) {
        PutBytes(&bytes_, change.record.key);
      }
      break;
  }
}

void ChangeRecord::Add(const Tick& tick) {
  bytes_.push_back(static_cast<char>(kTick));
  PutAt(tick.watermark_us);
  PutVarint(tick.next_event, &bytes_);
  PutVarint(tick.next_event - tick.retained_event, &bytes_);
  PutVarint(tick.kills, &bytes_);
}

void ChangeRecord::PutAt(int64_t at_us) {
  PutSigned(&bytes_, Minus(at_us, base_.at_us));
  base_.at_us = at_us;
}

void ChangeRecord::Add(const GroupChange& change) {
  using Kind = GroupChange::Kind;
  bytes_.push_back(static_cast<char>(kGroup + static_cast<int>(change.kind)));
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
  for (const Count count : kCounts) {
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
  PutSigned(&bytes_, Minus(death.published_us, death.death_us));
  PutVarint(static_cast<uint64_t>(death.cause) |
                (event.parts ? uint64_t{1} << kCauseBits : 0),
            &bytes_);
  PutVersion(event.version);
  PutSigned(&bytes_, Minus(event.put_us, death.death_us));
  PutSigned(&bytes_, Minus(event.deadline_us, event.put_us));
  PutBytes(&bytes_, event.key);
  PutBytes(&bytes_, event.value);
}

// Takes numbers and bytes from the front of a record, until one is missing.
class ChangeReader {
 public:
  explicit ChangeReader(absl::string_view record) : left_(record) {}

  bool ok() const { return ok_; }
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
      case Change::Kind::kRemove:
        break;
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
      default:
        TakeEvents(&change);
        change.attempt = Int();
        if (change.fails()) change.ready_us = At();
    }
    return change;
  }

 private:
  uint8_t Fail() {
    ok_ = false;
    left_ = {};
    return 0;
  }
  int64_t At() {
    base_.at_us = Plus(base_.at_us, Signed());
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
    record.put_us = Plus(change->at_us, Signed());
    const uint64_t ttl = Varint();
    record.ttl_us = static_cast<int64_t>(ttl >> 1);
    record.own_ttl = (ttl & 1) != 0;
    // No entry's deadline is past the end of time.
    int64_t deadline_us;
    if (__builtin_add_overflow(record.put_us, record.ttl_us, &deadline_us)) {
      Fail();
    }
    change->death_us = Plus(deadline_us, Signed());
  }
  void TakeKill(Change* change) {
    change->death_us = Plus(change->at_us, Signed());
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
    if (value > static_cast<uint64_t>(std::numeric_limits<int>::max())) Fail();
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
    for (const Count count : kCounts) change->statistics.*count = Varint();
  }
  void TakeKept(GroupChange* change) {
    change->first = Event();
    base_.event = change->end = change->first + 1;
    change->attempt = Int();
    change->ready_us = At();
    Death& death = change->death;
    death.death_us = At();
    death.published_us = Plus(death.death_us, Signed());
    ExpiredEvent& event = change->event;
    uint64_t cause = Varint();
    event.parts = (cause & uint64_t{1} << kCauseBits) != 0;
    if (event.parts) cause -= uint64_t{1} << kCauseBits;
    death.cause = CauseOf(cause);
    event.version = Version();
    event.put_us = Plus(death.death_us, Signed());
    event.deadline_us = Plus(event.put_us, Signed());
    event.key = Bytes();
    event.value = Bytes();
  }

  absl::string_view left_;
  absl::string_view group_;
  bool ok_ = true;
  ChangeRecord::Base base_;
};

absl::Status ReadChangeRecord(absl::string_view record, ChangeVisitor change,
                              TickVisitor tick, GroupVisitor group) {
  ChangeReader reader(record);
  while (!reader.done()) {
    const uint8_t kind = reader.Byte();
    absl::Status status;
    if (kind == kTick) {
      const Tick next = reader.NextTick();
      if (reader.ok()) status = tick(next);
    } else if ((kind >= static_cast<uint8_t>(Change::Kind::kStore) &&
                kind <= static_cast<uint8_t>(Change::Kind::kEvict)) ||
               kind == static_cast<uint8_t>(Change::Kind::kAppend)) {
      int shard;
      const Change next = reader.Next(static_cast<Change::Kind>(kind), &shard);
      if (reader.ok()) status = change(shard, next);
    } else if (kind == kStoreParts) {
      int shard;
      Change next = reader.Next(Change::Kind::kStore, &shard);
      next.record.parts = true;
      if (reader.ok()) status = change(shard, next);
    } else if (kind > kGroup &&
               kind <= kGroup + static_cast<int>(GroupChange::kLastKind)) {
      const GroupChange next =
          reader.NextGroup(static_cast<GroupChange::Kind>(kind - kGroup));
      if (reader.ok() && next.name.empty()) return Malformed();
      if (reader.ok()) status = group(next);
    } else {
      return absl::DataLossError(
          absl::StrCat("a record of the journal has a change of the unknown "
                       "kind ",
                       kind, ": a newer version wrote it"));
    }
    if (!reader.ok()) return Malformed();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace timecache::server
