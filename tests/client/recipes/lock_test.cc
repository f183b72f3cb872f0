#include "timecache/recipes/lock.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/client/recipes/recipe_fixture.h"
#include "tests/support/engine/dice.h"

namespace timecache::test {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
// Of the default namespace.
constexpr absl::Duration kLockWidth = absl::Milliseconds(300);
constexpr absl::Duration kPatience = absl::Minutes(1);

using Token = std::optional<uint64_t>;

class LockTest : public RecipeTest {
 protected:
  std::unique_ptr<Lock> MakeLock(
      const std::string& owner,
      absl::Duration recheck = absl::InfiniteDuration()) const {
    return std::make_unique<Lock>(
        MakeClient(), "lock",
        LockOptions{.ttl = kLease, .owner = owner, .recheck = recheck});
  }

  std::unique_ptr<Lock> a_ = MakeLock("a");
  std::unique_ptr<Lock> b_ = MakeLock("b");
};

Token Must(const absl::StatusOr<Token>& token) {
  EXPECT_TRUE(token.ok()) << token.status();
  return token.value_or(std::nullopt);
}

TEST_F(LockTest, OneHasItAndPeopleSeeWho) {
  const Token token = Must(a_->TryAcquire());
  ASSERT_TRUE(token);
  EXPECT_FALSE(Must(b_->TryAcquire()));
  EXPECT_EQ(a_->token(), token);
  EXPECT_EQ(b_->token(), std::nullopt);
  EXPECT_GT(a_->remaining(), absl::ZeroDuration());
  EXPECT_LE(a_->remaining(), kLease);
  EXPECT_EQ(b_->remaining(), absl::ZeroDuration());
  EXPECT_EQ(server_.Get("lock").entry().value().substr(0, 2), "a ");
}

TEST_F(LockTest, RenewalsKeepTheTokenAndTheLock) {
  const Token token = Must(a_->TryAcquire());
  for (int i = 0; i < 5; ++i) {
    Pass(kLease - absl::Seconds(1));
    EXPECT_EQ(a_->Renew().value(), true);
    EXPECT_EQ(a_->token(), token);
    EXPECT_FALSE(Must(b_->TryAcquire()));
  }
  // To ask for it again is to renew it.
  Pass(kLease - absl::Seconds(1));
  EXPECT_EQ(Must(a_->TryAcquire()), token);
  Pass(kLease - absl::Seconds(1));
  EXPECT_FALSE(Must(b_->TryAcquire()));
}

TEST_F(LockTest, WhoLostItNeitherRenewsNorReleases) {
  const Token old = Must(a_->TryAcquire());
  Pass(kLease + kLockWidth);
  const Token token = Must(b_->TryAcquire());
  ASSERT_TRUE(token);
  EXPECT_GT(*token, *old);
  EXPECT_EQ(a_->Renew().value(), false);
  EXPECT_EQ(a_->token(), std::nullopt);
  EXPECT_EQ(a_->Release().value(), false);
  EXPECT_EQ(b_->Renew().value(), true);
  EXPECT_EQ(b_->token(), token);
}

TEST_F(LockTest, ReleasedItIsFreeAtOnceForWhoAsks) {
  const Token first = Must(a_->TryAcquire());
  EXPECT_EQ(a_->Release().value(), true);
  EXPECT_EQ(a_->Release().value(), false);
  const Token second = Must(b_->TryAcquire());
  ASSERT_TRUE(second);
  EXPECT_GT(*second, *first);
  EXPECT_FALSE(Must(a_->TryAcquire()));
  // What is left of the release ends nothing.
  Pass(kLease - kLockWidth);
  EXPECT_FALSE(Must(a_->TryAcquire()));
  EXPECT_EQ(b_->Renew().value(), true);
}

TEST_F(LockTest, AWaiterGetsItWhenTheLeaseEnds) {
  const Token first = Must(a_->TryAcquire());
  Token second;
  std::thread waiter([&] { second = Must(b_->Acquire(kPatience)); });
  server_.AwaitWatchers(1);
  Pass(kLease + kLockWidth);
  waiter.join();
  ASSERT_TRUE(second);
  EXPECT_GT(*second, *first);
}

TEST_F(LockTest, AWaiterHearsOfARelease) {
  Must(a_->TryAcquire());
  Token second;
  std::thread waiter([&] { second = Must(b_->Acquire(kPatience)); });
  server_.AwaitWatchers(1);
  EXPECT_EQ(a_->Release().value(), true);
  // No more than a bucket later.
  Pass(absl::Milliseconds(1) + kLockWidth);
  waiter.join();
  EXPECT_TRUE(second);
}

TEST_F(LockTest, AWaiterLooksAgainWhereNoEventComes) {
  Must(a_->TryAcquire());
  const auto eager = MakeLock("eager", absl::Milliseconds(2));
  Token second;
  std::thread waiter([&] { second = Must(eager->Acquire(kPatience)); });
  server_.AwaitWatchers(1);
  ASSERT_TRUE(client_.Remove("lock").ok());
  waiter.join();
  EXPECT_TRUE(second);
}

TEST_F(LockTest, AWaiterGivesUp) {
  Must(a_->TryAcquire());
  EXPECT_FALSE(Must(b_->Acquire(absl::ZeroDuration())));
  EXPECT_FALSE(Must(b_->Acquire(absl::Milliseconds(20))));
  EXPECT_EQ(a_->Renew().value(), true);
}

TEST_F(LockTest, ALeaseThatIsOverIsLost) {
  absl::Notification lost;
  Lock lock(client_, "lock",
            {.ttl = absl::Milliseconds(20), .on_lost = [&] { lost.Notify(); }});
  ASSERT_TRUE(Must(lock.TryAcquire()));
  lost.WaitForNotification();
  EXPECT_EQ(lock.token(), std::nullopt);
  EXPECT_EQ(lock.remaining(), absl::ZeroDuration());
  EXPECT_EQ(lock.Renew().value(), false);
  // The server's clock stands: it is still this owner's.
  EXPECT_FALSE(Must(a_->TryAcquire()));
}

TEST_F(LockTest, ACallThatFindsTheLeaseLostReportsIt) {
  int lost = 0;
  Lock lock(client_, "lock", {.ttl = kLease, .on_lost = [&] { ++lost; }});
  ASSERT_TRUE(Must(lock.TryAcquire()));
  Pass(kLease + kLockWidth);
  ASSERT_TRUE(Must(a_->TryAcquire()));
  EXPECT_EQ(lock.Renew().value(), false);
  EXPECT_EQ(lock.Release().value(), false);
  EXPECT_FALSE(Must(lock.TryAcquire()));
  EXPECT_EQ(lost, 1);
}

TEST_F(LockTest, AReleasedLeaseIsNotLost) {
  int lost = 0;
  {
    Lock lock(client_, "lock", {.ttl = kLease, .on_lost = [&] { ++lost; }});
    ASSERT_TRUE(Must(lock.TryAcquire()));
    EXPECT_EQ(lock.Release().value(), true);
    ASSERT_TRUE(Must(lock.TryAcquire()));
  }
  EXPECT_EQ(lost, 0) << "nor is that of a lock that is destroyed";
}

// What a lock protects: it remembers the largest token, and refuses others.
class Fenced {
 public:
  bool Write(uint64_t token, int owner) {
    absl::MutexLock lock(&mu_);
    // A token is one owner's.
    const auto [place, is_new] = owners_.try_emplace(token, owner);
    EXPECT_EQ(place->second, owner) << "both have token " << token;
    if (token < largest_) {
      ++refused_;
      return false;
    }
    largest_ = token;
    ++written_;
    return true;
  }
  size_t leases() const { return owners_.size(); }
  int written() const { return written_; }

