#include "server/base/heap.h"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(HeapTest, GivesBackWhatABurstHasUsed) {
  TrimHeap();
  constexpr size_t kBlockBytes = 10'000;
  constexpr size_t kBlocks = 20'000;
  const size_t before = ResidentBytes();
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(std::make_unique<char[]>(kBlockBytes));
  }
  // One that stays keeps the heap from shrinking by itself.
  const auto last = std::make_unique<char[]>(kBlockBytes);
  ASSERT_GT(ResidentBytes(), before + kBlockBytes * kBlocks / 2);
  blocks.clear();
  EXPECT_TRUE(TrimHeap());
  EXPECT_LT(ResidentBytes(), before + kBlockBytes * kBlocks / 4);
}

TEST(HeapTest, LeavesALittleAlone) {
  TrimHeap();
  std::make_unique<char[]>(1 << 20).reset();
  EXPECT_FALSE(TrimHeap());
}

TEST(HeapTest, WhatTakesLongIsDoneLessOften) {
  HeapTrimmer::Time now;
  int trims = 0;
  HeapTrimmer trimmer(
      [&] {
        ++trims;
        now += std::chrono::milliseconds(145);
      },
      [&] { return now; });
  trimmer.Look();
  EXPECT_EQ(trims, 1);
  now += std::chrono::seconds(144);
  trimmer.Look();
  EXPECT_EQ(trims, 1);
  now += std::chrono::seconds(1);
  trimmer.Look();
  EXPECT_EQ(trims, 2);
}

}  // namespace
}  // namespace timecache::server
