#include "server/base/block_pool.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "gtest/gtest.h"
#if defined(ABSL_HAVE_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace timecache::server {
namespace {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER)
TEST(BlockPoolTest, TheAddressSanitizerKnowsWhatIsFree) {
  BlockPool pool;
  for (size_t bytes = BlockPool::kMinBlockBytes;
       bytes <= BlockPool::kMaxBlockBytes; bytes *= 2) {
    void* const block = pool.Allocate(bytes);
    EXPECT_FALSE(__asan_address_is_poisoned(block));
    pool.Free(block);
    EXPECT_TRUE(__asan_address_is_poisoned(block)) << bytes;
  }
}
#endif

TEST(BlockPoolTest, BlocksOfAllSizesAreApartAndAligned) {
  BlockPool pool;
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  unsigned char mark = 0;
  for (size_t bytes :
       {64, 100, 4096, 16 << 10, 16 << 10, (16 << 10) + 8, 32 << 10, 128 << 10,
        1 << 20, 1 << 20, 1 << 20, 2 << 20}) {
    for (int i = 0; i < 40; ++i) {
      auto* const block = static_cast<unsigned char*>(pool.Allocate(bytes));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 16, 0u);
      if (bytes % 64 == 0 && bytes <= BlockPool::kMaxBlockBytes) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << bytes;
      }
      std::memset(block, ++mark, bytes);
      blocks.emplace_back(block, bytes);
    }
  }
  mark = 0;
  for (const auto& [block, bytes] : blocks) {
    ++mark;
    EXPECT_EQ(block[0], mark);
    EXPECT_EQ(block[bytes - 1], mark);
    pool.Free(block);
  }
  // Or it would count as idle.
  pool.GiveBackNow(INT64_MAX, 0);
}

TEST(BlockPoolTest, WhatIsFreeIsUsedAgainAndTheRestGoesBack) {
  if (!BlockPool::kPooled) GTEST_SKIP() << "there are no slabs";
  BlockPool pool;
  constexpr int kSlabs = 12;
  constexpr size_t kBytes = 64 << 10;
  constexpr int kBlocks = kSlabs * (BlockPool::kSlabBytes / kBytes);
  const auto fill = [&] {
    std::vector<void*> blocks(kBlocks);
    for (void*& block : blocks) block = pool.Allocate(kBytes);
    return blocks;
  };
  std::vector<void*> blocks = fill();
  EXPECT_EQ(pool.slab_bytes(), kSlabs * BlockPool::kSlabBytes);
  // Every other one: no slab is empty, and the same number fits again.
  for (int i = 0; i < kBlocks; i += 2) pool.Free(blocks[i]);
  EXPECT_EQ(pool.slab_bytes(), kSlabs * BlockPool::kSlabBytes);
  for (int i = 0; i < kBlocks; i += 2) blocks[i] = pool.Allocate(kBytes);
  EXPECT_EQ(pool.slab_bytes(), kSlabs * BlockPool::kSlabBytes);
  for (void* block : blocks) pool.Free(block);
  // One by one, and not as they become free.
  EXPECT_EQ(pool.slab_bytes(), kSlabs * BlockPool::kSlabBytes);
  EXPECT_TRUE(pool.GiveBack());
  EXPECT_EQ(pool.slab_bytes(), (kSlabs - 1) * BlockPool::kSlabBytes);
  while (pool.GiveBack()) {
  }
  EXPECT_EQ(pool.slab_bytes(),
            BlockPool::kMaxIdleSlabs * BlockPool::kSlabBytes);
  EXPECT_FALSE(pool.GiveBack());
  // Slabs that are idle serve any size.
  std::vector<void*> large;
  for (size_t i = 0; i < 2 * BlockPool::kMaxIdleSlabs; ++i) {
    large.push_back(pool.Allocate(BlockPool::kMaxBlockBytes));
  }
  EXPECT_EQ(pool.slab_bytes(),
            BlockPool::kMaxIdleSlabs * BlockPool::kSlabBytes);
  for (void* block : large) pool.Free(block);
  // What is needed elsewhere, at once.
  EXPECT_FALSE(
      pool.GiveBackNow(BlockPool::kSlabBytes, BlockPool::kMaxIdleSlabs));
  EXPECT_TRUE(pool.GiveBackNow(INT64_MAX, 0));
  EXPECT_EQ(pool.slab_bytes(), 0u);
}

