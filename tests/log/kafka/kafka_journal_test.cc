#include "server/log/kafka/kafka_journal.h"

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/log/kafka/kafka_producer.h"
#include "server/log/kafka/topic_snapshot.h"
#include "tests/log/kafka/mock_brokers.h"

namespace timecache::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class KafkaJournalTest : public testing::Test {
 protected:
  // By partition, in order.
  using Records = std::map<uint32_t, std::vector<std::string>>;

  // What a node does.
  struct Node {
    std::unique_ptr<KafkaJournal> journal;
    Records records;
    absl::Notification lost;
    absl::Status why;
  };

  // They take a second to end.
  static void SetUpTestSuite() { brokers = new MockBrokers(2); }
  static void TearDownTestSuite() { delete brokers; }

  KafkaJournalTest()
      : topic_(testing::UnitTest::GetInstance()->current_test_info()->name()) {
    brokers->CreateTopic(topic_, 4);
  }
  ~KafkaJournalTest() override { SetBrokers(true); }

  static void SetBrokers(bool up) {
    for (const int broker : {1, 2}) {
      up ? rd_kafka_mock_broker_set_up(brokers->cluster(), broker)
         : rd_kafka_mock_broker_set_down(brokers->cluster(), broker);
    }
  }

  std::unique_ptr<Node> Open(
      const std::string& name,
      const std::map<std::string, std::string>& properties = {},
      std::optional<uint32_t> partition = std::nullopt) {
    auto node = std::make_unique<Node>();
    KafkaJournalOptions options;
    options.kafka = brokers->options();
    options.kafka.properties = properties;
    options.topic = topic_;
    options.partition = partition;
    options.node = name;
    options.on_lost = [node = node.get()](const absl::Status& why) {
      node->why = why;
      node->lost.Notify();
    };
    auto journal = KafkaJournal::Open(std::move(options));
    EXPECT_TRUE(journal.ok()) << journal.status();
    if (journal.ok()) node->journal = *std::move(journal);
    return node;
  }

  static absl::Status Read(Node* node) {
    return node->journal->Read({}, [&](uint32_t partition, uint64_t position,
                                       absl::string_view record) {
      EXPECT_EQ(position, node->records[partition].size());
      node->records[partition].emplace_back(record);
      return absl::OkStatus();
    });
  }

  static void Own(Node* node) {
    ASSERT_EQ(node->journal->Claim(), absl::OkStatus());
    ASSERT_EQ(Read(node), absl::OkStatus());
    ASSERT_TRUE(node->journal->IsOwner());
  }

  // Done with a position, or the error of one.
  struct Appended {
    absl::Notification done;
    absl::StatusOr<uint64_t> position;
  };
  static std::shared_ptr<Appended> Begin(Node* node, uint32_t partition,
                                         std::vector<std::string> records) {
    auto appended = std::make_shared<Appended>();
    node->journal->Append(partition, std::move(records), Durability::kSync,
                          [appended](absl::StatusOr<uint64_t> position,
                                     std::vector<std::string>) {
                            appended->position = std::move(position);
                            appended->done.Notify();
                          });
    return appended;
  }

  static absl::StatusOr<uint64_t> Append(Node* node, uint32_t partition,
                                         std::vector<std::string> records) {
    const auto appended = Begin(node, partition, std::move(records));
    appended->done.WaitForNotification();
    return appended->position;
  }

  // Of a snapshot that begins with the first records.
  static Records ReadAll(KafkaSnapshot* snapshot) {
    Records records;
    absl::Status status;
    while (status.ok() && !snapshot->done()) {
      status = snapshot->Read(
          absl::Seconds(10),
          [&](uint32_t partition, uint64_t position, absl::string_view record) {
            EXPECT_EQ(position, records[partition].size());
            records[partition].emplace_back(record);
            return absl::OkStatus();
          });
    }
    EXPECT_EQ(status, absl::OkStatus());
    return records;
  }

  // Of all partitions, by a node that comes new.
  Records ReadAll() {
    const auto node = Open("reader");
    EXPECT_EQ(Read(node.get()), absl::OkStatus());
    return node->records;
  }

  static inline MockBrokers* brokers = nullptr;
  const std::string topic_;
};

