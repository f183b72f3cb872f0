// A map that is made again from its changes is the same map: its entries, and
// what it told and tells of the dead.

#include "server/engine/map/map_replay.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/effort.h"
#include "tests/support/engine/crash_world.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MapReplayTest : public ::testing::Test {
 protected:
  void Put(absl::string_view key, absl::string_view value) {
    ASSERT_TRUE(journaled_.map()
                    .Apply(Operation::Put(key, value), now_us_)
                    .status.ok());
  }
  std::string Get(absl::string_view key) {
    const Result result = journaled_.map().Apply(Operation::Get(key), now_us_);
    return result.found ? result.entry.value : "(none)";
  }
  std::vector<std::string> ToldTexts() const {
    std::vector<std::string> texts;
    for (const DeliveredEvent& told : journaled_.told()) {
      texts.push_back(absl::StrCat(told.key, "=", told.value));
    }
    return texts;
  }

  int64_t now_us_ = kStartUs;
  MemoryCommitLog log_;
  JournaledMap journaled_{CrashOptions(10 * kSecond, 11), &log_};
};

TEST_F(MapReplayTest, NothingIsToldBeforeItIsPermitted) {
  Put("a", "1");
  now_us_ += 20 * kSecond;
  journaled_.map().Advance(now_us_);
  EXPECT_FALSE(journaled_.map().Sweep(now_us_, 100));
  journaled_.map().RefreshWatermark(now_us_);
  journaled_.Read();
  EXPECT_THAT(ToldTexts(), IsEmpty());
  EXPECT_LT(journaled_.map().watermark_us(), kStartUs + 10 * kSecond);
  EXPECT_EQ(Get("a"), "(none)");
  journaled_.Settle(now_us_);
  EXPECT_THAT(ToldTexts(), ElementsAre("a=1"));
  EXPECT_EQ(journaled_.map().watermark_us(), now_us_);
}

TEST_F(MapReplayTest, PermissionIsAskedForOnceAndAsksForASweep) {
  std::vector<int64_t> due;
  journaled_.map().SetSchedule([&](int64_t us) { due.push_back(us); });
  Put("a", "1");
  now_us_ += 20 * kSecond;
  journaled_.map().Advance(now_us_);
  EXPECT_EQ(journaled_.map().NextDueUs(now_us_), kNeverUs);
  journaled_.map().Advance(now_us_);
  journaled_.Commit();
  ASSERT_TRUE(log_.last().tick.has_value());
  EXPECT_EQ(log_.last().tick->next_event, JournaledMap::kFirstEvent + 1);
  due.clear();
  journaled_.Permit();
  EXPECT_EQ(due.size(), 1u);
  EXPECT_EQ(journaled_.map().NextDueUs(now_us_), now_us_);
  journaled_.map().Advance(now_us_);
  journaled_.Commit();
  EXPECT_FALSE(log_.last().tick.has_value());
}

TEST_F(MapReplayTest, AWatcherThatLeavesWithinABucketChangesNoNumbers) {
  NamespaceOptions options = CrashOptions(10 * kSecond, 11);
  options.retention_us = 0;
  MemoryCommitLog log;
  JournaledMap journaled(options, &log);
  for (int i = 0; i < 400; ++i) {
    journaled.map().Apply(Operation::Put(absl::StrCat("k", i), "v"), now_us_);
  }
  now_us_ += 20 * kSecond;
  journaled.map().Advance(now_us_);
  journaled.Commit();
  journaled.Permit();
  // Far into the first part: all of it was walked, some of it was told.
  EXPECT_TRUE(journaled.map().Sweep(now_us_, 64));
  EXPECT_TRUE(journaled.map().Sweep(now_us_, 64));
  journaled.Leave();
  while (journaled.map().Sweep(now_us_, 64)) {
  }
  const auto cursor =
      journaled.map().Subscribe(ExpiryLog::Start::kEarliest, now_us_, [] {});
  EXPECT_EQ(cursor->Read(1 << 20).point.next_event,
            JournaledMap::kFirstEvent + 400);
}

