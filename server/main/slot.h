// One slot of the cluster in this process, from term to term.

#ifndef TIMECACHED_SERVER_MAIN_SLOT_H_
#define TIMECACHED_SERVER_MAIN_SLOT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_cond_var.h"
#include "server/main/cluster.h"
#include "server/main/slot_maps.h"
#include "server/rpc/admin/cluster_source.h"

namespace timecache::server {

// While the node is wanted for the slot it replays the slot's journal, and serves it
// when it owns it; then it lets all go, and begins anew if it is wanted still.
//
// Thread-safe. Has a thread; while it is wanted also those of a journal, of its logs
// and of a reaper.
class Slot {
 public:
  // What all slots of a process have in common. None is owned; all must outlive the
  // slots, and what they serve.
  struct Host {
    Cluster* cluster;
    // Empty maps. `wake`: see ClusterTerm.
    std::function<absl::StatusOr<std::shared_ptr<SlotMaps>>(
        int slot, std::function<void()> wake)>
        open;
    // After the replay, before the first call: an error ends the term.
    std::function<absl::Status(int slot, SlotMaps* maps)> prepare;
    // About once a second while it is served, on the slot's thread.
    std::function<void(int slot, SlotMaps* maps)> look;
    // It is served no more, and what was stored of it is released.
    std::function<void(int slot, SlotMaps* maps)> retire;
  };

  Slot(int number, const Host* host);
  // Lets go what it has: see End.
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  // Whether the node is to have the slot; and to which other node it is to go, empty:
  // to none. See ClusterMembership::GetPlacement.
  void Want(bool wanted, const std::string& move_to) ABSL_LOCKS_EXCLUDED(mu_);
  // From now on the node has it no more: what it owns is released within `patience`.
  void BeginEnd(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until that is done.
  void End();

  // What is served; null: nothing.
  std::shared_ptr<SlotMaps> serving() const ABSL_LOCKS_EXCLUDED(serving_mu_);

 private:
  void Run();
  // False: it ends.
  bool AwaitWanted() ABSL_LOCKS_EXCLUDED(mu_);
  bool IsUnwanted() ABSL_LOCKS_EXCLUDED(mu_);
  void Live(const std::shared_ptr<SlotMaps>& maps);
  void Serve(const std::shared_ptr<SlotMaps>& maps);
  // Until something may have changed, at most so long.
  void Pause(absl::Duration most) ABSL_LOCKS_EXCLUDED(mu_);
  void SetServing(std::shared_ptr<SlotMaps> maps)
      ABSL_LOCKS_EXCLUDED(serving_mu_);

  const int number_;
  const Host& host_;

  mutable absl::Mutex mu_;
  SteadyCondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  bool poked_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration patience_ ABSL_GUARDED_BY(mu_);
  bool wanted_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<std::chrono::steady_clock::time_point> unwanted_since_
      ABSL_GUARDED_BY(mu_);
  std::string move_to_ ABSL_GUARDED_BY(mu_);

  // Held for a copy alone.
  mutable absl::Mutex serving_mu_;
  std::shared_ptr<SlotMaps> serving_ ABSL_GUARDED_BY(serving_mu_);

  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_SLOT_H_
