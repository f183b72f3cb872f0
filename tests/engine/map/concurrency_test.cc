// Many threads on few keys, with a reaper, watchers, rotations, scans and live
// changes. What must hold in the end: every acknowledged put ended in exactly
// one of overwritten, removed, live, or dead with one event.

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/engine/reaper.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr int kThreads = 8;
constexpr int kOperations = 15'000;
constexpr int kConcurrentKeys = 48;

struct StormOptions {
  std::string name;
  bool manual_clock = true;
  int64_t max_entries = 0;
  bool sliding = false;
  // Writes that go together.
  size_t batch = 1;
};

void PrintTo(const StormOptions& options, std::ostream* out) {
  *out << options.name;
}

// What one thread did, by the values that it put: each value is put once.
struct Diary {
  std::vector<std::string> put;
  std::vector<std::string> overwritten;
  std::vector<std::string> removed;
};

// Reads its cursor in a thread of its own, whenever it is woken.
class Watcher {
 public:
  Watcher(TimeCacheMap* map, int64_t now_us)
      : cursor_(map->Subscribe(ExpiryLog::Start::kNow, now_us,
                               [this] { Signal(&woken_); })),
        thread_([this] { Run(); }) {}

  // Reads to the end. To be called once everything has been published.
  std::vector<DeliveredEvent> Finish() {
    Signal(&stopping_);
    thread_.join();
    ReadSome();
    return std::move(told_);
  }

  uint64_t lost() const { return lost_; }

 private:
  void Signal(bool* flag) {
    absl::MutexLock lock(&mu_);
    *flag = true;
    signal_.Signal();
  }

  void Run() {
    for (;;) {
      {
        absl::MutexLock lock(&mu_);
        while (!woken_ && !stopping_) signal_.Wait(&mu_);
        if (stopping_) return;
        woken_ = false;
      }
      ReadSome();
    }
  }

  void ReadSome() {
    Reading reading = ReadAll(cursor_.get());
    lost_ += reading.lost;
    EXPECT_GE(reading.watermark_us, watermark_us_);
    for (DeliveredEvent& told : reading.events) {
      EXPECT_GT(told.death_us, watermark_us_) << "promised to have come before";
      told_.push_back(std::move(told));
    }
    watermark_us_ = reading.watermark_us;
  }

  absl::Mutex mu_;
  absl::CondVar signal_;
  bool woken_ = false;
  bool stopping_ = false;
  std::vector<DeliveredEvent> told_;
  uint64_t lost_ = 0;
  int64_t watermark_us_ = INT64_MIN;
  std::unique_ptr<ExpiryLog::Cursor> cursor_;
  std::thread thread_;
};

class ConcurrencyTest : public testing::TestWithParam<StormOptions> {
 protected:
  ConcurrencyTest()
      : manual_(kStartUs),
        clock_(GetParam().manual_clock ? static_cast<const Clock&>(manual_)
                                       : system_),
        reaper_(&clock_),
        map_(std::make_shared<TimeCacheMap>("storm", Options(), nullptr,
                                            clock_.NowUs())) {
    reaper_.Add(map_);
  }

