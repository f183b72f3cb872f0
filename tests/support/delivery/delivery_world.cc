#include "tests/support/delivery/delivery_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "server/base/memory_reclaimer.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr uint64_t kNoVersion = UINT64_MAX;
constexpr size_t kNoiseBytes = size_t{1} << 20;
// So few that one step of the sweep does not append more than the smallest
// retention holds.
constexpr int kMaxSweepRecords = 60;

}  // namespace

DeliveryWorld::DeliveryWorld(const DeliveryWorldOptions& options, Dice dice)
    : options_(options),
      dice_(std::move(dice)),
      now_us_(kStartUs + dice_.Draw(0, kSecond)),
      model_(options.map),
      log_(options.map.retention_us, options.map.retention_bytes),
      dead_map_("dead", WithBuckets(kHour, 2), nullptr, now_us_),
      map_("world", options.map, nullptr, now_us_,
           // By chance that comes again, as all else.
           {.hash_seed = static_cast<uint64_t>(now_us_)}) {
  map_.SetSchedule(
      [this](int64_t due_us) { due_us_ = std::min(due_us_, due_us); });
  map_.groups().SetDeadLetterSink(
      [this](const ConsumerGroups::DeadLetter& letter,
             ConsumerGroups::DeadLetterDone done) {
        done(PutDeadLetter(letter.to_map, letter.key, letter.value));
      });
  model_.SetSurvives([this](const std::string& key) {
    if (key == key_) return result_.found;
    return map_.Apply(Operation::Contains(key), now_us_).found;
  });
  due_us_ = map_.NextDueUs(now_us_);
  if (options.recorded) {
    recorder_ = map_.Subscribe(ExpiryLog::Start::kNow, now_us_, [] {});
  }
  for (int i = 0; i < options.watchers; ++i) {
    watchers_.push_back(std::make_unique<DeliveryWatcher>(
        &map_, &events_, options.recorded ? &log_ : nullptr));
  }
  for (int i = 0; i < options.groups; ++i) {
    groups_.push_back(std::make_unique<GroupPlayer>(
        absl::StrCat("group-", i), options.group, &map_, &events_, &log_,
        &dice_, [this](const Operation& op, uint64_t version) {
          return ApplyToModel(op, version);
        }));
    groups_.back()->Create(ExpiryLog::Start::kNow, now_us_);
  }
}

void DeliveryWorld::Step() {
  const int64_t what = dice_.Draw(0, 999);
  if (what < options_.clock_per_mille) {
    StepClock();
  } else if (what < 450) {
    StepOperation();
  } else if (what < 600) {
    StepDriver();
  } else if (what < 800 && !watchers_.empty()) {
    StepWatcher();
  } else if (!groups_.empty()) {
    StepGroup();
  }
  CollectDeaths();
  if (testing::Test::HasFatalFailure()) return;
  CheckDue();
  for (const auto& watcher : watchers_) watcher->CheckWoken();
}

void DeliveryWorld::StepGroup() {
  AdvanceModel();
  GroupPlayer& group = *groups_[dice_.Index(groups_.size())];
  ASSERT_NO_FATAL_FAILURE(group.Step(now_us_));
  group.CheckWoken();
  group.CheckStatistics();
}

void DeliveryWorld::StepClock() {
  int64_t next_us = model_.NextDeathUs();
  if (!groups_.empty() && dice_.Chance(500)) {
    next_us = groups_[dice_.Index(groups_.size())]->NextDueUs();
  }
  if (next_us <= now_us_) next_us = kNeverUs;
  const int64_t kind = dice_.Draw(0, 999);
  if (kind < 150) {
    now_us_ += 1;
  } else if (kind < 500) {
    now_us_ += dice_.Draw(0, BucketWidthUs(options_.map));
  } else if (kind < 700) {
    if (next_us != kNeverUs) now_us_ = next_us;
  } else if (kind < 850) {
    if (next_us != kNeverUs) now_us_ = next_us - 1;
  } else if (kind < 995) {
    now_us_ += dice_.Draw(0, options_.map.ttl_us / 2);
  } else if (kind < 999) {
    now_us_ += dice_.Draw(0, 3 * options_.map.ttl_us);
  } else {
    now_us_ += kHour;
  }
}

