// The client's waits while somebody sets the time of day: each of these takes
// an hour if it goes by that.
#include "tests/client/cpp/time_of_day.h"

#include <atomic>
#include <string>

#include "gtest/gtest.h"
#include "tests/client/cpp/group_worker_fixture.h"
#include "tests/client/fake_service.h"
#include "timecache/group_worker.h"
#include "timecache/pipeline.h"
#include "timecache/watcher.h"

namespace timecache {
namespace {

constexpr absl::Duration kStep = absl::Hours(1);

class TimeOfDayTest : public GroupWorkerFixture {};

TEST_F(TimeOfDayTest, WatchPausesAreNotLonger) {
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 10)}, .end = Unavailable()});
  service_.AddWatch(
      {.messages = {MakeBatch("default", "", 0, 20)}, .hang = true});
  Watcher watcher(client_, {.min_pause = absl::Milliseconds(1),
                            .max_pause = absl::Milliseconds(4)});
  ASSERT_TRUE(watcher.Next().ok());
  const TimeOfDayStep step(kStep);
  EXPECT_TRUE(watcher.Next().ok());
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(watcher.Next(absl::Milliseconds(5)).status()));
}

TEST_F(TimeOfDayTest, SettlementsDoNotLingerLonger) {
  service_.AddWatch({.messages = {Deliveries(1, 2)}, .hang = true});
  std::atomic<int> calls = 0;
  service_.OnSettle(
      [&](const v1::SettleExpiredRequest& request, v1::SettleExpiredResponse*) {
        if (++calls == 1) return Unavailable();
        Note(request);
        return grpc::Status::OK;
      });
  const TimeOfDayStep step(kStep);
  GroupWorkerOptions options = Quick();
  options.settle_batch_max = 100;
  options.settle_linger = absl::Milliseconds(1);
  GroupWorker worker(client_, options,
                     [](const ExpiredEvent&) { return Settle::Ack(); });
  AwaitSettled(2);
  EXPECT_TRUE(worker.Stop().ok());
}

TEST_F(TimeOfDayTest, StopOfAWorkerGivesUpInTime) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  service_.OnSettle(
      [&](const v1::SettleExpiredRequest& request, v1::SettleExpiredResponse*) {
        Note(request);
        return Unavailable();
      });
  const TimeOfDayStep step(kStep);
  GroupWorkerOptions options = Quick();
  options.stop_timeout = absl::Milliseconds(5);
  GroupWorker worker(client_, options,
                     [](const ExpiredEvent&) { return Settle::Ack(); });
  AwaitSettled(1);
  EXPECT_FALSE(worker.Stop().ok());
  EXPECT_EQ(worker.counters().unsettled, 1u);
}

TEST_F(TimeOfDayTest, PipelineWithoutAnswersEndsAtItsTimeout) {
  service_.Hang(true);
  {
    const TimeOfDayStep step(kStep);
    Pipeline pipeline(service_.MakeClient({.timeout = absl::Milliseconds(50)}));
    ASSERT_TRUE(
        pipeline.Add(Operation::Get("a"), [](const OperationResult&) {}).ok());
    EXPECT_TRUE(absl::IsDeadlineExceeded(pipeline.Close()));
  }
  service_.Hang(false);
}

}  // namespace
}  // namespace timecache
