#include "server/edge/response/response_ledger.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::timecache::test::Await;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kMax = 16 * kMiB;

// What gRPC holds: slices.
class Held {
 public:
  void Add(const ResponseAccountRef& account, size_t mib) {
    slices_.push_back(account->NewSlice(mib * kMiB));
  }
  void Take() { slices_.erase(slices_.begin()); }

 private:
  std::vector<grpc::Slice> slices_;
};

class ResponseLedgerTest : public ::testing::Test {
 protected:
  ResponseLedger& Make(ResponseLedger::Options options) {
    options.end_connection = [this](const std::string& peer) {
      ended_.push_back(peer);
    };
    ledger_ = std::make_unique<ResponseLedger>(std::move(options));
    return *ledger_;
  }
  ResponseLedger& Make() { return Make({.max_bytes = kMax}); }

  static std::string Peer(int i) {
    return "ipv4:10.0.0.1:" + std::to_string(i);
  }
  void LookAfter(std::chrono::steady_clock::duration duration) {
    ledger_->Look(std::chrono::steady_clock::now() + duration);
  }

  std::unique_ptr<ResponseLedger> ledger_;
  std::vector<std::string> ended_;
};

TEST_F(ResponseLedgerTest, OneConnectionGetsHalfOfTheRoom) {
  const ResponseAccountRef one = Make().Find(Peer(1));
  Held held;
  int responses = 0;
  for (; one->HasRoom(); ++responses) held.Add(one, 1);
  EXPECT_EQ(responses, 8);
  EXPECT_TRUE(ledger_->Find(Peer(2))->HasRoom());
}

TEST_F(ResponseLedgerTest, ThoseThatDoNotReadLeaveRoomForWhoHoldsNothing) {
  ResponseLedger& ledger = Make();
  std::vector<grpc::Slice> held;
  for (int i = 0; i < 7; ++i) {
    const ResponseAccountRef one = ledger.Find(Peer(i));
    while (one->HasRoom()) held.push_back(one->NewSlice(kMiB / 64));
  }
  EXPECT_LT(ledger.GetStatistics().bytes, kMax);
  EXPECT_TRUE(ledger.Find(Peer(100))->HasRoom());
}

TEST_F(ResponseLedgerTest, WhatIsFreedMakesRoom) {
  const ResponseAccountRef one = Make().Find(Peer(1));
  Held held;
  while (one->HasRoom()) held.Add(one, 1);
  held.Take();
  EXPECT_TRUE(one->HasRoom());
  EXPECT_EQ(one->bytes(), 7 * kMiB);
}

TEST_F(ResponseLedgerTest, APartOfABufferHoldsAllOfIt) {
  const ResponseAccountRef one = Make().Find(Peer(1));
  grpc::Slice part;
  {
    const grpc::Slice whole = one->NewSlice(kMiB);
    part = whole.sub(100'000, 200'000);
  }
  EXPECT_EQ(one->bytes(), kMiB);
  part = grpc::Slice();
  EXPECT_EQ(one->bytes(), 0);
}

TEST_F(ResponseLedgerTest, ACallWaitsUntilThereIsRoom) {
  const ResponseAccountRef one = Make().Find(Peer(1));
  Held held;
  while (one->HasRoom()) held.Add(one, 1);
  std::vector<std::string> ran;
  one->WhenRoom([&](absl::Status room) {
    ran.push_back("first " + room.ToString());
    held.Add(one, 1);
  });
  one->WhenRoom([&](absl::Status) { ran.push_back("second"); });
  LookAfter(seconds(0));
  EXPECT_THAT(ran, IsEmpty());
  EXPECT_EQ(ledger_->GetStatistics().waiting, 2);
  held.Take();
  LookAfter(seconds(0));
  EXPECT_THAT(ran, ElementsAre("first OK"));
  held.Take();
  LookAfter(seconds(0));
  EXPECT_THAT(ran, ElementsAre("first OK", "second"));
  EXPECT_EQ(ledger_->GetStatistics().waited, 2u);
}