void DeliveryWorld::StepOperation() {
  key_ = absl::StrCat("k", dice_.Draw(1, options_.keys));
  Operation op;
  const int64_t kind = dice_.Draw(0, 99);
  if (kind < 75) {
    op = Operation::Put(key_, RandomValue());
    if (dice_.Chance(200)) {
      op = op.WithTtl(dice_.Draw(kMinTtlUs, 2 * options_.map.ttl_us));
    }
    if (dice_.Chance(100)) {
      op = op.ExpiringAt(
          now_us_ + dice_.Draw(-options_.map.ttl_us, 2 * options_.map.ttl_us),
          /*past_too=*/true);
    }
  } else if (kind < 85) {
    op = Operation::Remove(key_);
  } else if (kind < 95) {
    op = Operation::Touch(key_);
  } else {
    op = Operation::Get(key_);
  }
  map_.Apply(op, now_us_, &result_);
  const Result model = ApplyToModel(op, result_.version);
  ExpectSameAnswer(result_, model);
}

absl::string_view DeliveryWorld::RandomValue() {
  const int64_t bytes = dice_.Draw(0, options_.max_value_bytes);
  return absl::string_view(Noise()).substr(dice_.Index(kNoiseBytes),
                                           static_cast<size_t>(bytes));
}

Result DeliveryWorld::ApplyToModel(const Operation& op, uint64_t version) {
  Result result =
      model_.Apply(op, now_us_, version == 0 ? kNoVersion : version);
  CollectDeaths();
  return result;
}

void DeliveryWorld::CollectDeaths() { events_.Expect(model_.TakeDeaths()); }

void DeliveryWorld::AdvanceModel() {
  model_.Advance(now_us_);
  CollectDeaths();
}

// What a reaper does, and administrators.
void DeliveryWorld::StepDriver() {
  AdvanceModel();
  const int64_t kind = dice_.Draw(0, 999);
  if (kind < 400) {
    SweepSome(static_cast<int>(dice_.Draw(1, 10)));
  } else if (kind < 500) {
    map_.Advance(now_us_);
    SweepSome(static_cast<int>(dice_.Draw(1, kMaxSweepRecords)));
  } else if (kind < 650) {
    map_.RefreshWatermark(now_us_);
  } else if (kind < 900) {
    Sweep(kMaxSweepRecords);
  } else if (kind < 950) {
    Rotate();
  } else if (kind < 980) {
    CheckAtRest();
  } else if (options_.retention_changes) {
    UpdateRetention();
  } else if (options_.squeezes) {
    Squeeze();
  }
}

uint64_t DeliveryWorld::NeededByCursors() const {
  uint64_t needed = log_.end();
  for (const auto& watcher : watchers_) {
    if (watcher->connected()) needed = std::min(needed, watcher->position());
  }
  return needed;
}

bool DeliveryWorld::SweepSome(int max_records) {
  const uint64_t needed = NeededByCursors();
  const bool more = map_.Sweep(now_us_, max_records);
  due_us_ = map_.NextDueUs(now_us_);
  if (recorder_ != nullptr) {
    Record();
    log_.Trim(now_us_, needed);
  }
  for (const auto& group : groups_) group->AfterSweep(now_us_);
  return more;
}

void DeliveryWorld::Sweep(int max_records) {
  map_.Advance(now_us_);
  while (SweepSome(max_records) && !testing::Test::HasFatalFailure()) {
  }
  map_.RefreshWatermark(now_us_);
  for (const auto& group : groups_) {
    group->CheckWoken();
    group->CheckStatistics();
  }
}