TEST_F(KafkaJournalTest, AStandbyReadsWhatTheOwnerAppends) {
  const auto owner = Open("a");
  const auto standby = Open("b");
  Own(owner.get());
  EXPECT_EQ(*Append(owner.get(), 1, {"x", "y"}), 0u);
  EXPECT_EQ(*Append(owner.get(), 1, {"z"}), 2u);
  EXPECT_EQ(*Append(owner.get(), 3, {""}), 0u);
  EXPECT_EQ(owner->journal->End(1), 3u);
  while (standby->journal->End(1) < 3 || standby->journal->End(3) < 1) {
    standby->journal->AwaitMore(absl::Seconds(10));
    ASSERT_EQ(Read(standby.get()), absl::OkStatus());
  }
  EXPECT_THAT(standby->records[1], ElementsAre("x", "y", "z"));
  EXPECT_THAT(standby->records[3], ElementsAre(""));
  const KafkaJournalLag lag = standby->journal->lag(absl::Now());
  EXPECT_EQ(lag.messages, 0u);
  EXPECT_EQ(lag.age, absl::ZeroDuration());
}

TEST_F(KafkaJournalTest, WhatIsNotReadYetHasAnAge) {
  const auto owner = Open("a");
  Own(owner.get());
  EXPECT_TRUE(Append(owner.get(), 1, {"x"}).ok());
  const auto standby = Open("b");
  EXPECT_EQ(standby->journal->lag(absl::Now()).age, absl::InfiniteDuration());
  ASSERT_EQ(Read(standby.get()), absl::OkStatus());
  EXPECT_TRUE(Append(owner.get(), 1, {"y"}).ok());
  standby->journal->AwaitMore(absl::Seconds(10));
  // It was appended after the standby had nothing left to read.
  const KafkaJournalLag lag =
      standby->journal->lag(absl::Now() + absl::Hours(1));
  EXPECT_EQ(lag.messages, 1u);
  EXPECT_GT(lag.age, absl::ZeroDuration());
  EXPECT_LT(lag.age, absl::Hours(1));
}

