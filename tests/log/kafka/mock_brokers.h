// Brokers of librdkafka's own, in this process, which fail as a test says.

#ifndef TIMECACHED_TESTS_LOG_KAFKA_MOCK_BROKERS_H_
#define TIMECACHED_TESTS_LOG_KAFKA_MOCK_BROKERS_H_

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/log/kafka/kafka_journal.h"

namespace timecache::server {

// They know neither DeleteRecords nor LogAppendTime, nor settings of topics.
class MockBrokers {
 public:
  static constexpr int16_t kProduce = 0;
  static constexpr int16_t kFetch = 1;
  static constexpr int16_t kListOffsets = 2;

  explicit MockBrokers(int count = 1)
      : client_(
            rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), nullptr, 0)),
        cluster_(rd_kafka_mock_cluster_new(client_, count)) {}
  ~MockBrokers() {
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(client_);
  }
  MockBrokers(const MockBrokers&) = delete;
  MockBrokers& operator=(const MockBrokers&) = delete;

  KafkaOptions options() const {
    KafkaOptions options;
    options.brokers = {rd_kafka_mock_cluster_bootstraps(cluster_)};
    return options;
  }
  rd_kafka_mock_cluster_t* cluster() { return cluster_; }
  void CreateTopic(const std::string& topic, int partitions) {
    ASSERT_EQ(
        rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1),
        RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  // The next requests of this kind fail so.
  void Fail(int16_t request, const std::vector<rd_kafka_resp_err_t>& errors) {
    rd_kafka_mock_push_request_errors_array(cluster_, request, errors.size(),
                                            errors.data());
  }

 private:
  rd_kafka_t* const client_;
  rd_kafka_mock_cluster_t* const cluster_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_LOG_KAFKA_MOCK_BROKERS_H_
