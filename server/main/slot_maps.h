// What a node has of one slot: its maps, their journal, and their time.

#ifndef TIMECACHED_SERVER_MAIN_SLOT_MAPS_H_
#define TIMECACHED_SERVER_MAIN_SLOT_MAPS_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/durable/checkpointer.h"
#include "server/durable/map_change_log.h"
#include "server/engine/local_store.h"
#include "server/engine/partition_keeper.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/main/cluster_term.h"
#include "server/main/stored_letters.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Of one term: made empty, filled by the journal's replay, then served, and let go. A
// call, a reader or a walk that is under way keeps all of it, also when the term is over.
// Its thread calls ClusterTerm::Leave before the next one begins. Public members are for
// the slot's thread, but for the store.
class SlotMaps {
 public:
  // `wake`: see ClusterTerm. Errors as KafkaJournal::Open.
  static absl::StatusOr<std::unique_ptr<SlotMaps>> Open(
      const config::v1::ServerConfig& config, Cluster* cluster, int slot,
      std::shared_ptr<ServerAccount> account, std::function<void()> wake);
  SlotMaps(const SlotMaps&) = delete;
  SlotMaps& operator=(const SlotMaps&) = delete;

 private:
  SlotMaps(const config::v1::ServerConfig& config,
           std::unique_ptr<ClusterTerm> term,
           std::shared_ptr<ServerAccount> account);

 public:
  // In the order in which they need each other.
  SystemClock clock;
  const std::unique_ptr<ClusterTerm> term;
  const std::unique_ptr<MapChangeLogs> logs;
  Reaper reaper;
  Registry registry;
  LocalStore store;
  // Once it owns.
  std::unique_ptr<Checkpointer> checkpointer;
  std::unique_ptr<PartitionKeeper> keeper;
  // Answers about letters may come after this.
  std::shared_ptr<StoredLetters> letters;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_SLOT_MAPS_H_
