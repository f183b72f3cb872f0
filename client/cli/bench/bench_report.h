// The results of a benchmark, for people and for programs.

#ifndef TIMECACHED_CLIENT_CLI_BENCH_BENCH_REPORT_H_
#define TIMECACHED_CLIENT_CLI_BENCH_BENCH_REPORT_H_

#include <string>

#include "client/cli/bench/bench_options.h"
#include "client/cli/bench/bench_tally.h"
#include "client/cli/ui/output.h"

namespace timecache::cli {

struct BenchResult {
  const BenchTally& tally;
  double cpu_seconds = 0;          // Of this process.
  uint64_t messages_not_sent = 0;  // Due, and no room for them.
  bool interrupted = false;
  bool complete = false;  // No error ended it.
};

// One object. Names stay as they are from version to version; more may come.
Json BenchToJson(const BenchOptions& options, const BenchResult& result);

// The same in lines.
std::string BenchToText(const BenchOptions& options, const BenchResult& result);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_BENCH_BENCH_REPORT_H_
