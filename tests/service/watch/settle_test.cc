// Settlements as the engine takes them.
#include "server/service/watch/settle.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"

namespace timecache {
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
  const auto ack = Convert(
      "event_id: 18446744073709551615 attempt: 3 action: "
      "SETTLE_ACTION_ACK");
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->event_id, UINT64_MAX);
  EXPECT_EQ(ack->attempt, 3);
  EXPECT_EQ(ack->action, SettleAction::kAck);
}

TEST(SettlementTest, ANackMayHaveADelay) {
  EXPECT_EQ(Convert("action: SETTLE_ACTION_NACK")->delay_us, 0);
  const auto nack =
      Convert("action: SETTLE_ACTION_NACK delay { seconds: 2 nanos: 1 }");
  ASSERT_TRUE(nack.ok()) << nack.status();
  EXPECT_EQ(nack->action, SettleAction::kNack);
  EXPECT_EQ(nack->delay_us, 2'000'001);
}

TEST(SettlementTest, APutBackMayHaveATtl) {
  EXPECT_EQ(Convert("action: SETTLE_ACTION_PUT_BACK")->ttl_us, 0);
  const auto put_back =
      Convert("action: SETTLE_ACTION_PUT_BACK ttl { nanos: 1000000 }");
  ASSERT_TRUE(put_back.ok()) << put_back.status();
  EXPECT_EQ(put_back->action, SettleAction::kPutBack);
  EXPECT_EQ(put_back->ttl_us, 1'000);
}

TEST(SettlementTest, AnAttemptThatNobodyCountsToStaysOneThatWasNotGiven) {
  EXPECT_EQ(Convert("attempt: 2147483648 action: SETTLE_ACTION_ACK")->attempt,
            INT32_MAX);
}

TEST(SettlementTest, FieldsAreRefusedByName) {
  ExpectRefused("", "action", "ACK, NACK or PUT_BACK");
  ExpectRefused("action: 4", "action", "4");
  ExpectRefused("action: SETTLE_ACTION_ACK delay {}", "delay", "NACK");
  ExpectRefused("action: SETTLE_ACTION_PUT_BACK delay {}", "delay", "NACK");
  ExpectRefused("action: SETTLE_ACTION_ACK ttl { seconds: 1 }", "ttl",
                "PUT_BACK");
  ExpectRefused("action: SETTLE_ACTION_NACK ttl { seconds: 1 }", "ttl",
                "PUT_BACK");
  ExpectRefused("action: SETTLE_ACTION_PUT_BACK ttl {}", "ttl", "1ms");
  ExpectRefused("action: SETTLE_ACTION_PUT_BACK ttl { seconds: -1 }", "ttl",
                "1ms");
  ExpectRefused("action: SETTLE_ACTION_NACK delay { nanos: 1000000000 }",
                "delay", "google.protobuf.Duration");
}

}  // namespace
}  // namespace timecache
