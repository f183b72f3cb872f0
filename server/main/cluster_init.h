// The topics of a cluster: how its nodes reach them, and `timecached cluster init`.

#ifndef TIMECACHED_SERVER_MAIN_CLUSTER_INIT_H_
#define TIMECACHED_SERVER_MAIN_CLUSTER_INIT_H_

#include <ostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/log/kafka/kafka_client.h"
#include "server/main/config/flags.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Reads the property files. An error names the field or the property.
absl::StatusOr<KafkaOptions> ToKafkaOptions(
    const config::v1::KafkaConfig& config);

// Makes the topics of the configuration's cluster, and writes to `out` what they
// are then: topics that were there before stay as they are. FAILED_PRECONDITION:
// they can lose acknowledged writes, unless cluster.allow_unsafe is set, or have
// another number of partitions than was asked for. Other errors as CreateTopics;
// nothing is written then. Waits up to a minute for brokers.
absl::Status InitCluster(const ClusterInitFlags& flags,
                         const config::v1::ServerConfig& config,
                         std::ostream& out);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CLUSTER_INIT_H_
