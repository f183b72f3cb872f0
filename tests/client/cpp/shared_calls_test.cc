// Plain calls that happen at the same time, against a stand-in for the server.
#include "client/cpp/src/shared/shared_calls.h"

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/async_client.h"
#include "timecache/status.h"

namespace timecache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The statuses of calls that do not block, by the numbers that they began with.
class Statuses {
 public:
  template <typename Result>
  AsyncClient::Done<Result> Take(size_t number) {
    return [this, number](const absl::StatusOr<Result>& result) {
      absl::MutexLock lock(&mu_);
      if (statuses_.size() <= number) statuses_.resize(number + 1);
      EXPECT_FALSE(statuses_[number]) << number;
      statuses_[number] = result.status();
      ++count_;
    };
  }
  std::vector<absl::Status> Await(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto have = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return count_ >= count;
    };
    mu_.Await(absl::Condition(&have));
    std::vector<absl::Status> all;
    for (const auto& status : statuses_) {
      all.push_back(status.value_or(absl::UnknownError("nothing")));
    }
    return all;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::optional<absl::Status>> statuses_ ABSL_GUARDED_BY(mu_);
  size_t count_ ABSL_GUARDED_BY(mu_) = 0;
};

class SharedCallsTest : public ::testing::Test {
 protected:
  // Holds Puts of the key "held" in the server.
  void HoldPuts() {
    service_.OnPut([this](const v1::PutRequest& put) {
      if (put.key() != "held") return;
      arrived_.Notify();
      go_on_.WaitForNotification();
    });
  }
  // A call that is there, and others behind it.
  void PutHeld(const CallOptions& call = {}) {
    async_.Put("held", "v", statuses_.Take<PutResult>(0), {}, call);
    arrived_.WaitForNotification();
  }

  absl::Notification arrived_, go_on_;
  FakeService service_;
  Client client_ = service_.MakeClient();
  AsyncClient async_{client_};
  Statuses statuses_;
};

TEST_F(SharedCallsTest, CallsGatherWhileAMessageIsUnderWay) {
  HoldPuts();
  PutHeld();
  for (int i = 1; i < 8; ++i) {
    async_.Put(absl::StrCat(i), "v", statuses_.Take<PutResult>(i));
  }
  go_on_.Notify();
  for (const absl::Status& status : statuses_.Await(8)) {
    EXPECT_TRUE(status.ok());
  }
  EXPECT_THAT(service_.pipeline_requests(), ElementsAre(1, 7));
}

TEST(MessageWindowTest, IsLargerWhereEvenTheShortestAnswerTookLong) {
  MessageWindow window;
  for (const auto shortest :
       {SteadyTime::duration(MessageWindow::kFarAnswer),
        SteadyTime::duration(1),
        SteadyTime::duration(MessageWindow::kFarAnswer)}) {
    for (int i = 1; i < MessageWindow::kAnswers; ++i) {
      window.CountAnswer(SteadyTime::duration::max());
    }
    window.CountAnswer(shortest);
    EXPECT_EQ(window.messages(), shortest == MessageWindow::kFarAnswer
                                     ? MessageWindow::kFar
                                     : MessageWindow::kNear);
  }
}

TEST_F(SharedCallsTest, ThreadsTakeTurnsInPolling) {
  constexpr int kThreads = 16;
  constexpr int kCount = 200;
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCount; ++i) {
        const std::string key = absl::StrCat(t, "-", i);
        if (!client_.Put(key, key).ok()) continue;
        const auto got = client_.Get(key);
        right += got.ok() && *got && (*got)->value == key && (*got)->key == key;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kCount);
  EXPECT_LT(service_.pipeline_requests().size(), 2u * kThreads * kCount);
}

TEST_F(SharedCallsTest, OneSwitchTurnsItOff) {
  EXPECT_TRUE(client_.Put("a", "v", {}, {.batching = false}).ok());
  const Client client = service_.MakeClient({.batching = false});
  EXPECT_TRUE(client.Put("b", "v").ok());
  EXPECT_TRUE(client_.Get("a", {}, {.metadata = {{"x-team", "blue"}}}).ok());
  EXPECT_TRUE(client_.Put("c", std::string(65 << 10, 'v')).ok());
  EXPECT_THAT(service_.pipeline_requests(), IsEmpty());
}

