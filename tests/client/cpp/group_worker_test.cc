// timecache::GroupWorker against a stand-in for the server, whose streams are
// scripted: what it begins, settles and how it ends.
#include "timecache/group_worker.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cpp/group_worker_fixture.h"
#include "timecache/status.h"

namespace timecache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GroupWorkerTest : public GroupWorkerFixture {};

TEST_F(GroupWorkerTest, HoldsTwiceAsManyEventsAsItHasThreads) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  GroupWorkerOptions options = Quick();
  options.threads = 3;
  GroupWorker worker(client_, options,
                     [](const ExpiredEvent&) { return Settle::Ack(); });
  AwaitSettled(1);
  EXPECT_EQ(
      service_.Requests<v1::ConsumeExpiredRequest>().at(0).max_in_flight(), 6u);
}

TEST_F(GroupWorkerTest, HandlersRunSideBySide) {
  service_.AddWatch({.messages = {Deliveries(1, 3)}, .hang = true});
  GroupWorkerOptions options = Quick();
  options.threads = 3;
  absl::Barrier together(3);  // Passed only if all three run at a time.
  GroupWorker worker(client_, options, [&](const ExpiredEvent&) {
    together.Block();
    return Settle::Ack();
  });
  AwaitSettled(3);
}

TEST_F(GroupWorkerTest, HandlerThatThrowsIsANack) {
  service_.AddWatch({.messages = {Deliveries(1, 2)}, .hang = true});
  GroupWorkerOptions options = Quick();
  options.threads = 1;
  options.retry_delay = absl::Seconds(7);
  GroupWorker worker(client_, options, [](const ExpiredEvent& event) -> Settle {
    if (event.event_id == 1) throw std::runtime_error("no ink");
    throw 17;
  });
  const auto settled = AwaitSettled(2);
  EXPECT_TRUE(worker.Stop().ok());
  for (const v1::Settlement& settlement : settled) {
    EXPECT_EQ(settlement.nack().delay().seconds(), 7);
  }
  EXPECT_EQ(worker.counters().thrown, 2u);
  EXPECT_EQ(worker.counters().nacked, 2u);
  ASSERT_EQ(errors().size(), 2u);
  EXPECT_THAT(std::string(errors()[0].message()),
              HasSubstr("the handler of key \"key1\", event 1, attempt 1 "
                        "threw: no ink"));
}

TEST_F(GroupWorkerTest, FullBatchDoesNotLinger) {
  service_.AddWatch({.messages = {Deliveries(1, 5)}, .hang = true});
  GroupWorkerOptions options = Quick();
  options.threads = 1;
  options.settle_batch_max = 2;
  options.settle_linger = absl::Hours(1);
  absl::Notification go_on;
  GroupWorker worker(client_, options, [&](const ExpiredEvent& event) {
    if (event.event_id == 5) go_on.WaitForNotification();
    return Settle::Ack();
  });
  EXPECT_EQ(AwaitSettled(4).size(), 4u);
  EXPECT_EQ(
      service_.Requests<v1::SettleExpiredRequest>().at(0).settlements_size(),
      2);
  // Nothing is left to handle after the fifth, so it does not linger, either.
  go_on.Notify();
  EXPECT_EQ(EventIdOf(AwaitSettled(5).back()), 5u);
}

TEST_F(GroupWorkerTest, SettlementsLingerNoLongerThanAsked) {
  service_.AddWatch({.messages = {Deliveries(1, 2)}, .hang = true});
  GroupWorkerOptions options = Quick();
  options.threads = 1;
  options.settle_linger = absl::Milliseconds(1);
  absl::Notification settled;
  GroupWorker worker(client_, options, [&](const ExpiredEvent& event) {
    // The first one's settlement does not wait for this one's.
    if (event.event_id == 2) AwaitSettled(1);
    return Settle::Ack();
  });
  AwaitSettled(2);
}

