// Everything at once, by chance: writers that keep accounts, and crashes.

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"
#include "tests/support/effort.h"
#include "tests/support/engine/dice.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

// What one writer knows of its keys, which no other one writes.
struct Expected {
  // The last answer: the version, or 0 after a removal.
  uint64_t version = 0;
  std::string value;
  // Whether the last operation was not answered before the crash: then the
  // entry may be as before it or after it.
  bool unanswered = false;
  std::string unanswered_value;
};

class CrashTest : public DurableStoreTest,
                  public ::testing::WithParamInterface<NamespaceDurability> {
 protected:
  static constexpr int kWriters = 4;
  static constexpr int kKeys = 50;

  struct Writer {
    std::map<std::string, Expected> keys;
    // That were answered, ever: no version dies twice or is forgotten.
    std::set<uint64_t> put;
    std::set<uint64_t> ended;  // removed or replaced, maybe
  };

  void Write(int writer, uint64_t seed, const std::atomic<bool>* stop) {
    Dice dice(seed);
    Writer& mine = writers_[writer];
    while (!*stop) {
      const std::string key = absl::StrCat(writer, "-", dice.Draw(1, kKeys));
      const std::string value(dice.Index(400), 'v');
      const bool remove = dice.Chance(200);
      Expected& expected = mine.keys[key];
      if (expected.version != 0) mine.ended.insert(expected.version);
      expected.unanswered = true;
      expected.unanswered_value = remove ? "(none)" : value;
      const Result result = store_.Execute(
          "a", remove ? Operation::Remove(key) : Operation::Put(key, value));
      // The crash may come between the two.
      if (*stop) return;
      ASSERT_TRUE(result.status.ok()) << result.status;
      expected = {result.version, value, false, ""};
      if (!remove) mine.put.insert(result.version);
    }
  }

  // All is as it was answered.
  void Check() {
    for (int w = 0; w < kWriters; ++w) {
      for (auto& [key, expected] : writers_[w].keys) {
        const Result got = store_.Execute("a", Operation::Get(key));
        const std::string value = got.found ? got.entry.value : "(none)";
        const bool as_answered =
            expected.version == 0
                ? !got.found
                : got.found && got.entry.version == expected.version;
        const bool died = expected.version != 0 && !got.found &&
                          delivered_.count(expected.version) > 0;
        // Or what was put without an answer was killed at once.
        const bool as_unanswered =
            expected.unanswered &&
            (value == expected.unanswered_value ||
             (!got.found && last_delivered_[key] > expected.version));
        EXPECT_TRUE(as_answered || died || as_unanswered)
            << key << ": version " << expected.version << " is " << value;
        // From now on that is what is.
        expected = {got.found ? got.entry.version : 0, value, false, ""};
      }
    }
  }

  void Read() {
    const Reading reading = ReadFrom(point_);
    EXPECT_EQ(reading.lost, 0u);
    for (const DeliveredEvent& event : reading.events) {
      EXPECT_TRUE(delivered_.insert(event.version).second)
          << event.key << " died twice";
      last_delivered_[event.key] = event.version;
    }
    point_.next_event += reading.events.size();
    point_.watermark_us = reading.watermark_us;
  }

  std::array<Writer, kWriters> writers_;
  std::set<uint64_t> delivered_;
  std::map<std::string, uint64_t> last_delivered_;  // versions by key
  LogPoint point_;
};

TEST_P(CrashTest, WhatWasAnsweredIsSoAfterEachCrash) {
  constexpr int kCrashes = 30;
  NamespaceOptions options = DurableOptions(GetParam());
  options.ttl_us = 4 * kSecond;
  options.num_buckets = 5;
  // Longer than from one Read to the next.
  options.retention_us = 3 * kSecond;
  store_.checkpointer_options().min_journal_bytes = 32 << 10;
  store_.checkpointer_options().factor = 1;
  store_.checkpointer_options().step_entries = 5;
  Reopen();
  ASSERT_TRUE(store_.registry().Delete("a").ok());
  ASSERT_TRUE(store_.Create("a", options).ok());
  point_ = {store_.map("a")->origin().log_id, store_.map("a")->first_event(),
            INT64_MIN};
  Dice dice(test::Seed());
  uint64_t rounds = 0;
  for (int crash = 0; crash < kCrashes && !HasFailure(); ++crash) {
    SCOPED_TRACE(absl::StrCat("crash ", crash));
    std::atomic<bool> stop = false;
    std::vector<std::thread> writers;
    for (int w = 0; w < kWriters; ++w) {
      writers.emplace_back([this, w, seed = test::Seed() + crash * 100 + w,
                            &stop] { Write(w, seed, &stop); });
    }
    for (int step = 0; step < 20; ++step) {
      const uint64_t done = store_.journal().statistics().appends;
      EXPECT_TRUE(Await(
          [&] { return store_.journal().statistics().appends > done + 20; }));
      store_.checkpointer().Look();
      if (dice.Chance(500)) store_.AdvanceBy(dice.Draw(0, kSecond));
      if (dice.Chance(50)) store_.map("a")->Rotate(store_.clock().NowUs());
      Read();
    }
    rounds += store_.checkpointer().GetStatistics().rounds;
    // The disk as it is now; what is answered from here on does not count.
    stop = true;
    if (GetParam() == NamespaceDurability::kSync) {
      store_.Freeze(
          dice.Chance(500) ? Unsynced::kDropped : Unsynced::kKeptInPart,
          &random_);
    } else {
      store_.Freeze();
    }
    for (std::thread& writer : writers) writer.join();
    store_.Thaw();
    Reopen();
    if (HasFatalFailure()) return;
    store_.AdvanceBy(0);
    Read();
    Check();
  }
  // All that was put ended in one of three ways.
  store_.AdvanceBy(60 * kSecond);
  Read();
  for (const Writer& writer : writers_) {
    for (const uint64_t version : writer.put) {
      EXPECT_TRUE(delivered_.count(version) + writer.ended.count(version) > 0)
          << version << " is forgotten";
    }
  }
  EXPECT_GT(delivered_.size(), 100u);
  EXPECT_GT(rounds, 5u);
}

INSTANTIATE_TEST_SUITE_P(Durabilities, CrashTest,
                         ::testing::Values(NamespaceDurability::kAsync,
                                           NamespaceDurability::kSync),
                         [](const auto& info) {
                           return info.param == NamespaceDurability::kSync
                                      ? "Sync"
                                      : "Async";
                         });

}  // namespace
}  // namespace timecache::server
