// The sessions of a log by other means than the programs under test: the text
// is read by a regular expression and the C library's calendar, the times are
// counted in whole microseconds.

#ifndef TIMECACHED_TESTS_EXAMPLES_REFERENCE_SESSIONS_H_
#define TIMECACHED_TESTS_EXAMPLES_REFERENCE_SESSIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace timecache {

// A session as sessionize must print it.
struct ReferenceSession {
  int64_t ended_at_us = 0;  // Since 1970.
  std::string json;         // Without the end of the line.
};

struct ReferenceResult {
  uint64_t malformed = 0;
  std::vector<ReferenceSession> sessions;  // In order of ended_at_us.
};

// Of this log's text, on a virtual clock that begins at 1970.
ReferenceResult ComputeReference(std::string_view log, int64_t ttl_us,
                                 int64_t num_buckets);

}  // namespace timecache

#endif  // TIMECACHED_TESTS_EXAMPLES_REFERENCE_SESSIONS_H_
