#include "server/log/kafka/kafka_topics.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace timecache::server {
namespace {

constexpr int kAdminTimeoutMs = 30'000;
constexpr int kTopicIntervalMs = 50;
constexpr int kTopicAnswers = 10;
constexpr int64_t kMinReplicas = 3;
constexpr int64_t kMinInsyncReplicas = 2;

using Settings = std::vector<std::pair<const char*, std::string>>;

Settings JournalSettings(uint32_t replication_factor) {
  return {{"cleanup.policy", "delete"},
          {"max.message.bytes", "1200000"},
          {"message.timestamp.type", "LogAppendTime"},
          {"min.insync.replicas", replication_factor > 1 ? "2" : "1"},
          {"retention.bytes", "-1"},
          {"retention.ms", "-1"},
          {"unclean.leader.election.enable", "false"}};
}

// What is a minute old nobody needs, and a node that starts reads all of it.
Settings ControlSettings(uint32_t replication_factor) {
  Settings settings = JournalSettings(replication_factor);
  for (auto& [name, value] : settings) {
    if (name == absl::string_view("retention.ms")) value = "3600000";
  }
  settings.emplace_back("segment.bytes", "1048576");
  settings.emplace_back("segment.ms", "600000");
  return settings;
}

template <typename T, void (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const { destroy(object); }
};
using Queue =
    std::unique_ptr<rd_kafka_queue_t,
                    Destroy<rd_kafka_queue_t, rd_kafka_queue_destroy>>;
using Event =
    std::unique_ptr<rd_kafka_event_t,
                    Destroy<rd_kafka_event_t, rd_kafka_event_destroy>>;
using NewTopic =
    std::unique_ptr<rd_kafka_NewTopic_t,
                    Destroy<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy>>;
using Resource = std::unique_ptr<
    rd_kafka_ConfigResource_t,
    Destroy<rd_kafka_ConfigResource_t, rd_kafka_ConfigResource_destroy>>;
using AdminOptions = std::unique_ptr<
    rd_kafka_AdminOptions_t,
    Destroy<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>>;

// Starts a request whose result comes to a queue, and waits for it.
absl::StatusOr<Event> Ask(
    rd_kafka_t* client, absl::string_view what,
    absl::FunctionRef<void(const rd_kafka_AdminOptions_t*, rd_kafka_queue_t*)>
        request) {
  const AdminOptions options(
      rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_ANY));
  rd_kafka_AdminOptions_set_request_timeout(options.get(), kAdminTimeoutMs,
                                            nullptr, 0);
  const Queue queue(rd_kafka_queue_new(client));
  request(options.get(), queue.get());
  Event event(rd_kafka_queue_poll(queue.get(), 2 * kAdminTimeoutMs));
  if (event == nullptr) {
    return absl::UnavailableError(absl::StrCat(what, ": no broker answers"));
  }
  if (absl::Status status = KafkaError(rd_kafka_event_error(event.get()), what);
      !status.ok()) {
    return status;
  }
  return event;
}

absl::StatusOr<NewTopic> DescribeNewTopic(const std::string& topic,
                                          uint32_t partitions,
                                          uint32_t replication_factor,
                                          const Settings& settings) {
  char problem[512];
  NewTopic created(rd_kafka_NewTopic_new(
      topic.c_str(), static_cast<int>(partitions),
      static_cast<int>(replication_factor), problem, sizeof problem));
  if (created == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(topic, ": ", problem));
  }
  for (const auto& [name, value] : settings) {
    rd_kafka_NewTopic_set_config(created.get(), name, value.c_str());
  }
  return created;
}

