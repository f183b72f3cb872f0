// A client with the addresses of several nodes: which one it calls, and when it
// goes to another.
#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/src/events/watch_stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/async_client.h"
#include "timecache/client.h"
#include "timecache/group_worker.h"
#include "timecache/operation.h"
#include "timecache/pipeline.h"
#include "timecache/status.h"
#include "timecache/watcher.h"

namespace timecache {
namespace {

using ::testing::HasSubstr;

// Longer than anything takes that a test waits for, on any machine.
constexpr absl::Duration kLong = absl::Seconds(60);

grpc::Status NotOwner(const std::string& owner) {
  std::map<std::string, std::string> metadata;
  if (!owner.empty()) metadata["owner_address"] = owner;
  return MakeError(grpc::StatusCode::UNAVAILABLE, "not the owner",
                   v1::NOT_OWNER, metadata);
}

class ClusterTest : public ::testing::Test {
 protected:
  Client MakeClient() const {
    return Client(absl::StrCat(a_->address(), ", ", b_->address()),
                  {.timeout = kLong});
  }

  std::unique_ptr<FakeService> a_ = std::make_unique<FakeService>();
  std::unique_ptr<FakeService> b_ = std::make_unique<FakeService>();
};

TEST_F(ClusterTest, CallsGoToTheOwnerThatTheNodeNames) {
  const Client client = MakeClient();
  EXPECT_EQ(client.address(), a_->address());
  a_->FailWith(NotOwner(b_->address()));
  ASSERT_TRUE(client.Put("key", "value").ok());
  EXPECT_EQ(b_->Last<v1::PutRequest>().key(), "key");
  EXPECT_EQ(client.address(), b_->address());
}

TEST_F(ClusterTest, CallsWaitUntilANodeOwns) {
  std::atomic<int> refused = 0;
  const auto refuse = [&](const grpc::ServerContext&) {
    return ++refused <= 5 ? NotOwner("") : grpc::Status::OK;
  };
  a_->OnCall(refuse);
  b_->OnCall(refuse);
  EXPECT_TRUE(MakeClient().Put("key", "value").ok());
  EXPECT_EQ(refused, 6);
}

TEST_F(ClusterTest, WithoutAnOwnerACallEndsWithItsTimeout) {
  a_->FailWith(NotOwner(""));
  b_->FailWith(NotOwner(""));
  const absl::Status status =
      MakeClient()
          .Put("key", "value", {}, {.timeout = absl::Milliseconds(100)})
          .status();
  EXPECT_TRUE(HasReason(status, ErrorReason::kNotOwner) ||
              absl::IsDeadlineExceeded(status))
      << status;
}

TEST_F(ClusterTest, OneAddressIsEnoughToFindTheOwner) {
  a_->FailWith(NotOwner(b_->address()));
  const Client client(a_->address(), {.timeout = kLong});
  EXPECT_TRUE(client.Put("key", "value").ok());
  EXPECT_EQ(b_->Last<v1::PutRequest>().key(), "key");
}

TEST_F(ClusterTest, OwnerThatCannotBeReachedIsLeftForTheNextAddress) {
  std::string gone;
  {
    FakeService node;
    gone = node.address();
  }
  std::atomic<int> refused = 0;
  a_->OnCall([&](const grpc::ServerContext&) {
    return ++refused == 1 ? NotOwner(gone) : grpc::Status::OK;
  });
  b_->FailWith(NotOwner(a_->address()));
  EXPECT_TRUE(MakeClient().Put("key", "value").ok());
  EXPECT_EQ(a_->Last<v1::PutRequest>().key(), "key");
}

TEST_F(ClusterTest, NodeThatIsGoneIsLeftByTheSameCall) {
  const Client client = MakeClient();
  a_.reset(new FakeService);  // On another port.
  ASSERT_TRUE(client.Put("key", "value").ok());
  EXPECT_EQ(b_->Last<v1::PutRequest>().key(), "key");
}

TEST_F(ClusterTest, BrokenCallIsRepeatedElsewhereOnlyIfThatIsSafe) {
  const grpc::Status broken(grpc::StatusCode::UNAVAILABLE, "Socket closed");
  const Client client = MakeClient();
  a_->FailWith(broken);
  const absl::Status put = client.Put("key", "value").status();
  EXPECT_TRUE(absl::IsUnavailable(put)) << put;
  EXPECT_TRUE(MaybeApplied(put));
  // But the next one goes elsewhere.
  EXPECT_EQ(client.address(), b_->address());
  ASSERT_TRUE(client.Put("key", "value").ok());
  a_->FailWith(grpc::Status::OK);
  b_->FailWith(broken);
  EXPECT_TRUE(client.Contains("key").ok());
  EXPECT_EQ(client.address(), a_->address());
}

TEST_F(ClusterTest, NodeThatHangsIsLeftByTheNextCall) {
  const Client client(std::vector<std::string>{a_->address(), b_->address()},
                      {.timeout = kLong});
  a_->Hang(true);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client.Put("key", "value", {}, {.timeout = absl::Milliseconds(100)})
          .status()));
  EXPECT_EQ(client.address(), b_->address());
  EXPECT_TRUE(client.Put("key", "value").ok());
  a_->Hang(false);
}

