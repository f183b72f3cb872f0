// How long the engine's locks are held: each single time, while a bucket of a
// million entries dies, while the map grows to them, and while all else is done
// to it.
//
// The linker sends the engine's calls of Lock and Unlock here (--wrap in
// CMakeLists.txt). The time is the processor's for this thread, so that what
// else the machine does is not in it, as far as the machine can tell.

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/engine/engine_load.h"
#include "bench/engine/engine_peers.h"
#include "benchmark/benchmark.h"

namespace {

int64_t CpuNs() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// The locks that this thread holds, since when, and all times that it held one.
struct Holds {
  std::vector<std::pair<const absl::Mutex*, int64_t>> held;
  std::vector<int64_t> times_ns;
};

Holds& MyHolds() {
  thread_local Holds holds;
  return holds;
}

}  // namespace

// The symbols that the linker's --wrap makes of those of the member functions,
// as Debian 12's Abseil, 20220623, has them.
void RealLock(absl::Mutex* mu) asm("__real__ZN4absl7debian35Mutex4LockEv");
void WrappedLock(absl::Mutex* mu) asm("__wrap__ZN4absl7debian35Mutex4LockEv");
bool RealTryLock(absl::Mutex* mu) asm(
    "__real__ZN4absl7debian35Mutex7TryLockEv");
bool WrappedTryLock(absl::Mutex* mu) asm(
    "__wrap__ZN4absl7debian35Mutex7TryLockEv");
void RealUnlock(absl::Mutex* mu) asm("__real__ZN4absl7debian35Mutex6UnlockEv");
void WrappedUnlock(absl::Mutex* mu) asm(
    "__wrap__ZN4absl7debian35Mutex6UnlockEv");

void WrappedLock(absl::Mutex* mu) {
  RealLock(mu);
  MyHolds().held.push_back({mu, CpuNs()});
}

bool WrappedTryLock(absl::Mutex* mu) {
  if (!RealTryLock(mu)) return false;
  MyHolds().held.push_back({mu, CpuNs()});
  return true;
}

void WrappedUnlock(absl::Mutex* mu) {
  const int64_t now_ns = CpuNs();
  RealUnlock(mu);
  Holds& holds = MyHolds();
  const auto it =
      std::find_if(holds.held.rbegin(), holds.held.rend(),
                   [mu](const auto& each) { return each.first == mu; });
  holds.times_ns.push_back(now_ns - it->second);
  holds.held.erase(std::next(it).base());
}

namespace timecache::server::bench {
namespace {

// What was held since the last call.
void Report(benchmark::State& state, double seconds) {
  std::vector<int64_t> times_ns = std::exchange(MyHolds().times_ns, {});
  if (times_ns.empty()) {
    state.SkipWithError("no lock was seen: has Abseil another name here?");
    return;
  }
  state.SetIterationTime(seconds);
  std::sort(times_ns.begin(), times_ns.end());
  const size_t last = times_ns.size() - 1;
  state.counters["held_max_us"] = static_cast<double>(times_ns[last]) / 1e3;
  state.counters["held_p999_us"] =
      static_cast<double>(times_ns[last * 999 / 1000]) / 1e3;
  state.counters["locks"] = static_cast<double>(times_ns.size());
}

NamespaceOptions Options() {
  NamespaceOptions options = EnginePeer::Options(101);
  options.retention_bytes = kMaxRetentionBytes;
  return options;
}

void Fill(EnginePeer* peer, int64_t entries) {
  const std::string value(kValueBytes, 'v');
  for (int64_t i = 0; i < entries; ++i) {
    peer->Put(KeyOf(static_cast<uint64_t>(i)), value);
  }
}

void HeldInGrowth(benchmark::State& state) {
  for (auto _ : state) {
    EnginePeer peer(Options());
    MyHolds().times_ns.clear();
    const Stopwatch watch;
    Fill(&peer, state.range(0));
    Report(state, watch.Seconds());
  }
}

// Advance, the sweep, and a watcher that reads. The lock by which only one
// sweeps at a time is held for a whole step, the shortest that there are here;
// the reaper takes longer ones, for which none but a new watcher waits.
void HeldInDeath(benchmark::State& state) {
  for (auto _ : state) {
    EnginePeer peer(Options());
    Fill(&peer, state.range(0));
    const auto cursor =
        peer.map().Subscribe(ExpiryLog::Start::kNow, peer.now_us(), [] {});
    const int64_t dead_us = peer.now_us() + 2 * EnginePeer::kTtlUs;
    MyHolds().times_ns.clear();
    const Stopwatch watch;
    peer.map().Advance(dead_us);
    while (peer.map().Sweep(dead_us, 64)) {
    }
    while (cursor->Read(1 << 20).more) {
    }
    Report(state, watch.Seconds());
  }
}

// The bucket is killed by hand: under all locks at once.
void HeldInRotation(benchmark::State& state) {
  for (auto _ : state) {
    EnginePeer peer(Options());
    Fill(&peer, state.range(0));
    MyHolds().times_ns.clear();
    const Stopwatch watch;
    peer.map().Rotate(peer.now_us());
    peer.map().GetSize(peer.now_us());
    Report(state, watch.Seconds());
  }
}

void HeldInScan(benchmark::State& state) {
  for (auto _ : state) {
    EnginePeer peer(Options());
    Fill(&peer, state.range(0));
    MyHolds().times_ns.clear();
    size_t bytes = 0;
    ScanPosition place;
    const Stopwatch watch;
    while (peer.map().Scan("", peer.now_us(), 1'000, 1 << 20, &place,
                           [&bytes](const EntryView& entry) {
                             bytes += entry.key.size() + entry.value.size();
                           })) {
    }
    Report(state, watch.Seconds());
    benchmark::DoNotOptimize(bytes);
  }
}

void HeldInRemoval(benchmark::State& state) {
  for (auto _ : state) {
    EnginePeer peer(Options());
    Fill(&peer, state.range(0));
    const std::vector<std::string> keys =
        SomeKeys(state.range(0), state.range(0), 4);
    MyHolds().times_ns.clear();
    const Stopwatch watch;
    for (const std::string& key : keys) peer.Remove(key);
    Report(state, watch.Seconds());
  }
}

void Add(const std::string& name, void (*function)(benchmark::State&)) {
  benchmark::RegisterBenchmark(("held/" + name).c_str(), function)
      ->Args({1'000'000, 101})
      ->Iterations(1)
      ->UseManualTime();
}

}  // namespace
}  // namespace timecache::server::bench

int main(int argc, char** argv) {
  using namespace timecache::server::bench;  // NOLINT: this file's own.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Add("growth", HeldInGrowth);
  Add("death", HeldInDeath);
  Add("rotation", HeldInRotation);
  Add("scan", HeldInScan);
  Add("removal", HeldInRemoval);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
