// What calls on connections that are gone, and calls without credentials, cost
// the address that makes them.
#include "server/edge/connection/peer_guard.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

constexpr char kPeer[] = "ipv4:192.0.2.1:1";
constexpr char kNeighbour[] = "ipv4:192.0.2.1:2";
constexpr char kOther[] = "ipv4:192.0.2.2:1";
constexpr int kCutsPerSecond = 100;
// Calls that cost as much as all that an address may be in debt.
constexpr int kCallsOfMaxDebt =
    static_cast<int>(kCutsPerSecond * ConnectionPacer::kMaxDebt.count() /
                     ConnectionPacer::kCallCost);

class PeerGuardTest : public ::testing::Test {
 protected:
  PeerGuardTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    EXPECT_TRUE(connections_.Add(ends_[0], PeerEndpoint::OfGrpcPeer(kPeer)));
  }
  ~PeerGuardTest() override {
    for (const int fd : ends_) close(fd);
  }

  // As an address is that connects faster than it may.
  void MakeBusy(const char* peer) {
    pacer_.Charge(PeerEndpoint::OfGrpcPeer(peer).address(), 10, now_);
  }
  bool MayConnect(const char* peer) {
    return pacer_.Offer({-1, 0, PeerEndpoint::OfGrpcPeer(peer)}, now_, [](int) {
      return false;
    }) == ConnectionPacer::Verdict::kNow;
  }
  // How many of those that wait may connect by now.
  size_t Taken() {
    return pacer_.TakeDue(now_, [](int) { return false; }).taken.size();
  }
  bool IsCut() const {
    char byte;
    return recv(ends_[1], &byte, 1, MSG_DONTWAIT) == 0;
  }

  OpenConnections connections_{10};
  ConnectionPacer pacer_{kCutsPerSecond};
  UnprovenBytes unproven_{1 << 20, &connections_, [] { return 0; }};
  PeerGuard guard_{&pacer_, &connections_, &unproven_};
  ConnectionPacer::Time now_{std::chrono::hours(1)};
  int ends_[2];
};

TEST_F(PeerGuardTest, ACallOfABusyAddressIsDroppedIfItsConnectionIsGone) {
  MakeBusy(kPeer);
  EXPECT_FALSE(guard_.IsGone(kPeer, now_));
  shutdown(ends_[1], SHUT_WR);
  EXPECT_TRUE(guard_.IsGone(kPeer, now_));
  EXPECT_FALSE(guard_.IsGone(kNeighbour, now_));
  EXPECT_FALSE(guard_.IsGone(kOther, now_));
  EXPECT_EQ(guard_.dropped(), 1u);
}

TEST_F(PeerGuardTest, OnlyBusyAddressesAreLookedAt) {
  shutdown(ends_[1], SHUT_WR);
  EXPECT_FALSE(pacer_.AnyBusy(now_));
  EXPECT_FALSE(guard_.IsGone(kPeer, now_));
  MakeBusy(kOther);
  EXPECT_TRUE(pacer_.AnyBusy(now_));
  EXPECT_FALSE(guard_.IsGone(kPeer, now_));
  EXPECT_FALSE(guard_.IsGone("unix:", now_));
  EXPECT_EQ(guard_.dropped(), 0u);
}

TEST_F(PeerGuardTest, CallsWithoutCredentialsUseTokensOfTheirAddress) {
  EXPECT_TRUE(MayConnect(kPeer));
  for (int i = 0; i < kCutsPerSecond; ++i) guard_.CountAnonymous(kPeer, now_);
  EXPECT_FALSE(MayConnect(kNeighbour));
  EXPECT_TRUE(MayConnect(kOther));
  EXPECT_FALSE(IsCut());
}