void DeliveryWorld::Record() {
  for (bool more = true; more;) {
    const ExpiryLog::Chunk chunk = recorder_->Read(1 << 20);
    ASSERT_EQ(chunk.lost, 0u);
    for (const auto& batch : chunk.batches) {
      for (int i = 0; i < batch->size(); ++i) {
        ASSERT_NO_FATAL_FAILURE(
            events_.CheckEvent(log_.end() + static_cast<uint64_t>(i),
                               batch->event(i), batch->death()));
      }
      log_.Append(*batch);
    }
    more = chunk.more;
  }
}

void DeliveryWorld::Rotate() {
  ASSERT_EQ(map_.Rotate(now_us_), model_.Rotate(now_us_));
  CollectDeaths();
}

void DeliveryWorld::UpdateRetention() {
  NamespaceOptions options = options_.map;
  if (dice_.Chance(800)) {
    options.retention_us = dice_.Draw(0, 2 * options_.map.retention_us);
  }
  options.retention_bytes =
      dice_.Draw(kMinRetentionBytes, 2 * kMinRetentionBytes);
  map_.Update(options, now_us_);
  log_.SetRetention(options.retention_us, options.retention_bytes);
  log_.Trim(now_us_, NeededByCursors());
}

// Some of what is retained must give way; and, where the limit itself is
// reached, some of what groups have not settled.
void DeliveryWorld::Squeeze() {
  ASSERT_NO_FATAL_FAILURE(Sweep(kMaxSweepRecords));
  MemoryBudget& memory = MemoryBudget::Process();
  const int64_t used = memory.used_bytes();
  const uint64_t before = log_.oldest();
  if (dice_.Chance(700)) {
    // Past the mark, and below the limit.
    memory.SetLimit(used * MemoryBudget::kSixteenths /
                    dice_.Draw(MemoryBudget::kRetainedHigh + 1,
                               MemoryBudget::kSixteenths - 1));
    while (MemoryReclaimer::Process().Step()) {
    }
  } else {
    memory.SetLimit(used - dice_.Draw(0, used / MemoryBudget::kSixteenths));
    (void)MemoryReclaimer::Process().MakeRoom();
  }
  memory.SetLimit(0);
  const uint64_t reclaimed =
      map_.GetStatistics(now_us_).events_reclaimed - reclaimed_;
  reclaimed_ += reclaimed;
  ASSERT_LE(reclaimed, log_.end() - before);
  log_.Reclaim(reclaimed, NeededByCursors());
  for (const auto& group : groups_) group->AfterSqueeze(now_us_);
}

void DeliveryWorld::StepWatcher() {
  AdvanceModel();
  DeliveryWatcher& watcher = *watchers_[dice_.Index(watchers_.size())];
  const int64_t kind = dice_.Draw(0, 99);
  if (!watcher.connected()) {
    if (kind < 60) return;
    if (watcher.has_place() && kind < 95) {
      const size_t before =
          dice_.Chance(800) ? 0 : dice_.Index(watcher.places());
      ASSERT_NO_FATAL_FAILURE(watcher.Resume(now_us_, before));
      ++resumes_;
    } else {
      delivered_ += watcher.delivered();
      lost_ += watcher.lost();
      watcher.Connect(dice_.Chance(500) ? ExpiryLog::Start::kNow
                                        : ExpiryLog::Start::kEarliest,
                      now_us_);
    }
  } else if (kind < 40) {
    watcher.Read(dice_.Draw(1, 1 << 12));
  } else if (kind < 65) {
    watcher.Read(1 << 20);
  } else if (kind < 80) {
    watcher.Disconnect();
  } else if (kind < 85 && watcher.has_place()) {
    watcher.CheckRefusedPoints(now_us_);
  }
}

