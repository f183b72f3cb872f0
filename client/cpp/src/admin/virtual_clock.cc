#include "timecache/virtual_clock.h"

#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/rpc/call.h"
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
    Connection& connection, Clock& stub,
    const testing::v1::AdvanceRequest& request, absl::Duration timeout) {
  auto response =
      Call(connection, stub, &Clock::Advance, request, Plan(timeout));
  if (!response.ok()) return response.status();
  return FromProto(response->now());
}

}  // namespace

struct VirtualClock::Core {
  explicit Core(const std::shared_ptr<grpc::Channel>& channel)
      : connection(channel), stub(channel) {}

  Connection connection;
  Clock stub;
};

VirtualClock::VirtualClock(const Client& client, absl::Duration timeout)
    : timeout_(timeout), core_(std::make_shared<Core>(client.channel())) {}

absl::StatusOr<absl::Time> VirtualClock::AdvanceTo(absl::Time to) const {
  testing::v1::AdvanceRequest request;
  *request.mutable_to() = ToProto(to);
  return CallAdvance(core_->connection, core_->stub, request, timeout_);
}

absl::StatusOr<absl::Time> VirtualClock::Advance(absl::Duration by) const {
  testing::v1::AdvanceRequest request;
  *request.mutable_by() = ToProto(by);
  return CallAdvance(core_->connection, core_->stub, request, timeout_);
}

absl::StatusOr<absl::Time> VirtualClock::Now() const {
  auto response = Call(core_->connection, core_->stub, &Clock::Now,
                       testing::v1::NowRequest(), Plan(timeout_));
  if (!response.ok()) return response.status();
  return FromProto(response->now());
}

}  // namespace timecache
