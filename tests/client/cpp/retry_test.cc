// Which calls are tried again, when, and how often.
#include <atomic>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/batch.h"
#include "timecache/client.h"
#include "timecache/operation.h"
#include "timecache/status.h"

namespace timecache {
namespace {

constexpr RetryPolicy kQuickRetry = {.max_attempts = 3,
                                     .min_pause = absl::Milliseconds(1),
                                     .max_pause = absl::Milliseconds(2)};

class RetryTest : public ::testing::Test {
 protected:
  // The first `failures` calls end with this.
  void Fail(int failures, grpc::Status with) {
    attempts_ = 0;
    service_.OnCall([this, failures, with](const grpc::ServerContext&) {
      return ++attempts_ <= failures ? with : grpc::Status::OK;
    });
  }

  std::atomic<int> attempts_ = 0;
  FakeService service_;
  Client client_ = service_.MakeClient({.retry = kQuickRetry});
};

grpc::Status DrainingServer() {
  return MakeError(grpc::StatusCode::UNAVAILABLE, "stopping", v1::DRAINING);
}

TEST_F(RetryTest, WhatIsSafeToRepeatIsTriedAgainUntilItSucceeds) {
  ASSERT_TRUE(client_.Put("key", "value").ok());
  const std::vector<std::function<absl::Status()>> safe = {
      [this] { return client_.Get("key").status(); },
      [this] { return client_.Contains("key").status(); },
      [this] { return client_.Size().status(); },
      [this] { return client_.Touch("key").status(); },
      [this] { return client_.GetNamespace("default").status(); },
      [this] { return client_.ListNamespaces().status(); },
      [this] { return client_.GetServer().status(); }};
  for (size_t i = 0; i < safe.size(); ++i) {
    Fail(2, DrainingServer());
    EXPECT_TRUE(safe[i]().ok()) << i;
    EXPECT_EQ(attempts_, 3) << i;
  }
}

TEST_F(RetryTest, WhatMayHaveBeenDoneIsNotRepeated) {
  Batch batch;
  batch.Add(Operation::Get("key"));
  batch.Add(Operation::Put("key", "value"));
  const std::vector<std::function<absl::Status()>> unsafe = {
      [this] { return client_.Put("key", "value").status(); },
      [this] { return client_.Remove("key").status(); },
      [this] { return client_.Append("key", "more").status(); },
      [this] { return client_.Combine("n", Combination::kAdd, 1).status(); },
      [this] {
        return client_.Gather("j", "a", "1", {.expected_parts = 2}).status();
      },
      [&] { return client_.Execute(batch).status(); },
      [this] { return client_.CreateNamespace("n").status(); },
      [this] { return client_.DeleteNamespace("default"); }};
  for (size_t i = 0; i < unsafe.size(); ++i) {
    Fail(2, DrainingServer());
    EXPECT_TRUE(absl::IsUnavailable(unsafe[i]())) << i;
    EXPECT_EQ(attempts_, 1) << i;
  }
}

TEST_F(RetryTest, CallerMaySayThatACallIsRepeatable) {
  Fail(2, DrainingServer());
  EXPECT_TRUE(client_.Put("key", "value", {}, {.repeatable = true}).ok());
  EXPECT_EQ(attempts_, 3);
}

// The namespace remembers the answer: each attempt has the same id.
TEST_F(RetryTest, ACallWithAnIdempotencyIdIsRepeated) {
  ASSERT_TRUE(
      client_
          .UpdateNamespace("default", {.idempotency_window = absl::Minutes(1)})
          .ok());
  const Client own =
      service_.MakeClient({.retry = kQuickRetry, .idempotent_changes = true});
  const std::vector<std::function<absl::Status()>> calls = {
      [&] { return own.Put("key", "value").status(); },
      [&] { return own.Append("key", "more").status(); },
      [&] { return own.Combine("n", Combination::kAdd, 1).status(); },
      [&] { return own.Gather("j", "a", "1", {.expected_parts = 2}).status(); },
      [&] { return own.Remove("key").status(); },
      [&] {
        return client_.Append("other", "1", {.idempotency_id = "id"}).status();
      }};
  for (size_t i = 0; i < calls.size(); ++i) {
    Fail(2, DrainingServer());
    const absl::Status status = calls[i]();
    EXPECT_TRUE(status.ok()) << i << ": " << status;
    EXPECT_EQ(attempts_, 3) << i;
  }
  const auto again = client_.Append("other", "1", {.idempotency_id = "id"});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->value_bytes, 1u);
  // The previous entry is not remembered.
  Fail(1, DrainingServer());
  EXPECT_FALSE(
      own.Put("key", "value", {.return_previous = true}, {.batching = false})
          .ok());
  EXPECT_EQ(attempts_, 1);
}

TEST_F(RetryTest, ABatchIsRepeatedIfAllItsOperationsMayBe) {
  ASSERT_TRUE(
      client_
          .UpdateNamespace("default", {.idempotency_window = absl::Minutes(1)})
          .ok());
  Batch batch;
  batch.Add(Operation::Get("key"));
  batch.Add(Operation::Contains("key"));
  batch.Add(Operation::Touch("key"));
  batch.Add(Operation::Append("log", "1", {.idempotency_id = "a"}));
  batch.Add(Operation::Remove("other", {.idempotency_id = "r"}));
  for (int i = 0; i < 2; ++i) {
    Fail(2, DrainingServer());
    const auto results = client_.Execute(batch);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[3].number, 1);
    EXPECT_EQ(attempts_, 3);
  }
  batch.Add(Operation::Append("log", "1"));
  Fail(1, DrainingServer());
  EXPECT_FALSE(client_.Execute(batch).ok());
  EXPECT_EQ(attempts_, 1);
}

