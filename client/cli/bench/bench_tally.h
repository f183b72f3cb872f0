// What a benchmark has measured so far.

#ifndef TIMECACHED_CLIENT_CLI_BENCH_BENCH_TALLY_H_
#define TIMECACHED_CLIENT_CLI_BENCH_BENCH_TALLY_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "client/cli/bench/latency_histogram.h"

namespace timecache::cli {

// What the results of messages say. Of Puts only `results` and `errors`.
struct BenchCounts {
  uint64_t results = 0;
  uint64_t errors = 0;
  uint64_t hits = 0;    // Gets, removes, contains and touches of what is there,
  uint64_t misses = 0;  // and of what is not.
};

// The sums of a run, and the course of it by the second. Times are nanoseconds
// of a steady clock. Not thread-safe. Add is some tens of instructions.
class BenchTally {
 public:
  // `timeline`: where a JSON line is written for each second, if anywhere. Must
  // outlive it, and is not closed.
  explicit BenchTally(std::FILE* timeline) : timeline_(timeline) {}

  // The first second begins.
  void Start(int64_t now_ns);
  // A message was answered, this long after it was sent or was to be sent.
  void Add(int64_t now_ns, int64_t latency_ns, const BenchCounts& counts);
  // An operation was answered by an error, which Add has counted.
  void AddError(const absl::Status& error);
  // Time goes on; ends the seconds that are over.
  void Tick(int64_t now_ns);
  // Ends the last second, of which there may be a part only.
  void Finish(int64_t now_ns);

  const BenchCounts& counts() const { return counts_; }
  const std::map<std::string, uint64_t>& errors() const { return errors_; }
  // The first error of an operation; OK: there was none.
  const absl::Status& first_error() const { return first_error_; }
  // Of all seconds that have ended.
  const LatencyHistogram& latencies() const { return latencies_; }
  // From Start to the last answer.
  double seconds() const;
  // The errno of the first write to the timeline that failed; 0: none did.
  int timeline_error() const { return timeline_error_; }

 private:
  void EndSecond(double seconds);

  std::FILE* const timeline_;
  int timeline_error_ = 0;
  int64_t started_ns_ = 0;
  int64_t answered_ns_ = 0;    // The last answer.
  int64_t second_end_ns_ = 0;  // Of the second that is under way.
  int64_t second_ = 1;
  BenchCounts counts_;
  std::map<std::string, uint64_t> errors_;  // By code. At most the 16 codes.
  absl::Status first_error_;
  LatencyHistogram latencies_;
  LatencyHistogram second_latencies_;
  uint64_t second_results_ = 0;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_BENCH_BENCH_TALLY_H_
