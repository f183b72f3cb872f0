#include "server/engine/shard/shard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/check.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

// Values that move are copied, some hundred microseconds for this many bytes:
// then the lock is released.
constexpr uint64_t kMaxLockCopiedBytes = uint64_t{1} << 20;

}  // namespace

absl::Status CheckCondition(const Operation& op, uint64_t version) {
  switch (op.condition) {
    case Condition::kNone:
      break;
    case Condition::kIfAbsent:
      if (version != 0) {
        return PreconditionFailed(Reason::kKeyExists, "the key already exists");
      }
      break;
    case Condition::kIfPresent:
      if (version == 0) {
        return PreconditionFailed(Reason::kKeyNotFound,
                                  "the key does not exist");
      }
      break;
    case Condition::kIfVersion:
      if (version == 0) {
        return PreconditionFailed(Reason::kKeyNotFound,
                                  "the key does not exist");
      }
      if (version != op.if_version) {
        return PreconditionFailed(Reason::kVersionMismatch,
                                  "the key has another version");
      }
      break;
  }
  return absl::OkStatus();
}

Shard::Shard(const NamespaceOptions& options, Usage* usage,
             LiveBuckets* buckets, VersionSource* versions, KeyHash hash,
             KeySample* sample)
    : usage_(usage),
      buckets_(buckets),
      versions_(versions),
      key_hash_(hash),
      max_remembered_keys_(kMaxRememberedKeys /
                           static_cast<size_t>(options.num_shards)),
      sample_(sample),
      charge_(sizeof(*this)),
      until_sample_(sample == nullptr ? 0 : sample->FirstInterval()) {
  SetOptions(options);
}

void Shard::SetOptions(const NamespaceOptions& options) {
  const TurnLock lock(&mu_);
  ttl_us_ = options.ttl_us;
  max_life_us_ = options.max_life_us;
  width_us_ = BucketWidthUs(options);
  sliding_ = options.sliding;
  max_value_bytes_ = static_cast<size_t>(options.max_value_bytes);
  idempotency_window_us_ = options.idempotency_window_us;
  max_answers_ =
      static_cast<size_t>(options.idempotency_max_ids / options.num_shards) + 1;
  max_answer_bytes_ = kMaxAnswerBytes / options.num_shards;
  if (answers_ != nullptr) {
    answers_->SetLimits(max_answers_, max_answer_bytes_);
  }
}

void Shard::SetSink(ChangeSink* sink, int shard) {
  const TurnLock lock(&mu_);
  sink_ = sink;
  sink_shard_ = shard;
}

void Shard::SetChangeWatch(ChangeWatch* watch, int64_t now_us) {
  const TurnLock lock(&mu_);
  if (change_watch_ != nullptr) change_watch_->Flush(now_us);
  change_watch_ = watch;
}

int64_t Shard::Observe(int64_t now_us) {
  now_us_ = std::max(now_us_, now_us);
  return now_us_;
}

Shard::Outcome Shard::Apply(const Operation& op, uint64_t hash, int64_t now_us,
                            ResponseBudget* room, Result* result) {
  const TurnLock lock(&mu_);
  Observe(now_us);
  memory_ = MemoryBudget::Process().level();
  const uint64_t copied = copied_bytes_;
  const Outcome outcome = ApplyOne(op, hash, room, result);
  if (outcome.hit == LimitHit::kNone) CountUse(op, *result);
  SetPosition(op, hash, result);
  room->CountCopied(copied_bytes_ - copied);
  SettleCharges();
  return outcome;
}

size_t Shard::ApplyLocked(absl::Span<const Item> items, int64_t now_us,
                          ResponseBudget* room, int64_t* new_death_us) {
  TIMECACHED_CHECK(items.size() <= kMaxLockItems);
  Observe(now_us);
  memory_ = MemoryBudget::Process().level();
  const uint64_t copied = copied_bytes_;
  size_t done = 0;
  for (const Item& item : items) {
    if (copied_bytes_ - copied > kMaxLockCopiedBytes) break;
    const Outcome outcome = ApplyOne(*item.op, item.hash, room, item.result);
    if (outcome.hit != LimitHit::kNone) break;
    CountUse(*item.op, *item.result);
    SetPosition(*item.op, item.hash, item.result);
    *new_death_us = std::min(*new_death_us, outcome.new_death_us);
    ++done;
  }
  room->CountCopied(copied_bytes_ - copied);
  SettleCharges();
  return done;
}

