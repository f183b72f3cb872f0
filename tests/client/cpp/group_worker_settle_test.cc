// timecache::GroupWorker, where a settlement meets what comes in between: a
// break, another attempt, a refusal.
#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cpp/group_worker_fixture.h"
#include "timecache/group_worker.h"
#include "timecache/status.h"

namespace timecache {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class GroupWorkerSettleTest : public GroupWorkerFixture {
 protected:
  // What follows the first message comes once that is being settled; no
  // settlement is answered before came_again_.
  void HoldSettlements(std::vector<v1::WatchExpiredResponse> messages) {
    service_.AddWatch({.messages = std::move(messages),
                       .before =
                           [this](size_t message) {
                             if (message == 1) asked_.WaitForNotification();
                           },
                       .hang = true});
    service_.OnSettle([this](const v1::SettleExpiredRequest& request,
                             v1::SettleExpiredResponse*) {
      if (!asked_.HasBeenNotified()) asked_.Notify();
      came_again_.WaitForNotification();
      Note(request);
      return grpc::Status::OK;
    });
  }

  absl::Notification asked_;
  absl::Notification came_again_;

  // A worker that settles all as `how`, and is given an event again, in attempt
  // `next`, while its first settlement is under way, which gets `refusal`.
  // Returns once that and another event are settled.
  GroupWorkerCounters SettleWhatComesAgain(uint32_t first, uint32_t next,
                                           const grpc::Status& refusal,
                                           const Settle& how) {
    absl::Notification asked;
    absl::Notification came_again;
    service_.AddWatch({.messages = {MakeDelivery("default", "key1", 1, first),
                                    MakeDelivery("default", "key1", 1, next),
                                    MakeDelivery("default", "key2", 2, 1)},
                       .before =
                           [&](size_t message) {
                             if (message == 1) asked.WaitForNotification();
                           },
                       .hang = true});
    bool refused = false;
    service_.OnSettle([&](const v1::SettleExpiredRequest& request,
                          v1::SettleExpiredResponse* response) {
      if (!asked.HasBeenNotified()) asked.Notify();
      came_again.WaitForNotification();
      for (int i = 0; i < request.settlements_size(); ++i) {
        if (EventIdOf(request.settlements(i)) == 2) continue;
        if (std::exchange(refused, true)) {
          EXPECT_EQ(request.settlements(i).delivery_token(), TokenOf(1, next));
        } else {
          Refuse(refusal, response->mutable_results(i));
        }
      }
      Note(request);
      return grpc::Status::OK;
    });
    GroupWorker worker(client_, Quick(), [&](const ExpiredEvent& event) {
      if (event.event_id == 2) came_again.Notify();
      return how;
    });
    AwaitSettled(3);
    EXPECT_TRUE(worker.Stop().ok());
    return worker.counters();
  }
};

TEST_F(GroupWorkerSettleTest, SettlementIsSentAgainUntilItArrives) {
  size_t settled = 0;
  for (const grpc::Status& failure :
       {Unavailable(), MakeError(grpc::StatusCode::RESOURCE_EXHAUSTED, "behind",
                                 v1::JOURNAL_BACKLOG)}) {
    service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
    std::atomic<int> calls = 0;
    service_.OnSettle([&](const v1::SettleExpiredRequest& request,
                          v1::SettleExpiredResponse* response) {
      if (++calls <= 2) return failure;
      // One of the attempts that nobody has answered did settle it.
      Refuse(MakeError(grpc::StatusCode::NOT_FOUND, "gone",
                       v1::EVENT_NOT_UNSETTLED),
             response->mutable_results(0));
      Note(request);
      return grpc::Status::OK;
    });
    GroupWorker worker(client_, Quick(),
                       [](const ExpiredEvent&) { return Settle::Ack(); });
    AwaitSettled(++settled);
    EXPECT_TRUE(worker.Stop().ok());
    EXPECT_EQ(worker.counters().acked, 1u);
    EXPECT_EQ(worker.counters().stale, 0u);
    EXPECT_EQ(worker.counters().unsettled, 0u);
    EXPECT_EQ(errors().size(), 2 * settled);
  }
}

TEST_F(GroupWorkerSettleTest, BreakLosesWhatWasNotBegunToOthers) {
  absl::Barrier begun(3);
  absl::Notification broken;
  absl::Notification came_again;
  service_.AddWatch({.messages = {Deliveries(1, 3)},
                     .before =
                         [&](size_t message) {
                           if (message == 1) begun.Block();
                         },
                     .end = Unavailable()});
  // What runs comes again, too, and before the fourth.
  service_.AddWatch({.messages = {MakeDelivery("default", "key1", 1, 2),
                                  MakeDelivery("default", "key4", 4, 1)},
                     .hang = true});
  GroupWorkerOptions options = Quick();
  options.on_error = [&](const absl::Status& why) {
    EXPECT_TRUE(absl::IsUnavailable(why));
    broken.Notify();
  };
  GroupWorker worker(client_, options, [&](const ExpiredEvent& event) {
    EXPECT_NE(event.event_id, 3u);
    if (event.event_id <= 2) begun.Block();
    if (event.event_id == 2) broken.WaitForNotification();
    if (event.event_id == 4) came_again.Notify();
    if (event.event_id != 1) return Settle::Ack();
    came_again.WaitForNotification();
    return Settle::Nack();
  });
  std::set<std::string> tokens;
  for (const auto& settlement : AwaitSettled(3)) {
    tokens.insert(settlement.delivery_token());
  }
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_THAT(tokens, ElementsAre(TokenOf(1, 2), TokenOf(2, 1), TokenOf(4, 1)));
  EXPECT_EQ(worker.counters().handled, 3u);
  // Should the group have to be made again, it leaves nothing out.
  EXPECT_EQ(service_.Requests<v1::ConsumeExpiredRequest>().at(1).start(),
            v1::WATCH_START_EARLIEST);
}

TEST_F(GroupWorkerSettleTest, WhatIsBeingAcknowledgedIsNotHandledAgain) {
  HoldSettlements({MakeDelivery("default", "key1", 1, 1),
                   MakeDelivery("default", "key1", 1, 2),
                   MakeDelivery("default", "key2", 2, 1)});
  GroupWorker worker(client_, Quick(), [&](const ExpiredEvent& event) {
    if (event.event_id == 2) came_again_.Notify();
    return Settle::Ack();
  });
  AwaitSettled(2);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_EQ(worker.counters().handled, 2u);
  EXPECT_EQ(worker.counters().acked, 2u);
}

TEST_F(GroupWorkerSettleTest, WhatWasGivenBackIsHandledAgainBeforeTheAnswer) {
  HoldSettlements({MakeDelivery("default", "key1", 1, 1),
                   MakeDelivery("default", "key1", 1, 2)});
  GroupWorker worker(client_, Quick(), [&](const ExpiredEvent& event) {
    if (event.attempt == 1) return Settle::Nack();
    came_again_.Notify();
    return Settle::Ack();
  });
  const auto settled = AwaitSettled(2);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_EQ(settled[1].delivery_token(), TokenOf(1, 2));
  EXPECT_EQ(worker.counters().nacked, 1u);
  EXPECT_EQ(worker.counters().acked, 1u);
}

TEST_F(GroupWorkerSettleTest, WhatIsRefusedAndComesAgainIsSettledAgain) {
  const struct {
    const char* why;
    uint32_t first;
    uint32_t next;
    grpc::Status refusal;
    Settle how;
  } kCases[] = {
      {"it came too late", 1, 2,
       MakeError(grpc::StatusCode::FAILED_PRECONDITION, "given out again",
                 v1::STALE_ATTEMPT),
       Settle::PutBack()},
      {"the group was made anew, and its attempts with it", 3, 1,
       MakeError(grpc::StatusCode::FAILED_PRECONDITION, "of another group",
                 v1::STALE_ATTEMPT),
       Settle::Ack()},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.why);
    {
      absl::MutexLock lock(&mu_);
      settled_.clear();
    }
    const auto counters =
        SettleWhatComesAgain(c.first, c.next, c.refusal, c.how);
    EXPECT_EQ(counters.handled, 2u);
    EXPECT_EQ(counters.acked + counters.put_back, 2u);
    EXPECT_EQ(counters.stale, 0u);
    EXPECT_EQ(counters.unsettled, 0u);
  }
}