TEST_F(ResponseLedgerTest, ACallThatWaitsTooLongIsRefused) {
  const ResponseAccountRef one =
      Make({.max_bytes = kMax, .timeout = milliseconds(1'000)}).Find("unix:");
  Held held;
  while (one->HasRoom()) held.Add(one, 1);
  absl::Status status;
  one->WhenRoom([&](absl::Status room) { status = std::move(room); });
  LookAfter(milliseconds(900));
  EXPECT_TRUE(status.ok());
  LookAfter(milliseconds(1'100));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(ReasonOf(status), Reason::kUnreadResponses);
  EXPECT_EQ(ledger_->GetStatistics().refused, 1u);
  // Clients of a unix socket cannot be told apart.
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(ResponseLedgerTest, WhenTheServerStopsCallsThatWaitFail) {
  const ResponseAccountRef one = Make().Find(Peer(1));
  Held held;
  while (one->HasRoom()) held.Add(one, 1);
  std::vector<std::optional<Reason>> reasons;
  const auto note = [&](const absl::Status& room) {
    reasons.push_back(ReasonOf(room));
  };
  one->WhenRoom(note);
  ledger_->Stop();
  one->WhenRoom(note);
  EXPECT_THAT(reasons, ElementsAre(Reason::kDraining, Reason::kDraining));
}

TEST_F(ResponseLedgerTest, ACallWaitsWhoseConnectionNothingElseRefersTo) {
  ResponseLedger& ledger = Make();
  Held held;
  held.Add(ledger.Find("unix:"), 2 * kMax / kMiB);
  absl::Status status;
  ledger.Find(Peer(1))->WhenRoom(
      [&](absl::Status room) { status = std::move(room); });
  for (int i = 0; i < 3; ++i) LookAfter(milliseconds(0));
  EXPECT_EQ(ledger.GetStatistics().waiting, 1);
  ledger.Stop();
  EXPECT_EQ(ReasonOf(status), Reason::kDraining) << status;
}

TEST_F(ResponseLedgerTest, AConnectionThatDoesNotReadIsEnded) {
  ResponseLedger& ledger =
      Make({.max_bytes = kMax, .timeout = milliseconds(10'000)});
  const ResponseAccountRef reads = ledger.Find(Peer(1));
  const ResponseAccountRef does_not = ledger.Find(Peer(2));
  Held taken, held;
  taken.Add(reads, 1);
  held.Add(does_not, 1);
  taken.Take();
  // 1 MiB may take 4 s longer.
  LookAfter(seconds(13));
  EXPECT_THAT(ended_, IsEmpty());
  LookAfter(seconds(15));
  EXPECT_THAT(ended_, ElementsAre(Peer(2)));
  LookAfter(seconds(60));
  EXPECT_THAT(ended_, ElementsAre(Peer(2)));
  // Its calls wait no longer.
  absl::Status status;
  does_not->WhenRoom([&](absl::Status room) { status = std::move(room); });
  EXPECT_EQ(ReasonOf(status), Reason::kUnreadResponses);
}

TEST_F(ResponseLedgerTest, OthersThatAreReadDoNotHideOneThatIsNot) {
  ResponseLedger& ledger =
      Make({.max_bytes = kMax, .timeout = milliseconds(10'000)});
  const ResponseAccountRef one = ledger.Find(Peer(1));
  Held held, taken;
  held.Add(one, 1);
  for (int i = 0; i < 100; ++i) {
    taken.Add(one, 1);
    taken.Take();
    one->BeginCall();
    one->AnswerCall();
    one->EndCall(/*answered=*/true);
  }
  LookAfter(seconds(15));
  EXPECT_THAT(ended_, ElementsAre(Peer(1)));
}

TEST_F(ResponseLedgerTest, SmallResponsesThatAreNotReadCountAsCalls) {
  ResponseLedger& ledger =
      Make({.max_bytes = kMax, .timeout = milliseconds(10'000)});
  const ResponseAccountRef one = ledger.Find(Peer(1));
  for (int i = 0; i < 100; ++i) {
    one->BeginCall();
    one->AnswerCall();
  }
  LookAfter(seconds(0));
  EXPECT_EQ(ledger.GetStatistics().bytes, 100 * ResponseAccount::kCallBytes);
  LookAfter(seconds(60));
  EXPECT_THAT(ended_, ElementsAre(Peer(1)));
  for (int i = 0; i < 100; ++i) one->EndCall(/*answered=*/true);
  LookAfter(seconds(60));
  EXPECT_EQ(ledger.GetStatistics().bytes, 0);
}

TEST_F(ResponseLedgerTest, AWatchMayReadLate) {
  ResponseLedger& ledger =
      Make({.max_bytes = kMax, .timeout = milliseconds(10'000)});
  const ResponseAccountRef one = ledger.Find(Peer(1));
  const grpc::Slice message = one->NewSlice(kMiB, /*patient=*/true);
  LookAfter(seconds(3'600));
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_EQ(one->bytes(), kMiB);
}

// Calls that do not wait for room have passed the bound.
TEST_F(ResponseLedgerTest, WhoHoldsNothingNeedNotWaitForTheEndOfOthers) {
  const ResponseAccountRef hog = Make().Find(Peer(1));
  const ResponseAccountRef honest = ledger_->Find(Peer(2));
  Held held;
  held.Add(hog, 16);
  EXPECT_FALSE(hog->HasRoom());
  EXPECT_TRUE(honest->HasRoom());
  held.Add(hog, 16);
  EXPECT_FALSE(honest->HasRoom());
}

TEST_F(ResponseLedgerTest, ACallThatWaitsHoldsItsRequest) {
  ResponseLedger& ledger = Make();
  const ResponseAccountRef hog = ledger.Find(Peer(1));
  const ResponseAccountRef many = ledger.Find(Peer(2));
  Held held;
  held.Add(hog, 9);
  held.Add(many, 4);
  int refused = 0;
  for (int i = 0; i < 3; ++i) {
    many->WhenRoom([&](absl::Status room) { refused += room.ok() ? 0 : 1; },
                   4 * kMiB);
  }
  EXPECT_EQ(many->waiting().bytes,
            3 * (4 * kMiB + ResponseAccount::kCallBytes));
  LookAfter(seconds(1));
  // With what they wait with it holds most.
  EXPECT_THAT(ended_, ElementsAre(Peer(2)));
}

TEST_F(ResponseLedgerTest, BeyondTheBoundThoseEndThatHoldMostForLongest) {
  ResponseLedger& ledger = Make();
  std::vector<ResponseAccountRef> accounts;
  Held held;
  // Each holds nothing when it asks: together they pass the bound.
  for (int i = 0; i < 10; ++i) {
    accounts.push_back(ledger.Find(Peer(i)));
    held.Add(accounts.back(), i < 2 ? 5 - i : 1);
  }
  EXPECT_GE(ledger.GetStatistics().bytes, kMax);
  // Too soon to say who does not read.
  LookAfter(milliseconds(100));
  EXPECT_THAT(ended_, IsEmpty());
  held.Add(accounts[9], 1);
  LookAfter(milliseconds(300));
  EXPECT_THAT(ended_, ElementsAre(Peer(0), Peer(1)));
}

TEST_F(ResponseLedgerTest, WhoWaitsBecauseOfOthersMakesThemEnd) {
  ResponseLedger& ledger = Make();
  const ResponseAccountRef hog = ledger.Find(Peer(1));
  const ResponseAccountRef honest = ledger.Find(Peer(2));
  Held held, own;
  held.Add(hog, 12);
  own.Add(honest, 2);
  own.Add(honest, 2);
  EXPECT_FALSE(honest->HasRoom());
  bool ran = false;
  honest->WhenRoom([&](absl::Status room) { ran = room.ok(); });
  LookAfter(milliseconds(300));
  EXPECT_THAT(ended_, ElementsAre(Peer(1)));
  held.Take();
  LookAfter(milliseconds(300));
  EXPECT_TRUE(ran);
}

TEST_F(ResponseLedgerTest, CallsThatWaitCountForWhoIsEnded) {
  ResponseLedger& ledger = Make();
  Held held;
  const ResponseAccountRef many = ledger.Find(Peer(1));
  while (many->HasRoom()) held.Add(many, 1);
  constexpr int64_t kCalls = kMax / ResponseAccount::kCallBytes;
  int refused = 0;
  for (int64_t i = 0; i < kCalls; ++i) {
    many->WhenRoom([&](absl::Status room) { refused += room.ok() ? 0 : 1; });
  }
  absl::Status one_status;
  const ResponseAccountRef one = ledger.Find(Peer(2));
  one->WhenRoom([&](absl::Status room) { one_status = std::move(room); });
  LookAfter(ResponseLedger::kMinStall);
  EXPECT_THAT(ended_, IsEmpty());
  LookAfter(ResponseLedger::kWaitingStall);
  EXPECT_THAT(ended_, ElementsAre(Peer(1)));
  // A look serves for so long, and leaves the rest to the next one.
  EXPECT_TRUE(Await([&] {
    LookAfter(ResponseLedger::kWaitingStall);
    return ledger.GetStatistics().waiting == 0;
  }));
  EXPECT_EQ(refused, kCalls);
  EXPECT_TRUE(one_status.ok()) << one_status;
}

TEST_F(ResponseLedgerTest, WhoReadsIsNotEndedForWhatWaits) {
  ResponseLedger& ledger = Make();
  Held held;
  const ResponseAccountRef others = ledger.Find("unix:");
  held.Add(others, 2 * kMax / kMiB);
  const ResponseAccountRef many = ledger.Find(Peer(1));
  constexpr int64_t kCalls = kMax / ResponseAccount::kCallBytes;
  for (int64_t i = 0; i < kCalls; ++i) many->WhenRoom([](absl::Status) {});
  for (int i = 0; i < 10; ++i) {
    many->BeginCall();
    many->AnswerCall();
    many->EndCall(/*answered=*/true);
    LookAfter(i * ResponseLedger::kWaitingStall);
  }
  EXPECT_THAT(ended_, IsEmpty());
  LookAfter(10 * ResponseLedger::kWaitingStall);
  EXPECT_THAT(ended_, ElementsAre(Peer(1)));
}

TEST_F(ResponseLedgerTest, CallsThatWaitHoldNoRoom) {
  ResponseLedger& ledger = Make();
  Held held;
  const ResponseAccountRef one = ledger.Find(Peer(1));
  while (one->HasRoom()) held.Add(one, 1);
  const int64_t bytes = one->bytes();
  for (int i = 0; i < 100; ++i) one->WhenRoom([](absl::Status) {});
  EXPECT_EQ(one->bytes(), bytes);
  EXPECT_TRUE(ledger.Find(Peer(2))->HasRoom());
}

TEST_F(ResponseLedgerTest, BeyondTwiceTheBoundTheyEndSooner) {
  ResponseLedger& ledger = Make();
  const ResponseAccountRef one = ledger.Find(Peer(1));
  Held held;
  held.Add(one, 31);
  LookAfter(milliseconds(100));
  EXPECT_THAT(ended_, IsEmpty());
  held.Add(one, 2);
  LookAfter(milliseconds(100));
  EXPECT_THAT(ended_, ElementsAre(Peer(1)));
}

TEST_F(ResponseLedgerTest, TwiceTheCallsThatAConnectionMayHaveEndIt) {
  ResponseLedger& ledger =
      Make({.max_bytes = 1'024 * kMiB, .max_calls_per_connection = 100});
  const ResponseAccountRef one = ledger.Find(Peer(1));
  for (int i = 0; i < 200; ++i) one->BeginCall();
  LookAfter(seconds(0));
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_FALSE(one->ended());
  one->BeginCall();
  // At once: those behind it are not served.
  EXPECT_TRUE(one->ended());
  LookAfter(seconds(0));
  LookAfter(seconds(0));
  EXPECT_THAT(ended_, ElementsAre(Peer(1)));
  EXPECT_EQ(ledger.GetStatistics().ended_connections, 1u);
}

TEST_F(ResponseLedgerTest, OneWithoutAnAddressIsNotEndedForItsCalls) {
  ResponseLedger& ledger = Make({.max_calls_per_connection = 100});
  const ResponseAccountRef all = ledger.Find("unix:");
  for (int i = 0; i < 1'000; ++i) all->BeginCall();
  LookAfter(seconds(0));
  EXPECT_FALSE(all->ended());
}

TEST_F(ResponseLedgerTest, ASmallResponseMayCountAsMore) {
  const ResponseAccountRef one = Make().Find(Peer(1));
  {
    const grpc::Slice small =
        one->NewSlice(10, /*patient=*/false, /*small_bytes=*/4'096);
    EXPECT_EQ(small.size(), 10u);
    EXPECT_EQ(one->bytes(), 4'096);
    const grpc::Slice uncounted = one->NewSlice(10);
    EXPECT_EQ(one->bytes(), 4'096);
  }
  EXPECT_EQ(one->bytes(), 0);
}

// They come faster than the ledger looks by itself.
TEST(ResponseAccountTest, TheCallThatIsTooManyRings) {
  constexpr seconds kLong(60);
  const auto pool = std::make_shared<ResponsePool>(0, 2);
  const ResponseAccountRef one(
      new ResponseAccount(pool, "ipv4:10.0.0.1:1", true));
  for (int i = 0; i < 3; ++i) one->BeginCall();
  const auto start = std::chrono::steady_clock::now();
  pool->WaitForBell(kLong);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kLong);
}

// Else calls that wait for room would wait for each other.
TEST_F(ResponseLedgerTest, CallsThatAreNotAnsweredHoldNoRoom) {
  const ResponseAccountRef one = Make().Find(Peer(1));
  for (int i = 0; i < 10'000; ++i) one->BeginCall();
  LookAfter(seconds(60));
  EXPECT_TRUE(one->HasRoom());
  EXPECT_THAT(ended_, IsEmpty());
  for (int i = 0; i < 10'000; ++i) one->EndCall(/*answered=*/false);
  EXPECT_EQ(one->open_calls(), 0);
}

TEST_F(ResponseLedgerTest, WithoutABoundNothingWaits) {
  ResponseLedger& ledger = Make({.max_bytes = 0});
  const ResponseAccountRef one = ledger.Find(Peer(1));
  Held held;
  for (int i = 0; i < 64; ++i) held.Add(one, 1);
  EXPECT_TRUE(one->HasRoom());
  EXPECT_TRUE(one->CheckShare().ok());
}

TEST_F(ResponseLedgerTest, GrpcMayFreeABufferAfterTheServersEnd) {
  const grpc::Slice slice = Make().Find(Peer(1))->NewSlice(kMiB);
  ledger_.reset();
  EXPECT_EQ(slice.size(), static_cast<size_t>(kMiB));
}

}  // namespace
}  // namespace timecache::server
