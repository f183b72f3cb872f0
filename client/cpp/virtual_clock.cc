#include "client/cpp/virtual_clock.h"

#include "client/cpp/call.h"
#include "client/cpp/convert.h"

namespace timecache::inline client {
namespace {

using Stub = testing::v1::VirtualClockService::Stub;

absl::StatusOr<absl::Time> CallAdvance(
    Connection& connection, Stub& stub,
    const testing::v1::AdvanceRequest& request, absl::Duration timeout) {
  auto response = Call(connection, stub, &Stub::Advance, request, timeout);
  if (!response.ok()) return response.status();
  return FromProto(response->now());
}

}  // namespace

VirtualClock::VirtualClock(const Client& client, absl::Duration timeout)
    : timeout_(timeout),
      connection_(std::make_shared<Connection>(client.channel())),
      stub_(testing::v1::VirtualClockService::NewStub(client.channel())) {}

absl::StatusOr<absl::Time> VirtualClock::AdvanceTo(absl::Time to) const {
  testing::v1::AdvanceRequest request;
  *request.mutable_to() = ToProto(to);
  return CallAdvance(*connection_, *stub_, request, timeout_);
}

absl::StatusOr<absl::Time> VirtualClock::Advance(absl::Duration by) const {
  testing::v1::AdvanceRequest request;
  *request.mutable_by() = ToProto(by);
  return CallAdvance(*connection_, *stub_, request, timeout_);
}

absl::StatusOr<absl::Time> VirtualClock::Now() const {
  auto response = Call(*connection_, *stub_, &Stub::Now,
                       testing::v1::NowRequest(), timeout_);
  if (!response.ok()) return response.status();
  return FromProto(response->now());
}

}  // namespace timecache::inline client
