// How long a step took, for the log.

#ifndef TIMECACHED_SERVER_MAIN_MILLIS_SINCE_H_
#define TIMECACHED_SERVER_MAIN_MILLIS_SINCE_H_

#include <chrono>
#include <cstdint>

namespace timecache::server {

inline int64_t MillisSince(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now() - began)
      .count();
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_MILLIS_SINCE_H_