TEST(BlockPoolTest, TheFullestSlabIsUsedFirstSoThatOthersBecomeIdle) {
  if (!BlockPool::kPooled) GTEST_SKIP() << "there are no slabs";
  BlockPool pool;
  constexpr size_t kBytes = BlockPool::kMaxBlockBytes / 4;
  constexpr size_t kBlocks = BlockPool::kSlabBytes / kBytes;
  constexpr size_t kSlabs = 4;
  std::vector<void*> blocks(kSlabs * kBlocks);
  for (void*& block : blocks) block = pool.Allocate(kBytes);
  // The first keeps one block, the others lose one.
  for (size_t i = 1; i < kBlocks; ++i) pool.Free(blocks[i]);
  for (size_t i = kBlocks; i < blocks.size(); i += kBlocks) {
    pool.Free(blocks[i]);
    blocks[i] = nullptr;
  }
  for (size_t i = kBlocks; i < blocks.size(); i += kBlocks) {
    blocks[i] = pool.Allocate(kBytes);
  }
  pool.Free(blocks[0]);
  pool.GiveBackNow(INT64_MAX, 0);
  EXPECT_EQ(pool.slab_bytes(), (kSlabs - 1) * BlockPool::kSlabBytes);
  for (size_t i = kBlocks; i < blocks.size(); ++i) pool.Free(blocks[i]);
  pool.GiveBackNow(INT64_MAX, 0);
  EXPECT_EQ(pool.slab_bytes(), 0u);
}

TEST(BlockPoolTest, LastingBlocksKeepNoSlabOfOthers) {
  if (!BlockPool::kPooled) GTEST_SKIP() << "there are no slabs";
  BlockPool pool;
  constexpr size_t kBytes = BlockPool::kMinBlockBytes;
  std::vector<void*> lasting;
  std::vector<void*> others;
  for (size_t i = 0; i < BlockPool::kSlabBytes / kBytes; ++i) {
    lasting.push_back(pool.Allocate(kBytes, /*lasting=*/true));
    others.push_back(pool.Allocate(kBytes));
  }
  for (void* block : others) pool.Free(block);
  pool.GiveBackNow(INT64_MAX, 0);
  EXPECT_EQ(pool.slab_bytes(), BlockPool::kSlabBytes);
  for (void* block : lasting) pool.Free(block);
  pool.GiveBackNow(INT64_MAX, 0);
  EXPECT_EQ(pool.slab_bytes(), 0u);
}

TEST(BlockPoolTest, PrepareMakesTheNextSlabReadyOnce) {
  if (!BlockPool::kPooled) GTEST_SKIP() << "there are no slabs";
  BlockPool pool;
  EXPECT_EQ(pool.slab_bytes(), 0u);
  pool.Prepare();
  pool.Prepare();
  EXPECT_EQ(pool.slab_bytes(), BlockPool::kSlabBytes);
  // That is the one that is taken first.
  void* const block = pool.Allocate(BlockPool::kMinBlockBytes);
  EXPECT_EQ(pool.slab_bytes(), BlockPool::kSlabBytes);
  pool.Prepare();
  pool.Prepare();
  EXPECT_EQ(pool.slab_bytes(), 2 * BlockPool::kSlabBytes);
  // That is the one that the next size takes.
  void* const other = pool.Allocate(BlockPool::kMaxBlockBytes);
  EXPECT_EQ(pool.slab_bytes(), 2 * BlockPool::kSlabBytes);
  pool.Free(block);
  pool.Free(other);
  pool.GiveBackNow(INT64_MAX, 0);
}

TEST(BlockPoolTest, ThreadsShareIt) {
  BlockPool pool;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      std::mt19937 random(t);
      std::vector<std::pair<unsigned char*, size_t>> held;
      for (int i = 0; i < 2'000; ++i) {
        if (held.size() < 20 && random() % 2 == 0) {
          const size_t bytes = BlockPool::kMinBlockBytes << random() % 8;
          auto* const block = static_cast<unsigned char*>(pool.Allocate(bytes));
          block[0] = block[bytes - 1] = static_cast<unsigned char>(t);
          held.emplace_back(block, bytes);
          pool.Prepare();
        } else if (!held.empty()) {
          const auto [block, bytes] = held.back();
          EXPECT_EQ(block[0], t);
          EXPECT_EQ(block[bytes - 1], t);
          pool.Free(block);
          held.pop_back();
        }
      }
      for (const auto& [block, bytes] : held) pool.Free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (pool.GiveBack()) {
  }
  EXPECT_LE(pool.slab_bytes(),
            BlockPool::kMaxIdleSlabs * BlockPool::kSlabBytes +
                4 * BlockPool::kSlabBytes);
  pool.GiveBackNow(INT64_MAX, 0);
}

}  // namespace
}  // namespace timecache::server
