// A backup that is restored goes on by itself: what it delivers is never taken
// for what the server before it delivers behind the backup.

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/reason.h"
#include "server/engine/local_readers.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::timecache::test::Await;

class RestoredStoreTest : public DurableStoreTest {
 protected:
  uint64_t Put(const std::string& key, const std::string& value = "v") {
    const Result result = store_.Put("a", key, value);
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.version;
  }
  void Restore(const std::string& archive) {
    const absl::Status status = store_.Restore(archive);
    ASSERT_TRUE(status.ok()) << status;
    Reopen();
  }
  LogPoint EndPoint() { return store_.End("a"); }
};

TEST_F(RestoredStoreTest, APointBeforeTheBackupIsGoodAndALaterOneIsRefused) {
  Die("one");
  const LogPoint before = EndPoint();
  Die("two");
  const LogPoint at = EndPoint();
  Put("three");
  const std::string archive = store_.BackUp();
  // It goes on, and delivers what the other will never have.
  Die("other");
  Die("others");
  const LogPoint later = EndPoint();
  ASSERT_EQ(From(before).size(), 4u);

  Restore(archive);
  store_.AdvanceBy(0);
  EXPECT_TRUE(Await([&] { return From(at).size() == 1; }));
  EXPECT_THAT(From(before), ElementsAre("two=v", "three=v"));
  EXPECT_THAT(From(at), ElementsAre("three=v"));
  EXPECT_THAT(From(later), ElementsAre(ReasonName(Reason::kLogChanged)));
  // Also once as many events have been delivered here.
  Die("four");
  Die("five");
  Die("six");
  EXPECT_THAT(From(later), ElementsAre(ReasonName(Reason::kLogChanged)));
  EXPECT_THAT(From(before), ElementsAre("two=v", "three=v", testing::_,
                                        testing::_, testing::_));
  const LogPoint own = EndPoint();

  // All of that is so after a restart.
  store_.Crash();
  Reopen();
  EXPECT_THAT(From(later), ElementsAre(ReasonName(Reason::kLogChanged)));
  EXPECT_EQ(From(before).size(), 5u);
  EXPECT_THAT(From(own), IsEmpty());
}

// It has heard that nothing died until a time that the backup did not reach:
// here something may.
TEST_F(RestoredStoreTest, APointBehindTheBackupsTimeIsRefused) {
  Die("one");
  const LogPoint before = EndPoint();
  Put("removed");
  const std::string archive = store_.BackUp();
  ASSERT_TRUE(store_.Execute("a", Operation::Remove("removed")).status.ok());
  store_.AdvanceBy(62 * kSecond);
  store_.map("a")->RefreshWatermark(store_.clock().NowUs());
  EXPECT_TRUE(
      Await([&] { return EndPoint().watermark_us > before.watermark_us; }));
  const LogPoint later = EndPoint();
  ASSERT_EQ(later.next_event, before.next_event);
  Restore(archive);
  EXPECT_THAT(From(later), ElementsAre(ReasonName(Reason::kLogChanged)));
  store_.AdvanceBy(0);
  EXPECT_TRUE(Await([&] { return From(before).size() == 1; }));
  EXPECT_THAT(From(before), ElementsAre("removed=v"));
}

TEST_F(RestoredStoreTest, TwoRestoresOfABackupAreTwoLogs) {
  Die("one");
  const std::string archive = store_.BackUp();
  Restore(archive);
  Die("two");
  const LogPoint first = EndPoint();
  Restore(archive);
  Die("other");
  EXPECT_THAT(From(first), ElementsAre(ReasonName(Reason::kLogChanged)));
  // And a restore of the second one's backup.
  const LogPoint second = EndPoint();
  const std::string again = store_.BackUp();
  Die("third");
  const LogPoint behind = EndPoint();
  Restore(again);
  EXPECT_THAT(From(second), IsEmpty());
  EXPECT_THAT(From(behind), ElementsAre(ReasonName(Reason::kLogChanged)));
}

