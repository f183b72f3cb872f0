// Atomic batches: all operations or none, under the locks of all shards that
// they use.

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "server/base/block_pool.h"
#include "server/base/check.h"
#include "server/base/error.h"
#include "server/base/memory_reclaimer.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/store/atomic.h"

namespace timecache::server {

// The items of one atomic batch, in the order of the request, and the shards
// that they use. Not thread-safe. Lives on the stack: some 12 KiB.
class AtomicBatch {
 public:
  AtomicBatch(absl::Span<const Operation> ops, const KeyHash& key_hash,
              absl::Span<const std::unique_ptr<Shard>> shards,
              absl::Span<Result> results)
      : results_(results), count_(ops.size()) {
    std::array<uint16_t, kMaxShards> uses = {};
    const uint64_t mask = shards.size() - 1;
    for (size_t i = 0; i < count_; ++i) {
      const uint64_t hash = key_hash(ops[i].key);
      items_[i] = {&ops[i], hash, &results[i]};
      of_[i] = shards[hash & mask].get();
      ++uses[hash & mask];
    }
    for (size_t s = 0; s < shards.size(); ++s) {
      if (uses[s] == 0) continue;
      used_[used_count_++] = {shards[s].get(), uses[s]};
    }
  }

  // Operations whose conditions depend on another one cannot be checked first.
  bool HasRepeatedKey() const {
    std::array<uint8_t, kMaxAtomicOperations> order;
    for (size_t i = 0; i < count_; ++i) order[i] = static_cast<uint8_t>(i);
    const auto key_of = [this](uint8_t i) { return items_[i].op->key; };
    std::sort(order.begin(), order.begin() + count_,
              [&](uint8_t a, uint8_t b) { return key_of(a) < key_of(b); });
    return std::adjacent_find(order.begin(), order.begin() + count_,
                              [&](uint8_t a, uint8_t b) {
                                return key_of(a) == key_of(b);
                              }) != order.begin() + count_;
  }

  // What kept the last attempt from being applied: a limit, at this operation,
  // or the errors of results.
  LimitHit hit = LimitHit::kNone;
  size_t hit_at = 0;
  // What all add together, and the entries that they make or change, alone.
  Usage::Amount more;
  Usage::Amount alone;
  bool failed = false;
  int64_t new_death_us = kNeverUs;

  Result& blamed() { return results_[hit_at]; }
  absl::Span<Result> results() { return results_; }

  void Prepare(int64_t now_us) {
    for (size_t i = 0; i < count_; ++i) {
      const Operation& op = *items_[i].op;
      if (op.kind == OpKind::kAppend || op.kind == OpKind::kGather) {
        of_[i]->PrepareAppend(op, items_[i].hash, now_us);
      }
    }
  }
  int64_t Lock(int64_t now_us) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const Used& used : shards()) used.shard->Lock();
    for (const Used& used : shards()) {
      now_us = std::max(now_us, used.shard->SeenLocked());
    }
    return now_us;
  }
  void Check(int64_t now_us) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Blame(const Usage& usage);
  void Apply() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Returns what was added to the account in vain.
  Usage::Amount Unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  struct Used {
    Shard* shard;
    size_t operations;
  };
  absl::Span<const Used> shards() const {
    return absl::MakeConstSpan(used_).subspan(0, used_count_);
  }
  void SkipConditionsOfRepetition();

  const absl::Span<Result> results_;
  const size_t count_;
  // Left uninitialized, but for what is used.
  std::array<Shard::Item, kMaxAtomicOperations> items_;
  std::array<Shard*, kMaxAtomicOperations> of_;
  std::array<Usage::Amount, kMaxAtomicOperations> adds_;
  std::array<Used, kMaxAtomicOperations> used_;
  size_t used_count_ = 0;
  // Those that are done by the check.
  std::array<bool, kMaxAtomicOperations> skipped_;
  ChangeSink* sink_ = nullptr;
  std::unique_ptr<AtomicWatch> watch_;
  bool applied_ = false;
};

// Sets what is public, and the results' errors.
void AtomicBatch::Check(int64_t now_us) {
  hit = LimitHit::kNone;
  more = alone = {};
  failed = applied_ = false;
  sink_ = shards()[0].shard->SinkLocked();
  const auto limit = [this](LimitHit limit_hit, size_t i) {
    if (hit != LimitHit::kNone) return;
    hit = limit_hit;
    hit_at = i;
  };
  for (const Used& used : shards()) {
    if (used.shard->BeginAtomicLocked(now_us, used.operations)) continue;
    limit(LimitHit::kShardFull,
          static_cast<size_t>(
              std::find(of_.begin(), of_.begin() + count_, used.shard) -
              of_.begin()));
  }
  ResponseBudget room;
  bool repeats = false;
  for (size_t i = 0; i < count_; ++i) {
    items_[i].result->Clear();
    const Shard::Outcome outcome = of_[i]->CheckAtomicLocked(items_[i], &room);
    if (outcome.hit != LimitHit::kNone) limit(outcome.hit, i);
    adds_[i] = outcome.more;
    if (outcome.alone_bytes > 0) {
      ++alone.entries;
      alone.bytes += outcome.alone_bytes;
    }
    skipped_[i] = outcome.repeated;
    repeats |= outcome.repeated;
  }
  if (repeats) SkipConditionsOfRepetition();
  for (const Result& result : results_) failed |= !result.status.ok();
  for (const Used& used : shards()) {
    const Usage::Amount added = used.shard->CheckedAtomicLocked();
    more.entries += added.entries;
    more.bytes += added.bytes;
  }
}

