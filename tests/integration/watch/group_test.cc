// Consumer groups over the wire: who is given which event, when, and until
// when.
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/group_client.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using Groups = v1::GroupService::Stub;
using Names = v1::NamespaceService::Stub;
using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// The default.
constexpr int64_t kAckTimeoutUs = 30 * server::kMicrosPerSecond;
constexpr int64_t kKillUs = server::kMicrosPerSecond;

class GroupTest : public ::testing::Test {
 protected:
  // Entries are put and die, long before anything times out.
  void Kill(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      server_.Put(key, key + "'s value", kKillUs);
    }
    server_.AdvanceTo(DeathUs(server_.now_us(), kKillUs));
  }

  TestServer server_;
  GroupClient group_{&server_};
};

TEST_F(GroupTest, TheFirstMessageComesAtOnceAndHasNoToken) {
  const auto member = group_.Start();
  const auto first = member->Next();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->namespace_(), "default");
  EXPECT_THAT(first->events(), IsEmpty());
  EXPECT_EQ(ToUs(first->watermark()), kStartUs);
  EXPECT_EQ(first->lost(), 0u);
  EXPECT_EQ(first->resume_token(), "");
  EXPECT_EQ(group_.Statistics().members(), 1u);
}

TEST_F(GroupTest, AnEventCarriesAllThatIsKnownAndItsNumberAndAttempt) {
  const auto member = group_.Join();
  const uint64_t version = server_.Put("a", "one");
  server_.Put("b", "two", 60 * server::kMicrosPerSecond);
  const int64_t death_us = DeathUs(kStartUs);
  server_.AdvanceTo(death_us + 5);
  const v1::ExpiredEvent event = group_.TakeOne(member.get());
  EXPECT_EQ(event.namespace_(), "default");
  EXPECT_EQ(event.key(), "a");
  EXPECT_EQ(event.value(), "one");
  EXPECT_EQ(event.version(), version);
  EXPECT_EQ(ToUs(event.put_time()), kStartUs);
  EXPECT_EQ(ToUs(event.deadline()), kStartUs + kTtlUs);
  EXPECT_EQ(ToUs(event.death_time()), death_us);
  EXPECT_EQ(ToUs(event.delivered_at()), death_us + 5);
  EXPECT_EQ(event.cause(), v1::EXPIRY_CAUSE_EXPIRED);
  EXPECT_GT(event.event_id(), 0u);
  EXPECT_EQ(event.attempt(), 1u);
  server_.AdvanceBy(60 * server::kMicrosPerSecond);
  // It has timed out, and is for another member.
  member->Cancel();
  const auto other = group_.Start("max_in_flight: 1");
  const v1::ExpiredEvent again = group_.TakeOne(other.get());
  EXPECT_EQ(again.event_id(), event.event_id());
  EXPECT_EQ(again.attempt(), 2u);
  group_.Ack(again);
  const v1::ExpiredEvent next = group_.TakeOne(other.get());
  EXPECT_EQ(next.event_id(), event.event_id() + 1);
  EXPECT_EQ(next.attempt(), 1u);
}

TEST_F(GroupTest, AWatcherBesideTheGroupSeesItAll) {
  const auto member = group_.Join();
  WatchReader watcher(server_.data(), "default");
  ASSERT_TRUE(watcher.Next());
  Kill({"a", "b"});
  group_.Ack(group_.Take(member.get(), 2));
  const auto events = watcher.ReadUpTo(server_.now_us());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].event_id(), 0u);
  EXPECT_EQ(events[0].attempt(), 0u);
}