TEST_F(RetryTest, AttemptsAreBoundedAndTheLastErrorIsReported) {
  Fail(100, DrainingServer());
  const absl::Status status = client_.Get("key").status();
  EXPECT_TRUE(HasReason(status, ErrorReason::kDraining)) << status;
  EXPECT_EQ(attempts_, kQuickRetry.max_attempts);
  Fail(1, DrainingServer());
  const Client once = service_.MakeClient({.retry = {.max_attempts = 1}});
  EXPECT_TRUE(absl::IsUnavailable(once.Get("key").status()));
  EXPECT_EQ(attempts_, 1);
}

TEST_F(RetryTest, AnswerAboutTheRequestStands) {
  for (const auto& [code, reason] :
       std::vector<std::pair<grpc::StatusCode, v1::ErrorReason>>{
           {grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD},
           {grpc::StatusCode::NOT_FOUND, v1::NAMESPACE_NOT_FOUND},
           {grpc::StatusCode::RESOURCE_EXHAUSTED, v1::MAX_OPERATION_RATE},
           {grpc::StatusCode::INTERNAL, v1::INTERNAL_ERROR}}) {
    Fail(1, MakeError(code, "no", reason));
    EXPECT_EQ(ReasonName(client_.Get("key").status()), Name(reason));
    EXPECT_EQ(attempts_, 1) << reason;
  }
}

// A call waits for a connection before it begins; that is enough.
TEST_F(RetryTest, CallWithoutAConnectionIsNotRepeated) {
  std::string address;
  {
    FakeService gone;
    address = gone.address();
  }
  const Client client(address, {.timeout = absl::InfiniteDuration(),
                                .retry = {.max_attempts = 5,
                                          .min_pause = absl::Hours(1),
                                          .max_pause = absl::Hours(1)}});
  EXPECT_TRUE(absl::IsUnavailable(client.Get("key").status()));
}

TEST_F(RetryTest, NoPauseGoesBeyondTheTimeout) {
  Fail(100, DrainingServer());
  const Client patient =
      service_.MakeClient({.timeout = absl::Minutes(1),
                           .retry = {.max_attempts = 5,
                                     .min_pause = absl::Hours(1),
                                     .max_pause = absl::Hours(1)}});
  EXPECT_TRUE(absl::IsUnavailable(patient.Get("key").status()));
  EXPECT_EQ(attempts_, 1);
}

TEST_F(RetryTest, CancellationEndsThePause) {
  std::stop_source cancellation;
  service_.OnCall([&](const grpc::ServerContext&) {
    ++attempts_;
    cancellation.request_stop();
    return DrainingServer();
  });
  const Client patient =
      service_.MakeClient({.timeout = absl::InfiniteDuration(),
                           .retry = {.max_attempts = 5,
                                     .min_pause = absl::Hours(1),
                                     .max_pause = absl::Hours(1)}});
  EXPECT_TRUE(absl::IsCancelled(
      patient.Get("key", {}, {.cancellation = cancellation.get_token()})
          .status()));
  EXPECT_EQ(attempts_, 1);
}

}  // namespace
}  // namespace timecache
