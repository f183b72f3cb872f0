#include "client/cpp/src/rpc/connection.h"

#include <algorithm>

namespace timecache {

bool Connect(grpc::Channel& channel, SteadyTime deadline) {
  const gpr_timespec until = ToGrpcDeadline(deadline);
  grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
  // Here gRPC pauses between attempts.
  if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
    grpc::experimental::ChannelResetConnectionBackoff(&channel);
  }
  bool tried_again = false;
  while (state != GRPC_CHANNEL_READY) {
    // What gRPC says of a channel without connections, as one in process.
    if (state == GRPC_CHANNEL_SHUTDOWN) return false;
    if (!channel.WaitForStateChange(state, until)) return false;
    state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE && !tried_again) {
      tried_again = true;
      grpc::experimental::ChannelResetConnectionBackoff(&channel);
    }
  }
  return true;
}

bool Connection::IsUp() {
  if (is_in_process_) return true;
  const auto state = channel_->GetState(/*try_to_connect=*/true);
  if (state == GRPC_CHANNEL_SHUTDOWN) is_in_process_ = true;
  return state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_SHUTDOWN;
}

bool Connection::Await(SteadyTime deadline) {
  if (IsUp()) return true;
  SteadyTime attempt_ends;
  {
    absl::MutexLock lock(&mu_);
    const SteadyTime now = SteadyNow();
    if (now >= attempt_ends_) {
      if (now < next_attempt_) return false;
      attempt_ends_ = SteadyAfter(kConnectPatience, now);
      next_attempt_ = SteadyAfter(backoff_.Next(), attempt_ends_);
    }
    attempt_ends = attempt_ends_;
  }
  if (!Connect(*channel_, std::min(attempt_ends, deadline))) return false;
  absl::MutexLock lock(&mu_);
  backoff_.Reset();
  attempt_ends_ = next_attempt_ = SteadyTime::min();
  return true;
}

}  // namespace timecache
