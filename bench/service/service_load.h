// Calls, or messages of a Pipeline, from a fixed number of connections with a
// fixed number in flight on each: the load that a server's rounds are measured
// with.

#ifndef TIMECACHED_BENCH_SERVICE_SERVICE_LOAD_H_
#define TIMECACHED_BENCH_SERVICE_SERVICE_LOAD_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bench/service/service_caller.h"
#include "grpcpp/generic/generic_stub.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::bench {

inline constexpr int kKeys = 100'000;
inline constexpr size_t kKeyBytes = 16;
inline constexpr size_t kValueBytes = 64;

// Of a message.
inline constexpr size_t kOperations = 100;

// Pipelines: one stream on each connection, whose messages are the calls.
enum class Rpc { kPut, kGet, kPipelinePut, kPipelineGet };

struct Load {
  Rpc rpc = Rpc::kPut;
  int connections = 4;
  int calls_in_flight = 16;  // on each connection
};

// What one round of a load on one server gave.
struct Round {
  double calls_per_second = 0;
  double p50_us = 0;
  double p99_us = 0;
  // Processor time of the server's process, and of the client's.
  double server_cpu_us_per_call = 0;
  double client_cpu_us_per_call = 0;
};

// The connections to one server. Not thread-safe.
class LoadGenerator {
 public:
  // The server's process is there to ask for its processor time.
  LoadGenerator(const std::string& address, int server_pid,
                int max_connections);

  // Puts every key once, so that every later get is a hit.
  void Fill();
  // Ends the program if a call fails, or answers less than it should.
  Round Run(const Load& load, absl::Duration duration);
  // How long one Get takes, on a connection that stands.
  double TimeOneGetMs();

 private:
  std::vector<std::unique_ptr<Caller>> MakeCallers(const Load& load,
                                                   Turn* turn);

  const int server_pid_;
  std::vector<std::string> keys_;
  std::vector<std::unique_ptr<v1::TimeCacheService::Stub>> stubs_;
  std::vector<std::unique_ptr<grpc::GenericStub>> raw_stubs_;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_SERVICE_SERVICE_LOAD_H_
