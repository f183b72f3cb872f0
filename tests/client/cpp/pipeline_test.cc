// timecache::Pipeline against a stand-in for the server.
#include "timecache/pipeline.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/status.h"

namespace timecache {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the callbacks were called with, in their order. Thread-safe.
class Results {
 public:
  Pipeline::Done Take(int number) {
    return [this, number](const OperationResult& result) {
      absl::MutexLock lock(&mu_);
      numbers_.push_back(number);
      statuses_.push_back(result.status);
    };
  }
  std::vector<int> numbers() const {
    absl::MutexLock lock(&mu_);
    return numbers_;
  }
  std::vector<absl::Status> statuses() const {
    absl::MutexLock lock(&mu_);
    return statuses_;
  }
  void ExpectInOrder(int count) const {
    const std::vector<int> numbers = this->numbers();
    ASSERT_EQ(numbers.size(), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) EXPECT_EQ(numbers[i], i);
  }

 private:
  mutable absl::Mutex mu_;
  std::vector<int> numbers_;
  std::vector<absl::Status> statuses_;
};

class PipelineTest : public ::testing::Test {
 protected:
  FakeService service_;
  Client client_ = service_.MakeClient();
  Results results_;
};

TEST_F(PipelineTest, FirstGoesAloneAndTheOthersTogether) {
  service_.Hang(true);
  Pipeline pipeline(client_, {.batch_operations_max = 4});
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(
        pipeline.Add(Operation::Put("key", "v"), results_.Take(i)).ok());
  }
  service_.Hang(false);
  EXPECT_TRUE(pipeline.Close().ok());
  EXPECT_THAT(service_.pipeline_requests(), ElementsAre(1, 4, 2));
}

TEST_F(PipelineTest, FlushSendsWhatThereIs) {
  service_.Hang(true);
  Pipeline pipeline(client_);
  ASSERT_TRUE(pipeline.Add(Operation::Put("a", "v"), results_.Take(0)).ok());
  ASSERT_TRUE(pipeline.Add(Operation::Put("b", "v"), results_.Take(1)).ok());
  pipeline.Flush();
  ASSERT_TRUE(pipeline.Add(Operation::Put("c", "v"), results_.Take(2)).ok());
  service_.Hang(false);
  EXPECT_TRUE(pipeline.Wait().ok());
  EXPECT_THAT(service_.pipeline_requests(), ElementsAre(1, 1, 1));
}

TEST_F(PipelineTest, TooLargeAnOperationIsRefusedAndTheOthersGoOn) {
  Pipeline pipeline(client_);
  const absl::Status status = pipeline.Add(
      Operation::Put("key", std::string(17 << 20, 'v')), results_.Take(0));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most"));
  ASSERT_TRUE(pipeline.Add(Operation::Put("key", "v"), results_.Take(0)).ok());
  EXPECT_TRUE(pipeline.Close().ok());
  results_.ExpectInOrder(1);
}

TEST_F(PipelineTest, NoMoreThanAllowedIsInFlight) {
  service_.Hang(true);
  Pipeline pipeline(client_, {.operations_in_flight_max = 10});
  int taken = 0;
  while (true) {
    const auto result =
        pipeline.TryAdd(Operation::Put("key", "v"), results_.Take(taken));
    ASSERT_TRUE(result.ok()) << result.status();
    if (!*result) break;
    ++taken;
  }
  EXPECT_EQ(taken, 10);
  service_.Hang(false);
  EXPECT_TRUE(pipeline.Wait().ok());
  EXPECT_TRUE(pipeline.TryAdd(Operation::Put("key", "v"), results_.Take(taken))
                  .value());
  EXPECT_TRUE(pipeline.Close().ok());
  results_.ExpectInOrder(11);
}

