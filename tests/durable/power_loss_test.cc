// ASYNC maps of a machine that has lost its power: events that were delivered and
// are not in the journal are not taken for those that have their numbers now.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/reason.h"
#include "server/engine/local_readers.h"
#include "server/log/local/journal_directory.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::timecache::test::Await;

class PowerLossTest : public DurableStoreTest {
 protected:
  // Nothing is on the disk until Sync, as no map of another durability records
  // time.
  void SetUp() override {
    store_.options().sync_interval = std::chrono::hours(1);
    DurableStoreTest::SetUp();
    Delete("a");
    ASSERT_TRUE(
        store_.Create("b", DurableOptions(NamespaceDurability::kAsync)).ok());
  }
  void Sync() {
    ASSERT_TRUE(store_.Create("sync").ok());
    Delete("sync");
  }
  LogPoint End(const std::string& name = "b") { return store_.End(name); }
};

TEST_F(PowerLossTest, APointBehindWhatItTookIsRefused) {
  Die("kept", "b");
  Sync();
  const LogPoint kept = End();
  Die("taken", "b");
  const LogPoint taken = End();
  LosePower();
  Reopen();
  EXPECT_EQ(store_.report().forked, 1u);
  Die("other", "b");
  Die("another", "b");
  EXPECT_THAT(From(taken, "b"), ElementsAre(ReasonName(Reason::kLogChanged)));
  EXPECT_THAT(From(kept, "b"), ElementsAre("other=v", "another=v"));
  // Also after other restarts.
  store_.Crash();
  Reopen();
  EXPECT_EQ(store_.report().forked, 0u);
  EXPECT_THAT(From(taken, "b"), ElementsAre(ReasonName(Reason::kLogChanged)));
  EXPECT_THAT(From(kept, "b"), ElementsAre("other=v", "another=v"));
}

TEST_F(PowerLossTest, ASettlementOfAnEventThatItTookSettlesNothing) {
  std::unique_ptr<EventReader> reader = JoinGroup("b");
  Sync();
  Die("taken", "b");
  const auto taken =
      reader->Read(store_.clock().NowUs(), 10, 1 << 20).deliveries;
  ASSERT_EQ(taken.size(), 1u);
  reader = nullptr;
  LosePower();
  Reopen();
  reader = JoinGroup("b");
  Die("other", "b");
  const auto other =
      reader->Read(store_.clock().NowUs(), 10, 1 << 20).deliveries;
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].event().key, "other");
  EXPECT_EQ(ReasonOf(Settle("b", taken[0])), Reason::kStaleAttempt);
  EXPECT_TRUE(Settle("b", other[0]).ok());
}

TEST_F(PowerLossTest, ASyncMapHasLostNothing) {
  ASSERT_TRUE(store_.Create("a").ok());
  Die("event", "a");
  const LogPoint end = End("a");
  LosePower();
  Reopen();
  Die("other", "a");
  EXPECT_EQ(End("a").log_id, end.log_id);
  EXPECT_THAT(From(end, "a"), ElementsAre("other=v"));
}

// Until then it promised more.
TEST_F(PowerLossTest, AMapThatWasMadeAsyncSaysSo) {
  ASSERT_TRUE(store_.Create("a").ok());
  Update("a", [](NamespaceOptions* to) {
    to->durability = NamespaceDurability::kAsync;
    return absl::OkStatus();
  });
  Die("taken", "a");
  const LogPoint taken = End("a");
  LosePower();
  Reopen();
  Die("other", "a");
  EXPECT_THAT(From(taken, "a"), ElementsAre(ReasonName(Reason::kLogChanged)));
}

TEST_F(PowerLossTest, ACrashOfTheProcessTakesNothing) {
  Die("event", "b");
  const LogPoint end = End();
  store_.Crash();
  Reopen();
  EXPECT_EQ(End().log_id, end.log_id);
  EXPECT_THAT(From(end, "b"), IsEmpty());
}

TEST_F(PowerLossTest, AnOrderlyStopLeavesNothingToTake) {
  Die("event", "b");
  const LogPoint end = End();
  store_.Close();
  LosePower();
  Reopen();
  EXPECT_EQ(End().log_id, end.log_id);
  EXPECT_THAT(From(end, "b"), IsEmpty());
}

// As versions that noted no boot leave it: what is known stays good.
TEST_F(PowerLossTest, AJournalWithoutABootMayHaveLostSomething) {
  Die("event", "b");
  const LogPoint end = End();
  ASSERT_TRUE(
      store_.files().Remove(absl::StrCat(kTestDirectory, "/", kBootFile)).ok());
  store_.Crash();
  Reopen();
  EXPECT_EQ(store_.report().forked, 1u);
  Die("other", "b");
  EXPECT_THAT(From(end, "b"), ElementsAre("other=v"));
  store_.Crash();
  Reopen();
  EXPECT_EQ(store_.report().forked, 0u);
}

