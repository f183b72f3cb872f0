#include "client/cli/bench/bench_tally.h"

#include <algorithm>
#include <cerrno>

#include "nlohmann/json.hpp"

namespace timecache::cli {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

}  // namespace

void BenchTally::Start(int64_t now_ns) {
  started_ns_ = answered_ns_ = now_ns;
  second_end_ns_ = now_ns + kSecondNs;
}

void BenchTally::Add(int64_t now_ns, int64_t latency_ns,
                     const BenchCounts& counts) {
  Tick(now_ns);
  answered_ns_ = now_ns;
  counts_.results += counts.results;
  counts_.errors += counts.errors;
  counts_.hits += counts.hits;
  counts_.misses += counts.misses;
  second_results_ += counts.results;
  second_latencies_.Add(std::max<int64_t>(latency_ns, 0));
}

void BenchTally::AddError(const absl::Status& error) {
  ++errors_[absl::StatusCodeToString(error.code())];
  if (first_error_.ok()) first_error_ = error;
}

void BenchTally::Tick(int64_t now_ns) {
  while (now_ns >= second_end_ns_) {
    EndSecond(1);
    second_end_ns_ += kSecondNs;
  }
}

void BenchTally::Finish(int64_t now_ns) {
  Tick(now_ns);
  const int64_t rest_ns = now_ns - (second_end_ns_ - kSecondNs);
  if (second_latencies_.count() == 0) return;
  EndSecond(static_cast<double>(rest_ns) / kSecondNs);
}

void BenchTally::EndSecond(double seconds) {
  if (timeline_ != nullptr) {
    const auto micros = [](uint64_t ns) {
      return static_cast<double>(ns) / 1e3;
    };
    const nlohmann::ordered_json line = {
        {"second", second_},
        {"seconds", seconds},
        {"operations", second_results_},
        {"messages", second_latencies_.count()},
        {"p50_us", micros(second_latencies_.PercentileNs(50))},
        {"p99_9_us", micros(second_latencies_.PercentileNs(99.9))},
        {"max_us", micros(second_latencies_.max_ns())}};
    // Flushed at once, for a reader that follows the file.
    if (timeline_error_ == 0 &&
        (std::fprintf(timeline_, "%s\n", line.dump().c_str()) < 0 ||
         std::fflush(timeline_) != 0)) {
      timeline_error_ = errno;
    }
  }
  ++second_;
  latencies_.Merge(second_latencies_);
  second_latencies_.Clear();
  second_results_ = 0;
}

double BenchTally::seconds() const {
  return static_cast<double>(answered_ns_ - started_ns_) / kSecondNs;
}

}  // namespace timecache::cli
