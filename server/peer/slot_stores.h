// All stores of a node of a cluster whose slots have owners of their own.

#ifndef TIMECACHED_SERVER_PEER_SLOT_STORES_H_
#define TIMECACHED_SERVER_PEER_SLOT_STORES_H_

#include <cstdint>
#include <utility>

#include "server/engine/parts/partitioned_store.h"
#include "server/engine/store/store.h"
#include "server/peer/home_router.h"
#include "server/peer/learned_directory.h"
#include "server/peer/learning_store.h"
#include "server/peer/peer_stores.h"
#include "server/peer/slot_map.h"
#include "server/peer/slot_router.h"

namespace timecache::server {

// What clients ask goes through a LearningStore and a PartitionedStore to the slots of the
// maps, at this node or at others. What other nodes ask is answered from the slots that
// this node serves, or, about whole namespaces, by the same stores.
//
// The maps of SlotMap::Local are LocalStores with Names::kAddresses. Thread-safe.
class SlotStores {
 public:
  struct Options {
    // See SlotRouter.
    SlotRouter::SetRight set_right = nullptr;
    // See PartitionedStore: of a later process, and of another node that serves a home
    // later, it must be greater: the time in microseconds.
    uint64_t last_member = 0;
  };
  // Neither is owned; both must outlive the stores. `peers` is stopped before the stores
  // end: their calls use them until then.
  SlotStores(SlotMap* slots, PeerStores* peers, Options options)
      : maps_(slots, peers, std::move(options.set_right)),
        hosted_maps_(slots, nullptr),
        namespaces_(&maps_, &directory_, options.last_member),
        coordinator_({&directory_, &maps_, &namespaces_, nullptr}),
        homes_(slots, peers, &coordinator_),
        hosted_homes_(slots, nullptr, &coordinator_),
        store_({&directory_, &maps_, &namespaces_, &homes_}) {}
  SlotStores(const SlotStores&) = delete;
  SlotStores& operator=(const SlotStores&) = delete;

  // Of the server.
  Store* store() { return &store_; }
  // Its ServerOptions::peer_store and peer_whole_store.
  Store* hosted_maps() { return &hosted_maps_; }
  Store* hosted_homes() { return &hosted_homes_; }

 private:
  LearnedDirectory directory_;
  SlotRouter maps_;
  SlotRouter hosted_maps_;
  PartitionedStore namespaces_;
  LearningStore coordinator_;
  HomeRouter homes_;
  HomeRouter hosted_homes_;
  LearningStore store_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_SLOT_STORES_H_