// How a start may end before it has recorded what was lost.
class EndedStartTest : public PowerLossTest {
 protected:
  // What was delivered and then lost, and a disk that has just lost it.
  void LoseAnEvent() {
    Die("kept", "b");
    Sync();
    kept_ = End();
    Die("taken", "b");
    taken_ = End();
    LosePower();
  }
  // The next start records it.
  void ExpectRefused() {
    Reopen();
    Die("other", "b");
    Die("another", "b");
    EXPECT_THAT(From(taken_, "b"),
                ElementsAre(ReasonName(Reason::kLogChanged)));
    EXPECT_THAT(From(kept_, "b"), ElementsAre("other=v", "another=v"));
  }

  LogPoint kept_;
  LogPoint taken_;
};

TEST_F(EndedStartTest, BySigterm) {
  LoseAnEvent();
  store_.recovery_options().progress_records = 1;
  store_.recovery_options().cancelled = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(store_.Open()));
  store_.Close();
  store_.recovery_options().cancelled = nullptr;
  ExpectRefused();
}

TEST_F(EndedStartTest, ByAClockThatIsRefused) {
  LoseAnEvent();
  int64_t last_us = 0;
  store_.recovery_options().check_time = [&](int64_t us) {
    last_us = us;
    return absl::FailedPreconditionError("the clock");
  };
  const auto records = [this] { return store_.journal().statistics().records; };
  EXPECT_TRUE(absl::IsFailedPrecondition(store_.Open()));
  EXPECT_EQ(last_us, kept_.watermark_us);
  EXPECT_EQ(records(), 0u);
  store_.Close();
  store_.recovery_options().check_time = nullptr;
  ExpectRefused();
}

// As a port that is taken ends it, behind the record.
TEST_F(EndedStartTest, BehindTheRecovery) {
  LoseAnEvent();
  Reopen();
  store_.Close();
  ExpectRefused();
}

// By kill -9, or by another loss of power.
TEST_F(EndedStartTest, AfterAnyChangeOfTheDisk) {
  LoseAnEvent();
  const std::unique_ptr<MemoryFileSystem> lost = store_.files().Copy();
  store_.options().on_failure = [](const std::string&) {};
  for (const bool power : {true, false}) {
    int kills = 0;
    for (bool ended = true; ended; ++kills) {
      SCOPED_TRACE(absl::StrCat("power ", power, ", ", kills, " changes"));
      store_.GoOnWith(lost->Copy());
      store_.files().KillAfter(kills);
      ended = !store_.Open().ok();
      if (power) {
        store_.Crash();
      } else {
        store_.LosePower(Unsynced::kKeptInPart, &random_);
      }
      ASSERT_NO_FATAL_FAILURE(ExpectRefused());
    }
    // It removes END, cuts the log, continues it, and notes the boot.
    EXPECT_GT(kills, 5);
  }
}

// It closes as far as it can.
TEST_F(EndedStartTest, ByAnErrorOfTheDisk) {
  LoseAnEvent();
  const std::unique_ptr<MemoryFileSystem> lost = store_.files().Copy();
  int errors = 0;
  for (bool failed = true; failed; ++errors) {
    SCOPED_TRACE(absl::StrCat("after ", errors, " writes and syncs"));
    store_.GoOnWith(lost->Copy());
    failed = false;
    store_.files().SetFault(
        [&, left = errors](const std::string&, uint64_t, bool) mutable {
          if (left-- != 0) return absl::OkStatus();
          failed = true;
          return absl::InternalError("the disk");
        });
    store_.options().on_failure = [](const std::string&) {};
    store_.Open().IgnoreError();
    store_.files().SetFault(nullptr);
    store_.Close();
    ASSERT_NO_FATAL_FAILURE(ExpectRefused());
  }
  EXPECT_GT(errors, 5);
}

// What was closed in order has lost nothing, however the starts behind that
// end.
TEST_F(EndedStartTest, OfWhatWasClosedInOrder) {
  Die("event", "b");
  const LogPoint end = End();
  store_.Close();
  LosePower();
  const std::unique_ptr<MemoryFileSystem> closed = store_.files().Copy();
  for (int kills = 0;; ++kills) {
    SCOPED_TRACE(absl::StrCat("after ", kills, " changes"));
    store_.GoOnWith(closed->Copy());
    store_.files().KillAfter(kills);
    store_.options().on_failure = [](const std::string&) {};
    const bool ended = !store_.Open().ok();
    store_.Crash();
    Reopen();
    EXPECT_EQ(store_.report().forked, 0u);
    EXPECT_EQ(End().log_id, end.log_id);
    if (!ended) break;
  }
}

}  // namespace
}  // namespace timecache::server
