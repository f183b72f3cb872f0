// timecache::Watcher against a stand-in for the server, whose streams are
// scripted.
#include "timecache/watcher.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/status.h"

namespace timecache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

grpc::Status Unavailable() {
  return MakeError(grpc::StatusCode::UNAVAILABLE, "draining", v1::DRAINING);
}

// That the namespace's token is of no use.
grpc::Status LogChanged(const std::string& ns,
                        v1::ErrorReason reason = v1::LOG_CHANGED) {
  return MakeError(
      reason == v1::LOG_CHANGED ? grpc::StatusCode::FAILED_PRECONDITION
                                : grpc::StatusCode::OUT_OF_RANGE,
      "resume_tokens: of another log", reason, {{"namespace", ns}});
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

TEST_F(WatcherTest, TimeoutLeavesTheWatchStanding) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)}, .hang = true});
  Watcher watcher(client_);
  ASSERT_TRUE(watcher.Next().ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(
        absl::IsDeadlineExceeded(watcher.Next(absl::Milliseconds(5)).status()));
  }
  EXPECT_EQ(service_.Requests<v1::WatchExpiredRequest>().size(), 1u);
}

TEST_F(WatcherTest, ATokenThatWasReplacedIsABreak) {
  const grpc::Status unknown = MakeError(grpc::StatusCode::UNAUTHENTICATED,
                                         "unknown token", v1::UNKNOWN_TOKEN);
  service_.AddWatch(
      {.messages = {MakeBatch("default", "one", 3, 4)}, .end = unknown});
  service_.AddWatch(
      {.messages = {MakeBatch("default", "two", 5, 6)}, .end = unknown});
  // The new one is not good either.
  service_.AddWatch({.end = unknown});
  std::vector<absl::Status> breaks;
  WatchOptions options = Quick();
  options.on_break = [&](const absl::Status& why) { breaks.push_back(why); };
  Watcher watcher(client_, options);
  ASSERT_TRUE(watcher.Next().ok());
  const auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->reconnected);
  EXPECT_EQ(ReasonName(watcher.Next().status()), Name(v1::UNKNOWN_TOKEN));
  EXPECT_EQ(breaks.size(), 2u);
  EXPECT_THAT(
      service_.Requests<v1::WatchExpiredRequest>().at(1).resume_tokens(),
      ElementsAre("default@4"));
}

TEST_F(WatcherTest,
       AWatchOfChangesGoesOnAfterABreakAndWhereTheirLogHasChanged) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "one", 3, 4)}, .end = Unavailable()});
  service_.AddWatch({.end = LogChanged("default")});
  service_.AddWatch({.messages = {MakeBatch("default", "two", 5, 6)},
                     .end = MakeError(grpc::StatusCode::FAILED_PRECONDITION,
                                      "keeps none", v1::NO_CHANGES)});
  WatchOptions options = Quick();
  options.changes = true;
  options.key_prefix = "t";
  Watcher watcher(client_, options);
  auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->events, IsEmpty());
  ASSERT_EQ(batch->changes.size(), 1u);
  EXPECT_EQ(batch->changes[0].ns, "default");
  EXPECT_EQ(batch->changes[0].key, "one");
  EXPECT_EQ(batch->changes[0].kind, ChangeKind::kPut);
  EXPECT_EQ(batch->changes[0].time, At(3));
  EXPECT_FALSE(batch->changes[0].deadline.has_value());
  batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->log_changed);
  EXPECT_EQ(batch->changes.at(0).key, "two");
  EXPECT_EQ(ReasonName(watcher.Next().status()), Name(v1::NO_CHANGES));
  const auto requests = service_.Requests<v1::WatchChangesRequest>();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_THAT(requests[1].resume_tokens(), ElementsAre("default@4"));
  EXPECT_THAT(requests[2].resume_tokens(), IsEmpty());
  EXPECT_EQ(requests[2].start(), v1::WATCH_START_EARLIEST);
  EXPECT_EQ(requests[2].key_prefix(), "t");
  EXPECT_THAT(service_.Requests<v1::WatchExpiredRequest>(), IsEmpty());
  options.lead_time = absl::Seconds(1);
  EXPECT_TRUE(
      absl::IsInvalidArgument(Watcher(client_, options).Next().status()));
}