 private:
  absl::Mutex mu_;
  std::map<uint64_t, int> owners_;
  uint64_t largest_ = 0;
  int written_ = 0;
  int refused_ = 0;
};

// Four contenders, some of whom sleep through their lease, and a clock that
// jumps across expiries meanwhile.
TEST_F(LockTest, TokensFollowTheOrderOfOwnersAcrossExpiries) {
  constexpr int kContenders = 4;
  constexpr int kRounds = 150;
  Fenced fenced;
  std::atomic<int> running = kContenders;
  std::vector<std::thread> contenders;
  for (int i = 0; i < kContenders; ++i) {
    contenders.emplace_back([&, i] {
      Dice dice(static_cast<uint64_t>(i) + 1);
      const auto lock = MakeLock(absl::StrCat(i));
      uint64_t last = 0;
      for (int round = 0; round < kRounds; ++round) {
        const auto taken = lock->TryAcquire();
        EXPECT_TRUE(taken.ok()) << taken.status();
        if (!taken.ok() || !*taken) continue;
        EXPECT_GE(**taken, last) << "a later lease has a smaller token";
        last = **taken;
        fenced.Write(last, i);
        if (dice.Chance(300)) {
          EXPECT_TRUE(lock->Release().ok());
        } else if (dice.Chance(500)) {
          EXPECT_TRUE(lock->Renew().ok());
          // Perhaps it is another's by now: then this one is refused.
          fenced.Write(last, i);
        }
      }
      --running;
    });
  }
  Dice dice(7);
  while (running > 0) Pass(kLease * dice.Draw(1, 15) / 10);
  for (std::thread& contender : contenders) contender.join();
  EXPECT_GT(fenced.leases(), 10u);
  EXPECT_GT(fenced.written(), 10);
}

// At one expiry each time, all at once.
TEST_F(LockTest, ExactlyOneWaiterGetsIt) {
  constexpr int kWaiters = 4;
  constexpr int kExpiries = 5;
  Token last = Must(a_->TryAcquire());
  for (int expiry = 0; expiry < kExpiries; ++expiry) {
    std::vector<std::unique_ptr<Lock>> locks;
    for (int i = 0; i < kWaiters; ++i) locks.push_back(MakeLock(""));
    Pass(kLease + kLockWidth);
    std::atomic<int> owners = 0;
    std::atomic<uint64_t> token = 0;
    std::vector<std::thread> waiters;
    for (const auto& lock : locks) {
      waiters.emplace_back([&] {
        const Token taken = Must(lock->TryAcquire());
        if (!taken) return;
        ++owners;
        token = *taken;
      });
    }
    for (std::thread& waiter : waiters) waiter.join();
    EXPECT_EQ(owners, 1);
    EXPECT_GT(token.load(), *last);
    last = token.load();
  }
}

// A time-out that is so short may be over before a call is made: then again.
class UnansweredLockTest : public UnansweredTest {
 protected:
  static Token Try(Lock& lock) {
    Token token;
    EXPECT_TRUE(Await([&] {
      const auto taken = lock.TryAcquire();
      if (taken.ok()) token = *taken;
      return taken.ok();
    }));
    return token;
  }