TEST_F(GroupWorkerSettleTest, WhatCameTooLateIsCountedAndReported) {
  service_.AddWatch({.messages = {Deliveries(1, 2)}, .hang = true});
  service_.OnSettle([&](const v1::SettleExpiredRequest& request,
                        v1::SettleExpiredResponse* response) {
    for (int i = 0; i < request.settlements_size(); ++i) {
      Refuse(EventIdOf(request.settlements(i)) == 1
                 ? MakeError(grpc::StatusCode::NOT_FOUND, "gone",
                             v1::EVENT_NOT_UNSETTLED)
                 : MakeError(grpc::StatusCode::FAILED_PRECONDITION,
                             "given out again", v1::STALE_ATTEMPT),
             response->mutable_results(i));
    }
    Note(request);
    return grpc::Status::OK;
  });
  GroupWorker worker(client_, Quick(), [](const ExpiredEvent& event) {
    return event.event_id == 1 ? Settle::Ack() : Settle::Nack();
  });
  AwaitSettled(2);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_EQ(worker.counters().stale, 2u);
  EXPECT_EQ(worker.counters().acked + worker.counters().nacked, 0u);
  std::map<std::string, std::string> reasons;
  for (const absl::Status& why : errors()) {
    reasons[std::string(why.message())] = ReasonName(why).value_or("");
  }
  EXPECT_THAT(
      reasons,
      ElementsAre(
          Pair("key \"key1\", event 1, attempt 1 has been handled, but is not "
               "settled: gone",
               Name(v1::EVENT_NOT_UNSETTLED)),
          Pair("key \"key2\", event 2, attempt 1 has been handled, but is not "
               "settled: given out again",
               Name(v1::STALE_ATTEMPT))));
}