TEST_F(PeerGuardTest, WhoGoesOnInDebtIsCut) {
  for (int i = 0; i < kCallsOfMaxDebt; ++i) guard_.CountAnonymous(kPeer, now_);
  EXPECT_FALSE(IsCut());
  for (int i = 0; i < kCutsPerSecond; ++i) guard_.CountAnonymous(kPeer, now_);
  EXPECT_TRUE(IsCut());
  EXPECT_GT(guard_.cut(), 0u);
  // Others of the address, and those without one, are not.
  guard_.CountAnonymous("unix:", now_);
}

TEST_F(PeerGuardTest, ALargeRequestUsesTokensByItsBytes) {
  constexpr auto kBytesPerSecond =
      static_cast<size_t>(kCutsPerSecond * PeerGuard::kBytesOfConnection);
  guard_.CountAnonymousBytes(kPeer, kBytesPerSecond / 2, now_);
  EXPECT_FALSE(MayConnect(kNeighbour));
  EXPECT_TRUE(MayConnect(kOther));
  EXPECT_FALSE(IsCut());
  now_ += std::chrono::milliseconds(400);
  EXPECT_EQ(Taken(), 0u);
  now_ += std::chrono::milliseconds(100);
  EXPECT_EQ(Taken(), 1u);
  for (int i = 0; i < 2; ++i) {
    guard_.CountAnonymousBytes(kPeer, 20 * kBytesPerSecond, now_);
  }
  EXPECT_TRUE(IsCut());
}

TEST_F(PeerGuardTest, ASmallRequestCountsAsItsCallAlone) {
  for (int i = 0; i < 1'000; ++i) {
    guard_.CountAnonymousBytes(kPeer, PeerGuard::kMaxFreeRequestBytes, now_);
  }
  EXPECT_FALSE(pacer_.AnyBusy(now_));
  constexpr size_t kLarger = PeerGuard::kMaxFreeRequestBytes + 1;
  for (int i = 0; i < 100; ++i) {
    guard_.CountAnonymousBytes(kPeer, kLarger, now_);
  }
  EXPECT_TRUE(pacer_.AnyBusy(now_));
  EXPECT_FALSE(MayConnect(kNeighbour));
}

TEST_F(PeerGuardTest, AStrangerThatIsCutPaysForWhatItSent) {
  constexpr auto kBytesPerSecond =
      static_cast<int64_t>(kCutsPerSecond * PeerGuard::kBytesOfConnection);
  guard_.CutUnproven(PeerEndpoint::OfGrpcPeer(kPeer), kBytesPerSecond / 2,
                     now_);
  EXPECT_TRUE(IsCut());
  EXPECT_EQ(guard_.cut(), 1u);
  EXPECT_FALSE(MayConnect(kNeighbour));
  EXPECT_TRUE(MayConnect(kOther));
}

TEST_F(PeerGuardTest, DebtIsPaidByTime) {
  for (int i = 0; i < 2 * kCallsOfMaxDebt; ++i) {
    guard_.CountAnonymous(kNeighbour, now_);
  }
  now_ += ConnectionPacer::kMaxDebt;
  guard_.CountAnonymous(kPeer, now_);
  EXPECT_FALSE(IsCut());
  EXPECT_FALSE(MayConnect(kPeer));
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(Taken(), 1u);
}

TEST_F(PeerGuardTest, AKnownCallWakesWhoWaitsForRoom) {
  int woken = 0;
  PeerGuard guard(&pacer_, &connections_, &unproven_, [&woken] { ++woken; });
  EXPECT_TRUE(MayConnect(kPeer));
  for (int i = 1; i < Probation::MaxConnections(kCutsPerSecond); ++i) {
    EXPECT_TRUE(MayConnect(absl::StrCat("ipv4:10.0.0.", i, ":1").c_str()));
  }
  guard.CountKnown(kOther, /*has_credentials=*/true);
  EXPECT_FALSE(MayConnect(kOther));
  EXPECT_EQ(woken, 0);
  guard.CountKnown(kPeer, /*has_credentials=*/true);
  EXPECT_EQ(woken, 1);
}

}  // namespace
}  // namespace timecache::server
