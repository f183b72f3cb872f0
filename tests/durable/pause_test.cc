// Maps for which time stands still while there is no server.

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"
#include "tests/support/engine/dice.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

class PauseTest : public DurableStoreTest {
 protected:
  void SetUp() override {
    NamespaceOptions options = DurableOptions();
    options.restart_policy = RestartPolicy::kPause;
    ASSERT_TRUE(store_.Open().ok());
    ASSERT_TRUE(store_.Create("a", options).ok());
  }
  // The time until now is kept by the next write, too.
  void AdvanceBy(int64_t step_us) {
    store_.AdvanceBy(step_us);
    ASSERT_TRUE(store_.Put("a", "time", "").status.ok());
  }
  void Restart(int64_t downtime_us) {
    LosePower();
    store_.clock().AdvanceBy(downtime_us);
    Reopen();
  }
  int64_t DeadlineOf(const std::string& key) {
    const Result get = store_.Execute("a", Operation::Get(key));
    return get.found ? get.entry.deadline_us : 0;
  }
};

TEST_F(PauseTest, AnEntryLivesOnForWhatItHadLeft) {
  const Result put = store_.Put("a", "key", "value");
  AdvanceBy(10 * kSecond);
  Restart(3600 * kSecond);
  const Result get = store_.Execute("a", Operation::Get("key"));
  EXPECT_EQ(get.entry.value, "value");
  EXPECT_EQ(get.entry.version, put.version);
  EXPECT_EQ(get.entry.put_us, kStartUs + 3600 * kSecond);
  EXPECT_EQ(get.entry.create_us, kStartUs + 3600 * kSecond);
  EXPECT_EQ(get.entry.deadline_us, kStartUs + 3660 * kSecond);
  store_.AdvanceBy(50 * kSecond - 1);
  EXPECT_EQ(store_.Get("a", "key"), "value");
  store_.AdvanceBy(2 * kSecond);
  EXPECT_EQ(store_.Get("a", "key"), "(none)");
  EXPECT_TRUE(Await([&] { return ReadEarliest().events.size() == 1; }));
  const Reading reading = ReadEarliest();
  EXPECT_EQ(reading.events[0].version, put.version);
  EXPECT_GE(reading.events[0].death_us, kStartUs + 3660 * kSecond);
}

TEST_F(PauseTest, AllTimesMoveAndAnOwnTtlStays) {
  store_.Execute("a", Operation::Put("own", "v").WithTtl(50 * kSecond));
  store_.Execute(
      "a", Operation::Put("due", "v").ExpiringAt(kStartUs + 45 * kSecond));
  AdvanceBy(10 * kSecond);
  store_.Execute("a", Operation::Touch("own"));
  AdvanceBy(kSecond);
  Restart(3600 * kSecond);
  const Entry own = store_.Execute("a", Operation::Get("own")).entry;
  EXPECT_EQ(own.create_us, kStartUs + 3600 * kSecond);
  EXPECT_EQ(own.put_us, kStartUs + 3610 * kSecond);
  EXPECT_EQ(own.deadline_us, kStartUs + 3660 * kSecond);
  EXPECT_EQ(own.own_ttl_us, 50 * kSecond);
  EXPECT_EQ(DeadlineOf("due"), kStartUs + 3645 * kSecond);
}

TEST_F(PauseTest, TheTimeOfTheRecoveryDoesNotCountEither) {
  store_.Put("a", "key", "value");
  AdvanceBy(10 * kSecond);
  bool recovering = false;
  store_.recovery_options().progress = [&](const RecoveryProgress&) {
    if (!recovering) store_.clock().AdvanceBy(3600 * kSecond);
    recovering = true;
  };
  Restart(0);
  ASSERT_TRUE(recovering);
  EXPECT_EQ(DeadlineOf("key"), kStartUs + 3660 * kSecond);
}

