#include "server/log/kafka/kafka_journal.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/log/kafka/mock_brokers.h"

namespace timecache::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTopic[] = "c.journal";

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

  KafkaJournalTest() { brokers_.CreateTopic(kTopic, 4); }

  std::unique_ptr<Node> Open(const std::string& name) {
    auto node = std::make_unique<Node>();
    KafkaJournalOptions options;
    options.kafka = brokers_.options();
    options.topic = kTopic;
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

  static absl::StatusOr<uint64_t> Append(Node* node, uint32_t partition,
                                         std::vector<std::string> records) {
    absl::Notification done;
    absl::StatusOr<uint64_t> result;
    node->journal->Append(
        partition, std::move(records), Durability::kSync,
        [&](absl::StatusOr<uint64_t> position, std::vector<std::string>) {
          result = std::move(position);
          done.Notify();
        });
    done.WaitForNotification();
    return result;
  }

  MockBrokers brokers_;
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
  EXPECT_EQ(standby->journal->lag().messages, 0u);
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
  const auto reader = Open("c");
  ASSERT_EQ(Read(reader.get()), absl::OkStatus());
  EXPECT_THAT(reader->records[0], ElementsAre("x", "y", "z"));
}

}  // namespace
}  // namespace timecache::server