TEST_F(PipelineTest, NoMoreBytesThanAllowedAreInFlight) {
  service_.Hang(true);
  Pipeline pipeline(client_, {.bytes_in_flight_max = 1000});
  const std::string value(900, 'v');
  EXPECT_TRUE(
      pipeline.TryAdd(Operation::Put("a", value), results_.Take(0)).value());
  EXPECT_FALSE(
      pipeline.TryAdd(Operation::Put("b", value), results_.Take(1)).value());
  EXPECT_TRUE(
      pipeline.TryAdd(Operation::Put("b", "v"), results_.Take(1)).value());
  service_.Hang(false);
  EXPECT_TRUE(pipeline.Wait().ok());
  // Larger than all that may be in flight: alone, it may.
  EXPECT_TRUE(
      pipeline
          .TryAdd(Operation::Put("c", std::string(2000, 'v')), results_.Take(2))
          .value());
  EXPECT_TRUE(pipeline.Close().ok());
  results_.ExpectInOrder(3);
}

TEST_F(PipelineTest, NoMoreBytesThanAllowedAreInOneRequest) {
  service_.Hang(true);
  Pipeline pipeline(client_, {.batch_bytes_max = 1000});
  const std::string value(400, 'v');
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(
        pipeline.Add(Operation::Put("key", value), results_.Take(i)).ok());
  }
  // Alone, if it must be.
  const std::string large(2000, 'v');
  ASSERT_TRUE(
      pipeline.Add(Operation::Put("key", large), results_.Take(6)).ok());
  service_.Hang(false);
  EXPECT_TRUE(pipeline.Close().ok());
  // The first does not wait.
  EXPECT_THAT(service_.pipeline_requests(), ElementsAre(1, 2, 2, 1, 1));
  results_.ExpectInOrder(7);
}

TEST_F(PipelineTest, NoMoreRequestsThanAllowedAreInFlight) {
  std::atomic<int> puts = 0;
  absl::Notification second, go_on;
  service_.OnPut([&](const v1::PutRequest&) {
    if (++puts == 2) {
      second.Notify();
      go_on.WaitForNotification();
    }
  });
  Pipeline pipeline(client_,
                    {.batch_operations_max = 1, .requests_in_flight_max = 1});
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(
        pipeline.Add(Operation::Put("key", "v"), results_.Take(i)).ok());
  }
  // The second one is sent when the first one is answered, and not before.
  second.WaitForNotification();
  EXPECT_THAT(service_.pipeline_requests(), ElementsAre(1, 1));
  go_on.Notify();
  EXPECT_TRUE(pipeline.Close().ok());
  results_.ExpectInOrder(5);
}

TEST_F(PipelineTest, CallbackMayAdd) {
  Pipeline pipeline(client_);
  ASSERT_TRUE(
      pipeline
          .Add(Operation::Put("a", "v"),
               [&](const OperationResult&) {
                 EXPECT_TRUE(
                     pipeline.TryAdd(Operation::Put("b", "v"), results_.Take(0))
                         .value());
               })
          .ok());
  EXPECT_TRUE(pipeline.Wait().ok());
  results_.ExpectInOrder(1);
  EXPECT_EQ(client_.Size()->entries, 2u);
}

TEST_F(PipelineTest, SeveralThreadsAdd) {
  constexpr int kThreads = 4;
  constexpr int kCount = 1000;
  std::atomic<int> done = 0;
  Pipeline pipeline(client_, {.operations_in_flight_max = 50});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCount; ++i) {
        EXPECT_TRUE(pipeline
                        .Add(Operation::Put(absl::StrCat(t, "-", i), "v"),
                             [&](const OperationResult& result) {
                               done += result.status.ok();
                             })
                        .ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(pipeline.Close().ok());
  EXPECT_EQ(done, kThreads * kCount);
  EXPECT_EQ(client_.Size()->entries, uint64_t{kThreads * kCount});
}

TEST_F(PipelineTest, StreamThatEndsMidwayTellsEachOnce) {
  service_.SetPipeline({.answers_max = 3,
                        .end = MakeError(grpc::StatusCode::UNAVAILABLE,
                                         "draining", v1::DRAINING)});
  service_.Hang(true);
  Pipeline pipeline(client_, {.batch_operations_max = 1});
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(
        pipeline.Add(Operation::Put("key", "v"), results_.Take(i)).ok());
  }
  service_.Hang(false);
  const absl::Status end = pipeline.Close();
  EXPECT_EQ(ReasonName(end), Name(v1::DRAINING));
  EXPECT_EQ(pipeline.status(), end);
  results_.ExpectInOrder(8);
  const auto statuses = results_.statuses();
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(ReasonName(statuses[i]), i < 3 ? std::nullopt : ReasonName(end));
    EXPECT_EQ(statuses[i].ok(), i < 3) << i;
  }
  EXPECT_EQ(ReasonName(pipeline.Add(Operation::Get("key"), results_.Take(8))),
            Name(v1::DRAINING));
  results_.ExpectInOrder(8);
}

