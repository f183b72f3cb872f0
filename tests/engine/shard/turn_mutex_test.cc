#include "server/engine/shard/turn_mutex.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/await.h"

namespace timecache::server {

class TurnMutexTest : public ::testing::Test {
 protected:
  // Whether another thread waits for it, that holds the door meanwhile.
  bool IsAwaited() {
    if (!mu_.turn_mu_.TryLock()) return true;
    mu_.turn_mu_.Unlock();
    return false;
  }

  TurnMutex mu_;
};

TEST_F(TurnMutexTest, WhoComesBackInTurnIsBehindWhoWaits) {
  for (int i = 0; i < 100; ++i) {
    bool had_it = false;
    mu_.Lock();
    std::thread other([&] {
      const TurnLock lock(&mu_);
      had_it = true;
    });
    EXPECT_TRUE(test::Await([&] { return IsAwaited(); }));
    EXPECT_FALSE(had_it);
    mu_.Unlock();
    mu_.LockInTurn();
    EXPECT_TRUE(had_it);
    mu_.Unlock();
    other.join();
  }
}

TEST_F(TurnMutexTest, HoldsOneAtATime) {
  constexpr int kTurns = 2'000;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, in_turn = i % 2 == 0] {
      for (int turn = 0; turn < kTurns; ++turn) {
        if (in_turn) {
          mu_.LockInTurn();
        } else {
          mu_.Lock();
        }
        ++count;
        mu_.Unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4 * kTurns);
}

}  // namespace timecache::server
