// How long something took, each time.

#ifndef TIMECACHED_SERVER_BASE_LATENCIES_H_
#define TIMECACHED_SERVER_BASE_LATENCIES_H_

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace timecache::server {

// Not thread-safe.
struct Latencies {
  static constexpr size_t kBuckets = 28;

  void Add(uint64_t took_us) {
    total_us += took_us;
    ++counts[std::min<size_t>(std::bit_width(took_us), kBuckets - 1)];
  }

  uint64_t total_us = 0;
  // [i]: less than 2^i microseconds, and not less than half of that; the last
  // one has no upper bound.
  std::array<uint64_t, kBuckets> counts = {};
};

inline uint64_t MicrosSince(std::chrono::steady_clock::time_point began) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - began)
          .count());
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_LATENCIES_H_