void Shard::AddToSample(const Operation& op, const Result& result) {
  if (sample_ == nullptr) return;
  const bool made = op.kind == OpKind::kPut || op.kind >= OpKind::kAppend;
  const bool wrote = result.status.ok() && (made || result.found) &&
                     !result.duplicate && Writes(op, sliding_);
  std::optional<uint64_t> value_bytes;
  if (result.has_entry && op.kind == OpKind::kGet) {
    value_bytes = result.entry.value.size();
  } else if (wrote && op.kind == OpKind::kPut) {
    value_bytes = op.value.size();
  } else if (wrote && op.kind == OpKind::kAppend) {
    value_bytes = static_cast<uint64_t>(result.number);
  }
  until_sample_ = sample_->Add(op.key, wrote, value_bytes, now_us_);
}

void Shard::PrefetchIndexLocked(absl::Span<const Item> items) const {
  for (const Item& item : items) {
    slots_.Touch(CompactIndex::TagOf(item.hash));
  }
}

void Shard::PrefetchRecordsLocked(absl::Span<const Item> items) const {
  constexpr size_t kLineBytes = 64;
  constexpr size_t kMaxBytes = 4 * kLineBytes;
  // Most records are as large as the last one, and begin anywhere in a line: its
  // last byte may be in one more. No other line, as each costs a read of memory.
  const size_t bytes = std::clamp(last_size_, size_t{1}, kMaxBytes);
  for (const Item& item : items) {
    const RecordRef ref = slots_.FirstOf(CompactIndex::TagOf(item.hash));
    if (ref == 0) continue;
    const char* const record =
        segments_[SegmentOf(ref)].data.get() + OffsetOf(ref);
    for (size_t i = 0; i < bytes; i += kLineBytes) {
      __builtin_prefetch(record + i);
    }
    __builtin_prefetch(record + bytes - 1);
  }
  // For GCC 12 a function that prefetches alone is one without an effect: where
  // it sees the body and the call together, as in a larger unity build, it left
  // the call out, and reads of batches took twice as long.
  asm volatile("");
}

Shard::Outcome Shard::ApplyOne(const Operation& op, uint64_t hash,
                               ResponseBudget* room, Result* result) {
  if (op.id_bytes != 0 && once_ == nullptr) [[unlikely]] {
    return ApplyOnce(op, hash, room, result);
  }
  const uint32_t tag = CompactIndex::TagOf(hash);
  Outcome outcome;
  Found old = FindLive(tag, op.key);
  old.hash = hash;
  result->found = old.slot != nullptr;
  switch (op.kind) {
    case OpKind::kContains:
      CountLookup(result->found);
      result->status = CheckCondition(op, old.record.version);
      return outcome;
    case OpKind::kGet:
      CountLookup(result->found);
      if (!result->found || !Answer(old.record, room, result)) return outcome;
      if (!GetRenews(op, sliding_)) return outcome;
      Renew(op, tag, old, result, &outcome);
      break;
    case OpKind::kTouch:
      result->status = CheckCondition(op, old.record.version);
      if (!result->status.ok() || !result->found) return outcome;
      Renew(op, tag, old, result, &outcome);
      if (outcome.hit == LimitHit::kNone) {
        result->version = old.record.version;
      }
      break;
    case OpKind::kPut:
      Put(op, tag, old, room, result, &outcome);
      break;
    case OpKind::kRemove:
      result->status = CheckCondition(op, old.record.version);
      if (!result->status.ok() || !result->found) return outcome;
      if (op.return_previous && !Answer(old.record, room, result)) {
        return outcome;
      }
      Take(op, old);
      ++operations_.removals;
      break;
    case OpKind::kAppend:
      AppendValue(op, tag, old, result, &outcome);
      break;
    case OpKind::kCombine:
      Combine(op, tag, old, result, &outcome);
      break;
    case OpKind::kGather:
      Gather(op, tag, old, room, result, &outcome);
      break;
  }
  // Nothing was done: nothing that follows a change is to be.
  if (atomic_ == Atomic::kChecking) [[unlikely]] {
    return outcome;
  }
  CompactStep();
  if (change_watch_ != nullptr) [[unlikely]] {
    ReportChange(op, tag, old.record.version, *result, &outcome);
  }
  return outcome;
}