// Its stream is open and takes events until the transport's buffers are full.
TEST_F(GroupTest, AMemberThatDoesNotReadLeavesItsEventsToAnother) {
  constexpr uint64_t kEvents = 100;
  server_.Create("dead");
  Must(Call(server_.namespaces(), &Names::UpdateNamespace,
            Proto<v1::UpdateNamespaceRequest>(
                "namespace { name: 'default' "
                "options { dead_letter_namespace: 'dead' } }")));
  // More than the two members can waste: where time moves by whole seconds, or
  // the machine is slow, the worker's attempts time out, too.
  group_.Create("max_attempts: 5");
  const auto unread = group_.Join();
  const auto worker = group_.Join();
  server_.Fill(kEvents, "k", std::string(200'000, 'v'));
  server_.AdvanceTo(DeathUs(kStartUs));
  for (int step = 0; step < 1'000 && group_.Statistics().acked() < kEvents;
       ++step) {
    server_.AdvanceBy(server::kMicrosPerSecond);
    const auto message = worker->Next();
    ASSERT_TRUE(message.has_value());
    for (const v1::ExpiredEvent& event : message->events()) group_.Ack(event);
  }
  // The silent member's last heartbeat may have come before the last of these
  // acknowledgements: another one tells it how far the group is.
  server_.AdvanceBy(server::kMicrosPerSecond);
  const v1::GroupStatistics statistics = group_.Statistics();
  EXPECT_EQ(statistics.acked(), kEvents);
  EXPECT_GT(statistics.timed_out(), 0u);
  EXPECT_EQ(statistics.timed_out(), statistics.redelivered());
  EXPECT_EQ(statistics.dead_lettered(), 0u);
  EXPECT_EQ(statistics.lost(), 0u);
  EXPECT_EQ(statistics.unresponsive_members(), 1u);
  // Once it reads again, it takes part again.
  const size_t wasted = unread->ReadUpTo(server_.now_us()).size();
  EXPECT_GT(wasted, 0u);
  EXPECT_LE(wasted, statistics.timed_out());
  worker->Cancel();
  group_.AwaitMembers(1);
  Kill({"a"});
  group_.Ack(group_.TakeOne(unread.get()));
  EXPECT_EQ(group_.Statistics().unresponsive_members(), 0u);
}

TEST_F(GroupTest, MembersShareTheEventsUpToWhatEachMayHold) {
  constexpr int kShare = 100;
  std::vector<std::unique_ptr<WatchReader>> members;
  for (int i = 0; i < 3; ++i) {
    members.push_back(group_.Join(absl::StrCat("max_in_flight: ", kShare)));
  }
  server_.Fill(3 * kShare + 1, "k", "v");
  server_.AdvanceTo(DeathUs(kStartUs));
  std::set<std::string> keys;
  std::vector<v1::ExpiredEvent> last;
  for (const auto& member : members) {
    last = group_.Take(member.get(), kShare);
    for (const auto& event : last) keys.insert(event.key());
  }
  EXPECT_EQ(keys.size(), size_t{3 * kShare});
  EXPECT_EQ(group_.Statistics().in_flight(), 3u * kShare);
  EXPECT_EQ(group_.Statistics().backlog(), 1u);
  // Who settles one is given the one that is left.
  group_.Ack(last[7]);
  keys.insert(group_.TakeOne(members.back().get()).key());
  EXPECT_EQ(keys.size(), size_t{3 * kShare + 1});
}

TEST_F(GroupTest, TheWatermarkWaitsForWhatIsUnsettled) {
  const auto member = group_.Join();
  Kill({"a"});
  const v1::ExpiredEvent event = group_.TakeOne(member.get());
  server_.AdvanceBy(server::kMicrosPerSecond);
  const auto heartbeat = member->Next();
  ASSERT_TRUE(heartbeat.has_value());
  EXPECT_LT(ToUs(heartbeat->watermark()), ToUs(event.death_time()));
  group_.Ack(event);
  server_.AdvanceBy(server::kMicrosPerSecond);
  EXPECT_THAT(member->ReadUpTo(server_.now_us()), IsEmpty());
}

TEST_F(GroupTest, WhatIsNotSettledInTimeComesAgainAndNotBefore) {
  const auto member = group_.Join();
  Kill({"a"});
  const v1::ExpiredEvent first = group_.TakeOne(member.get());
  server_.AdvanceBy(kAckTimeoutUs - 1);
  EXPECT_EQ(group_.Statistics().in_flight(), 1u);
  EXPECT_EQ(group_.Statistics().timed_out(), 0u);
  server_.AdvanceBy(1);
  const auto other = group_.Start();
  const v1::ExpiredEvent second = group_.TakeOne(other.get());
  EXPECT_EQ(second.key(), "a");
  EXPECT_EQ(second.event_id(), first.event_id());
  EXPECT_EQ(second.attempt(), 2u);
  EXPECT_EQ(group_.Statistics().timed_out(), 1u);
  EXPECT_EQ(group_.Statistics().redelivered(), 1u);
  // Late, and still before the event is settled.
  group_.Ack(first);
  EXPECT_EQ(group_.Statistics().in_flight(), 0u);
}

TEST_F(GroupTest, WhatAMemberHeldGoesToAnotherAtOnceWhenItIsCancelled) {
  const auto first = group_.Join();
  Kill({"a", "b"});
  EXPECT_EQ(group_.Take(first.get(), 2).size(), 2u);
  const auto second = group_.Join();
  first->Cancel();
  const auto events = group_.Take(second.get(), 2);
  EXPECT_THAT(KeysOf(events), UnorderedElementsAre("a", "b"));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].attempt(), 1u);
  EXPECT_EQ(events[0].returns(), 1u);
  EXPECT_EQ(group_.Statistics().returned(), 2u);
  EXPECT_EQ(group_.Statistics().members(), 1u);
  EXPECT_EQ(group_.Statistics().timed_out(), 0u);
}

