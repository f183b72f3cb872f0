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
    tag = index.VisitFrom(tag, [&](uint32_t t, RecordRef ref) {
      seen.emplace_back(t, ref);
      return true;
    });
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
    tag = index.VisitFrom(tag, [&](uint32_t t, RecordRef ref) {
      seen.emplace(t, ref);
      return seen.size() % 10 != 0;
    });
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

// Two million entries in one index are more than a shard holds in a map of
// thirty million.
TEST(CompactIndexTest, RunsStayShortUpToTwoMillionEntries) {
  constexpr int kEntries = 2'000'000;
  std::mt19937_64 random(2);
  CompactIndex index;
  for (int i = 0; i < kEntries; ++i) {
    index.Insert(RandomTag(&random), static_cast<RecordRef>(i) + 1);
  }
  RecordProperty("longest_run", static_cast<int>(index.work().longest_run));
  EXPECT_LE(index.work().longest_run, 64u);
  EXPECT_LE(index.work().largest_page, CompactIndex::kMaxPageLines);
  // The load does not fall below 7/9 * 4/5.
  EXPECT_LT(index.memory_bytes(), kEntries * 8.0 / (7.0 / 9 * 4 / 5));
}

// The work of every call is bounded by a page, and that of all by their number,
// whatever the order of insertions and erasures, also where it is that of the
// index itself, as a client learns it from a scan.
class InsertionOrderTest : public testing::Test {
 protected:
  static constexpr int kEntries = 200'000;
  // A page is rebuilt for each quarter to seventh by which it grows.
  static constexpr uint64_t kMovesPerCall = 12;

  std::vector<uint32_t> SortedTags(double share = 1) {
    std::vector<uint32_t> tags(kEntries);
    for (uint32_t& tag : tags) {
      tag = static_cast<uint32_t>(RandomTag(&random_) * share);
    }
    std::sort(tags.begin(), tags.end());
    return tags;
  }

  void Insert(uint32_t tag) {
    live_.emplace_back(tag, next_ref_);
    Measured([&] { index_.Insert(tag, next_ref_++); });
  }
  void InsertAll(const std::vector<uint32_t>& tags) {
    for (const uint32_t tag : tags) Insert(tag);
  }
  // Of those that are live, the i-th.
  void Erase(size_t i) {
    std::swap(live_[i], live_.back());
    CompactIndex::Slot* const slot =
        index_.FindExact(live_.back().first, live_.back().second);
    ASSERT_NE(slot, nullptr);
    Measured([&] { index_.Erase(slot); });
    live_.pop_back();
  }

  template <typename Call>
  void Measured(const Call& call) {
    const uint64_t before = index_.work().slots_moved;
    call();
    ++calls_;
    most_moved_ = std::max(most_moved_, index_.work().slots_moved - before);
  }

  void ExpectBounded() {
    constexpr uint32_t kPageSlots =
        CompactIndex::kMaxPageLines * CompactIndex::kSlotsPerLine;
    const CompactIndex::Work& work = index_.work();
    EXPECT_LE(work.longest_run, 64u);
    EXPECT_LE(work.largest_page, CompactIndex::kMaxPageLines);
    EXPECT_LE(most_moved_, 2 * kPageSlots);
    EXPECT_LE(work.slots_moved, kMovesPerCall * calls_);
    std::sort(live_.begin(), live_.end());
    EXPECT_EQ(Walk(index_), live_);
  }

  std::mt19937_64 random_{20261126};
  CompactIndex index_;
  std::vector<Pair> live_;
  RecordRef next_ref_ = 1;
  uint64_t calls_ = 0;
  uint64_t most_moved_ = 0;
};

TEST_F(InsertionOrderTest, ByTag) {
  InsertAll(SortedTags());
  ExpectBounded();
}

TEST_F(InsertionOrderTest, ByTagReversed) {
  std::vector<uint32_t> tags = SortedTags();
  std::reverse(tags.begin(), tags.end());
  InsertAll(tags);
  ExpectBounded();
}

TEST_F(InsertionOrderTest, FromBothEnds) {
  const std::vector<uint32_t> tags = SortedTags();
  for (size_t i = 0; i < tags.size() / 2; ++i) {
    Insert(tags[i]);
    Insert(tags[tags.size() - 1 - i]);
  }
  ExpectBounded();
}

// Only those of a small part of all tags.
TEST_F(InsertionOrderTest, OfCloseTags) {
  for (const double share : {1.0 / 16, 1.0 / 256}) {
    std::vector<uint32_t> tags = SortedTags(share);
    InsertAll(tags);
    ExpectBounded();
    std::shuffle(tags.begin(), tags.end(), random_);
    InsertAll(tags);
    ExpectBounded();
  }
}

// In the order of the index, again and again, as by dumps and loads.
TEST_F(InsertionOrderTest, ScannedErasedAndInsertedAgain) {
  InsertAll(SortedTags());
  for (int round = 0; round < 3; ++round) {
    const std::vector<Pair> scanned = Walk(index_);
    while (!live_.empty()) Erase(live_.size() - 1);
    EXPECT_EQ(index_.size(), 0u);
    for (const auto& [tag, ref] : scanned) Insert(tag);
    ExpectBounded();
  }
}

// A window of live entries moves over the tags; and at random ones all the
// time.
TEST_F(InsertionOrderTest, ByTagBetweenErasures) {
  constexpr size_t kWindow = 20'000;
  for (const uint32_t tag : SortedTags()) {
    Insert(tag);
    if (live_.size() > kWindow) Erase(live_.size() - kWindow - 1);
    if (random_() % 2 == 0) Insert(RandomTag(&random_));
    if (random_() % 2 == 0) Erase(random_() % live_.size());
  }
  ExpectBounded();
}

// Ranges of a page's size are filled and emptied in turns.
TEST_F(InsertionOrderTest, RangesFilledAndEmptied) {
  const std::vector<uint32_t> tags = SortedTags();
  constexpr size_t kRange = 4'000;
  for (size_t i = 0; i + kRange <= tags.size(); i += kRange / 2) {
    for (size_t j = i; j < i + kRange; ++j) Insert(tags[j]);
    while (live_.size() > kRange / 8) Erase(random_() % live_.size());
  }
  ExpectBounded();
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

// A page of one tag cannot be split: it grows, and the directory does not.
TEST(CompactIndexTest, KeepsManySlotsOfOneTag) {
  CompactIndex index;
  constexpr RecordRef kCount = 5'000;
  for (RecordRef ref = 1; ref <= kCount; ++ref) index.Insert(99, ref);
  EXPECT_EQ(Walk(index).size(), kCount);
  for (RecordRef ref = 1; ref <= kCount; ++ref) {
    CompactIndex::Slot* slot = index.FindExact(99, ref);
    ASSERT_NE(slot, nullptr);
    index.Erase(slot);
  }
  EXPECT_EQ(index.size(), 0u);
  EXPECT_LT(index.memory_bytes(), 100u);
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
      EXPECT_NE(index.FirstOf(tag), 0u);
    }
  }
}

}  // namespace
}  // namespace timecache::server