  Lock impatient_{MakeImpatientClient(), "lock", {.ttl = kLease}};
  Lock other_{MakeClient(), "lock", {.ttl = kLease}};
};

TEST_F(UnansweredLockTest, AnAcquisitionThatHappenedIsTakenOver) {
  LeaveUnanswered([&] { return impatient_.TryAcquire().status(); });
  ASSERT_FALSE(Must(other_.TryAcquire()));
  EXPECT_EQ(impatient_.token(), std::nullopt);
  const uint64_t version = server_.Get("lock").entry().version();
  Pass(kLease - absl::Seconds(1));
  // With a fresh time to live, because who takes it over does not know when it
  // began.
  EXPECT_EQ(Try(impatient_), version);
  Pass(kLease - absl::Seconds(1));
  EXPECT_FALSE(Must(other_.TryAcquire()));
}

TEST_F(UnansweredLockTest, AnAcquisitionThatIsNotAskedForAgainExpires) {
  LeaveUnanswered([&] { return impatient_.TryAcquire().status(); });
  ASSERT_FALSE(Must(other_.TryAcquire()));
  Pass(kLease + kLockWidth);
  const Token token = Must(other_.TryAcquire());
  ASSERT_TRUE(token);
  EXPECT_FALSE(Try(impatient_));
}

TEST_F(UnansweredLockTest, AReleaseThatHappenedIsRepeated) {
  const Token token = Try(impatient_);
  ASSERT_TRUE(token);
  LeaveUnanswered([&] { return impatient_.Release().status(); });
  EXPECT_EQ(impatient_.token(), token);
  const Token next = Must(other_.TryAcquire());
  ASSERT_TRUE(next);
  EXPECT_GT(*next, *token);
  EXPECT_TRUE(Await([&] { return impatient_.Release().ok(); }));
  EXPECT_EQ(impatient_.token(), std::nullopt);
  EXPECT_EQ(other_.Renew().value(), true);
}

}  // namespace
}  // namespace timecache::test