TEST_F(MapReplayTest, TheLogRetainsWhatTheOneBeforeDid) {
  NamespaceOptions options = CrashOptions(10 * kSecond, 11);
  options.retention_us = kSecond;
  MemoryCommitLog log;
  // Its watcher has not read what follows.
  JournaledMap journaled(options, &log);
  journaled.map().Apply(Operation::Put("a", "1"), now_us_);
  now_us_ += 20 * kSecond;
  journaled.map().Advance(now_us_);
  journaled.Commit();
  journaled.Permit();
  while (journaled.map().Sweep(now_us_, 100)) {
  }
  now_us_ += 3600 * kSecond;
  journaled.map().Advance(now_us_);
  journaled.map().Sweep(now_us_, 100);
  journaled.Commit();
  journaled.Crash(now_us_);
  journaled.Read();
  EXPECT_EQ(journaled.told().size(), 1u);
}

TEST_F(MapReplayTest, VersionsGoOnAboveAllThatWereCommitted) {
  Put("a", "1");
  const uint64_t before =
      journaled_.map().Apply(Operation::Get("a"), now_us_).entry.version;
  journaled_.Commit();
  journaled_.Crash(kStartUs - 3600 * kSecond);
  const Result again =
      journaled_.map().Apply(Operation::Put("a", "2"), now_us_);
  EXPECT_GT(again.version, before);
}

