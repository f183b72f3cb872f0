// The batches that a consumer group keeps, for as long as an event in them is
// unsettled.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_RETAINED_BATCHES_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_RETAINED_BATCHES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/groups/backlog_account.h"
#include "server/engine/store/event_batch.h"
#include "server/engine/store/group_types.h"

namespace timecache::server {

// A batch and what the group has done with it.
struct RetainedBatch {
  std::shared_ptr<const EventBatch> batch;
  // The number of its first event, or one below that. Events that have been
  // opened know their own.
  uint64_t first = 0;
  // Events from this one on are fresh: they have not been examined.
  int next = 0;
  // Events before `next` that are unsettled.
  int unsettled = 0;
  // Of each event: its number less `first`. Null: they follow each other.
  std::shared_ptr<const std::vector<uint32_t>> places = nullptr;

  // Of a fresh event.
  uint64_t number(int i) const {
    return first + (places == nullptr ? static_cast<uint64_t>(i)
                                      : (*places)[static_cast<size_t>(i)]);
  }
  // The index of the first event whose number is not below this one.
  int IndexFrom(uint64_t number) const;
  int fresh() const { return batch->size() - next; }
};

// Not thread-safe. Append is O(1), as is opening an event; releasing a batch
// costs O(log of their number).
class RetainedBatches {
 public:
  // `account` counts what is kept; not owned.
  explicit RetainedBatches(BacklogAccount* account) : account_(account) {}
  ~RetainedBatches() { Clear(); }
  RetainedBatches(const RetainedBatches&) = delete;
  RetainedBatches& operator=(const RetainedBatches&) = delete;

  // A batch whose events before `next` are ignored.
  void Append(uint64_t first, std::shared_ptr<const EventBatch> batch, int next,
              std::shared_ptr<const std::vector<uint32_t>> places = nullptr);
  void Clear();

  // Events that have not been examined.
  uint64_t fresh() const { return fresh_; }
  // The batch that the next of them lies in; null if there is none.
  const RetainedBatch* FirstFresh() const;
  // The first with fresh events from this number on.
  const RetainedBatch* FreshFrom(uint64_t number) const;
  bool IsFresh(uint64_t number) const;
  // Of those from this number on. O(batches).
  uint64_t CountFreshFrom(uint64_t number) const;
  // The next of them, which is unsettled from now on. There must be one.
  struct Opened {
    RetainedBatch* retained;
    int index;
    uint64_t id;
  };
  Opened OpenNext();

  // One event of `retained` is settled: if none is left, the batch is released.
  void Settled(RetainedBatch* retained);

  // All that were opened are, and `*gone` keeps the batches. O(batches).
  void SettleAll(std::vector<std::shared_ptr<const void>>* gone);

  // Memory of all batches, each counted once.
  int64_t bytes() const { return bytes_; }
  // Except the newest, which always stays.
  int64_t DroppableBytes() const;
  // When the oldest was published; kNeverUs if there is none.
  int64_t OldestPublishedUs() const;

  // For dropping events beyond a limit, from the oldest on: null past the last.
  RetainedBatch* Oldest();
  RetainedBatch* After(const RetainedBatch* retained);
  bool IsNewest(const RetainedBatch* retained) const;
  // Drops the fresh events of the oldest batch that has some, and the batch if
  // it has no others; returns how many.
  uint64_t DropFresh(RetainedBatch* retained);
  // Drops fresh events with numbers below this one; returns how many.
  uint64_t DropFreshBefore(uint64_t number);
  // There are no events with this number or above it any more: opened ones have
  // been settled.
  void CutFrom(uint64_t number);
  // Keeps only these events of `retained`, if that takes less memory. Returns
  // whether it did: they are then those of the new batch, in this order.
  bool Shrink(RetainedBatch* retained, absl::Span<const int> events);

 private:
  using Batches = std::map<uint64_t, RetainedBatch>;

  void EraseIfDone(RetainedBatch* retained);
  void Keep(const EventBatch& batch);
  void Release(const EventBatch& batch);

  BacklogAccount* const account_;
  // By the number of the first event.
  Batches batches_;
  // The first with fresh events.
  Batches::iterator first_fresh_ = batches_.end();
  uint64_t fresh_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_RETAINED_BATCHES_H_
