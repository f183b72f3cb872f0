#include "tests/peer/three_nodes.h"

#include <cstdint>
#include <utility>

#include "server/base/error.h"
#include "server/base/reason.h"
#include "server/main/config/configured_namespaces.h"
#include "server/main/server_setup.h"

namespace timecache::test {
namespace {

constexpr int64_t kGraceUs = server::kMicrosPerSecond / 2;
constexpr char kAnyPort[] = "127.0.0.1:0";

}  // namespace

ThreeNodes::ThreeNodes(const config::v1::ServerConfig& config)
    : config_(config),
      call_log_(server::SlowCallUs(config), &clock_),
      reaper_(&clock_),
      registry_(&clock_, &reaper_, server::ToRegistryLimits(config.limits())),
      maps_(&registry_, &clock_),
      store_(&maps_, &registry_),
      empty_registry_(&clock_, &reaper_,
                      server::ToRegistryLimits(config.limits())),
      empty_store_(&empty_registry_, &clock_) {}

server::ServerOptions ThreeNodes::OptionsAt(const std::string& address) {
  server::ServerOptions options = server::ToServerOptions(config_, &clock_);
  options.addresses = {address};
  options.flush = [this] { reaper_.Flush(); };
  options.call_observers = {&call_log_};
  options.describe_slow_calls = [this](v1::ListSlowCallsResponse* calls) {
    server::DescribeSlowCalls(call_log_, calls);
  };
  return options;
}

absl::Status ThreeNodes::Start() {
  absl::Status status = server::CreateNamespaces(config_, &registry_);
  if (!status.ok()) return status;
  server::ServerOptions options = OptionsAt(kAnyPort);
  options.peer_store = &store_;
  owner_.emplace(&store_, &clock_, std::move(options));
  status = owner_->Start();
  if (!status.ok()) return status;
  status = StartForwarder(OptionsAt(kAnyPort), &other_);
  if (!status.ok()) return status;
  return StartForwarder(OptionsAt(config_.listeners(0).address()), &front_);
}

absl::Status ThreeNodes::StartForwarder(server::ServerOptions options,
                                        Forwarder* node) {
  node->peers =
      std::make_unique<server::PeerStores>(server::PeerStores::Options());
  const absl::Status not_owner = server::ErrorWithReason(
      absl::StatusCode::kUnavailable, server::Reason::kNotOwner,
      "another node owns", {{"owner_address", owner_->addresses().at(0)}});
  node->store = std::make_unique<server::ForwardingStore>(
      &empty_store_, node->peers.get(), [not_owner] { return not_owner; },
      /*own_address=*/"");
  node->server.emplace(node->store.get(), &clock_, std::move(options));
  return node->server->Start();
}

void ThreeNodes::Drain() {
  for (Forwarder* const node : {&front_, &other_}) {
    node->peers->Stop();
    node->server->Drain(kGraceUs);
  }
  owner_->Drain(kGraceUs);
}

}  // namespace timecache::test
