// Times on the monotonic clock: steps of the system clock do not affect a wait.
// Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_STEADY_TIME_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"
#include "grpc/support/time.h"

namespace timecache {

using SteadyTime = std::chrono::steady_clock::time_point;

// A time that never comes.
inline constexpr SteadyTime kSteadyNever = SteadyTime::max();

inline SteadyTime SteadyNow() { return std::chrono::steady_clock::now(); }

// `begin` + `duration`; kSteadyNever where that is too long to be counted.
inline SteadyTime SteadyAfter(absl::Duration duration,
                              SteadyTime begin = SteadyNow()) {
  const auto room = absl::FromChrono(kSteadyNever - begin);
  if (begin == kSteadyNever || duration >= room) return kSteadyNever;
  return begin + absl::ToChronoNanoseconds(duration);
}

// The form in which gRPC takes a deadline: for ClientContext::set_deadline,
// CompletionQueue::AsyncNext and Channel::WaitForStateChange.
inline gpr_timespec ToGrpcDeadline(SteadyTime time) {
  if (time == kSteadyNever) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const auto left =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time - SteadyNow());
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(left.count(), GPR_TIMESPAN));
}

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_STEADY_TIME_H_
