// A journal's records as any node reads them, whoever owns it.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_TOPIC_SNAPSHOT_H_
#define TIMECACHED_SERVER_LOG_KAFKA_TOPIC_SNAPSHOT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/log/kafka/kafka_client.h"
#include "server/log/kafka/kafka_snapshot.h"

namespace timecache::server {

// Of the topic's partitions, each up to a message that the call appends to it, and that
// counts for nobody: when the brokers have acknowledged that, all that they acknowledged
// before is in front of it, which an end that a broker is asked for does not promise, as
// it may have been deposed. So each partition is as of a moment of its own, before the
// call returns. Which owner it has, and whether it gets another one, does not matter.
//
// Nothing keeps the owners from trimming meanwhile: see ClusterMembership::BeginHold.
// NOT_FOUND: no such topic. UNAVAILABLE: brokers do not answer in some 30 s. DATA_LOSS: a
// partition begins with what no trim has left.
absl::StatusOr<std::unique_ptr<KafkaSnapshot>> OpenTopicSnapshot(
    const KafkaOptions& options, const std::string& topic);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_TOPIC_SNAPSHOT_H_