TEST_F(ClusterTest, OnlyNodeIsKeptThoughItHangs) {
  const Client client(a_->address(), {.timeout = kLong});
  a_->Hang(true);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client.Put("key", "value", {}, {.timeout = absl::Milliseconds(100)})
          .status()));
  a_->Hang(false);
  EXPECT_TRUE(client.Put("key", "value").ok());
}

TEST_F(ClusterTest, AsynchronousCallsGoToTheOwnerToo) {
  a_->FailWith(NotOwner(b_->address()));
  const AsyncClient client(MakeClient());
  absl::Notification done;
  absl::Status result;
  client.Put("key", "value", [&](absl::StatusOr<PutResult> put) {
    result = put.status();
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(b_->Last<v1::PutRequest>().key(), "key");
}

TEST_F(ClusterTest, AsynchronousCallLeavesANodeThatIsGone) {
  const AsyncClient client(MakeClient());
  a_.reset(new FakeService);
  absl::Notification done;
  absl::Status result;
  client.Put("key", "value", [&](absl::StatusOr<PutResult> put) {
    result = put.status();
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_TRUE(result.ok()) << result;
}

TEST_F(ClusterTest, WatchResumesAtTheOwnerWithItsToken) {
  a_->AddWatch({.messages = {MakeBatch("default", "a", 1, 10)},
                .end = NotOwner(b_->address())});
  b_->AddWatch({.messages = {MakeBatch("default", "b", 12, 20)}, .hang = true});
  Watcher watcher(MakeClient(), {.min_pause = absl::Milliseconds(1)});
  ASSERT_TRUE(watcher.Next(kLong).ok());
  const auto batch = watcher.Next(kLong);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->reconnected);
  EXPECT_EQ(batch->events.at(0).key, "b");
  ASSERT_EQ(b_->Requests<v1::WatchExpiredRequest>().size(), 1);
  EXPECT_THAT(b_->Requests<v1::WatchExpiredRequest>()[0].resume_tokens(),
              ::testing::ElementsAre("default@10"));
}

TEST_F(ClusterTest, WatchResumesAtTheNextAddressWhenItsNodeDies) {
  a_->AddWatch({.messages = {MakeBatch("default", "a", 1, 10)}, .hang = true});
  b_->AddWatch({.end = NotOwner("")});
  const std::string address = a_->address();
  Watcher watcher(MakeClient(), {.min_pause = absl::Milliseconds(1)});
  ASSERT_TRUE(watcher.Next(kLong).ok());
  a_.reset();
  // The other one takes over, which it does not at once.
  b_->AddWatch({.end = NotOwner(address)});
  b_->AddWatch({.messages = {MakeBatch("default", "b", 12, 20)}, .hang = true});
  const auto batch = watcher.Next(kLong);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->events.at(0).key, "b");
  EXPECT_THAT(b_->Requests<v1::WatchExpiredRequest>().back().resume_tokens(),
              ::testing::ElementsAre("default@10"));
}

TEST_F(ClusterTest, WatchLeavesANodeThatHangs) {
  a_->AddWatch({.messages = {MakeBatch("default", "a", 1, 10)}, .hang = true});
  b_->AddWatch({.messages = {MakeBatch("default", "b", 12, 20)}, .hang = true});
  Watcher watcher(MakeClient(), {.min_pause = absl::Milliseconds(1),
                                 .silence_max = absl::Seconds(1)});
  ASSERT_TRUE(watcher.Next(kLong).ok());
  const auto batch = watcher.Next(kLong);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->events.at(0).key, "b");
}

TEST(SilenceMaxTest, IsBoundedWhereThereAreOtherNodes) {
  EXPECT_EQ(SilenceMax({}, 1), absl::InfiniteDuration());
  EXPECT_EQ(SilenceMax({}, 2), absl::Seconds(10));
  EXPECT_EQ(SilenceMax({.heartbeat_interval = absl::Minutes(1)}, 2),
            absl::Minutes(4));
  EXPECT_EQ(SilenceMax({.silence_max = absl::Hours(1)}, 2), absl::Hours(1));
}

TEST_F(ClusterTest, WatchThatBeginsFindsTheOwner) {
  a_->AddWatch({.end = NotOwner(b_->address())});
  b_->AddWatch({.messages = {MakeBatch("default", "b", 1, 10)}, .hang = true});
  int breaks = 0;
  Watcher watcher(MakeClient(),
                  {.on_break = [&](const absl::Status&) { ++breaks; }});
  EXPECT_TRUE(watcher.Next(kLong).ok());
  EXPECT_EQ(breaks, 0);
}

TEST_F(ClusterTest, WatchThatBeginsLeavesANodeThatIsGone) {
  const Client client = MakeClient();
  a_.reset(new FakeService);
  b_->AddWatch({.messages = {MakeBatch("default", "b", 1, 10)}, .hang = true});
  Watcher watcher(client);
  EXPECT_TRUE(watcher.Next(kLong).ok());
}

TEST_F(ClusterTest, WatchThatBeginsEndsWhereNoAddressHasAServer) {
  const Client client = MakeClient();
  a_.reset(new FakeService);
  b_.reset(new FakeService);
  EXPECT_TRUE(absl::IsUnavailable(Watcher(client).Next(kLong).status()));
}

TEST_F(ClusterTest, WorkerTakesAndSettlesAtTheOwner) {
  a_->AddWatch({.end = NotOwner(b_->address())});
  a_->FailWith(NotOwner(b_->address()));
  b_->AddWatch(
      {.messages = {MakeDelivery("default", "k", 7, 1)}, .hang = true});
  absl::Notification settled;
  b_->OnSettle(
      [&](const v1::SettleExpiredRequest&, v1::SettleExpiredResponse*) {
        if (!settled.HasBeenNotified()) settled.Notify();
        return grpc::Status::OK;
      });
  GroupWorker worker(MakeClient(), {.group = "g"},
                     [](const ExpiredEvent&) { return Settle::Ack(); });
  settled.WaitForNotification();
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_EQ(
      EventIdOf(b_->Requests<v1::SettleExpiredRequest>().at(0).settlements(0)),
      7);
}

// Adds a put, and waits for its result.
absl::Status PutBy(Pipeline& pipeline) {
  absl::Status result;
  const absl::Status added =
      pipeline.Add(Operation::Put("key", "value"),
                   [&](const OperationResult& each) { result = each.status; });
  if (!added.ok()) return added;
  const absl::Status waited = pipeline.Wait();
  return waited.ok() ? result : waited;
}

TEST_F(ClusterTest, PipelineThatIsRefusedIsOpenedAtTheOwner) {
  a_->SetPipeline({.answers_max = 0, .end = NotOwner(b_->address())});
  Pipeline pipeline(MakeClient());
  const absl::Status put = PutBy(pipeline);
  EXPECT_TRUE(put.ok()) << put;
  EXPECT_EQ(b_->Last<v1::PutRequest>().key(), "key");
  EXPECT_TRUE(pipeline.Close().ok());
}

TEST_F(ClusterTest, PipelineGoesOnAtTheNextOwner) {
  a_->SetPipeline({.answers_max = 1, .end = NotOwner(b_->address())});
  Pipeline pipeline(MakeClient(), {.batch_operations_max = 2});
  std::vector<absl::Status> results;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pipeline
                    .Add(Operation::Put(absl::StrCat(i), "value"),
                         [&](const OperationResult& each) {
                           results.push_back(each.status);
                         })
                    .ok());
  }
  EXPECT_TRUE(pipeline.Close().ok());
  EXPECT_THAT(results, ::testing::SizeIs(20));
  EXPECT_THAT(results, ::testing::Each(absl::OkStatus()));
  EXPECT_EQ(b_->Last<v1::PutRequest>().key(), "19");
}

