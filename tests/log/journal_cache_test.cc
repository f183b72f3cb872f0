// A disk whose sync failed, which shows more than it has.

#include <random>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// The system shows what a failed sync has not written, and a later sync does
// not write it: a server that starts again must.
TEST(JournalCacheTest, WhatAFailedSyncHasNotWrittenIsWrittenByTheNextStart) {
  JournalHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  ASSERT_TRUE(harness.AppendNow(0, "before").ok());
  ASSERT_TRUE(harness.AppendNow(0, "async 1", Durability::kAsync).ok());
  ASSERT_TRUE(harness.AppendNow(1, "async 2", Durability::kAsync).ok());
  harness.files().SetFault([](const std::string&, uint64_t, bool sync) {
    return sync ? absl::InternalError("Input/output error") : absl::OkStatus();
  });
  EXPECT_FALSE(harness.AppendNow(0, "refused").ok());
  EXPECT_EQ(harness.failures().size(), 1u);
  harness.Crash();
  ASSERT_TRUE(harness.Open().ok());
  ASSERT_TRUE(harness.AppendNow(0, "after").ok());
  std::mt19937_64 random(1);
  harness.files().LosePower(MemoryFileSystem::Unsynced::kDropped, &random);
  harness.Crash();
  ASSERT_TRUE(harness.Open().ok());
  const ReadResult result = ReadAll(harness.journal());
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(
      result.partitions[0],
      ElementsAre(Pair(0, "before"), Pair(1, "async 1"), Pair(2, "after")));
  EXPECT_THAT(result.partitions[1], ElementsAre(Pair(0, "async 2")));
}

}  // namespace
}  // namespace timecache::server
