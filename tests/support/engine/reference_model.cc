#include "tests/support/engine/reference_model.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

bool IsMade(const Operation& op) {
  return op.kind == OpKind::kPut || op.kind == OpKind::kAppend ||
         op.kind == OpKind::kCombine || op.kind == OpKind::kGather;
}

absl::Status Malformed(const Operation& op, const NamespaceOptions& options,
                       int64_t now_us) {
  if (op.key.empty() || op.key.size() > kMaxKeyBytes) {
    return InvalidField("key", "");
  }
  if (IsMade(op) &&
      static_cast<int64_t>(op.value.size()) > options.max_value_bytes) {
    return InvalidField("value", "");
  }
  const bool takes_ttl = IsMade(op) || op.kind == OpKind::kTouch;
  if (takes_ttl && op.has_ttl &&
      (op.ttl_us < kMinTtlUs || op.ttl_us > options.max_ttl_us)) {
    return InvalidField("ttl", "");
  }
  if (op.keep_deadline && (op.has_ttl || op.has_expire_at)) {
    return InvalidField("keep_deadline", "");
  }
  if (op.id_bytes != 0 && options.idempotency_window_us == 0) {
    return InvalidField("idempotency_id", "");
  }
  if (op.trace() == kNoTrace) return InvalidField("traceparent", "");
  if (op.allow_past && !op.has_expire_at) return InvalidField("allow_past", "");
  if (op.has_expire_at && ((op.expire_at_us <= now_us && !op.allow_past) ||
                           op.expire_at_us > now_us + options.max_ttl_us)) {
    return InvalidField("expire_at", "");
  }
  return absl::OkStatus();
}

absl::Status Error(Reason reason, absl::StatusCode code =
                                      absl::StatusCode::kFailedPrecondition) {
  return ErrorWithReason(code, reason, "");
}

absl::Status Unmet(const Operation& op, const ReferenceModel::Stored* stored) {
  const bool conditional =
      op.kind != OpKind::kGet && op.kind != OpKind::kGather;
  if (!conditional || op.condition == Condition::kNone) return absl::OkStatus();
  if (op.condition == Condition::kIfAbsent) {
    return stored == nullptr ? absl::OkStatus() : Error(Reason::kKeyExists);
  }
  if (stored == nullptr) return Error(Reason::kKeyNotFound);
  if (op.condition == Condition::kIfVersion &&
      stored->entry.version != op.if_version) {
    return Error(Reason::kVersionMismatch);
  }
  return absl::OkStatus();
}

// A number as it is written in one way only.
bool IsNumber(const std::string& text, int64_t* number) {
  errno = 0;
  *number = std::strtoll(text.c_str(), nullptr, 10);
  return errno == 0 && std::to_string(*number) == text;
}

int64_t BytesOf(absl::string_view key, absl::string_view value) {
  return static_cast<int64_t>(key.size() + value.size());
}

// Of an entry that comes with parts in its value.
void ReadParts(ReferenceModel::Stored* stored) {
  const std::string& value = stored->entry.value;
  std::string encoded;
  PartsReader reader(value);
  for (GatheredPart part; reader.Next(&part);) {
    stored->parts[std::string(part.name)] = std::string(part.value);
    AppendPart(part, &encoded);
  }
  stored->expectation = value.substr(0, value.size() - encoded.size());
}

}  // namespace

