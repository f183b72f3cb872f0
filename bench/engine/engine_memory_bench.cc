// Memory: what each map asks from the allocator for an entry beyond its key and
// value. Every operator new and delete is counted, so that nothing of the
// engine escapes.

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "bench/engine/engine_load.h"
#include "bench/engine/engine_peers.h"
#include "benchmark/benchmark.h"

namespace {

// Asked for and not given back. One thread.
int64_t asked_bytes = 0;

// The size stands before what is handed out, in as many bytes as alignment
// wants.
void* Allocate(size_t size, size_t alignment) {
  const size_t head = alignment < 16 ? 16 : alignment;
  void* const block =
      std::aligned_alloc(head, (head + size + head - 1) / head * head);
  if (block == nullptr) std::abort();
  char* const data = static_cast<char*>(block) + head;
  reinterpret_cast<size_t*>(data)[-1] = size;
  asked_bytes += static_cast<int64_t>(size);
  return data;
}

void Free(void* data, size_t alignment) {
  if (data == nullptr) return;
  asked_bytes -= static_cast<int64_t>(static_cast<size_t*>(data)[-1]);
  const size_t head = alignment < 16 ? 16 : alignment;
  std::free(static_cast<char*>(data) - head);
}

}  // namespace

void* operator new(size_t size) { return Allocate(size, 16); }
void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* data) noexcept { Free(data, 16); }
void operator delete(void* data, size_t) noexcept { Free(data, 16); }
void operator delete(void* data, std::align_val_t alignment) noexcept {
  Free(data, static_cast<size_t>(alignment));
}
void operator delete(void* data, size_t, std::align_val_t alignment) noexcept {
  Free(data, static_cast<size_t>(alignment));
}

namespace timecache::server::bench {
namespace {

constexpr int64_t kPayloadBytes = kKeyBytes + kValueBytes;

// All entries in one bucket if B is 1, else spread evenly over B.
template <typename Peer>
void Memory(benchmark::State& state) {
  const int64_t entries = state.range(0);
  const int num_buckets = static_cast<int>(state.range(1));
  for (auto _ : state) {
    const int64_t before_bytes = asked_bytes;
    const Stopwatch watch;
    Peer peer(num_buckets == 1 ? 101 : num_buckets);
    const std::string value(kValueBytes, 'v');
    const int64_t bucket_entries = (entries + num_buckets - 1) / num_buckets;
    for (int64_t i = 0; i < entries; ++i) {
      if (i > 0 && i % bucket_entries == 0) peer.NextBucket();
      peer.Load(KeyOf(static_cast<uint64_t>(i)), value);
    }
    state.SetIterationTime(watch.Seconds());
    const auto beyond = [&](int64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(entries) -
             kPayloadBytes;
    };
    state.counters["beyond_bytes"] = beyond(asked_bytes - before_bytes);
    if constexpr (std::is_same_v<Peer, EnginePeer>) {
      state.counters["told_beyond_bytes"] =
          beyond(peer.map().GetStatistics(peer.now_us()).memory_bytes);
      if (peer.map().GetSize(peer.now_us()).entries != entries) {
        state.SkipWithError("entries are missing");
      }
    }
  }
}

template <typename Peer>
void Add(int64_t entries, int num_buckets) {
  benchmark::RegisterBenchmark((std::string("memory/") + Peer::kName).c_str(),
                               Memory<Peer>)
      ->Args({entries, num_buckets})
      ->Iterations(1)
      ->UseManualTime();
}

}  // namespace
}  // namespace timecache::server::bench

int main(int argc, char** argv) {
  using timecache::server::bench::Add;
  const bool quick = argc > 1 && std::string(argv[1]) == "--quick";
  const int64_t entries = quick ? 1'000'000 : 10'000'000;
  for (const int num_buckets : {1, 101}) {
    Add<timecache::server::bench::EnginePeer>(entries, num_buckets);
    Add<timecache::server::bench::FlatPeer>(entries, num_buckets);
    Add<timecache::server::bench::StormPeer>(entries, num_buckets);
  }
  if (quick) {
    argv[1] = argv[0];
    ++argv;
    --argc;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
