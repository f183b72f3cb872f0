// timecache::AsyncClient against a stand-in for the server.
#include "timecache/async_client.h"

#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/status.h"

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

  Promise<RemoveResult> remove;
  async_.Remove("key", remove.done());
  EXPECT_TRUE(remove.Get().value().removed);
}

TEST_F(AsyncClientTest, ErrorHasItsReason) {
  const AsyncClient nowhere(client_.In("nowhere"));
  Promise<std::optional<Entry>> get;
  nowhere.Get("key", get.done());
  EXPECT_TRUE(HasReason(get.Get().status(), ErrorReason::kNamespaceNotFound));
}

TEST_F(AsyncClientTest, NoServerIsUnavailable) {
  std::string address;
  {
    FakeService gone;
    address = gone.address();
  }
  const Client client(address);
  const AsyncClient async(client);
  Promise<std::optional<Entry>> get;
  async.Get("key", get.done());
  EXPECT_TRUE(absl::IsUnavailable(get.Get().status()));
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

}  // namespace
}  // namespace timecache
