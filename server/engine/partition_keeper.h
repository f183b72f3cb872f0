// Keeps the partitions of namespaces whole, where they are on several nodes.

#ifndef TIMECACHED_SERVER_ENGINE_PARTITION_KEEPER_H_
#define TIMECACHED_SERVER_ENGINE_PARTITION_KEEPER_H_

#include <cstdint>
#include <memory>

#include "server/base/clock.h"
#include "server/engine/registry.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// What ReconcilePartitions is for a registry with all maps, for one with those of a
// slot: finishes, or undoes, what a crash or a takeover has interrupted. In rounds:
//  - of each first partition of several here, the others are asked for, where they
//    are. Those that are missing are made, and those with other options get its own.
//  - of each later partition here, the namespace is asked for, at its home. If that is
//    not there, or has another number of partitions, and the same is so kDoubtUs
//    later, the map is deleted: a creation makes its later partitions first.
// What could not be asked changes nothing, and is asked again in the next round.
//
// Thread-safe. Asynchronous: no call waits for another node. A round costs a call for
// each later partition of the namespaces whose home is here, and one for each
// namespace of which a later partition is here.
class PartitionKeeper {
 public:
  // Calls that are under way at once.
  static constexpr int kMaxCalls = 16;
  // How long after a round the next one begins.
  static constexpr int64_t kRoundUs = 60 * kMicrosPerSecond;
  // How long a map belongs to no namespace before it is deleted.
  static constexpr int64_t kDoubtUs = 60 * kMicrosPerSecond;

  // `registry` has the maps of `slot` of `slots`. `store` knows all maps, by their
  // PartitionAddress, and describes a namespace by its name. None is owned: the
  // registry and the clock must outlive the keeper, and the store the last answer to
  // a call, which may come after the keeper.
  PartitionKeeper(uint32_t slot, uint32_t slots, Registry* registry,
                  Store* store, const Clock* clock);
  // Waits for an answer that is being acted on; later ones do nothing.
  ~PartitionKeeper();
  PartitionKeeper(const PartitionKeeper&) = delete;
  PartitionKeeper& operator=(const PartitionKeeper&) = delete;

  // Begins a round, if none is under way and the last one began kRoundUs ago, or
  // there was none: to be called about every second while the slot is served.
  void Look();

 private:
  class Rounds;
  const std::shared_ptr<Rounds> rounds_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTITION_KEEPER_H_
