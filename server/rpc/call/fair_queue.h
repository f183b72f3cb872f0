// A fair queue of the work of many namespaces.

#ifndef TIMECACHED_SERVER_RPC_CALL_FAIR_QUEUE_H_
#define TIMECACHED_SERVER_RPC_CALL_FAIR_QUEUE_H_

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace timecache::server {

// Returns one item of each flow in turn, those of a flow in order of arrival:
// the items of one flow delay an item of another by one item, however many
// there are. Not thread-safe. O(1).
template <typename Item>
class FairQueue {
 public:
  bool empty() const { return turns_.empty(); }
  size_t size() const { return size_; }

  void Push(absl::string_view flow, Item item) {
    const auto [it, is_new] = flows_.try_emplace(flow);
    if (is_new) turns_.push_back(it->first);
    it->second.push_back(std::move(item));
    ++size_;
  }

  // Must not be empty.
  Item Pop() {
    std::string flow = std::move(turns_.front());
    turns_.pop_front();
    const auto it = flows_.find(flow);
    Item item = std::move(it->second.front());
    it->second.pop_front();
    --size_;
    if (it->second.empty()) {
      flows_.erase(it);
    } else {
      turns_.push_back(std::move(flow));
    }
    return item;
  }

 private:
  absl::flat_hash_map<std::string, std::deque<Item>> flows_;
  // The non-empty flows, in the order of their turns.
  std::deque<std::string> turns_;
  size_t size_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_FAIR_QUEUE_H_
