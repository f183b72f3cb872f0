// Settlements as the engine takes them.
#include "server/rpc/watch/settle.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/rpc/call/request.h"
#include "server/rpc/watch/delivery_token.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Token(uint64_t event_id, int attempt, int returns = 0,
                  uint64_t group_id = 0) {
  Delivery delivery;
  delivery.event_id = event_id;
  delivery.attempt = attempt;
  delivery.returns = returns;
  delivery.group_id = group_id;
  char token[kMaxDeliveryTokenBytes];
  return std::string(token, WriteDeliveryToken(delivery, token));
}

absl::StatusOr<Settlement> Convert(const std::string& text) {
  v1::Settlement from;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &from));
  from.set_delivery_token(Token(1, 1));
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

TEST(SettlementTest, ATokenNamesADelivery) {
  v1::Settlement from;
  from.set_delivery_token(Token(UINT64_MAX, INT32_MAX, INT32_MAX, kMaxGroupId));
  from.mutable_ack();
  const auto ack = ToSettlement(from);
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->event_id, UINT64_MAX);
  EXPECT_EQ(ack->attempt, INT32_MAX);
  EXPECT_EQ(ack->returns, INT32_MAX);
  EXPECT_EQ(ack->group_id, kMaxGroupId);
  EXPECT_EQ(ack->action, SettleAction::kAck);
  const std::string token = from.delivery_token();
  std::vector<std::string> damaged = {token + '\0'};
  for (size_t size = 0; size < token.size(); ++size) {
    damaged.push_back(token.substr(0, size));
  }
  for (const std::string& bytes : damaged) {
    from.set_delivery_token(bytes);
    EXPECT_EQ(FieldOf(ToSettlement(from).status()), "delivery_token");
  }
}

TEST(SettlementTest, ATokenNamesThePartitionUnlessItIsTheFirst) {
  Delivery delivery;
  delivery.event_id = 300;
  delivery.attempt = 1;
  delivery.group_id = 5;
  const auto written = [&delivery] {
    char token[kMaxDeliveryTokenBytes];
    return std::string(token, WriteDeliveryToken(delivery, token));
  };
  const std::string first = written();
  EXPECT_EQ(first, std::string("\5\0\0\0\0\xac\2\1\0", 9));
  for (const int partition : {1, 2, 63}) {
    delivery.partition = static_cast<uint8_t>(partition);
    EXPECT_EQ(written(), first + static_cast<char>(partition));
    for (const std::string& token : {written(), OperatorToken(delivery)}) {
      v1::Settlement from;
      from.set_delivery_token(token);
      from.mutable_ack();
      const auto ack = ToSettlement(from);
      ASSERT_TRUE(ack.ok()) << ack.status();
      EXPECT_EQ(ack->partition, partition);
      EXPECT_EQ(ack->event_id, 300u);
    }
  }
  for (const std::string& end : {std::string(1, 64), std::string(2, 1)}) {
    v1::Settlement from;
    from.set_delivery_token(first + end);
    from.mutable_ack();
    EXPECT_EQ(FieldOf(ToSettlement(from).status()), "delivery_token");
  }
}

TEST(SettlementTest, AnOperatorsTokenNamesNoAttempt) {
  v1::Settlement from;
  from.set_delivery_token(Token(1, 0));
  from.mutable_ack();
  const auto ack = ToSettlement(from);
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->event_id, 1u);
  EXPECT_EQ(ack->attempt, 0);
}

TEST(SettlementTest, ANackMayHaveADelay) {
  EXPECT_EQ(Convert("nack {}")->delay_us, std::nullopt);
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
  from.set_delivery_token(Token(1, 1));
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

TEST(SettlementTest, FieldsAreRefusedByName) {
  ExpectRefused("", "action", "ack, nack, put_back, extend or terminate");
  const std::string text(257, 'x');
  ExpectRefused("nack { reason: '" + text + "' }", "nack.reason", "not 257");
  ExpectRefused("terminate { reason: '" + text + "' }", "terminate.reason",
                "256");
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
  from.set_delivery_token(Token(1, 1));
  // Field 9, an empty message.
  ASSERT_TRUE(from.MergeFromString(std::string("\x4a\x00", 2)));
  const absl::Status status = ToSettlement(from).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(FieldOf(status), "action");
}

// Requests of ACKs alone are read by other code than all others.
TEST(SettleRequestTest, AcksAreReadInPlace) {
  v1::SettleExpiredRequest from;
  from.set_namespace_("n");
  from.set_group("g");
  for (uint64_t i = 1; i <= 3; ++i) {
    v1::Settlement* const ack = from.add_settlements();
    ack->set_delivery_token(Token(i, 2));
    ack->mutable_ack();
  }
  SettleRequest acks;
  ASSERT_TRUE(TakeRequest(ToBytes(from), &acks, "").ok());
  from.mutable_settlements(1)->set_delivery_token("damaged");
  SettleRequest mixed;
  ASSERT_TRUE(TakeRequest(ToBytes(from), &mixed, "").ok());

  EXPECT_THAT(acks.checked(), IsEmpty());
  ASSERT_EQ(acks.settlements().size(), 3u);
  ASSERT_EQ(mixed.settlements().size(), 2u);
  ASSERT_EQ(mixed.checked().size(), 3u);
  EXPECT_FALSE(mixed.checked()[1].ok());
  for (const SettleRequest* request : {&acks, &mixed}) {
    EXPECT_EQ(request->namespace_name(), "n");
    EXPECT_EQ(request->group(), "g");
    EXPECT_EQ(request->count(), 3u);
    EXPECT_EQ(request->settlements().front().event_id, 1u);
    EXPECT_EQ(request->settlements().back().event_id, 3u);
    EXPECT_EQ(request->settlements().back().attempt, 2);
    EXPECT_EQ(request->settlements().back().action, SettleAction::kAck);
  }
}

TEST(SettleRequestTest, AnswersAreAsTheGeneratedOnes) {
  v1::SettleExpiredRequest from;
  for (int i = 0; i < 2; ++i) {
    from.add_settlements()->set_delivery_token(Token(1, 1));
    from.mutable_settlements(i)->mutable_ack();
  }
  SettleRequest request;
  ASSERT_TRUE(TakeRequest(ToBytes(from), &request, "").ok());
  SettleAnswer answer = {&request, std::vector<SettleResult>(2)};
  v1::SettleExpiredResponse response;
  ASSERT_TRUE(ParseRequest(ToBytes(answer, nullptr), &response).ok());
  EXPECT_EQ(response.DebugString(), "results {\n}\nresults {\n}\n");
  answer.results[1].status = absl::NotFoundError("gone");
  ASSERT_TRUE(ParseRequest(ToBytes(answer, nullptr), &response).ok());
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_FALSE(response.results(0).has_error());
  EXPECT_EQ(response.results(1).error().message(), "gone");
}

}  // namespace
}  // namespace timecache::server
