// Calls that settle events at the same time, against a stand-in for the server.
#include "client/cpp/src/events/shared_settles.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/src/rpc/client_core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/status.h"

namespace timecache {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kSettlePatience = absl::Minutes(1);

// Answers a request once a test allows it: each settlement with the number that
// is its token. A request with another token is refused.
class SharedSettlesTest : public ::testing::Test {
 protected:
  using Result = absl::StatusOr<std::vector<SettleResult>>;

  SharedSettlesTest() {
    fake_.OnSettle([this](const auto& request, auto* response) {
      absl::MutexLock lock(&mu_);
      sizes_.push_back(request.settlements_size());
      const auto may_answer = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
        return answers_ > 0;
      };
      mu_.Await(absl::Condition(&may_answer));
      --answers_;
      for (int i = 0; i < request.settlements_size(); ++i) {
        uint64_t version = 0;
        if (!absl::SimpleAtoi(request.settlements(i).delivery_token(),
                              &version)) {
          return MakeError(grpc::StatusCode::INVALID_ARGUMENT, "no number",
                           v1::INVALID_FIELD);
        }
        response->mutable_results(i)->set_version(version);
      }
      return grpc::Status::OK;
    });
  }
  // Lets what a failed test has left end.
  ~SharedSettlesTest() override { Answer(1000); }

  std::future<Result> Settle(std::vector<std::string> tokens,
                             CallOptions call = {}) {
    return std::async(std::launch::async, [this, tokens, call]() -> Result {
      std::vector<Settlement> settlements;
      for (const std::string& token : tokens) {
        settlements.push_back({.delivery_token = token});
      }
      return client_.Settle("g", settlements, call);
    });
  }
  void Answer(int requests) {
    absl::MutexLock lock(&mu_);
    answers_ += requests;
  }
  // Waits until the server has so many requests.
  std::vector<int> AwaitRequests(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto has = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return sizes_.size() >= count;
    };
    mu_.Await(absl::Condition(&has));
    return sizes_;
  }
  size_t Queued() const {
    return Client::Core::Of(client_)->shared_settles.Queued("default", "g");
  }
  void AwaitQueued(size_t count) const {
    while (Queued() != count) std::this_thread::yield();
  }

  static std::vector<uint64_t> Versions(const Result& results) {
    EXPECT_TRUE(results.ok()) << results.status();
    std::vector<uint64_t> versions;
    if (!results.ok()) return versions;
    for (const SettleResult& result : *results) {
      versions.push_back(result.version);
    }
    return versions;
  }

  absl::Mutex mu_;
  std::vector<int> sizes_ ABSL_GUARDED_BY(mu_);  // Of the requests.
  int answers_ ABSL_GUARDED_BY(mu_) = 0;
  FakeService fake_;
  const Client client_ = fake_.MakeClient({.timeout = kSettlePatience});
};

TEST_F(SharedSettlesTest, CallsOfOneGroupShareARequest) {
  auto first = Settle({"1"});
  AwaitRequests(1);
  auto second = Settle({"2", "3"});
  auto third = Settle({"4"}, {.timeout = 2 * kSettlePatience});
  AwaitQueued(2);
  Answer(2);
  EXPECT_THAT(Versions(first.get()), ElementsAre(1));
  EXPECT_THAT(Versions(second.get()), ElementsAre(2, 3));
  EXPECT_THAT(Versions(third.get()), ElementsAre(4));
  EXPECT_THAT(AwaitRequests(2), ElementsAre(1, 3));
}

TEST_F(SharedSettlesTest, ADeadlineEndsOneCall) {
  auto first = Settle({"1"});
  AwaitRequests(1);
  const absl::Status late =
      Settle({"9"}, {.timeout = absl::Milliseconds(1)}).get().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_FALSE(MaybeApplied(late));
  AwaitQueued(0);

  auto second = Settle({"2"});
  AwaitQueued(1);
  auto sent = Settle({"8"}, {.timeout = absl::Milliseconds(300)});
  while (Queued() != 2 &&
         sent.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    std::this_thread::yield();
  }
  Answer(1);
  const bool is_sent = AwaitRequests(2).back() == 2;
  const absl::Status unanswered = sent.get().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(unanswered)) << unanswered;
  EXPECT_TRUE(MaybeApplied(unanswered) || !is_sent);
  Answer(1);
  EXPECT_THAT(Versions(first.get()), ElementsAre(1));
  EXPECT_THAT(Versions(second.get()), ElementsAre(2));
}

TEST_F(SharedSettlesTest, ARefusalIsThatOfOneCall) {
  auto first = Settle({"1"});
  AwaitRequests(1);
  auto bad = Settle({"bad"});
  auto good = Settle({"5"});
  AwaitQueued(2);
  Answer(4);
  const absl::Status refusal = bad.get().status();
  EXPECT_TRUE(HasReason(refusal, ErrorReason::kInvalidField)) << refusal;
  EXPECT_THAT(Versions(good.get()), ElementsAre(5));
  EXPECT_THAT(Versions(first.get()), ElementsAre(1));
  EXPECT_THAT(AwaitRequests(4), ElementsAre(1, 2, 1, 1));
}

TEST_F(SharedSettlesTest, CallsWithOptionsOfTheirOwnGoAlone) {
  auto first = Settle({"1"});
  AwaitRequests(1);
  const std::stop_source source;
  std::vector<std::future<Result>> alone;
  alone.push_back(Settle({"2"}, {.batching = false}));
  alone.push_back(Settle({"2"}, {.repeatable = true}));
  alone.push_back(Settle({"2"}, {.cancellation = source.get_token()}));
  alone.push_back(Settle({"2"}, {.metadata = {{"x-request-id", "id"}}}));
  EXPECT_THAT(AwaitRequests(5), ElementsAre(1, 1, 1, 1, 1));
  Answer(5);
  for (auto& call : alone) EXPECT_THAT(Versions(call.get()), ElementsAre(2));
  EXPECT_THAT(Versions(first.get()), ElementsAre(1));
}

}  // namespace
}  // namespace timecache
