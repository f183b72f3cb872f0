// timecache::AsyncClient against a stand-in for the server.
#include "timecache/async_client.h"

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"

namespace timecache {
namespace {

class AsyncClientTest : public ::testing::Test {
 protected:
  FakeService service_;
  Client client_ = service_.MakeClient();
  AsyncClient async_{client_};
};

// A `done` whose result can be waited for.
template <typename Result>
class Promise {
 public:
  AsyncClient::Done<Result> done() {
    return [promise = promise_](absl::StatusOr<Result> result) {
      promise->set_value(std::move(result));
    };
  }
  absl::StatusOr<Result> Get() { return promise_->get_future().get(); }

 private:
  std::shared_ptr<std::promise<absl::StatusOr<Result>>> promise_ =
      std::make_shared<std::promise<absl::StatusOr<Result>>>();
};

TEST_F(AsyncClientTest, EachCallAnswersAsTheClientsDoes) {
  Promise<PutResult> put;
  async_.Put("key", "value", put.done(), {.ttl = absl::Seconds(7)});
  const auto version = put.Get().value().version;

  Promise<std::optional<Entry>> get;
  async_.Get("key", get.done());
  const std::optional<Entry> entry = get.Get().value();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->value, "value");
  EXPECT_EQ(entry->version, version);
  EXPECT_EQ(entry->deadline, entry->put_time + absl::Seconds(7));

  Promise<bool> contains;
  async_.Contains("key", contains.done());
  EXPECT_TRUE(contains.Get().value());
  Promise<SizeResult> size;
  async_.Size(size.done());
  EXPECT_EQ(size.Get().value().entries, 1u);
  Promise<std::optional<uint64_t>> touch;
  async_.Touch("key", touch.done());
  EXPECT_EQ(touch.Get().value(), version);

  Batch batch;
  batch.Add(Operation::Get("key"));
  batch.Add(Operation::Contains("other"));
  Promise<std::vector<OperationResult>> execute;
  async_.Execute(batch, execute.done());
  const auto results = execute.Get().value();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].entry->value, "value");
  EXPECT_FALSE(results[1].found);

  Promise<AppendResult> append;
  async_.Append("key", " and more", append.done());
  EXPECT_EQ(append.Get().value().value_bytes, 14u);
  Promise<CombineResult> combine;
  async_.Combine("n", Combination::kAdd, 7, combine.done());
  EXPECT_EQ(combine.Get().value().result, 7);
  Promise<GatherResult> gather;
  async_.Gather("join", "only", "value", gather.done(), {.expected_parts = 1});
  EXPECT_EQ(gather.Get().value().parts->parts[0].value, "value");

  Promise<RemoveResult> remove;
  async_.Remove("key", remove.done());
  EXPECT_TRUE(remove.Get().value().removed);
}

TEST_F(AsyncClientTest, TimeoutAndCancellationAreTheCallsOwn) {
  service_.Hang(true);
  Promise<PutResult> late;
  async_.Put("key", "value", late.done(), {},
             {.timeout = absl::Milliseconds(20)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.Get().status()));

  std::stop_source cancellation;
  Promise<std::optional<Entry>> get;
  async_.Get("key", get.done(), {},
             {.timeout = absl::InfiniteDuration(),
              .cancellation = cancellation.get_token()});
  cancellation.request_stop();
  EXPECT_TRUE(absl::IsCancelled(get.Get().status()));
}

TEST_F(AsyncClientTest, WhatCannotBeginIsToldAtOnce) {
  absl::Status told;
  async_.Size(
      [&told](const absl::StatusOr<SizeResult>& result) {
        told = result.status();
      },
      {.metadata = {{"Upper", "v"}}});
  EXPECT_TRUE(absl::IsInvalidArgument(told));
}

TEST_F(AsyncClientTest, DestructorWaitsForWhatIsUnderWay) {
  int told = 0;
  {
    AsyncClient async(client_);
    for (int i = 0; i < 100; ++i) {
      async.Put(std::to_string(i), "value", [&told](const auto& result) {
        // gRPC's threads may call at the same time.
        static absl::Mutex mu;
        absl::MutexLock lock(&mu);
        told += result.ok() ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(told, 100);
  EXPECT_EQ(client_.Size()->entries, 100u);
}

constexpr RetryPolicy kQuick = {.max_attempts = 3,
                                .min_pause = absl::Milliseconds(1),
                                .max_pause = absl::Milliseconds(2)};
constexpr RetryPolicy kHourly = {.max_attempts = 5,
                                 .min_pause = absl::Hours(1),
                                 .max_pause = absl::Hours(1)};

grpc::Status Draining() {
  return MakeError(grpc::StatusCode::UNAVAILABLE, "stopping", v1::DRAINING);
}

class AsyncRetryTest : public ::testing::Test {
 protected:
  // The first `failures` calls end with this.
  void Fail(int failures, grpc::Status with) {
    attempts_ = 0;
    service_.OnCall([this, failures, with](const grpc::ServerContext&) {
      attempts_.fetch_add(1);
      attempts_.notify_all();
      return attempts_ <= failures ? with : grpc::Status::OK;
    });
  }

  // The status that a call hands to its `done`.
  template <typename Result>
  static absl::Status StatusOf(
      absl::FunctionRef<void(AsyncClient::Done<Result>)> call) {
    Promise<Result> promise;
    call(promise.done());
    return promise.Get().status();
  }
  static absl::Status Get(const AsyncClient& client,
                          const CallOptions& call = {}) {
    return StatusOf<std::optional<Entry>>(
        [&](auto done) { client.Get("key", std::move(done), {}, call); });
  }
  absl::Status Put(const CallOptions& call = {}) {
    return StatusOf<PutResult>([&](auto done) {
      async_.Put("key", "value", std::move(done), {}, call);
    });
  }

  std::atomic<int> attempts_ = 0;
  FakeService service_;
  Client client_ = service_.MakeClient({.retry = kQuick});
  AsyncClient async_{client_};
};

TEST_F(AsyncRetryTest, ConnectionThatIsLostUnderWayIsReplaced) {
  ASSERT_TRUE(Put().ok());
  Fail(1, {grpc::StatusCode::UNAVAILABLE, "Socket closed"});
  EXPECT_TRUE(Get(async_).ok());
  EXPECT_EQ(attempts_, 2);
}

TEST_F(AsyncRetryTest, CancellationEndsThePause) {
  Fail(100, Draining());
  const AsyncClient async(service_.MakeClient(
      {.timeout = absl::InfiniteDuration(), .retry = kHourly}));
  std::stop_source cancellation;
  Promise<std::optional<Entry>> get;
  async.Get("key", get.done(), {}, {.cancellation = cancellation.get_token()});
  attempts_.wait(0);
  cancellation.request_stop();
  EXPECT_TRUE(absl::IsCancelled(get.Get().status()));
  EXPECT_EQ(attempts_, 1);
}

TEST_F(AsyncRetryTest, DestructorWaitsForWhatIsTriedAgain) {
  Fail(2, Draining());
  absl::Status told = absl::UnknownError("nothing");
  {
    AsyncClient async(client_);
    async.Get("key", [&told](const auto& got) { told = got.status(); });
  }
  EXPECT_TRUE(told.ok()) << told;
  EXPECT_EQ(attempts_, 3);
}

}  // namespace
}  // namespace timecache
