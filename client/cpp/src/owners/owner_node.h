// A node that owns partitions. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_NODE_H_
#define TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_NODE_H_

#include <atomic>
#include <memory>
#include <string>

#include "client/cpp/src/rpc/endpoints.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "client/cpp/src/shared/call_driver.h"
#include "client/cpp/src/shared/shared_calls.h"
#include "grpcpp/channel.h"

namespace timecache {

// Where calls go: a server, or that of several which is called now.
struct Destination {
  Endpoints* endpoints;
  SharedCalls* shared_calls;
};

// How long no call goes to a node that was not reached, doubling from the first to
// the second with each further time.
inline constexpr absl::Duration kMinNodePause = absl::Seconds(1);
inline constexpr absl::Duration kMaxNodePause = absl::Seconds(30);

// Thread-safe; all but Connect are some atomic operations. No call waits for a
// connection to it: while there is none, calls go elsewhere.
class OwnerNode {
 public:
  // `driver` outlives it.
  OwnerNode(const std::string& address, std::shared_ptr<grpc::Channel> channel,
            LazyCallDriver& driver);

  OwnerNode(const OwnerNode&) = delete;
  OwnerNode& operator=(const OwnerNode&) = delete;

  const std::string& address() const { return endpoint().address; }
  Destination destination() { return {&endpoints_, &shared_calls_}; }

  // Whether no call is to go to it, as it was not reached.
  bool IsLeftOut(SteadyTime now) const {
    return now < out_until_.load(std::memory_order_relaxed);
  }
  bool IsConnected() { return endpoint().connection.IsUp(); }

  // Whether the caller is to see to it that Connect is called: true once.
  bool BeginConnect() { return !is_connecting_.exchange(true); }
  // Waits for a connection for a while; returns whether there is one.
  bool Connect();

  // Calls that fail while it is left out began before: they count once.
  void NotReached(SteadyTime now);
  void Answered() {
    if (failures_.load(std::memory_order_relaxed) != 0) failures_ = 0;
  }

 private:
  Endpoint& endpoint() const { return endpoints_.current(); }

  Endpoints endpoints_;  // One, which stays current.
  SharedCalls shared_calls_;
  std::atomic<SteadyTime> out_until_{SteadyTime::min()};
  std::atomic<int> failures_{0};  // In a row.
  std::atomic<bool> is_connecting_{false};
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_NODE_H_