TEST_F(PipelineTest, WhatIsSafeToRepeatIsSentAgainOnTheNextStream) {
  service_.SetPipeline({.answers_max = 3,
                        .end = MakeError(grpc::StatusCode::UNAVAILABLE,
                                         "draining", v1::DRAINING)});
  const Client client =
      service_.MakeClient({.retry = {.min_pause = absl::Milliseconds(1),
                                     .max_pause = absl::Milliseconds(2)}});
  service_.Hang(true);
  Pipeline pipeline(client, {.batch_operations_max = 1});
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(pipeline.Add(Operation::Get("key"), results_.Take(i)).ok());
  }
  service_.Hang(false);
  EXPECT_TRUE(pipeline.Wait().ok());
  results_.ExpectInOrder(8);
  for (const absl::Status& status : results_.statuses()) {
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_F(PipelineTest, StreamsThatBreakWithoutAnAnswerAreAsManyAsAttempts) {
  service_.SetPipeline(
      {.answers_max = 0, .end = {grpc::StatusCode::UNAVAILABLE, "broken"}});
  const Client client =
      service_.MakeClient({.retry = {.max_attempts = 3,
                                     .min_pause = absl::Milliseconds(1),
                                     .max_pause = absl::Milliseconds(2)}});
  Pipeline pipeline(client);
  ASSERT_TRUE(pipeline.Add(Operation::Get("key"), results_.Take(0)).ok());
  EXPECT_TRUE(absl::IsUnavailable(pipeline.Wait()));
  results_.ExpectInOrder(1);
  EXPECT_TRUE(absl::IsUnavailable(results_.statuses()[0]));
  EXPECT_TRUE(MaybeApplied(results_.statuses()[0]));
}

TEST_F(PipelineTest, StreamThatBreaksWhileNothingIsInFlightIsOpenedAgain) {
  service_.SetPipeline(
      {.answers_max = 1, .end = {grpc::StatusCode::UNAVAILABLE, "broken"}});
  Pipeline pipeline(client_);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(pipeline.Add(Operation::Get("key"), results_.Take(i)).ok());
    EXPECT_TRUE(pipeline.Wait().ok());
  }
  EXPECT_TRUE(pipeline.Close().ok());
  results_.ExpectInOrder(8);
  EXPECT_THAT(results_.statuses(), Each(absl::OkStatus()));
}

TEST_F(PipelineTest, AddAfterTheStreamsEndSaysWhy) {
  Pipeline pipeline(client_.In("none"));
  ASSERT_TRUE(pipeline.Add(Operation::Get("key"), results_.Take(0)).ok());
  EXPECT_EQ(ReasonName(pipeline.Wait()), Name(v1::NAMESPACE_NOT_FOUND));
  EXPECT_EQ(ReasonName(results_.statuses().at(0)),
            Name(v1::NAMESPACE_NOT_FOUND));
  EXPECT_EQ(ReasonName(pipeline.Add(Operation::Get("key"), results_.Take(1))),
            Name(v1::NAMESPACE_NOT_FOUND));
  EXPECT_FALSE(pipeline.TryAdd(Operation::Get("key"), results_.Take(1)).ok());
  results_.ExpectInOrder(1);
}

TEST_F(PipelineTest, ServerThatEndsTheStreamInGoodOrderIsAnErrorAllTheSame) {
  service_.SetPipeline({.answers_max = 1});
  service_.Hang(true);
  Pipeline pipeline(client_, {.batch_operations_max = 1});
  ASSERT_TRUE(pipeline.Add(Operation::Get("key"), results_.Take(0)).ok());
  ASSERT_TRUE(pipeline.Add(Operation::Get("key"), results_.Take(1)).ok());
  service_.Hang(false);
  EXPECT_TRUE(absl::IsUnavailable(pipeline.Wait()));
  results_.ExpectInOrder(2);
  EXPECT_TRUE(absl::IsUnavailable(results_.statuses()[1]));
}

