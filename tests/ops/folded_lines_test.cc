#include "server/ops/folded_lines.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kInterval = FoldedLines::kIntervalUs;

FoldedLines::Kind KindOf(const std::string& reason,
                         const std::string& name = "n") {
  return {"refused", reason, name, ""};
}

TEST(FoldedLinesTest, TheFirstIsSaidAtOnceAndTheOthersAreCounted) {
  FoldedLines lines;
  EXPECT_TRUE(lines.Add(KindOf("A"), 1, 0));
  EXPECT_FALSE(lines.Add(KindOf("A"), 2, 1));
  EXPECT_FALSE(lines.Add(KindOf("A"), 3, kInterval - 1));
  EXPECT_THAT(lines.TakeDue(kInterval - 1), IsEmpty());
  const auto due = lines.TakeDue(kInterval);
  ASSERT_THAT(due, SizeIs(1));
  EXPECT_EQ(due[0].kind.reason, "A");
  EXPECT_EQ(due[0].count, 5u);
}

TEST(FoldedLinesTest, WhatGoesOnIsOneLineAnInterval) {
  FoldedLines lines;
  EXPECT_TRUE(lines.Add(KindOf("A"), 1, 0));
  for (int i = 1; i <= 5; ++i) {
    EXPECT_FALSE(lines.Add(KindOf("A"), 7, i * kInterval - 1));
    const auto due = lines.TakeDue(i * kInterval);
    ASSERT_THAT(due, SizeIs(1));
    EXPECT_EQ(due[0].count, 7u);
  }
  // After a quiet interval the next one is a first one.
  EXPECT_THAT(lines.TakeDue(6 * kInterval), IsEmpty());
  EXPECT_TRUE(lines.Add(KindOf("A"), 1, 6 * kInterval + 1));
}

TEST(FoldedLinesTest, KindsAreCountedApart) {
  FoldedLines lines;
  EXPECT_TRUE(lines.Add(KindOf("A"), 1, 0));
  EXPECT_TRUE(lines.Add(KindOf("B"), 1, 0));
  EXPECT_TRUE(lines.Add(KindOf("A", "other"), 1, 0));
  EXPECT_TRUE(lines.Add({"lost", "A", "n", ""}, 1, 0));
  EXPECT_TRUE(lines.Add({"refused", "A", "n", "group"}, 1, 0));
  EXPECT_FALSE(lines.Add(KindOf("B"), 1, 1));
  EXPECT_THAT(lines.TakeDue(kInterval), SizeIs(1));
}

TEST(FoldedLinesTest, TheLastOnesAreNotForgotten) {
  FoldedLines lines;
  EXPECT_TRUE(lines.Add(KindOf("A"), 1, 0));
  EXPECT_FALSE(lines.Add(KindOf("A"), 9, 1));
  const auto rest = lines.TakeDue(kNeverUs);
  ASSERT_THAT(rest, SizeIs(1));
  EXPECT_EQ(rest[0].count, 9u);
}

TEST(FoldedLinesTest, BeyondTheBoundNamespacesShareALineAndNoneIsUncounted) {
  constexpr uint64_t kMore = 100;
  FoldedLines lines;
  uint64_t said = 0;
  for (uint64_t i = 0; i < FoldedLines::kMaxKinds + kMore; ++i) {
    said += lines.Add(KindOf("A", absl::StrCat("n", i)), 1, 0);
  }
  EXPECT_EQ(said, FoldedLines::kMaxKinds + 1);
  const auto due = lines.TakeDue(kInterval);
  ASSERT_THAT(due, SizeIs(1));
  EXPECT_EQ(due[0].kind.name, FoldedLines::kOther);
  EXPECT_EQ(due[0].count, kMore - 1);
}

}  // namespace
}  // namespace timecache::server