TEST_F(GroupTest, AMemberThatStoppedReadingGivesBackWhatWasOnItsWay) {
  constexpr int kEvents = 16;
  const auto stalled = group_.Join();
  const auto other = group_.Join("max_in_flight: 65536");
  server_.Fill(kEvents, "k", std::string(1 << 20, 'v'));
  server_.AdvanceTo(DeathUs(kStartUs));
  // What it has is in its connection's buffers, or being written.
  ASSERT_TRUE(stalled->Next());
  stalled->Cancel();
  std::set<std::string> keys;
  while (keys.size() < kEvents) {
    const auto message = other->Next();
    ASSERT_TRUE(message.has_value());
    for (const auto& event : message->events()) keys.insert(event.key());
  }
  group_.AwaitMembers(1);
  EXPECT_EQ(group_.Statistics().in_flight(), size_t{kEvents});
}

TEST_F(GroupTest, TheEventsOfOneKeyComeOneAfterTheOther) {
  const auto member = group_.Join();
  Kill({"a"});
  Kill({"a", "b"});
  const auto events = group_.Take(member.get(), 2);
  EXPECT_THAT(KeysOf(events), ElementsAre("a", "b"));
  EXPECT_EQ(group_.Statistics().backlog(), 1u);
  group_.Ack(events[0]);
  const v1::ExpiredEvent next = group_.TakeOne(member.get());
  EXPECT_EQ(next.key(), "a");
  EXPECT_GT(next.event_id(), events[0].event_id());
  EXPECT_EQ(next.attempt(), 1u);
}

TEST_F(GroupTest, KeysOnlyLeavesTheValuesOut) {
  const auto member = group_.Join("keys_only: true");
  Kill({"a"});
  const v1::ExpiredEvent event = group_.TakeOne(member.get());
  EXPECT_EQ(event.key(), "a");
  EXPECT_EQ(event.value(), "");
  EXPECT_EQ(event.attempt(), 1u);
  EXPECT_EQ(ToUs(event.deadline()), kStartUs + kKillUs);
  // The group has it still.
  member->Cancel();
  EXPECT_EQ(group_.TakeOne(group_.Start().get()).value(), "a's value");
}

TEST_F(GroupTest, OneStreamIsAMemberInSeveralNamespaces) {
  server_.Create("other");
  WatchReader member(
      server_.data(),
      Proto<v1::ConsumeExpiredRequest>("namespaces: 'default' namespaces: "
                                       "'other' group: 'g' max_in_flight: 1"));
  ASSERT_TRUE(member.Next() && member.Next());
  for (const char* key : {"a", "b"}) {
    server_.Put(key, "1");
    server_.Put(key, "2", 0, "other");
  }
  server_.AdvanceTo(DeathUs(kStartUs));
  const auto events = group_.Take(&member, 2);
  ASSERT_EQ(events.size(), 2u);
  // max_in_flight is of each namespace.
  EXPECT_NE(events[0].namespace_(), events[1].namespace_());
  EXPECT_EQ(group_.Statistics("default").backlog(), 1u);
  EXPECT_EQ(group_.Statistics("other").backlog(), 1u);
}

