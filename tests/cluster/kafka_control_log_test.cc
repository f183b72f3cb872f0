// Against librdkafka's mock of a cluster.

#include "server/cluster/kafka_control_log.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

class KafkaControlLogTest : public testing::Test {
 protected:
  KafkaControlLogTest() {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    char problem[512];
    client_.reset(
        rd_kafka_new(RD_KAFKA_PRODUCER, conf, problem, sizeof problem));
    mock_.reset(rd_kafka_mock_cluster_new(client_.get(), 3));
    rd_kafka_mock_topic_create(mock_.get(), "c.control", 1, 3);
    rd_kafka_mock_topic_create(mock_.get(), "c.wide", 2, 3);
    options_.brokers = {rd_kafka_mock_cluster_bootstraps(mock_.get())};
  }

  // A record that no broker takes within the lease is given up.
  std::unique_ptr<KafkaControlLog> Open(
      absl::Duration lease = absl::Minutes(5)) {
    auto log = KafkaControlLog::Open(options_, "c.control", lease);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  static ControlRecord Record(const std::string& node) {
    ControlRecord record;
    record.set_node(node);
    return record;
  }
  static void Append(KafkaControlLog* log, const std::string& node) {
    while (!log->Append(Record(node))) {
      EXPECT_TRUE(log->Poll(absl::Milliseconds(10)).ok());
    }
  }
  static std::vector<std::string> ReadNodes(KafkaControlLog* log,
                                            size_t count) {
    std::vector<std::string> nodes;
    while (nodes.size() < count) {
      const auto entries = log->Poll(absl::Seconds(30));
      EXPECT_TRUE(entries.ok()) << entries.status();
      if (!entries.ok()) break;
      for (const ControlEntry& entry : *entries) {
        EXPECT_EQ(entry.offset, static_cast<int64_t>(nodes.size()));
        EXPECT_GT(entry.append_time_ms, 1'600'000'000'000);
        nodes.push_back(entry.record.node());
      }
    }
    return nodes;
  }

  struct Destroy {
    void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
    void operator()(rd_kafka_mock_cluster_t* mock) const {
      rd_kafka_mock_cluster_destroy(mock);
    }
  };
  std::unique_ptr<rd_kafka_t, Destroy> client_;
  std::unique_ptr<rd_kafka_mock_cluster_t, Destroy> mock_;
  KafkaOptions options_;
};

TEST_F(KafkaControlLogTest, AllReadWhatAllAppendedFromTheBeginning) {
  const auto a = Open();
  Append(a.get(), "a");
  EXPECT_THAT(ReadNodes(a.get(), 1), testing::ElementsAre("a"));
  const auto b = Open();
  Append(b.get(), "b");
  EXPECT_THAT(ReadNodes(b.get(), 2), testing::ElementsAre("a", "b"));
}

TEST_F(KafkaControlLogTest, OneRecordIsOnItsWayAtATime) {
  const auto log = Open();
  EXPECT_TRUE(log->Append(Record("a")));
  EXPECT_FALSE(log->Append(Record("b")));
  EXPECT_THAT(ReadNodes(log.get(), 1), testing::ElementsAre("a"));
}

TEST_F(KafkaControlLogTest, ARecordThatNoBrokerTakesIsGivenUp) {
  const auto log = Open(absl::Seconds(1));
  for (int broker = 1; broker <= 3; ++broker) {
    rd_kafka_mock_broker_set_down(mock_.get(), broker);
  }
  EXPECT_TRUE(log->Append(Record("a")));
  Append(log.get(), "b");
  for (int broker = 1; broker <= 3; ++broker) {
    rd_kafka_mock_broker_set_up(mock_.get(), broker);
  }
  // It may be given up as well, before there is a connection again.
  std::vector<ControlEntry> entries;
  while (entries.empty()) {
    log->Append(Record("b"));
    auto read = log->Poll(absl::Milliseconds(10));
    ASSERT_TRUE(read.ok()) << read.status();
    entries = *std::move(read);
  }
  EXPECT_EQ(entries.front().record.node(), "b");
}

TEST_F(KafkaControlLogTest, WakeEndsAPoll) {
  const auto log = Open();
  std::thread waker([&] { log->Wake(); });
  EXPECT_TRUE(log->Poll(absl::Hours(1)).ok());
  waker.join();
}

TEST_F(KafkaControlLogTest, ATopicOfSeveralPartitionsIsRefused) {
  EXPECT_EQ(KafkaControlLog::Open(options_, "c.wide", absl::Seconds(1))
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace timecache::server