void ExpectSameAnswer(const Result& engine, const Result& model) {
  ASSERT_EQ(engine.status.code(), model.status.code()) << engine.status;
  ASSERT_EQ(ReasonOf(engine.status), ReasonOf(model.status)) << engine.status;
  ASSERT_EQ(FieldOf(engine.status), FieldOf(model.status)) << engine.status;
  if (!model.status.ok()) {
    ASSERT_FALSE(engine.status.message().empty());
    ASSERT_EQ(engine.version, 0u);
    return;
  }
  ASSERT_EQ(engine.found, model.found);
  ASSERT_EQ(engine.version, model.version)
      << (model.version == 0 ? "a version where none is due"
                             : "no version where one is due");
  ASSERT_EQ(engine.has_entry, model.has_entry);
  if (model.has_entry) {
    ASSERT_TRUE(engine.entry.value == model.entry.value)
        << engine.entry.value.size() << " bytes instead of "
        << model.entry.value.size() << ", or others";
    ASSERT_EQ(engine.entry.version, model.entry.version);
    ASSERT_EQ(engine.entry.put_us, model.entry.put_us);
    ASSERT_EQ(engine.entry.deadline_us, model.entry.deadline_us);
    ASSERT_EQ(engine.entry.create_us, model.entry.create_us);
    ASSERT_EQ(engine.entry.own_ttl_us, model.entry.own_ttl_us);
    ASSERT_EQ(engine.entry.parts, model.entry.parts);
  }
  ASSERT_EQ(engine.removed, model.removed);
  ASSERT_EQ(engine.duplicate, model.duplicate);
  ASSERT_EQ(engine.number, model.number);
}

Result ReferenceModel::Apply(const Operation& op, int64_t now_us,
                             uint64_t version) {
  Result malformed;
  malformed.status = Malformed(op, options_, now_us);
  if (op.id_bytes == 0 || !malformed.status.ok()) {
    return ApplyOnce(op, now_us, version);
  }
  auto& [until_us, answer] =
      answers_[{std::string(op.key), std::string(op.id())}];
  if (until_us > now_us) {
    Advance(now_us);
    return answer;
  }
  Result result = ApplyOnce(op, now_us, version);
  if (result.status.ok()) {
    until_us = now_us + options_.idempotency_window_us;
    answer = result;
    // Only the value is remembered.
    answer.entry = {};
    answer.entry.value = result.entry.value;
    answer.entry.parts = result.entry.parts;
  }
  return result;
}

Result ReferenceModel::ApplyOnce(const Operation& op, int64_t now_us,
                                 uint64_t version) {
  Advance(now_us);
  now_us_ = now_us;
  const std::string key(op.key);
  for (;;) {
    const auto it = entries_.find(key);
    Stored* stored = it == entries_.end() ? nullptr : &it->second;
    Result result;
    result.found = stored != nullptr;
    result.status = Malformed(op, options_, now_us);
    if (result.status.ok()) result.status = Unmet(op, stored);
    if (!result.status.ok()) return result;
    Made made;
    if (IsMade(op)) {
      made = Make(op, stored);
      result.status = made.status;
      if (!result.status.ok()) return result;
      if (made.stores) result.status = Full(key, made, stored);
    }
    if (result.status.ok()) {
      if (IsMade(op)) {
        DoMade(op, key, now_us, version, std::move(made), stored, &result);
      } else {
        Do(op, key, now_us, stored, &result);
      }
      return result;
    }
    if (!EvictFor(op, made.alone_bytes, now_us)) return result;
  }
}

ReferenceModel::Made ReferenceModel::Make(const Operation& op,
                                          const Stored* stored) const {
  Made made;
  if (stored != nullptr) made.entry = *stored;
  made.renews = stored == nullptr || op.touch;
  if (stored == nullptr || op.kind == OpKind::kPut) {
    made.entry.trace = std::string(op.trace());
  }
  switch (op.kind) {
    case OpKind::kAppend:
      Append(op, stored, &made);
      break;
    case OpKind::kCombine:
      Combine(op, stored, &made);
      break;
    case OpKind::kGather:
      Gather(op, stored, &made);
      break;
    default:
      made.renews = stored == nullptr || !op.keep_deadline;
      made.stores = true;
      made.entry.entry.value = std::string(op.value);
      made.entry.entry.parts = op.parts;
      if (op.parts) ReadParts(&made.entry);
      made.alone_bytes = BytesOf(op.key, op.value);
      if (made.renews) made.entry.entry.own_ttl_us = 0;
  }
  const auto bytes = static_cast<int64_t>(
      made.stores ? made.entry.entry.value.size() : made.whole.value.size());
  if (made.status.ok() && bytes > options_.max_value_bytes) {
    made.status = Error(Reason::kValueTooLarge);
  }
  return made;
}