TEST_F(SharedCallsTest, RequestIdAndTraceparentGoWithTheOperation) {
  const std::string trace =
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_TRUE(
      client_
          .Get("key", {},
               {.metadata = {{"x-request-id", "mine"}, {"traceparent", trace}}})
          .ok());
  const auto operation = service_.Last<v1::Operation>();
  EXPECT_EQ(operation.request_id(), "mine");
  EXPECT_EQ(operation.traceparent(), trace);
}

TEST_F(SharedCallsTest, CancelledBeforeItIsSentItIsNot) {
  HoldPuts();
  PutHeld();
  std::stop_source cancellation;
  async_.Put("a", "v", statuses_.Take<PutResult>(1), {},
             {.cancellation = cancellation.get_token()});
  async_.Put("b", "v", statuses_.Take<PutResult>(2));
  cancellation.request_stop();
  statuses_.Await(1);
  go_on_.Notify();
  const auto statuses = statuses_.Await(3);
  EXPECT_TRUE(absl::IsCancelled(statuses[1]));
  EXPECT_FALSE(MaybeApplied(statuses[1]));
  EXPECT_TRUE(statuses[0].ok() && statuses[2].ok());
  EXPECT_THAT(service_.pipeline_requests(), ElementsAre(1, 1));
}

TEST_F(SharedCallsTest, CancelledUnderWayItMayBeAppliedAndOthersGoOn) {
  HoldPuts();
  std::stop_source cancellation;
  PutHeld({.cancellation = cancellation.get_token()});
  async_.Put("b", "v", statuses_.Take<PutResult>(1));
  cancellation.request_stop();
  statuses_.Await(1);
  go_on_.Notify();
  const auto statuses = statuses_.Await(2);
  EXPECT_TRUE(absl::IsCancelled(statuses[0]));
  EXPECT_TRUE(MaybeApplied(statuses[0]));
  EXPECT_TRUE(statuses[1].ok());
  EXPECT_TRUE(*client_.Contains("held"));
}

TEST_F(SharedCallsTest, TimeThatIsUpBeforeItIsSentChangesNothing) {
  HoldPuts();
  PutHeld();
  async_.Put("a", "v", statuses_.Take<PutResult>(1), {},
             {.timeout = absl::Milliseconds(5)});
  statuses_.Await(1);
  go_on_.Notify();
  const auto statuses = statuses_.Await(2);
  EXPECT_TRUE(absl::IsDeadlineExceeded(statuses[1]));
  EXPECT_FALSE(MaybeApplied(statuses[1]));
  EXPECT_TRUE(statuses[0].ok());
}

TEST_F(SharedCallsTest, ServerThatAnswersNothingIsGivenUp) {
  ASSERT_TRUE(client_.Get("key").ok());
  service_.Hang(true);
  for (int i = 0; i < 3; ++i) {
    const absl::Status late =
        client_.Put("key", "v", {}, {.timeout = absl::Milliseconds(20)})
            .status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(late));
    EXPECT_TRUE(MaybeApplied(late));
  }
  service_.Hang(false);
  EXPECT_TRUE(client_.Get("key").ok());
}

TEST_F(SharedCallsTest, BreakFailsWhatWasSentAndIsNotSafeAlone) {
  ASSERT_TRUE(client_.Get("key").ok());
  Statuses warm;
  async_.Get("key", warm.Take<std::optional<Entry>>(0));
  warm.Await(1);
  HoldPuts();
  PutHeld();
  for (int i = 1; i < 5; ++i) {
    async_.Put(absl::StrCat(i), "v", statuses_.Take<PutResult>(i));
  }
  std::atomic<int> calls = 0;
  service_.OnCall([&calls](const grpc::ServerContext&) {
    return ++calls == 1
               ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed")
               : grpc::Status::OK;
  });
  go_on_.Notify();
  const auto statuses = statuses_.Await(5);
  EXPECT_TRUE(absl::IsUnavailable(statuses[0])) << statuses[0];
  EXPECT_TRUE(MaybeApplied(statuses[0]));
  for (int i = 1; i < 5; ++i) EXPECT_TRUE(statuses[i].ok()) << statuses[i];
}

