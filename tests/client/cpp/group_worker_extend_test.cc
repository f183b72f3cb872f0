// timecache::GroupWorker, whose handlers take longer than the ack_timeout; and
// how it reports that an event is no longer its own.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/cpp/src/data/convert.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cpp/group_worker_fixture.h"
#include "timecache/group_worker.h"
#include "timecache/status.h"

namespace timecache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::WatchExpiredResponse Delivery(uint64_t event_id, uint32_t attempt,
                                  uint32_t returns) {
  v1::WatchExpiredResponse batch =
      MakeDelivery("default", absl::StrCat("key", event_id), event_id, attempt);
  batch.mutable_events(0)->set_returns(returns);
  batch.mutable_events(0)->set_delivery_token(
      TokenOf(event_id, attempt, returns));
  return batch;
}

// A group whose ack_timeout is over at once, and a server that refuses kExtends
// as RefuseExtends says.
class GroupWorkerExtendTest : public GroupWorkerFixture {
 protected:
  void SetUp() override {
    v1::GetGroupResponse group;
    *group.mutable_group()->mutable_options()->mutable_ack_timeout() =
        ToProto(absl::Milliseconds(15));
    service_.Answer(group);
    service_.OnSettle([this](const v1::SettleExpiredRequest& request,
                             v1::SettleExpiredResponse* response) {
      absl::MutexLock lock(&mu_);
      for (int i = 0; i < request.settlements_size(); ++i) {
        const v1::Settlement& settlement = request.settlements(i);
        (settlement.has_extend() ? extends_ : settled_).push_back(settlement);
        if (settlement.has_extend() && !refusal_.ok()) {
          Refuse(refusal_, response->mutable_results(i));
        }
      }
      return grpc::Status::OK;
    });
  }

  void RefuseExtends(const grpc::Status& refusal) {
    absl::MutexLock lock(&mu_);
    refusal_ = refusal;
  }

  // Those of the event, once there are so many.
  std::vector<v1::Settlement> AwaitExtends(uint64_t event_id, size_t count) {
    std::vector<v1::Settlement> found;
    const auto are_there = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      found.clear();
      for (const v1::Settlement& extend : extends_) {
        if (EventIdOf(extend) == event_id) found.push_back(extend);
      }
      return found.size() >= count;
    };
    absl::MutexLock lock(&mu_, absl::Condition(&are_there));
    return found;
  }

  std::vector<v1::Settlement> extends_ ABSL_GUARDED_BY(mu_);
  grpc::Status refusal_ ABSL_GUARDED_BY(mu_);
};

TEST_F(GroupWorkerExtendTest, EventIsExtendedUntilItsHandlerReturns) {
  service_.AddWatch({.messages = {Delivery(1, 2, 3)}, .hang = true});
  GroupWorker worker(client_, Quick(), [&](const ExpiredEvent& event) {
    EXPECT_EQ(event.returns, 3u);
    AwaitExtends(1, 3);
    return Settle::Ack();
  });
  const auto settled = AwaitSettled(1);
  EXPECT_TRUE(worker.Stop().ok());
  for (const v1::Settlement& extend : AwaitExtends(1, 3)) {
    EXPECT_EQ(extend.delivery_token(), TokenOf(1, 2, 3));
  }
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_TRUE(settled[0].has_ack());
  EXPECT_EQ(settled[0].delivery_token(), TokenOf(1, 2, 3));
  EXPECT_GE(worker.counters().extended, 3u);
  EXPECT_EQ(worker.counters().not_extended, 0u);
  EXPECT_EQ(worker.counters().acked, 1u);
  EXPECT_TRUE(errors().empty());
}

TEST_F(GroupWorkerExtendTest, SoIsAnEventThatWaitsForAHandler) {
  service_.AddWatch({.messages = {Deliveries(1, 2)}, .hang = true});
  GroupWorkerOptions options = Quick();
  options.threads = 1;
  GroupWorker worker(client_, options, [&](const ExpiredEvent& event) {
    if (event.event_id == 1) AwaitExtends(2, 2);
    return Settle::Ack();
  });
  AwaitSettled(2);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_EQ(worker.counters().acked, 2u);
}

