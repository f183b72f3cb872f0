// Batches: many operations under the locks of several shards.

#include <algorithm>
#include <array>

#include "server/base/block_pool.h"
#include "server/base/check.h"
#include "server/engine/map/items_by_shard.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server {
namespace {

// With fewer in one turn, none is prefetched.
constexpr size_t kMinPrefetchItems = 4;

// A shard whose lock is held, and the items that are applied under it.
struct LockedShard {
  absl::Span<const Shard::Item> items() const { return {first, count}; }

  Shard* shard;
  const Shard::Item* first;
  uint16_t index;
  uint16_t count;
  uint16_t done;
};

// Shards that are locked at a time: with Shard::kMaxLockItems together.
class LockedShards {
 public:
  explicit LockedShards(absl::Span<const std::unique_ptr<Shard>> shards)
      : shards_(shards) {}

  // As many as are free. Waits for the first one, while none is locked: behind
  // all other threads that wait, if `wait_in_turn`.
  void Lock(ItemsByShard* items, bool wait_in_turn) {
    if (!wait_in_turn) {
      items->TakeShards([&](uint16_t s) { return LockOne(s, *items, kTry); });
    }
    if (count_ > 0) return;
    items->TakeShards([&](uint16_t s) {
      if (count_ > 0) return LockOne(s, *items, kTry);
      return LockOne(s, *items, wait_in_turn ? kInTurn : kWait);
    });
  }

  absl::Span<LockedShard> all() {
    return absl::MakeSpan(locked_).subspan(0, count_);
  }
  size_t items() const { return Shard::kMaxLockItems - room_; }

 private:
  enum How { kTry, kWait, kInTurn };

  bool LockOne(uint16_t index, const ItemsByShard& items,
               How how) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (room_ == 0) return false;
    Shard* const shard = shards_[index].get();
    if (how == kInTurn) {
      shard->LockInTurn();
    } else if (how == kWait) {
      shard->Lock();
    } else if (!shard->TryLock()) {
      return false;
    }
    const auto some = items.of(index).subspan(0, room_);
    room_ -= some.size();
    locked_[count_++] = {shard, some.data(), index,
                         static_cast<uint16_t>(some.size()), 0};
    return true;
  }

  const absl::Span<const std::unique_ptr<Shard>> shards_;
  // Left uninitialized, but for what is used.
  std::array<LockedShard, Shard::kMaxLockItems> locked_;
  size_t count_ = 0;
  size_t room_ = Shard::kMaxLockItems;
};

}  // namespace

void TimeCacheMap::ApplyBatch(absl::Span<const Operation> ops, int64_t now_us,
                              absl::Span<Result> results,
                              BatchProgress* progress) {
  TIMECACHED_CHECK(ops.size() == results.size());
  BatchProgress& at = *progress;
  const uint64_t until = at.room.copied() + BatchProgress::kTurnCopiedBytes;
  do {
    const auto group = results.subspan(at.begun, ItemsByShard::kMaxItems);
    if (at.reached == at.begun) {
      at.reached += group.size();
      for (Result& result : group) result.waits = true;
    }
    if (ApplyGroup(ops.subspan(at.begun, group.size()), now_us, until, &at.room,
                   group)) {
      at.begun = at.reached;
    }
    BlockPool::Default().Prepare();
    at.done = at.begun == ops.size();
  } while (!at.done && at.room.copied() < until);
}

// Those whose results wait. Returns whether none does any more: not, if much
// was copied.
bool TimeCacheMap::ApplyGroup(absl::Span<const Operation> ops, int64_t now_us,
                              uint64_t until_copied, ResponseBudget* room,
                              absl::Span<Result> results) {
  std::array<Shard::Item, ItemsByShard::kMaxItems> valid;
  size_t count = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!results[i].waits) continue;
    results[i].Clear();
    results[i].status = Check(ops[i], now_us);
    if (!results[i].status.ok()) continue;
    valid[count++] = {&ops[i], key_hash_(ops[i].key), &results[i]};
  }
  ItemsByShard items(absl::MakeConstSpan(valid).subspan(0, count), shard_mask_);
  bool stopped = false;
  while (!items.shards().empty() && room->copied() < until_copied) {
    stopped = ApplyTurn(&items, /*wait_in_turn=*/stopped, now_us, room);
  }
  for (const uint16_t shard : items.shards()) {
    for (const Shard::Item& item : items.of(shard)) item.result->waits = true;
  }
  return items.shards().empty();
}

// Applies what fits under the locks of as many shards as are free; other
// threads may hold the rest, which are retried after them. Returns whether it
// stopped before it was through, and may have taken long: then the next one is
// to `wait_in_turn`.
bool TimeCacheMap::ApplyTurn(ItemsByShard* items, bool wait_in_turn,
                             int64_t now_us, ResponseBudget* room)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  LockedShards locks(shards_);
  locks.Lock(items, wait_in_turn);
  const absl::Span<LockedShard> locked = locks.all();
  // A few do not make up for the walks.
  if (locks.items() >= kMinPrefetchItems) {
    for (const LockedShard& one : locked) {
      one.shard->PrefetchIndexLocked(one.items());
    }
    for (const LockedShard& one : locked) {
      one.shard->PrefetchRecordsLocked(one.items());
    }
  }
  int64_t new_death_us = kNeverUs;
  // One that stops has copied much, or is at a limit that others meet, too:
  // those after it release their locks.
  bool stopped = false;
  for (LockedShard& one : locked) {
    if (!stopped) {
      one.done = static_cast<uint16_t>(
          one.shard->ApplyLocked(one.items(), now_us, room, &new_death_us));
    }
    one.shard->Unlock();
    stopped |= one.done < one.count;
  }
  if (new_death_us != kNeverUs) AnnounceDeath(new_death_us, now_us);
  for (const LockedShard& one : locked) {
    items->Drop(one.index, one.done);
    if (one.done < one.count) {
      // At a limit: applied alone, room can be made for it. Or it has to copy,
      // for which the others need not be locked.
      const Shard::Item& item = items->of(one.index).front();
      item.result->Clear();
      ApplyOne(*item.op, item.hash, now_us, room, item.result);
      items->Drop(one.index, 1);
    }
    if (!items->of(one.index).empty()) items->Return(one.index);
  }
  return stopped;
}

}  // namespace timecache::server