TEST_F(WatcherTest, GoesOnBehindWhatWasReadAfterABreak) {
  service_.AddWatch(
      {.messages = {MakeBatch("a", "", 0, 10), MakeBatch("b", "", 0, 11),
                    MakeBatch("a", "one", 12, 13)},
       .end = Unavailable()});
  service_.AddWatch(
      {.messages = {MakeBatch("a", "", 0, 13), MakeBatch("a", "two", 21, 22),
                    MakeBatch("b", "", 0, 23)},
       .hang = true});
  int breaks = 0;
  WatchOptions options = Quick();
  options.namespaces = {"a", "b"};
  options.on_break = [&](const absl::Status& why) {
    EXPECT_TRUE(absl::IsUnavailable(why));
    ++breaks;
  };
  Watcher watcher(client_, options);
  for (const char* token : {"a@10", "b@11", "a@13"}) {
    const auto batch = watcher.Next();
    EXPECT_EQ(batch->resume_token, token);
    EXPECT_FALSE(batch->reconnected);
  }
  auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->reconnected);
  EXPECT_FALSE(batch->log_changed);
  batch = watcher.Next();
  EXPECT_FALSE(batch->reconnected);
  EXPECT_EQ(batch->events.at(0).key, "two");
  batch = watcher.Next();
  EXPECT_TRUE(batch->reconnected);
  EXPECT_EQ(batch->ns, "b");
  EXPECT_EQ(breaks, 1);
  const auto requests = service_.Requests<v1::WatchExpiredRequest>();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_THAT(requests[0].resume_tokens(), IsEmpty());
  EXPECT_THAT(requests[1].resume_tokens(),
              UnorderedElementsAre("a@13", "b@11"));
  EXPECT_EQ(requests[1].start(), v1::WATCH_START_UNSPECIFIED);
}

TEST_F(WatcherTest, NamespaceThatNeverSpokeStartsAsAsked) {
  service_.AddWatch(
      {.messages = {MakeBatch("a", "", 0, 10)}, .end = Unavailable()});
  service_.AddWatch({.messages = {MakeBatch("b", "", 0, 11)}, .hang = true});
  WatchOptions options = Quick();
  options.namespaces = {"a", "b"};
  options.start = WatchStart::kEarliest;
  Watcher watcher(client_, options);
  ASSERT_TRUE(watcher.Next().ok());
  EXPECT_EQ(watcher.Next()->ns, "b");
  const auto request = service_.Requests<v1::WatchExpiredRequest>().at(1);
  EXPECT_THAT(request.resume_tokens(), ElementsAre("a@10"));
  EXPECT_EQ(request.start(), v1::WATCH_START_EARLIEST);
}

TEST_F(WatcherTest, LogThatChangedIsBegunAnewAndSaidSo) {
  service_.AddWatch(
      {.messages = {MakeBatch("a", "", 0, 10), MakeBatch("b", "", 0, 11)},
       .end = Unavailable()});
  service_.AddWatch({.end = LogChanged("b")});
  service_.AddWatch(
      {.messages = {MakeBatch("b", "new", 3, 4), MakeBatch("a", "", 0, 20),
                    MakeBatch("b", "newer", 5, 6)},
       .end = Unavailable()});
  service_.AddWatch({.messages = {MakeBatch("b", "", 0, 7)}, .hang = true});
  WatchOptions options = Quick();
  options.namespaces = {"a", "b"};
  int breaks = 0;
  options.on_break = [&](const absl::Status&) { ++breaks; };
  Watcher watcher(client_, options);
  ASSERT_TRUE(watcher.Next().ok());
  ASSERT_TRUE(watcher.Next().ok());
  auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->events.at(0).key, "new");
  EXPECT_TRUE(batch->log_changed);
  EXPECT_TRUE(batch->reconnected);
  EXPECT_EQ(batch->missed_after, At(11));
  EXPECT_FALSE(watcher.Next()->log_changed);
  EXPECT_FALSE(watcher.Next()->log_changed);
  EXPECT_EQ(breaks, 1);
  EXPECT_FALSE(watcher.Next()->log_changed);
  const auto requests = service_.Requests<v1::WatchExpiredRequest>();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_THAT(requests[1].resume_tokens(), ElementsAre("a@10", "b@11"));
  EXPECT_THAT(requests[2].resume_tokens(), ElementsAre("a@10"));
  EXPECT_EQ(requests[2].start(), v1::WATCH_START_EARLIEST);
  EXPECT_THAT(requests[3].resume_tokens(), ElementsAre("a@20", "b@6"));
  EXPECT_EQ(requests[3].start(), v1::WATCH_START_UNSPECIFIED);
}

