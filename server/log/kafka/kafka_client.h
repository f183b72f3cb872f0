// How the server reaches Kafka: librdkafka's handles, settings and errors.

#ifndef TIMECACHED_SERVER_LOG_KAFKA_KAFKA_CLIENT_H_
#define TIMECACHED_SERVER_LOG_KAFKA_KAFKA_CLIENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// librdkafka's, declared here so that its header stays in this folder.
struct rd_kafka_message_s;
struct rd_kafka_s;
struct rd_kafka_topic_s;

namespace timecache::server {

struct KafkaOptions {
  // host:port of one or more.
  std::vector<std::string> brokers;
  // librdkafka's, by name.
  std::map<std::string, std::string> properties;
  // What librdkafka logs: `level` is syslog's, 0 (emergency) to 7 (debug). Called
  // on its threads, from several at a time; must not block. Null: not logged.
  std::function<void(int level, absl::string_view text)> log;
};

// INVALID_ARGUMENT: no broker; a property that librdkafka does not know, or whose
// value it refuses; one on which the log's safety rests, which are set here. The
// error names the property. Connects to nothing.
absl::Status CheckKafkaOptions(const KafkaOptions& options);

// An error of librdkafka or of a broker, with its text after "`what`: ". NOT_FOUND:
// no such topic or partition. OUT_OF_RANGE: no such offset. ALREADY_EXISTS: the
// topic. PERMISSION_DENIED, UNAUTHENTICATED: the broker refuses. RESOURCE_EXHAUSTED:
// a message that is too large. INVALID_ARGUMENT. UNAVAILABLE: all others, which a
// retry may avoid.
absl::Status KafkaError(int code, absl::string_view what);

// A client of the cluster, with threads and connections of its own, and one topic
// if it has a name. Movable: the owner destroys the topic, then the client.
class KafkaHandle {
 public:
  enum class Kind { kProducer, kConsumer };
  // See CheckKafkaOptions. `extra` are further properties, set before the user's.
  // `opaque` is what librdkafka's callbacks get. `on_report` is librdkafka's
  // dr_msg_cb, or null.
  using OnReport = void (*)(rd_kafka_s*, const rd_kafka_message_s*,
                            void* opaque);
  static absl::StatusOr<KafkaHandle> Open(
      const KafkaOptions& options, Kind kind, const std::string& topic,
      const std::map<std::string, std::string>& extra = {},
      OnReport on_report = nullptr, void* opaque = nullptr);

  // May wait for calls in progress. Undelivered messages are dropped.
  ~KafkaHandle();
  KafkaHandle(KafkaHandle&&) noexcept;
  KafkaHandle& operator=(KafkaHandle&&) = delete;

  rd_kafka_s* client() const { return client_.get(); }
  rd_kafka_topic_s* topic() const { return topic_.get(); }

  // An UNAVAILABLE with what librdkafka has said of its connections, which has the
  // broker's address, and the properties that may be wrong.
  absl::Status Explain(const absl::Status& status) const;

  struct Context;

 private:
  KafkaHandle();

  struct DestroyClient {
    void operator()(rd_kafka_s* client) const;
  };
  struct DestroyTopic {
    void operator()(rd_kafka_topic_s* topic) const;
  };
  // What callbacks use: outlives the client.
  std::unique_ptr<Context> context_;
  std::unique_ptr<rd_kafka_s, DestroyClient> client_;
  std::unique_ptr<rd_kafka_topic_s, DestroyTopic> topic_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_KAFKA_KAFKA_CLIENT_H_
