// What many threads tell of a map's groups makes the same groups again.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/map/map_replay.h"
#include "tests/support/engine/crash_map.h"
#include "tests/support/engine/group_harness.h"

namespace timecache::server {
namespace {

using Start = ExpiryLog::Start;

// Keeps all that it is told, in the order in which it came.
class OrderedSink final : public MapChangeSink {
 public:
  using Item = std::variant<KeptChange, Tick, KeptGroupChange>;

  void Add(int shard, const Change& change) override {
    Keep(KeptChange(shard, change));
  }
  void AddTick(const Tick& tick) override { Keep(tick); }
  void AddGroup(const GroupChange& change) override {
    Keep(KeptGroupChange(change));
  }

  std::optional<Tick> last_tick() const {
    absl::MutexLock lock(&mu_);
    return last_tick_;
  }
  std::vector<Item> Take() {
    absl::MutexLock lock(&mu_);
    return std::exchange(items_, {});
  }

 private:
  void Keep(Item item) {
    absl::MutexLock lock(&mu_);
    if (const Tick* const tick = std::get_if<Tick>(&item)) last_tick_ = *tick;
    items_.push_back(std::move(item));
  }

  mutable absl::Mutex mu_;
  std::vector<Item> items_ ABSL_GUARDED_BY(mu_);
  std::optional<Tick> last_tick_ ABSL_GUARDED_BY(mu_);
};

class GroupsReplayThreadsTest : public ::testing::Test {
 protected:
  GroupsReplayThreadsTest()
      : options_(CrashOptions(kSecond, 3)),
        map_("map", options_, nullptr, kStartUs, Origin()) {
    map_.SetSink(&sink_);
  }

  static TimeCacheMap::Origin Origin() {
    return {.journaled = true, .hash_seed = 7, .log_id = 7};
  }

  // Entries are put and die, and what died is delivered: until so many are
  // settled.
  void Drive(uint64_t settled) {
    const auto group = *map_.groups().Find("one");
    for (int round = 0; group->GetStatistics().acked < settled; ++round) {
      for (int i = 0; i < 20; ++i) {
        map_.Apply(Operation::Put(absl::StrCat("key", i, "-", round % 7), "v"),
                   now_us_);
      }
      now_us_ += kSecond / 4;
      map_.Advance(now_us_);
      map_.Permit(*sink_.last_tick());
      while (map_.Sweep(now_us_, 16)) {
      }
    }
    done_ = true;
  }

  // Takes and settles as a member of the group, and leaves now and then.
  void Work(const std::string& name, int seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const auto group = *map_.groups().Find(name);
    while (!done_) {
      const auto member = group->Join(50, [] {});
      for (int turn = 0; turn < 20 && !done_; ++turn) {
        std::vector<Settlement> settlements;
        for (const Delivery& delivery :
             member->Take(now_us_, 50, 1 << 20).deliveries) {
          const uint64_t what = random() % 10;
          if (what == 0) continue;
          settlements.push_back(SettlementOf(
              delivery,
              what < 7
                  ? SettleAction::kAck
                  : (what < 9 ? SettleAction::kNack : SettleAction::kPutBack),
              what == 7 ? kSecond : 0));
        }
        std::vector<SettleResult> results(settlements.size());
        EXPECT_TRUE(
            map_.groups()
                .Settle(name, settlements, now_us_, absl::MakeSpan(results))
                .ok());
      }
    }
  }

  // Groups come and go, and are told again.
  void Administer() {
    while (!done_) {
      EXPECT_TRUE(map_.groups()
                      .Create("other", GroupOptions(), Start::kNow, now_us_)
                      .ok());
      ConsumerGroups::WalkPosition place;
      while (map_.groups().AppendAgain(50, 1 << 20, &place)) {
      }
      EXPECT_TRUE(map_.groups().Delete("other").ok());
    }
  }

  // Each unsettled event, with the attempts that have ended.
  using Kept = std::tuple<std::string, uint64_t, int, std::string>;
  static std::vector<Kept> Describe(TimeCacheMap* map) {
    OrderedSink sink;
    map->groups().SetSink(&sink);
    ConsumerGroups::WalkPosition place;
    while (map->groups().AppendAgain(1'000, 1 << 20, &place)) {
    }
    map->groups().SetSink(nullptr);
    std::vector<Kept> all;
    for (const auto& item : sink.Take()) {
      const GroupChange change = std::get<KeptGroupChange>(item).change();
      if (change.kind != GroupChange::Kind::kKept) continue;
      all.emplace_back(change.name, change.first, change.attempt,
                       change.event.key);
    }
    return all;
  }

  const NamespaceOptions options_;
  OrderedSink sink_;
  TimeCacheMap map_;
  std::atomic<int64_t> now_us_{kStartUs};
  std::atomic<bool> done_{false};
};

TEST_F(GroupsReplayThreadsTest, WhatManyThreadsTellMakesTheSameGroups) {
  GroupOptions options;
  options.ack_timeout_us = kSecond;
  for (const char* const name : {"one", "two"}) {
    ASSERT_TRUE(map_.groups().Create(name, options, Start::kNow, now_us_).ok());
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] { Work(i % 2 == 0 ? "one" : "two", i); });
  }
  threads.emplace_back([this] { Administer(); });
  Drive(2'000);
  for (std::thread& thread : threads) thread.join();

  TimeCacheMap again("map", options_, nullptr, kStartUs, Origin());
  MapReplay replay(&again);
  for (const auto& item : sink_.Take()) {
    absl::Status status;
    if (const auto* const change = std::get_if<KeptChange>(&item)) {
      status = replay.Apply(change->shard(), change->change());
    } else if (const auto* const group = std::get_if<KeptGroupChange>(&item)) {
      status = replay.Apply(group->change());
    } else {
      status = replay.Apply(std::get<Tick>(item));
    }
    ASSERT_TRUE(status.ok()) << status;
  }
  replay.Finish();
  for (const char* const name : {"one", "two"}) {
    const GroupStatistics is = (*again.groups().Find(name))->GetStatistics();
    const GroupStatistics was = (*map_.groups().Find(name))->GetStatistics();
    EXPECT_GT(was.nacked, 0u);
    EXPECT_EQ(is.events, was.events);
    EXPECT_EQ(is.acked, was.acked);
    EXPECT_EQ(is.nacked, was.nacked);
    EXPECT_EQ(is.put_back, was.put_back);
    EXPECT_EQ(is.timed_out, was.timed_out);
    EXPECT_EQ(is.delivered, was.delivered);
    EXPECT_EQ(is.lost, 0u);
  }
  EXPECT_EQ(Describe(&again), Describe(&map_));
}

}  // namespace
}  // namespace timecache::server
