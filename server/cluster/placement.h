// Which node is to own each slot of a cluster, and which is to stand by.

#ifndef TIMECACHED_SERVER_CLUSTER_PLACEMENT_H_
#define TIMECACHED_SERVER_CLUSTER_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace timecache::server {

// What is known of a slot.
struct SlotHolders {
  // The node that owns it and lives; empty: none.
  std::string owner;
  // If it has none: those that replay it, by name, which are the first choice.
  std::vector<std::string> standbys;

  friend bool operator==(const SlotHolders& a, const SlotHolders& b) {
    return a.owner == b.owner && a.standbys == b.standbys;
  }
};

// What is wanted. Empty: there is no such node.
struct SlotWish {
  std::string owner;
  // Another node.
  std::string standby;

  friend bool operator==(const SlotWish& a, const SlotWish& b) {
    return a.owner == b.owner && a.standby == b.standby;
  }
};

// Of each slot. `nodes`: those that may have one, by name, each once. A node owns at
// most ceil(slots / nodes) of them and at least floor(slots / nodes), and stands by for
// at most ceil(slots / nodes). A slot stays where it is unless that demands a move: then
// the fewest move: of a node that owns too many those that score lowest, each to where
// it scores highest of those that own too few. As these move, in any order, the others
// are wanted where they were, but where nodes become equal that were not: no more move
// for that than are wanted to.
//
// A function of its arguments: all nodes that know the same wish the same. Costs some
// slots * nodes * log(nodes) steps.
std::vector<SlotWish> PlaceSlots(const std::vector<std::string>& nodes,
                                 const std::vector<SlotHolders>& slots);

// How much a node is for a slot: uniform, and of its own for each pair. The highest one
// of a slot's nodes has it: rendezvous hashing, by which a node that comes or goes moves
// no slot between others (Thaler and Ravishankar, "Using name-based mappings to increase
// hit rates", IEEE/ACM Transactions on Networking 6(1), 1998). The bounds on top of it
// are those of Mirrokni, Thorup and Zadimoghaddam, "Consistent hashing with bounded
// loads", SODA 2018. Never changes: nodes of different versions must agree.
uint64_t PlacementScore(int slot, absl::string_view node);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_PLACEMENT_H_
