// Fetches: members without a stream.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/groups/consumer_group.h"
#include "tests/support/engine/group_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(GroupFetchTest, WhatItTookIsHeldAfterItsAnswer) {
  GroupHarness harness(WithAckTimeout(10 * kSecond));
  harness.Die({"a", "b"});
  const auto fetch = harness.Fetch();
  EXPECT_EQ(harness.Statistics().members, 0);
  const EventChunk chunk = fetch->Take(harness.now_us());
  EXPECT_THAT(Given(chunk), ElementsAre("a#1", "b#1"));
  fetch->End(harness.now_us(), StreamEnd::kAnswered);
  EXPECT_EQ(harness.Statistics().fetched, 2u);
  EXPECT_EQ(harness.Statistics().in_flight, 2u);
  EXPECT_TRUE(harness.Settle(SettlementOf(chunk.deliveries[0])).ok());
  EXPECT_EQ(harness.Statistics().fetched, 1u);
  EXPECT_THAT(harness.Take(harness.Fetch().get()), IsEmpty());
}

TEST(GroupFetchTest, ATimeOutCountsAndKeepsItFromNobody) {
  GroupHarness harness(WithAckTimeout(10 * kSecond));
  harness.Die({"a"});
  const auto fetch = harness.Fetch();
  EXPECT_THAT(harness.Take(fetch.get()), ElementsAre("a#1"));
  fetch->End(harness.now_us(), StreamEnd::kAnswered);
  harness.Pass(10 * kSecond);
  harness.Advance();
  const auto again = harness.Fetch();
  EXPECT_THAT(harness.Take(again.get()), ElementsAre("a#2"));
  again->End(harness.now_us(), StreamEnd::kAnswered);
  const auto stream = harness.Join();
  EXPECT_THAT(harness.Take(stream.get()), IsEmpty());
  harness.Pass(10 * kSecond);
  harness.Advance();
  EXPECT_EQ(stream->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(stream.get()), ElementsAre("a#3"));
  EXPECT_EQ(harness.Statistics().timed_out, 2u);
  EXPECT_EQ(harness.Statistics().unresponsive_members, 0);
}