TEST_F(GroupTest, AGroupBeginsNowOrWithTheOldestEventAsItsFirstMemberSays) {
  Kill({"before"});
  const auto now = group_.Join();
  const auto earliest = std::make_unique<WatchReader>(
      server_.data(),
      Proto<v1::ConsumeExpiredRequest>("namespaces: 'default' group: 'all' "
                                       "start: WATCH_START_EARLIEST"));
  EXPECT_EQ(group_.TakeOne(earliest.get()).key(), "before");
  Kill({"after"});
  EXPECT_EQ(group_.TakeOne(now.get()).key(), "after");
  EXPECT_EQ(group_.TakeOne(earliest.get()).key(), "after");
  // One that is there keeps its place, whatever the next one says.
  const auto again = group_.Join("start: WATCH_START_EARLIEST");
  now->Cancel();
  EXPECT_EQ(group_.TakeOne(again.get()).key(), "after");
}

TEST_F(GroupTest, AGroupWithoutMembersKeepsItsEventsBeyondRetention) {
  server_.Create("brief", "event_retention {}");
  group_.Create("", "brief");
  server_.Put("a", "1", 0, "brief");
  server_.AdvanceBy(3600 * server::kMicrosPerSecond);
  EXPECT_EQ(server_.Describe("brief").statistics().events_retained(), 0u);
  EXPECT_EQ(group_.Statistics("brief").backlog(), 1u);
  const auto member = group_.Start("", "brief");
  EXPECT_EQ(group_.TakeOne(member.get()).key(), "a");
}

