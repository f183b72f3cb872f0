#include "tests/peer/three_nodes.h"

#include <utility>

#include "absl/synchronization/notification.h"
#include "server/api/proto_namespace.h"
#include "server/engine/store/partitions.h"
#include "server/main/server_setup.h"

namespace timecache::test {
namespace {

constexpr int64_t kGraceUs = server::kMicrosPerSecond / 2;
constexpr char kAnyPort[] = "127.0.0.1:0";

}  // namespace

ThreeNodes::Maps::Maps(std::shared_ptr<server::ServerAccount> account,
                       server::ManualClock* clock, server::Reaper* reaper)
    : registry(clock, reaper, std::move(account)),
      store(&registry, clock, server::LocalStore::Names::kAddresses) {
  registry.LeaveRoutesToCaller();
}

ThreeNodes::ThreeNodes(const config::v1::ServerConfig& config)
    : config_(config),
      call_log_(server::SlowCallUs(config), &clock_),
      reaper_(&clock_),
      account_(std::make_shared<server::ServerAccount>(
          server::ToRegistryLimits(config.limits()))),
      maps_([&] {
        std::array<std::unique_ptr<Maps>, kSlots> all;
        for (auto& maps : all) {
          maps = std::make_unique<Maps>(account_, &clock_, &reaper_);
        }
        return all;
      }()),
      slots_(StoresOfSlots(), kNodes) {}

// No call goes on that uses a node's stores.
ThreeNodes::~ThreeNodes() {
  for (const Node& node : nodes_) {
    if (node.peers != nullptr) node.peers->Stop();
  }
}

std::vector<server::Store*> ThreeNodes::StoresOfSlots() const {
  std::vector<server::Store*> stores;
  for (const auto& maps : maps_) stores.push_back(&maps->store);
  return stores;
}

absl::Status ThreeNodes::Start() {
  for (size_t node = 0; node < kNodes; ++node) {
    absl::Status status =
        StartNode(node, node == 0 ? config_.listeners(0).address() : kAnyPort);
    if (!status.ok()) return status;
  }
  // No time passes any more when the nodes end, so no event is given up then.
  for (size_t slot = 0; slot < kSlots; ++slot) {
    registry(slot).SetDeadLetterStore(store(slot % kNodes));
  }
  return CreateConfigured();
}

absl::Status ThreeNodes::StartNode(size_t number, const std::string& address) {
  Node& node = nodes_[number];
  node.peers =
      std::make_unique<server::PeerStores>(server::PeerStores::Options());
  node.stores = std::make_unique<server::SlotStores>(
      slots_.ViewOf(number), node.peers.get(),
      server::SlotStores::Options{
          .set_right = [this](server::Store::DeadLetterRight right) {
            for (const auto& maps : maps_) {
              maps->store.SetDeadLetterRight(right);
            }
          }});
  server::ServerOptions options = server::ToServerOptions(config_, &clock_);
  options.addresses = {address};
  options.flush = [this] { reaper_.Flush(); };
  options.call_observers = {&call_log_};
  options.describe_slow_calls = [this](v1::ListSlowCallsResponse* calls) {
    server::DescribeSlowCalls(call_log_, calls);
  };
  options.cluster.owners_of = [this](absl::string_view name, int partitions) {
    return OwnersOf(name, partitions);
  };
  options.peer_store = node.stores->hosted_maps();
  options.peer_whole_store = node.stores->hosted_homes();
  node.server.emplace(node.stores->store(), &clock_, std::move(options));
  absl::Status status = node.server->Start();
  if (status.ok()) {
    slots_.SetAddress(number, node.server->addresses().at(0));
  }
  return status;
}

absl::Status ThreeNodes::CreateConfigured() {
  for (const config::v1::NamespaceConfig& from : config_.namespaces()) {
    auto options = server::NewOptions(
        from.options(), static_cast<int>(config_.default_partitions()));
    if (!options.ok()) return options.status();
    absl::Status status;
    absl::Notification done;
    store(0)->CreateNamespace(
        from.name(), *std::move(options),
        [&](const absl::StatusOr<server::NamespaceInfo>& created) {
          status = created.status();
          done.Notify();
        });
    done.WaitForNotification();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<std::string> ThreeNodes::OwnersOf(absl::string_view namespace_name,
                                              int partitions) const {
  std::vector<std::string> addresses;
  for (int i = 0; i < partitions; ++i) {
    addresses.push_back(slots_.OwnerAddress(
        server::SlotOfMap(server::PartitionName(namespace_name, i), kSlots)));
  }
  return addresses;
}

uint64_t ThreeNodes::forwarded_calls() const {
  uint64_t calls = 0;
  for (const Node& node : nodes_) calls += node.peers->counts().calls;
  return calls;
}

void ThreeNodes::Drain() {
  for (const Node& node : nodes_) node.peers->Stop();
  for (Node& node : nodes_) node.server->Drain(kGraceUs);
}

}  // namespace timecache::test
