#include "tests/support/engine/crash_world.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

NamespaceOptions Evicting(NamespaceOptions options) {
  options.max_entries = 25;
  options.limit_policy = LimitPolicy::kEvictOldest;
  return options;
}

NamespaceOptions Sliding(NamespaceOptions options) {
  options.sliding = true;
  return options;
}

NamespaceOptions WithGroups(NamespaceOptions options) {
  options.dead_letter_namespace = "dead";
  return options;
}

NamespaceOptions WithBacklog(NamespaceOptions options, int64_t bytes) {
  options = WithGroups(std::move(options));
  options.max_backlog_bytes = bytes;
  return options;
}

NamespaceOptions WithRetention(NamespaceOptions options, int64_t us) {
  options.retention_us = us;
  return options;
}

}  // namespace

std::vector<CrashWorldOptions> CrashWorlds() {
  return {
      {"Plain", CrashOptions(5 * kSecond, 6)},
      {"TwoBuckets", CrashOptions(2 * kSecond, 2)},
      {"SlidingExpiry", Sliding(CrashOptions(5 * kSecond, 4))},
      {"EvictingBuckets", Evicting(CrashOptions(5 * kSecond, 6))},
      {"EvictingEntries", Evicting(CrashOptions(3600 * kSecond, 2))},
      {.name = "Groups",
       .map = WithGroups(CrashOptions(5 * kSecond, 6)),
       .groups = true},
      {.name = "GroupsThatLose",
       .map = WithBacklog(CrashOptions(5 * kSecond, 6), 20'000),
       .groups = true},
      {.name = "GroupsOfAnEvictingMap",
       .map = WithGroups(Evicting(CrashOptions(5 * kSecond, 6))),
       .groups = true},
      {.name = "Trimmed",
       .map =
           WithBacklog(WithRetention(CrashOptions(5 * kSecond, 6), 0), 20'000),
       .groups = true,
       .trims = true},
      {.name = "TrimmedWithShortRetention",
       .map = WithBacklog(
           WithRetention(CrashOptions(5 * kSecond, 6), 4 * kSecond), 20'000),
       .groups = true,
       .trims = true},
      {.name = "TrimmedWithRetention",
       .map = WithBacklog(CrashOptions(5 * kSecond, 6), 20'000),
       .groups = true,
       .trims = true},
      {.name = "TrimmedEvicting",
       .map = Evicting(CrashOptions(5 * kSecond, 6)),
       .trims = true},
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
  if (!options.groups) return;
  groups_ = std::make_unique<CrashGroups>(
      &journaled_, &dice_,
      CrashGroups::World{.put_back =
                             [this](const Operation& op, uint64_t version) {
                               return PutBackIntoModel(op, version);
                             },
                         .end_event =
                             [this] {
                               model_.Advance(now_us_);
                               TakeDeaths();
                               return JournaledMap::kFirstEvent +
                                      deaths_.size();
                             }});
}

void CrashWorld::Step() {
  if (groups_ != nullptr && dice_.Chance(300)) {
    groups_->Step(now_us_);
    TakeDeaths();
    return;
  }
  if (options_.trims && dice_.Chance(100)) return StepTrim();
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
    Pass();
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
  Pass();
}

void CrashWorld::Pass() {
  if (groups_ != nullptr) groups_->Pass(now_us_);
}

Result CrashWorld::PutBackIntoModel(const Operation& op, uint64_t version) {
  key_ = std::string(op.key);
  result_.Clear();
  return model_.Apply(op, now_us_, version);
}

void CrashWorld::StepTrim() {
  Commit();
  journaled_.Permit();
  if (!journaled_.StepTrim(now_us_, static_cast<int>(dice_.Draw(1, 20)))) {
    ++trims_;
  }
  Pass();
}

void CrashWorld::StepOperation() {
  key_ = absl::StrCat("k", dice_.Draw(1, options_.keys));
  const std::string value(dice_.Index(40), 'v');
  Operation op = Operation::Put(key_, value);
  const int64_t kind = dice_.Draw(0, 14);
  if (kind == 6) op = Operation::Remove(key_);
  if (kind == 7) op = Operation::Touch(key_);
  if (kind == 8) op = Operation::Get(key_);
  if (kind == 9) op.condition = Condition::kIfAbsent;
  if (kind == 10) op.keep_deadline = true;
  if (kind == 11 || kind == 12) op = Operation::Append(key_, value);
  if (kind == 13) {
    op = Operation::Combine(key_, Combination::kXor, dice_.Draw(0, 3));
    op.remove_if_zero = true;
  }
  Gathering gathering;
  const std::string part = absl::StrCat("part", dice_.Draw(1, 3));
  if (kind == 14) {
    EXPECT_TRUE(gathering.Set(part, 3, {}).ok());
    if (dice_.Chance(500)) {
      gathering.remember_us = dice_.Draw(kMinTtlUs, options_.map.ttl_us);
    }
    op = Operation::Gather(key_, &gathering, value);
  }
  op.touch = kind >= 11 && dice_.Chance(200);
  const bool takes_ttl = kind < 6 || kind == 7 || kind >= 11;
  if (takes_ttl && dice_.Chance(200)) {
    op = op.WithTtl(dice_.Draw(kMinTtlUs, options_.map.ttl_us * 2));
  }
  op.namespace_ttl = kind == 7 && !op.has_ttl && dice_.Chance(200);
  if (takes_ttl && kind <= 7 && dice_.Chance(200)) {
    const int64_t most_us = options_.map.ttl_us * 2;
    op = op.ExpiringAt(now_us_ + dice_.Draw(-most_us / 4, most_us),
                       /*past_too=*/true);
  }
  const bool takes_id = op.kind != OpKind::kGet && op.kind != OpKind::kTouch;
  const std::string id = absl::StrCat(dice_.Draw(1, 3));
  if (takes_id && options_.map.idempotency_window_us != 0 &&
      dice_.Chance(300)) {
    op.SetId(id);
  }
  if ((op.kind == OpKind::kPut || op.kind >= OpKind::kAppend) &&
      dice_.Chance(200)) {
    op.SetTrace(kTraces[dice_.Draw(0, 1)]);
  }
  journaled_.map().Apply(op, now_us_, &result_);
  const Result model = model_.Apply(op, now_us_, result_.version);
  ExpectSameAnswer(result_, model);
}

void CrashWorld::Commit() {
  journaled_.Commit();
  TakeDeaths();
  durable_ = {model_, deaths_, now_us_};
  if (groups_ != nullptr) groups_->Commit();
}

void CrashWorld::TakeDeaths() {
  for (auto& death : model_.TakeDeaths()) deaths_.push_back(std::move(death));
}

void CrashWorld::Crash() {
  // The clock may have been set back meanwhile.
  if (dice_.Chance(300)) now_us_ = durable_.now_us;
  if (groups_ != nullptr) groups_->BeforeCrash();
  journaled_.Crash(now_us_);
  EXPECT_LE(journaled_.last_us(), durable_.now_us);
  model_ = durable_.model;
  deaths_ = durable_.deaths;
  model_.Advance(now_us_);
  if (groups_ != nullptr) groups_->AfterCrash(now_us_);
}

// They are retained for ever, over all crashes and trims.
void CrashWorld::CheckRetained() {
  const std::vector<DeliveredEvent> retained = journaled_.ReadRetained(now_us_);
  const std::vector<DeliveredEvent>& told = journaled_.told();
  ASSERT_EQ(retained.size(), told.size());
  for (size_t i = 0; i < told.size(); ++i) {
    ASSERT_EQ(retained[i].version, told[i].version);
    ASSERT_EQ(retained[i].value, told[i].value);
    ASSERT_EQ(retained[i].death_us, told[i].death_us);
    ASSERT_EQ(retained[i].published_us, told[i].published_us);
    ASSERT_EQ(retained[i].create_us, told[i].create_us);
    ASSERT_EQ(retained[i].own_ttl_us, told[i].own_ttl_us);
    ASSERT_EQ(retained[i].trace, told[i].trace);
    ASSERT_EQ(retained[i].cause, told[i].cause);
  }
}

void CrashWorld::CheckAtRest() {
  model_.Advance(now_us_);
  TakeDeaths();
  journaled_.Settle(now_us_);
  Pass();
  Commit();
  ASSERT_EQ(journaled_.told().size(), deaths_.size());
  std::map<uint64_t, const ReferenceModel::Death*> by_version;
  for (const auto& death : deaths_) by_version[death.entry.version] = &death;
  int64_t before_us = INT64_MIN;
  for (const DeliveredEvent& told : journaled_.told()) {
    const auto it = by_version.find(told.version);
    ASSERT_NE(it, by_version.end()) << told.key;
    EXPECT_EQ(told.key, it->second->key);
    EXPECT_EQ(told.value, it->second->entry.value);
    EXPECT_EQ(told.parts, it->second->entry.parts);
    EXPECT_EQ(told.create_us, it->second->entry.create_us);
    EXPECT_EQ(told.own_ttl_us, it->second->entry.own_ttl_us);
    EXPECT_EQ(told.trace, it->second->trace);
    EXPECT_EQ(told.cause, it->second->cause);
    EXPECT_GE(told.death_us, before_us);
    before_us = told.death_us;
    by_version.erase(it);
  }
  if (options_.map.retention_us > 3600 * kSecond) CheckRetained();
  const NamespaceSize size = journaled_.map().GetSize(now_us_);
  EXPECT_EQ(size.entries, static_cast<int64_t>(model_.entries().size()));
  EXPECT_EQ(size.bytes, model_.bytes());
  if (groups_ != nullptr) groups_->CheckContents(journaled_.told());
}

}  // namespace timecache::server