TEST_F(GroupWorkerTest, StopLetsHandlersFinishAndSettles) {
  service_.AddWatch({.messages = {Deliveries(1, 4)}, .hang = true});
  GroupWorkerOptions options = Quick();
  options.threads = 2;
  absl::Barrier begun(3);
  absl::Notification go_on;
  GroupWorker worker(client_, options, [&](const ExpiredEvent&) {
    begun.Block();
    go_on.WaitForNotification();
    return Settle::Ack();
  });
  begun.Block();
  worker.RequestStop();
  go_on.Notify();
  EXPECT_TRUE(worker.Wait().ok());
  EXPECT_EQ(worker.counters().handled, 2u);
  EXPECT_EQ(worker.counters().acked, 2u);
  EXPECT_EQ(AwaitSettled(2).size(), 2u);
}

TEST_F(GroupWorkerTest, HandlerMayRequestTheStop) {
  service_.AddWatch({.messages = {Deliveries(1, 2)}, .hang = true});
  GroupWorkerOptions options = Quick();
  options.threads = 1;
  std::atomic<GroupWorker*> self = nullptr;
  absl::Notification ready;
  GroupWorker worker(client_, options, [&](const ExpiredEvent&) {
    ready.WaitForNotification();
    self.load()->RequestStop();
    return Settle::Ack();
  });
  self = &worker;
  ready.Notify();
  EXPECT_TRUE(worker.Wait().ok());
  EXPECT_EQ(worker.counters().acked, 1u);
}

TEST_F(GroupWorkerTest, StopGivesUpInTimeWithoutAServer) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  service_.OnSettle([](const v1::SettleExpiredRequest&,
                       v1::SettleExpiredResponse*) { return Unavailable(); });
  GroupWorkerOptions options = Quick();
  options.stop_timeout = absl::Milliseconds(20);
  absl::Notification handled;
  GroupWorker worker(client_, options, [&](const ExpiredEvent&) {
    handled.Notify();
    return Settle::Ack();
  });
  handled.WaitForNotification();
  EXPECT_FALSE(worker.Stop().ok());
  EXPECT_EQ(worker.counters().unsettled, 1u);
  EXPECT_EQ(worker.counters().acked, 0u);
}

TEST_F(GroupWorkerTest, LossIsReported) {
  auto first = Deliveries(1, 1);
  first.set_lost(5);
  auto second = Deliveries(2, 1);
  second.set_lost(6);
  service_.AddWatch({.messages = {first, second}, .hang = true});
  GroupWorkerOptions options = Quick();
  std::vector<uint64_t> losses;
  options.on_loss = [&](uint64_t lost) { losses.push_back(lost); };
  GroupWorker worker(client_, options,
                     [](const ExpiredEvent&) { return Settle::Ack(); });
  AwaitSettled(2);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_THAT(losses, ElementsAre(5, 6));
  EXPECT_EQ(worker.counters().lost, 11u);
}

TEST_F(GroupWorkerTest, GroupThatIsDeletedEndsIt) {
  absl::Notification handled;
  service_.AddWatch(
      {.messages = {Deliveries(1, 1)},
       .before =
           [&](size_t message) {
             if (message == 1) handled.WaitForNotification();
           },
       .end = MakeError(grpc::StatusCode::NOT_FOUND, "the group was deleted",
                        v1::GROUP_NOT_FOUND)});
  GroupWorker worker(client_, Quick(), [&](const ExpiredEvent&) {
    handled.Notify();
    return Settle::Ack();
  });
  EXPECT_EQ(ReasonName(worker.Wait()), Name(v1::GROUP_NOT_FOUND));
  // What its handlers had to say has been sent all the same.
  EXPECT_EQ(worker.counters().acked, 1u);
}

TEST_F(GroupWorkerTest, WithoutAGroupItTakesPartInNothing) {
  GroupWorkerOptions options = Quick();
  options.group = "";
  GroupWorker worker(client_, options,
                     [](const ExpiredEvent&) { return Settle::Ack(); });
  EXPECT_TRUE(absl::IsInvalidArgument(worker.Wait()));
  EXPECT_TRUE(service_.Requests<v1::ConsumeExpiredRequest>().empty());
}

TEST_F(GroupWorkerTest, ItsDestructionStopsIt) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  absl::Notification begun;
  {
    GroupWorker worker(client_, Quick(), [&](const ExpiredEvent&) {
      begun.Notify();
      return Settle::Ack();
    });
    begun.WaitForNotification();
  }
  EXPECT_EQ(AwaitSettled(1).size(), 1u);
}

}  // namespace
}  // namespace timecache
