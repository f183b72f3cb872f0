#include "server/engine/shard/lean_queue.h"

#include <algorithm>
#include <deque>

#include "gtest/gtest.h"
#include "tests/support/engine/dice.h"

namespace timecache::server {
namespace {

TEST(LeanQueueTest, IsFirstInFirstOut) {
  Dice dice(17);
  LeanQueue<int> queue;
  std::deque<int> model;
  for (int i = 0; i < 100'000; ++i) {
    const bool grow = i / 500 % 2 == 0;
    if (dice.Index(10) < (grow ? 7 : 3)) {
      queue.push_back(i);
      model.push_back(i);
    } else if (!model.empty()) {
      const size_t count = 1 + dice.Index(std::min<size_t>(model.size(), 3));
      queue.Drop(count);
      model.erase(model.begin(), model.begin() + static_cast<ptrdiff_t>(count));
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_EQ(queue.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(queue.front(), model.front());
    }
  }
}

}  // namespace
}  // namespace timecache::server
