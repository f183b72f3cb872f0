#include "client/cli/bench/bench_callers.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/bench/bench_message.h"
#include "client/cli/bench/bench_sender.h"
#include "timecache/batch.h"
#include "timecache/operation.h"

namespace timecache::cli {
namespace {

// After so many answers, or so long, a caller counts them.
constexpr size_t kAnswersMax = 64;
constexpr int64_t kNoteNs = 50'000'000;

int64_t SteadyNs() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

absl::Duration ProcessTime() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) +
         absl::DurationFromTimeval(usage.ru_stime);
}

// What a caller sends, in turn.
class BenchCaller {
 public:
  BenchCaller(const BenchOptions& options, size_t number)
      : options_(options),
        period_(MixPeriod(options.mix_percent)),
        keys_(options.keys, options.is_sequential,
              options.is_sequential
                  ? options.keys / options.callers * number
                  : absl::ToUnixNanos(absl::Now()) + int64_t(number)),
        calls_(number),
        key_(BenchKey(options)),
        value_(options.value_bytes, 'v') {}

  // The next call, or the next batch. Counts whether it found the key, of those
  // that may miss; errors of a batch's operations only.
  absl::Status Next(const Client& client, BenchCounts& counts) {
    if (options_.batch > 1) return Execute(client, counts);
    counts.results = 1;
    const size_t number = calls_++;
    const BenchKind kind = NextKey(number);
    const auto& ttl = options_.ttl;
    switch (kind) {
      case BenchKind::kPut:
        return client.Put(key_, value_, {.ttl = ttl}).status();
      case BenchKind::kGet:
        return Count(client.Get(key_), counts);
      case BenchKind::kRemove: {
        const auto removed = client.Remove(key_);
        if (removed.ok()) ++(removed->removed ? counts.hits : counts.misses);
        return removed.status();
      }
      case BenchKind::kContains: {
        const auto contains = client.Contains(key_);
        if (contains.ok()) ++(*contains ? counts.hits : counts.misses);
        return contains.status();
      }
      case BenchKind::kTouch:
        return Count(client.Touch(key_, {.ttl = ttl}), counts);
      case BenchKind::kAppend:
        return client.Append(key_, value_, {.ttl = ttl}).status();
      case BenchKind::kCombine:
        return client.Combine(key_, Combination::kAdd, 1, {.ttl = ttl})
            .status();
      case BenchKind::kGather:
        break;
    }
    return client
        .Gather(key_, std::to_string(number % kBenchParts), value_,
                {.expected_parts = kBenchParts, .ttl = ttl})
        .status();
  }

 private:
  BenchKind NextKey(size_t number) {
    WriteDigits(keys_.Next(), options_.key_digits(),
                &key_[kBenchKeyPrefix.size()]);
    return period_[number % period_.size()];
  }

  Operation NextOperation() {
    const size_t number = calls_++;
    const BenchKind kind = NextKey(number);
    const auto& ttl = options_.ttl;
    switch (kind) {
      case BenchKind::kPut:
        return Operation::Put(key_, value_, {.ttl = ttl});
      case BenchKind::kGet:
        return Operation::Get(key_);
      case BenchKind::kRemove:
        return Operation::Remove(key_);
      case BenchKind::kContains:
        return Operation::Contains(key_);
      case BenchKind::kTouch:
        return Operation::Touch(key_, {.ttl = ttl});
      case BenchKind::kAppend:
        return Operation::Append(key_, value_, {.ttl = ttl});
      case BenchKind::kCombine:
        return Operation::Combine(key_, Combination::kAdd, 1, {.ttl = ttl});
      case BenchKind::kGather:
        break;
    }
    return Operation::Gather(key_, std::to_string(number % kBenchParts), value_,
                             {.expected_parts = kBenchParts, .ttl = ttl});
  }