// What an operation has done, by what there is now: `old_version` was there
// before, unless it is 0.
void Shard::ReportChange(const Operation& op, uint32_t tag,
                         uint64_t old_version, const Result& result,
                         Outcome* outcome) {
  if (outcome->hit != LimitHit::kNone || !result.status.ok()) return;
  const Found found = FindLive(tag, op.key);
  const Record& record = found.record;
  const bool renews = op.kind == OpKind::kGet || op.kind == OpKind::kTouch;
  // Both 0: nothing was there, and nothing is.
  if (record.version == old_version && (!renews || found.slot == nullptr)) {
    return;
  }
  EntryView change;
  change.key = op.key;
  change.put_us = now_us_;
  if (found.slot == nullptr) {
    change.change = ChangeKind::kRemoved;
    change.version = old_version;
  } else {
    change.change = renews ? ChangeKind::kRenewed : ChangeKind::kPut;
    change.version = record.version;
    change.deadline_us = record.deadline_us();
    if (!renews) {
      change.value = record.value;
      change.parts = record.parts;
    }
  }
  outcome->new_death_us =
      std::min(outcome->new_death_us, change_watch_->Add(change));
}

Shard::Found Shard::FindLive(uint32_t tag, absl::string_view key) {
  Found found;
  const SegmentTable* const segments = &segments_;
  const int64_t now_us = now_us_;
  found.slot = slots_.Find(tag, [&](RecordRef ref) {
    const Segment& segment = (*segments)[SegmentOf(ref)];
    if (segment.generation->death_us <= now_us) return false;
    segment.Read(OffsetOf(ref), &found.record, &found.size);
    if (found.record.key != key) [[unlikely]] {
      // Another key with the same tag.
      found.record = Record();
      return false;
    }
    found.segment = SegmentOf(ref);
    found.offset = OffsetOf(ref);
    return true;
  });
  if (found.slot != nullptr) last_size_ = found.size;
  return found;
}

// An error if an entry with such a value has no room in the response.
bool Shard::TakeRoom(size_t value_bytes, ResponseBudget* room, Result* result) {
  if (room->Take(value_bytes)) return true;
  result->status = ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kMaxResponseBytes,
      absl::StrCat("the batch's answer has no room for an entry of ",
                   value_bytes, " bytes beside others under ",
                   ResponseBudget::kMaxBytes,
                   ": ask for it in the next request"));
  return false;
}

void Shard::SetEntry(const Record& record, Result* result) {
  result->has_entry = true;
  result->entry.value.assign(record.value.data(), record.value.size());
  result->entry.parts = record.parts;
  result->entry.version = record.version;
  result->entry.put_us = record.put_us;
  result->entry.deadline_us = record.deadline_us();
  result->entry.create_us = record.create_us;
  result->entry.own_ttl_us = record.own_ttl_us;
}

// Returns the entry, or an error if it has no room.
bool Shard::Answer(const Record& record, ResponseBudget* room,
                   Result* result) const {
  if (!TakeRoom(record.value.size(), room, result)) return false;
  if (atomic_ != Atomic::kChecking) SetEntry(record, result);
  return true;
}

void Shard::Put(const Operation& op, uint32_t tag, const Found& old,
                ResponseBudget* room, Result* result, Outcome* outcome) {
  const bool found = old.slot != nullptr;
  result->status = CheckCondition(op, old.record.version);
  if (!result->status.ok()) return;
  Record record;
  record.key = op.key;
  record.value = op.value;
  record.parts = op.parts;
  SetTrace(op, &record);
  const bool keeps = found && op.keep_deadline;
  if (keeps) {
    record.CopyTimes(old.record);
  } else {
    BeginLife(op, old, &record);
  }
  const int64_t bytes = record.payload_bytes();
  if (!Reserve(old, bytes, bytes, outcome)) return;
  if (found && op.return_previous && !Answer(old.record, room, result)) {
    Charge(0, -outcome->more.bytes);
    return;
  }
  record.version = NewVersion();
  result->version = record.version;
  StoreAs(Change::Kind::kStore, record, keeps ? DeathOf(old) : DeathOf(record),
          tag, old, outcome);
  ++operations_.puts;
}

// Whether an entry of so many bytes may take the place of `old`: then it is
// charged.
bool Shard::Reserve(const Found& old, int64_t bytes, int64_t alone_bytes,
                    Outcome* outcome) {
  const bool found = old.slot != nullptr;
  if (!slots_.HasRoom() || !segments_.HasRoom()) {
    outcome->hit = LimitHit::kShardFull;
    return false;
  }
  const int64_t more_bytes = bytes - old.record.payload_bytes();
  if (memory_ != MemoryBudget::Level::kRoom &&
      (!found || more_bytes > 0 ||
       memory_ == MemoryBudget::Level::kExhausted)) {
    outcome->hit = LimitHit::kMaxMemory;
    return false;
  }
  outcome->more = {found ? 0 : 1, more_bytes};
  outcome->alone_bytes = alone_bytes;
  outcome->hit = Charge(outcome->more.entries, outcome->more.bytes);
  return outcome->hit == LimitHit::kNone;
}

