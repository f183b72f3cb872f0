// The number of a map's buckets, which are spread over its shards.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_LIVE_BUCKETS_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_LIVE_BUCKETS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {

// How many shards have a generation of each death: so the number of different
// deaths is known at any time, also where each entry has one of its own.
//
// Thread-safe. O(log of the deaths), once for each generation of a shard; its
// mutexes are the last ones taken. What a death takes here is in
// Generation::kBytes.
class LiveBuckets {
 public:
  void Add(int64_t death_us) {
    Part& part = PartOf(death_us);
    absl::MutexLock lock(&part.mu);
    if (++part.shards[death_us] == 1) {
      size_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void Remove(int64_t death_us) {
    Part& part = PartOf(death_us);
    absl::MutexLock lock(&part.mu);
    const auto it = part.shards.find(death_us);
    if (--it->second > 0) return;
    part.shards.erase(it);
    size_.fetch_sub(1, std::memory_order_relaxed);
  }
  int64_t size() const { return size_.load(std::memory_order_relaxed); }
  uint32_t ShardsOf(int64_t death_us) {
    Part& part = PartOf(death_us);
    absl::MutexLock lock(&part.mu);
    const auto it = part.shards.find(death_us);
    return it == part.shards.end() ? 0 : it->second;
  }

 private:
  struct Part {
    absl::Mutex mu;
    absl::btree_map<int64_t, uint32_t> shards ABSL_GUARDED_BY(mu);
  };
  static constexpr int kPartBits = 3;

  // Deaths are multiples of a width: their low bits are alike.
  Part& PartOf(int64_t death_us) {
    const uint64_t mixed = static_cast<uint64_t>(death_us) * 0x9e3779b97f4a7c15;
    return parts_[mixed >> (64 - kPartBits)];
  }

  std::array<Part, size_t{1} << kPartBits> parts_;
  std::atomic<int64_t> size_{0};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_LIVE_BUCKETS_H_