TEST_F(PauseTest, EachRestartIsSkippedOnce) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  AdvanceBy(10 * kSecond);
  for (int64_t i = 1; i <= 3; ++i) {
    Restart(3600 * kSecond);
    EXPECT_EQ(DeadlineOf("key"), kStartUs + 60 * kSecond + i * 3600 * kSecond);
    Restart(0);
    EXPECT_EQ(DeadlineOf("key"), kStartUs + 60 * kSecond + i * 3600 * kSecond);
  }
  store_.AdvanceBy(60 * kSecond);
  EXPECT_EQ(store_.Get("a", "key"), "(none)");
}

// A clock that was set back is waited for: nothing moves.
TEST_F(PauseTest, TimeThatGoesBackIsNotSkipped) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  AdvanceBy(10 * kSecond);
  Restart(-5 * kSecond);
  EXPECT_EQ(DeadlineOf("key"), kStartUs + 60 * kSecond);
}

TEST_F(PauseTest, WhatDiedBeforeTheServerWentDownDiedThen) {
  ASSERT_TRUE(store_.Put("a", "early", "value").status.ok());
  AdvanceBy(30 * kSecond);
  ASSERT_TRUE(store_.Put("a", "late", "value").status.ok());
  AdvanceBy(40 * kSecond);
  Restart(1800 * kSecond);
  store_.AdvanceBy(0);
  ASSERT_TRUE(Await([&] { return ReadEarliest().events.size() == 1; }));
  EXPECT_LT(ReadEarliest().events[0].death_us, kStartUs + 70 * kSecond);
  EXPECT_EQ(DeadlineOf("late"), kStartUs + 1890 * kSecond);
}

TEST_F(PauseTest, AWatcherGoesOnWhereItStood) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(store_.Put("a", absl::StrCat("early", i), "").status.ok());
  }
  AdvanceBy(30 * kSecond);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(store_.Put("a", absl::StrCat("late", i), "").status.ok());
  }
  AdvanceBy(40 * kSecond);
  ASSERT_TRUE(Await([&] { return ReadEarliest().events.size() == 5; }));
  const LogPoint point = {store_.map("a")->origin().log_id,
                          store_.map("a")->first_event() + 3, INT64_MIN};
  Restart(1800 * kSecond);
  store_.AdvanceBy(30 * kSecond);
  ASSERT_TRUE(Await([&] { return ReadEarliest().events.size() == 10; }));
  const auto cursor =
      store_.map("a")->Resume(point, store_.clock().NowUs(), [] {});
  ASSERT_TRUE(cursor.ok());
  const Reading reading = ReadAll(cursor->get());
  EXPECT_EQ(reading.lost, 0u);
  EXPECT_EQ(reading.events.size(), 7u);
}

TEST_F(PauseTest, OnlyMapsThatAskForItArePaused) {
  ASSERT_TRUE(store_.Create("f").ok());
  ASSERT_TRUE(store_.Put("f", "key", "value").status.ok());
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  Restart(3600 * kSecond);
  EXPECT_EQ(store_.Get("f", "key"), "(none)");
  EXPECT_EQ(store_.Get("a", "key"), "value");
}

