// Has the home of a namespace do what all of its partitions have to do one after the other.

#ifndef TIMECACHED_SERVER_PEER_HOME_ROUTER_H_
#define TIMECACHED_SERVER_PEER_HOME_ROUTER_H_

#include <string>
#include <utility>

#include "server/engine/store/store.h"
#include "server/peer/peer_stores.h"
#include "server/peer/slot_map.h"
#include "server/peer/slot_store.h"

namespace timecache::server {

// The *home* of a namespace is the slot of its name, which its first partition is in. What
// makes, changes or deletes a namespace of several partitions, or one of its groups, and
// what joins one, goes as a whole to the node that serves the home: there one comes after
// the other, whichever node was called. It is never passed on again, as others accept
// it only if they serve the home.
//
// Its readers, which read all partitions, end when the home is served no more.
class HomeRouter final : public SlotStore {
 public:
  // `namespaces` does it here. None is owned; all must outlive the store. `peers` may be
  // null: for what other nodes ask (ServerOptions::peer_whole_store).
  HomeRouter(SlotMap* slots, PeerStores* peers, Store* namespaces)
      : SlotStore(slots, peers), namespaces_(*namespaces) {}

  // Of all namespaces: nobody's home.
  void ListNamespaces(ListQuery query,
                      DoneWith<Page<NamespaceInfo>> done) override {
    namespaces_.ListNamespaces(std::move(query), std::move(done));
  }
  StoreUsage GetUsage() const override { return namespaces_.GetUsage(); }
  void SetDeadLetterRight(DeadLetterRight right) override {
    namespaces_.SetDeadLetterRight(std::move(right));
  }

 private:
  Store* Here(Store* /*maps*/) override { return &namespaces_; }
  Store* There(const std::string& address) override {
    return peers()->WholeAt(address);
  }

  Store& namespaces_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_HOME_ROUTER_H_
