// One term of this node in its cluster.

#ifndef TIMECACHED_SERVER_MAIN_CLUSTER_TERM_H_
#define TIMECACHED_SERVER_MAIN_CLUSTER_TERM_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/cluster/member.h"
#include "server/durable/map_change_log.h"
#include "server/engine/registry.h"
#include "server/log/kafka/kafka_journal.h"
#include "server/log/kafka/kafka_topics.h"
#include "server/main/cluster.h"
#include "server/main/cluster_backup.h"
#include "server/main/cluster_events.h"
#include "server/main/durability.h"
#include "server/ops/readiness.h"
#include "server/rpc/admin/cluster_source.h"
#include "timecache/config/v1/config.pb.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// From standby to the end of the ownership of a slot, or of all: a node that was
// handed over, or has lost the journal, ends its term and begins another, as a
// standby, with nothing of what it had in memory.
//
// Thread-safe, but for Begin, TakeLogs, Follow, Serve, Release and Leave: one thread.
class ClusterTerm {
 public:
  // Opens the slot's journal. `wake` is called on other threads when IsOver has become
  // true. `cluster` is not owned and must outlive this, and the logs. Errors as
  // KafkaJournal::Open.
  static absl::StatusOr<std::unique_ptr<ClusterTerm>> Begin(
      Cluster* cluster, int slot, std::function<void()> wake);
  ~ClusterTerm() = default;
  ClusterTerm(const ClusterTerm&) = delete;
  ClusterTerm& operator=(const ClusterTerm&) = delete;

  // The logs of the maps, which own the journal. To be destroyed before this.
  std::unique_ptr<MapChangeLogs> TakeLogs();

  // Replays the journal until this node owns it, and all of it is replayed:
  // then its maps are in the registry. The clock goes on from the journal's
  // time. CANCELLED: `ended`, which is called on several threads, has returned true, or
  // the term is over (IsOver).
  absl::Status Follow(const std::function<bool()>& ended,
                      const RecoveryObservers& observers, SystemClock* clock,
                      MapChangeLogs* logs, Registry* registry);
  // From now on calls are served.
  void Serve() { serving_.store(true, std::memory_order_release); }

  // See ServerOptions.
  BackupSource Backups() const { return BackupsOf(journal_); }

  // Whether calls are: OK, or UNAVAILABLE (NOT_OWNER). Costs a read of the clock.
  absl::Status CheckService() const;

  // The ownership was lost, or is to be handed over.
  bool IsOver() const { return over_.load(std::memory_order_acquire); }
  // See ClusterSource. Makes it over: its thread then releases it.
  void HandOver(const std::string& to, ClusterSource::HandedOver done)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the service, stores all changes and releases the ownership, in at most
  // `patience`; nothing but the first if it is lost, or without a standby.
  void Release(const Registry& registry, MapChangeLogs* logs,
               absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_);

  // Calls that wait for the log end, once another node may serve in place of this
  // one. Call it some times a second.
  void AbandonCalls(const Registry& registry, MapChangeLogs* logs);

  // Hears no more of the cluster: before the logs are destroyed, whose journal that
  // wakes.
  void Leave();

  struct Status {
    Member::Status member;
    KafkaJournalLag lag;
    bool serving = false;
    std::vector<TopicFault> faults;
    ClusterEvents events;
  };
  Status GetStatus() const ABSL_LOCKS_EXCLUDED(mu_);
  // Of an empty response.
  void Describe(v1::GetClusterResponse* cluster) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  ClusterTerm(Cluster* cluster, int slot, std::function<void()> wake);
  const std::string& node() const { return cluster_.config().node(); }
  void Say(LogLevel level, std::string_view event,
           std::initializer_list<LogField> fields) const;
  // Tells probes who owns; not more often than a standby looks.
  void NameOwner(const RecoveryObservers& observers);
  KafkaJournalLag Lag(const Member::Status& member) const;
  // Whether there may be more to replay; waits for it.
  bool AwaitMore();
  // The journal's time goes on, and the lease of the owner before has ended.
  absl::Status BeginOwnership(int64_t last_us, SystemClock* clock);
  void End(absl::string_view why);

  Cluster& cluster_;
  const int slot_;
  Member* const member_;
  const std::function<void()> wake_;
  std::unique_ptr<KafkaJournal> opened_;
  // Owned by the maps' logs.
  KafkaJournal* journal_ = nullptr;

  std::atomic<bool> serving_{false};
  std::atomic<bool> over_{false};
  // Of the one thread.
  bool claimed_ = false;
  bool caught_up_ = false;
  // What keeps it from taking over, as it was logged last.
  std::string waits_for_;
  std::chrono::steady_clock::time_point owner_named_;

  mutable absl::Mutex mu_;
  // Of a HandOver.
  std::string successor_ ABSL_GUARDED_BY(mu_);
  ClusterSource::HandedOver handed_over_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CLUSTER_TERM_H_