// A batch with a remembered answer has been applied before: its conditions held
// then, of operations that cannot have an id, too.
void AtomicBatch::SkipConditionsOfRepetition() {
  for (size_t i = 0; i < count_; ++i) {
    const OpKind kind = items_[i].op->kind;
    Result& result = *items_[i].result;
    if ((kind != OpKind::kContains && kind != OpKind::kTouch) ||
        !absl::IsFailedPrecondition(result.status)) {
      continue;
    }
    result.status = absl::OkStatus();
    // Not renewed.
    if (kind == OpKind::kTouch) result.found = false;
    skipped_[i] = true;
  }
}

// The first with which they do not fit, or the last that grows.
void AtomicBatch::Blame(const Usage& usage) {
  Usage::Amount sum;
  for (size_t i = 0; i < count_; ++i) {
    if (adds_[i].entries <= 0 && adds_[i].bytes <= 0) continue;
    sum.entries += adds_[i].entries;
    sum.bytes += adds_[i].bytes;
    hit_at = i;
    if (!usage.Fits(sum)) return;
  }
}

// All, as they were checked.
void AtomicBatch::Apply() {
  std::unique_ptr<AtomicChanges> changes;
  if (sink_ != nullptr) changes = sink_->NewAtomic();
  for (const Used& used : shards()) {
    used.shard->BeginApplyLocked(used.operations, changes.get(), &watch_);
  }
  ResponseBudget room;
  for (size_t i = 0; i < count_; ++i) {
    if (skipped_[i]) continue;
    items_[i].result->Clear();
    new_death_us =
        std::min(new_death_us, of_[i]->ApplyAtomicLocked(items_[i], &room));
  }
  applied_ = true;
  if (changes != nullptr) sink_->AddAtomic(std::move(changes));
}

Usage::Amount AtomicBatch::Unlock() {
  Usage::Amount unused;
  if (applied_) unused = more;
  for (const Used& used : shards()) {
    const Usage::Amount added = used.shard->EndAtomicLocked(sink_);
    unused.entries -= added.entries;
    unused.bytes -= added.bytes;
  }
  watch_ = nullptr;
  // After all shards have their sink back.
  for (size_t i = 0; i < count_; ++i) of_[i]->SetPositionLocked(items_[i]);
  for (const Used& used : shards()) used.shard->Unlock();
  return unused;
}

// One attempt.
void TimeCacheMap::TryAtomic(AtomicBatch* batch, int64_t now_us) {
  now_us = batch->Lock(now_us);
  batch->Check(now_us);
  if (!batch->failed && batch->hit == LimitHit::kNone) {
    batch->hit = usage_.Add(batch->more.entries, batch->more.bytes);
    if (batch->hit == LimitHit::kNone) {
      batch->Apply();
    } else {
      batch->Blame(usage_);
    }
  }
  const Usage::Amount unused = batch->Unlock();
  if (unused.entries != 0 || unused.bytes != 0) {
    usage_.Subtract(unused.entries, unused.bytes);
  }
  if (batch->new_death_us != kNeverUs) {
    AnnounceDeath(batch->new_death_us, now_us);
  }
}

// Makes room at a limit, if permitted, as ApplyOne does.
absl::Status TimeCacheMap::ApplyAtomic(absl::Span<const Operation> ops,
                                       int64_t now_us,
                                       absl::Span<Result> results) {
  TIMECACHED_CHECK(ops.size() == results.size() &&
                   ops.size() <= kMaxAtomicOperations);
  if (ops.empty()) return absl::OkStatus();
  AtomicBatch batch(ops, key_hash_, shards_, results);
  if (batch.HasRepeatedKey()) {
    return InvalidField("operations",
                        "must each have a key of its own in an atomic batch");
  }
  bool valid = true;
  for (size_t i = 0; i < ops.size(); ++i) {
    results[i].Clear();
    results[i].status = Check(ops[i], now_us);
    valid &= results[i].status.ok();
  }
  if (valid) batch.Prepare(now_us);
  while (valid) {
    TryAtomic(&batch, now_us);
    if (batch.failed) break;
    const LimitHit hit = batch.hit;
    if (hit == LimitHit::kNone) {
      BlockPool::Default().Prepare();
      return absl::OkStatus();
    }
    if (hit == LimitHit::kMaxMemory) {
      batch.blamed().status = MemoryReclaimer::Process().MakeRoom(now_us);
      if (batch.blamed().status.ok()) continue;
      CountRefused(hit);
      break;
    }
    if (hit == LimitHit::kShardFull ||
        !MakeRoom(now_us, batch.more, batch.alone)) {
      batch.blamed().status = LimitError(hit);
      break;
    }
  }
  AbortOthers(results);
  return absl::OkStatus();
}

}  // namespace timecache::server
