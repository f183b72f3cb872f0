#include "timecache/virtual_clock.h"

#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "timecache/testing/v1/virtual_clock.grpc.pb.h"

namespace timecache {
namespace {

using Clock = testing::v1::VirtualClockService::Stub;

// Not safe to repeat: time would pass twice.
CallPlan Plan(absl::Duration timeout) {
  static const CallOptions call;
  return CallPlan({.timeout = timeout}, call, Repeat::kUnsafe);
}

absl::StatusOr<absl::Time> CallAdvance(
    Endpoints& endpoints, const testing::v1::AdvanceRequest& request,
    absl::Duration timeout) {
  auto response = Call(endpoints, &Clock::Advance, request, Plan(timeout));
  if (!response.ok()) return response.status();
  return FromProto(response->now());
}

}  // namespace

VirtualClock::VirtualClock(const Client& client, absl::Duration timeout)
    : timeout_(timeout), client_(client) {}

absl::StatusOr<absl::Time> VirtualClock::AdvanceTo(absl::Time to) const {
  testing::v1::AdvanceRequest request;
  *request.mutable_to() = ToProto(to);
  return CallAdvance(Client::Core::Of(client_)->endpoints, request, timeout_);
}

absl::StatusOr<absl::Time> VirtualClock::Advance(absl::Duration by) const {
  testing::v1::AdvanceRequest request;
  *request.mutable_by() = ToProto(by);
  return CallAdvance(Client::Core::Of(client_)->endpoints, request, timeout_);
}

absl::StatusOr<absl::Time> VirtualClock::Now() const {
  auto response = Call(Client::Core::Of(client_)->endpoints, &Clock::Now,
                       testing::v1::NowRequest(), Plan(timeout_));
  if (!response.ok()) return response.status();
  return FromProto(response->now());
}

}  // namespace timecache