TEST_F(KafkaJournalTest, AnotherClaimEndsTheOwner) {
  const auto owner = Open("a");
  const auto standby = Open("b");
  Own(owner.get());
  EXPECT_EQ(*Append(owner.get(), 0, {"x"}), 0u);
  Own(standby.get());
  EXPECT_THAT(standby->records[0], ElementsAre("x"));
  EXPECT_EQ(*Append(standby.get(), 0, {"y"}), 1u);
  EXPECT_EQ(Append(owner.get(), 0, {"late"}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  owner->lost.WaitForNotification();
  EXPECT_FALSE(owner->journal->IsOwner());
  EXPECT_THAT(std::string(owner->why.message()), HasSubstr("another node"));
  EXPECT_EQ(*Append(standby.get(), 0, {"z"}), 2u);
  EXPECT_THAT(ReadAll()[0], ElementsAre("x", "y", "z"));
}

TEST_F(KafkaJournalTest, WhatBrokersRefuseIsSentAgain) {
  const auto owner = Open("a");
  Own(owner.get());
  brokers->Fail(MockBrokers::kProduce,
                {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                 RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
                 RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                 RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                 RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
                 RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
                 RD_KAFKA_RESP_ERR__TRANSPORT});
  EXPECT_EQ(*Append(owner.get(), 0, {"x"}), 0u);
  EXPECT_THAT(ReadAll()[0], ElementsAre("x"));
}

TEST_F(KafkaJournalTest, WhatIsTooLargeIsSentInPieces) {
  const auto owner = Open("a");
  Own(owner.get());
  brokers->Fail(MockBrokers::kProduce, {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                        RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE});
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(*Append(owner.get(), 0, {"a", large}), 0u);
  EXPECT_GT(owner->journal->statistics().written_bytes, large.size());
  EXPECT_THAT(ReadAll()[0], ElementsAre("a", large));
}

TEST_F(KafkaJournalTest, MessagesOfOthersAreReadAndVoid) {
  const auto owner = Open("a");
  Own(owner.get());
  auto other = KafkaProducer::Open(brokers->options(), topic_);
  ASSERT_TRUE(other.ok()) << other.status();
  int sent = 0;
  for (int i = 0; i < 3; ++i) {
    (*other)->Send(0, "garbage", [&](const SendReport& report, std::string) {
      EXPECT_EQ(report.status, absl::OkStatus());
      ++sent;
    });
  }
  while (sent < 3) (*other)->Poll(absl::Seconds(10));
  EXPECT_EQ(*Append(owner.get(), 0, {"x"}), 0u);
  EXPECT_EQ(*Append(owner.get(), 0, {"y"}), 1u);
  EXPECT_THAT(ReadAll()[0], ElementsAre("x", "y"));
}

TEST_F(KafkaJournalTest, AnAppendWaitsForBrokers) {
  const auto owner = Open("a", {{"message.timeout.ms", "200"}});
  Own(owner.get());
  SetBrokers(false);
  const auto appended = Begin(owner.get(), 0, {"x"});
  EXPECT_FALSE(
      appended->done.WaitForNotificationWithTimeout(absl::Milliseconds(500)));
  SetBrokers(true);
  appended->done.WaitForNotification();
  EXPECT_EQ(*appended->position, 0u);
}

TEST_F(KafkaJournalTest, ANewLeaderGoesOn) {
  for (int partition = 0; partition < 4; ++partition) {
    rd_kafka_mock_partition_set_leader(brokers->cluster(), topic_.c_str(),
                                       partition, 1);
  }
  const auto owner = Open("a");
  Own(owner.get());
  EXPECT_EQ(*Append(owner.get(), 0, {"x"}), 0u);
  rd_kafka_mock_partition_set_leader(brokers->cluster(), topic_.c_str(), 0, 2);
  EXPECT_EQ(*Append(owner.get(), 0, {"y"}), 1u);
  EXPECT_THAT(ReadAll()[0], ElementsAre("x", "y"));
}

TEST_F(KafkaJournalTest, StopEndsWhatWaitsForBrokers) {
  const auto owner = Open("a");
  const auto standby = Open("b");
  Own(owner.get());
  SetBrokers(false);
  const auto sent = Begin(owner.get(), 0, {"x"});
  const auto waits = Begin(owner.get(), 0, {"y"});
  owner->journal->Stop();
  for (const auto& appended : {sent, waits}) {
    ASSERT_TRUE(appended->done.HasBeenNotified());
    EXPECT_EQ(appended->position.status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_FALSE(owner->journal->IsOwner());
  EXPECT_EQ(Append(owner.get(), 0, {"z"}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  standby->journal->Stop();
  standby->journal->AwaitMore(absl::InfiniteDuration());
  EXPECT_EQ(standby->journal->Claim().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(KafkaJournalTest, AClaimThatBrokersDoNotTakeIsRepeated) {
  const auto node = Open("a");
  brokers->Fail(MockBrokers::kProduce, {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS});
  EXPECT_EQ(node->journal->Claim().code(), absl::StatusCode::kUnavailable);
  ASSERT_EQ(Read(node.get()), absl::OkStatus());
  EXPECT_FALSE(node->journal->IsOwner());
  Own(node.get());
  EXPECT_EQ(*Append(node.get(), 0, {"x"}), 0u);
}

TEST_F(KafkaJournalTest, AWakeEndsAWaitOnce) {
  const auto node = Open("a");
  node->journal->Wake();
  node->journal->AwaitMore(absl::InfiniteDuration());
  node->journal->AwaitMore(absl::Milliseconds(1));
}

TEST_F(KafkaJournalTest, ASnapshotHasWhatWasThereAndNothingLater) {
  const auto former = Open("a");
  EXPECT_EQ(former->journal->OpenSnapshot().status().code(),
            absl::StatusCode::kFailedPrecondition);
  Own(former.get());
  EXPECT_EQ(*Append(former.get(), 0, {"x"}), 0u);
  const auto owner = Open("b");
  Own(owner.get());
  EXPECT_EQ(*Append(owner.get(), 0, {"y", "z"}), 1u);
  EXPECT_EQ(*Append(owner.get(), 2, {"other"}), 0u);
  const auto snapshot = owner->journal->OpenSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(*Append(owner.get(), 0, {"later"}), 3u);
  EXPECT_EQ(*Append(owner.get(), 3, {"later"}), 0u);
  const Records records = ReadAll(snapshot->get());
  EXPECT_THAT(records, ElementsAre(Pair(0, ElementsAre("x", "y", "z")),
                                   Pair(2, ElementsAre("other"))));
  owner->journal->Stop();
  EXPECT_TRUE(absl::IsCancelled((*snapshot)->Read(
      absl::Seconds(10),
      [](uint32_t, uint64_t, absl::string_view) { return absl::OkStatus(); })));
}

TEST_F(KafkaJournalTest, AJournalOfOnePartitionIsThatOneAlone) {
  const auto second = Open("a", {}, 2);
  const auto third = Open("b", {}, 3);
  const auto standby = Open("c", {}, 2);
  EXPECT_EQ(second->journal->partitions(), 1u);
  Own(second.get());
  Own(third.get());
  EXPECT_EQ(*Append(second.get(), 0, {"x", "y"}), 0u);
  EXPECT_EQ(*Append(third.get(), 0, {"z"}), 0u);
  EXPECT_EQ(Append(second.get(), 1, {"x"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_NE(second->journal->id(), 0u);
  EXPECT_NE(second->journal->id(), third->journal->id());
  while (standby->journal->End(0) < 2) {
    standby->journal->AwaitMore(absl::Seconds(10));
    ASSERT_EQ(Read(standby.get()), absl::OkStatus());
  }
  EXPECT_THAT(standby->records[0], ElementsAre("x", "y"));
  EXPECT_EQ(standby->journal->lag(absl::Now()).messages, 0u);
  // Both are in the topic, where a journal of all partitions finds them.
  const Records all = ReadAll();
  EXPECT_THAT(all, ElementsAre(Pair(2, ElementsAre("x", "y")),
                               Pair(3, ElementsAre("z"))));

  Own(standby.get());
  EXPECT_EQ(Append(second.get(), 0, {"late"}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  second->lost.WaitForNotification();
  EXPECT_THAT(std::string(second->why.message()), HasSubstr("partition 2"));
  EXPECT_TRUE(third->journal->IsOwner());
  EXPECT_EQ(*Append(third.get(), 0, {"z"}), 1u);
}

TEST_F(KafkaJournalTest, ASnapshotOfOnePartitionHasNoOther) {
  const auto other = Open("a", {}, 0);
  const auto owner = Open("b", {}, 1);
  Own(other.get());
  Own(owner.get());
  EXPECT_EQ(*Append(other.get(), 0, {"other"}), 0u);
  EXPECT_EQ(*Append(owner.get(), 0, {"x", "y"}), 0u);
  const auto snapshot = owner->journal->OpenSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_THAT((*snapshot)->first(), ElementsAre(0));
  EXPECT_THAT(ReadAll(snapshot->get()),
              ElementsAre(Pair(0, ElementsAre("x", "y"))));
}

// Of whichever node, and whoever owns.
TEST_F(KafkaJournalTest, ATopicsSnapshotHasWhatWasThereAndNothingLater) {
  const auto first = Open("a", {}, 0);
  const auto second = Open("b", {}, 1);
  Own(first.get());
  Own(second.get());
  EXPECT_EQ(*Append(first.get(), 0, {"x", "y"}), 0u);
  EXPECT_EQ(*Append(second.get(), 0, {"z"}), 0u);
  const auto snapshot = OpenTopicSnapshot(brokers->options(), topic_);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_THAT((*snapshot)->first(), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(*Append(first.get(), 0, {"later"}), 2u);
  // Another owner's are no others.
  const auto third = Open("c", {}, 1);
  Own(third.get());
  EXPECT_EQ(*Append(third.get(), 0, {"later"}), 1u);
  const Records records = ReadAll(snapshot->get());
  EXPECT_THAT(records, ElementsAre(Pair(0, ElementsAre("x", "y")),
                                   Pair(1, ElementsAre("z"))));
  EXPECT_TRUE(first->journal->IsOwner());
  // What it has left counts for nobody.
  EXPECT_THAT(ReadAll(), ElementsAre(Pair(0, ElementsAre("x", "y", "later")),
                                     Pair(1, ElementsAre("z", "later"))));
}

TEST_F(KafkaJournalTest, ATopicsSnapshotSurvivesErrorsOfBrokers) {
  const auto owner = Open("a");
  Own(owner.get());
  EXPECT_EQ(*Append(owner.get(), 0, {"x"}), 0u);
  // Of a mark: another one is appended.
  brokers->Fail(MockBrokers::kProduce,
                {RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                 RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION});
  const auto snapshot = OpenTopicSnapshot(brokers->options(), topic_);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_THAT(ReadAll(snapshot->get()), ElementsAre(Pair(0, ElementsAre("x"))));
}

TEST_F(KafkaJournalTest, APartitionThatTheTopicLacksIsNotFound) {
  KafkaJournalOptions options;
  options.kafka = brokers->options();
  options.topic = topic_;
  options.partition = 4;
  const absl::Status status = KafkaJournal::Open(options).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("4 partitions"));
}

TEST_F(KafkaJournalTest, OnlyAnOwnerAppendsAndTrims) {
  const auto node = Open("a");
  EXPECT_EQ(Append(node.get(), 0, {"x"}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(node->journal->TrimBefore(0, 0).code(),
            absl::StatusCode::kFailedPrecondition);
  Own(node.get());
  EXPECT_EQ(Append(node.get(), 4, {"x"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(node->journal->TrimBefore(0, 0), absl::OkStatus());
}

TEST(KafkaOptionsTest, ErrorsNameTheProperty) {
  KafkaOptions options;
  EXPECT_EQ(CheckKafkaOptions(options).code(),
            absl::StatusCode::kInvalidArgument);
  options.brokers = {"127.0.0.1:1"};
  options.properties = {{"compression.codec", "lz4"},
                        {"security.protocol", "plaintext"}};
  EXPECT_EQ(CheckKafkaOptions(options), absl::OkStatus());
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"acks", "1"},
                                          {"enable.idempotence", "true"},
                                          {"max.in.flight", "5"},
                                          {"isolation.level", "read_committed"},
                                          {"sasl.passwort", "secret"},
                                          {"socket.timeout.ms", "secret"}}) {
    options.properties = {{name, value}};
    const absl::Status status = CheckKafkaOptions(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace timecache::server
