#include "client/examples/session_watch.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"

namespace timecache::sessionize {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Time kBegin = absl::UnixEpoch();

v1::WatchExpiredResponse Batch(const std::string& visitor, int death_unix_s) {
  auto batch = MakeBatch("default", visitor, death_unix_s, death_unix_s);
  Session session;
  AddRequest({visitor, kBegin, 5}, session);
  batch.mutable_events(0)->set_value(EncodeSession(session));
  return batch;
}

// A watch on a service whose messages are written beforehand. What it tells is
// read once it is gone, or at a watermark that it was awaited at.
class SessionWatchTest : public ::testing::Test {
 protected:
  SessionWatch Watch(absl::Duration patience = absl::Hours(1)) {
    return SessionWatch(
        service_.MakeClient(), WatchStart::kNow,
        {.on_end =
             [this](const EndedSession& ended) {
               told_.push_back(ended.visitor);
               return outcome_;
             },
         .on_pause = [] { return absl::OkStatus(); },
         .on_warning =
             [this](const std::string& what) { warnings_.push_back(what); }},
        patience);
  }

  FakeService service_;
  absl::Status outcome_;
  std::vector<std::string> told_;
  std::vector<std::string> warnings_;
};

TEST_F(SessionWatchTest, TellsInTheOrderOfTheEvents) {
  service_.AddWatch(
      {.messages = {Batch("b", 10), Batch("a", 20)}, .hang = true});
  SessionWatch watch = Watch();
  EXPECT_TRUE(watch.Await(absl::InfinitePast()).ok());
  EXPECT_TRUE(watch.Await(kBegin + absl::Seconds(20)).ok());
  EXPECT_THAT(told_, ElementsAre("b", "a"));
  EXPECT_EQ(watch.told(), 2u);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(SessionWatchTest, OnlyExpiryEndsASession) {
  auto evicted = Batch("e", 10);
  evicted.mutable_events(0)->set_cause(v1::EXPIRY_CAUSE_EVICTED);
  auto rotated = Batch("r", 20);
  rotated.mutable_events(0)->set_cause(v1::EXPIRY_CAUSE_ROTATED);
  service_.AddWatch(
      {.messages = {evicted, rotated, Batch("x", 30)}, .hang = true});
  SessionWatch watch = Watch();
  EXPECT_TRUE(watch.Await(kBegin + absl::Seconds(30)).ok());
  EXPECT_THAT(told_, ElementsAre("x"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("e: its session was evicted"),
                                     HasSubstr("r: its session was rotated")));
}

TEST_F(SessionWatchTest, EntryThatIsNoSessionIsWarnedAbout) {
  auto other = Batch("o", 10);
  other.mutable_events(0)->set_value("something else");
  service_.AddWatch({.messages = {other, Batch("x", 30)}, .hang = true});
  SessionWatch watch = Watch();
  EXPECT_TRUE(watch.Await(kBegin + absl::Seconds(30)).ok());
  EXPECT_THAT(told_, ElementsAre("x"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("o: ")));
}

TEST_F(SessionWatchTest, LostEventsFailIt) {
  auto lost = Batch("b", 20);
  lost.set_lost(1234);
  service_.AddWatch({.messages = {Batch("a", 10), lost}, .hang = true});
  SessionWatch watch = Watch();
  const absl::Status status = watch.Await(kBegin + absl::Seconds(20));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1,234 sessions"));
  EXPECT_EQ(watch.status(), status);
}

TEST_F(SessionWatchTest, GoesOnAfterABreak) {
  service_.AddWatch({.messages = {Batch("a", 10)},
                     .end = {grpc::StatusCode::UNAVAILABLE, "gone"}});
  service_.AddWatch({.messages = {Batch("b", 20)}, .hang = true});
  SessionWatch watch = Watch();
  EXPECT_TRUE(watch.Await(kBegin + absl::Seconds(20)).ok());
  EXPECT_THAT(told_, ElementsAre("a", "b"));
  EXPECT_EQ(service_.watch_requests().at(1).resume_tokens_size(), 1);
}

TEST_F(SessionWatchTest, RestartedServerFailsIt) {
  service_.AddWatch({.messages = {Batch("a", 10)},
                     .end = {grpc::StatusCode::UNAVAILABLE, "gone"}});
  service_.AddWatch(
      {.end = MakeError(grpc::StatusCode::FAILED_PRECONDITION, "another log",
                        v1::LOG_CHANGED, {{"namespace", "default"}})});
  service_.AddWatch({.messages = {Batch("b", 20)}, .hang = true});
  SessionWatch watch = Watch();
  EXPECT_EQ(watch.Await(absl::InfiniteFuture()).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_THAT(told_, ElementsAre("a"));
}

TEST_F(SessionWatchTest, BreakThatLastsTooLongFailsIt) {
  service_.AddWatch({.messages = {Batch("a", 10)},
                     .end = {grpc::StatusCode::UNAVAILABLE, "gone"}});
  SessionWatch watch = Watch(absl::ZeroDuration());
  const absl::Status status = watch.Await(absl::InfiniteFuture());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("broke"));
}

TEST_F(SessionWatchTest, DeletedNamespaceFailsIt) {
  service_.AddWatch({.messages = {Batch("a", 10)},
                     .end = MakeError(grpc::StatusCode::NOT_FOUND, "deleted",
                                      v1::NAMESPACE_NOT_FOUND)});
  SessionWatch watch = Watch();
  EXPECT_EQ(watch.Await(absl::InfiniteFuture()).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(SessionWatchTest, OutputThatFailsFailsIt) {
  outcome_ = absl::UnknownError("disk full");
  service_.AddWatch(
      {.messages = {Batch("a", 10), Batch("b", 20)}, .hang = true});
  SessionWatch watch = Watch();
  EXPECT_EQ(watch.Await(kBegin + absl::Seconds(20)), outcome_);
}

}  // namespace
}  // namespace timecache::sessionize
