// Settlements as the engine takes them.
#include "server/rpc/watch/settle.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Settlement> Convert(const std::string& text) {
  v1::Settlement from;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &from));
  return ToSettlement(from);
}

void ExpectRefused(const std::string& text, const std::string& field,
                   const std::string& limit) {
  SCOPED_TRACE(text);
  const absl::Status status = Convert(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(FieldOf(status), field) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(limit));
}

TEST(SettlementTest, AnAckHasNumberAndAttempt) {
  const auto ack = Convert("event_id: 18446744073709551615 attempt: 3 ack {}");
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->event_id, UINT64_MAX);
  EXPECT_EQ(ack->attempt, 3);
  EXPECT_EQ(ack->action, SettleAction::kAck);
}

TEST(SettlementTest, ANackMayHaveADelay) {
  EXPECT_EQ(Convert("nack {}")->delay_us, 0);
  const auto nack = Convert("nack { delay { seconds: 2 nanos: 1 } }");
  ASSERT_TRUE(nack.ok()) << nack.status();
  EXPECT_EQ(nack->action, SettleAction::kNack);
  EXPECT_EQ(nack->delay_us, 2'000'001);
}

TEST(SettlementTest, APutBackMayHaveATtl) {
  EXPECT_EQ(Convert("put_back {}")->ttl_us, 0);
  const auto put_back = Convert("put_back { ttl { nanos: 1000000 } }");
  ASSERT_TRUE(put_back.ok()) << put_back.status();
  EXPECT_EQ(put_back->action, SettleAction::kPutBack);
  EXPECT_EQ(put_back->ttl_us, 1'000);
}

TEST(SettlementTest, APutBackMayHaveADueDate) {
  EXPECT_EQ(Convert("put_back {}")->expire_at_us, std::nullopt);
  const auto put_back =
      Convert("put_back { expire_at { seconds: -7 } allow_past: true }");
  ASSERT_TRUE(put_back.ok()) << put_back.status();
  EXPECT_EQ(put_back->ttl_us, 0);
  EXPECT_EQ(put_back->expire_at_us, -7'000'000);
  EXPECT_TRUE(put_back->allow_past);
  ExpectRefused("put_back { expire_at { nanos: -1 } }", "expire_at",
                "google.protobuf.Timestamp");
}

TEST(SettlementTest, OfTwoActionsTheLastOneCounts) {
  v1::Settlement from;
  from.mutable_put_back()->mutable_ttl()->set_seconds(-1);
  std::string bytes = from.SerializeAsString();
  from.mutable_nack()->mutable_delay()->set_seconds(2);
  bytes += from.SerializeAsString();
  ASSERT_TRUE(from.ParseFromString(bytes));
  const auto nack = ToSettlement(from);
  ASSERT_TRUE(nack.ok()) << nack.status();
  EXPECT_EQ(nack->action, SettleAction::kNack);
  EXPECT_EQ(nack->delay_us, 2'000'000);
  EXPECT_EQ(nack->ttl_us, 0);
}

TEST(SettlementTest, AnAttemptThatNobodyCountsToStaysOneThatWasNotGiven) {
  EXPECT_EQ(Convert("attempt: 2147483648 ack {}")->attempt, INT32_MAX);
}

TEST(SettlementTest, FieldsAreRefusedByName) {
  ExpectRefused("", "action", "ack, nack, put_back or extend");
  ExpectRefused("event_id: 1 attempt: 1", "action", "must be set");
  ExpectRefused("put_back { ttl {} }", "ttl", "1ms");
  ExpectRefused("put_back { ttl { seconds: -1 } }", "ttl", "1ms");
  ExpectRefused("put_back { ttl { nanos: 1000000000 } }", "ttl",
                "google.protobuf.Duration");
  ExpectRefused("nack { delay { nanos: 1000000000 } }", "delay",
                "google.protobuf.Duration");
}

// An action that a later client knows, and this server does not.
TEST(SettlementTest, AnActionThatIsNotKnownIsNone) {
  v1::Settlement from;
  from.set_event_id(1);
  from.set_attempt(1);
  // Field 9, an empty message.
  ASSERT_TRUE(from.MergeFromString(std::string("\x4a\x00", 2)));
  const absl::Status status = ToSettlement(from).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(FieldOf(status), "action");
}

}  // namespace
}  // namespace timecache::server
