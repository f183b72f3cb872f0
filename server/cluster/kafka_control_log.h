// The control log as a topic of Kafka.

#ifndef TIMECACHED_SERVER_CLUSTER_KAFKA_CONTROL_LOG_H_
#define TIMECACHED_SERVER_CLUSTER_KAFKA_CONTROL_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_cond_var.h"
#include "server/cluster/control_log.h"
#include "server/log/kafka/kafka_consumer.h"
#include "server/log/kafka/kafka_producer.h"

namespace timecache::server {

// Of a topic with one partition and LogAppendTime, whose old records the brokers
// delete. A record whose outcome is unknown is one that may be read, or not.
class KafkaControlLog final : public ControlLog {
 public:
  // `lease`: after so long a record that no broker has taken is given up. NOT_FOUND:
  // no such topic. FAILED_PRECONDITION: it has not one partition. UNAVAILABLE: no
  // broker answers in some 20 s.
  static absl::StatusOr<std::unique_ptr<KafkaControlLog>> Open(
      KafkaOptions options, const std::string& topic, absl::Duration lease);

  bool Append(const ControlRecord& record) override;
  absl::StatusOr<std::vector<ControlEntry>> Poll(
      absl::Duration timeout) override;
  void Wake() override;

 private:
  KafkaControlLog() = default;
  absl::StatusOr<std::vector<ControlEntry>> Read();
  // Returns at once if there was a Wake since the last call.
  void AwaitWake(absl::Duration timeout);

  bool on_its_way_ = false;
  // DATA_LOSS: the log is another one.
  absl::Status status_;

  absl::Mutex mu_;
  SteadyCondVar woken_;
  bool wake_ ABSL_GUARDED_BY(mu_) = false;

  // Destroyed first: their threads call Wake.
  std::unique_ptr<KafkaConsumer> consumer_;
  std::unique_ptr<KafkaProducer> producer_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_KAFKA_CONTROL_LOG_H_
