#include "tests/support/engine/crash_world.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

constexpr int kShards = 4;

MapOptions Evicting(MapOptions options) {
  options.max_entries = 25;
  options.limit_policy = LimitPolicy::kEvictOldest;
  return options;
}

MapOptions Sliding(MapOptions options) {
  options.sliding = true;
  return options;
}

}  // namespace

MapOptions CrashOptions(int64_t ttl_us, int num_buckets) {
  MapOptions options = WithBuckets(ttl_us, num_buckets);
  options.num_shards = kShards;
  options.retention_us = kNeverUs / 4;
  options.retention_bytes = int64_t{1} << 30;
  return options;
}

JournaledMap::JournaledMap(const MapOptions& options, CommitLog* log)
    : options_(options), log_(log) {
  Make({.first_event = kFirstEvent}, kStartUs);
  map_->SetSink(&sink_);
  cursor_ = map_->Subscribe(ExpiryLog::Start::kNow, kStartUs, [] {});
  Read();
}

void JournaledMap::Make(TimeCacheMap::Origin origin, int64_t now_us) {
  map_ = nullptr;
  versions_ = std::make_unique<VersionSource>(now_us);
  origin.versions = versions_.get();
  origin.journaled = true;
  map_ = std::make_unique<TimeCacheMap>("map", options_, nullptr, now_us,
                                        EventFormat::Plain(), origin);
}

void JournaledMap::Commit() {
  Committed commit = sink_.Take();
  if (commit.tick.has_value()) permit_ = commit.tick;
  log_->Commit(std::move(commit));
}

void JournaledMap::Permit() {
  if (permit_.has_value()) map_->Permit(*permit_);
  permit_.reset();
}

void JournaledMap::Settle(int64_t now_us) {
  map_->Advance(now_us);
  Commit();
  Permit();
  while (map_->Sweep(now_us, 7)) {
  }
  Read();
}

void JournaledMap::Read(int64_t max_bytes) {
  Reading reading = ReadAll(cursor_.get(), max_bytes);
  EXPECT_EQ(reading.lost, 0u);
  for (Told& told : reading.events) told_.push_back(std::move(told));
  point_ = {map_->origin().log_id, kFirstEvent + told_.size(),
            reading.watermark_us};
}

void JournaledMap::Crash(int64_t now_us, uint64_t first_event) {
  sink_.Take();
  permit_.reset();
  TimeCacheMap::Origin origin = map_->origin();
  origin.first_event = first_event;
  cursor_.reset();
  Make(origin, now_us);
  MapReplay replay(map_.get());
  for (const Committed& commit : log_->Recover()) {
    for (const KeptChange& kept : commit.changes) {
      EXPECT_TRUE(replay.Apply(kept.shard(), kept.change()).ok());
    }
    if (commit.tick.has_value()) {
      const absl::Status status = replay.Apply(*commit.tick);
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  versions_->RaiseTo(replay.Finish());
  map_->SetSink(&sink_);
  last_us_ = replay.last_us();
  auto cursor = map_->Resume(point_, now_us, [] {});
  ASSERT_TRUE(cursor.ok()) << cursor.status();
  cursor_ = *std::move(cursor);
}

std::vector<CrashWorldOptions> CrashWorlds() {
  return {
      {"Plain", CrashOptions(5 * kSecond, 6)},
      {"TwoBuckets", CrashOptions(2 * kSecond, 2)},
      {"SlidingExpiry", Sliding(CrashOptions(5 * kSecond, 4))},
      {"EvictingBuckets", Evicting(CrashOptions(5 * kSecond, 6))},
      {"EvictingEntries", Evicting(CrashOptions(3600 * kSecond, 2))},
  };
}

CrashWorld::CrashWorld(const CrashWorldOptions& options, CommitLog* log,
                       Dice dice)
    : options_(options),
      dice_(std::move(dice)),
      journaled_(options.map, log),
      model_(options.map),
      durable_{model_, {}, now_us_} {
  model_.SetSurvives([this](const std::string& key) {
    if (key == key_) return result_.found;
    return journaled_.map().Apply(Operation::Contains(key), now_us_).found;
  });
  durable_.model = model_;
}

void CrashWorld::Step() {
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
    CheckAtRest();
  } else {
    Crash();
  }
  TakeDeaths();
}

void CrashWorld::StepClock() {
  const int64_t next_us = model_.NextDeathUs();
  switch (dice_.Draw(0, 3)) {
    case 0:
      now_us_ += dice_.Draw(0, 1);
      break;
    case 1:
      now_us_ += dice_.Draw(0, BucketWidthUs(options_.map));
      break;
    default:
      if (next_us != kNeverUs) {
        now_us_ = std::max(now_us_, next_us - dice_.Draw(0, 1));
      }
  }
}

void CrashWorld::StepOperation() {
  key_ = absl::StrCat("k", dice_.Draw(1, options_.keys));
  const std::string value(dice_.Index(40), 'v');
  Operation op = Operation::Put(key_, value);
  const int64_t kind = dice_.Draw(0, 9);
  if (kind == 6) op = Operation::Remove(key_);
  if (kind == 7) op = Operation::Touch(key_);
  if (kind == 8) op = Operation::Get(key_);
  if (kind == 9) op.condition = Condition::kIfAbsent;
  if ((kind < 6 || kind == 7) && dice_.Chance(200)) {
    op = op.WithTtl(dice_.Draw(kMinTtlUs, options_.map.ttl_us * 2));
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

void CrashWorld::Commit() {
  journaled_.Commit();
  TakeDeaths();
  durable_ = {model_, deaths_, now_us_};
}

void CrashWorld::TakeDeaths() {
  for (auto& death : model_.TakeDeaths()) deaths_.push_back(std::move(death));
}

void CrashWorld::Crash() {
  // The clock may have been set back meanwhile.
  if (dice_.Chance(300)) now_us_ = durable_.now_us;
  journaled_.Crash(now_us_);
  EXPECT_LE(journaled_.last_us(), durable_.now_us);
  model_ = durable_.model;
  deaths_ = durable_.deaths;
  model_.Advance(now_us_);
}

void CrashWorld::CheckAtRest() {
  model_.Advance(now_us_);
  TakeDeaths();
  journaled_.Settle(now_us_);
  durable_ = {model_, deaths_, now_us_};
  ASSERT_EQ(journaled_.told().size(), deaths_.size());
  std::map<uint64_t, const ReferenceModel::Death*> by_version;
  for (const auto& death : deaths_) by_version[death.entry.version] = &death;
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
  const MapSize size = journaled_.map().GetSize(now_us_);
  EXPECT_EQ(size.entries, static_cast<int64_t>(model_.entries().size()));
  EXPECT_EQ(size.bytes, model_.bytes());
}

}  // namespace timecache::server
