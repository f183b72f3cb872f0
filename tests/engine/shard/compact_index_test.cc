#include "server/engine/shard/compact_index.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using Pair = std::pair<uint32_t, RecordRef>;

uint32_t RandomTag(std::mt19937_64* random) {
  return CompactIndex::TagOf((*random)());
}

// All that a walk in order of tag visits.
std::vector<Pair> Walk(const CompactIndex& index) {
  std::vector<Pair> seen;
  for (uint32_t tag = 0; tag < CompactIndex::kTags;) {
    tag = index.VisitLine(
        tag, [&](uint32_t t, RecordRef ref) { seen.emplace_back(t, ref); });
  }
  return seen;
}

TEST(CompactIndexTest, FindsWhatWasInsertedAndNothingElse) {
  CompactIndex index;
  EXPECT_EQ(index.FindExact(7, 1), nullptr);
  index.Insert(7, 1);
  index.Insert(7, 2);
  index.Insert(0, 3);
  EXPECT_NE(index.FindExact(7, 1), nullptr);
  EXPECT_NE(index.FindExact(7, 2), nullptr);
  EXPECT_NE(index.FindExact(0, 3), nullptr);
  EXPECT_EQ(index.FindExact(7, 3), nullptr);
  EXPECT_EQ(index.FindExact(1, 3), nullptr);
  EXPECT_EQ(index.size(), 3u);
}

TEST(CompactIndexTest, ReferenceIsReplacedInPlace) {
  CompactIndex index;
  index.Insert(5, 10);
  *index.FindExact(5, 10) = CompactIndex::MakeSlot(5, 11);
  EXPECT_EQ(index.FindExact(5, 10), nullptr);
  EXPECT_NE(index.FindExact(5, 11), nullptr);
}

