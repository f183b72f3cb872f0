// SettleExpired over the wire: what becomes of an event that a group's member
// was given.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/group_client.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using Data = v1::TimeCacheService::Stub;
using grpc::StatusCode;

constexpr char kAckText[] = "ack {}";
constexpr char kNack[] = "nack {}";
constexpr char kPutBack[] = "put_back {}";
// The default.
constexpr int64_t kSettleTimeoutUs = 30 * server::kMicrosPerSecond;

class SettleTest : public ::testing::Test {
 protected:
  // An entry that died, in the hands of member_.
  v1::ExpiredEvent Given(const std::string& key = "a") {
    server_.Put(key, key + "'s value", server::kMicrosPerSecond);
    server_.AdvanceTo(DeathUs(server_.now_us(), server::kMicrosPerSecond));
    return group_.TakeOne(member_.get());
  }
  v1::SettleResult Settle(const v1::ExpiredEvent& event,
                          const std::string& how) {
    return group_.Settle(event, how);
  }
  Reply<v1::SettleExpiredResponse> Call(
      const v1::SettleExpiredRequest& request) {
    return test::Call(server_.data(), &Data::SettleExpired, request);
  }

  TestServer server_;
  GroupClient group_{&server_};
  std::unique_ptr<WatchReader> member_ = group_.Join();
};

// Its stream has ended, and the next member has the same attempt.
TEST_F(SettleTest, ANackThatNamesItsReturnsEndsNoOtherDelivery) {
  const v1::ExpiredEvent first = Given();
  member_->Cancel();
  const auto other = group_.Start();
  const v1::ExpiredEvent second = group_.TakeOne(other.get());
  EXPECT_EQ(second.attempt(), 1u);
  EXPECT_EQ(second.returns(), 1u);
  for (const char* how : {"returns: 0 nack {}", "returns: 0 put_back {}",
                          "returns: 0 extend {}"}) {
    ExpectError(ErrorOf(Settle(first, how)), StatusCode::FAILED_PRECONDITION,
                v1::STALE_ATTEMPT);
  }
  EXPECT_EQ(group_.Statistics().in_flight(), 1u);
  EXPECT_FALSE(Settle(first, "returns: 0 ack {}").has_error());
}

TEST_F(SettleTest, EachOfARequestSucceedsOrFailsByItself) {
  const v1::ExpiredEvent a = Given("a");
  const v1::ExpiredEvent b = Given("b");
  const v1::ExpiredEvent c = Given("c");
  v1::SettleExpiredRequest request;
  request.set_namespace_("default");
  request.set_group("g");
  const auto add = [&request](const v1::ExpiredEvent& event,
                              const std::string& how) {
    v1::Settlement* const to = request.add_settlements();
    *to = Proto<v1::Settlement>(how);
    to->set_event_id(event.event_id());
    to->set_attempt(event.attempt());
  };
  add(a, kAckText);
  add(b, "");
  add(a, kAckText);
  add(b, kPutBack);
  add(c, "nack { delay { seconds: -1 } }");
  add(c, kNack);
  const auto response = Must(Call(request));
  ASSERT_EQ(response.results_size(), 6);
  EXPECT_FALSE(response.results(0).has_error());
  ExpectInvalid(ErrorOf(response.results(1)), "action", "put_back");
  ExpectError(ErrorOf(response.results(2)), StatusCode::NOT_FOUND,
              v1::EVENT_NOT_UNSETTLED);
  EXPECT_FALSE(response.results(3).has_error());
  EXPECT_EQ(response.results(3).version(), server_.Get("b").entry().version());
  ExpectInvalid(ErrorOf(response.results(4)), "nack.delay", "168h");
  EXPECT_FALSE(response.results(5).has_error());
  EXPECT_EQ(group_.TakeOne(member_.get()).key(), "c");
}

TEST_F(SettleTest, AFieldOutOfItsRangeIsNamedAndTheEventStays) {
  const v1::ExpiredEvent event = Given();
  const struct {
    std::string how;
    const char* field;
    const char* limit;
  } kCases[] = {
      {"", "action", "must be set"},
      {absl::StrCat(kAckText, " attempt: 2"), "attempt", "1"},
      {absl::StrCat(kAckText, " attempt: 4294967295"), "attempt", "1"},
      {"nack { delay { nanos: -1000 } }", "nack.delay", "168h"},
      {"nack { delay { seconds: 604800 nanos: 1 } }", "nack.delay", "168h"},
      {"nack { delay { seconds: 1 nanos: -1 } }", "nack.delay",
       "google.protobuf.Duration"},
      {"put_back { ttl {} }", "put_back.ttl", "1ms"},
      {"put_back { ttl { nanos: 999000 } }", "put_back.ttl", "1ms"},
      {"put_back { ttl { seconds: 604801 } }", "put_back.ttl", "168h"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.how);
    ExpectInvalid(ErrorOf(Settle(event, c.how)), c.field, c.limit);
    EXPECT_EQ(group_.Statistics().in_flight(), 1u);
  }
  auto request = Proto<v1::SettleExpiredRequest>(
      "namespace: 'default' group: 'g' settlements { ack {} }");
  v1::Settlement* const settlement = request.mutable_settlements(0);
  settlement->set_event_id(event.event_id());
  ExpectInvalid(ErrorOf(Must(Call(request)).results(0)), "attempt", "1");
  // An action that a later client knows, and this server does not.
  settlement->set_attempt(event.attempt());
  settlement->clear_ack();
  settlement->GetReflection()
      ->MutableUnknownFields(settlement)
      ->AddLengthDelimited(9, "");
  ExpectInvalid(ErrorOf(Must(Call(request)).results(0)), "action",
                "must be set");
  EXPECT_EQ(group_.Statistics().in_flight(), 1u);
  EXPECT_FALSE(Settle(event, kAckText).has_error());
}