TEST_F(WatcherTest, EveryLogMayHaveChanged) {
  service_.AddWatch({.end = LogChanged("b")});
  service_.AddWatch({.end = LogChanged("a", v1::RESUME_POINT_AHEAD)});
  service_.AddWatch(
      {.messages = {MakeBatch("a", "", 0, 1), MakeBatch("b", "", 0, 2)},
       .hang = true});
  WatchOptions options = Quick();
  options.namespaces = {"a", "b"};
  options.resume_tokens = {{"a", "a@10"}, {"b", "b@11"}};
  Watcher watcher(client_, options);
  for (int i = 0; i < 2; ++i) {
    const auto batch = watcher.Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_TRUE(batch->log_changed);
    EXPECT_FALSE(batch->reconnected);
    EXPECT_EQ(batch->missed_after, absl::InfinitePast());
  }
  EXPECT_THAT(
      service_.Requests<v1::WatchExpiredRequest>().at(2).resume_tokens(),
      IsEmpty());
}

TEST_F(WatcherTest, LogThatChangedWithoutATokenEndsIt) {
  service_.AddWatch({.end = LogChanged("default")});
  Watcher watcher(client_, Quick());
  EXPECT_EQ(ReasonName(watcher.Next().status()), Name(v1::LOG_CHANGED));
  EXPECT_EQ(service_.Requests<v1::WatchExpiredRequest>().size(), 1u);
}

TEST_F(WatcherTest, FailOnLossEndsItWhereSomethingIsMissing) {
  WatchOptions options = Quick();
  options.fail_on_loss = true;
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)}, .end = Unavailable()});
  service_.AddWatch({.end = LogChanged("default", v1::RESUME_POINT_TRIMMED)});
  Watcher trimmed(client_, options);
  ASSERT_TRUE(trimmed.Next().ok());
  EXPECT_TRUE(absl::IsOutOfRange(trimmed.Next().status()));
  EXPECT_TRUE(
      service_.Requests<v1::WatchExpiredRequest>().at(1).fail_on_loss());

  service_.AddWatch({.end = LogChanged("default")});
  options.resume_tokens = {{"default", "default@10"}};
  Watcher changed(client_, options);
  EXPECT_TRUE(absl::IsFailedPrecondition(changed.Next().status()));
}

// What gRPC makes of RST_STREAM with ENHANCE_YOUR_CALM; the server itself says
// a reason, which may pass, too.
TEST_F(WatcherTest, StreamThatIsResetForWantOfCalmIsABreak) {
  for (const char* message : {"", "Stream reset"}) {
    service_.AddWatch(
        {.messages = {MakeBatch("default", "", 0, 10)},
         .end = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, message)});
  }
  service_.AddWatch({.messages = {MakeBatch("default", "", 0, 20)},
                     .end = MakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      "too slow", v1::UNREAD_RESPONSES)});
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 30)}, .hang = true});
  std::vector<std::string> breaks;
  WatchOptions options = Quick();
  options.on_break = [&](const absl::Status& why) {
    breaks.push_back(std::string(why.message()));
  };
  Watcher watcher(client_, options);
  ASSERT_TRUE(watcher.Next().ok());
  EXPECT_TRUE(watcher.Next()->reconnected);
  EXPECT_TRUE(watcher.Next()->reconnected);
  EXPECT_TRUE(watcher.Next()->reconnected);
  EXPECT_THAT(breaks, ElementsAre("", "Stream reset", "too slow"));
}

TEST_F(WatcherTest, PlaceAmongThoseThatAreToldWhatWillDieMayStillBeTaken) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)}, .end = Unavailable()});
  // By the stream that has broken.
  service_.AddWatch({.end = MakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      "too many", v1::MAX_EXPIRING_WATCHERS)});
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 20)}, .hang = true});
  WatchOptions options = Quick();
  options.lead_time = absl::Minutes(1);
  Watcher watcher(client_, options);
  ASSERT_TRUE(watcher.Next().ok());
  const auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->reconnected);
}

TEST_F(WatcherTest, OptionsThatDoNotGoTogetherEndItBeforeAnyCall) {
  const std::pair<WatchOptions, std::string> cases[] = {
      {{.max_in_flight = 1}, "max_in_flight goes with group only"},
      {{.lead_time = absl::Seconds(1), .group = "g"},
       "group does not go with lead_time"},
      {{.resume_tokens = {{"default", "token"}}, .group = "g"},
       "group does not go with resume_tokens"},
      {{.fail_on_loss = true, .group = "g"},
       "group does not go with fail_on_loss"},
      {{.key_prefix = "k", .group = "g"}, "group does not go with key_prefix"},
      {{.resume_tokens = {{"default", "token"}}, .lead_time = absl::Seconds(1)},
       "lead_time does not go with resume_tokens"},
      {{.fail_on_loss = true, .lead_time = absl::Seconds(1)},
       "lead_time does not go with fail_on_loss"},
      {{.start = WatchStart::kEarliest, .lead_time = absl::Seconds(1)},
       "lead_time does not go with start"}};
  for (const auto& [options, message] : cases) {
    Watcher watcher(client_, options);
    EXPECT_EQ(watcher.Next().status(), absl::InvalidArgumentError(message));
  }
  EXPECT_THAT(service_.Requests<v1::WatchExpiredRequest>(), IsEmpty());
  EXPECT_THAT(service_.Requests<v1::ConsumeExpiredRequest>(), IsEmpty());
  EXPECT_THAT(service_.Requests<v1::WatchExpiringRequest>(), IsEmpty());
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
  EXPECT_EQ(service_.Requests<v1::WatchExpiredRequest>().size(), 3u);
}

