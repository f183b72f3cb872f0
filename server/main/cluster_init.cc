#include "server/main/cluster_init.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "server/log/kafka/kafka_topics.h"
#include "server/main/config/cluster_config.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

constexpr uint32_t kDefaultPartitions = 16;
constexpr uint32_t kSafeReplicationFactor = 3;

void LogKafka(int level, absl::string_view text) {
  constexpr int kSyslogWarning = 4;
  Log(level <= kSyslogWarning ? LogLevel::kWarning : LogLevel::kDebug, "kafka",
      {{"message", text}});
}

std::string CountText(int64_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

void WriteTopics(const std::string& cluster, bool made,
                 const std::vector<TopicShape>& topics,
                 const std::vector<TopicFault>& faults, std::ostream& out) {
  out << (made ? "made the topics" : "found topics") << " of cluster "
      << cluster << ":\n";
  for (const TopicShape& topic : topics) {
    out << "  " << topic.topic << ": "
        << CountText(topic.partitions, "partition") << ", "
        << CountText(topic.replicas, "replica") << '\n';
  }
  if (faults.empty()) return;
  out << "settings that can lose acknowledged writes:\n";
  for (const TopicFault& fault : faults) {
    out << "  " << fault.ToString() << '\n';
  }
}

void WriteTopicsJson(const std::string& cluster, bool made,
                     const std::vector<TopicShape>& topics,
                     const std::vector<TopicFault>& faults, std::ostream& out) {
  nlohmann::ordered_json json = {{"cluster", cluster},
                                 {"made", made},
                                 {"topics", nlohmann::json::array()},
                                 {"faults", nlohmann::json::array()}};
  for (const TopicShape& topic : topics) {
    json["topics"].push_back({{"name", topic.topic},
                              {"partitions", topic.partitions},
                              {"replicas", topic.replicas}});
  }
  for (const TopicFault& fault : faults) {
    json["faults"].push_back({{"topic", fault.topic},
                              {"setting", fault.setting},
                              {"value", fault.value},
                              {"wanted", fault.wanted}});
  }
  out << json.dump() << '\n';
}

}  // namespace

absl::StatusOr<KafkaOptions> ToKafkaOptions(
    const config::v1::KafkaConfig& config) {
  KafkaOptions options;
  options.brokers.assign(config.brokers().begin(), config.brokers().end());
  auto properties = ReadKafkaProperties(config);
  if (!properties.ok()) return properties.status();
  options.properties = *std::move(properties);
  options.log = LogKafka;
  if (absl::Status status = CheckKafkaOptions(options); !status.ok()) {
    return status;
  }
  return options;
}

absl::Status InitCluster(const ClusterInitFlags& flags,
                         const config::v1::ServerConfig& config,
                         std::ostream& out) {
  const config::v1::ClusterConfig& cluster = config.cluster();
  if (cluster.name().empty()) {
    return absl::InvalidArgumentError(
        "no cluster is named: --cluster NAME, or cluster.name in the "
        "configuration file");
  }
  if (flags.replication_factor < kSafeReplicationFactor &&
      !cluster.allow_unsafe()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--replication-factor ", flags.replication_factor,
        " can lose acknowledged writes with one machine: it must be at least ",
        kSafeReplicationFactor,
        ", or --cluster-allow-unsafe be given where that does not matter"));
  }
  auto kafka = ToKafkaOptions(cluster.kafka());
  if (!kafka.ok()) return kafka.status();
  const absl::Status made = CreateTopics(
      *kafka, cluster.name(), flags.partitions.value_or(kDefaultPartitions),
      flags.replication_factor);
  if (!made.ok() && !absl::IsAlreadyExists(made)) {
    return absl::Status(
        made.code(),
        absl::StrCat("the topics of cluster ", cluster.name(),
                     " cannot be made by ",
                     absl::StrJoin(cluster.kafka().brokers(), ", "), ": ",
                     made.message()));
  }
  const auto topics = DescribeTopics(*kafka, cluster.name());
  if (!topics.ok()) return topics.status();
  const auto faults = CheckTopics(*kafka, cluster.name());
  if (!faults.ok()) return faults.status();
  const auto write = flags.json ? WriteTopicsJson : WriteTopics;
  write(cluster.name(), made.ok(), *topics, *faults, out);
  const int64_t partitions = topics->front().partitions;
  if (flags.partitions.value_or(partitions) != partitions) {
    return absl::FailedPreconditionError(absl::StrCat(
        topics->front().topic, " has ", CountText(partitions, "partition"),
        ", not ", *flags.partitions,
        ": their number is fixed when a cluster is made"));
  }
  if (!faults->empty() && !cluster.allow_unsafe()) {
    return absl::FailedPreconditionError(
        "nodes do not start with these topics: correct the settings, or set "
        "cluster.allow_unsafe (--cluster-allow-unsafe) where a loss does not "
        "matter");
  }
  return absl::OkStatus();
}

}  // namespace timecache::server
