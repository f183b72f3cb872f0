// What of a map dies when.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_DEATHS_AHEAD_H_
#define TIMECACHED_SERVER_ENGINE_STORE_DEATHS_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/base/clock.h"

namespace timecache::server {

struct DeathsQuery {
  static constexpr size_t kDefaultBars = 60;
  static constexpr size_t kMaxBars = 1'000;

  // 1 to kMaxBars.
  size_t max_bars = kDefaultBars;
  // Only what dies within this time from now is in bars; 0: all.
  int64_t within_us = 0;
  // Unless `end_us` is 0, the bars divide the time from `begin_us`, exclusive, to
  // `end_us`, whatever there is to die.
  int64_t begin_us = 0;
  int64_t end_us = 0;
};

// A histogram of live entries by the time of their death.
struct DeathsAhead {
  struct Amount {
    int64_t entries = 0;
    int64_t bytes = 0;
  };

  // The time of the count.
  int64_t now_us = 0;
  // The first bar's deaths are after this. Each bar is `bar_us` long, and its
  // end is in it.
  int64_t begin_us = 0;
  int64_t bar_us = 0;
  std::vector<Amount> bars;
  // What dies after the last bar.
  Amount later;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_DEATHS_AHEAD_H_
