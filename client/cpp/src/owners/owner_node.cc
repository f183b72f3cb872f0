#include "client/cpp/src/owners/owner_node.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "client/cpp/src/rpc/connection.h"

namespace timecache {
namespace {

// Those that make the pause longer.
constexpr int kFailuresMax = 5;

}  // namespace

OwnerNode::OwnerNode(const std::string& address,
                     std::shared_ptr<grpc::Channel> channel,
                     LazyCallDriver& driver)
    : endpoints_(std::vector<std::string>{address}, std::move(channel),
                 nullptr),
      shared_calls_(endpoints_, driver) {}

bool OwnerNode::Connect() {
  const bool is_up =
      timecache::Connect(*endpoint().channel, SteadyAfter(kConnectPatience),
                         /*has_others=*/true);
  if (!is_up) NotReached(SteadyNow());
  is_connecting_ = false;
  return is_up;
}

void OwnerNode::NotReached(SteadyTime now) {
  SteadyTime until = out_until_.load(std::memory_order_relaxed);
  if (now < until) return;
  const int failures = failures_.load(std::memory_order_relaxed);
  const absl::Duration pause =
      std::min(kMinNodePause * (1 << failures), kMaxNodePause);
  // Another thread may have counted the same failure.
  if (!out_until_.compare_exchange_strong(until, SteadyAfter(pause, now))) {
    return;
  }
  failures_.store(std::min(failures + 1, kFailuresMax),
                  std::memory_order_relaxed);
}

}  // namespace timecache
