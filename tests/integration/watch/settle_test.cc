// SettleExpired over the wire: what becomes of an event that a group's member
// was given.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
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
    to->set_delivery_token(event.delivery_token());
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

TEST_F(SettleTest, AReasonIsInTheNextDeliveryAndInTheDeadLetter) {
  server_.Create("dead");
  Must(test::Call(server_.namespaces(),
                  &v1::NamespaceService::Stub::UpdateNamespace,
                  Proto<v1::UpdateNamespaceRequest>(
                      "namespace { name: 'default' "
                      "options { dead_letter_namespace: 'dead' } }")));
  EXPECT_FALSE(Settle(Given(), "nack { reason: 'no ink' }").has_error());
  const v1::ExpiredEvent again = group_.TakeOne(member_.get());
  EXPECT_EQ(again.attempt(), 2u);
  EXPECT_EQ(again.last_reason(), "no ink");
  EXPECT_FALSE(Settle(again, "terminate { reason: 'no printer' }").has_error());
  EXPECT_TRUE(Await([&] { return group_.Statistics().dead_lettered() == 1; }));
  const std::string key = absl::StrCat("default/g/", again.event_id());
  v1::ExpiredEvent letter;
  ASSERT_TRUE(letter.ParseFromString(server_.Get(key, "dead").entry().value()));
  EXPECT_EQ(letter.dead_letter().reason(), v1::DEAD_LETTER_REASON_TERMINATED);
  EXPECT_EQ(letter.dead_letter().reason_text(), "no printer");
  EXPECT_EQ(letter.dead_letter().attempts(), 2u);
}

TEST_F(SettleTest, ARequestThatCannotBeTriedFailsAsAWhole) {
  auto request = Proto<v1::SettleExpiredRequest>(
      "namespace: 'default' "
      "group: 'g'");
  ExpectInvalid(Call(request).status, "settlements", "1 to 4096");
  const v1::ExpiredEvent event = Given();
  for (int i = 0; i < 4'097; ++i) {
    v1::Settlement* const to = request.add_settlements();
    to->set_delivery_token(event.delivery_token());
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

}  // namespace
}  // namespace timecache::test
