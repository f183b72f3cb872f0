// Whose turn it is.

#include "server/rpc/call/fair_queue.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> PopAll(FairQueue<std::string>* queue) {
  std::vector<std::string> items;
  while (!queue->empty()) items.push_back(queue->Pop());
  return items;
}

TEST(FairQueueTest, FlowsTakeTurnsWhateverTheyHold) {
  FairQueue<std::string> queue;
  for (int i = 0; i < 4; ++i) queue.Push("busy", "b" + std::to_string(i));
  queue.Push("quiet", "q0");
  queue.Push("other", "o0");
  queue.Push("other", "o1");
  EXPECT_EQ(queue.size(), 7u);
  EXPECT_THAT(PopAll(&queue),
              ElementsAre("b0", "q0", "o0", "b1", "o1", "b2", "b3"));
}

TEST(FairQueueTest, AFlowThatComesAgainWaitsForOneItemOfEachOther) {
  FairQueue<std::string> queue;
  for (int i = 0; i < 3; ++i) queue.Push("busy", "b" + std::to_string(i));
  EXPECT_EQ(queue.Pop(), "b0");
  queue.Push("quiet", "q0");
  EXPECT_EQ(queue.Pop(), "b1");
  EXPECT_EQ(queue.Pop(), "q0");
  queue.Push("quiet", "q1");
  EXPECT_THAT(PopAll(&queue), ElementsAre("b2", "q1"));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(FairQueueTest, OneFlowIsInOrder) {
  FairQueue<std::string> queue;
  for (const char* item : {"a", "b", "c"}) queue.Push("", item);
  EXPECT_THAT(PopAll(&queue), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace timecache::server