  static NamespaceOptions Options() {
    NamespaceOptions options = WithBuckets(2'000, 3);
    options.num_shards = 4;
    options.sliding = GetParam().sliding;
    options.max_entries = GetParam().max_entries;
    options.limit_policy = LimitPolicy::kEvictOldest;
    options.retention_bytes = int64_t{1} << 30;
    return options;
  }

  void Work(int thread, Diary* diary);
  void Write(const std::vector<Operation>& ops, Diary* diary);
  void Look(std::minstd_rand& random, const std::string& key);
  void Administrate(std::minstd_rand& random);
  void PassTime();

  ManualClock manual_;
  SystemClock system_;
  const Clock& clock_;
  Reaper reaper_;
  std::shared_ptr<TimeCacheMap> map_;
  std::atomic<bool> working_{true};
};

Operation RandomWrite(std::minstd_rand& random, absl::string_view key,
                      absl::string_view value) {
  const bool removes = random() % 5 == 0;
  Operation op = removes ? Operation::Remove(key) : Operation::Put(key, value);
  op.return_previous = true;
  if (!removes && random() % 4 == 0) {
    op = op.WithTtl(kMinTtlUs + static_cast<int64_t>(random() % 20'000));
  }
  if (!removes) op.condition = static_cast<Condition>(random() % 3);
  return op;
}

void ConcurrencyTest::Work(int thread, Diary* diary) {
  std::minstd_rand random(thread + 1);
  // What the writes view.
  std::deque<std::string> texts;
  std::vector<Operation> writes;
  for (int i = 0; i < kOperations; ++i) {
    const std::string key = absl::StrCat("key", random() % kConcurrentKeys);
    const uint64_t what = random() % 1'000;
    if (what < 600) {
      const std::string& written = texts.emplace_back(key);
      writes.push_back(
          RandomWrite(random, written,
                      texts.emplace_back(absl::StrCat("t", thread, "-", i))));
      if (writes.size() < GetParam().batch) continue;
      Write(writes, diary);
      writes.clear();
      texts.clear();
    } else if (what < 997) {
      Look(random, key);
    } else {
      Administrate(random);
    }
  }
}

void ConcurrencyTest::Write(const std::vector<Operation>& ops, Diary* diary) {
  std::vector<Result> results(ops.size());
  if (ops.size() == 1) {
    map_->Apply(ops[0], clock_.NowUs(), results.data());
  } else {
    map_->ApplyBatch(ops, clock_.NowUs(), absl::MakeSpan(results));
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    const Result& result = results[i];
    if (!result.status.ok()) {
      EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition)
          << result.status;
      continue;
    }
    EXPECT_EQ(result.found, result.has_entry);
    const bool removes = ops[i].kind == OpKind::kRemove;
    if (!removes) diary->put.emplace_back(ops[i].value);
    if (result.has_entry) {
      (removes ? diary->removed : diary->overwritten)
          .push_back(result.entry.value);
    }
  }
}

void ConcurrencyTest::Look(std::minstd_rand& random, const std::string& key) {
  const uint64_t what = random() % 10;
  Operation op = Operation::Get(key);
  if (what < 2) op = Operation::Touch(key);
  if (what == 2) op = Operation::Contains(key);
  op.touch = what == 3;
  const int64_t now_us = clock_.NowUs();
  const Result result = map_->Apply(op, now_us);
  EXPECT_TRUE(result.status.ok()) << result.status;
  if (result.has_entry) {
    EXPECT_GT(result.entry.deadline_us + 2'000, now_us) << "dead by the clock";
  }
}

void ConcurrencyTest::Administrate(std::minstd_rand& random) {
  switch (random() % 5) {
    case 0:
      map_->Rotate(clock_.NowUs());
      break;
    case 1:
      EXPECT_LE(map_->GetSize(clock_.NowUs()).entries, kConcurrentKeys);
      break;
    case 2: {
      NamespaceOptions options = Options();
      options.num_buckets = 2 + static_cast<int>(random() % 9);
      map_->Update(options, clock_.NowUs());
      break;
    }
    case 3: {
      std::map<std::string, int> visits;
      ScanPosition place;
      while (map_->Scan(
          "", clock_.NowUs(), 10, 1'000, &place,
          [&](const EntryView& entry) { ++visits[std::string(entry.key)]; })) {
      }
      for (const auto& [key, count] : visits) EXPECT_EQ(count, 1) << key;
      break;
    }
    default:
      EXPECT_GE(map_->GetStatistics(clock_.NowUs()).memory_bytes, 0);
  }
}

// With the manual clock, time passes as fast as the reaper can follow.
void ConcurrencyTest::PassTime() {
  std::minstd_rand random(99);
  while (GetParam().manual_clock && working_) {
    manual_.AdvanceBy(static_cast<int64_t>(random() % 300));
    reaper_.Flush();
  }
}

TEST_P(ConcurrencyTest, EveryPutEndsInExactlyOneWay) {
  Watcher one(map_.get(), clock_.NowUs());
  Watcher two(map_.get(), clock_.NowUs());
  std::vector<Diary> diaries(kThreads);
  std::vector<std::thread> threads;
  std::thread time([this] { PassTime(); });
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i, &diaries] { Work(i, &diaries[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  working_ = false;
  time.join();

  // At rest: all that has died by now is published, all else lives.
  reaper_.Remove(map_.get());
  const int64_t now_us = clock_.NowUs();
  map_->Advance(now_us);
  while (map_->Sweep(now_us, 1'000)) {
  }
  map_->RefreshWatermark(now_us);
  const std::vector<DeliveredEvent> told = one.Finish();
  const std::vector<DeliveredEvent> told_two = two.Finish();
  EXPECT_EQ(one.lost() + two.lost(), 0u);
  ASSERT_EQ(told.size(), told_two.size());

  std::map<std::string, int> ends;
  for (const Diary& diary : diaries) {
    for (const std::string& value : diary.put) ends.emplace(value, 0);
  }
  const size_t puts = ends.size();
  for (const Diary& diary : diaries) {
    for (const std::string& value : diary.overwritten) ++ends[value];
    for (const std::string& value : diary.removed) ++ends[value];
  }
  int64_t latest_us = INT64_MIN;
  for (size_t i = 0; i < told.size(); ++i) {
    ++ends[told[i].value];
    EXPECT_EQ(told[i].version, told_two[i].version);
    EXPECT_GE(told[i].death_us, latest_us) << "out of order";
    latest_us = told[i].death_us;
    if (told[i].cause == Cause::kExpired) {
      EXPECT_GE(told[i].death_us, told[i].deadline_us) << "died early";
    }
  }
  ScanPosition place;
  int64_t live = 0;
  while (map_->Scan("", now_us, 1'000, 1 << 20, &place,
                    [&](const EntryView& entry) {
                      ++live;
                      ++ends[std::string(entry.value)];
                    })) {
  }
  EXPECT_EQ(map_->GetSize(now_us).entries, live);
  EXPECT_EQ(ends.size(), puts) << "a value that nobody put";
  for (const auto& [value, count] : ends) {
    EXPECT_EQ(count, 1) << value << " ended " << count << " times";
  }
  EXPECT_GT(told.size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Storms, ConcurrencyTest,
    testing::Values(StormOptions{"ManualClock"},
                    StormOptions{"ManualClockEvicting", true, 20},
                    StormOptions{"ManualClockSliding", true, 0, true},
                    StormOptions{"ManualClockBatches", true, 0, false, 60},
                    StormOptions{"ManualClockEvictingBatches", true, 20, false,
                                 60},
                    StormOptions{"SystemClock", false},
                    StormOptions{"SystemClockEvicting", false, 20}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace timecache::server