// As a restart of the server, or a break, may do.
TEST_F(GroupWorkerExtendTest, LostEventIsExtendedOnlyWhenItIsDeliveredAgain) {
  absl::Notification refused;
  service_.AddWatch({.messages = {Delivery(1, 1, 0), Delivery(1, 1, 1)},
                     .before =
                         [&](size_t message) {
                           if (message == 1) refused.WaitForNotification();
                         },
                     .hang = true});
  RefuseExtends(MakeError(grpc::StatusCode::FAILED_PRECONDITION, "too late",
                          v1::STALE_ATTEMPT));
  GroupWorker worker(client_, Quick(), [&](const ExpiredEvent&) {
    AwaitExtends(1, 1);
    RefuseExtends(grpc::Status::OK);
    refused.Notify();
    AwaitExtends(1, 3);
    return Settle::Nack();
  });
  const auto settled = AwaitSettled(1);
  EXPECT_TRUE(worker.Stop().ok());
  const auto extends = AwaitExtends(1, 3);
  EXPECT_EQ(extends[0].delivery_token(), TokenOf(1, 1, 0));
  EXPECT_EQ(extends[1].delivery_token(), TokenOf(1, 1, 1));
  EXPECT_EQ(settled[0].delivery_token(), TokenOf(1, 1, 1));
  EXPECT_EQ(worker.counters().not_extended, 1u);
  // What its handler said was settled after all.
  EXPECT_TRUE(errors().empty());
}

TEST_F(GroupWorkerExtendTest, ServerThatKnowsNoExtendIsReportedOnce) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  RefuseExtends(MakeError(grpc::StatusCode::INVALID_ARGUMENT,
                          "settlements[0]: must have an action",
                          v1::INVALID_FIELD));
  absl::Notification reported;
  GroupWorkerOptions options = Quick();
  options.on_error = [&](const absl::Status& why) {
    EXPECT_EQ(ReasonName(why), Name(v1::INVALID_FIELD));
    EXPECT_THAT(std::string(why.message()),
                HasSubstr("key \"key1\", event 1, attempt 1 cannot be "
                          "extended: "));
    reported.Notify();  // Once.
  };
  GroupWorker worker(client_, options, [&](const ExpiredEvent&) {
    reported.WaitForNotification();
    return Settle::Ack();
  });
  AwaitSettled(1);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_EQ(AwaitExtends(1, 1).size(), 1u);
}

TEST_F(GroupWorkerExtendTest, HandlerThatHangsIsReportedAndNotExtended) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  absl::Notification reported;
  GroupWorkerOptions options = Quick();
  options.extend_max = absl::Nanoseconds(1);
  options.on_error = [&](const absl::Status& why) {
    EXPECT_THAT(std::string(why.message()),
                AllOf(HasSubstr("key \"key1\", event 1, attempt 1"),
                      HasSubstr("extend_max")));
    reported.Notify();
  };
  GroupWorker worker(client_, options, [&](const ExpiredEvent&) {
    reported.WaitForNotification();
    return Settle::Ack();
  });
  AwaitSettled(1);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_TRUE(AwaitExtends(1, 0).empty());
}

TEST_F(GroupWorkerExtendTest, ExtendsGoOnAfterACallThatFailed) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  std::atomic<int> calls = 0;
  service_.OnCall([&](const grpc::ServerContext&) {
    return ++calls == 2 ? grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "")
                        : grpc::Status::OK;
  });
  GroupWorker worker(client_, Quick(), [&](const ExpiredEvent&) {
    AwaitExtends(1, 2);
    return Settle::Ack();
  });
  AwaitSettled(1);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_EQ(worker.counters().unsettled, 0u);
}

TEST_F(GroupWorkerExtendTest, HandlerThatReturnsItHasFailed) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  GroupWorkerOptions options = Quick();
  options.retry_delay = absl::Seconds(7);
  GroupWorker worker(client_, options,
                     [](const ExpiredEvent&) { return Settle::Extend(); });
  EXPECT_EQ(AwaitSettled(1)[0].nack().delay().seconds(), 7);
  EXPECT_TRUE(worker.Stop().ok());
  ASSERT_EQ(errors().size(), 1u);
  EXPECT_THAT(std::string(errors()[0].message()),
              HasSubstr("the handler of key \"key1\", event 1, attempt 1 "
                        "returned kExtend"));
  EXPECT_EQ(worker.counters().thrown, 0u);
}

TEST_F(GroupWorkerExtendTest, WithoutOnErrorALineOnStandardErrorNamesTheEvent) {
  service_.AddWatch({.messages = {Deliveries(1, 1)}, .hang = true});
  GroupWorkerOptions options = Quick();
  options.on_error = nullptr;
  ::testing::internal::CaptureStderr();
  {
    GroupWorker worker(client_, options, [](const ExpiredEvent&) -> Settle {
      throw std::runtime_error("no ink");
    });
    AwaitSettled(1);
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("timecache: default, group billing: UNKNOWN: the "
                        "handler of key \"key1\", event 1, attempt 1 threw: no "
                        "ink\n"));
}

}  // namespace
}  // namespace timecache
