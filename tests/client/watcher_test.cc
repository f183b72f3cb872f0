// timecache::Watcher against a stand-in for the server, whose streams are
// scripted.
#include "client/cpp/watcher.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/cpp/status.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"

namespace timecache {
namespace {

grpc::Status Unavailable() {
  return MakeError(grpc::StatusCode::UNAVAILABLE, "draining", "DRAINING");
}

absl::Time At(int unix_s) { return absl::FromUnixSeconds(unix_s); }

class WatcherTest : public ::testing::Test {
 protected:
  static WatchOptions Quick() {
    return {.min_pause = absl::Milliseconds(1),
            .max_pause = absl::Milliseconds(4)};
  }

  FakeService service_;
  Client client_ = service_.MakeClient();
};

TEST_F(WatcherTest, GivesEventsAndWatermarks) {
  service_.AddWatch({.messages = {MakeBatch("default", "", 0, 10),
                                  MakeBatch("default", "key", 40, 41)},
                     .hang = true});
  Watcher watcher(client_, {.keys_only = true,
                            .heartbeat_interval = absl::Milliseconds(20)});
  auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->ns, "default");
  EXPECT_TRUE(batch->events.empty());
  EXPECT_EQ(batch->watermark, At(10));
  EXPECT_FALSE(batch->reconnected);
  batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ(batch->events.size(), 1u);
  const ExpiredEvent& event = batch->events[0];
  EXPECT_EQ(event.key, "key");
  EXPECT_EQ(event.value, "value of key");
  EXPECT_EQ(event.put_time, At(10));
  EXPECT_EQ(event.death_time, At(40));
  EXPECT_EQ(event.delivered_at, At(41));
  EXPECT_EQ(event.cause, ExpiryCause::kExpired);
  const auto request = service_.watch_requests().at(0);
  EXPECT_EQ(request.namespaces(0), "default");
  EXPECT_TRUE(request.keys_only());
  EXPECT_EQ(request.heartbeat_interval().nanos(), 20'000'000);
}

TEST_F(WatcherTest, LostIsPassedOn) {
  auto message = MakeBatch("default", "", 0, 10);
  message.set_lost(17);
  service_.AddWatch({.messages = {message}, .hang = true});
  Watcher watcher(client_);
  EXPECT_EQ(watcher.Next()->lost, 17u);
}

TEST_F(WatcherTest, TimeoutLeavesTheWatchStanding) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)}, .hang = true});
  Watcher watcher(client_);
  ASSERT_TRUE(watcher.Next().ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(
        absl::IsDeadlineExceeded(watcher.Next(absl::Milliseconds(5)).status()));
  }
  EXPECT_EQ(service_.watch_requests().size(), 1u);
}

TEST_F(WatcherTest, ReconnectIsFlaggedOncePerNamespace) {
  service_.AddWatch(
      {.messages = {MakeBatch("a", "", 0, 10), MakeBatch("b", "", 0, 11)},
       .end = Unavailable()});
  service_.AddWatch(
      {.messages = {MakeBatch("a", "", 0, 20), MakeBatch("a", "key", 21, 22),
                    MakeBatch("b", "", 0, 23)},
       .hang = true});
  int breaks = 0;
  WatchOptions options = Quick();
  options.namespaces = {"a", "b"};
  options.start = WatchStart::kEarliest;
  options.on_break = [&](const absl::Status& why) {
    EXPECT_TRUE(absl::IsUnavailable(why));
    ++breaks;
  };
  Watcher watcher(client_, options);
  EXPECT_FALSE(watcher.Next()->reconnected);
  EXPECT_FALSE(watcher.Next()->reconnected);
  auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->reconnected);
  EXPECT_EQ(batch->missed_after, At(10));
  batch = watcher.Next();
  EXPECT_FALSE(batch->reconnected);
  EXPECT_EQ(batch->events.size(), 1u);
  batch = watcher.Next();
  EXPECT_TRUE(batch->reconnected);
  EXPECT_EQ(batch->ns, "b");
  EXPECT_EQ(batch->missed_after, At(11));
  EXPECT_EQ(breaks, 1);
  const auto requests = service_.watch_requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].start(), v1::WATCH_START_EARLIEST);
  EXPECT_EQ(requests[1].start(), v1::WATCH_START_NOW);
}