TEST_F(ClusterTest, PipelineLeavesANodeThatIsGone) {
  const Client client = MakeClient();
  a_.reset(new FakeService);
  Pipeline pipeline(client);
  EXPECT_TRUE(PutBy(pipeline).ok());
}

TEST_F(ClusterTest, PipelineThatHangsIsFollowedByOneElsewhere) {
  a_->Hang(true);
  const Client client(absl::StrCat(a_->address(), ",", b_->address()),
                      {.timeout = absl::Milliseconds(100)});
  {
    Pipeline pipeline(client);
    EXPECT_TRUE(absl::IsDeadlineExceeded(PutBy(pipeline)));
  }
  EXPECT_EQ(client.address(), b_->address());
  a_->Hang(false);
}

TEST_F(ClusterTest, PipelineWithoutAnOwnerEndsWithItsTimeout) {
  a_->SetPipeline({.answers_max = 0, .end = NotOwner("")});
  b_->SetPipeline({.answers_max = 0, .end = NotOwner("")});
  const Client client(absl::StrCat(a_->address(), ",", b_->address()),
                      {.timeout = absl::Milliseconds(100)});
  Pipeline pipeline(client);
  OperationResult result;
  ASSERT_TRUE(pipeline
                  .Add(Operation::Put("key", "value"),
                       [&](const OperationResult& each) { result = each; })
                  .ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(pipeline.Wait()));
}

