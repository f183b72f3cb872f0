// What is going to die, among random changes: never missed, whatever is freed,
// moved, killed or begun anew under the reader.

#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/effort.h"
#include "tests/support/engine/lead_reader.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

// A map that is changed at random: few keys, so that much is overwritten,
// removed and compacted.
class RandomChanges {
 public:
  RandomChanges(MapHarness* harness, uint32_t seed)
      : harness_(harness), random_(seed) {}

  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint32_t>(bound));
  }

  void Change() {
    const std::string key = absl::StrCat("key", Below(300));
    const int64_t dice = Below(100);
    if (dice < 40) {
      harness_->Put(key, Value());
    } else if (dice < 55) {
      harness_->PutFor(key, Value(), kSecond + Below(12 * kSecond));
    } else if (dice < 75) {
      harness_->Apply(Operation::Touch(key));
    } else if (dice < 98) {
      harness_->Apply(Operation::Remove(key));
    } else if (Below(20) == 0) {
      harness_->Rotate();
    } else {
      harness_->Put(key, std::string(280 << 10, 'l'));
    }
  }

  void PassTime() {
    const int64_t dice = Below(10);
    if (dice < 6) return;
    harness_->Pass(dice < 9 ? Below(kSecond) : Below(4 * kSecond));
    if (Below(2) == 0) harness_->Sweep();
  }

 private:
  std::string Value() {
    return std::string(static_cast<size_t>(Below(2) == 0 ? 10 : Below(500)),
                       'v');
  }

  MapHarness* const harness_;
  std::mt19937 random_;
};

NamespaceOptions Options(int num_buckets, int num_shards) {
  NamespaceOptions options = WithBuckets(10 * kSecond, num_buckets);
  options.num_shards = num_shards;
  return options;
}

constexpr uint32_t kSeeds = test::Rounds(uint32_t{4});

// In turns, from seed to seed and from number of buckets to the next.
int NumShards(uint32_t seed, int num_buckets) {
  return (seed + static_cast<uint32_t>(num_buckets)) % 2 == 0 ? 1 : 4;
}

class ExpiringModelTest : public ::testing::TestWithParam<int> {};

// Rounds that nothing comes between tell each version at most once with each
// of its deadlines.
TEST_P(ExpiringModelTest, WholeRoundsTellAllAndEachDeadlineOnce) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    MapHarness harness(Options(GetParam(), NumShards(seed, GetParam())));
    RandomChanges changes(&harness, seed);
    LeadHistory history;
    LeadReader near(&harness, kSecond, &history);
    LeadReader far(&harness, 6 * kSecond, &history);
    LeadReader all(&harness, 3600 * kSecond, &history);
    // Comes so seldom that the feed does not wait for it.
    LeadReader rare(&harness, 3600 * kSecond, &history);
    for (int round = 0; round < 300; ++round) {
      for (int64_t i = changes.Below(60); i > 0; --i) changes.Change();
      changes.PassTime();
      // What is put in the microsecond of a round may come twice.
      harness.Pass(1);
      for (LeadReader* reader : {&near, &far, &all, &rare}) {
        if (changes.Below(reader == &rare ? 15 : 3) != 1 &&
            (reader == &rare || changes.Below(2) == 0)) {
          continue;
        }
        reader->Look();
        ASSERT_NO_FATAL_FAILURE(reader->ExpectAllTold()) << "round " << round;
      }
    }
    EXPECT_GT(near.told().size(), 20u);
    EXPECT_GT(all.told().size(), 1'000u);
    for (const LeadReader* reader : {&near, &far, &all, &rare}) {
      for (const auto& [told, times] : reader->told()) {
        ASSERT_EQ(times, 1) << "version " << told.first;
      }
    }
  }
}

// Rounds under way while the map changes: the next one tells the rest.
TEST_P(ExpiringModelTest, RoundsInSmallStepsAmongChangesMissNothing) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    MapHarness harness(Options(GetParam(), NumShards(seed, GetParam())));
    RandomChanges changes(&harness, seed);
    LeadReader reader(&harness, 8 * kSecond);
    size_t times_told = 0;
    for (int round = 0; round < 300; ++round) {
      harness.Pass(1);
      reader.cursor().Refresh();
      do {
        times_told += reader.Read(1 + changes.Below(2'000)).size();
        for (int64_t i = changes.Below(20); i > 0; --i) changes.Change();
      } while (reader.more());
      changes.PassTime();
      if (changes.Below(4) != 0) continue;
      times_told += reader.Look().size();
      ASSERT_NO_FATAL_FAILURE(reader.ExpectAllTold()) << "round " << round;
    }
    // What compaction moves during a round comes twice. Here ten changes come
    // between any two reads of 1 KB, and most of them leave something to move.
    EXPECT_LE(times_told, reader.told().size() * 3 / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Buckets, ExpiringModelTest,
                         ::testing::Values(2, 11, 101));

// Removals make the segment that is being read sparse: it is compacted under
// the reader, and freed.
TEST(ExpiringCompactionTest, WhatIsMovedUnderTheWalkIsNotMissed) {
  constexpr int kEntries = 8'000;
  MapHarness harness(Options(11, 1));
  LeadReader reader(&harness, 20 * kSecond);
  for (int i = 0; i < kEntries; ++i) {
    harness.Put(absl::StrCat("key", i), std::string(40, 'v'));
  }
  std::mt19937 random(1);
  std::set<std::string> seen;
  size_t reads = 0;
  do {
    for (const DeliveredEvent& told : reader.Read(10'000)) {
      seen.insert(told.key);
      // What it tells is touched, or not, as by a client that saves some.
      if (random() % 3 != 0) harness.Apply(Operation::Remove(told.key));
    }
    ++reads;
    ASSERT_LT(reads, size_t{200}) << "the walk does not come to its end";
  } while (reader.more());
  EXPECT_EQ(seen.size(), size_t{kEntries});
  reader.Look();
  reader.ExpectAllTold();
}

}  // namespace
}  // namespace timecache::server