// Random insertions and erasures in phases of growth and of shrinking, against
// an ordered set; every few thousand steps everything is looked up and walked.
TEST(CompactIndexTest, AgreesWithASetWhileItGrowsAndShrinks) {
  constexpr int kSteps = 400'000;
  constexpr uint64_t kSeed = 20260101;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  CompactIndex index;
  std::vector<Pair> live;
  RecordRef next_ref = 1;
  for (int step = 0; step < kSteps; ++step) {
    const bool growing = (step / 50'000) % 2 == 0;
    if (live.empty() || random() % 10 < (growing ? 8u : 2u)) {
      // One slot in eight shares its tag with many.
      const uint32_t tag =
          random() % 8 == 0 ? random() % 512 * 8'000 : RandomTag(&random);
      live.emplace_back(tag, next_ref);
      index.Insert(tag, next_ref++);
    } else {
      std::swap(live[random() % live.size()], live.back());
      CompactIndex::Slot* slot =
          index.FindExact(live.back().first, live.back().second);
      ASSERT_NE(slot, nullptr) << "step " << step;
      index.Erase(slot);
      ASSERT_EQ(index.FindExact(live.back().first, live.back().second),
                nullptr);
      live.pop_back();
    }
    ASSERT_EQ(index.size(), live.size());
    if (step % 20'000 != 0) continue;
    for (const auto& [tag, ref] : live) {
      ASSERT_NE(index.FindExact(tag, ref), nullptr) << "step " << step;
    }
    std::vector<Pair> expected = live;
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(Walk(index), expected) << "step " << step;
  }
}

TEST(CompactIndexTest, WalkSeesEveryEntryOnceAcrossResizes) {
  std::mt19937_64 random(1);
  CompactIndex index;
  std::set<Pair> stays;
  std::vector<Pair> passing;
  RecordRef next_ref = 1;
  for (int i = 0; i < 20'000; ++i) {
    const Pair pair(RandomTag(&random), next_ref++);
    index.Insert(pair.first, pair.second);
    stays.insert(pair);
  }
  std::multiset<Pair> seen;
  int steps = 0;
  for (uint32_t tag = 0; tag < CompactIndex::kTags; ++steps) {
    tag = index.VisitLine(
        tag, [&](uint32_t t, RecordRef ref) { seen.emplace(t, ref); });
    // In turns ten insertions a line, then ten erasures: several resizes each
    // way.
    for (int i = 0; i < 10; ++i) {
      if ((steps / 1'500) % 2 == 0) {
        passing.emplace_back(RandomTag(&random), next_ref);
        index.Insert(passing.back().first, next_ref++);
      } else if (!passing.empty()) {
        index.Erase(
            index.FindExact(passing.back().first, passing.back().second));
        passing.pop_back();
      }
    }
  }
  for (const Pair& pair : stays) EXPECT_EQ(seen.count(pair), 1u);
  for (const Pair& pair : seen) EXPECT_EQ(seen.count(pair), 1u);
}

// The bound of every step: how far a slot is ever from its home. Two million
// entries in one index are more than a shard holds in a map of thirty million.
TEST(CompactIndexTest, RunsStayShortUpToTwoMillionEntries) {
  constexpr int kEntries = 2'000'000;
  constexpr uint32_t kLongestRun = 64;
  std::mt19937_64 random(2);
  CompactIndex index;
  for (int i = 0; i < kEntries; ++i) {
    index.Insert(RandomTag(&random), static_cast<RecordRef>(i) + 1);
  }
  RecordProperty("longest_run", static_cast<int>(index.longest_run()));
  EXPECT_LE(index.longest_run(), kLongestRun);
  // The load does not fall below 7/9 * 5/6 but for the chunk that is not full
  // yet.
  EXPECT_LT(index.memory_bytes(),
            kEntries * 8.0 / (7.0 / 9 * 5 / 6) + 128 * 1024);
}

TEST(CompactIndexTest, GivesMemoryBackWhenItEmpties) {
  std::mt19937_64 random(3);
  CompactIndex index;
  std::vector<Pair> live;
  for (RecordRef ref = 1; ref <= 200'000; ++ref) {
    live.emplace_back(RandomTag(&random), ref);
    index.Insert(live.back().first, ref);
  }
  const size_t full = index.memory_bytes();
  for (const auto& [tag, ref] : live) index.Erase(index.FindExact(tag, ref));
  EXPECT_EQ(index.size(), 0u);
  EXPECT_LT(index.memory_bytes(), full / 10);
}

TEST(CompactIndexTest, KeepsManySlotsOfOneTag) {
  CompactIndex index;
  constexpr RecordRef kCount = 1'000;
  for (RecordRef ref = 1; ref <= kCount; ++ref) index.Insert(99, ref);
  EXPECT_EQ(Walk(index).size(), kCount);
  for (RecordRef ref = 1; ref <= kCount; ++ref) {
    CompactIndex::Slot* slot = index.FindExact(99, ref);
    ASSERT_NE(slot, nullptr);
    index.Erase(slot);
  }
  EXPECT_EQ(index.size(), 0u);
}

TEST(CompactIndexTest, ExtremeTagsHaveAHome) {
  CompactIndex index;
  for (RecordRef ref = 1; ref <= 1'000; ++ref) {
    index.Insert(ref % 2 == 0 ? 0 : CompactIndex::kTags - 1, ref);
  }
  for (RecordRef ref = 1; ref <= 1'000; ++ref) {
    EXPECT_NE(index.FindExact(ref % 2 == 0 ? 0 : CompactIndex::kTags - 1, ref),
              nullptr);
  }
}

// Lines are compared as a whole: every place in one, beside every number of
// empty ones, which look like slots of tag 0.
TEST(CompactIndexTest, EmptySlotsAreOfNoTag) {
  for (const uint32_t tag : {0u, 1u, CompactIndex::kTags - 1}) {
    CompactIndex index;
    for (RecordRef ref = 1; ref <= 20; ++ref) {
      const auto found = [&] {
        std::vector<RecordRef> refs;
        index.Find(tag, [&](RecordRef each) {
          refs.push_back(each);
          return false;
        });
        std::sort(refs.begin(), refs.end());
        return refs;
      };
      std::vector<RecordRef> expected(ref - 1);
      std::iota(expected.begin(), expected.end(), RecordRef{1});
      EXPECT_EQ(found(), expected);
      // Its tag alone would be taken for an empty one's upper half.
      index.Insert(tag, ref);
      EXPECT_EQ(index.FirstOf(tag), 1u);
    }
  }
}

}  // namespace
}  // namespace timecache::server
