// Works around gRPC 1.51's idle callback threads. Can go with a version whose
// idle server answers its first call as soon as the next.

#ifndef TIMECACHED_SERVER_EDGE_GRPC_1_51_KEEP_AWAKE_H_
#define TIMECACHED_SERVER_EDGE_GRPC_1_51_KEEP_AWAKE_H_

#include <chrono>
#include <memory>

#include "grpcpp/grpcpp.h"
#include "server/base/housekeeping.h"

namespace timecache::server {

// Keeps one of the callback API's threads awake. Those of gRPC 1.51 sleep for
// 100 ms after every second without an event, often all at once: a call that
// arrives then waits for up to 100 ms, where otherwise it takes less than 1 ms.
// While this object lives, the server calls its own health service, in the
// process, often enough for one thread to be within that second at any time.
//
// Thread-safe. Costs a thread and about a hundred microseconds of work each
// kInterval.
class KeepAwake {
 public:
  static constexpr std::chrono::milliseconds kInterval{400};

  // `server` is not owned, has started and must outlive this object.
  explicit KeepAwake(grpc::Server* server);

 private:
  void Call();

  const std::shared_ptr<grpc::Channel> channel_;
  // Its own: another task may take long.
  Housekeeping housekeeping_;
  // Its end waits for the call in progress.
  const std::unique_ptr<Housekeeping::Task> calls_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_GRPC_1_51_KEEP_AWAKE_H_
