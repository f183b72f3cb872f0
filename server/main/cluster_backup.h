// Backups of a cluster's journal.

#ifndef TIMECACHED_SERVER_MAIN_CLUSTER_BACKUP_H_
#define TIMECACHED_SERVER_MAIN_CLUSTER_BACKUP_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "server/cluster/membership.h"
#include "server/log/kafka/kafka_client.h"
#include "server/log/kafka/kafka_journal.h"
#include "server/rpc/admin/backup_source.h"

namespace timecache::server {

// Both give the same archives as a journal on a disk has, made from the topic as they
// are read: one holds some 20 MiB, and what a KafkaSnapshot does. Where a call fails
// with UNAVAILABLE the backup can be run again: no broker answers in 30 s, or as said
// below.

// From the node that owns all partitions of `journal`, which must outlive the source and
// its backups: of one moment. OWNERSHIP_LOST: the journal has another owner.
BackupSource BackupsOf(KafkaJournal* journal);

// From any node of a cluster whose partitions have owners of their own, whoever owns
// what. Owners delete nothing meanwhile, for kBackupHold at most. A backup begins once
// those that have a lease have read that in the control log, after a little more than
// that. UNAVAILABLE: this node does not reach the control log, something was deleted all
// the same, or the time is over.
inline constexpr absl::Duration kBackupHold = absl::Hours(1);
struct SharedJournal {
  KafkaOptions kafka;
  std::string topic;
  // Must outlive the source and its backups.
  ClusterMembership* membership;
  // How large a backup would be, some way or other.
  std::function<uint64_t()> estimate;
};
BackupSource BackupsOf(SharedJournal journal);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CLUSTER_BACKUP_H_
