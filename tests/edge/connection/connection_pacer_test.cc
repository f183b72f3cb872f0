// How fast an address may bring connections, and what becomes of the others.
#include "server/edge/connection/connection_pacer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Verdict = ConnectionPacer::Verdict;
using std::chrono::milliseconds;

constexpr int kPerSecond = 100;
constexpr int kBurst = kPerSecond / ConnectionPacer::kBurstPart;
constexpr milliseconds kToken{1'000 / kPerSecond};
constexpr milliseconds kLong{60'000};

PeerEndpoint Endpoint(const std::string& address, int port) {
  return PeerEndpoint::OfGrpcPeer(absl::StrCat("ipv4:", address, ":", port));
}

class ConnectionPacerTest : public ::testing::Test {
 protected:
  // Its port is the descriptor's number. Once taken it makes a good call.
  Verdict Offer(const std::string& from, int fd) {
    const Verdict verdict = OfferSilent(from, fd);
    if (verdict == Verdict::kNow) pacer_.Prove(Endpoint(from, fd));
    return verdict;
  }
  Verdict OfferSilent(const std::string& from, int fd) {
    return pacer_.Offer({fd, 0, Endpoint(from, fd)}, now_, is_gone_);
  }
  static PeerAddress Address(const std::string& text) {
    return Endpoint(text, 1).address();
  }
  // As many as are taken at once, from `fd` on.
  int OfferUntilOneWaits(const std::string& from, int fd) {
    int taken = 0;
    while (Offer(from, fd + taken) == Verdict::kNow) ++taken;
    return taken;
  }
  std::vector<int> Taken() {
    std::vector<int> fds;
    ConnectionPacer::Due due = pacer_.TakeDue(now_, is_gone_);
    for (const PacedConnection& each : due.taken) fds.push_back(each.fd);
    for (const PacedConnection& each : due.gone) dropped_.insert(each.fd);
    return fds;
  }

  ConnectionPacer pacer_{kPerSecond};
  ConnectionPacer::Time now_{kLong};
  std::set<int> gone_;
  std::set<int> dropped_;
  const ConnectionPacer::IsGone is_gone_ = [this](int fd) {
    return gone_.contains(fd);
  };
  const std::string attacker_ = "192.0.2.1";
  const std::string honest_ = "192.0.2.2";
};

// As after a restart.
TEST_F(ConnectionPacerTest, ManyConnectionsOfAKnownClientNeedNotWait) {
  ASSERT_EQ(OfferSilent(honest_, 1), Verdict::kNow);
  pacer_.Prove(Endpoint(honest_, 1), /*known=*/true);
  for (int fd = 2; fd < 2'000; ++fd) {
    ASSERT_EQ(OfferSilent(honest_, fd), Verdict::kNow) << fd;
    pacer_.Prove(Endpoint(honest_, fd), /*known=*/true);
  }
  // So that calls of its connections that are gone are still found.
  EXPECT_TRUE(pacer_.IsBusy(Address(honest_), now_));
  // Its connections make no debt.
  now_ += kToken * kBurst;
  EXPECT_FALSE(pacer_.IsBusy(Address(honest_), now_));
}

TEST_F(ConnectionPacerTest, WhatWaitedComesOnceTheirClientIsKnown) {
  ASSERT_EQ(OfferSilent(honest_, 1), Verdict::kNow);
  for (int fd = 2; fd <= kBurst; ++fd) OfferSilent(honest_, fd);
  for (int fd = 100; fd < 110; ++fd) {
    ASSERT_EQ(OfferSilent(honest_, fd), Verdict::kWait);
  }
  EXPECT_TRUE(pacer_.Prove(Endpoint(honest_, 1), /*known=*/true));
  EXPECT_LE(*pacer_.NextDue(), now_);
  EXPECT_EQ(Taken().size(), 10u);
  EXPECT_EQ(pacer_.NextDue(), std::nullopt);
}

TEST_F(ConnectionPacerTest, AKnownClientNeedNotWaitForStrangersOnProbation) {
  ASSERT_EQ(OfferSilent(honest_, 1), Verdict::kNow);
  pacer_.Prove(Endpoint(honest_, 1), /*known=*/true);
  int strangers = 0;
  while (OfferSilent(absl::StrCat("198.51.100.", strangers),
                     1'000 + strangers) == Verdict::kNow) {
    ++strangers;
  }
  EXPECT_EQ(strangers, Probation::MaxConnections(kPerSecond));
  EXPECT_EQ(OfferSilent(honest_, 2), Verdict::kNow);
}

TEST_F(ConnectionPacerTest, AKnownClientWaitsForTheCostOfItsBadCalls) {
  ASSERT_EQ(OfferSilent(honest_, 1), Verdict::kNow);
  pacer_.Prove(Endpoint(honest_, 1), /*known=*/true);
  ASSERT_EQ(Offer(honest_, 2), Verdict::kNow);
  pacer_.Charge(Address(honest_), 2 * kPerSecond, now_);
  EXPECT_EQ(Offer(honest_, 3), Verdict::kWait);
  now_ += std::chrono::seconds(2);
  EXPECT_THAT(Taken(), ElementsAre(3));
}

TEST_F(ConnectionPacerTest, ABurstIsTakenAndTheNextWaitsForItsToken) {
  EXPECT_EQ(OfferUntilOneWaits(attacker_, 1), kBurst);
  EXPECT_EQ(pacer_.delayed(), 1u);
  EXPECT_EQ(pacer_.last_delayed(), Address(attacker_));
  EXPECT_EQ(pacer_.NextDue(), now_ + kToken);
  EXPECT_THAT(Taken(), IsEmpty());
  now_ += kToken;
  EXPECT_THAT(Taken(), ElementsAre(1 + kBurst));
  EXPECT_EQ(pacer_.NextDue(), std::nullopt);
}

TEST_F(ConnectionPacerTest, WhoWaitsKeepsNobodyElse) {
  for (int i = 0; i < 100; ++i) Offer(attacker_, i);
  EXPECT_EQ(Offer(honest_, 1'000), Verdict::kNow);
}

TEST_F(ConnectionPacerTest, ConnectionsThatWaitComeInTheirOrder) {
  const int taken = OfferUntilOneWaits(attacker_, 0);
  EXPECT_EQ(Offer(attacker_, taken + 1), Verdict::kWait);
  now_ += kToken;
  // There is a token, but it is that of the one that waits.
  EXPECT_EQ(Offer(attacker_, taken + 2), Verdict::kWait);
  now_ += kToken;
  EXPECT_THAT(Taken(), ElementsAre(taken, taken + 1));
  now_ += kToken;
  EXPECT_THAT(Taken(), ElementsAre(taken + 2));
}

TEST_F(ConnectionPacerTest, WhatIsGoneCostsNoToken) {
  const int taken = OfferUntilOneWaits(attacker_, 0);
  for (int i = 1; i <= 5; ++i) Offer(attacker_, taken + i);
  gone_ = {taken, taken + 1, taken + 3};
  now_ += kToken;
  EXPECT_THAT(Taken(), ElementsAre(taken + 2));
  now_ += kToken;
  EXPECT_THAT(Taken(), ElementsAre(taken + 4));
  EXPECT_EQ(dropped_, gone_);
  EXPECT_EQ(pacer_.gone(), 3u);
}

TEST_F(ConnectionPacerTest, OneTooManyIsRefusedUnlessOthersAreGone) {
  int fd = OfferUntilOneWaits(attacker_, 0);
  for (size_t i = 1; i < ConnectionPacer::kMaxWaiting; ++i) {
    ASSERT_EQ(Offer(attacker_, ++fd), Verdict::kWait);
  }
  EXPECT_EQ(Offer(attacker_, ++fd), Verdict::kRefuse);
  EXPECT_EQ(pacer_.refused(), 1u);
  gone_ = {fd - 1, fd - 2};
  // It was looked just now.
  EXPECT_EQ(Offer(attacker_, ++fd), Verdict::kRefuse);
  now_ += ConnectionPacer::kLookInterval;
  EXPECT_EQ(Offer(attacker_, ++fd), Verdict::kWait);
  Taken();
  EXPECT_EQ(dropped_, gone_);
}

TEST_F(ConnectionPacerTest, AllThatWaitMayBeGone) {
  OfferUntilOneWaits(attacker_, 0);
  gone_ = {kBurst};
  now_ += kToken;
  EXPECT_THAT(Taken(), IsEmpty());
  EXPECT_EQ(pacer_.NextDue(), std::nullopt);
  EXPECT_EQ(Offer(attacker_, 1'000), Verdict::kNow);
}

TEST_F(ConnectionPacerTest, ABucketFillsUpAgainAndNoFurther) {
  EXPECT_EQ(OfferUntilOneWaits(attacker_, 0), kBurst);
  now_ += kLong;
  Taken();
  now_ += kLong;
  EXPECT_EQ(OfferUntilOneWaits(attacker_, 0), kBurst);
}

TEST_F(ConnectionPacerTest, AChargeCountsAsConnectionsDo) {
  pacer_.Charge(Address(attacker_), kBurst + 0.5, now_);
  EXPECT_TRUE(pacer_.IsBusy(Address(attacker_), now_));
  EXPECT_FALSE(pacer_.IsBusy(Address(honest_), now_));
  EXPECT_EQ(Offer(attacker_, 1), Verdict::kWait);
  EXPECT_EQ(pacer_.NextDue(), now_ + kToken + kToken / 2);
  // One that comes while it waits makes it wait longer.
  pacer_.Charge(Address(attacker_), 1, now_);
  now_ += kToken + kToken / 2;
  EXPECT_THAT(Taken(), IsEmpty());
  now_ += kToken;
  EXPECT_THAT(Taken(), ElementsAre(1));
}

TEST_F(ConnectionPacerTest, DebtIsBounded) {
  for (int i = 0; i < 10; ++i) pacer_.Charge(Address(attacker_), 1e6, now_);
  EXPECT_EQ(Offer(attacker_, 1), Verdict::kWait);
  EXPECT_EQ(pacer_.NextDue(), now_ + ConnectionPacer::kMaxDebt);
}

TEST_F(ConnectionPacerTest, WithoutAnAddressThereIsNoPace) {
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_EQ(pacer_.Offer({i, 0}, now_, is_gone_), Verdict::kNow);
  }
}

TEST_F(ConnectionPacerTest, AddressesBeyondTheBoundShareABucket) {
  const auto nth = [](size_t n) {
    return absl::StrCat("10.", n >> 16, ".", n >> 8 & 255, ".", n & 255);
  };
  for (size_t i = 0; i < ConnectionPacer::kMaxAddresses; ++i) {
    ASSERT_EQ(Offer(nth(i), 1), Verdict::kNow);
  }
  for (int i = 0; i < kBurst; ++i) {
    EXPECT_EQ(Offer(nth(ConnectionPacer::kMaxAddresses + i), 1), Verdict::kNow);
  }
  EXPECT_EQ(Offer(honest_, 1), Verdict::kWait);
  // What is known keeps its own, and full buckets are forgotten.
  EXPECT_EQ(Offer(nth(0), 1), Verdict::kNow);
  now_ += kLong;
  EXPECT_THAT(Taken(), ElementsAre(1));
  EXPECT_EQ(Offer(attacker_, 1), Verdict::kNow);
}

TEST_F(ConnectionPacerTest, OneASecondIsAPaceAsWell) {
  ConnectionPacer slow(1);
  EXPECT_EQ(slow.Offer({1, 0, Endpoint(attacker_, 1)}, now_, is_gone_),
            Verdict::kNow);
  EXPECT_EQ(slow.Offer({2, 0, Endpoint(attacker_, 2)}, now_, is_gone_),
            Verdict::kWait);
  EXPECT_EQ(slow.NextDue(), now_ + std::chrono::seconds(1));
}

// Many addresses, each of which stays below its pace.
class ProbationTest : public ConnectionPacerTest {
 protected:
  static std::string Many(int i) {
    return absl::StrCat("10.0.", i / 256, ".", i % 256);
  }
  void Fill() {
    for (int i = 0; i < kRoom; ++i) {
      ASSERT_EQ(OfferSilent(Many(i), i), Verdict::kNow);
    }
  }

  static constexpr int kRoom = Probation::MaxConnections(kPerSecond);
};

TEST_F(ProbationTest, BeyondItsRoomAllWait) {
  EXPECT_LE(pacer_.probation_until(), now_);
  Fill();
  EXPECT_GT(pacer_.probation_until(), now_);
  EXPECT_EQ(OfferSilent(honest_, 1'000), Verdict::kWait);
  EXPECT_THAT(Taken(), IsEmpty());
  EXPECT_EQ(pacer_.NextDue(), now_ + Probation::kTime);
}

TEST_F(ProbationTest, ACallWithCredentialsMakesRoom) {
  Fill();
  EXPECT_FALSE(pacer_.Prove(Endpoint(Many(0), 0)));
  EXPECT_EQ(OfferSilent(honest_, 1'000), Verdict::kNow);
  EXPECT_EQ(OfferSilent(honest_, 1'001), Verdict::kWait);
  EXPECT_FALSE(pacer_.Prove(Endpoint(Many(0), 0)));
  EXPECT_TRUE(pacer_.Prove(Endpoint(Many(1), 1)));
  EXPECT_THAT(Taken(), ElementsAre(1'001));
}

TEST_F(ProbationTest, EndsByItself) {
  Fill();
  OfferSilent(honest_, 1'000);
  OfferSilent(honest_, 1'001);
  now_ += Probation::kTime;
  EXPECT_LE(pacer_.probation_until(), now_);
  EXPECT_THAT(Taken(), ElementsAre(1'000, 1'001));
}

TEST_F(ProbationTest, WhoHasUsedLeastComesFirst) {
  pacer_.Charge(Address(Many(1)), 2, now_);
  pacer_.Charge(Address(Many(2)), 1, now_);
  Fill();
  EXPECT_EQ(OfferSilent(Many(1), 1'001), Verdict::kWait);
  EXPECT_EQ(OfferSilent(Many(2), 1'002), Verdict::kWait);
  EXPECT_EQ(OfferSilent(honest_, 1'003), Verdict::kWait);
  gone_ = {1'002};
  for (const int fd : {1'003, 1'001}) {
    pacer_.Prove(Endpoint(Many(fd - 1'000), fd - 1'000));
    EXPECT_THAT(Taken(), ElementsAre(fd));
  }
  EXPECT_EQ(dropped_, gone_);
}

TEST_F(ProbationTest, CallsWithoutCredentialsHaveABudgetTogether) {
  const auto call = [this](int from) {
    pacer_.CountAnonymousCalls(Address(Many(from)), 1, now_);
  };
  const int burst = Probation::MaxCalls(kPerSecond) / 10;
  for (int i = 0; i <= burst; ++i) call(i % 100);
  EXPECT_EQ(Offer(honest_, 1), Verdict::kWait);
  now_ += std::chrono::milliseconds(1);
  EXPECT_THAT(Taken(), ElementsAre(1));
  for (int i = 0; i <= 20 * burst; ++i) call(i);
  EXPECT_EQ(Offer(honest_, 2), Verdict::kWait);
  EXPECT_EQ(pacer_.NextDue(), now_ + Probation::kMaxDebt - Probation::kBurst);
}

TEST_F(ProbationTest, ACallCountsAsManyByTheirNumber) {
  const int burst = Probation::MaxCalls(kPerSecond) / 10;
  pacer_.CountAnonymousCalls(Address(Many(1)), burst + 1, now_);
  EXPECT_EQ(Offer(honest_, 1), Verdict::kWait);
  now_ += std::chrono::milliseconds(1);
  EXPECT_THAT(Taken(), ElementsAre(1));
}

TEST_F(ProbationTest, AnAddressBeyondItsPaceUsesNoneOfTheBudget) {
  for (int i = 0; i < 10 * Probation::MaxCalls(kPerSecond); ++i) {
    pacer_.CountAnonymousCalls(Address(attacker_), 1, now_);
  }
  EXPECT_EQ(Offer(honest_, 1), Verdict::kNow);
}

}  // namespace
}  // namespace timecache::server