// By name.
absl::StatusOr<std::map<std::string, std::string>> ReadSettings(
    rd_kafka_t* client, const std::string& topic) {
  const Resource resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  rd_kafka_ConfigResource_t* asked = resource.get();
  absl::StatusOr<Event> event =
      Ask(client, topic,
          [&](const rd_kafka_AdminOptions_t* options, rd_kafka_queue_t* queue) {
            rd_kafka_DescribeConfigs(client, &asked, 1, options, queue);
          });
  if (!event.ok()) return event.status();
  size_t count = 0;
  const rd_kafka_ConfigResource_t** const resources =
      rd_kafka_DescribeConfigs_result_resources(
          rd_kafka_event_DescribeConfigs_result(event->get()), &count);
  if (count != 1) return absl::UnavailableError("an answer of another topic");
  if (absl::Status status =
          KafkaError(rd_kafka_ConfigResource_error(resources[0]), topic);
      !status.ok()) {
    return status;
  }
  const rd_kafka_ConfigEntry_t** const entries =
      rd_kafka_ConfigResource_configs(resources[0], &count);
  std::map<std::string, std::string> settings;
  for (size_t i = 0; i < count; ++i) {
    const char* const value = rd_kafka_ConfigEntry_value(entries[i]);
    settings[rd_kafka_ConfigEntry_name(entries[i])] =
        value == nullptr ? "" : value;
  }
  return settings;
}

absl::StatusOr<TopicShape> ReadShape(rd_kafka_t* client,
                                     const std::string& topic) {
  const std::unique_ptr<rd_kafka_topic_t,
                        Destroy<rd_kafka_topic_t, rd_kafka_topic_destroy>>
      handle(rd_kafka_topic_new(client, topic.c_str(), nullptr));
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t error = rd_kafka_metadata(
      client, /*all_topics=*/0, handle.get(), &metadata, kAdminTimeoutMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError(error, topic);
  absl::Status status = absl::NotFoundError(topic);
  TopicShape shape{topic, 0, INT64_MAX};
  if (metadata->topic_cnt == 1) {
    const rd_kafka_metadata_topic_t& found = metadata->topics[0];
    status = KafkaError(found.err, topic);
    shape.partitions = found.partition_cnt;
    for (int p = 0; p < found.partition_cnt; ++p) {
      shape.replicas =
          std::min<int64_t>(shape.replicas, found.partitions[p].replica_cnt);
    }
  }
  rd_kafka_metadata_destroy(metadata);
  if (!status.ok()) return status;
  return shape;
}

void CheckSettings(const std::string& topic, bool is_journal,
                   std::map<std::string, std::string> settings,
                   std::vector<TopicFault>* faults) {
  const auto check = [&](const char* setting, bool is_right,
                         const std::string& wanted) {
    if (!is_right) {
      faults->push_back({topic, setting, settings[setting], wanted});
    }
  };
  int64_t insync = 0;
  check("min.insync.replicas",
        absl::SimpleAtoi(settings["min.insync.replicas"], &insync) &&
            insync >= kMinInsyncReplicas,
        absl::StrCat("at least ", kMinInsyncReplicas));
  const auto equals = [&](const char* setting, const char* wanted) {
    check(setting, settings[setting] == wanted, wanted);
  };
  equals("unclean.leader.election.enable", "false");
  equals("cleanup.policy", "delete");
  equals("message.timestamp.type", "LogAppendTime");
  if (is_journal) {
    equals("retention.ms", "-1");
    equals("retention.bytes", "-1");
  }
}

// Brokers learn of a new topic one after the other; each look asks one of them.
absl::Status AwaitTopics(const KafkaOptions& options,
                         absl::string_view cluster) {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::milliseconds(kAdminTimeoutMs);
  for (int answers = 0; answers < kTopicAnswers;) {
    auto handle =
        KafkaHandle::Open(options, KafkaHandle::Kind::kConsumer, /*topic=*/"");
    if (!handle.ok()) return handle.status();
    absl::Status status;
    for (const auto& topic : {JournalTopic(cluster), ControlTopic(cluster)}) {
      status.Update(ReadShape(handle->client(), topic).status());
    }
    if (!status.ok() && (!absl::IsNotFound(status) ||
                         std::chrono::steady_clock::now() > deadline)) {
      return status;
    }
    answers = status.ok() ? answers + 1 : 0;
    if (!status.ok()) rd_kafka_poll(handle->client(), kTopicIntervalMs);
  }
  return absl::OkStatus();
}

}  // namespace

std::string JournalTopic(absl::string_view cluster) {
  return absl::StrCat(cluster, ".journal");
}