void ReferenceModel::Append(const Operation& op, const Stored* stored,
                            Made* made) const {
  if (stored != nullptr && stored->entry.parts) {
    made->status = Error(Reason::kValueKindMismatch);
    return;
  }
  std::string& value = made->entry.entry.value;
  value += std::string(op.value);
  made->stores = true;
  made->alone_bytes = BytesOf(op.key, op.value);
  made->number = static_cast<int64_t>(value.size());
}

void ReferenceModel::Combine(const Operation& op, const Stored* stored,
                             Made* made) {
  int64_t number = op.initial;
  if (stored != nullptr && stored->entry.parts) {
    made->status = Error(Reason::kValueKindMismatch);
    return;
  }
  if (stored != nullptr && !IsNumber(stored->entry.value, &number)) {
    made->status = Error(Reason::kNotANumber);
    return;
  }
  const auto wide = static_cast<__int128>(number) + op.operand;
  if (op.combination == Combination::kXor) {
    number ^= op.operand;
  } else if (wide < INT64_MIN || wide > INT64_MAX) {
    made->status = Error(Reason::kNumberOverflow);
    return;
  } else {
    number = static_cast<int64_t>(wide);
  }
  made->number = number;
  made->removed = op.remove_if_zero && number == 0;
  made->stores = !made->removed;
  made->entry.entry.value = std::to_string(number);
  made->alone_bytes = BytesOf(op.key, made->entry.entry.value);
}

void ReferenceModel::Gather(const Operation& op, const Stored* stored,
                            Made* made) const {
  const std::string name(op.gathering->part());
  std::string expectation(op.gathering->expectation());
  uint32_t expected = op.gathering->expected();
  Stored& next = made->entry;
  const auto remembered = remembered_.find(std::string(op.key));
  if (stored != nullptr && stored->entry.parts && expected == 0) {
    expectation = stored->expectation;
    expected = ReadExpectation(stored->entry.value, name).parts;
  }
  if (stored == nullptr && remembered != remembered_.end() &&
      remembered->second > now_us_) {
    made->status =
        Error(Reason::kGatherComplete, absl::StatusCode::kAlreadyExists);
  } else if (stored == nullptr && expected == 0) {
    made->status = Error(Reason::kKeyNotFound);
  } else if (stored != nullptr && !stored->entry.parts) {
    made->status = Error(Reason::kValueKindMismatch);
  } else if (stored != nullptr && stored->expectation != expectation) {
    made->status = Error(Reason::kGatherMismatch);
  } else if (op.gathering->expected() == 0 &&
             !ReadExpectation(stored->entry.value, name).has_part) {
    made->status = InvalidField("part", "");
  } else if (stored != nullptr && stored->parts.contains(name)) {
    made->duplicate =
        op.gathering->keep_first || stored->parts.at(name) == op.value;
    made->number = static_cast<int64_t>(stored->parts.size());
    if (!made->duplicate) {
      made->status =
          Error(Reason::kPartExists, absl::StatusCode::kAlreadyExists);
    }
  } else {
    if (stored == nullptr) next.entry.value = expectation;
    std::string part;
    AppendPart({name, op.value}, &part);
    next.entry.value += part;
    next.entry.parts = true;
    next.expectation = expectation;
    next.parts[name] = std::string(op.value);
    made->alone_bytes = BytesOf(op.key, expectation + part);
    made->number = static_cast<int64_t>(next.parts.size());
    made->removed = next.parts.size() == expected;
    made->stores = !made->removed;
    if (made->removed) made->whole = next.entry;
  }
}

// What does not grow is never refused.
absl::Status ReferenceModel::Full(const std::string& key, const Made& made,
                                  const Stored* stored) const {
  const auto full = [](Reason reason) {
    return Error(reason, absl::StatusCode::kResourceExhausted);
  };
  const auto entries = static_cast<int64_t>(entries_.size());
  if (stored == nullptr && options_.max_entries != 0 &&
      entries + 1 > options_.max_entries) {
    return full(Reason::kMaxEntries);
  }
  int64_t more = BytesOf(key, made.entry.entry.value);
  if (stored != nullptr) more -= BytesOf(key, stored->entry.value);
  if (more > 0 && options_.max_bytes != 0 &&
      bytes_ + more > options_.max_bytes) {
    return full(Reason::kMaxBytes);
  }
  return absl::OkStatus();
}

