#include "client/cpp/src/owners/owner_nodes.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace timecache {

std::shared_ptr<const Owners> OwnerNodes::OwnersAt(
    const v1::GetOwnersResponse& answer) {
  std::vector<std::shared_ptr<OwnerNode>> nodes = {nullptr};
  std::vector<uint8_t> of_partition;
  of_partition.reserve(answer.addresses_size());
  for (const std::string& address : answer.addresses()) {
    std::shared_ptr<OwnerNode> node = At(address);
    const auto found = std::ranges::find(nodes, node);
    of_partition.push_back(static_cast<uint8_t>(found - nodes.begin()));
    if (found == nodes.end()) nodes.push_back(std::move(node));
  }
  if (nodes.size() == 1) return nullptr;
  return std::make_shared<const Owners>(std::move(nodes),
                                        std::move(of_partition));
}

std::shared_ptr<OwnerNode> OwnerNodes::At(const std::string& address) {
  const auto found = std::ranges::find_if(
      nodes_, [&](const auto& node) { return node->address() == address; });
  if (found != nodes_.end()) return *found;
  if (nodes_.size() == kNodesMax || !CheckAddress(address).ok()) {
    return nullptr;
  }
  auto channel = make_channel_(address);
  if (!channel.ok()) return nullptr;
  nodes_.push_back(
      std::make_shared<OwnerNode>(address, *std::move(channel), driver_));
  return nodes_.back();
}

void OwnerNodes::CloseUnused() {
  std::erase_if(nodes_, [](const auto& node) { return node.use_count() == 1; });
}

}  // namespace timecache