  absl::Status Execute(const Client& client, BenchCounts& counts) {
    const size_t first = calls_;
    batch_.Clear();
    while (batch_.size() < options_.batch) batch_.Add(NextOperation());
    const auto results = client.Execute(batch_);
    if (!results.ok()) return results.status();
    counts.results = results->size();
    absl::Status error;
    for (size_t i = 0; i < results->size(); ++i) {
      const OperationResult& result = (*results)[i];
      if (!result.status.ok()) {
        ++counts.errors;
        if (error.ok()) error = result.status;
      } else if (MayMiss(period_[(first + i) % period_.size()])) {
        ++(result.found ? counts.hits : counts.misses);
      }
    }
    return error;
  }

  static bool MayMiss(BenchKind kind) {
    return kind >= BenchKind::kGet && kind <= BenchKind::kTouch;
  }

  template <typename Found>
  static absl::Status Count(const absl::StatusOr<Found>& found,
                            BenchCounts& counts) {
    if (found.ok()) ++(*found ? counts.hits : counts.misses);
    return found.status();
  }

  const BenchOptions& options_;
  const std::vector<BenchKind> period_;
  BenchKeys keys_;
  size_t calls_;
  std::string key_;
  const std::string value_;
  Batch batch_;
};

}  // namespace

absl::Status BenchCallers::Run() {
  const auto client = Client::Make(options_.address, options_.channel,
                                   {.default_namespace = options_.ns,
                                    .timeout = options_.timeout,
                                    .retry = {.max_attempts = 1},
                                    .batching = !options_.is_unary,
                                    .owner_routing = options_.owner_routing});
  if (!client.ok()) return client.status();
  // Connects, unmeasured.
  if (absl::Status status = client->Size().status(); !status.ok()) {
    return status;
  }
  if (options_.operations > 0) {
    operations_left_ = static_cast<int64_t>(
        std::min<uint64_t>(options_.operations, INT64_MAX));
  }
  const absl::Duration cpu_before = ProcessTime();
  const int64_t now_ns = SteadyNs();
  end_ns_ = now_ns + absl::ToInt64Nanoseconds(options_.duration);
  tally_.Start(now_ns);
  std::vector<std::thread> callers;
  for (size_t i = 0; i < options_.callers; ++i) {
    callers.emplace_back([this, &client, i] { Call(*client, i); });
  }
  for (std::thread& caller : callers) caller.join();
  tally_.Finish(SteadyNs());
  cpu_seconds_ = absl::ToDoubleSeconds(ProcessTime() - cpu_before);
  return failure_;
}

void BenchCallers::Call(const Client& client, size_t caller) {
  BenchCaller calls(options_, caller);
  const auto batch = static_cast<int64_t>(options_.batch);
  std::vector<Answer> answers;
  int64_t noted_ns = SteadyNs();
  for (int64_t now_ns = noted_ns; now_ns < end_ns_ && !over_ && !interrupted_ &&
                                  operations_left_.fetch_sub(batch) > 0;) {
    Answer answer;
    const absl::Status status = calls.Next(client, answer.counts);
    if (!status.ok()) {
      over_ = true;
      if (!IsOfOperation(status)) {
        Fail(status);
        break;
      }
      answer.counts.results = options_.batch;
      answer.counts.errors = std::max<uint64_t>(answer.counts.errors, 1);
      absl::MutexLock lock(&mu_);
      tally_.AddError(status);
    }
    answer.latency_ns = SteadyNs() - now_ns;
    answer.now_ns = now_ns += answer.latency_ns;
    answers.push_back(answer);
    if (answers.size() < kAnswersMax && now_ns - noted_ns < kNoteNs) continue;
    noted_ns = now_ns;
    Note(answers);
  }
  Note(answers);
}

void BenchCallers::Note(std::vector<Answer>& answers) {
  absl::MutexLock lock(&mu_);
  for (const Answer& answer : answers) {
    tally_.Add(answer.now_ns, answer.latency_ns, answer.counts);
  }
  answers.clear();
  on_progress_(tally_);
}

void BenchCallers::Fail(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (failure_.ok()) failure_ = why;
}

}  // namespace timecache::cli