TEST_F(PauseTest, AMapThatIsNotDurableCannotBePaused) {
  NamespaceOptions options = DurableOptions(NamespaceDurability::kMemory);
  options.restart_policy = RestartPolicy::kPause;
  const absl::Status status = store_.Create("m", options);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

// Of a shard, records of every layout, live and dead, in large segments.
TEST_F(PauseTest, EveryRecordOfAnyLayoutMoves) {
  Dice dice(11);
  std::map<std::string, int64_t> deadlines;
  int64_t skipped_us = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 100; ++i) {
      const std::string key = absl::StrCat("key", dice.Draw(1, 150));
      Operation put = Operation::Put(key, "");
      const std::string value(dice.Chance(20) ? 300'000 : dice.Index(300), 'v');
      put.value = value;
      if (dice.Chance(300)) {
        put = put.WithTtl(dice.Draw(3600, 80'000) * kSecond);
      }
      const Result result = store_.Execute("a", put);
      ASSERT_TRUE(result.status.ok()) << result.status;
      deadlines[key] =
          store_.clock().NowUs() + (put.has_ttl ? put.ttl_us : 60 * kSecond);
      if (dice.Chance(100)) {
        ASSERT_TRUE(store_.Execute("a", Operation::Remove(key)).status.ok());
        deadlines.erase(key);
      }
    }
    AdvanceBy(dice.Draw(1, 20) * kSecond);
    const int64_t downtime_us = dice.Draw(0, 100'000) * kSecond;
    Restart(downtime_us);
    skipped_us += downtime_us;
    for (auto it = deadlines.begin(); it != deadlines.end();) {
      it->second += downtime_us;
      const int64_t deadline_us = DeadlineOf(it->first);
      if (deadline_us == 0) {
        EXPECT_LE(it->second, store_.clock().NowUs()) << it->first;
        it = deadlines.erase(it);
      } else {
        EXPECT_EQ(deadline_us, it->second) << it->first;
        ++it;
      }
    }
  }
  EXPECT_GT(skipped_us, 0);
  EXPECT_FALSE(deadlines.empty());
}

// What a checkpoint writes again is written as it was moved.
TEST_F(PauseTest, ACheckpointBehindAPauseKeepsIt) {
  store_.checkpointer_options().min_journal_bytes = 1;
  store_.checkpointer_options().factor = 0;
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  AdvanceBy(10 * kSecond);
  Restart(3600 * kSecond);
  EXPECT_TRUE(Await([&] {
    store_.checkpointer().Look();
    return store_.checkpointer().GetStatistics().rounds > 0;
  }));
  Restart(3600 * kSecond);
  EXPECT_EQ(DeadlineOf("key"), kStartUs + 7260 * kSecond);
}

// Lives that are shorter than a tick are lived, too.
TEST_F(PauseTest, ManyRestartsDoNotKeepAnEntryAlive) {
  constexpr int64_t kStep = kSecond / 100;
  for (const int64_t life_us : {kSecond / 20, kSecond / 4, 3 * kSecond / 4}) {
    Operation put = Operation::Put("key", "value");
    put.has_ttl = true;
    put.ttl_us = 5 * kSecond;
    ASSERT_TRUE(store_.Execute("a", put).status.ok());
    int64_t lived_us = 0;
    while (DeadlineOf("key") != 0 && lived_us < 10 * kSecond) {
      Restart(kSecond);
      int64_t due_us = store_.map("a")->NextDueUs(store_.clock().NowUs());
      for (int64_t us = 0; us < life_us; us += kStep) {
        store_.clock().AdvanceBy(kStep);
        if (store_.clock().NowUs() < due_us) continue;
        store_.AdvanceBy(0);
        due_us = store_.map("a")->NextDueUs(store_.clock().NowUs());
      }
      lived_us += life_us;
    }
    EXPECT_GE(lived_us, 5 * kSecond - life_us);
    EXPECT_LE(lived_us, 8 * kSecond) << life_us;
  }
}

// So that the journal knows when the server went down, also of an idle map.
TEST_F(PauseTest, APausedMapRecordsTheTimeAtLeastOnceASecondWhileItHasEntries) {
  const int64_t now_us = store_.clock().NowUs();
  TimeCacheMap* const map = store_.map("a").get();
  EXPECT_EQ(map->NextDueUs(now_us), kNeverUs);
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  EXPECT_LE(map->NextDueUs(now_us), now_us + TimeCacheMap::kPauseTickUs);
  ASSERT_TRUE(store_.Create("f").ok());
  ASSERT_TRUE(store_.Put("f", "key", "value").status.ok());
  EXPECT_GE(store_.map("f")->NextDueUs(now_us), now_us + 60 * kSecond);
}

}  // namespace
}  // namespace timecache::server
