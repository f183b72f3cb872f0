// The load itself: connections, each with one window of requests in flight.

#ifndef TIMECACHED_BENCH_PEERS_CLIENTS_LOAD_LOOP_H_
#define TIMECACHED_BENCH_PEERS_CLIENTS_LOAD_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/peers/clients/peer_protocol.h"
#include "client/cli/bench/latency_histogram.h"

namespace timecache::bench {

constexpr int kMaxConnections = 1'000;
constexpr int kMaxDepth = 10'000;

struct LoadOptions {
  std::string host = "127.0.0.1";
  // Connections take them in turn.
  std::vector<int> ports;
  // What the keys of each port's connections begin with: those that a node of
  // Redis Cluster has the slots of. Of one length; one, or one a port.
  std::vector<std::string> key_prefixes = {"key:"};
  int connections = 16;
  int depth = 1;         // requests sent at once, all answered before the next
  double put_share = 1;  // 0 to 1; the others are gets
  uint64_t keys = 1'000'000;
  bool sequential = false;  // keys in order instead of at random
  uint64_t first_key = 0;   // the keys are first_key up to first_key + keys
  int key_bytes = 16;
  int value_bytes = 64;
  uint64_t operations = 0;  // 0: until `seconds` are over
  double seconds = 0;
  double rate = 0;  // operations per second; 0: as many as get through
};

struct LoadResult {
  uint64_t puts = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t errors = 0;
  double seconds = 0;
  // From when an operation was sent, or, with a rate, from when it should have
  // been: a server that stalls is not spared.
  cli::LatencyHistogram latency;
  std::vector<cli::LatencyHistogram> timeline;  // of each second
};

// Runs the load on the calling thread; with the same options the same keys come
// in the same order. Throws std::runtime_error when a connection fails.
LoadResult RunLoad(
    const LoadOptions& options,
    const std::function<std::unique_ptr<PeerProtocol>()>& make_protocol,
    bool with_timeline);

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_PEERS_CLIENTS_LOAD_LOOP_H_
