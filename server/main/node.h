// One server with all that it needs, as flags and configuration ask for it.

#ifndef TIMECACHED_SERVER_MAIN_NODE_H_
#define TIMECACHED_SERVER_MAIN_NODE_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "server/base/clock.h"
#include "server/base/heap.h"
#include "server/base/housekeeping.h"
#include "server/durable/checkpointer.h"
#include "server/edge/access_file.h"
#include "server/edge/file_watch.h"
#include "server/edge/tls_listeners.h"
#include "server/engine/local_store.h"
#include "server/engine/parts/partitioned_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registries.h"
#include "server/engine/registry.h"
#include "server/main/cluster.h"
#include "server/main/cluster_metrics.h"
#include "server/main/cluster_term.h"
#include "server/main/config/flags.h"
#include "server/main/durability.h"
#include "server/main/exit_deadline.h"
#include "server/main/journal_metrics.h"
#include "server/main/recovery_metrics.h"
#include "server/main/reload.h"
#include "server/main/service_manager.h"
#include "server/main/shared_cluster.h"
#include "server/main/signals.h"
#include "server/main/system_memory.h"
#include "server/ops/call_log.h"
#include "server/ops/monitoring.h"
#include "server/rpc/server.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Owns the parts in the order in which they need each other. At most one in a
// process: the memory's budget is the process's. For one thread.
class Node {
 public:
  // None is owned; all must outlive this. `config` is as ReadConfig returns it.
  Node(const Flags& flags, const config::v1::ServerConfig& config,
       Signals* signals);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // From the first probe that is answered to the ports that are open. Takes as
  // long as the journal's recovery does; in a cluster with one owner, until this node
  // is it: its ports are open meanwhile, and calls get NOT_OWNER. CANCELLED: a signal
  // to end came meanwhile, and nothing was changed. Any other error says what could
  // not be opened, and why; the node is of no use then.
  absl::Status Start();

  // After Start: notifies probes and the service manager. SIGHUP
  // reloads. SIGINT or SIGTERM drains it, by the configuration in force at that
  // time: first it reports that it is not ready, and keeps serving for
  // drain_delay, then it drains, within grace_period. Logs drain_started and
  // server_stopped. A part of grace_period is for the journal, with which the
  // process ends: within grace_period, or up to two seconds later if that is
  // less than eight. A second
  // signal ends the delay, and a third one, or a second one without a delay,
  // the process at once.
  //
  // In a cluster with one owner the ownership is released before it drains, without a
  // delay, as no other node is ready before, and the next owner is told to clients.
  // Returns also when the ownership is lost or handed over. A node that shares the
  // ownership hands its slots over during the delay, and releases what is left then.
  void Run();

  // After Start or Run: whether the process goes on, with another node.
  bool begins_again() const {
    return term_ != nullptr && term_->IsOver() && !ended_by_signal_;
  }

 private:
  // Starts, in this order.
  absl::Status OpenFiles();
  absl::Status RecoverJournal();
  absl::Status OpenTerm();
  absl::Status OpenShared();
  absl::Status AwaitOwnership();
  // Whether a standby is to end: a signal came, and other nodes had the time to read
  // that it leaves. Until then it goes on, and is not ready. Thread-safe.
  bool StandbyEnds();
  // Of a node that shares the ownership: whether calls may come.
  void LookReady();

  int ServeUntilSignal();
  void Drain(int signal);
  // For drain_delay, or until another signal.
  void ServeOn(absl::Duration delay);
  void AwaitMoves(absl::Duration patience);
  void EndTerm();
  // Ends the process that long from now on.
  void EndAfter(absl::Duration patience);
  void AddMetrics();
  ServerOptions MakeServerOptions();

  // What ends the process if a destructor below does not return.
  std::optional<ExitDeadline> exit_deadline_;
  const Flags& flags_;
  const config::v1::ServerConfig& config_;
  Signals& signals_;
  const ServiceManager manager_ = ServiceManager::FromEnvironment();

  SystemClock system_clock_;
  // Instead, with --virtual-clock.
  const std::unique_ptr<ManualClock> manual_clock_;
  Clock& clock_;

  // Null outside a cluster. Of the term, and what is shared, there is one at most.
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<ClusterTerm> term_;
  std::unique_ptr<prometheus::Collectable> cluster_metrics_;
  bool ended_by_signal_ = false;
  std::once_flag standby_leaves_;
  // Written once.
  std::chrono::steady_clock::time_point standby_ends_;
  // Null without a journal. Maps report changes to it until the last of them, and
  // the reaper, is gone.
  OpenedJournal journal_;
  Reaper reaper_;
  const std::shared_ptr<ServerAccount> account_;
  Registry registry_;
  LocalStore maps_;
  PartitionedStore store_;
  std::unique_ptr<SharedCluster> shared_;

  RecoveryMetrics recovery_metrics_;
  Registries registries_;
  Monitoring monitoring_;
  MemoryPlan memory_;
  CallLog call_log_;
  Housekeeping housekeeping_;
  FileWatch files_;
  // Null without access rules.
  std::shared_ptr<AccessFile> access_;
  std::unique_ptr<TlsListeners> tls_;
  // Null without a journal.
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<JournalMetrics> journal_metrics_;
  std::optional<Server> server_;
  std::optional<Reload> reload_;

  HeapTrimmer heap_trimmer_;
  std::unique_ptr<Housekeeping::Task> checkpoints_;
  std::unique_ptr<Housekeeping::Task> topic_checks_;
  std::unique_ptr<Housekeeping::Task> abandoned_calls_;
  std::unique_ptr<Housekeeping::Task> readiness_;
  std::unique_ptr<Housekeeping::Task> heap_trims_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_NODE_H_
