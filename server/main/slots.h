// All slots of the cluster, as this process has them.

#ifndef TIMECACHED_SERVER_MAIN_SLOTS_H_
#define TIMECACHED_SERVER_MAIN_SLOTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/housekeeping.h"
#include "server/main/cluster.h"
#include "server/main/cluster_metrics.h"
#include "server/main/slot.h"
#include "server/peer/slot_map.h"
#include "server/rpc/admin/cluster_source.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// Follows what the cluster wants of this node: which slots it replays, serves, and
// hands over. Thread-safe. Costs a thread for each slot, and two.
class Slots final : public SlotMap {
 public:
  // What a node does with the slots that it serves; see Slot::Host.
  struct Work {
    // They are made, and empty.
    std::function<void(int slot, SlotMaps* maps)> open;
    std::function<absl::Status(int slot, SlotMaps* maps)> prepare;
    std::function<void(int slot, SlotMaps* maps)> look;
    std::function<void(int slot, SlotMaps* maps)> retire;
  };
  // `cluster` is not owned. It, and what `work` uses, must outlive this. `config`
  // returns the configuration in force.
  Slots(Cluster* cluster, std::function<config::v1::ServerConfig()> config,
        std::shared_ptr<ServerAccount> account, Work work);
  // Ends all, and waits until nobody uses what was served.
  ~Slots() override;

  // Joins the cluster.
  void Start();

  // --- SlotMap.
  size_t slots() const override { return slots_.size(); }
  std::shared_ptr<Store> Local(size_t slot) const override;
  bool Serves(size_t slot, const Store& store) const override;
  const Clock* ClockOf(size_t slot, const Store& store) const override;
  uint64_t WhenServedNoMore(size_t slot, const Store& store,
                            std::function<void()> wake) override
      ABSL_LOCKS_EXCLUDED(wakes_mu_);
  void Forget(size_t slot, uint64_t number) override
      ABSL_LOCKS_EXCLUDED(wakes_mu_);
  std::string OwnerAddress(size_t slot) const override;

  // Calls it with each slot that is served, one after the other.
  void VisitServed(
      absl::FunctionRef<void(int slot, const std::shared_ptr<SlotMaps>&)> visit)
      const;

  // Whether calls may come: each slot has an owner, and this node has caught up with
  // those that it is wanted for. It stays so.
  bool ready() const { return ready_; }

  // See ClusterSource: of all slots that this node owns.
  void HandOver(const std::string& to, ClusterSource::HandedOver done);

  // This node is to end: it is wanted for no slot any more, and those that it owns go to
  // others as these are ready.
  void Yield();
  // Those that are to go to another node, and have not gone.
  int moving() const { return moving_; }
  // Releases what is left, within `patience`.
  void End(absl::Duration patience);
  // After End: waits until nobody uses what was served.
  void AwaitUnused() ABSL_LOCKS_EXCLUDED(graves_mu_);

  SharedClusterStatus GetStatus() const;
  // Of an empty response.
  void Describe(v1::GetClusterResponse* cluster) const;

 private:
  absl::StatusOr<std::shared_ptr<SlotMaps>> Open(int slot,
                                                 std::function<void()> wake);
  void WakeReaders(const Store& store) ABSL_LOCKS_EXCLUDED(wakes_mu_);
  void Follow();
  bool IsReady() const;
  void Bury(std::unique_ptr<SlotMaps> maps) ABSL_LOCKS_EXCLUDED(graves_mu_);
  void EmptyGraves() ABSL_LOCKS_EXCLUDED(graves_mu_);

  Cluster& cluster_;
  const std::function<config::v1::ServerConfig()> config_;
  const std::shared_ptr<ServerAccount> account_;
  const std::function<void(int slot, SlotMaps* maps)> opened_;
  const Slot::Host host_;
  std::atomic<bool> ready_{false};
  std::atomic<int> moving_{0};
  absl::Mutex wakes_mu_;
  uint64_t last_wake_ ABSL_GUARDED_BY(wakes_mu_) = 0;
  // By number: of which store.
  std::map<uint64_t, std::pair<const Store*, std::function<void()>>> wakes_
      ABSL_GUARDED_BY(wakes_mu_);
  absl::Mutex graves_mu_;
  // Maps that are not destroyed.
  int open_ ABSL_GUARDED_BY(graves_mu_) = 0;
  std::vector<std::unique_ptr<SlotMaps>> graves_ ABSL_GUARDED_BY(graves_mu_);
  std::vector<std::unique_ptr<Slot>> slots_;
  Housekeeping housekeeping_;
  Housekeeping undertaker_;
  std::unique_ptr<Housekeeping::Task> follow_;
  std::unique_ptr<Housekeeping::Task> bury_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_SLOTS_H_
