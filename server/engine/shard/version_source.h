// The source of the versions of a server's entries.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_VERSION_SOURCE_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_VERSION_SOURCE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "server/base/clock.h"

namespace timecache::server {

// One count for all maps of a server, which shards take blocks of. So a version
// is assigned once, those of one key grow, as a key stays in its shard, and the
// versions of a re-created map are above all those of the deleted one.
//
// Across a restart the clock says where to begin: at kPerMicro versions for
// each microsecond since kEpochUs. The versions of the next start are higher
// than those of this one as long as the server, all of its namespaces together,
// makes no more than kPerMicro changes a microsecond on average from its start
// to the next: 8 million a second. (The start of a segment, and what is left of
// a block when its map is deleted, count as changes.) A wall clock that is set
// back between two starts breaks this: no stored data reveals it. (A clock
// before kEpochUs, which only tests have, makes room for one a microsecond.)
//
// Starts before 2054-09 are below 2^53, as readers of JSON want. A clock that is
// years ahead would leave that for good to a journal, whose versions are never
// given again: a start with one is refused (journal.max_clock_lead).
//
// Thread-safe; O(1). A shard asks once for kBlock changes, since the count is
// shared by all cores.
class VersionSource {
 public:
  // 2026-01-01T00:00:00Z.
  static constexpr int64_t kEpochUs = 1'767'225'600 * kMicrosPerSecond;
  static constexpr int64_t kPerMicro = 8;
  static constexpr uint64_t kBlock = 64;

  // The first version of a server that starts then. Never 0, and never falls as
  // time goes on, before kEpochUs either.
  static constexpr uint64_t FirstVersion(int64_t start_us) {
    const int64_t late_us = std::max<int64_t>(start_us - kEpochUs, 0);
    return static_cast<uint64_t>(std::max<int64_t>(start_us, 1) +
                                 late_us * (kPerMicro - 1));
  }

  explicit VersionSource(int64_t start_us) : next_(FirstVersion(start_us)) {}
  VersionSource(const VersionSource&) = delete;
  VersionSource& operator=(const VersionSource&) = delete;

  // Versions that are taken from now on are at least `version`.
  void RaiseTo(uint64_t version) {
    uint64_t next = next_.load(std::memory_order_relaxed);
    while (next < version && !next_.compare_exchange_weak(
                                 next, version, std::memory_order_relaxed)) {
    }
  }

  // The first of kBlock versions that are the caller's alone, above all that
  // were taken before.
  uint64_t TakeBlock() {
    return next_.fetch_add(kBlock, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> next_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_VERSION_SOURCE_H_
