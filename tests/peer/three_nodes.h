// A cluster in one process, on one virtual clock: each of three nodes serves a third of
// the slots. What brokers would decide is as the test says.

#ifndef TIMECACHED_TESTS_PEER_THREE_NODES_H_
#define TIMECACHED_TESTS_PEER_THREE_NODES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/clock.h"
#include "server/engine/local_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/engine/server_account.h"
#include "server/ops/call_log.h"
#include "server/peer/peer_stores.h"
#include "server/peer/slot_stores.h"
#include "server/rpc/server.h"
#include "tests/peer/test_slots.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::test {

// Each of the three has all services, VirtualClockService too, which moves the one
// clock. Each slot has a registry of its own. For one thread.
class ThreeNodes {
 public:
  static constexpr size_t kNodes = 3;
  static constexpr size_t kSlots = 16;

  // `config`, as ReadConfig returns it, is that of each node, but for its address.
  explicit ThreeNodes(const config::v1::ServerConfig& config);
  ~ThreeNodes();
  ThreeNodes(const ThreeNodes&) = delete;
  ThreeNodes& operator=(const ThreeNodes&) = delete;

  // UNAVAILABLE if an address is taken.
  absl::Status Start();
  // All calls get half a second.
  void Drain();

  // Of the one that listens at the configuration's addresses, and of another. Valid
  // after Start.
  const std::string& address() const {
    return nodes_.front().server->addresses().at(0);
  }
  const std::string& other_address() const {
    return nodes_.back().server->addresses().at(0);
  }

  // Calls that a node had another one answer.
  uint64_t forwarded_calls() const;

  // What a node's clients ask.
  server::Store* store(size_t node) { return nodes_[node].stores->store(); }
  TestSlots& slots() { return slots_; }
  server::Registry& registry(size_t slot) { return maps_[slot]->registry; }
  server::ManualClock& clock() { return clock_; }
  server::Reaper& reaper() { return reaper_; }

 private:
  struct Maps {
    Maps(std::shared_ptr<server::ServerAccount> account,
         server::ManualClock* clock, server::Reaper* reaper);
    server::Registry registry;
    server::LocalStore store;
  };
  struct Node {
    std::unique_ptr<server::PeerStores> peers;
    std::unique_ptr<server::SlotStores> stores;
    std::optional<server::Server> server;
  };

  std::vector<server::Store*> StoresOfSlots() const;
  absl::Status StartNode(size_t number, const std::string& address);
  absl::Status CreateConfigured();
  // As ClusterSource::owners_of.
  std::vector<std::string> OwnersOf(absl::string_view namespace_name,
                                    int partitions) const;

  const config::v1::ServerConfig config_;
  server::ManualClock clock_;
  server::CallLog call_log_;
  server::Reaper reaper_;
  // As if all were one server.
  const std::shared_ptr<server::ServerAccount> account_;
  const std::array<std::unique_ptr<Maps>, kSlots> maps_;
  TestSlots slots_;
  std::array<Node, kNodes> nodes_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_PEER_THREE_NODES_H_