// A put that no eviction can make room for evicts nothing.
bool ReferenceModel::EvictFor(const Operation& op, int64_t alone_bytes,
                              int64_t now_us) {
  if (options_.limit_policy != LimitPolicy::kEvictOldest) return false;
  if (options_.max_bytes != 0 && alone_bytes > options_.max_bytes) {
    return false;
  }
  if (buckets_.empty()) return false;
  if (buckets_.size() == 1 && survives_) return EvictSome(op, now_us);
  Kill(buckets_.begin()->first, now_us, now_us + 1, Cause::kEvicted);
  return true;
}

// Those that do not survive, but no more than it must.
bool ReferenceModel::EvictSome(const Operation& op, int64_t now_us) {
  const std::set<std::string> keys = buckets_.begin()->second;
  const std::string op_key(op.key);
  int64_t killed = 0;
  int64_t largest_bytes = 0;
  bool own_key = false;
  for (const std::string& key : keys) {
    if (survives_(key)) continue;
    const Stored& stored = entries_.at(key);
    ++killed;
    largest_bytes = std::max(largest_bytes, BytesOf(key, stored.entry.value));
    own_key = own_key || key == op.key;
    deaths_.push_back(
        {key, stored.entry, now_us, now_us + 1, Cause::kEvicted, stored.trace});
    Erase(key);
  }
  const auto it = entries_.find(op_key);
  const Stored* const stored = it == entries_.end() ? nullptr : &it->second;
  // With its own entry, the operation's condition may have gone, or it makes
  // another one of nothing: then it needs no room.
  if (own_key && !Unmet(op, stored).ok()) return true;
  const Made made = Make(op, stored);
  if (own_key && (!made.status.ok() || !made.stores)) return true;
  EXPECT_TRUE(Full(op_key, made, stored).ok()) << "evicted less than it must";
  if (killed == 0 || own_key) return killed > 0;
  // One less would not have done.
  const bool grows = stored == nullptr;
  const int64_t more_bytes = BytesOf(op.key, made.entry.entry.value) -
                             (grows ? 0 : BytesOf(op.key, stored->entry.value));
  const bool entries_full =
      grows && options_.max_entries != 0 &&
      static_cast<int64_t>(entries_.size()) + 2 > options_.max_entries;
  const bool bytes_full =
      more_bytes > 0 && options_.max_bytes != 0 &&
      bytes_ + more_bytes + largest_bytes > options_.max_bytes;
  EXPECT_TRUE(entries_full || bytes_full) << "evicted more than it must";
  return true;
}

void ReferenceModel::DoMade(const Operation& op, const std::string& key,
                            int64_t now_us, uint64_t version, Made made,
                            const Stored* stored, Result* result) {
  if (op.return_previous && stored != nullptr) {
    result->has_entry = true;
    result->entry = stored->entry;
  }
  result->number = made.number;
  result->removed = made.removed;
  result->duplicate = made.duplicate;
  if (made.duplicate) {
    result->version = stored->entry.version;
    return;
  }
  if (made.removed && op.kind == OpKind::kGather) {
    if (op.gathering->remember_us != 0) {
      remembered_[key] = now_us + op.gathering->remember_us;
    }
    result->has_entry = true;
    result->entry = std::move(made.whole);
    if (stored == nullptr) {
      result->entry.create_us = now_us;
      BeginLife(op, now_us, &result->entry);
    }
  }
  if (stored != nullptr) {
    Erase(key);
  } else {
    made.entry.entry.create_us = now_us;
  }
  if (!made.stores) return;
  result->version = made.entry.entry.version = version;
  if (made.renews) {
    Store(op, key, std::move(made.entry), now_us);
  } else {
    Place(key, std::move(made.entry));
  }
}

