// The owners of a namespace's partitions. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNERS_H_
#define TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "client/cpp/src/owners/owner_node.h"

namespace timecache {

// As a server said them at one time. Constant.
class Owners {
 public:
  // `nodes[i]` owns the partitions of which `of_partition` is i; a null one is
  // that of none that is known. At least one partition.
  Owners(std::vector<std::shared_ptr<OwnerNode>> nodes,
         std::vector<uint8_t> of_partition)
      : nodes_(std::move(nodes)), of_partition_(std::move(of_partition)) {}

  size_t PartitionOf(uint32_t hash) const {
    return hash % of_partition_.size();
  }
  // Of a key with this PartitionHash.
  const std::shared_ptr<OwnerNode>& Of(uint32_t hash) const {
    return nodes_[IndexOf(hash)];
  }
  size_t IndexOf(uint32_t hash) const {
    return of_partition_[PartitionOf(hash)];
  }
  const std::vector<std::shared_ptr<OwnerNode>>& nodes() const {
    return nodes_;
  }

 private:
  const std::vector<std::shared_ptr<OwnerNode>> nodes_;
  const std::vector<uint8_t> of_partition_;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_OWNERS_OWNERS_H_