TEST_F(WatcherTest, StreamThatTheServerClosesIsReopened) {
  service_.AddWatch({.messages = {MakeBatch("default", "", 0, 10)}});
  service_.AddWatch(
      {.end = grpc::Status(grpc::StatusCode::INTERNAL, "Received RST_STREAM")});
  service_.AddWatch({.messages = {MakeBatch("default", "", 0, 20)}});
  Watcher watcher(client_, Quick());
  ASSERT_TRUE(watcher.Next().ok());
  const auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->reconnected);
  EXPECT_EQ(service_.watch_requests().size(), 3u);
}

TEST_F(WatcherTest, RestartAtEarliestDropsWhatCameBefore) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "one", 8, 10)}, .end = Unavailable()});
  service_.AddWatch({.messages = {MakeBatch("default", "one", 8, 10),
                                  MakeBatch("default", "two", 10, 12),
                                  MakeBatch("default", "three", 13, 14)},
                     .hang = true});
  WatchOptions options = Quick();
  options.restart = WatchStart::kEarliest;
  Watcher watcher(client_, options);
  EXPECT_EQ(watcher.Next()->events.size(), 1u);
  auto batch = watcher.Next();
  EXPECT_TRUE(batch->reconnected);
  EXPECT_TRUE(batch->events.empty());
  EXPECT_EQ(watcher.Next()->events.at(0).key, "two");
  EXPECT_EQ(watcher.Next()->events.at(0).key, "three");
  EXPECT_EQ(service_.watch_requests().at(1).start(), v1::WATCH_START_EARLIEST);
}

TEST_F(WatcherTest, RestartOfAServerWhoseClockBeganAnewDropsNothing) {
  service_.AddWatch({.messages = {MakeBatch("default", "old", 100, 100)},
                     .end = Unavailable()});
  service_.AddWatch({.messages = {MakeBatch("default", "new", 8, 9),
                                  MakeBatch("default", "newer", 99, 101)},
                     .hang = true});
  WatchOptions options = Quick();
  options.restart = WatchStart::kEarliest;
  Watcher watcher(client_, options);
  EXPECT_EQ(watcher.Next()->events.at(0).key, "old");
  EXPECT_EQ(watcher.Next()->events.at(0).key, "new");
  EXPECT_EQ(watcher.Next()->events.at(0).key, "newer");
}

TEST_F(WatcherTest, DeletedNamespaceEndsIt) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)},
       .end = MakeError(grpc::StatusCode::NOT_FOUND, "namespace was deleted",
                        "NAMESPACE_NOT_FOUND")});
  Watcher watcher(client_, Quick());
  ASSERT_TRUE(watcher.Next().ok());
  for (int i = 0; i < 2; ++i) {
    const absl::Status end = watcher.Next().status();
    EXPECT_TRUE(absl::IsNotFound(end));
    EXPECT_EQ(ErrorReason(end), "NAMESPACE_NOT_FOUND");
  }
  EXPECT_EQ(service_.watch_requests().size(), 1u);
}

TEST_F(WatcherTest, OwnErrorOfTheServerEndsIt) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)},
       .end = MakeError(grpc::StatusCode::INTERNAL, "a bug", "BUG")});
  Watcher watcher(client_, Quick());
  ASSERT_TRUE(watcher.Next().ok());
  EXPECT_EQ(ErrorReason(watcher.Next().status()), "BUG");
}

TEST_F(WatcherTest, FirstAttemptThatFailsIsToldAtOnce) {
  service_.AddWatch({.end = Unavailable()});
  Watcher watcher(client_, Quick());
  EXPECT_TRUE(absl::IsUnavailable(watcher.Next().status()));
}

