// The maps of a cluster, each in the slot that its name is in.

#ifndef TIMECACHED_SERVER_PEER_SLOT_ROUTER_H_
#define TIMECACHED_SERVER_PEER_SLOT_ROUTER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/engine/store/store.h"
#include "server/peer/peer_stores.h"
#include "server/peer/slot_map.h"
#include "server/peer/slot_store.h"

namespace timecache::server {

// Calls about one map go to the maps of its slot, here or at another node: see SlotStore.
// With `peers` it is what a node asks for itself, without what other nodes ask of it
// (ServerOptions::peer_store): it has the slots that this node serves, and no others.
//
// A list has the maps of all slots, or of those that it asks for: each node that serves
// some is asked once for each page, and it fails, with NOT_OWNER, rather than lack those
// of a slot. GetUsage is the sum over the slots that this node serves.
class SlotRouter final : public SlotStore {
 public:
  // Sets the right for all slots of this process, also those that it hosts later.
  using SetRight = std::function<void(DeadLetterRight right)>;

  // None is owned; all must outlive the store. `peers` may be null, and so may
  // `set_right` if SetDeadLetterRight is not called.
  SlotRouter(SlotMap* slots, PeerStores* peers, SetRight set_right = nullptr)
      : SlotStore(slots, peers), set_right_(std::move(set_right)) {}

  void ListNamespaces(ListQuery query,
                      DoneWith<Page<NamespaceInfo>> done) override;

  StoreUsage GetUsage() const override;
  void SetDeadLetterRight(DeadLetterRight right) override {
    set_right_(std::move(right));
  }

 private:
  struct Listing;

  Store* Here(Store* maps) override { return maps; }
  Store* There(const std::string& address) override {
    return peers()->At(address);
  }

  const SetRight set_right_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_SLOT_ROUTER_H_