TEST_F(SharedCallsTest, StreamThatTheServerEndsIsReplaced) {
  for (const grpc::Status& end :
       {MakeError(grpc::StatusCode::UNAVAILABLE, "old", v1::DRAINING),
        MakeError(grpc::StatusCode::UNAUTHENTICATED, "who?",
                  v1::UNKNOWN_TOKEN)}) {
    service_.SetPipeline({.answers_max = 1, .end = end});
    for (int i = 0; i < 20; ++i) {
      const auto put = client_.Put("key", absl::StrCat(i));
      EXPECT_TRUE(put.ok()) << put.status();
    }
  }
  service_.SetPipeline({.answers_max = 0,
                        .end = MakeError(grpc::StatusCode::UNAUTHENTICATED,
                                         "who?", v1::UNKNOWN_TOKEN)});
  absl::Status refused;
  // The last stream may have been opened before.
  for (int i = 0; i < 3 && refused.ok(); ++i) {
    refused = client_.Put("key", "v").status();
  }
  EXPECT_TRUE(absl::IsUnauthenticated(refused));
  EXPECT_FALSE(MaybeApplied(refused));
}

TEST_F(SharedCallsTest, UnknownNamespaceIsNoMatterOfOthers) {
  const auto none = client_.In("none").Get("key");
  EXPECT_EQ(ReasonName(none.status()), Name(v1::NAMESPACE_NOT_FOUND));
  EXPECT_TRUE(client_.Put("key", "v").ok());
  EXPECT_EQ(client_.In("none").Put("key", "v").status(), none.status());
}

TEST_F(SharedCallsTest, AnswerThatDoesNotFitComesByItself) {
  std::atomic<int> calls = 0;
  service_.OnCall([&calls](const grpc::ServerContext&) {
    return ++calls == 2 ? MakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                    "too large", v1::MAX_RESPONSE_BYTES)
                        : grpc::Status::OK;
  });
  ASSERT_TRUE(client_.Put("key", "v").ok());
  const auto got = client_.Get("key");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)->value, "v");
  EXPECT_EQ(calls, 3);
  EXPECT_THAT(service_.pipeline_requests(), ElementsAre(1, 1));
}

TEST_F(SharedCallsTest, ServerWithoutPipelineIsCalledOneByOne) {
  service_.SetPipeline(
      {.answers_max = 0, .end = {grpc::StatusCode::UNIMPLEMENTED, "what?"}});
  EXPECT_TRUE(client_.Put("key", "v").ok());
  async_.Get("key", statuses_.Take<std::optional<Entry>>(0));
  EXPECT_TRUE(statuses_.Await(1)[0].ok());
}

TEST_F(SharedCallsTest, LongestIdleStreamIsClosedForAnotherOne) {
  for (size_t i = 0; i < kSharedStreamsMax + 3; ++i) {
    const std::string ns = absl::StrCat("n", i);
    ASSERT_TRUE(client_.CreateNamespace(ns).ok());
    EXPECT_TRUE(client_.In(ns).Put("key", ns).ok());
    const AsyncClient async(client_.In(ns));
    async.Get("key", statuses_.Take<std::optional<Entry>>(i));
  }
  for (const auto& status : statuses_.Await(kSharedStreamsMax + 3)) {
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ((*client_.In("n0").Get("key"))->value, "n0");
}

// Whatever is cancelled, late or broken, a call ends once, with its own answer.
TEST(SharedCallsScheduleTest, EachCallEndsOnceWithItsOwnAnswer) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 150;
  FakeService service;
  const Client client =
      service.MakeClient({.retry = {.min_pause = absl::Milliseconds(1),
                                    .max_pause = absl::Milliseconds(2)}});
  const AsyncClient async(client);
  std::atomic<int> calls = 0;
  service.OnCall([&calls](const grpc::ServerContext&) {
    return ++calls % 97 == 0
               ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed")
               : grpc::Status::OK;
  });
  std::atomic<int> ended = 0, wrong = 0;
  const auto check = [&](const std::string& key,
                         const absl::StatusOr<std::optional<Entry>>& got) {
    ++ended;
    wrong += got.ok() && *got && (*got)->value != key;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int i = 0; i < kCalls; ++i) {
        const std::string key = absl::StrCat(t, "-", i % 20);
        std::stop_source cancellation;
        CallOptions call = {.cancellation = cancellation.get_token()};
        if (random() % 5 == 0) {
          call.timeout = absl::Microseconds(random() % 900);
        }
        client.Put(key, key, {}, call).status().IgnoreError();
        async.Get(
            key, [&, key](const auto& got) { check(key, got); }, {}, call);
        if (random() % 4 == 0) cancellation.request_stop();
        check(key, client.Get(key, {}, call));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (ended < 2 * kThreads * kCalls) std::this_thread::yield();
  EXPECT_EQ(wrong, 0);
  service.OnCall(nullptr);
  EXPECT_EQ(ended, 2 * kThreads * kCalls);
  EXPECT_TRUE(client.Get("key").ok());
}

}  // namespace
}  // namespace timecache
