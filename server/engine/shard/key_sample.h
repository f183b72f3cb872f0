// A sample of a map's operations.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_KEY_SAMPLE_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_KEY_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/base/memory_budget.h"
#include "server/engine/store/hot_keys.h"

namespace timecache::server {

// Keeps one of kInterval operations, chosen at random, of the last kWindowUs. Of
// more than it may keep it drops every other one and counts those that stay
// twice, so that the sample always covers the whole time, and its memory is
// bounded: some 180 KiB, none before the first operation that is kept.
//
// The shards count their operations, and call Add with the one that is kept: what
// they share is touched once in kInterval operations. Thread-safe; the last lock
// that a thread takes. O(1) amortized.
class KeySample {
 public:
  static constexpr uint32_t kInterval = 256;
  static constexpr int64_t kWindowUs = 60 * int64_t{1'000'000};
  static constexpr size_t kMaxSamples = 1'024;
  static constexpr size_t kMaxKeyBytes = size_t{128} << 10;
  // A key of fewer samples may have them by chance.
  static constexpr uint64_t kLeastSamples = 4;

  explicit KeySample(uint64_t seed) : random_(seed | 1) {}

  // How many operations a shard lets pass before the first that it adds.
  uint32_t FirstInterval() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return NextInterval();
  }
  // An operation, which has changed something if it `wrote`. Returns after how
  // many the shard adds the next one.
  uint32_t Add(absl::string_view key, bool wrote,
               std::optional<uint64_t> value_bytes, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(mu_);

  // At most so many keys. `began_us`: when operations began. O(kMaxSamples).
  HotKeys Top(size_t max_keys, int64_t began_us, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Sample {
    std::string key;
    int64_t at_us = 0;
    // How many kept operations it stands for.
    uint32_t weight = 1;
    bool wrote = false;
    bool has_value = false;
    uint64_t value_bytes = 0;
  };

  uint32_t NextInterval() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropOld(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Thin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Charge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  uint64_t random_ ABSL_GUARDED_BY(mu_);
  // Of these an operation is kept, of those that are added: a power of two.
  uint32_t weight_ ABSL_GUARDED_BY(mu_) = 1;
  uint32_t until_kept_ ABSL_GUARDED_BY(mu_) = 0;
  // In order of time, from begin_ on.
  std::vector<Sample> samples_ ABSL_GUARDED_BY(mu_);
  size_t begin_ ABSL_GUARDED_BY(mu_) = 0;
  size_t key_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  MemoryCharge charge_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_KEY_SAMPLE_H_
