// A look at an answer of the server without parsing it.

#ifndef TIMECACHED_CLIENT_CLI_BENCH_BENCH_SCAN_H_
#define TIMECACHED_CLIENT_CLI_BENCH_BENCH_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "client/cli/bench/bench_options.h"

namespace timecache::cli {

// What the results of a message say. Of Puts only `results` and `errors`.
struct BenchCounts {
  uint64_t results = 0;
  uint64_t errors = 0;
  uint64_t hits = 0;    // Gets, removes, contains and touches of what is there,
  uint64_t misses = 0;  // and of what is not.
};

// Walks over the results of an ExecuteResponse, as it stands on the wire. None
// if it is not of the form that the server gives it; then the generated parser
// may know better. A few nanoseconds for a result.
std::optional<BenchCounts> ScanResults(std::string_view response);

// The same of the response of a unary call, which has been no error.
BenchCounts ScanUnary(BenchKind kind, std::string_view response);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_BENCH_BENCH_SCAN_H_
