#include "server/journal/change_record.h"

#include <limits>

namespace timecache::server {
namespace {

// A record is a row of items. Each begins with a byte, Change::Kind or kTick;
// numbers are varints, signed ones zigzag.
//
//   kStore   shard  at  version  put  ttl << 1 | own  death  key  value
//   kRenew   shard  at  version  put  ttl << 1 | own  death  key
//   kRemove  shard  at  key
//   kKill    shard  at  death  number  cause
//   kEvict   shard  at  death  number  cause  key
//   kTick    watermark  next event
//
// `at` and `version` are differences from the item before that had one, put is
// one from `at`, death one from the deadline or, of a kill, from `at`; a key or
// a value is its length and its bytes.
constexpr uint8_t kTick = 6;
constexpr int kMaxVarintBytes = 10;

void PutVarint(std::string* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    to->push_back(static_cast<char>(value | 0x80));
  }
  to->push_back(static_cast<char>(value));
}

// Differences wrap: what is read is what was written.
void PutSigned(std::string* to, int64_t value) {
  PutVarint(to, (static_cast<uint64_t>(value) << 1) ^
                    static_cast<uint64_t>(value >> 63));
}

int64_t Minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) -
                              static_cast<uint64_t>(b));
}

int64_t Plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}

void PutBytes(std::string* to, absl::string_view bytes) {
  PutVarint(to, bytes.size());
  to->append(bytes.data(), bytes.size());
}

absl::Status Malformed() {
  return absl::DataLossError("a record of the journal is no map's changes");
}

}  // namespace

void ChangeRecord::PutTimes(const Change& change) {
  const Record& record = change.record;
  PutSigned(&bytes_, static_cast<int64_t>(record.version - base_.version));
  base_.version = record.version;
  PutSigned(&bytes_, Minus(record.put_us, change.at_us));
  PutVarint(&bytes_, static_cast<uint64_t>(record.ttl_us) << 1 |
                         (record.own_ttl ? 1 : 0));
  PutSigned(&bytes_, Minus(change.death_us, record.deadline_us()));
}

void ChangeRecord::Add(int shard, const Change& change) {
  bytes_.push_back(static_cast<char>(change.kind));
  PutVarint(&bytes_, static_cast<uint64_t>(shard));
  PutSigned(&bytes_, Minus(change.at_us, base_.at_us));
  base_.at_us = change.at_us;
  switch (change.kind) {
    case Change::Kind::kStore:
      PutTimes(change);
      PutBytes(&bytes_, change.record.key);
      PutBytes(&bytes_, change.record.value);
      break;
    case Change::Kind::kRenew:
      PutTimes(change);
      PutBytes(&bytes_, change.record.key);
      break;
    case Change::Kind::kRemove:
      PutBytes(&bytes_, change.record.key);
      break;
    case Change::Kind::kKill:
    case Change::Kind::kEvict:
      PutSigned(&bytes_, Minus(change.death_us, change.at_us));
      PutVarint(&bytes_, change.kill);
      PutVarint(&bytes_, static_cast<uint64_t>(change.cause));
      if (change.kind == Change::Kind::kEvict) {
        PutBytes(&bytes_, change.record.key);
      }
      break;
  }
}

void ChangeRecord::Add(const Tick& tick) {
  bytes_.push_back(static_cast<char>(kTick));
  PutSigned(&bytes_, Minus(tick.watermark_us, base_.at_us));
  base_.at_us = tick.watermark_us;
  PutVarint(&bytes_, tick.next_event);
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
    uint64_t value = 0;
    for (int i = 0; i < kMaxVarintBytes; ++i) {
      const uint8_t byte = Byte();
      if (!ok_) return 0;
      value |= uint64_t{byte & 0x7fu} << (7 * i);
      if (byte < 0x80) return value;
    }
    return Fail();
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
    const bool stores =
        kind == Change::Kind::kStore || kind == Change::Kind::kRenew;
    if (stores) {
      TakeTimes(&change);
    } else if (kind != Change::Kind::kRemove) {
      TakeKill(&change);
    }
    if (kind != Change::Kind::kKill) change.record.key = Bytes();
    if (kind == Change::Kind::kStore) change.record.value = Bytes();
    return change;
  }
  Tick NextTick() {
    Tick tick;
    tick.watermark_us = At();
    tick.next_event = Varint();
    return tick;
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
  void TakeTimes(Change* change) {
    Record& record = change->record;
    base_.version += static_cast<uint64_t>(Signed());
    record.version = base_.version;
    record.put_us = Plus(change->at_us, Signed());
    const uint64_t ttl = Varint();
    record.ttl_us = static_cast<int64_t>(ttl >> 1);
    record.own_ttl = (ttl & 1) != 0;
    change->death_us = Plus(Plus(record.put_us, record.ttl_us), Signed());
  }
  void TakeKill(Change* change) {
    change->death_us = Plus(change->at_us, Signed());
    change->kill = Varint();
    const uint64_t cause = Varint();
    if (cause > static_cast<uint64_t>(Cause::kRotated)) Fail();
    change->cause = static_cast<Cause>(cause);
  }

  absl::string_view left_;
  bool ok_ = true;
  ChangeRecord::Base base_;
};

absl::Status ReadChangeRecord(absl::string_view record, ChangeVisitor change,
                              TickVisitor tick) {
  ChangeReader reader(record);
  while (!reader.done()) {
    const uint8_t kind = reader.Byte();
    absl::Status status;
    if (kind == kTick) {
      const Tick next = reader.NextTick();
      if (reader.ok()) status = tick(next);
    } else if (kind >= static_cast<uint8_t>(Change::Kind::kStore) &&
               kind <= static_cast<uint8_t>(Change::Kind::kEvict)) {
      int shard;
      const Change next = reader.Next(static_cast<Change::Kind>(kind), &shard);
      if (reader.ok()) status = change(shard, next);
    } else {
      return Malformed();
    }
    if (!reader.ok()) return Malformed();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace timecache::server
