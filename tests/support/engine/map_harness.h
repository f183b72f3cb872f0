// One map with a time of its own and a watcher: what most tests of the engine
// need, so that each says only what it is about.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_MAP_HARNESS_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_MAP_HARNESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/operation.h"

namespace timecache::server {

inline constexpr int64_t kSecond = kMicrosPerSecond;
inline constexpr int64_t kHour = 3600 * kSecond;

// A moment that is a multiple of every bucket width that the tests count with.
// Traceparents that entries of tests have, or that none may have.
inline constexpr absl::string_view kTraces[] = {
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "00-ffffffffffffffffffffffffffffffff-0000000000000001-ff",
};
inline constexpr absl::string_view kNoTrace =
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0A";

inline constexpr int64_t kStartUs = int64_t{1'209'600'000} * kSecond;

// An event, copied out of its batch.
struct DeliveredEvent {
  std::string key;
  std::string value;
  uint64_t version = 0;
  int64_t put_us = 0;
  int64_t deadline_us = 0;
  int64_t death_us = 0;
  Cause cause = Cause::kExpired;
  int64_t published_us = 0;
  // Whether the value is GatheredParts.
  bool parts = false;
  int64_t create_us = 0;
  int64_t own_ttl_us = 0;
  std::string trace = {};
};

// All that a cursor had to tell at one moment.
struct Reading {
  std::vector<DeliveredEvent> events;
  // Events in each batch.
  std::vector<int> batch_sizes;
  int64_t watermark_us = 0;
  uint64_t lost = 0;
  bool closed = false;

  // The events as "key=value", in order.
  std::vector<std::string> Texts() const;
};

// Reads until there is no more, at most `max_bytes` at a time.
Reading ReadAll(ExpiryLog::Cursor* cursor, int64_t max_bytes = 1 << 20);

// What a live entry looks like to a scan.
using Scanned = std::map<std::string, Entry>;

// Not thread-safe. Time stands still until the test moves it.
class MapHarness {
 public:
  explicit MapHarness(const NamespaceOptions& options,
                      int64_t start_us = kStartUs,
                      Usage* server_usage = nullptr);

  TimeCacheMap& map() { return map_; }
  int64_t now_us() const { return now_us_; }
  void GoTo(int64_t now_us) { now_us_ = now_us; }
  void Pass(int64_t step_us) { now_us_ += step_us; }

  Result Apply(const Operation& op) { return map_.Apply(op, now_us_); }
  Result Put(absl::string_view key, absl::string_view value) {
    return Apply(Operation::Put(key, value));
  }
  Result PutFor(absl::string_view key, absl::string_view value,
                int64_t ttl_us) {
    return Apply(Operation::Put(key, value).WithTtl(ttl_us));
  }
  // The value, or "(none)".
  std::string Get(absl::string_view key);
  bool Contains(absl::string_view key);
  int64_t Entries() { return map_.GetSize(now_us_).entries; }
  int64_t Bytes() { return map_.GetSize(now_us_).bytes; }
  NamespaceStatistics Statistics() { return map_.GetStatistics(now_us_); }
  int64_t Rotate() { return map_.Rotate(now_us_); }
  void Update(const NamespaceOptions& options) {
    map_.Update(options, now_us_);
  }

  // Sweeps all that is due, and refreshes the watermark.
  void Sweep();
  // Sweeps and reads what the harness's own watcher, there from the start, is
  // told.
  Reading ReadEvents();
  // Walks the whole map in pages, and fails the test if a key comes twice.
  Scanned ScanAll(absl::string_view prefix = "", int page_entries = 1000,
                  int64_t page_bytes = 1 << 20);
  std::unique_ptr<ExpiryLog::Cursor> Subscribe(ExpiryLog::Start start) {
    return map_.Subscribe(start, now_us_, [] {});
  }

 private:
  int64_t now_us_;
  TimeCacheMap map_;
  std::unique_ptr<ExpiryLog::Cursor> cursor_;
};

// Options with the given TTL and number of buckets, else as by default.
NamespaceOptions WithBuckets(int64_t ttl_us, int num_buckets);
// A TTL of 10 s in buckets of 1 s.
inline NamespaceOptions Tens() { return WithBuckets(10 * kSecond, 11); }

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_MAP_HARNESS_H_
