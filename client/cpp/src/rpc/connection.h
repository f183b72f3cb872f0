// Connects the client. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_CONNECTION_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_CONNECTION_H_

#include <atomic>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/src/rpc/backoff.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "grpcpp/channel.h"
#include "timecache/channel.h"

namespace timecache {

// How long a call waits for a connection that was refused, before it fails.
inline constexpr absl::Duration kConnectPatience = absl::Milliseconds(250);

// How long it waits where another server may do.
inline constexpr absl::Duration kRefusedPatience = absl::Milliseconds(20);

// Connects now, whatever pause gRPC is making, and waits until `channel` is
// connected, but not after `deadline`. Returns whether it is.
//
// Works around gRPC 1.51, which is late and sometimes wrong. No thread polls
// between calls, so that an attempt to connect ends only when the next call or
// a timer of five seconds polls. And on rare occasions it reads errno too late
// and treats a connect in progress as failed: so the first failure is followed
// by another attempt at once. `has_others`: another server may do, so that this
// waits no longer than kRefusedPatience after a failure.
bool Connect(grpc::Channel& channel, SteadyTime deadline,
             bool has_others = false);

// A channel as calls use it. Thread-safe.
class Connection {
 public:
  explicit Connection(std::shared_ptr<grpc::Channel> channel,
                      bool has_others = false)
      : channel_(std::move(channel)), has_others_(has_others) {}

  // Whether there is a connection, as far as gRPC has noticed; starts to
  // connect if there is none.
  bool IsUp();

  // To be called before each call: connects if there is no connection, and
  // waits for it for at most kConnectPatience and not after `deadline`. While
  // the server is unreachable, only one call in 50 ms to 1 s does so, by a
  // Backoff; the others return at once, and gRPC reports why there is no
  // connection. Returns whether there is one.
  bool Await(SteadyTime deadline);

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const bool has_others_;
  // It has no connections, and gRPC logs an error when asked for them.
  std::atomic<bool> is_in_process_{false};

  absl::Mutex mu_;
  Backoff backoff_ ABSL_GUARDED_BY(mu_){absl::Milliseconds(kMinConnectPauseMs),
                                        absl::Milliseconds(kMaxConnectPauseMs)};
  // When calls stop to wait for a connection, and when one next begins to.
  SteadyTime attempt_ends_ ABSL_GUARDED_BY(mu_) = SteadyTime::min();
  SteadyTime next_attempt_ ABSL_GUARDED_BY(mu_) = SteadyTime::min();
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_CONNECTION_H_