// Of an entry in the place of `old`, which may be none.
void Shard::BeginLife(const Operation& op, const Found& old,
                      Record* record) const {
  record->create_us = old.slot != nullptr ? old.record.create_us : now_us_;
  record->own_ttl_us = 0;
  RenewLife(op, old, record);
}

// Of the entry `old`, or of one in its place.
void Shard::RenewLife(const Operation& op, const Found& old,
                      Record* record) const {
  record->put_us = now_us_;
  if (op.has_ttl || op.namespace_ttl) record->own_ttl_us = op.ttl_us;
  if (op.has_expire_at) {
    record->life_us = op.expire_at_us - now_us_;
  } else {
    record->life_us = record->own_ttl_us != 0 ? record->own_ttl_us : ttl_us_;
  }
  if (max_life_us_ == 0) return;
  int64_t last_us = record->create_us + max_life_us_;
  // The option may be younger than the entry's deadline.
  if (old.slot != nullptr) {
    last_us = std::max(last_us, old.record.deadline_us());
  }
  record->life_us = std::min(record->life_us, last_us - now_us_);
}

// Removes a live entry, without an event.
void Shard::Take(const Operation& op, const Found& old) {
  if (atomic_ == Atomic::kChecking) [[unlikely]] {
    Charge(-1, -old.record.payload_bytes());
    return;
  }
  if (sink_ != nullptr) {
    EmitChange({.kind = Change::Kind::kRemove,
                .record = {.key = op.key},
                .at_us = now_us_,
                .hash = old.hash});
  }
  Charge(-1, -old.record.payload_bytes());
  Forget(old);
  slots_.Erase(old.slot);
}

void Shard::Renew(const Operation& op, uint32_t tag, const Found& old,
                  Result* result, Outcome* outcome) {
  if (!segments_.HasRoom()) {
    outcome->hit = LimitHit::kShardFull;
    return;
  }
  if (memory_ == MemoryBudget::Level::kExhausted) {
    outcome->hit = LimitHit::kMaxMemory;
    return;
  }
  // The version identifies the value, which does not change.
  Record record = old.record;
  RenewLife(op, old, &record);
  if (result->has_entry) {
    result->entry.put_us = record.put_us;
    result->entry.deadline_us = record.deadline_us();
  }
  StoreAs(Change::Kind::kRenew, record, DeathOf(record), tag, old, outcome);
}

uint64_t Shard::NewVersion() {
  if (next_version_ == versions_end_) {
    next_version_ = versions_->TakeBlock();
    versions_end_ = next_version_ + VersionSource::kBlock;
  }
  return next_version_++;
}

// Counts the changes of an operation; if there are limits, at once, but for an
// atomic batch, which has been counted as a whole, or is to be.
LimitHit Shard::Charge(int64_t entries, int64_t bytes) {
  if (usage_->limited() && atomic_ == Atomic::kNone) {
    return usage_->Add(entries, bytes);
  }
  uncharged_entries_ += entries;
  uncharged_bytes_ += bytes;
  return LimitHit::kNone;
}

// Before the lock is released: a holder of all locks sees an exact account.
void Shard::SettleCharges() {
  if (uncharged_entries_ == 0 && uncharged_bytes_ == 0) return;
  usage_->Subtract(-std::exchange(uncharged_entries_, 0),
                   -std::exchange(uncharged_bytes_, 0));
}

uint64_t Shard::copied_bytes() const {
  const TurnLock lock(&mu_);
  return copied_bytes_;
}

Shard::Statistics Shard::GetStatistics() const {
  const TurnLock lock(&mu_);
  Statistics statistics;
  statistics.memory_bytes = static_cast<int64_t>(
      sizeof(*this) + slots_.memory_bytes() + segments_.memory_bytes() +
      generations_.size() * Generation::kBytes);
  if (remembered_ != nullptr) {
    statistics.memory_bytes += remembered_->memory_bytes();
  }
  if (answers_ != nullptr) {
    statistics.memory_bytes += answers_->memory_bytes();
  }
  statistics.operations = operations_;
  if (current_ != nullptr && current_->entries == 0) {
    statistics.empty_death_us = current_->death_us;
  }
  return statistics;
}

}  // namespace timecache::server
