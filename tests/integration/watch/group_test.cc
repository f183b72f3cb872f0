// Consumer groups over the wire: who is given which event, when, and until
// when.
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/group_client.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using Names = v1::NamespaceService::Stub;
using grpc::StatusCode;

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

}  // namespace
}  // namespace timecache::test