TEST(GroupFetchTest, ACallThatEndsBeforeItsAnswerReturnsAllAtOnce) {
  GroupHarness harness;
  harness.DieMany("k", 3'000);
  const auto fetch = harness.Fetch(8'192);
  std::vector<Delivery> taken;
  for (bool more = true; more;) {
    const EventChunk chunk = fetch->Take(harness.now_us(), 8'192);
    taken.insert(taken.end(), chunk.deliveries.begin(), chunk.deliveries.end());
    more = chunk.more;
  }
  ASSERT_THAT(taken, SizeIs(3'000));
  // What its caller settled meanwhile stays settled.
  ASSERT_TRUE(harness.Settle(SettlementOf(taken[0])).ok());
  const auto stream = harness.Join(8'192);
  EXPECT_THAT(harness.Take(stream.get(), 8'192), IsEmpty());
  fetch->End(harness.now_us(), StreamEnd::kByServer);
  EXPECT_EQ(stream->TakeWakes(), 1);
  const EventChunk chunk = stream->Take(harness.now_us(), 8'192);
  ASSERT_THAT(chunk.deliveries, SizeIs(2'999));
  EXPECT_EQ(chunk.deliveries[0].event_id, taken[1].event_id);
  EXPECT_EQ(chunk.deliveries[0].attempt, 1);
  EXPECT_EQ(chunk.deliveries[0].returns, 1);
  const GroupStatistics statistics = harness.Statistics();
  EXPECT_EQ(statistics.fetched, 0u);
  EXPECT_EQ(statistics.returned, 2'999u);
  EXPECT_EQ(statistics.timed_out, 0u);
  EXPECT_EQ(statistics.suspects, 0u);
}

TEST(GroupFetchTest, OneThatWaitsSharesWithStreams) {
  GroupHarness harness;
  const auto stream = harness.Join();
  const auto fetch = harness.Fetch();
  EXPECT_THAT(harness.Take(stream.get()), IsEmpty());
  EXPECT_THAT(harness.Take(fetch.get()), IsEmpty());
  harness.DieMany("k", 10);
  EXPECT_EQ(stream->TakeWakes(), 1);
  EXPECT_EQ(fetch->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(fetch.get()), SizeIs(5));
  EXPECT_THAT(harness.Take(stream.get()), SizeIs(5));
}

TEST(GroupFetchTest, OneThatHasItsEventsDelaysNoOthers) {
  GroupHarness harness;
  const auto fetch = harness.Fetch();
  const auto stream = harness.Join();
  EXPECT_THAT(harness.Take(fetch.get()), IsEmpty());
  EXPECT_THAT(harness.Take(stream.get()), IsEmpty());
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(fetch.get()), SizeIs(1));
  fetch->End(harness.now_us(), StreamEnd::kAnswered);
  harness.Die({"b"});
  EXPECT_EQ(stream->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(stream.get()), SizeIs(1));
}

TEST(GroupFetchTest, ALossIsReportedAgainIfTheAnswerDidNotArrive) {
  GroupHarness harness;
  harness.log().Skip(3);
  harness.Die({"a"});
  const auto fetch = harness.Fetch();
  EXPECT_EQ(fetch->Take(harness.now_us()).lost, 3u);
  fetch->End(harness.now_us(), StreamEnd::kByServer);
  const auto again = harness.Fetch();
  EXPECT_EQ(again->Take(harness.now_us()).lost, 3u);
  again->End(harness.now_us(), StreamEnd::kAnswered);
  EXPECT_EQ(harness.Fetch()->Take(harness.now_us()).lost, 0u);
  EXPECT_EQ(harness.Statistics().lost, 3u);
}

TEST(GroupFetchTest, AFetchIsAUseOfTheGroup) {
  GroupOptions options;
  options.unused_ttl_us = 60 * kSecond;
  GroupHarness harness(options);
  const auto fetch = harness.Fetch();
  harness.Pass(100 * kSecond);
  EXPECT_FALSE(harness.group().UnusedForTooLong(harness.now_us()));
  fetch->End(harness.now_us(), StreamEnd::kAnswered);
  harness.Pass(59 * kSecond);
  EXPECT_FALSE(harness.group().UnusedForTooLong(harness.now_us()));
  harness.Pass(1 * kSecond);
  EXPECT_TRUE(harness.group().UnusedForTooLong(harness.now_us()));
}

class Changes final : public GroupChangeSink {
 public:
  void AddGroup(const GroupChange& change) override {
    kinds.push_back(change.kind);
  }
  int Count(GroupChange::Kind kind) const {
    return static_cast<int>(std::count(kinds.begin(), kinds.end(), kind));
  }
  std::vector<GroupChange::Kind> kinds;
};

TEST(GroupFetchTest, FetchesAreHardlyRecorded) {
  GroupOptions options;
  options.unused_ttl_us = 1'600 * kSecond;
  GroupHarness harness(options);
  Changes changes;
  harness.group().SetSink(&changes);
  for (int i = 0; i < 100; ++i) {
    harness.Pass(10 * kSecond);
    ASSERT_TRUE(harness.group().Use(harness.now_us()));
    const auto fetch = harness.Fetch();
    EXPECT_THAT(harness.Take(fetch.get()), IsEmpty());
    fetch->End(harness.now_us(), StreamEnd::kAnswered);
  }
  EXPECT_EQ(changes.Count(GroupChange::Kind::kUnused), 10);
  EXPECT_THAT(changes.kinds, SizeIs(10));
  harness.Die({"a"});
  const auto fetch = harness.Fetch();
  const EventChunk chunk = fetch->Take(harness.now_us());
  fetch->End(harness.now_us(), StreamEnd::kAnswered);
  harness.AckAll(chunk);
  EXPECT_EQ(changes.Count(GroupChange::Kind::kAcked), 1);
  EXPECT_THAT(changes.kinds, SizeIs(11));
  harness.group().SetSink(nullptr);
}

TEST(GroupFetchTest, ThoseThatWaitEndWhenTheGroupBecomesSingleActive) {
  GroupHarness harness;
  const auto fetch = harness.Fetch();
  EXPECT_FALSE(fetch->Take(harness.now_us()).closed);
  GroupOptions options;
  options.single_active = true;
  harness.group().SetOptions(options);
  EXPECT_EQ(fetch->TakeWakes(), 1);
  EXPECT_TRUE(fetch->Take(harness.now_us()).closed);
}

}  // namespace
}  // namespace timecache::server
