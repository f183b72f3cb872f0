// The part of a shard that makes new values of old ones.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/base/check.h"
#include "server/base/error.h"
#include "server/engine/shard/part_index.h"
#include "server/engine/shard/shard.h"
#include "server/engine/store/gathered_parts.h"

namespace timecache::server {
namespace {

// The least capacity of a value that is appended to.
constexpr size_t kMinCapacity = 32;

// A value that is not worth a lock of its own to be moved.
constexpr size_t kLargeValueBytes = 64 << 10;
// What a part takes besides its value, at most: a name and lengths.
constexpr size_t kMaxPartHead = 300;

// What is read of each part of a key, a cache miss, in bytes that are copied.
constexpr uint64_t kPartCost = 256;

absl::Status OtherKind(bool parts) {
  return PreconditionFailed(Reason::kValueKindMismatch,
                            parts
                                ? "the key collects the parts of a Gather"
                                : "the key has a value, and collects no parts");
}

// Reads a number in the one form in which it is written.
bool ParseNumber(absl::string_view text, int64_t* number) {
  return absl::SimpleAtoi(text, number) &&
         absl::AlphaNum(*number).Piece() == text;
}

// False if the result is no int64.
bool CombineNumbers(Combination combination, int64_t operand, int64_t* number) {
  if (combination == Combination::kAdd) {
    return !__builtin_add_overflow(*number, operand, number);
  }
  *number ^= operand;
  return true;
}

}  // namespace

absl::Status Shard::CheckValueBytes(size_t bytes) const {
  if (bytes <= max_value_bytes_) return absl::OkStatus();
  return PreconditionFailed(
      Reason::kValueTooLarge,
      absl::StrCat("the value would have ", bytes, " bytes, and may have ",
                   max_value_bytes_, " (the namespace's max_value_bytes)"));
}

// The times of what becomes of a live entry; returns its death.
int64_t Shard::KeepOrRenew(const Operation& op, const Found& old,
                           Record* record) const {
  if (!op.touch) return DeathOf(old);
  RenewLife(op, old, record);
  return DeathOf(*record);
}

// Stores another value, whatever its length, or returns false.
bool Shard::Replace(const Operation& op, absl::string_view value, bool parts,
                    uint32_t tag, const Found& old, Result* result,
                    Outcome* outcome) {
  result->status = CheckValueBytes(value.size());
  if (!result->status.ok()) return false;
  Record record;
  record.key = op.key;
  record.value = value;
  record.CopyTimes(old.record);
  record.parts = parts;
  const int64_t bytes = record.payload_bytes();
  if (!Reserve(old, bytes, bytes, outcome)) return false;
  int64_t death_us;
  if (old.slot != nullptr) {
    record.trace = old.record.trace;
    death_us = KeepOrRenew(op, old, &record);
  } else {
    SetTrace(op, &record);
    BeginLife(op, old, &record);
    death_us = DeathOf(record);
  }
  record.version = result->version = NewVersion();
  StoreAs(Change::Kind::kStore, record, death_us, tag, old, outcome);
  return true;
}

// Appends to the value of a live entry, or returns false.
bool Shard::Extend(const Operation& op, absl::string_view more,
                   int64_t alone_bytes, uint32_t tag, const Found& old,
                   Result* result, Outcome* outcome) {
  result->status = CheckValueBytes(old.record.value.size() + more.size());
  if (!result->status.ok()) return false;
  const int64_t bytes =
      old.record.payload_bytes() + static_cast<int64_t>(more.size());
  if (!Reserve(old, bytes, alone_bytes, outcome)) return false;
  if (atomic_ == Atomic::kChecking) [[unlikely]] {
    return true;
  }
  Record record = old.record;
  const int64_t death_us = KeepOrRenew(op, old, &record);
  record.version = result->version = NewVersion();
  if (sink_ != nullptr) {
    Change change = {.kind = Change::Kind::kAppend,
                     .record = record,
                     .base_version = old.record.version,
                     .renewed = op.touch,
                     .death_us = death_us,
                     .at_us = now_us_,
                     .hash = old.hash};
    change.record.value = more;
    change.record.create_us = record.put_us;
    change.record.parts = false;
    change.record.capacity = 0;
    EmitChange(change);
  }
  StoreLonger(record, more, death_us, tag, old, outcome);
  return true;
}

uint32_t Shard::CapacityFor(size_t bytes) const {
  return static_cast<uint32_t>(std::max(
      bytes, std::min(std::max(2 * bytes, kMinCapacity), max_value_bytes_)));
}

void Shard::PrepareAppend(const Operation& op, uint64_t hash, int64_t now_us) {
  const TurnLock lock(&mu_);
  Observe(now_us);
  const uint32_t tag = CompactIndex::TagOf(hash);
  const Found old = FindLive(tag, op.key);
  if (old.slot == nullptr) return;
  Record record = old.record;
  const size_t size = record.value.size() + op.value.size() + kMaxPartHead;
  if (record.value.size() < kLargeValueBytes || size <= record.capacity ||
      size > max_value_bytes_ || !segments_.HasRoom() ||
      MemoryBudget::Process().level() == MemoryBudget::Level::kExhausted) {
    return;
  }
  record.capacity = CapacityFor(size);
  Outcome outcome;
  Store(record, DeathOf(old), tag, old, &outcome);
}

// Stores `record`, which has the value of `old`, and `more` behind that. Where
// it has no room it moves, and gets as much again as it then has: so a value
// that grows to n bytes is copied less than n bytes for that, however short the
// pieces are. Of parts, `more` is one.
void Shard::StoreLonger(Record record, absl::string_view more, int64_t death_us,
                        uint32_t tag, const Found& old, Outcome* outcome) {
  RecordRef ref = MakeRef(old.segment, old.offset);
  const size_t begin = record.value.size();
  const size_t size = begin + more.size();
  const bool outgrows_index =
      !record.index.empty() && !HasRoomForPart(record.index);
  // Store makes another one.
  if (outgrows_index) record.index = {};
  // In a header of the same size, which its times may change.
  const bool fits =
      record.capacity != 0 && size <= record.capacity && !outgrows_index &&
      EncodedSize(record, segments_[old.segment].base) == old.size;
  if (!fits || death_us != DeathOf(old)) {
    if (record.capacity == 0 || size > record.capacity) {
      record.capacity = CapacityFor(size);
    }
    ref = Store(record, death_us, tag, old, outcome);
  }
  Segment& segment = segments_[SegmentOf(ref)];
  size_t unused;
  const Record stored = segment.Read(OffsetOf(ref), &unused);
  record.key = stored.key;
  record.value = stored.value;
  record.index = stored.index;
  record.trace = stored.trace;
  segment.generation->bytes += static_cast<int64_t>(more.size());
  char* const data = segment.data.get();
  ExtendRecord(record, segment.base, more, data + OffsetOf(ref));
  GatheredPart part;
  if (!record.index.empty() && PartsReader(more).Next(&part)) {
    AddToPartIndex(part.name, begin, key_hash_, record.index,
                   data + (record.index.data() - data));
  }
}

void Shard::AppendValue(const Operation& op, uint32_t tag, const Found& old,
                        Result* result, Outcome* outcome) {
  const bool found = old.slot != nullptr;
  result->status = CheckCondition(op, old.record.version);
  if (result->status.ok() && found && old.record.parts) {
    result->status = OtherKind(/*parts=*/true);
  }
  if (!result->status.ok()) return;
  const size_t size = op.value.size() + old.record.value.size();
  const auto alone_bytes =
      static_cast<int64_t>(op.key.size() + op.value.size());
  // Before the change, with which the answer may be reported.
  result->number = static_cast<int64_t>(size);
  const bool done =
      found ? Extend(op, op.value, alone_bytes, tag, old, result, outcome)
            : Replace(op, op.value, /*parts=*/false, tag, old, result, outcome);
  if (!done) {
    result->number = 0;
    return;
  }
  ++operations_.appends;
}

void Shard::Combine(const Operation& op, uint32_t tag, const Found& old,
                    Result* result, Outcome* outcome) {
  const bool found = old.slot != nullptr;
  int64_t number = op.initial;
  result->status = CheckCondition(op, old.record.version);
  if (!result->status.ok()) return;
  if (found && old.record.parts) {
    result->status = OtherKind(/*parts=*/true);
  } else if (found && !ParseNumber(old.record.value, &number)) {
    result->status = PreconditionFailed(
        Reason::kNotANumber, "the value is not a decimal number of 64 bits");
  } else if (!CombineNumbers(op.combination, op.operand, &number)) {
    result->status = PreconditionFailed(Reason::kNumberOverflow,
                                        "the result exceeds 64 bits");
  }
  if (!result->status.ok()) return;
  result->number = number;
  if (op.remove_if_zero && number == 0) {
    result->removed = true;
    if (found) Take(op, old);
  } else if (!Replace(op, absl::AlphaNum(number).Piece(), /*parts=*/false, tag,
                      old, result, outcome)) {
    result->number = 0;
    return;
  }
  ++operations_.combines;
}

void Shard::Remember(uint64_t hash, int64_t until_us) {
  if (until_us <= now_us_) return;
  if (remembered_ == nullptr) {
    remembered_ = std::make_unique<RememberedKeys>(max_remembered_keys_);
  }
  remembered_->Add(hash, until_us, now_us_);
}

void Shard::EmitRemember(uint64_t hash, int64_t until_us) {
  char bytes[sizeof(hash)];
  std::memcpy(bytes, &hash, sizeof(hash));
  // Without an answer, which is reported with the removal.
  sink_->Add(sink_shard_,
             {.kind = Change::Kind::kRemember,
              .record = {.key = absl::string_view(bytes, sizeof(bytes))},
              .death_us = until_us,
              .at_us = now_us_,
              .hash = hash});
}

// Of a key that has no parts yet.
absl::Status Shard::CheckFirstPart(const Gathering& gathering,
                                   uint64_t hash) const {
  if (remembered_ != nullptr && remembered_->Has(hash, now_us_)) {
    return ErrorWithReason(
        absl::StatusCode::kAlreadyExists, Reason::kGatherComplete,
        "a Gather has completed the key, which is still remembered");
  }
  if (gathering.expected() != 0) return absl::OkStatus();
  return PreconditionFailed(
      Reason::kKeyNotFound,
      "the key has no parts: its first one must come with expected_parts or "
      "expected_names");
}

void Shard::Gather(const Operation& op, uint32_t tag, const Found& old,
                   ResponseBudget* room, Result* result, Outcome* outcome) {
  TIMECACHED_CHECK(op.gathering != nullptr);
  const Gathering& gathering = *op.gathering;
  const GatheredPart part = {gathering.part(), op.value};
  StoredExpectation expects = {gathering.expectation().size(),
                               gathering.expected(), true};
  int64_t count = 0;
  if (old.slot == nullptr) {
    result->status = CheckFirstPart(gathering, old.hash);
    if (!result->status.ok()) return;
  } else {
    if (gathering.expected() == 0) {
      expects = ReadExpectation(old.record.value, part.name);
    }
    if (!old.record.parts) {
      result->status = OtherKind(/*parts=*/false);
    } else if (!expects.has_part) {
      result->status =
          InvalidField("part", "must be one of the names that the key expects");
    } else if (gathering.expected() != 0 &&
               !ExpectsTheSame(old.record.value, gathering)) {
      result->status =
          PreconditionFailed(Reason::kGatherMismatch,
                             "the key collects parts for a Gather that expects "
                             "others");
    }
    if (!result->status.ok()) return;
    const FoundPart same =
        FindPart(old.record, expects.bytes, part.name, key_hash_);
    copied_bytes_ += same.parts_read * kPartCost;
    count = same.parts;
    if (same.found && same.value != part.value && !gathering.keep_first) {
      result->status =
          ErrorWithReason(absl::StatusCode::kAlreadyExists, Reason::kPartExists,
                          "the part already exists with another value");
      return;
    }
    result->duplicate = same.found;
  }
  if (result->duplicate) {
    result->version = old.record.version;
    result->number = count;
    ++operations_.gathers;
    return;
  }
  std::string more;
  if (old.slot == nullptr) more = std::string(gathering.expectation());
  AppendPart(part, &more);
  ++count;
  result->number = count;
  if (count == expects.parts) {
    Complete(op, old, more, room, result);
  } else if (old.slot == nullptr) {
    Replace(op, more, /*parts=*/true, tag, old, result, outcome);
  } else {
    const size_t alone = op.key.size() + expects.bytes;
    Extend(op, more, static_cast<int64_t>(alone + more.size()), tag, old,
           result, outcome);
  }
  if (!result->status.ok() || outcome->hit != LimitHit::kNone) {
    result->number = 0;
    return;
  }
  ++operations_.gathers;
}

// The last part was added: this caller gets all parts, and no other caller
// does.
void Shard::Complete(const Operation& op, const Found& old,
                     absl::string_view more, ResponseBudget* room,
                     Result* result) {
  const bool found = old.slot != nullptr;
  const size_t size = old.record.value.size() + more.size();
  result->status = CheckValueBytes(size);
  if (!result->status.ok() || !TakeRoom(size, room, result)) return;
  if (atomic_ == Atomic::kChecking) [[unlikely]] {
    if (found) Take(op, old);
    return;
  }
  Record whole = old.record;
  if (!found) BeginLife(op, old, &whole);
  whole.parts = true;
  result->entry.value.reserve(size);
  SetEntry(whole, result);
  result->entry.value.append(more.data(), more.size());
  result->removed = true;
  if (const int64_t remember_us = op.gathering->remember_us; remember_us != 0) {
    const int64_t until_us = now_us_ + remember_us;
    Remember(old.hash, until_us);
    // Before the removal: a rebuild of this alone still has the parts.
    if (sink_ != nullptr) EmitRemember(old.hash, until_us);
  }
  if (found) Take(op, old);
}

}  // namespace timecache::server