// Here the clock stands still: versions do not come from it.
TEST_F(RestoredStoreTest, NoVersionIsGivenTwice) {
  Put("key");
  const std::string archive = store_.BackUp();
  std::set<uint64_t> given;
  uint64_t last = 0;
  for (int i = 0; i < 1'000; ++i) given.insert(last = Put(absl::StrCat(i % 9)));
  Restore(archive);
  for (int i = 0; i < 1'000; ++i) {
    const uint64_t version = Put(absl::StrCat(i % 9));
    EXPECT_TRUE(given.insert(version).second) << version;
    EXPECT_GT(version, last);
  }
}

TEST_F(RestoredStoreTest, WhatACheckpointDropsIsNotForgotten) {
  store_.checkpointer_options().min_journal_bytes = 64 << 10;
  Die("one");
  const std::string archive = store_.BackUp();
  Die("two");
  const LogPoint later = EndPoint();
  Restore(archive);
  Update("a", [](NamespaceOptions* to) {
    to->retention_us = 0;
    return absl::OkStatus();
  });
  const LogPoint own = EndPoint();
  for (int i = 0; i < 2'000; ++i) Put("key", std::string(200, 'v'));
  EXPECT_TRUE(Await([&] {
    store_.AdvanceBy(kSecond / 10);
    store_.checkpointer().Look();
    return store_.checkpointer().GetStatistics().rounds > 0;
  }));
  ASSERT_GT(store_.journal().First(0) + store_.journal().First(1) +
                store_.journal().First(2) + store_.journal().First(3),
            0u);
  store_.Crash();
  Reopen();
  EXPECT_THAT(From(later), ElementsAre(ReasonName(Reason::kLogChanged)));
  EXPECT_EQ(EndPoint().log_id, own.log_id);
}

TEST_F(RestoredStoreTest, ACrashBeforeTheMarkIsGoneMakesJustAnotherLog) {
  Die("one");
  const std::string archive = store_.BackUp();
  Die("two");
  const LogPoint later = EndPoint();
  store_.CrashBeforeNoting();
  Restore(archive);
  store_.Crash();
  Reopen();
  EXPECT_THAT(From(later), ElementsAre(ReasonName(Reason::kLogChanged)));
  Put("key", "value");
  EXPECT_EQ(store_.Get("a", "key"), "value");
}

// By kill -9, or by a loss of power.
TEST_F(RestoredStoreTest, AStartMayEndAtAnyChangeOfTheDisk) {
  Die("one");
  const LogPoint before = EndPoint();
  const std::string archive = store_.BackUp();
  Die("two");
  const LogPoint later = EndPoint();
  ASSERT_TRUE(store_.Restore(archive).ok());
  const std::unique_ptr<MemoryFileSystem> restored = store_.files().Copy();
  store_.options().on_failure = [](const std::string&) {};
  int kills = 0;
  for (bool ended = true; ended; ++kills) {
    for (const bool power : {true, false}) {
      SCOPED_TRACE(absl::StrCat(kills, " changes, power ", power));
      store_.GoOnWith(restored->Copy());
      store_.files().KillAfter(kills);
      ended = !store_.Open().ok();
      if (power) {
        store_.Crash();
      } else {
        store_.LosePower(Unsynced::kKeptInPart, &random_);
      }
      Reopen();
      ASSERT_THAT(From(later), ElementsAre(ReasonName(Reason::kLogChanged)));
      ASSERT_THAT(From(before), IsEmpty());
    }
  }
  EXPECT_GT(kills, 5);
}

// The mark of a copy is gone by then.
TEST_F(RestoredStoreTest, APowerLossDoesNotTakeTheOtherLogOfAnAsyncMap) {
  store_.options().sync_interval = std::chrono::hours(1);
  Reopen();
  ASSERT_TRUE(
      store_.Create("async", DurableOptions(NamespaceDurability::kAsync)).ok());
  const std::string archive = store_.BackUp();
  Restore(archive);
  const LogFork fork = store_.map("async")->origin().fork;
  EXPECT_NE(fork.id, 0u);
  // It delivers something, which the disk has.
  ASSERT_TRUE(store_.Put("async", "key", "v").status.ok());
  store_.AdvanceBy(62 * kSecond);
  EXPECT_TRUE(
      Await([&] { return store_.End("async").next_event > fork.next_event; }));
  Put("synced");
  store_.LosePower(Unsynced::kDropped, &random_);
  Reopen();
  // Which has lost something itself, and is another one again.
  EXPECT_EQ(store_.map("async")->origin().fork.from_id, fork.id);
}

TEST_F(RestoredStoreTest, ASettlementOfTheOtherLogSettlesNothing) {
  const auto take = [&](EventReader* reader) {
    std::vector<Delivery> taken;
    EXPECT_TRUE(Await([&] {
      taken = reader->Read(store_.clock().NowUs(), 10, 1 << 20).deliveries;
      return !taken.empty();
    }));
    return taken;
  };
  JoinGroup();
  Put("key");
  const std::string archive = store_.BackUp();
  store_.AdvanceBy(62 * kSecond);
  auto reader = JoinGroup();
  const std::vector<Delivery> old = take(reader.get());
  ASSERT_EQ(old.size(), 1u);

  reader = nullptr;
  Restore(archive);
  store_.AdvanceBy(0);
  reader = JoinGroup();
  const std::vector<Delivery> own = take(reader.get());
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].event_id, old[0].event_id);
  EXPECT_EQ(ReasonOf(Settle("a", old[0])), Reason::kStaleAttempt);
  EXPECT_TRUE(Settle("a", own[0]).ok());
}

}  // namespace
}  // namespace timecache::server
