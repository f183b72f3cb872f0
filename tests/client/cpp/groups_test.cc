// The calls of timecache::Client about consumer groups, against a stand-in for
// the server.
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/client.h"

namespace timecache {
namespace {

using ::testing::UnorderedElementsAre;

class GroupsTest : public ::testing::Test {
 protected:
  FakeService service_;
  Client client_ = service_.MakeClient();
};

TEST_F(GroupsTest, UpdateNamesWhatTakesItsDefault) {
  ASSERT_TRUE(client_.CreateGroup("billing").ok());
  ASSERT_TRUE(client_.UpdateGroup("billing", {.max_attempts = 7}).ok());
  EXPECT_FALSE(service_.Last<v1::UpdateGroupRequest>().has_update_mask());
  const auto group = client_.UpdateGroup(
      "billing", {.max_attempts = 8, .max_backlog_bytes = 3 << 20},
      {"ack_timeout", "max_attempts"});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_THAT(
      service_.Last<v1::UpdateGroupRequest>().update_mask().paths(),
      UnorderedElementsAre("options.ack_timeout", "options.max_attempts",
                           "options.max_backlog_bytes"));
  EXPECT_EQ(group->options.ack_timeout, absl::Seconds(30));
  EXPECT_EQ(group->options.max_attempts, 8u);
  EXPECT_EQ(group->options.max_backlog_bytes, 3u << 20);
}

TEST_F(GroupsTest, ListHasAllPagesAndStatistics) {
  v1::ListGroupsResponse page;
  v1::Group& busy = *page.add_groups();
  busy.set_name("busy");
  auto& proto = *busy.mutable_statistics();
  proto.set_members(1);
  proto.set_backlog(2);
  proto.set_backlog_bytes(3);
  proto.set_in_flight(4);
  proto.mutable_oldest_unsettled()->set_seconds(5);
  proto.set_delivered(6);
  proto.set_redelivered(7);
  proto.set_acked(8);
  proto.set_nacked(9);
  proto.set_put_back(10);
  proto.set_timed_out(11);
  proto.set_dead_lettered(12);
  proto.set_dead_letter_failures(13);
  proto.set_lost(14);
  proto.set_unresponsive_members(15);
  proto.set_dead_letters_dropped(16);
  page.set_next_page_token("busy");
  service_.Answer(page);
  page.Clear();
  page.add_groups()->set_name("idle");
  page.mutable_groups(0)->mutable_statistics();
  service_.Answer(page);
  const auto groups = client_.ListGroups({.include_statistics = true});
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ(service_.Last<v1::ListGroupsRequest>().page_token(), "busy");
  EXPECT_EQ(groups->at(1).name, "idle");
  EXPECT_FALSE(groups->at(1).statistics->oldest_unsettled.has_value());
  const GroupStatistics& statistics = *groups->at(0).statistics;
  EXPECT_EQ(statistics.oldest_unsettled, absl::FromUnixSeconds(5));
  const std::vector<uint64_t> counts = {statistics.members,
                                        statistics.backlog,
                                        statistics.backlog_bytes,
                                        statistics.in_flight,
                                        statistics.delivered,
                                        statistics.redelivered,
                                        statistics.acked,
                                        statistics.nacked,
                                        statistics.put_back,
                                        statistics.timed_out,
                                        statistics.dead_lettered,
                                        statistics.dead_letter_failures,
                                        statistics.lost,
                                        statistics.unresponsive_members,
                                        statistics.dead_letters_dropped};
  EXPECT_EQ(counts, (std::vector<uint64_t>{1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12,
                                           13, 14, 15, 16}));
}

TEST_F(GroupsTest, SettlementsArriveAsTheyAreMeant) {
  const auto results = client_.Settle(
      "billing", {{.delivery_token = "1", .how = Settle::Ack()},
                  {"3", Settle::Nack(absl::Milliseconds(1500))},
                  {"5", Settle::PutBack()},
                  {"7", Settle::PutBack(absl::Minutes(1))},
                  {"9", Settle::PutBackUntil(absl::FromUnixSeconds(7), true)},
                  {"11", Settle::Nack({}, "no ink")},
                  {"13", Settle::Terminate("no printer")}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->size(), 7u);
  const auto request = service_.Requests<v1::SettleExpiredRequest>().at(0);
  EXPECT_EQ(request.namespace_(), "default");
  EXPECT_EQ(request.group(), "billing");
  EXPECT_EQ(request.settlements(0).delivery_token(), "1");
  EXPECT_TRUE(request.settlements(0).has_ack());
  EXPECT_EQ(request.settlements(1).nack().delay().seconds(), 1);
  EXPECT_EQ(request.settlements(1).nack().delay().nanos(), 500'000'000);
  EXPECT_TRUE(request.settlements(2).has_put_back());
  EXPECT_FALSE(request.settlements(2).put_back().has_ttl());
  EXPECT_EQ(request.settlements(3).put_back().ttl().seconds(), 60);
  EXPECT_FALSE(request.settlements(3).put_back().has_expire_at());
  EXPECT_EQ(request.settlements(4).put_back().expire_at().seconds(), 7);
  EXPECT_FALSE(request.settlements(5).nack().has_delay());
  EXPECT_EQ(request.settlements(5).nack().reason(), "no ink");
  EXPECT_EQ(request.settlements(6).terminate().reason(), "no printer");
  EXPECT_TRUE(request.settlements(4).put_back().allow_past());
}

TEST_F(GroupsTest, NothingToSettleIsNoCall) {
  EXPECT_TRUE(client_.Settle("billing", {})->empty());
  EXPECT_TRUE(service_.Requests<v1::SettleExpiredRequest>().empty());
}

TEST_F(GroupsTest, AnswerOfAnotherLengthIsAnError) {
  service_.OnSettle(
      [](const v1::SettleExpiredRequest&, v1::SettleExpiredResponse* response) {
        response->mutable_results()->RemoveLast();
        return grpc::Status::OK;
      });
  EXPECT_TRUE(absl::IsInternal(
      client_.Settle("billing", {{"t", Settle::Ack()}}).status()));
}

}  // namespace
}  // namespace timecache
