// What operations cost that make a new value of the old one: one thread, single
// operations, beside a put and a get of the same map.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/engine/engine_load.h"
#include "benchmark/benchmark.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server::bench {
namespace {

constexpr int64_t kNowUs = int64_t{1'800'000'000} * kMicrosPerSecond;
constexpr int64_t kKeys = 1'000;

class Map {
 public:
  explicit Map(NamespaceOptions options = {})
      : map_("bench", Large(std::move(options)), nullptr, kNowUs) {}

  const Result& Apply(const Operation& op) {
    map_.Apply(op, kNowUs, &result_);
    if (!result_.status.ok()) failed_ = true;
    return result_;
  }
  void ApplyAll(absl::Span<const Operation> ops, absl::Span<Result> results,
                bool atomic) {
    if (!atomic) {
      map_.ApplyBatch(ops, kNowUs, results);
    } else if (!map_.ApplyAtomic(ops, kNowUs, results).ok()) {
      failed_ = true;
    }
    for (const Result& result : results) failed_ |= !result.status.ok();
  }
  void Check(benchmark::State& state) const {
    if (failed_) state.SkipWithError("an operation failed");
  }

 private:
  static NamespaceOptions Large(NamespaceOptions options) {
    options.max_value_bytes = 16 << 20;
    return options;
  }

  TimeCacheMap map_;
  Result result_;
  bool failed_ = false;
};

const std::vector<std::string>& Keys() {
  static const std::vector<std::string> keys = KeysFrom(0, kKeys);
  return keys;
}

void Put(benchmark::State& state) {
  Map map;
  const std::string value(kValueBytes, 'v');
  size_t i = 0;
  for (auto _ : state) {
    map.Apply(Operation::Put(Keys()[i], value));
    i = (i + 1) % kKeys;
  }
  map.Check(state);
}

// With changes for watches, which the log drops by its bytes, and no watch.
void PutKeepingChanges(benchmark::State& state) {
  NamespaceOptions options;
  options.change_retention_us = 300 * kMicrosPerSecond;
  Map map(options);
  const std::string value(kValueBytes, 'v');
  size_t i = 0;
  for (auto _ : state) {
    map.Apply(Operation::Put(Keys()[i], value));
    i = (i + 1) % kKeys;
  }
  map.Check(state);
}

void Get(benchmark::State& state) {
  Map map;
  for (const std::string& key : Keys()) {
    map.Apply(Operation::Put(key, std::string(kValueBytes, 'v')));
  }
  size_t i = 0;
  for (auto _ : state) {
    map.Apply(Operation::Get(Keys()[i]));
    i = (i + 1) % kKeys;
  }
  map.Check(state);
}

// 64 B to one of so many values of the size that is given, which then has at
// most twice that: values of 1 KiB are 1,000 keys, one of 1 MiB is alone. The
// values are put again outside of the time.
void Append64(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  const int64_t keys = size > 64 << 10 ? 1 : kKeys;
  const int64_t round = keys * static_cast<int64_t>(size / kValueBytes);
  const std::string value(size, 'v');
  const std::string piece(kValueBytes, 'w');
  Map map;
  int64_t left = 0;
  size_t i = 0;
  for (auto _ : state) {
    if (left-- == 0) {
      state.PauseTiming();
      for (int64_t k = 0; k < keys; ++k) {
        map.Apply(Operation::Put(Keys()[static_cast<size_t>(k)], value));
      }
      left = round - 1;
      state.ResumeTiming();
    }
    map.Apply(Operation::Append(Keys()[i], piece));
    i = (i + 1) % static_cast<size_t>(keys);
  }
  map.Check(state);
}

void Combine(benchmark::State& state) {
  Map map;
  size_t i = 0;
  for (auto _ : state) {
    map.Apply(Operation::Combine(Keys()[i], Combination::kAdd, 1));
    i = (i + 1) % kKeys;
  }
  map.Check(state);
}

// A join of three parts of 64 B: an iteration is all three.
void GatherOfThree(benchmark::State& state) {
  Map map;
  const std::string value(kValueBytes, 'v');
  std::vector<Gathering> parts(3);
  for (size_t p = 0; p < parts.size(); ++p) {
    const absl::string_view names[] = {"a", "b", "c"};
    if (!parts[p].Set(names[p], 0, names).ok()) state.SkipWithError("names");
  }
  size_t i = 0;
  for (auto _ : state) {
    for (const Gathering& part : parts) {
      map.Apply(Operation::Gather(Keys()[i], &part, value));
    }
    i = (i + 1) % kKeys;
  }
  map.Check(state);
}

// So many puts, each on a key of its own: an iteration is all of them.
template <bool atomic>
void Puts(benchmark::State& state, NamespaceOptions options = {}) {
  Map map(std::move(options));
  const auto size = static_cast<size_t>(state.range(0));
  const std::string value(kValueBytes, 'v');
  std::vector<Operation> ops(size);
  std::vector<Result> results(size);
  size_t i = 0;
  for (auto _ : state) {
    for (Operation& op : ops) {
      op = Operation::Put(Keys()[i], value);
      i = (i + 1) % kKeys;
    }
    map.ApplyAll(ops, absl::MakeSpan(results), atomic);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  map.Check(state);
}

void PutsInBatch(benchmark::State& state) { Puts<false>(state); }
void PutsAtomic(benchmark::State& state) { Puts<true>(state); }
void PutsAtomicKeepingChanges(benchmark::State& state) {
  NamespaceOptions options;
  options.change_retention_us = 300 * kMicrosPerSecond;
  Puts<true>(state, options);
}

BENCHMARK(Put);
BENCHMARK(PutKeepingChanges);
BENCHMARK(Get);
BENCHMARK(PutsInBatch)->Arg(3)->Arg(10)->Arg(100);
BENCHMARK(PutsAtomic)->Arg(3)->Arg(10)->Arg(100);
BENCHMARK(PutsAtomicKeepingChanges)->Arg(3)->Arg(100);
BENCHMARK(Append64)->Arg(1 << 10)->Arg(1 << 20);
BENCHMARK(Combine);
BENCHMARK(GatherOfThree);

}  // namespace
}  // namespace timecache::server::bench

BENCHMARK_MAIN();