TEST_F(PipelineTest, WrongNumberOfResultsEndsIt) {
  service_.SetPipeline({.forget_a_result = true});
  Pipeline pipeline(client_);
  ASSERT_TRUE(pipeline.Add(Operation::Get("key"), results_.Take(0)).ok());
  EXPECT_EQ(pipeline.Wait().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(results_.statuses().at(0).code(), absl::StatusCode::kInternal);
}

TEST_F(PipelineTest, CancelTellsWhatIsInFlight) {
  service_.Hang(true);
  Pipeline pipeline(client_, {.batch_operations_max = 2});
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(
        pipeline.Add(Operation::Put("key", "v"), results_.Take(i)).ok());
  }
  pipeline.Cancel();
  EXPECT_TRUE(absl::IsCancelled(pipeline.Close()));
  results_.ExpectInOrder(7);
  for (const absl::Status& status : results_.statuses()) {
    EXPECT_TRUE(absl::IsCancelled(status));
  }
  service_.Hang(false);
}

TEST_F(PipelineTest, ServerThatDoesNotAnswerEndsItAtTheTimeout) {
  service_.Hang(true);
  const Client client =
      service_.MakeClient({.timeout = absl::Milliseconds(50)});
  Pipeline pipeline(client, {.operations_in_flight_max = 1});
  ASSERT_TRUE(pipeline.Add(Operation::Get("a"), results_.Take(0)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      pipeline.Add(Operation::Get("b"), results_.Take(1))));
  results_.ExpectInOrder(1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(results_.statuses()[0]));
  EXPECT_TRUE(absl::IsDeadlineExceeded(pipeline.Close()));
  service_.Hang(false);
}

TEST_F(PipelineTest, CloseAnswersWhatIsInFlightAndMayComeTwice) {
  service_.Hang(true);
  Pipeline pipeline(client_, {.batch_operations_max = 2});
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(
        pipeline.Add(Operation::Put("key", "v"), results_.Take(i)).ok());
  }
  service_.Hang(false);
  EXPECT_TRUE(pipeline.Close().ok());
  EXPECT_TRUE(pipeline.Close().ok());
  results_.ExpectInOrder(7);
  EXPECT_THAT(results_.statuses(), Each(absl::OkStatus()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      pipeline.Add(Operation::Get("key"), results_.Take(7))));
  EXPECT_TRUE(pipeline.status().ok());
}

TEST_F(PipelineTest, DestructorClosesIt) {
  {
    Pipeline pipeline(client_);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(
          pipeline.Add(Operation::Put("key", "v"), results_.Take(i)).ok());
    }
  }
  results_.ExpectInOrder(100);
  EXPECT_THAT(results_.statuses(), Each(absl::OkStatus()));
}

TEST_F(PipelineTest, UnusedOneClosesCleanly) {
  EXPECT_TRUE(Pipeline(client_).Close().ok());
}

TEST(PipelineWithoutServerTest, ServerThatIsGoneMidwayIsToldToEach) {
  Results results;
  auto service = std::make_unique<FakeService>();
  Pipeline pipeline(service->MakeClient(), {.batch_operations_max = 1});
  ASSERT_TRUE(pipeline.Add(Operation::Put("key", "v"), results.Take(0)).ok());
  ASSERT_TRUE(pipeline.Wait().ok());
  service->Hang(true);
  for (int i = 1; i < 5; ++i) {
    ASSERT_TRUE(pipeline.Add(Operation::Put("key", "v"), results.Take(i)).ok());
  }
  service.reset();
  EXPECT_FALSE(pipeline.Close().ok());
  results.ExpectInOrder(5);
  EXPECT_TRUE(results.statuses()[0].ok());
  EXPECT_FALSE(results.statuses()[4].ok());
}

}  // namespace
}  // namespace timecache
