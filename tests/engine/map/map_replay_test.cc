// A map that is made again from its changes is the same map: its entries, and
// what it told and tells of the dead.

#include "server/engine/map/map_replay.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/engine/dice.h"
#include "tests/support/engine/map_harness.h"
#include "tests/support/engine/reference_model.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kShards = 4;

// A change that owns what it says.
class Kept {
 public:
  Kept(int shard, const Change& change)
      : shard_(shard),
        change_(change),
        key_(change.record.key),
        value_(change.record.value) {}

  absl::Status ReplayTo(MapReplay* replay) const {
    Change change = change_;
    change.record.key = key_;
    change.record.value = value_;
    return replay->Apply(shard_, change);
  }

 private:
  int shard_;
  Change change_;
  std::string key_;
  std::string value_;
};

// What is made durable at once.
struct Committed {
  std::vector<Kept> changes;
  std::optional<Tick> tick;
};

class Journal final : public ChangeSink {
 public:
  void Add(int shard, const Change& change) override {
    open_.changes.emplace_back(shard, change);
  }
  void AddTick(const Tick& tick) override { open_.tick = tick; }

  // What came since the last one.
  Committed TakeCommit() { return std::exchange(open_, {}); }

 private:
  Committed open_;
};

MapOptions Options(int64_t ttl_us, int num_buckets) {
  MapOptions options = WithBuckets(ttl_us, num_buckets);
  options.num_shards = kShards;
  // A crash leaves no watcher for whom events are kept beyond it.
  options.retention_us = kNeverUs / 4;
  options.retention_bytes = int64_t{1} << 30;
  return options;
}

// A map with a journal, which a crash leaves as much of as was committed.
class JournaledMap {
 public:
  explicit JournaledMap(const MapOptions& options) : options_(options) {
    Make({.first_event = kFirstEvent}, kStartUs);
    map_->SetSink(&journal_);
    cursor_ = map_->Subscribe(ExpiryLog::Start::kNow, kStartUs, [] {});
    Read();
  }

  TimeCacheMap& map() { return *map_; }
  const std::vector<Committed>& commits() const { return commits_; }

  // What was said until now is durable.
  void Commit() {
    commits_.push_back(journal_.TakeCommit());
    if (commits_.back().tick.has_value()) permit_ = commits_.back().tick;
  }
  // And may be told.
  void Permit() {
    if (permit_.has_value()) map_->Permit(*permit_);
    permit_.reset();
  }
  // Commits, tells and reads all that is due.
  void Settle(int64_t now_us) {
    map_->Advance(now_us);
    Commit();
    Permit();
    while (map_->Sweep(now_us, 7)) {
    }
    Read();
  }
  void Read(int64_t max_bytes = 1 << 20) {
    Reading reading = ReadAll(cursor_.get(), max_bytes);
    EXPECT_EQ(reading.lost, 0u);
    for (Told& told : reading.events) told_.push_back(std::move(told));
    point_ = {map_->origin().log_id, kFirstEvent + told_.size(),
              reading.watermark_us};
  }
  // In order, since the beginning, over all crashes.
  const std::vector<Told>& told() const { return told_; }
  // The latest time that the last crash has left.
  int64_t last_us() const { return last_us_; }

  // Changes before the commit are gone, and with them events before the number.
  void Trim(size_t commits, uint64_t first_event) {
    commits_.erase(commits_.begin(),
                   commits_.begin() + static_cast<ptrdiff_t>(commits));
    first_event_ = first_event;
  }

  // The same map again, from what was committed; and who watched it, where he
  // was.
  void Crash(int64_t now_us) {
    journal_.TakeCommit();
    permit_.reset();
    TimeCacheMap::Origin origin = map_->origin();
    origin.first_event = first_event_;
    cursor_.reset();
    Make(origin, now_us);
    MapReplay replay(map_.get());
    for (const Committed& commit : commits_) {
      for (const Kept& kept : commit.changes) {
        EXPECT_TRUE(kept.ReplayTo(&replay).ok());
      }
      if (commit.tick.has_value()) {
        const absl::Status status = replay.Apply(*commit.tick);
        EXPECT_TRUE(status.ok()) << status;
      }
    }
    versions_->RaiseTo(replay.Finish());
    map_->SetSink(&journal_);
    last_us_ = replay.last_us();
    auto cursor = map_->Resume(point_, now_us, [] {});
    EXPECT_TRUE(cursor.ok()) << cursor.status();
    if (cursor.ok()) cursor_ = *std::move(cursor);
  }

  static constexpr uint64_t kFirstEvent = 1'000;

 private:
  void Make(TimeCacheMap::Origin origin, int64_t now_us) {
    map_ = nullptr;
    versions_ = std::make_unique<VersionSource>(now_us);
    origin.versions = versions_.get();
    origin.journaled = true;
    map_ = std::make_unique<TimeCacheMap>("map", options_, nullptr, now_us,
                                          EventFormat::Plain(), origin);
  }

