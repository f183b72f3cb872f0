// The keys that Gathers have completed, for a while.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_REMEMBERED_KEYS_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_REMEMBERED_KEYS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "server/base/memory_budget.h"
#include "server/engine/shard/lean_queue.h"

namespace timecache::server {

// Keys by their hashes, each until a time of its own. Beyond `max_keys` the
// first ones that were added are forgotten. Two keys of one hash are one: of a
// million keys, in one of 10^13 lookups.
//
// Not thread-safe. O(1) amortized.
class RememberedKeys {
 public:
  explicit RememberedKeys(size_t max_keys) : max_keys_(max_keys) {}

  bool Has(uint64_t hash, int64_t now_us) const {
    const auto it = until_us_.find(hash);
    return it != until_us_.end() && it->second > now_us;
  }
  void Add(uint64_t hash, int64_t until_us, int64_t now_us) {
    Trim(now_us);
    if (order_.size() == max_keys_) DropFirst();
    order_.push_back({hash, until_us});
    until_us_[hash] = until_us;
    Charge();
  }
  // Forgets those whose time is over, up to the first whose time is not.
  void Trim(int64_t now_us) {
    while (!order_.empty() && order_.front().until_us <= now_us) DropFirst();
    Charge();
  }
  // Those that were remembered at `from_us` are for so much longer.
  void Skip(int64_t from_us, int64_t by_us) {
    for (auto& [hash, until_us] : until_us_) {
      if (until_us > from_us) until_us += by_us;
    }
    order_.ForEach([&](Added& added) {
      if (added.until_us > from_us) added.until_us += by_us;
    });
  }
  // Until when, by hash.
  const absl::flat_hash_map<uint64_t, int64_t>& all() const {
    return until_us_;
  }
  bool empty() const { return order_.empty(); }
  int64_t memory_bytes() const { return charged_bytes_; }

 private:
  struct Added {
    uint64_t hash;
    int64_t until_us;
  };
  // One of either container, with the room that these have.
  static constexpr int64_t kKeyBytes = 40;
  static constexpr size_t kChargeStep = 64;

  // Unless it was added again.
  void DropFirst() {
    const auto it = until_us_.find(order_.front().hash);
    if (it != until_us_.end() && it->second == order_.front().until_us) {
      until_us_.erase(it);
    }
    order_.pop_front();
  }
  void Charge() {
    const size_t steps = (order_.size() + kChargeStep - 1) / kChargeStep;
    const auto bytes = static_cast<int64_t>(steps * kChargeStep) * kKeyBytes;
    if (bytes == charged_bytes_) return;
    charged_bytes_ = bytes;
    charge_.Set(bytes);
  }

  const size_t max_keys_;
  absl::flat_hash_map<uint64_t, int64_t> until_us_;
  LeanQueue<Added> order_;
  int64_t charged_bytes_ = 0;
  MemoryCharge charge_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_REMEMBERED_KEYS_H_
