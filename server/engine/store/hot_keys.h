// The keys of a namespace that are used most.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_HOT_KEYS_H_
#define TIMECACHED_SERVER_ENGINE_STORE_HOT_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace timecache::server {

// Estimates, by a sample: see shard/key_sample.h.
struct HotKeys {
  static constexpr size_t kDefaultKeys = 10;
  static constexpr size_t kMaxKeys = 64;

  struct Key {
    std::string key;
    double reads_per_second = 0;
    double writes_per_second = 0;
    // Of its value, when one was last seen.
    uint64_t value_bytes = 0;
  };

  // The most used first.
  std::vector<Key> keys;
  // The time that the sample covers.
  int64_t window_us = 0;
  uint64_t sampled = 0;
  double operations_per_second = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_HOT_KEYS_H_