TEST(AddressesTest, EmptyAndBadOnesAreNamed) {
  const auto error = [](const std::string& addresses) {
    return std::string(Client(addresses).Size().status().message());
  };
  EXPECT_THAT(error("a:7171,,b:7171"), HasSubstr("address 2 of"));
  EXPECT_THAT(error("a:7171,b:7171,"), HasSubstr("is empty"));
  EXPECT_THAT(error("a:7171,b"), HasSubstr("\"b\" has no port"));
  std::string many = "a:1";
  for (int i = 0; i < 16; ++i) many += ",a:1";
  EXPECT_THAT(error(many), HasSubstr("at most 16"));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Client::Make("a:1,b", ChannelOptions()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Client::Make(std::vector<std::string>{"a:1", "b"}, ChannelOptions())
          .status()));
}

TEST(AddressesTest, WatchesAndPipelinesOfBadOnesEndWithTheError) {
  const Client client("a:7171,");
  EXPECT_TRUE(absl::IsInvalidArgument(Watcher(client).Next(kLong).status()));
  Pipeline pipeline(client);
  EXPECT_TRUE(absl::IsInvalidArgument(pipeline.Close()));
}

TEST(AddressesTest, TokenIsNotSentInPlainTextToAnyOfThem) {
  EXPECT_THAT(std::string(Client::Make("127.0.0.1:1,cache:7171",
                                       {.token_file = "token"})
                              .status()
                              .message()),
              HasSubstr("not sent to cache:7171"));
}

}  // namespace
}  // namespace timecache
