// FetchExpired over the wire: what it is answered with, when, and what becomes of
// events whose answer does not arrive.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/proto_time.h"
#include "tests/support/await.h"
#include "tests/support/group_client.h"
#include "tests/support/test_server.h"

namespace timecache::test {
namespace {

using Cache = v1::TimeCacheService::Stub;
using Groups = v1::GroupService::Stub;
using grpc::StatusCode;

// A call on a thread of its own.
class Fetching {
 public:
  Fetching(Cache* stub, const std::string& more)
      : request_(Proto<v1::FetchExpiredRequest>(
            "namespace: 'default' group: 'g' " + more)) {
    SetDeadline(&context_);
    thread_ = std::thread([this, stub] {
      status_ = stub->FetchExpired(&context_, request_, &response_);
      done_ = true;
    });
  }
  ~Fetching() {
    context_.TryCancel();
    if (thread_.joinable()) thread_.join();
  }

  bool done() const { return done_; }
  void Cancel() { context_.TryCancel(); }
  const grpc::Status& End() {
    if (thread_.joinable()) thread_.join();
    return status_;
  }
  const v1::FetchExpiredResponse& Answer() {
    EXPECT_TRUE(End().ok()) << status_.error_message();
    return response_;
  }

 private:
  const v1::FetchExpiredRequest request_;
  grpc::ClientContext context_;
  grpc::Status status_;
  v1::FetchExpiredResponse response_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

class FetchTest : public ::testing::Test {
 protected:
  void Kill(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      server_.Put(key, key + "'s value", server::kMicrosPerSecond);
    }
    server_.AdvanceTo(DeathUs(server_.now_us(), server::kMicrosPerSecond));
  }
  v1::FetchExpiredResponse Fetch(const std::string& more = "") {
    return Fetching(server_.data(), more).Answer();
  }
  // Until so many streams and calls wait.
  void AwaitWaiting(uint64_t count) {
    Await([&] {
      return Must(Call(server_.about(), &v1::ServerService::Stub::GetServer,
                       v1::GetServerRequest()))
                 .watchers()
                 .used() == count;
    });
  }

