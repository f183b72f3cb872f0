// What librdkafka's mock brokers, which tests/log/kafka has, do not know: settings
// of topics, times of the brokers, and messages that are deleted. One of Kafka's
// own is enough for that.

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/kafka/kafka_consumer.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/await.h"
#include "timecache/client.h"

namespace timecache::test {
namespace {

using server::KafkaConsumer;
using server::KafkaMessage;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

constexpr char kJournal[] = "test.journal";
// A trim begins at 256 MiB, if that is three times what lives.
constexpr int kOverwriters = 4;
constexpr int kOverwrites = 75;
constexpr size_t kLargeValueBytes = 1'000'000;
constexpr absl::Duration kBehind = absl::Minutes(10);

TestClusterOptions OneBroker() {
  TestClusterOptions options;
  options.brokers = 1;
  options.nodes = 2;
  // The owner's clock is wrong; the brokers' counts.
  options.clocks = {-kBehind};
  options.config = "cluster: {max_clock_skew: 1h}\n";
  return options;
}

std::unique_ptr<KafkaConsumer> OpenConsumer(const TestCluster& cluster) {
  server::KafkaOptions options;
  options.brokers = absl::StrSplit(cluster.BrokersAddresses(), ',');
  auto consumer = KafkaConsumer::Open(options, kJournal);
  EXPECT_TRUE(consumer.ok()) << consumer.status();
  return consumer.ok() ? *std::move(consumer) : nullptr;
}

// The first message that is left of a partition; time 0 if none comes.
absl::Time AppendedAt(KafkaConsumer* consumer, uint32_t partition,
                      int64_t offset) {
  EXPECT_TRUE(consumer->Start(partition, offset).ok());
  absl::Time at = absl::UnixEpoch();
  EXPECT_TRUE(AwaitCluster([&] {
    consumer->Poll(absl::Milliseconds(100), [&](const KafkaMessage& message) {
      if (!message.status.ok() || message.offset != offset) return;
      at = absl::FromUnixMicros(message.append_us);
    });
    return at != absl::UnixEpoch();
  }));
  consumer->Stop(partition);
  return at;
}

void Overwrite(const TestCluster& cluster) {
  std::vector<std::thread> writers;
  for (int w = 0; w < kOverwriters; ++w) {
    writers.emplace_back([&cluster, w] {
      const Client client = cluster.Caller("kept");
      for (int i = 1; i <= kOverwrites; ++i) {
        std::string value = absl::StrCat(i);
        value.resize(kLargeValueBytes, '.');
        const auto put = CallUntilOk(
            [&] { return client.Put(absl::StrCat("key", w), value); });
        ASSERT_TRUE(put.ok()) << put.status();
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
}

// Each as "TOPIC: SETTING is VALUE".
std::vector<std::string> Faults(const TestCluster& cluster) {
  std::vector<std::string> faults;
  const nlohmann::json topics = cluster.Topics();
  for (const auto& fault : topics["faults"]) {
    faults.push_back(absl::StrCat(fault.value("topic", ""), ": ",
                                  fault.value("setting", ""), " is ",
                                  fault.value("value", "")));
  }
  return faults;
}

TEST(OneBrokerTest, WhatIsTrimmedIsDeletedAndWhoeverHasNotReadItStartsAnew) {
  const absl::Time began = absl::Now();
  TestCluster cluster(OneBroker());
  NamespaceOptions options;
  options.durability = Durability::kReplicated;
  options.ttl = absl::Hours(1);
  cluster.Create("kept", options);
  const Client client = cluster.Caller("kept");
  ASSERT_TRUE(CallUntilOk([&] { return client.Put("stays", "value"); }).ok());
  cluster.AwaitWhole();
  Node* const owner = cluster.AwaitOwner();
  ASSERT_NE(owner, nullptr);
  Node* const standby = cluster.Standbys().front();
  standby->Pause();

  Overwrite(cluster);
  const auto consumer = OpenConsumer(cluster);
  ASSERT_NE(consumer, nullptr);
  int64_t first = 0;
  int64_t partition = 0;
  EXPECT_TRUE(AwaitCluster([&] {
    const auto offsets = consumer->FirstOffsets(absl::Seconds(10));
    if (!offsets.ok()) return false;
    const auto most = std::max_element(offsets->begin(), offsets->end());
    first = *most;
    partition = most - offsets->begin();
    return first > 0;
  }));
  // By the brokers' clock, whatever the owner's is.
  EXPECT_GE(AppendedAt(consumer.get(), static_cast<uint32_t>(partition), first),
            began - absl::Seconds(1));

  standby->Resume();
  EXPECT_TRUE(AwaitCluster([&] { return !cluster.WhyNodesEnded().empty(); }));
  EXPECT_THAT(cluster.WhyNodesEnded(),
              HasSubstr(absl::StrCat(
                  standby->name(),
                  " has ended: timecached: the owner has trimmed partition ",
                  partition, " up to offset ", first)));
  // From the first message that is left it has all that lives.
  standby->Start();
  cluster.AwaitWhole();
  owner->Kill();
  ASSERT_TRUE(AwaitCluster([&] { return cluster.Owner() == standby; }));
  const auto stays = client.Get("stays");
  ASSERT_TRUE(stays.ok() && *stays) << stays.status();
  EXPECT_EQ((*stays)->value, "value");
  for (int w = 0; w < kOverwriters; ++w) {
    const auto last = client.Get(absl::StrCat("key", w));
    ASSERT_TRUE(last.ok() && *last) << last.status();
    EXPECT_EQ((*last)->value.substr(0, 3), absl::StrCat(kOverwrites, "."));
  }
}

TEST(OneBrokerTest, SettingsThatLoseWritesAreNamed) {
  TestClusterOptions options = OneBroker();
  options.nodes = 1;
  TestCluster cluster(options);
  const std::vector<std::string> always = {
      "test.journal: replication factor is 1",
      "test.control: replication factor is 1"};
  for (const char* topic : {"test.journal", "test.control"}) {
    cluster.brokers().Do(absl::StrCat("set ", topic, " min.insync.replicas=2"));
  }
  EXPECT_TRUE(AwaitCluster([&] { return Faults(cluster).size() == 2; }));
  EXPECT_THAT(Faults(cluster), UnorderedElementsAreArray(always));
  struct Setting {
    const char* name;
    const char* right;
    const char* wrong;
  };
  for (const Setting& setting : std::vector<Setting>{
           {"min.insync.replicas", "2", "1"},
           {"unclean.leader.election.enable", "false", "true"},
           {"cleanup.policy", "delete", "compact"},
           {"message.timestamp.type", "LogAppendTime", "CreateTime"},
           {"retention.ms", "-1", "3600000"},
           {"retention.bytes", "-1", "1000000"}}) {
    cluster.brokers().Do(
        absl::StrCat("set ", kJournal, " ", setting.name, "=", setting.wrong));
    EXPECT_TRUE(AwaitCluster([&] { return Faults(cluster).size() == 3; }));
    std::vector<std::string> faults = always;
    faults.push_back(
        absl::StrCat(kJournal, ": ", setting.name, " is ", setting.wrong));
    EXPECT_THAT(Faults(cluster), UnorderedElementsAreArray(faults));
    cluster.brokers().Do(
        absl::StrCat("set ", kJournal, " ", setting.name, "=", setting.right));
    EXPECT_TRUE(AwaitCluster([&] { return Faults(cluster).size() == 2; }));
  }
  const Exit refused =
      RunToEnd({TIMECACHED, "--cluster", "test", "--kafka-brokers",
                cluster.BrokersAddresses(), "--listen",
                absl::StrCat("127.0.0.1:", FreePort())});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("test.journal: replication factor is 1, not at least "
                        "3, and 1 more"));
}

}  // namespace
}  // namespace timecache::test
