#include "client/cpp/src/rpc/connection.h"

#include <algorithm>

namespace timecache {

bool Connect(grpc::Channel& channel, SteadyTime deadline, bool has_others) {
  gpr_timespec until = ToGrpcDeadline(deadline);
  const auto try_at_once = [&] {
    grpc::experimental::ChannelResetConnectionBackoff(&channel);
    if (!has_others) return;
    until = ToGrpcDeadline(std::min(deadline, SteadyAfter(kRefusedPatience)));
  };
  grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
  // Here gRPC pauses between attempts.
  if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) try_at_once();
  bool tried_again = false;
  while (state != GRPC_CHANNEL_READY) {
    // What gRPC says of a channel without connections, as one in process.
    if (state == GRPC_CHANNEL_SHUTDOWN) return false;
    if (!channel.WaitForStateChange(state, until)) return false;
    state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE && !tried_again) {
      tried_again = true;
      try_at_once();
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
  if (!Connect(*channel_, std::min(attempt_ends, deadline), has_others_)) {
    return false;
  }
  absl::MutexLock lock(&mu_);
  backoff_.Reset();
  attempt_ends_ = next_attempt_ = SteadyTime::min();
  return true;
}

}  // namespace timecache
