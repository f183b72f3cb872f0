// The load of the engine's benchmarks: keys, values, and maps that are filled
// with them once and then measured several times.

#ifndef TIMECACHED_BENCH_ENGINE_ENGINE_LOAD_H_
#define TIMECACHED_BENCH_ENGINE_ENGINE_LOAD_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace timecache::server::bench {

inline constexpr size_t kKeyBytes = 16;
inline constexpr size_t kValueBytes = 64;
// Most operations of one kind that are timed at a time.
inline constexpr int64_t kMaxBatch = 200'000;

// Number `i` as a key. Numbers of keys that are there and that are not do not
// meet.
inline std::string KeyOf(uint64_t i) {
  char text[kKeyBytes + 1];
  std::snprintf(text, sizeof(text), "%016llx", i * 0x9E3779B97F4A7C15ull);
  return std::string(text, kKeyBytes);
}

inline std::vector<std::string> KeysFrom(uint64_t first, int64_t count) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    keys.push_back(KeyOf(first + static_cast<uint64_t>(i)));
  }
  return keys;
}

inline constexpr uint64_t kMissingKeys = uint64_t{1} << 40;

// `count` different ones of the first `entries` keys, in random order.
inline std::vector<std::string> SomeKeys(int64_t entries, int64_t count,
                                         uint32_t seed) {
  std::vector<uint32_t> numbers(static_cast<size_t>(entries));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<uint32_t>(i);
  }
  std::mt19937 random(seed);
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(count));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    std::swap(numbers[i], numbers[i + random() % (numbers.size() - i)]);
    keys.push_back(KeyOf(numbers[i]));
  }
  return keys;
}

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

// A map with `entries` entries that are spread evenly over its buckets.
template <typename Peer>
struct Filled {
  Filled(int64_t entries_in, int num_buckets_in, bool timed)
      : entries(entries_in), num_buckets(num_buckets_in), peer(num_buckets_in) {
    const std::string value(kValueBytes, 'v');
    // A key at a time would time their making; all at once would take the
    // caches.
    constexpr int64_t kStep = 1'000;
    const int64_t bucket_entries = std::max<int64_t>(1, entries / num_buckets);
    int64_t left_in_bucket = bucket_entries;
    int buckets_left = num_buckets - 1;
    for (int64_t done = 0; done < entries; done += kStep) {
      const std::vector<std::string> keys = KeysFrom(
          static_cast<uint64_t>(done), std::min(kStep, entries - done));
      const Stopwatch watch;
      for (const std::string& key : keys) {
        if (left_in_bucket-- == 0 && buckets_left > 0) {
          peer.NextBucket();
          --buckets_left;
          left_in_bucket = bucket_entries - 1;
        }
        if (timed) {
          peer.Put(key, value);
        } else {
          peer.Load(key, value);
        }
      }
      if constexpr (requires { peer.Flush(); }) peer.Flush();
      fill_seconds += watch.Seconds();
    }
  }

  const int64_t entries;
  const int num_buckets;
  Peer peer;
  double fill_seconds = 0;
};

// The map that was filled last, so that the benchmarks that only read it need
// not fill it again. One at a time: of ten million entries each takes
// gigabytes.
inline std::shared_ptr<void> filled_last;

template <typename Peer>
Filled<Peer>& FilledOnce(int64_t entries, int num_buckets, bool keep) {
  static std::weak_ptr<Filled<Peer>> mine;
  std::shared_ptr<Filled<Peer>> filled = mine.lock();
  if (!keep || filled == nullptr || filled->entries != entries ||
      filled->num_buckets != num_buckets) {
    filled.reset();
    filled_last.reset();
    filled = std::make_shared<Filled<Peer>>(entries, num_buckets, false);
    mine = filled;
    filled_last = filled;
  }
  return *filled;
}

}  // namespace timecache::server::bench

#endif  // TIMECACHED_BENCH_ENGINE_ENGINE_LOAD_H_
