// A benchmark of plain calls: threads that share one client.

#ifndef TIMECACHED_CLIENT_CLI_BENCH_BENCH_CALLERS_H_
#define TIMECACHED_CLIENT_CLI_BENCH_BENCH_CALLERS_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/bench/bench_options.h"
#include "client/cli/bench/bench_tally.h"
#include "timecache/client.h"

namespace timecache::cli {

// As BenchRun, but `options.callers` threads make one call after the other, as a
// program does. Not thread-safe, but for Interrupt.
class BenchCallers {
 public:
  using OnProgress = std::function<void(const BenchTally& tally)>;

  // `options` and `timeline` (may be null) must outlive it.
  BenchCallers(const BenchOptions& options, std::FILE* timeline,
               OnProgress on_progress)
      : options_(options),
        on_progress_(std::move(on_progress)),
        tally_(timeline) {}

  // Runs to the end; to be called once. An error is of the connection, the
  // server or the namespace; those of operations are in the tally.
  absl::Status Run();
  void Interrupt() { interrupted_ = true; }

  const BenchTally& tally() const { return tally_; }
  bool was_interrupted() const { return interrupted_; }
  double cpu_seconds() const { return cpu_seconds_; }
  static uint64_t messages_not_sent() { return 0; }

 private:
  struct Answer {
    int64_t now_ns = 0;
    int64_t latency_ns = 0;
    BenchCounts counts = {};
  };

  void Call(const Client& client, size_t caller);
  // Counts what a caller has done since it last did so.
  void Note(std::vector<Answer>& answers);
  void Fail(const absl::Status& why);

  const BenchOptions& options_;
  const OnProgress on_progress_;
  std::atomic<bool> interrupted_ = false;
  std::atomic<bool> over_ = false;
  std::atomic<int64_t> operations_left_ = INT64_MAX;
  int64_t end_ns_ = 0;
  double cpu_seconds_ = 0;

  absl::Mutex mu_;  // Of what follows, while callers run.
  BenchTally tally_;
  absl::Status failure_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_BENCH_BENCH_CALLERS_H_
