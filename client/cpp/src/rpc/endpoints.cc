#include "client/cpp/src/rpc/endpoints.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cpp/src/rpc/call.h"
#include "server/base/address.h"
#include "timecache/channel.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// What gRPC resolves by itself.
constexpr absl::string_view kResolvedSchemes[] = {
    "unix:", "unix-abstract:", "ipv4:", "ipv6:", "dns:", "xds:", "vsock:"};

}  // namespace

absl::Status CheckAddress(absl::string_view address) {
  if (address.empty()) return absl::InvalidArgumentError("is empty");
  for (const absl::string_view scheme : kResolvedSchemes) {
    if (absl::StartsWith(address, scheme)) return absl::OkStatus();
  }
  return ValidateAddress(address);
}

absl::StatusOr<std::vector<std::string>> SplitAddresses(std::string_view text) {
  const std::string all(text);
  if (!absl::StrContains(all, ',')) return std::vector<std::string>{all};
  std::vector<std::string> addresses = absl::StrSplit(all, ',');
  if (addresses.size() > kMaxAddresses) {
    return absl::InvalidArgumentError(
        absl::StrCat("address: ", addresses.size(), " of them; at most ",
                     kMaxAddresses, " are allowed"));
  }
  for (size_t i = 0; i < addresses.size(); ++i) {
    absl::StripAsciiWhitespace(&addresses[i]);
    const absl::Status status = CheckAddress(addresses[i]);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "address ", i + 1, " of \"", all, "\": ", status.message()));
  }
  return addresses;
}

bool IsNotOwner(const absl::Status& status) {
  return HasReason(status, ErrorReason::kNotOwner);
}

Endpoints::Endpoints(std::shared_ptr<grpc::Channel> channel)
    : Endpoints({""}, std::move(channel), nullptr) {}

Endpoints::Endpoints(std::vector<std::string> addresses,
                     std::shared_ptr<grpc::Channel> first,
                     ChannelMaker make_channel, absl::Status error)
    : error_(std::move(error)), make_channel_(std::move(make_channel)) {
  for (std::string& address : addresses) {
    listed_.push_back({std::move(address), nullptr});
  }
  listed_[0].endpoint = std::make_unique<Endpoint>(
      listed_[0].address, std::move(first), listed_.size() > 1);
  current_ = listed_[0].endpoint.get();
}

void Endpoints::MoveOn(const Endpoint& from, const absl::Status& why) {
  // A stream that ended without an error: its server is stopping. A node that
  // did not answer in time may hang; if it does not, the next one names it.
  const bool hangs = listed_.size() > 1 && absl::IsDeadlineExceeded(why);
  if (!why.ok() && !hangs && !IsConnectionLost(why)) return;
  absl::MutexLock lock(&mu_);
  if (current_.load(std::memory_order_relaxed) != &from) return;
  Endpoint* next = nullptr;
  if (IsNotOwner(why)) {
    next = OwnerAt(ErrorMetadata(why, "owner_address").value_or(""));
  }
  if (next == &from) next = nullptr;
  for (size_t i = 0; i < listed_.size() && next == nullptr; ++i) {
    index_ = (index_ + 1) % listed_.size();
    next = At(index_);
  }
  if (next != nullptr) current_.store(next, std::memory_order_release);
}

// Null if there is none, or no channel to it.
Endpoint* Endpoints::OwnerAt(const std::string& address) {
  for (size_t i = 0; i < listed_.size(); ++i) {
    if (listed_[i].address != address) continue;
    index_ = i;
    return At(i);
  }
  for (const auto& other : others_) {
    if (other->address == address) return other.get();
  }
  if (make_channel_ == nullptr || others_.size() == kMaxOthers ||
      !CheckAddress(address).ok()) {
    return nullptr;
  }
  auto channel = make_channel_(address);
  if (!channel.ok()) return nullptr;
  others_.push_back(
      std::make_unique<Endpoint>(address, *std::move(channel), true));
  return others_.back().get();
}

Endpoint* Endpoints::At(size_t index) {
  Listed& listed = listed_[index];
  if (listed.endpoint == nullptr) {
    auto channel = make_channel_(listed.address);
    if (!channel.ok()) return nullptr;
    listed.endpoint =
        std::make_unique<Endpoint>(listed.address, *std::move(channel), true);
  }
  return listed.endpoint.get();
}

}  // namespace timecache