  TestServer server_;
  GroupClient group_{&server_};
};

TEST_F(FetchTest, OneThatWaitsIsAnsweredByADeath) {
  Fetching fetching(server_.data(), "wait { seconds: 60 }");
  AwaitWaiting(1);
  EXPECT_EQ(group_.Statistics().members(), 0u);
  Kill({"a"});
  const v1::FetchExpiredResponse answer = fetching.Answer();
  ASSERT_EQ(answer.events_size(), 1);
  EXPECT_EQ(answer.events(0).key(), "a");
  EXPECT_EQ(answer.events(0).value(), "a's value");
  AwaitWaiting(0);
  group_.Ack(answer.events(0));
  EXPECT_EQ(group_.Statistics().acked(), 1u);
}

TEST_F(FetchTest, AnAdvanceEndsTheWait) {
  Fetching fetching(server_.data(), "wait { seconds: 10 }");
  AwaitWaiting(1);
  server_.AdvanceBy(10 * server::kMicrosPerSecond);
  const v1::FetchExpiredResponse answer = fetching.Answer();
  EXPECT_EQ(answer.events_size(), 0);
  EXPECT_EQ(server::ToMicros(answer.delivered_watermark(), "").value(),
            server_.now_us());
}

// The clock jumps to its end.
TEST_F(FetchTest, WhatDiesBeforeTheWaitEndsIsInItsAnswer) {
  for (int i = 0; i < 20; ++i) {
    server_.Put("a", "1", server::kMicrosPerSecond);
    Fetching fetching(server_.data(), "wait { seconds: 60 }");
    AwaitWaiting(1);
    server_.AdvanceBy(60 * server::kMicrosPerSecond);
    const v1::FetchExpiredResponse answer = fetching.Answer();
    ASSERT_EQ(answer.events_size(), 1) << i;
    group_.Ack(answer.events(0));
    AwaitWaiting(0);
  }
}

TEST_F(FetchTest, TheEndOfItsConnectionReturnsNothing) {
  group_.Create("ack_timeout { seconds: 10 }");
  Kill({"a"});
  {
    const auto channel = server_.NewChannel();
    const auto stub = v1::TimeCacheService::NewStub(channel);
    EXPECT_EQ(Fetching(stub.get(), "").Answer().events_size(), 1);
  }
  EXPECT_EQ(Fetch().events_size(), 0);
  EXPECT_EQ(group_.Statistics().fetched(), 1u);
  server_.AdvanceBy(10 * server::kMicrosPerSecond);
  const auto answer = Fetch();
  ASSERT_EQ(answer.events_size(), 1);
  EXPECT_EQ(answer.events(0).attempt(), 2u);
  EXPECT_EQ(group_.Statistics().returned(), 0u);
}

TEST_F(FetchTest, OneThatIsCancelledIsGone) {
  Fetching fetching(server_.data(), "wait { seconds: 60 }");
  AwaitWaiting(1);
  fetching.Cancel();
  EXPECT_EQ(fetching.End().error_code(), StatusCode::CANCELLED);
  AwaitWaiting(0);
  Kill({"a"});
  const auto answer = Fetch();
  ASSERT_EQ(answer.events_size(), 1);
  EXPECT_EQ(answer.events(0).attempt(), 1u);
}

TEST_F(FetchTest, ADrainEndsTheWait) {
  Fetching fetching(server_.data(), "wait { seconds: 60 }");
  AwaitWaiting(1);
  EXPECT_TRUE(server_.server().Drain(60 * server::kMicrosPerSecond).in_time);
  ExpectError(fetching.End(), StatusCode::UNAVAILABLE, v1::DRAINING);
}

TEST_F(FetchTest, TheEndOfTheGroupOrTheNamespaceEndsTheWait) {
  group_.Create();
  Fetching fetching(server_.data(), "wait { seconds: 60 }");
  AwaitWaiting(1);
  while (!fetching.done()) {
    Call(server_.groups(), &Groups::DeleteGroup,
         Proto<v1::DeleteGroupRequest>("namespace: 'default' name: 'g'"));
  }
  ExpectError(fetching.End(), StatusCode::NOT_FOUND, v1::GROUP_NOT_FOUND);
  AwaitWaiting(0);
  Fetching other(server_.data(), "wait { seconds: 60 }");
  AwaitWaiting(1);
  Must(Call(server_.namespaces(), &v1::NamespaceService::Stub::DeleteNamespace,
            Proto<v1::DeleteNamespaceRequest>("name: 'default'")));
  ExpectError(other.End(), StatusCode::NOT_FOUND, v1::NAMESPACE_NOT_FOUND);
}

TEST_F(FetchTest, APausedGroupGivesNothingUntilItGoesOn) {
  group_.Create("paused: true");
  Kill({"a"});
  EXPECT_EQ(Fetch().events_size(), 0);
  Fetching fetching(server_.data(), "wait { seconds: 60 }");
  AwaitWaiting(1);
  Must(Call(
      server_.groups(), &Groups::UpdateGroup,
      Proto<v1::UpdateGroupRequest>("group { namespace: 'default' name: 'g' "
                                    "options { paused: false } }")));
  EXPECT_EQ(fetching.Answer().events_size(), 1);
}

TEST_F(FetchTest, ManyEventsAreOneAnswer) {
  server_.Fill(9'000, "k", "");
  group_.Create();
  server_.AdvanceTo(DeathUs(kStartUs));
  EXPECT_EQ(Fetch().events_size(), 100);
  EXPECT_EQ(Fetch("max_events: 8192").events_size(), 8192);
  EXPECT_EQ(Fetch("max_events: 8192").events_size(), 708);
}

TEST_F(FetchTest, AnAnswerHasAMebibyteOfValuesOrOneLargerValue) {
  server_.Fill(4, "k", std::string(600 << 10, 'v'));
  server_.Fill(1, "large", std::string(1 << 20, 'v'));
  group_.Create();
  server_.AdvanceTo(DeathUs(kStartUs));
  int events = 0;
  for (int answers = 0; events < 5 && answers < 5; ++answers) {
    const auto answer = Fetch();
    EXPECT_EQ(answer.events_size(), 1);
    events += answer.events_size();
  }
  EXPECT_EQ(events, 5);
}

TEST(FetchLimitTest, ThoseThatWaitAreAmongTheWatchers) {
  TestServerOptions options;
  options.max_watchers = 1;
  TestServer server(options);
  GroupClient group(&server);
  const auto member = group.Join();
  Fetching waits(server.data(), "wait { seconds: 1 }");
  ExpectError(waits.End(), StatusCode::RESOURCE_EXHAUSTED, v1::MAX_WATCHERS);
  EXPECT_EQ(Fetching(server.data(), "").Answer().events_size(), 0);
}

TEST_F(FetchTest, ASingleActiveGroupRefusesIt) {
  group_.Create();
  Fetching fetching(server_.data(), "wait { seconds: 60 }");
  AwaitWaiting(1);
  Must(Call(
      server_.groups(), &Groups::UpdateGroup,
      Proto<v1::UpdateGroupRequest>("group { namespace: 'default' name: 'g' "
                                    "options { single_active: true } }")));
  ExpectError(fetching.End(), StatusCode::FAILED_PRECONDITION,
              v1::SINGLE_ACTIVE);
}

}  // namespace
}  // namespace timecache::test
