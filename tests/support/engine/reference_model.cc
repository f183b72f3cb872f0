#include "tests/support/engine/reference_model.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "server/engine/error.h"

namespace timecache::server {
namespace {

absl::Status Malformed(const Operation& op, const MapOptions& options) {
  if (op.key.empty() || op.key.size() > kMaxKeyBytes) {
    return InvalidField("key", "");
  }
  if (op.kind == OpKind::kPut &&
      static_cast<int64_t>(op.value.size()) > options.max_value_bytes) {
    return InvalidField("value", "");
  }
  const bool takes_ttl = op.kind == OpKind::kPut || op.kind == OpKind::kTouch;
  if (takes_ttl && op.has_ttl &&
      (op.ttl_us < kMinTtlUs || op.ttl_us > options.max_ttl_us)) {
    return InvalidField("ttl", "");
  }
  return absl::OkStatus();
}

absl::Status Unmet(const Operation& op, const ReferenceModel::Stored* stored) {
  const auto unmet = [](Reason reason) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, reason, "");
  };
  const bool conditional = op.kind == OpKind::kPut ||
                           op.kind == OpKind::kRemove ||
                           op.kind == OpKind::kTouch;
  if (!conditional || op.condition == Condition::kNone) return absl::OkStatus();
  if (op.condition == Condition::kIfAbsent) {
    return stored == nullptr ? absl::OkStatus() : unmet(Reason::kKeyExists);
  }
  if (stored == nullptr) return unmet(Reason::kKeyNotFound);
  if (op.condition == Condition::kIfVersion &&
      stored->entry.version != op.if_version) {
    return unmet(Reason::kVersionMismatch);
  }
  return absl::OkStatus();
}

int64_t BytesOf(absl::string_view key, absl::string_view value) {
  return static_cast<int64_t>(key.size() + value.size());
}

}  // namespace

Result ReferenceModel::Apply(const Operation& op, int64_t now_us,
                             uint64_t version) {
  Advance(now_us);
  const std::string key(op.key);
  for (;;) {
    const auto it = entries_.find(key);
    Stored* stored = it == entries_.end() ? nullptr : &it->second;
    Result result;
    result.found = stored != nullptr;
    result.status = Malformed(op, options_);
    if (result.status.ok()) result.status = Unmet(op, stored);
    if (!result.status.ok()) return result;
    if (op.kind == OpKind::kPut) result.status = Full(op, stored);
    if (result.status.ok()) {
      Do(op, key, now_us, version, stored, &result);
      return result;
    }
    if (!EvictFor(op, now_us)) return result;
  }
}

// What does not grow is never refused.
absl::Status ReferenceModel::Full(const Operation& op,
                                  const Stored* stored) const {
  const auto full = [](Reason reason) {
    return ErrorWithReason(absl::StatusCode::kResourceExhausted, reason, "");
  };
  const auto entries = static_cast<int64_t>(entries_.size());
  if (stored == nullptr && options_.max_entries != 0 &&
      entries + 1 > options_.max_entries) {
    return full(Reason::kMaxEntries);
  }
  int64_t more = BytesOf(op.key, op.value);
  if (stored != nullptr) more -= BytesOf(op.key, stored->entry.value);
  if (more > 0 && options_.max_bytes != 0 &&
      bytes_ + more > options_.max_bytes) {
    return full(Reason::kMaxBytes);
  }
  return absl::OkStatus();
}

// A put that no eviction can make room for evicts nothing.
bool ReferenceModel::EvictFor(const Operation& op, int64_t now_us) {
  if (options_.limit_policy != LimitPolicy::kEvictOldest) return false;
  if (options_.max_bytes != 0 &&
      BytesOf(op.key, op.value) > options_.max_bytes) {
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
  int64_t killed = 0;
  int64_t largest_bytes = 0;
  bool own_key = false;
  for (const std::string& key : keys) {
    if (survives_(key)) continue;
    const Stored& stored = entries_.at(key);
    ++killed;
    largest_bytes = std::max(largest_bytes, BytesOf(key, stored.entry.value));
    own_key = own_key || key == op.key;
    deaths_.push_back({key, stored.entry, now_us, now_us + 1, Cause::kEvicted});
    Erase(key);
  }
  const auto it = entries_.find(std::string(op.key));
  const Stored* const stored = it == entries_.end() ? nullptr : &it->second;
  // With its own entry, the put's condition may have gone: then it needs no
  // room.
  if (own_key && !Unmet(op, stored).ok()) return true;
  EXPECT_TRUE(Full(op, stored).ok()) << "evicted less than it must";
  if (killed == 0 || own_key) return killed > 0;
  // One less would not have done.
  const bool grows = stored == nullptr;
  const int64_t more_bytes = BytesOf(op.key, op.value) -
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

void ReferenceModel::Do(const Operation& op, const std::string& key,
                        int64_t now_us, uint64_t version, Stored* stored,
                        Result* result) {
  if (op.return_previous && stored != nullptr) {
    result->has_entry = true;
    result->entry = stored->entry;
  }
  switch (op.kind) {
    case OpKind::kPut:
      if (stored != nullptr) Erase(key);
      result->version = version;
      Store(key, {{std::string(op.value), version}, op.has_ttl, op.ttl_us},
            now_us);
      return;
    case OpKind::kRemove:
      if (stored != nullptr) Erase(key);
      return;
    case OpKind::kContains:
      return;
    case OpKind::kGet:
      if (stored == nullptr) return;
      if (op.touch || options_.sliding) {
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
  if (op.kind == OpKind::kTouch && op.has_ttl) {
    renewed.has_own_ttl = true;
    renewed.own_ttl_us = op.ttl_us;
  }
  return Store(key, std::move(renewed), now_us);
}

ReferenceModel::Stored* ReferenceModel::Store(const std::string& key,
                                              Stored stored, int64_t now_us) {
  const int64_t ttl_us =
      stored.has_own_ttl ? stored.own_ttl_us : options_.ttl_us;
  stored.entry.put_us = now_us;
  stored.entry.deadline_us = now_us + ttl_us;
  stored.death_us =
      DeathTimeUs(stored.entry.deadline_us, BucketWidthUs(options_));
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
    deaths_.push_back(
        {key, entries_.at(key).entry, earliest_us, latest_us, cause});
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
