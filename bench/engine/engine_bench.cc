// The engine beside a plain hash map and beside Storm's algorithm, one thread:
// each operation at N entries that are spread over B buckets. Times are by
// hand, so that neither the making of keys nor the filling of maps is in them.
//
// Names are operation/peer/N/B; engine_report.py makes ratios of them.

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "bench/engine/engine_load.h"
#include "bench/engine/engine_peers.h"
#include "benchmark/benchmark.h"

namespace timecache::server::bench {
namespace {

// Least number of operations that one figure is made of, where maps are small.
constexpr int64_t kLeastOperations = 200'000;
// Storm's put and get look into each bucket: so many looks a figure, and no
// more than so many to fill a map by its own puts.
constexpr int64_t kStormLooks = 4'000'000;
constexpr int64_t kStormFillLooks = 105'000'000;

template <typename Peer>
constexpr bool kIsStorm = std::is_same_v<Peer, StormPeer>;

template <typename Peer>
int64_t BatchOf(int64_t entries, int num_buckets) {
  int64_t batch = std::min(entries, kMaxBatch);
  if (kIsStorm<Peer>) {
    batch =
        std::min(batch, std::max<int64_t>(1'000, kStormLooks / num_buckets));
  }
  return batch;
}

// How often a batch is repeated.
template <typename Peer>
int64_t RoundsOf(int64_t batch) {
  return kIsStorm<Peer> ? 1 : std::max<int64_t>(1, kLeastOperations / batch);
}

void Report(benchmark::State& state, double seconds, int64_t operations) {
  state.SetIterationTime(seconds);
  state.counters["ns_per_op"] = seconds * 1e9 / static_cast<double>(operations);
  state.counters["ops_per_s"] = static_cast<double>(operations) / seconds;
}

// Fresh keys into an empty map, until it has N.
template <typename Peer>
void Put(benchmark::State& state) {
  const int64_t entries = state.range(0);
  const int num_buckets = static_cast<int>(state.range(1));
  const int64_t rounds = RoundsOf<Peer>(entries);
  filled_last.reset();
  for (auto _ : state) {
    double seconds = 0;
    for (int64_t i = 0; i < rounds; ++i) {
      seconds += Filled<Peer>(entries, num_buckets, true).fill_seconds;
    }
    Report(state, seconds, rounds * entries);
  }
}

template <typename Peer>
void GetKeys(benchmark::State& state, bool hit) {
  const int64_t entries = state.range(0);
  const int num_buckets = static_cast<int>(state.range(1));
  Peer& peer = FilledOnce<Peer>(entries, num_buckets, true).peer;
  const int64_t batch = BatchOf<Peer>(entries, num_buckets);
  const std::vector<std::string> keys =
      hit ? SomeKeys(entries, batch, 1) : KeysFrom(kMissingKeys, batch);
  const int64_t rounds = RoundsOf<Peer>(batch);
  for (auto _ : state) {
    int64_t found = 0;
    size_t bytes = 0;
    const Stopwatch watch;
    std::string value;
    for (int64_t i = 0; i < rounds; ++i) {
      if constexpr (requires { peer.GetAll(keys, &found, &bytes); }) {
        peer.GetAll(keys, &found, &bytes);
      } else {
        for (const std::string& key : keys) {
          found += peer.Get(key, &value);
          bytes += value.size();
        }
      }
    }
    Report(state, watch.Seconds(), rounds * batch);
    benchmark::DoNotOptimize(bytes);
    if (found != (hit ? rounds * batch : 0)) {
      state.SkipWithError("wrong answers");
    }
  }
}

template <typename Peer>
void GetHit(benchmark::State& state) {
  GetKeys<Peer>(state, true);
}

template <typename Peer>
void GetMiss(benchmark::State& state) {
  GetKeys<Peer>(state, false);
}

// Each round on a map that is as it was after filling: an overwrite moves its
// entry to the newest bucket.
template <typename Peer, typename Operation>
void Change(benchmark::State& state, uint32_t seed, Operation&& operation) {
  const int64_t entries = state.range(0);
  const int num_buckets = static_cast<int>(state.range(1));
  // Of many entries a batch leaves most as they were.
  const bool keep = entries > 10 * kMaxBatch;
  const int64_t batch = BatchOf<Peer>(entries, num_buckets);
  const int64_t rounds = RoundsOf<Peer>(batch);
  const std::vector<std::string> keys = SomeKeys(entries, batch, seed);
  for (auto _ : state) {
    double seconds = 0;
    for (int64_t i = 0; i < rounds; ++i) {
      Peer& peer = FilledOnce<Peer>(entries, num_buckets, keep).peer;
      const Stopwatch watch;
      for (const std::string& key : keys) operation(peer, key);
      if constexpr (requires { peer.Flush(); }) peer.Flush();
      seconds += watch.Seconds();
    }
    Report(state, seconds, rounds * batch);
  }
}

template <typename Peer>
void Overwrite(benchmark::State& state) {
  const std::string value(kValueBytes, 'w');
  Change<Peer>(state, 2, [&value](Peer& peer, const std::string& key) {
    peer.Put(key, value);
  });
}

template <typename Peer>
void Remove(benchmark::State& state) {
  Change<Peer>(state, 3,
               [](Peer& peer, const std::string& key) { peer.Remove(key); });
}

// A bucket of N entries dies, and each of them is delivered to a watcher.
void EngineDeath(benchmark::State& state) {
  const int64_t entries = state.range(0);
  const std::string value(kValueBytes, 'v');
  for (auto _ : state) {
    NamespaceOptions options =
        EnginePeer::Options(static_cast<int>(state.range(1)));
    options.retention_bytes = kMaxRetentionBytes;
    EnginePeer peer(options);
    for (const std::string& key : KeysFrom(0, entries)) peer.Put(key, value);
    const auto cursor =
        peer.map().Subscribe(ExpiryLog::Start::kNow, peer.now_us(), [] {});
    const int64_t dead_us = peer.now_us() + 2 * EnginePeer::kTtlUs;
    int64_t delivered = 0;
    const Stopwatch watch;
    peer.map().Advance(dead_us);
    while (peer.map().Sweep(dead_us, 8192)) {
    }
    for (bool more = true; more;) {
      const ExpiryLog::Chunk chunk = cursor->Read(1 << 20);
      for (const auto& batch : chunk.batches) {
        for (int i = 0; i < batch->size(); ++i) {
          delivered += batch->event(i).value.size() == kValueBytes;
        }
      }
      more = chunk.more;
    }
    Report(state, watch.Seconds(), entries);
    if (delivered != entries) state.SkipWithError("not all were delivered");
  }
}

void StormDeath(benchmark::State& state) {
  const int64_t entries = state.range(0);
  const std::string value(kValueBytes, 'v');
  for (auto _ : state) {
    StormPeer peer(static_cast<int>(state.range(1)));
    for (const std::string& key : KeysFrom(0, entries)) peer.Load(key, value);
    for (int i = 1; i < state.range(1); ++i) peer.NextBucket();
    int64_t delivered = 0;
    const Stopwatch watch;
    peer.DropOldest([&delivered](const std::string&, const std::string& dead) {
      delivered += dead.size() == kValueBytes;
    });
    Report(state, watch.Seconds(), entries);
    if (delivered != entries) state.SkipWithError("not all were delivered");
  }
}

// Nothing dies in it: as many keys are erased, one by one.
void FlatDeath(benchmark::State& state) {
  const int64_t entries = state.range(0);
  const std::string value(kValueBytes, 'v');
  for (auto _ : state) {
    FlatPeer peer(0);
    const std::vector<std::string> keys = KeysFrom(0, entries);
    for (const std::string& key : keys) peer.Put(key, value);
    int64_t delivered = 0;
    const Stopwatch watch;
    for (const std::string& key : keys) delivered += peer.Remove(key);
    Report(state, watch.Seconds(), entries);
    if (delivered != entries) state.SkipWithError("not all were there");
  }
}

// The processor's time of this thread, so that what else the machine does is
// not in it.
class StepTimes {
 public:
  template <typename Step>
  auto Time(Step&& step) {
    const int64_t before_ns = CpuNs();
    auto result = step();
    steps_ns_.push_back(CpuNs() - before_ns);
    return result;
  }

  void Report(benchmark::State& state, const std::string& name) {
    std::sort(steps_ns_.begin(), steps_ns_.end());
    const size_t last = steps_ns_.size() - 1;
    state.counters[name + "_max_us"] =
        static_cast<double>(steps_ns_[last]) / 1e3;
    state.counters[name + "_p999_us"] =
        static_cast<double>(steps_ns_[last * 999 / 1000]) / 1e3;
  }

 private:
  static int64_t CpuNs() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
  }

  std::vector<int64_t> steps_ns_;
};

// Each single put of a map that grows to N entries: the longest is what growth
// stalls.
template <typename Peer>
void PutSteps(benchmark::State& state) {
  const int64_t entries = state.range(0);
  const std::string value(kValueBytes, 'v');
  for (auto _ : state) {
    Peer peer(static_cast<int>(state.range(1)));
    StepTimes put;
    const Stopwatch watch;
    for (const std::string& key : KeysFrom(0, entries)) {
      put.Time([&] {
        peer.Put(key, value);
        return 0;
      });
    }
    bench::Report(state, watch.Seconds(), entries);
    put.Report(state, "put");
  }
}

void Add(const std::string& name, void (*function)(benchmark::State&),
         int64_t entries, int num_buckets) {
  benchmark::RegisterBenchmark(name.c_str(), function)
      ->Args({entries, num_buckets})
      ->Iterations(1)
      ->UseManualTime();
}

// The operations on one map, in an order in which one filling serves most.
template <typename Peer>
void AddOperations(int64_t entries, int num_buckets) {
  const std::string peer = Peer::kName;
  if (!kIsStorm<Peer> || entries * num_buckets <= kStormFillLooks) {
    Add("put/" + peer, Put<Peer>, entries, num_buckets);
  }
  Add("get_hit/" + peer, GetHit<Peer>, entries, num_buckets);
  Add("get_miss/" + peer, GetMiss<Peer>, entries, num_buckets);
  Add("overwrite/" + peer, Overwrite<Peer>, entries, num_buckets);
  Add("remove/" + peer, Remove<Peer>, entries, num_buckets);
}

void AddAll(int64_t max_entries) {
  for (int64_t entries = 1'000; entries <= max_entries; entries *= 10) {
    AddOperations<FlatPeer>(entries, 1);
    AddOperations<LockedFlatPeer>(entries, 1);
    for (const int num_buckets : {2, 3, 11, 101, 1000}) {
      AddOperations<EnginePeer>(entries, num_buckets);
      AddOperations<EngineBatchPeer>(entries, num_buckets);
      AddOperations<StormPeer>(entries, num_buckets);
    }
    if (entries > 1'000'000) continue;
    Add("death/flat_hash_map", FlatDeath, entries, 1);
    for (const int num_buckets : {3, 101}) {
      Add("death/engine", EngineDeath, entries, num_buckets);
      Add("death/storm", StormDeath, entries, num_buckets);
    }
  }
  const int64_t most = std::min<int64_t>(max_entries, 1'000'000);
  Add("put_steps/engine", PutSteps<EnginePeer>, most, 101);
  Add("put_steps/flat_hash_map", PutSteps<FlatPeer>, most, 1);
}

int Main(int argc, char** argv) {
  // As the server does: the detector of deadlocks, which Debian's Abseil has
  // on, would be measured instead of the lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  int64_t max_entries = 10'000'000;
  const std::string flag = "--max_entries=";
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.compare(0, flag.size(), flag) == 0) {
      max_entries = std::stoll(argument.substr(flag.size()));
    } else {
      rest.push_back(argv[i]);
    }
  }
  AddAll(max_entries);
  int rest_size = static_cast<int>(rest.size());
  benchmark::Initialize(&rest_size, rest.data());
  if (benchmark::ReportUnrecognizedArguments(rest_size, rest.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace timecache::server::bench

int main(int argc, char** argv) {
  return timecache::server::bench::Main(argc, argv);
}
