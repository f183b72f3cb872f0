// The topics of a cluster: made, and looked at.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_KAFKA_TOPICS_H_
#define TIMECACHED_SERVER_LOG_KAFKA_KAFKA_TOPICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/log/kafka/kafka_client.h"

namespace timecache::server {

// The topics of the cluster of this name.
std::string JournalTopic(absl::string_view cluster);
std::string ControlTopic(absl::string_view cluster);

// Makes both topics of a cluster, with settings that CheckTopics accepts if
// `replication_factor` is at least 3. ALREADY_EXISTS: one of them is there, and
// stays as it is; the other is made. It may have been made by this call: brokers
// send its request again when controllers change. INVALID_ARGUMENT: more replicas
// than brokers. UNAVAILABLE: no broker answers in 30 s.
absl::Status CreateTopics(const KafkaOptions& options,
                          absl::string_view cluster, uint32_t partitions,
                          uint32_t replication_factor);

struct TopicShape {
  std::string topic;
  int64_t partitions = 0;
  // The fewest of a partition's.
  int64_t replicas = 0;
};

// Those of both topics of a cluster. Errors as CheckTopics.
absl::StatusOr<std::vector<TopicShape>> DescribeTopics(
    const KafkaOptions& options, absl::string_view cluster);

// A setting of a topic with which acknowledged records may be lost, or time of
// the log is not the brokers'.
struct TopicFault {
  std::string topic;
  // A broker's name of it, as "min.insync.replicas", or "replication factor".
  std::string setting;
  std::string value;
  // As "at least 2".
  std::string wanted;

  // As "eu.journal: min.insync.replicas is 1, not at least 2".
  std::string ToString() const;
};

// The faults of both topics of a cluster; none is well. NOT_FOUND: a topic is
// missing; the error says how to make it. UNAVAILABLE: no broker answers in 30 s.
absl::StatusOr<std::vector<TopicFault>> CheckTopics(const KafkaOptions& options,
                                                    absl::string_view cluster);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_KAFKA_TOPICS_H_
