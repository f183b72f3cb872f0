// A batch's items, sorted by shard.

#ifndef TIMECACHED_SERVER_ENGINE_MAP_ITEMS_BY_SHARD_H_
#define TIMECACHED_SERVER_ENGINE_MAP_ITEMS_BY_SHARD_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "server/engine/shard/shard.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {

// Items of one shard keep their order. As they are applied they leave, and a
// shard without items is no longer among shards().
//
// Not thread-safe. Lives on the stack: some 14 KiB.
class ItemsByShard {
 public:
  static constexpr size_t kMaxItems = 512;

  // Takes kMaxItems at most, by the bits of their hashes under `mask`, which is
  // below kMaxShards.
  ItemsByShard(absl::Span<const Shard::Item> items, uint64_t mask) {
    const size_t shards = mask + 1;
    std::fill_n(begin_.begin(), shards + 1, uint16_t{0});
    for (const Shard::Item& item : items) ++begin_[(item.hash & mask) + 1];
    for (size_t s = 1; s <= shards; ++s) begin_[s] += begin_[s - 1];
    std::copy_n(begin_.begin(), shards, end_.begin());
    for (const Shard::Item& item : items) {
      items_[end_[item.hash & mask]++] = item;
    }
    // Batches that all began with the same shard would meet there, and then at
    // each further one.
    const size_t first = items.empty() ? 0 : items[0].hash >> 32;
    for (size_t i = 0; i < shards; ++i) {
      const size_t s = (first + i) & mask;
      if (begin_[s] != end_[s]) Return(s);
    }
  }

  // Those that have items left, in the order in which they should be tried.
  absl::Span<const uint16_t> shards() const {
    return absl::MakeConstSpan(shards_).subspan(0, shard_count_);
  }
  absl::Span<const Shard::Item> of(size_t shard) const {
    return absl::MakeConstSpan(items_).subspan(
        begin_[shard], static_cast<size_t>(end_[shard] - begin_[shard]));
  }
  // The first `count` items of a shard are done with.
  void Drop(size_t shard, size_t count) {
    begin_[shard] = static_cast<uint16_t>(begin_[shard] + count);
  }

  // Takes the shards off the list for which `take` returns true.
  template <typename Take>
  void TakeShards(Take take) {
    size_t kept = 0;
    for (size_t i = 0; i < shard_count_; ++i) {
      const uint16_t s = shards_[i];
      if (!take(s)) shards_[kept++] = s;
    }
    shard_count_ = kept;
  }
  // Puts one back, behind the others.
  void Return(size_t shard) {
    shards_[shard_count_++] = static_cast<uint16_t>(shard);
  }

 private:
  // Left uninitialized, but for what is used.
  std::array<Shard::Item, kMaxItems> items_;
  // Of each shard's items.
  std::array<uint16_t, kMaxShards + 1> begin_;
  std::array<uint16_t, kMaxShards> end_;
  std::array<uint16_t, kMaxShards> shards_;
  size_t shard_count_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_MAP_ITEMS_BY_SHARD_H_