  const MapOptions options_;
  Journal journal_;
  std::vector<Committed> commits_;
  uint64_t first_event_ = kFirstEvent;
  std::optional<Tick> permit_;
  std::unique_ptr<VersionSource> versions_;
  std::unique_ptr<TimeCacheMap> map_;
  std::unique_ptr<ExpiryLog::Cursor> cursor_;
  LogPoint point_;
  std::vector<Told> told_;
  int64_t last_us_ = INT64_MIN;
};

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
    for (const Told& told : journaled_.told()) {
      texts.push_back(absl::StrCat(told.key, "=", told.value));
    }
    return texts;
  }

  int64_t now_us_ = kStartUs;
  JournaledMap journaled_{Options(10 * kSecond, 11)};
};

TEST_F(MapReplayTest, WhatWasCommittedIsThereAndTheRestIsNot) {
  Put("a", "1");
  Put("b", "2");
  journaled_.Commit();
  Put("c", "3");
  journaled_.map().Apply(Operation::Remove("a"), now_us_);
  journaled_.Crash(now_us_);
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "2");
  EXPECT_EQ(Get("c"), "(none)");
  EXPECT_EQ(journaled_.map().GetSize(now_us_).entries, 2);
  EXPECT_EQ(journaled_.map().GetSize(now_us_).bytes, 4);
}

TEST_F(MapReplayTest, AnEntryIsAsItWasToTheLastDetail) {
  journaled_.map().Apply(Operation::Put("a", "1").WithTtl(kSecond + 17),
                         now_us_);
  now_us_ += 5;
  journaled_.map().Apply(Operation::Touch("a"), now_us_);
  const Entry before =
      journaled_.map().Apply(Operation::Get("a"), now_us_).entry;
  journaled_.Commit();
  journaled_.Crash(now_us_);
  const Entry after =
      journaled_.map().Apply(Operation::Get("a"), now_us_).entry;
  EXPECT_EQ(after.value, before.value);
  EXPECT_EQ(after.version, before.version);
  EXPECT_EQ(after.put_us, before.put_us);
  EXPECT_EQ(after.deadline_us, before.deadline_us);
  // Its own TTL stays its own.
  now_us_ += 5;
  journaled_.map().Apply(Operation::Touch("a"), now_us_);
  EXPECT_EQ(
      journaled_.map().Apply(Operation::Get("a"), now_us_).entry.deadline_us,
      now_us_ + kSecond + 17);
}

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
  ASSERT_TRUE(journaled_.commits().back().tick.has_value());
  EXPECT_EQ(journaled_.commits().back().tick->next_event,
            JournaledMap::kFirstEvent + 1);
  due.clear();
  journaled_.Permit();
  EXPECT_EQ(due.size(), 1u);
  EXPECT_EQ(journaled_.map().NextDueUs(now_us_), now_us_);
  journaled_.map().Advance(now_us_);
  journaled_.Commit();
  EXPECT_FALSE(journaled_.commits().back().tick.has_value());
}

