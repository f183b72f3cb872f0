// `timecached cluster restore`: a backup becomes the journal of a cluster.

#ifndef TIMECACHED_SERVER_MAIN_CLUSTER_RESTORE_H_
#define TIMECACHED_SERVER_MAIN_CLUSTER_RESTORE_H_

#include <ostream>

#include "absl/status/status.h"
#include "server/main/config/flags.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Puts the records of a backup, or of a journal that a server has closed, into the
// topics of the configuration's cluster, as its owner, and releases them; says so in
// `out`. Waits up to a minute for brokers, and some seconds to become the owner. To be
// called before the process has threads, as it takes its signals.
//
// ALREADY_EXISTS: the topics have records. FAILED_PRECONDITION: a node of the cluster
// runs, the topics can lose acknowledged writes, a server has the journal open.
// NOT_FOUND, DATA_LOSS: there is no whole backup. After these the topics are as they
// were. Any other error says what to do with a part that they have.
absl::Status RestoreCluster(const ClusterRestoreFlags& flags,
                            const config::v1::ServerConfig& config,
                            std::ostream& out);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CLUSTER_RESTORE_H_
