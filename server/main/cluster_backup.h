// Backups of a cluster's journal, from the node that owns it.

#ifndef TIMECACHED_SERVER_MAIN_CLUSTER_BACKUP_H_
#define TIMECACHED_SERVER_MAIN_CLUSTER_BACKUP_H_

#include "server/log/kafka/kafka_journal.h"
#include "server/rpc/admin/backup_source.h"

namespace timecache::server {

// The same archives as those of a journal on a disk, of all partitions of `journal`,
// which must outlive the source and its backups. They are made from the topic as they
// are read: one holds some 20 MiB, and what a KafkaSnapshot does. A read ends with
// UNAVAILABLE if no broker answers in 30 s, or the journal has another owner
// (OWNERSHIP_LOST).
BackupSource BackupsOf(KafkaJournal* journal);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CLUSTER_BACKUP_H_