TEST_F(MapReplayTest, AMapMadeAgainTakesNoMoreMemory) {
  for (int i = 0; i < 20'000; ++i) Put(absl::StrCat("key", i), "value");
  journaled_.Commit();
  const int64_t before = journaled_.map().GetStatistics(now_us_).memory_bytes;
  // Versions would be far from these without the old ones' neighbourhood.
  journaled_.Crash(now_us_ + 3600 * kSecond);
  EXPECT_LE(journaled_.map().GetStatistics(now_us_).memory_bytes,
            before + before / 20);
}

TEST_F(MapReplayTest, ATickThatDoesNotCountWhatDiedIsDataLoss) {
  Put("a", "1");
  journaled_.Commit();
  const NamespaceOptions options = CrashOptions(10 * kSecond, 11);
  TimeCacheMap map("map", options, nullptr, kStartUs,
                   {.first_event = 1, .journaled = true, .hash_seed = 7});
  MapReplay replay(&map);
  EXPECT_EQ(replay.Apply(Tick{now_us_, 2}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(replay.Apply(options.num_shards, Change()).code(),
            absl::StatusCode::kDataLoss);
}

class MapReplayModelTest : public ::testing::TestWithParam<CrashWorldOptions> {
};

TEST_P(MapReplayModelTest, NothingCommittedIsLostAndNothingIsToldTwice) {
  // Fewer would not see all that groups do.
  constexpr int kSteps = test::kSanitized ? 10'000 : 20'000;
  const char* const text = std::getenv("TIMECACHED_SEED");
  const uint64_t seed = text != nullptr ? std::stoull(text) : 20111204;
  SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", seed));
  MemoryCommitLog log;
  CrashWorld world(GetParam(), &log, Dice(seed));
  for (int i = 0; i < kSteps && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("step ", i));
    world.Step();
  }
  world.CheckAtRest();
  EXPECT_GT(world.told(), 1'000u);
  if (GetParam().trims) {
    EXPECT_GT(world.trims(), kSteps / 2'000u);
  }
  if (world.groups() == nullptr) return;
  // All of it happened.
  const CrashGroups::Story& story = world.groups()->story();
  for (const uint64_t times :
       {story.acked, story.acked_from_before, story.nacked, story.put_back,
        story.timed_out, story.returned, story.dead_lettered, story.expired,
        story.moved, story.undone}) {
    EXPECT_GT(times, 0u);
  }
  EXPECT_EQ(story.lost > 0, GetParam().map.max_backlog_bytes > 0);
}

INSTANTIATE_TEST_SUITE_P(Worlds, MapReplayModelTest,
                         ::testing::ValuesIn(CrashWorlds()),
                         [](const auto& info) { return info.param.name; });

// --- A journal without its beginning.

// Replays into a map of its own, which has one shard.
class ReplayAppendsTest : public ::testing::Test {
 protected:
  absl::Status Store(uint64_t version, absl::string_view value) {
    return replay_.Apply(0, {.kind = Change::Kind::kStore,
                             .record = {.key = "key",
                                        .value = value,
                                        .version = version,
                                        .put_us = kStartUs,
                                        .life_us = 10 * kSecond,
                                        .create_us = kStartUs},
                             .death_us = kStartUs + 10 * kSecond,
                             .at_us = kStartUs});
  }
  absl::Status Append(uint64_t base_version, uint64_t version,
                      absl::string_view bytes) {
    return replay_.Apply(
        0, {.kind = Change::Kind::kAppend,
            .record = {.key = "key", .value = bytes, .version = version},
            .base_version = base_version,
            .at_us = kStartUs + 1});
  }
  std::string Get() {
    replay_.Finish();
    const Result result = map_.Apply(Operation::Get("key"), kStartUs + 2);
    return result.found
               ? absl::StrCat(result.entry.value, " ", result.entry.version)
               : "(none)";
  }

  static NamespaceOptions Options() {
    NamespaceOptions options = CrashOptions(10 * kSecond, 11);
    options.num_shards = 1;
    return options;
  }

  TimeCacheMap map_{"map",
                    Options(),
                    nullptr,
                    kStartUs,
                    {.first_event = 1, .journaled = true}};
  MapReplay replay_{&map_};
};

TEST_F(ReplayAppendsTest, AnAppendIsAppliedToTheVersionBeforeAndOnlyOnce) {
  ASSERT_TRUE(Store(5, "a").ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Append(5, 6, "b").ok());
    ASSERT_TRUE(Append(6, 9, "c").ok());
  }
  EXPECT_EQ(Get(), "abc 9");
}

TEST_F(ReplayAppendsTest, AnAppendToWhatIsNotThereIsDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(Append(5, 6, "b")));
  ASSERT_TRUE(Store(5, "a").ok());
  EXPECT_TRUE(absl::IsDataLoss(Append(6, 7, "c")));
  EXPECT_EQ(Get(), "a 5");
}

TEST_F(ReplayAppendsTest, WhereChangesMayBeMissingItChangesNothing) {
  replay_.AllowLosses();
  EXPECT_TRUE(Append(4, 5, "x").ok());
  ASSERT_TRUE(Store(5, "a").ok());
  EXPECT_TRUE(Append(6, 7, "c").ok());
  EXPECT_TRUE(Append(5, 8, "d").ok());
  EXPECT_EQ(Get(), "ad 8");
}

TEST_F(ReplayAppendsTest, BeforeTheEndOfAWalkTheWholeEntryIsStillToBeTold) {
  replay_.Silence();
  EXPECT_TRUE(Append(4, 5, "x").ok());
  ASSERT_TRUE(Store(5, "wx").ok());
  EXPECT_TRUE(Append(5, 6, "y").ok());
  replay_.Begin({.watermark_us = kStartUs, .next_event = 1, .kills = 0});
  EXPECT_TRUE(absl::IsDataLoss(Append(7, 8, "z")));
  EXPECT_EQ(Get(), "wxy 6");
}

TEST_F(MapReplayTest, AKillThatWasToldBeforeTheFirstEventIsNotToldAgain) {
  Put("a", "1");
  EXPECT_EQ(journaled_.map().Rotate(now_us_), 1);
  // It died a tick after the watermark that is promised with it.
  journaled_.Settle(now_us_);
  ASSERT_THAT(ToldTexts(), ElementsAre("a=1"));
  journaled_.Crash(now_us_, JournaledMap::kFirstEvent + 1);
  Put("b", "2");
  now_us_ += 20 * kSecond;
  journaled_.Settle(now_us_);
  EXPECT_THAT(ToldTexts(), ElementsAre("a=1", "b=2"));
}

}  // namespace
}  // namespace timecache::server
