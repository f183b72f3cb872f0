// This process as a node of its cluster.

#ifndef TIMECACHED_SERVER_MAIN_CLUSTER_H_
#define TIMECACHED_SERVER_MAIN_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/cluster/control_log.h"
#include "server/cluster/membership.h"
#include "server/log/kafka/kafka_journal.h"
#include "server/log/kafka/kafka_topics.h"
#include "timecache/config/v1/config.pb.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// What the terms of this process share: the brokers, the control log, and what is known
// of the other nodes. Without forward_calls one node owns all: one slot. With it, each
// partition of the journal is a slot.
//
// Thread-safe.
class Cluster {
 public:
  // Joins the cluster of the configuration. An error names the broker, the topic or the
  // setting, and a remedy: FAILED_PRECONDITION, the topics' settings can lose
  // acknowledged writes.
  static absl::StatusOr<std::unique_ptr<Cluster>> Begin(
      const config::v1::ServerConfig& config);
  // Leaves it.
  ~Cluster() { Leave(); }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Whether each partition of the journal has an owner of its own.
  bool has_slots() const { return config_.forward_calls(); }
  int slots() const { return membership_->slots(); }
  ClusterMembership& membership() { return *membership_; }
  const ClusterMembership& membership() const { return *membership_; }
  const config::v1::ClusterConfig& config() const { return config_; }
  const KafkaOptions& kafka() const { return kafka_; }

  // `observer` is called with each new role of this node in the slot, from other
  // threads, until another one, or null, takes its place: not any more once this
  // returns. It must not call this.
  using RoleObserver = std::function<void(MemberRole)>;
  void Observe(int slot, RoleObserver observer)
      ABSL_LOCKS_EXCLUDED(observers_mu_);

  // A journal of the slot: of all partitions without slots. `on_lost` as
  // KafkaJournalOptions has it. Errors as KafkaJournal::Open.
  absl::StatusOr<std::unique_ptr<KafkaJournal>> OpenJournal(
      int slot, std::function<void(const absl::Status& why)> on_lost);

  // Of the last check: settings that can lose acknowledged writes. CheckTopics looks
  // again: hourly, on a thread that may wait.
  std::vector<TopicFault> faults() const ABSL_LOCKS_EXCLUDED(mu_);
  void CheckTopics() ABSL_LOCKS_EXCLUDED(mu_);

  // Fills what all nodes of a cluster have in an empty response: its name, this node,
  // brokers, settings.
  void Describe(v1::GetClusterResponse* cluster) const;

  // Says no more that this node lives, and calls no observer.
  void Leave();

 private:
  Cluster(config::v1::ClusterConfig config, KafkaOptions kafka);
  absl::Status Open();
  MemberOptions MakeMemberOptions() const;
  void OnRole(int slot, MemberRole role) ABSL_LOCKS_EXCLUDED(observers_mu_);
  void NoteFaults(std::vector<TopicFault> faults) ABSL_LOCKS_EXCLUDED(mu_);

  const config::v1::ClusterConfig config_;
  const uint64_t incarnation_;
  const KafkaOptions kafka_;
  std::unique_ptr<ControlLog> control_log_;
  mutable absl::Mutex mu_;
  std::vector<TopicFault> faults_ ABSL_GUARDED_BY(mu_);
  absl::Mutex observers_mu_;
  std::vector<RoleObserver> observers_ ABSL_GUARDED_BY(observers_mu_);
  // Last: its thread calls the observers.
  std::unique_ptr<ClusterMembership> membership_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CLUSTER_H_