std::string ControlTopic(absl::string_view cluster) {
  return absl::StrCat(cluster, ".control");
}

absl::Status CreateTopics(const KafkaOptions& options,
                          absl::string_view cluster, uint32_t partitions,
                          uint32_t replication_factor) {
  auto handle =
      KafkaHandle::Open(options, KafkaHandle::Kind::kProducer, /*topic=*/"");
  if (!handle.ok()) return handle.status();
  auto journal =
      DescribeNewTopic(JournalTopic(cluster), partitions, replication_factor,
                       JournalSettings(replication_factor));
  if (!journal.ok()) return journal.status();
  auto control = DescribeNewTopic(ControlTopic(cluster), 1, replication_factor,
                                  ControlSettings(replication_factor));
  if (!control.ok()) return control.status();
  std::array<rd_kafka_NewTopic_t*, 2> both = {journal->get(), control->get()};
  absl::StatusOr<Event> event =
      Ask(handle->client(), "CreateTopics",
          [&](const rd_kafka_AdminOptions_t* asked, rd_kafka_queue_t* queue) {
            rd_kafka_CreateTopics(handle->client(), both.data(), both.size(),
                                  asked, queue);
          });
  if (!event.ok()) return handle->Explain(event.status());
  size_t count = 0;
  const rd_kafka_topic_result_t** const results =
      rd_kafka_CreateTopics_result_topics(
          rd_kafka_event_CreateTopics_result(event->get()), &count);
  absl::Status status;
  for (size_t i = 0; i < count; ++i) {
    const char* const text = rd_kafka_topic_result_error_string(results[i]);
    status.Update(
        KafkaError(rd_kafka_topic_result_error(results[i]),
                   absl::StrCat(rd_kafka_topic_result_name(results[i]), ": ",
                                text == nullptr ? "" : text)));
  }
  if (!status.ok() && !absl::IsAlreadyExists(status)) return status;
  absl::Status known = AwaitTopics(options, cluster);
  return known.ok() ? status : known;
}

absl::StatusOr<std::vector<TopicShape>> DescribeTopics(
    const KafkaOptions& options, absl::string_view cluster) {
  // As a consumer, whose questions make no topic.
  auto handle =
      KafkaHandle::Open(options, KafkaHandle::Kind::kConsumer, /*topic=*/"");
  if (!handle.ok()) return handle.status();
  std::vector<TopicShape> shapes;
  for (const std::string& topic :
       {JournalTopic(cluster), ControlTopic(cluster)}) {
    auto shape = ReadShape(handle->client(), topic);
    if (absl::IsNotFound(shape.status())) {
      return absl::NotFoundError(
          absl::StrCat("no topic ", topic,
                       ": `timecached cluster init` makes "
                       "the topics of a cluster"));
    }
    if (!shape.ok()) return handle->Explain(shape.status());
    shapes.push_back(*std::move(shape));
  }
  return shapes;
}

std::string TopicFault::ToString() const {
  return absl::StrCat(topic, ": ", setting, " is ", value, ", not ", wanted);
}

absl::StatusOr<std::vector<TopicFault>> CheckTopics(const KafkaOptions& options,
                                                    absl::string_view cluster) {
  const auto shapes = DescribeTopics(options, cluster);
  if (!shapes.ok()) return shapes.status();
  auto handle =
      KafkaHandle::Open(options, KafkaHandle::Kind::kConsumer, /*topic=*/"");
  if (!handle.ok()) return handle.status();
  std::vector<TopicFault> faults;
  for (const TopicShape& shape : *shapes) {
    if (shape.replicas < kMinReplicas) {
      faults.push_back({shape.topic, "replication factor",
                        absl::StrCat(shape.replicas),
                        absl::StrCat("at least ", kMinReplicas)});
    }
    auto settings = ReadSettings(handle->client(), shape.topic);
    if (!settings.ok()) return settings.status();
    CheckSettings(shape.topic, shape.topic == JournalTopic(cluster),
                  *std::move(settings), &faults);
  }
  return faults;
}

}  // namespace timecache::server
