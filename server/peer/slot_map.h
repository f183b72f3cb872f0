// Which node serves which slot of a cluster.

#ifndef TIMECACHED_SERVER_PEER_SLOT_MAP_H_
#define TIMECACHED_SERVER_PEER_SLOT_MAP_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "server/base/clock.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// A *slot* is one of the P parts of a cluster's maps, and a partition of its journal:
// each has an owner of its own, which may be any node. A map is in one by its name
// (SlotOfMap).
//
// Thread-safe.
class SlotMap {
 public:
  virtual ~SlotMap() = default;

  // P: fixed when the cluster was made.
  virtual size_t slots() const = 0;

  // The maps of a slot that this process serves now; null if it does not. What it
  // returns may be used until it is let go: while it is held, the maps stay in memory,
  // also when the slot has another owner. Costs some atomic operations.
  virtual std::shared_ptr<Store> Local(size_t slot) const = 0;
  // Whether Local would return that store still: what was read in it may be answered.
  // Costs a read of a clock.
  virtual bool Serves(size_t slot, const Store& store) const = 0;
  // The clock of these maps, which is not the process's; valid as long as the store is
  // kept. Null: it is the process's, or they are not served any more.
  virtual const Clock* ClockOf(size_t /*slot*/, const Store& /*store*/) const {
    return nullptr;
  }
  // Calls `wake` once when the store that Local has returned serves no more, unless
  // Forget(the number that this returns) comes first. From any thread, maybe under a
  // lock: as EventReader's wake.
  virtual uint64_t WhenServedNoMore(size_t slot, const Store& store,
                                    std::function<void()> wake) = 0;
  virtual void Forget(size_t slot, uint64_t number) = 0;

  // Where its owner is, "host:port", or the node to which it is being handed over;
  // empty: not known, or this node. Costs a lock and a copy.
  virtual std::string OwnerAddress(size_t slot) const = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_SLOT_MAP_H_