void ReferenceModel::Do(const Operation& op, const std::string& key,
                        int64_t now_us, Stored* stored, Result* result) {
  if (op.return_previous && stored != nullptr) {
    result->has_entry = true;
    result->entry = stored->entry;
  }
  switch (op.kind) {
    case OpKind::kPut:
    case OpKind::kAppend:
    case OpKind::kCombine:
    case OpKind::kGather:
      return;
    case OpKind::kRemove:
      if (stored != nullptr) Erase(key);
      return;
    case OpKind::kContains:
      return;
    case OpKind::kGet:
      if (stored == nullptr) return;
      if (op.touch || (options_.sliding && !op.never_touch)) {
        stored = Renew(op, key, now_us, *stored);
      }
      result->has_entry = true;
      result->entry = stored->entry;
      return;
    case OpKind::kTouch:
      if (stored == nullptr) return;
      result->version = stored->entry.version;
      Renew(op, key, now_us, *stored);
      return;
  }
}

ReferenceModel::Stored* ReferenceModel::Renew(const Operation& op,
                                              const std::string& key,
                                              int64_t now_us, Stored renewed) {
  Erase(key);
  return Store(op, key, std::move(renewed), now_us);
}

void ReferenceModel::BeginLife(const Operation& op, int64_t now_us,
                               Entry* entry) const {
  if (op.has_ttl) entry->own_ttl_us = op.ttl_us;
  if (op.namespace_ttl) entry->own_ttl_us = 0;
  const bool own = entry->own_ttl_us != 0;
  // 0 of a new one.
  const int64_t before_us = entry->deadline_us;
  entry->put_us = now_us;
  entry->deadline_us = now_us + (own ? entry->own_ttl_us : options_.ttl_us);
  if (op.has_expire_at) entry->deadline_us = op.expire_at_us;
  if (options_.max_life_us != 0) {
    const int64_t last_us =
        std::max(entry->create_us + options_.max_life_us, before_us);
    entry->deadline_us = std::min(entry->deadline_us, last_us);
  }
}

ReferenceModel::Stored* ReferenceModel::Store(const Operation& op,
                                              const std::string& key,
                                              Stored stored, int64_t now_us) {
  BeginLife(op, now_us, &stored.entry);
  stored.death_us =
      stored.entry.deadline_us > now_us
          ? DeathTimeUs(stored.entry.deadline_us, BucketWidthUs(options_))
          : now_us + 1;
  return Place(key, std::move(stored));
}

ReferenceModel::Stored* ReferenceModel::Place(const std::string& key,
                                              Stored stored) {
  bytes_ += BytesOf(key, stored.entry.value);
  buckets_[stored.death_us].insert(key);
  return &(entries_[key] = std::move(stored));
}

void ReferenceModel::Erase(const std::string& key) {
  const auto it = entries_.find(key);
  const auto bucket = buckets_.find(it->second.death_us);
  bucket->second.erase(key);
  if (bucket->second.empty()) buckets_.erase(bucket);
  bytes_ -= BytesOf(key, it->second.entry.value);
  entries_.erase(it);
}

int64_t ReferenceModel::Kill(int64_t bucket_us, int64_t earliest_us,
                             int64_t latest_us, Cause cause) {
  const std::set<std::string> keys = buckets_.at(bucket_us);
  for (const std::string& key : keys) {
    const Stored& stored = entries_.at(key);
    deaths_.push_back(
        {key, stored.entry, earliest_us, latest_us, cause, stored.trace});
    Erase(key);
  }
  return static_cast<int64_t>(keys.size());
}

void ReferenceModel::Advance(int64_t now_us) {
  while (NextDeathUs() <= now_us) {
    const int64_t death_us = NextDeathUs();
    Kill(death_us, death_us, death_us, Cause::kExpired);
  }
}

int64_t ReferenceModel::Rotate(int64_t now_us) {
  Advance(now_us);
  if (buckets_.empty()) return 0;
  return Kill(buckets_.begin()->first, now_us, now_us + 1, Cause::kRotated);
}

}  // namespace timecache::server
