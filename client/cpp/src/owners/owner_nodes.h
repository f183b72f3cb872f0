// The nodes that own partitions of a client's namespaces. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_NODES_H_
#define TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_NODES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/src/owners/owner_node.h"
#include "client/cpp/src/owners/owners.h"
#include "client/cpp/src/rpc/endpoints.h"
#include "client/cpp/src/shared/call_driver.h"
#include "timecache/v1/namespaces.pb.h"

namespace timecache {

// Makes and closes them. For one thread, which alone destroys nodes: gRPC's own
// must not destroy a channel.
class OwnerNodes {
 public:
  // Most nodes: owners beyond them are not called.
  static constexpr size_t kNodesMax = 64;

  // Both outlive it, and the nodes.
  OwnerNodes(const Endpoints::ChannelMaker& make_channel,
             LazyCallDriver& driver)
      : make_channel_(make_channel), driver_(driver) {}

  // Null if none of the addresses is that of a node that there is or may be.
  std::shared_ptr<const Owners> OwnersAt(const v1::GetOwnersResponse& answer);
  // Those that no Owners name, and no call has, any more.
  void CloseUnused();

  size_t size() const { return nodes_.size(); }

 private:
  // Null: none.
  std::shared_ptr<OwnerNode> At(const std::string& address);

  const Endpoints::ChannelMaker& make_channel_;
  LazyCallDriver& driver_;
  std::vector<std::shared_ptr<OwnerNode>> nodes_;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNER_NODES_H_
