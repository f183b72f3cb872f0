// A cluster in one process, on one virtual clock: an owner, and two nodes that have it
// answer. What brokers would decide is fixed.

#ifndef TIMECACHED_TESTS_PEER_THREE_NODES_H_
#define TIMECACHED_TESTS_PEER_THREE_NODES_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/base/clock.h"
#include "server/engine/local_store.h"
#include "server/engine/parts/partitioned_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/ops/call_log.h"
#include "server/peer/forwarding_store.h"
#include "server/peer/peer_stores.h"
#include "server/rpc/server.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::test {

// Each of the three has all services, VirtualClockService too, which moves the one
// clock. For one thread.
class ThreeNodes {
 public:
  // `config`, as ReadConfig returns it, is that of each node, but for its address.
  explicit ThreeNodes(const config::v1::ServerConfig& config);
  ThreeNodes(const ThreeNodes&) = delete;
  ThreeNodes& operator=(const ThreeNodes&) = delete;

  // UNAVAILABLE if an address is taken.
  absl::Status Start();
  // All calls get half a second.
  void Drain();

  // Of the one that listens at the configuration's addresses, and of the other that
  // does not own. Valid after Start.
  const std::string& address() const {
    return front_.server->addresses().at(0);
  }
  const std::string& other_address() const {
    return other_.server->addresses().at(0);
  }

 private:
  struct Forwarder {
    std::unique_ptr<server::PeerStores> peers;
    std::unique_ptr<server::ForwardingStore> store;
    std::optional<server::Server> server;
  };

  server::ServerOptions OptionsAt(const std::string& address);
  absl::Status StartForwarder(server::ServerOptions options, Forwarder* node);

  const config::v1::ServerConfig config_;
  server::ManualClock clock_;
  server::CallLog call_log_;
  // The owner's.
  server::Reaper reaper_;
  server::Registry registry_;
  server::LocalStore maps_;
  server::PartitionedStore store_;
  // What the others have: nothing.
  server::Registry empty_registry_;
  server::LocalStore empty_store_;
  std::optional<server::Server> owner_;
  Forwarder front_;
  Forwarder other_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_PEER_THREE_NODES_H_