TEST_F(MapReplayTest, WhatWasToldIsToldAgainInTheSamePlaces) {
  for (int i = 0; i < 1'000; ++i) {
    Put(absl::StrCat("k", i), "before");
    if (i % 3 == 0) Put(absl::StrCat("k", i / 2), "after");
  }
  now_us_ += 20 * kSecond;
  journaled_.Settle(now_us_);
  ASSERT_EQ(journaled_.told().size(), 1'000u);
  journaled_.Crash(now_us_);
  const auto cursor =
      journaled_.map().Subscribe(ExpiryLog::Start::kEarliest, now_us_, [] {});
  const Reading again = ReadAll(cursor.get());
  ASSERT_EQ(again.events.size(), 1'000u);
  for (size_t i = 0; i < again.events.size(); ++i) {
    EXPECT_EQ(again.events[i].key, journaled_.told()[i].key);
    EXPECT_EQ(again.events[i].version, journaled_.told()[i].version);
  }
  // And who has read them is not told again.
  journaled_.Read();
  EXPECT_EQ(journaled_.told().size(), 1'000u);
}

TEST_F(MapReplayTest, WhatDiedWhileNobodyRanIsToldOnce) {
  Put("a", "1");
  journaled_.Commit();
  now_us_ += 3600 * kSecond;
  journaled_.Crash(now_us_);
  EXPECT_EQ(Get("a"), "(none)");
  journaled_.Settle(now_us_);
  EXPECT_THAT(ToldTexts(), ElementsAre("a=1"));
  EXPECT_EQ(journaled_.told()[0].death_us, kStartUs + 10 * kSecond);
  journaled_.Crash(now_us_);
  journaled_.Settle(now_us_);
  EXPECT_THAT(ToldTexts(), ElementsAre("a=1"));
}

TEST_F(MapReplayTest, AKilledBucketIsKilledAgain) {
  Put("a", "1");
  now_us_ += 5 * kSecond;
  Put("b", "2");
  EXPECT_EQ(journaled_.map().Rotate(now_us_), 1);
  journaled_.Commit();
  journaled_.Crash(now_us_);
  EXPECT_EQ(Get("a"), "(none)");
  EXPECT_EQ(Get("b"), "2");
  journaled_.Settle(now_us_);
  EXPECT_THAT(ToldTexts(), ElementsAre("a=1"));
  EXPECT_EQ(journaled_.told()[0].cause, Cause::kRotated);
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
  MapOptions options = Options(10 * kSecond, 11);
  TimeCacheMap map("map", options, nullptr, kStartUs, EventFormat::Plain(),
                   {.first_event = 1, .journaled = true, .hash_seed = 7});
  MapReplay replay(&map);
  EXPECT_EQ(replay.Apply(Tick{now_us_, 2}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(replay.Apply(kShards, Change()).code(),
            absl::StatusCode::kDataLoss);
}

// --- Chance: operations, time, kills, commits and crashes, against the model.

struct CrashWorld {
  std::string name;
  MapOptions map;
  int keys = 60;
};

void PrintTo(const CrashWorld& world, std::ostream* out) { *out << world.name; }

MapOptions Evicting() {
  MapOptions options = Options(5 * kSecond, 6);
  options.max_entries = 25;
  options.limit_policy = LimitPolicy::kEvictOldest;
  return options;
}

MapOptions EvictingFromOneBucket() {
  MapOptions options = Options(3600 * kSecond, 2);
  options.max_entries = 25;
  options.limit_policy = LimitPolicy::kEvictOldest;
  return options;
}

MapOptions Sliding() {
  MapOptions options = Options(5 * kSecond, 4);
  options.sliding = true;
  return options;
}

class MapReplayModelTest : public ::testing::TestWithParam<CrashWorld> {
 protected:
  static constexpr int kSteps = 20'000;

  // What a crash goes back to.
  struct Durable {
    ReferenceModel model;
    std::vector<ReferenceModel::Death> deaths;
    int64_t now_us;
  };

  MapReplayModelTest() {
    model_.SetSurvives([this](const std::string& key) {
      if (key == key_) return result_.found;
      return journaled_.map().Apply(Operation::Contains(key), now_us_).found;
    });
  }

  void StepClock() {
    const int64_t next_us = model_.NextDeathUs();
    switch (dice_.Draw(0, 3)) {
      case 0:
        now_us_ += dice_.Draw(0, 1);
        break;
      case 1:
        now_us_ += dice_.Draw(0, BucketWidthUs(GetParam().map));
        break;
      default:
        if (next_us != kNeverUs) {
          now_us_ = std::max(now_us_, next_us - dice_.Draw(0, 1));
        }
    }
  }

  void StepOperation() {
    key_ = absl::StrCat("k", dice_.Draw(1, GetParam().keys));
    const std::string value(dice_.Index(40), 'v');
    Operation op = Operation::Put(key_, value);
    const int64_t kind = dice_.Draw(0, 9);
    if (kind == 6) op = Operation::Remove(key_);
    if (kind == 7) op = Operation::Touch(key_);
    if (kind == 8) op = Operation::Get(key_);
    if (kind == 9) op.condition = Condition::kIfAbsent;
    if ((kind < 6 || kind == 7) && dice_.Chance(200)) {
      op = op.WithTtl(dice_.Draw(kMinTtlUs, GetParam().map.ttl_us * 2));
    }
    journaled_.map().Apply(op, now_us_, &result_);
    const Result model = model_.Apply(op, now_us_, result_.version);
    ASSERT_EQ(result_.status.code(), model.status.code()) << result_.status;
    ASSERT_EQ(result_.found, model.found);
    if (result_.has_entry) {
      ASSERT_EQ(result_.entry.value, model.entry.value);
      ASSERT_EQ(result_.entry.version, model.entry.version);
      ASSERT_EQ(result_.entry.deadline_us, model.entry.deadline_us);
    }
  }

  void Commit() {
    journaled_.Commit();
    TakeDeaths();
    durable_ = {model_, deaths_, now_us_};
  }
  void TakeDeaths() {
    for (auto& death : model_.TakeDeaths()) deaths_.push_back(std::move(death));
  }

  void Step() {
    const int64_t what = dice_.Draw(0, 999);
    if (what < 150) {
      StepClock();
    } else if (what < 850) {
      StepOperation();
    } else if (what < 870) {
      EXPECT_EQ(journaled_.map().Rotate(now_us_), model_.Rotate(now_us_));
    } else if (what < 900) {
      journaled_.map().Advance(now_us_);
    } else if (what < 930) {
      Commit();
    } else if (what < 950) {
      journaled_.Permit();
    } else if (what < 980) {
      journaled_.map().Sweep(now_us_, static_cast<int>(dice_.Draw(1, 30)));
    } else if (what < 990) {
      journaled_.Read(dice_.Draw(1, 2'000));
    } else if (what < 995) {
      StepRest();
    } else {
      Crash();
    }
    TakeDeaths();
  }

  void Crash() {
    // The clock may have been set back meanwhile.
    if (dice_.Chance(300)) now_us_ = durable_.now_us;
    journaled_.Crash(now_us_);
    EXPECT_LE(journaled_.last_us(), durable_.now_us);
    model_ = durable_.model;
    deaths_ = durable_.deaths;
    model_.Advance(now_us_);
  }

  // All that died was told, once, in order; all that lives is there.
  void StepRest() {
    model_.Advance(now_us_);
    TakeDeaths();
    journaled_.Settle(now_us_);
    durable_ = {model_, deaths_, now_us_};
    ASSERT_EQ(journaled_.told().size(), deaths_.size());
    std::map<uint64_t, const ReferenceModel::Death*> by_version;
    for (const auto& death : deaths_) {
      by_version[death.entry.version] = &death;
    }
    int64_t before_us = INT64_MIN;
    for (const Told& told : journaled_.told()) {
      const auto it = by_version.find(told.version);
      ASSERT_NE(it, by_version.end()) << told.key;
      EXPECT_EQ(told.key, it->second->key);
      EXPECT_EQ(told.value, it->second->entry.value);
      EXPECT_EQ(told.cause, it->second->cause);
      EXPECT_GE(told.death_us, before_us);
      before_us = told.death_us;
      by_version.erase(it);
    }
    EXPECT_EQ(journaled_.map().GetSize(now_us_).entries,
              static_cast<int64_t>(model_.entries().size()));
    EXPECT_EQ(journaled_.map().GetSize(now_us_).bytes, model_.bytes());
  }

  static uint64_t Seed() {
    const char* const seed = std::getenv("TIMECACHED_SEED");
    return seed != nullptr ? std::stoull(seed) : 20111204;
  }

  const uint64_t seed_ = Seed();
  Dice dice_{seed_};
  int64_t now_us_ = kStartUs;
  JournaledMap journaled_{GetParam().map};
  ReferenceModel model_{GetParam().map};
  std::vector<ReferenceModel::Death> deaths_;
  Durable durable_{model_, {}, now_us_};
  // Of the last operation.
  std::string key_;
  Result result_;
};

TEST_P(MapReplayModelTest, NothingCommittedIsLostAndNothingIsToldTwice) {
  SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", seed_));
  for (int i = 0; i < kSteps && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("step ", i));
    Step();
  }
  StepRest();
  EXPECT_GT(journaled_.told().size(), 1'000u);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, MapReplayModelTest,
    ::testing::Values(CrashWorld{"Plain", Options(5 * kSecond, 6)},
                      CrashWorld{"TwoBuckets", Options(2 * kSecond, 2)},
                      CrashWorld{"SlidingExpiry", Sliding()},
                      CrashWorld{"EvictingBuckets", Evicting()},
                      CrashWorld{"EvictingEntries", EvictingFromOneBucket()}),
    [](const auto& info) { return info.param.name; });

// --- A journal without its beginning.

TEST_F(MapReplayTest, WhatIsLiveIsToldAgainAndTheRestIsNotNeeded) {
  for (int i = 0; i < 2'000; ++i) Put(absl::StrCat("long", i), "first");
  journaled_.map().Apply(Operation::Put("forever", "v").WithTtl(3600 * kSecond),
                         now_us_);
  journaled_.Commit();
  now_us_ += 11 * kSecond;
  journaled_.Settle(now_us_);
  Put("short", "v");
  const size_t before = journaled_.commits().size();
  ScanPlace place;
  while (journaled_.map().TellAgain(now_us_, 10, 1 << 20, &place)) {
  }
  journaled_.Settle(now_us_);
  journaled_.Trim(before, JournaledMap::kFirstEvent + 2'000);
  journaled_.Crash(now_us_);
  EXPECT_EQ(Get("forever"), "v");
  EXPECT_EQ(Get("short"), "v");
  EXPECT_EQ(journaled_.map().GetSize(now_us_).entries, 2);
  now_us_ += 11 * kSecond;
  journaled_.Settle(now_us_);
  ASSERT_EQ(journaled_.told().size(), 2'001u);
  EXPECT_EQ(journaled_.told().back().key, "short");
}

}  // namespace
}  // namespace timecache::server