TEST_F(GroupTest, WhatIsBeyondTheBacklogsBytesIsLostAndTold) {
  constexpr int kEvents = 100;
  group_.Create("max_backlog_bytes: 1048576");
  server_.Fill(kEvents, "k", std::string(100'000, 'v'));
  server_.AdvanceTo(DeathUs(kStartUs));
  const auto statistics = group_.Statistics();
  EXPECT_GT(statistics.lost(), 0u);
  EXPECT_EQ(statistics.lost() + statistics.backlog(), uint64_t{kEvents});
  EXPECT_LE(statistics.backlog_bytes(), 1u << 20);
  const auto member = group_.Start();
  // Members hold half of that at a time, so they settle as they go.
  for (uint64_t events = 0; events < statistics.backlog();) {
    const auto message = member->Next();
    ASSERT_TRUE(message.has_value());
    for (const v1::ExpiredEvent& event : message->events()) {
      group_.Ack(event);
      ++events;
    }
  }
  EXPECT_EQ(member->lost(), statistics.lost());
  server_.AdvanceBy(1);
  EXPECT_THAT(member->ReadUpTo(server_.now_us()), IsEmpty());
}

TEST_F(GroupTest, MessagesAreNoLargerThanAWatchersAre) {
  constexpr int kEvents = 20'000;
  const auto member = group_.Join("max_in_flight: 65536");
  server_.Fill(kEvents, "key", "value");
  server_.AdvanceTo(DeathUs(kStartUs));
  for (int events = 0; events < kEvents;) {
    const auto message = member->Next();
    ASSERT_TRUE(message.has_value());
    EXPECT_LE(message->events_size(), 8192);
    events += message->events_size();
  }
  EXPECT_EQ(member->events(), size_t{kEvents});
  EXPECT_LT(member->largest_message_bytes(), size_t{3} << 20);
}

TEST_F(GroupTest, ADeletedGroupEndsItsMembers) {
  const auto first = group_.Join();
  const auto second = group_.Join();
  Kill({"a"});
  const auto remove = [this] {
    return Call(server_.groups(), &Groups::DeleteGroup,
                Proto<v1::DeleteGroupRequest>("namespace: 'default' name: 'g'"))
        .status;
  };
  EXPECT_TRUE(remove().ok());
  for (WatchReader* member : {first.get(), second.get()}) {
    ExpectError(member->Drain(), StatusCode::NOT_FOUND, v1::GROUP_NOT_FOUND,
                "group g of namespace default was deleted");
  }
  ExpectError(remove(), StatusCode::NOT_FOUND, v1::GROUP_NOT_FOUND);
  // The next one of that name is another.
  const auto member = group_.Join();
  Kill({"b"});
  EXPECT_EQ(group_.TakeOne(member.get()).key(), "b");
}

TEST_F(GroupTest, ADeletedNamespaceEndsItsMembers) {
  const auto member = group_.Join();
  const auto watcher = std::make_unique<WatchReader>(server_.data(), "default");
  ASSERT_TRUE(watcher->Next());
  Must(Call(server_.namespaces(), &Names::DeleteNamespace,
            Proto<v1::DeleteNamespaceRequest>("name: 'default'")));
  for (WatchReader* each : {member.get(), watcher.get()}) {
    ExpectError(each->Drain(), StatusCode::NOT_FOUND, v1::NAMESPACE_NOT_FOUND,
                "namespace default was deleted");
  }
}

TEST_F(GroupTest, AServerThatStopsEndsItsMembersWell) {
  const auto member = group_.Join("max_in_flight: 1");
  Kill({"a", "b"});
  group_.Take(member.get(), 1);
  EXPECT_TRUE(server_.server().Drain(60 * server::kMicrosPerSecond).in_time);
  const grpc::Status status = member->Drain();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(member->events(), 1u);
}

// A member that has room, and reads slowly, gets what was under way and no
// more: what else there is waits for the next server, or for other members.
TEST_F(GroupTest, AServerThatStopsGivesNothingMoreOut) {
  constexpr int kEvents = 64;
  constexpr int kOthers = 20;
  std::vector<std::unique_ptr<WatchReader>> others;
  const auto member = group_.Join();
  for (int i = 0; i < kOthers; ++i) {
    others.push_back(std::make_unique<WatchReader>(
        server_.data(), Proto<v1::WatchExpiredRequest>(
                            "namespaces: 'default' key_prefix: 'none'")));
    ASSERT_TRUE(others.back()->Next());
  }
  server_.Fill(kEvents, "k", std::string(1 << 20, 'v'));
  server_.AdvanceBy(2 * kTtlUs);
  std::thread drain([&] {
    EXPECT_TRUE(server_.server().Drain(60 * server::kMicrosPerSecond).in_time);
  });
  // All are told in one go.
  for (auto& other : others) EXPECT_TRUE(other->Drain().ok());
  const grpc::Status status = member->Drain();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_LT(member->events(), static_cast<size_t>(kEvents));
  drain.join();
}

TEST_F(GroupTest, FieldsOutOfTheirRangeAreNamed) {
  const struct {
    const char* request;
    const char* field;
    const char* limit;
  } kCases[] = {
      {"group: 'G'", "group", "63"},
      {"group: '-g'", "group", "63"},
      {"group: 'g' max_in_flight: 0", "max_in_flight", "1 to 65536, not 0"},
      {"group: 'g' max_in_flight: 65537", "max_in_flight", "not 65537"},
      {"", "group", "63"},
      {"max_in_flight: 1", "group", "63"},
      {"group: 'g' start: 3", "start", "3"},
      {"group: 'g' namespaces: 'default'", "namespaces", "once"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.request);
    WatchReader reader(server_.data(),
                       Proto<v1::ConsumeExpiredRequest>(
                           absl::StrCat("namespaces: 'default' ", c.request)));
    ExpectInvalid(reader.Drain(), c.field, c.limit);
  }
  EXPECT_THAT(Must(Call(server_.groups(), &Groups::ListGroups,
                        Proto<v1::ListGroupsRequest>("namespace: 'default'")))
                  .groups(),
              IsEmpty());
}

TEST(GroupLimit, AMemberIsAWatcherLikeOthers) {
  TestServerOptions options;
  options.max_watchers = 1;
  TestServer server(options);
  GroupClient group(&server);
  const auto first = group.Join();
  ExpectError(group.Start()->Drain(), StatusCode::RESOURCE_EXHAUSTED,
              v1::MAX_WATCHERS);
  // The one that was refused holds nothing.
  server.Put("a", "1");
  server.AdvanceTo(DeathUs(kStartUs));
  EXPECT_EQ(group.TakeOne(first.get()).key(), "a");
  EXPECT_EQ(group.Statistics().members(), 1u);
}

}  // namespace
}  // namespace timecache::test
