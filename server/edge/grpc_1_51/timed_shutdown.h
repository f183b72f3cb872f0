// Works around gRPC 1.51's waits by the system clock. Can go with a version
// whose Server::Shutdown waits by the monotonic clock.

#ifndef TIMECACHED_SERVER_EDGE_GRPC_1_51_TIMED_SHUTDOWN_H_
#define TIMECACHED_SERVER_EDGE_GRPC_1_51_TIMED_SHUTDOWN_H_

#include <chrono>
#include <functional>

#include "grpcpp/server.h"

namespace timecache::server {

// Shuts the server down: calls in flight may finish until `deadline`, and are
// then cancelled. False if some were.
//
// grpc::Server::Shutdown with a deadline waits by the system clock, whichever
// clock the deadline is of: if that is set back by an hour, a grace period of
// seconds takes an hour longer. This waits by the monotonic clock. `meanwhile`
// is called every kLookInterval, by a thread that ends before this returns.
// Called once, by one thread. Costs a thread while it waits.
inline constexpr std::chrono::milliseconds kLookInterval{100};
bool ShutDown(
    grpc::Server* server, std::chrono::steady_clock::time_point deadline,
    std::function<void()> meanwhile = [] {});

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_GRPC_1_51_TIMED_SHUTDOWN_H_