TEST_F(SettleTest, ARequestThatCannotBeTriedFailsAsAWhole) {
  auto request = Proto<v1::SettleExpiredRequest>(
      "namespace: 'default' "
      "group: 'g'");
  ExpectInvalid(Call(request).status, "settlements", "1 to 4096");
  const v1::ExpiredEvent event = Given();
  for (int i = 0; i < 4'097; ++i) {
    v1::Settlement* const to = request.add_settlements();
    to->set_event_id(event.event_id());
    to->set_attempt(1);
    to->mutable_ack();
  }
  ExpectInvalid(Call(request).status, "settlements", "not 4097");
  EXPECT_EQ(group_.Statistics().in_flight(), 1u);
  request.mutable_settlements()->RemoveLast();
  EXPECT_EQ(Must(Call(request)).results_size(), 4'096);
  EXPECT_EQ(group_.Statistics().acked(), 1u);

  request.set_namespace_("none");
  ExpectError(Call(request).status, StatusCode::NOT_FOUND,
              v1::NAMESPACE_NOT_FOUND, "none");
  request.set_namespace_("None");
  ExpectInvalid(Call(request).status, "namespace", "63");
  request.set_namespace_("default");
  request.set_group("none");
  ExpectError(Call(request).status, StatusCode::NOT_FOUND, v1::GROUP_NOT_FOUND,
              "none");
  // Also where no settlement would get so far.
  request.clear_settlements();
  request.add_settlements();
  ExpectError(Call(request).status, StatusCode::NOT_FOUND, v1::GROUP_NOT_FOUND);
}

TEST_F(SettleTest, WhatIsNeverSettledBecomesADeadLetter) {
  server_.Create("dead");
  Must(test::Call(server_.namespaces(),
                  &v1::NamespaceService::Stub::UpdateNamespace,
                  Proto<v1::UpdateNamespaceRequest>(
                      "namespace { name: 'default' "
                      "options { dead_letter_namespace: 'dead' } }")));
  Must(test::Call(
      server_.groups(), &v1::GroupService::Stub::UpdateGroup,
      Proto<v1::UpdateGroupRequest>("group { namespace: 'default' name: 'g' "
                                    "options { max_attempts: 2 } }")));
  v1::ExpiredEvent event = Given();
  EXPECT_FALSE(Settle(event, kNack).has_error());
  event = group_.TakeOne(member_.get());
  EXPECT_EQ(event.attempt(), 2u);
  server_.AdvanceBy(kSettleTimeoutUs);
  const std::string key = absl::StrCat("default/g/", event.event_id());
  const v1::Entry letter = server_.Get(key, "dead").entry();
  v1::ExpiredEvent read;
  ASSERT_TRUE(read.ParseFromString(letter.value()));
  EXPECT_EQ(read.dead_letter().group(), "g");
  EXPECT_EQ(read.dead_letter().attempts(), 2u);
  EXPECT_EQ(read.dead_letter().reason(), v1::DEAD_LETTER_REASON_TIMED_OUT);
  EXPECT_EQ(ToUs(read.dead_letter().time()), server_.now_us());
  EXPECT_EQ(read.key(), "a");
  EXPECT_EQ(read.value(), "a's value");
  EXPECT_EQ(read.event_id(), event.event_id());
  EXPECT_EQ(read.attempt(), 2u);
  EXPECT_EQ(group_.Statistics().dead_lettered(), 1u);
  EXPECT_EQ(group_.Statistics().in_flight(), 0u);
  ExpectError(ErrorOf(Settle(event, kAckText)), StatusCode::NOT_FOUND,
              v1::EVENT_NOT_UNSETTLED);

  grpc::ClientContext context;
  SetDeadline(&context);
  auto scan = server_.data()->Scan(
      &context,
      Proto<v1::ScanRequest>("namespace: 'dead' key_prefix: 'default/g/'"));
  v1::ScanResponse page;
  ASSERT_TRUE(scan->Read(&page));
  ASSERT_EQ(page.entries_size(), 1);
  EXPECT_EQ(page.entries(0).key(), key);
  EXPECT_FALSE(scan->Read(&page));
  EXPECT_TRUE(scan->Finish().ok());
}

}  // namespace
}  // namespace timecache::test