TEST_F(WatcherTest, WaitForServerKeepsTrying) {
  service_.AddWatch({.end = Unavailable()});
  service_.AddWatch({.end = Unavailable()});
  service_.AddWatch({.messages = {MakeBatch("default", "", 0, 10)}});
  WatchOptions options = Quick();
  options.wait_for_server = true;
  options.start = WatchStart::kEarliest;
  Watcher watcher(client_, options);
  const auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_FALSE(batch->reconnected);
  EXPECT_EQ(service_.watch_requests().at(2).start(), v1::WATCH_START_EARLIEST);
}

TEST_F(WatcherTest, SilenceIsABreakWhereAskedFor) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)}, .hang = true});
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 20)}, .hang = true});
  WatchOptions options = Quick();
  options.silence_max = absl::Seconds(1);
  Watcher watcher(client_, options);
  ASSERT_TRUE(watcher.Next().ok());
  const auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->reconnected);
}

TEST_F(WatcherTest, CancelWakesANextThatReads) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)}, .hang = true});
  Watcher watcher(client_);
  ASSERT_TRUE(watcher.Next().ok());
  std::thread canceller([&] { watcher.Cancel(); });
  EXPECT_TRUE(absl::IsCancelled(watcher.Next().status()));
  EXPECT_TRUE(absl::IsCancelled(watcher.Next().status()));
  canceller.join();
}

TEST_F(WatcherTest, CancelWakesANextThatWaitsToReconnect) {
  service_.AddWatch({.messages = {MakeBatch("default", "", 0, 10)}});
  absl::Notification broken;
  Watcher watcher(client_,
                  {.min_pause = absl::Hours(1),
                   .max_pause = absl::Hours(1),
                   .on_break = [&](const absl::Status&) { broken.Notify(); }});
  ASSERT_TRUE(watcher.Next().ok());
  std::thread canceller([&] {
    broken.WaitForNotification();
    watcher.Cancel();
  });
  EXPECT_TRUE(absl::IsCancelled(watcher.Next().status()));
  canceller.join();
}

TEST_F(WatcherTest, TimeoutHoldsWhileItWaitsToReconnect) {
  service_.AddWatch({.messages = {MakeBatch("default", "", 0, 10)}});
  Watcher watcher(client_,
                  {.min_pause = absl::Hours(1), .max_pause = absl::Hours(1)});
  ASSERT_TRUE(watcher.Next().ok());
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(watcher.Next(absl::Milliseconds(20)).status()));
}

TEST_F(WatcherTest, ServerThatIsGoneAndComesBackIsFoundAgain) {
  auto service = std::make_unique<FakeService>();
  const std::string address = service->address();
  service->AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)}, .hang = true});
  WatchOptions options = Quick();
  int breaks = 0;
  options.on_break = [&](const absl::Status&) {
    if (++breaks != 3) return;  // Some attempts find nobody.
    service = std::make_unique<FakeService>(address);
    service->AddWatch(
        {.messages = {MakeBatch("default", "", 0, 20)}, .hang = true});
  };
  Watcher watcher(Client(address), options);
  ASSERT_TRUE(watcher.Next().ok());
  service.reset();
  const auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->reconnected);
  EXPECT_EQ(batch->watermark, At(20));
}

TEST_F(WatcherTest, ThreadCallsBackAndEndsWhenCancelled) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "key", 8, 10)}, .hang = true});
  absl::Notification came;
  absl::Status end;
  {
    WatchThread watch(
        client_, {},
        [&](WatchBatch batch) {
          EXPECT_EQ(batch.events.at(0).key, "key");
          came.Notify();
        },
        [&](const absl::Status& why) { end = why; });
    came.WaitForNotification();
  }
  EXPECT_TRUE(absl::IsCancelled(end));
}

TEST_F(WatcherTest, ThreadTellsHowItEnded) {
  absl::Notification ended;
  WatchThread watch(
      client_, {}, [](WatchBatch) { ADD_FAILURE() << "nothing to tell"; },
      [&](const absl::Status& why) {
        EXPECT_TRUE(absl::IsNotFound(why));
        ended.Notify();
      });
  ended.WaitForNotification();
}

}  // namespace
}  // namespace timecache