absl::Status DeliveryWorld::PutDeadLetter(absl::string_view to_map,
                                          const std::string& key,
                                          const std::string& value) {
  EXPECT_EQ(to_map, options_.map.dead_letter_namespace);
  const std::vector<std::string> parts = absl::StrSplit(key, '/');
  uint64_t number = 0;
  EXPECT_EQ(parts.size(), 3u) << key;
  EXPECT_EQ(parts[0], map_.name());
  EXPECT_TRUE(absl::SimpleAtoi(parts.back(), &number)) << key;
  const bool full = dice_.Chance(200);
  for (const auto& group : groups_) {
    if (group->name() != parts[1]) continue;
    group->CheckDeadLetter(number, value, !full, now_us_);
  }
  if (full) return absl::ResourceExhaustedError("full");
  return dead_map_.Apply(Operation::Put(key, value), now_us_).status;
}

void DeliveryWorld::CheckDue() const {
  ASSERT_LE(due_us_, std::max(now_us_, model_.NextDeathUs()))
      << "nobody was told when the next bucket is due";
  for (const auto& group : groups_) {
    ASSERT_LE(due_us_, std::max(now_us_, group->NextDueUs()))
        << "nobody was told when " << group->name() << " is due";
  }
}

void DeliveryWorld::CheckLogStatistics() {
  const NamespaceStatistics statistics = map_.GetStatistics(now_us_);
  int64_t connected = recorder_ == nullptr ? 0 : 1;
  for (const auto& watcher : watchers_) connected += watcher->connected();
  ASSERT_EQ(statistics.watchers, connected);
  ASSERT_GE(statistics.watermark_us, now_us_);
  ASSERT_EQ(statistics.expired + statistics.evicted + statistics.rotated,
            events_.end() - kFirstEvent);
  ASSERT_EQ(statistics.watch_owed,
            statistics.watch_delivered + statistics.watch_lost +
                statistics.watch_left + statistics.watch_pending);
  if (recorder_ == nullptr) return;
  ASSERT_EQ(log_.end(), events_.end());
  ASSERT_EQ(statistics.events_retained, log_.end() - log_.oldest());
  ASSERT_EQ(statistics.events_retained_bytes, log_.bytes());
}

void DeliveryWorld::CheckAtRest() {
  AdvanceModel();
  ASSERT_NO_FATAL_FAILURE(Sweep(kMaxSweepRecords));
  CheckLogStatistics();
  for (const auto& watcher : watchers_) {
    if (!watcher->connected() || dice_.Chance(700)) continue;
    ASSERT_NO_FATAL_FAILURE(watcher->ReadToTheEnd());
    ASSERT_GE(watcher->watermark_us(), now_us_);
  }
}

// Lets time go on, and everything happen that is due then. Returns the time.
int64_t DeliveryWorld::PassTo(int64_t time_us) {
  now_us_ = std::max(now_us_, time_us);
  AdvanceModel();
  Sweep(kMaxSweepRecords);
  return now_us_;
}

void DeliveryWorld::End() {
  ASSERT_NO_FATAL_FAILURE(CheckAtRest());
  for (const auto& group : groups_) {
    ASSERT_NO_FATAL_FAILURE(group->Drain(
        [this](int64_t time_us) { return PassTo(time_us); }, now_us_));
  }
  ASSERT_NO_FATAL_FAILURE(CheckAtRest());
  for (const auto& watcher : watchers_) {
    if (!watcher->has_place() && !watcher->connected()) continue;
    if (!watcher->connected()) watcher->Resume(now_us_, 0);
    ASSERT_NO_FATAL_FAILURE(watcher->ReadToTheEnd());
    delivered_ += watcher->delivered();
    lost_ += watcher->lost();
  }
  map_.Close();
  for (const auto& watcher : watchers_) {
    if (watcher->connected()) watcher->CheckClosed();
    watcher->Disconnect();
  }
  for (const auto& group : groups_) group->CheckClosed();
}

std::string DeliveryWorld::Story() const {
  std::string story =
      absl::StrCat(events_.end() - kFirstEvent, " events, ", resumes_,
                   " resumes, ", delivered_, " delivered and ", lost_,
                   " lost to watchers, ", reclaimed_, " reclaimed");
  for (const auto& group : groups_) {
    absl::StrAppend(&story, "; ", group->name(), ": ", group->Story());
  }
  return story;
}

}  // namespace timecache::server