TEST_F(GroupWorkerSettleTest, PutBackThatIsRefusedIsTriedAgainLater) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  service_.OnSettle([&](const v1::SettleExpiredRequest& request,
                        v1::SettleExpiredResponse* response) {
    if (request.settlements(0).has_put_back()) {
      Refuse(MakeError(grpc::StatusCode::RESOURCE_EXHAUSTED, "full",
                       v1::MAX_ENTRIES),
             response->mutable_results(0));
    }
    Note(request);
    return grpc::Status::OK;
  });
  GroupWorkerOptions options = Quick();
  options.retry_delay = absl::Seconds(7);
  GroupWorker worker(client_, options,
                     [](const ExpiredEvent&) { return Settle::PutBack(); });
  const auto settled = AwaitSettled(2);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_EQ(settled[1].nack().delay().seconds(), 7);
  EXPECT_EQ(worker.counters().nacked, 1u);
  EXPECT_EQ(worker.counters().put_back, 0u);
  ASSERT_EQ(errors().size(), 1u);
  EXPECT_EQ(ReasonName(errors()[0]), Name(v1::MAX_ENTRIES));
}

TEST_F(GroupWorkerSettleTest, WhatIsRefusedTwiceIsLeftToTheTimeout) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  service_.OnSettle([&](const v1::SettleExpiredRequest& request,
                        v1::SettleExpiredResponse* response) {
    Refuse(MakeError(grpc::StatusCode::INVALID_ARGUMENT, "nack.delay: too long",
                     v1::INVALID_FIELD),
           response->mutable_results(0));
    Note(request);
    return grpc::Status::OK;
  });
  GroupWorker worker(client_, Quick(), [](const ExpiredEvent&) {
    return Settle::Nack(absl::Hours(24 * 365));
  });
  AwaitSettled(2);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_EQ(AwaitSettled(2).size(), 2u);
  EXPECT_EQ(worker.counters().unsettled, 1u);
  EXPECT_EQ(errors().size(), 2u);
}

TEST_F(GroupWorkerSettleTest, SettlementsOfAMissingGroupAreNotRepeated) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  service_.OnSettle(
      [&](const v1::SettleExpiredRequest& request, v1::SettleExpiredResponse*) {
        Note(request);
        return MakeError(grpc::StatusCode::NOT_FOUND, "no such group",
                         v1::GROUP_NOT_FOUND);
      });
  GroupWorker worker(client_, Quick(),
                     [](const ExpiredEvent&) { return Settle::Ack(); });
  AwaitSettled(1);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_EQ(AwaitSettled(1).size(), 1u);
  EXPECT_EQ(worker.counters().unsettled, 1u);
  EXPECT_EQ(errors().size(), 1u);
}

}  // namespace
}  // namespace timecache