// What the server does for a client that asks for larger messages than its
// channel takes, and for what it asks then.
void AddLargeEvent(FakeService& service) {
  auto large = MakeBatch("default", "large", 10, 20);
  large.mutable_events(0)->set_value(std::string(5 << 20, 'v'));
  service.AddWatch({.messages = {MakeBatch("default", "", 0, 10), large}});
  auto omitted = MakeBatch("default", "large", 10, 20);
  omitted.mutable_events(0)->clear_value();
  omitted.mutable_events(0)->set_omitted_value_bytes(5 << 20);
  service.AddWatch({.messages = {omitted, MakeBatch("default", "next", 21, 22)},
                    .hang = true});
}

std::shared_ptr<grpc::Channel> DefaultChannel(const FakeService& service) {
  return grpc::CreateChannel(service.address(),
                             grpc::InsecureChannelCredentials());
}

TEST_F(WatcherTest, MessageThatTheChannelDoesNotTakeIsPassedAndSaidSo) {
  AddLargeEvent(service_);
  std::vector<absl::Status> breaks;
  WatchOptions options = Quick();
  options.on_break = [&](const absl::Status& why) { breaks.push_back(why); };
  Watcher watcher(Client(DefaultChannel(service_)), options);
  ASSERT_TRUE(watcher.Next().ok());
  auto batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->omitted_values, 1u);
  EXPECT_EQ(batch->events.at(0).key, "large");
  EXPECT_EQ(batch->events.at(0).value, "");
  EXPECT_EQ(batch->events.at(0).omitted_value_bytes, 5u << 20);
  batch = watcher.Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->omitted_values, 0u);
  EXPECT_EQ(batch->events.at(0).key, "next");
  ASSERT_EQ(breaks.size(), 1u);
  EXPECT_TRUE(IsMessageTooLarge(breaks[0])) << breaks[0];
  const auto requests = service_.Requests<v1::WatchExpiredRequest>();
  EXPECT_EQ(requests.at(0).max_message_bytes(), 64u << 20);
  EXPECT_EQ(requests.at(1).max_message_bytes(), 4u << 20);
  EXPECT_THAT(requests.at(1).resume_tokens(), ElementsAre("default@10"));
}

TEST_F(WatcherTest, MessageThatTheChannelDoesNotTakeEndsItWhereNothingHelps) {
  AddLargeEvent(service_);
  WatchOptions options = Quick();
  options.max_message_bytes = 4 << 20;
  Watcher watcher(Client(DefaultChannel(service_)), options);
  ASSERT_TRUE(watcher.Next().ok());
  const absl::Status end = watcher.Next().status();
  EXPECT_TRUE(IsMessageTooLarge(end)) << end;
  EXPECT_THAT(end.message(), HasSubstr("grpc.max_receive_message_length"));
}

TEST_F(WatcherTest, OwnErrorOfTheServerEndsIt) {
  service_.AddWatch({.messages = {MakeBatch("default", "", 0, 10)},
                     .end = MakeError(grpc::StatusCode::INTERNAL, "a bug",
                                      v1::INTERNAL_ERROR)});
  Watcher watcher(client_, Quick());
  ASSERT_TRUE(watcher.Next().ok());
  EXPECT_EQ(ReasonName(watcher.Next().status()), Name(v1::INTERNAL_ERROR));
}

TEST_F(WatcherTest, FirstAttemptThatFailsIsReportedAtOnce) {
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
  EXPECT_EQ(service_.Requests<v1::WatchExpiredRequest>().at(2).start(),
            v1::WATCH_START_EARLIEST);
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
      client_, {}, [](WatchBatch) { ADD_FAILURE() << "no batch"; },
      [&](const absl::Status& why) {
        EXPECT_TRUE(absl::IsNotFound(why));
        ended.Notify();
      });
  ended.WaitForNotification();
}

}  // namespace
}  // namespace timecache
