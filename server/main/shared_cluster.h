// A node of a cluster whose nodes share the ownership: its slots, and the way to those of
// others.

#ifndef TIMECACHED_SERVER_MAIN_SHARED_CLUSTER_H_
#define TIMECACHED_SERVER_MAIN_SHARED_CLUSTER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/registries.h"
#include "server/engine/server_account.h"
#include "server/engine/store/store.h"
#include "server/main/cluster.h"
#include "server/main/config/configured_namespaces.h"
#include "server/main/slot_journals.h"
#include "server/main/slots.h"
#include "server/peer/peer_stores.h"
#include "server/peer/slot_stores.h"
#include "server/rpc/server_options.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// What a client asks is asked of the slots that have it, here or at other nodes; what
// another node asks, of the slots of this process alone. Thread-safe, but for Start.
class SharedCluster {
 public:
  // What is not owned must outlive this.
  SharedCluster(const config::v1::ServerConfig& config, Cluster* cluster,
                std::shared_ptr<ServerAccount> account, Registries* registries);
  // Ends what other nodes do for this one, and waits for what is under way: the server
  // has ended.
  ~SharedCluster();
  SharedCluster(const SharedCluster&) = delete;
  SharedCluster& operator=(const SharedCluster&) = delete;

  // What clients' calls are made on.
  Store* store() { return stores_.store(); }
  // Adds what the server needs of it.
  void AddTo(ServerOptions* options);
  const PeerCounts& peer_counts() const { return peers_.counts(); }
  Slots& slots() { return slots_; }
  const SlotJournals& journals() const { return journals_; }

  void Start() { slots_.Start(); }
  // Clients are to go on at other nodes; nothing is forwarded any more.
  void Leave();
  // The configuration has changed.
  absl::Status Reload(const config::v1::ServerConfig& before,
                      const config::v1::ServerConfig& now);

 private:
  absl::Status Prepare(int slot, SlotMaps* maps);
  void SetDeadLetterRight(Store::DeadLetterRight right)
      ABSL_LOCKS_EXCLUDED(right_mu_);
  // For the dead letters of all slots, those that are served later, too.
  absl::Status CheckDeadLetter(absl::string_view principal,
                               absl::string_view name)
      ABSL_LOCKS_EXCLUDED(right_mu_);
  OwnMaps OwnMapsOf(int slot) const;
  uint64_t BackupBytesAbout() const;
  // As ClusterSource::owners_of.
  std::vector<std::string> OwnersOf(absl::string_view namespace_name,
                                    int partitions) const;

  // In force.
  config::v1::ServerConfig config() const ABSL_LOCKS_EXCLUDED(config_mu_);

  mutable absl::Mutex config_mu_;
  config::v1::ServerConfig config_ ABSL_GUARDED_BY(config_mu_);
  Cluster& cluster_;
  Registries& registries_;
  std::atomic<bool> leaving_{false};
  absl::Mutex right_mu_;
  Store::DeadLetterRight right_ ABSL_GUARDED_BY(right_mu_);
  SlotJournals journals_;
  PeerStores peers_;
  Slots slots_;
  SlotStores stores_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_SHARED_CLUSTER_H_
