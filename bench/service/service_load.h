// The load that a server's rounds are measured with, by the generator of
// `timecachectl bench`.

#ifndef TIMECACHED_BENCH_SERVICE_SERVICE_LOAD_H_
#define TIMECACHED_BENCH_SERVICE_SERVICE_LOAD_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::bench {

inline constexpr uint64_t kKeys = 100'000;
inline constexpr size_t kKeyBytes = 16;
inline constexpr size_t kValueBytes = 64;

// Of a Pipeline's message.
inline constexpr size_t kOperations = 100;

// Puts or gets of random keys.
struct Load {
  bool is_put = true;
  // Unary calls; else the calls are messages of a Pipeline on each connection.
  bool is_unary = true;
  size_t connections = 4;
  size_t calls_in_flight = 16;  // On each connection.
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

// What puts one server under load. Not thread-safe. A benchmark of calls that
// fail measures nothing: ends the program if one does.
class LoadGenerator {
 public:
  // The server's process is there to ask for its processor time.
  LoadGenerator(const std::string& address, pid_t server_pid);

  // Puts every key once, so that every later get is a hit.
  void Fill();
  // With connections of its own, which stand when the round begins.
  Round Run(const Load& load, absl::Duration duration);
  // How long one Get takes, on a connection that stands.
  double TimeOneGetMs();

 private:
  const std::string address_;
  const pid_t server_pid_;
  const std::unique_ptr<v1::TimeCacheService::Stub> stub_;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_SERVICE_SERVICE_LOAD_H_
