// Journals that are trimmed: they shrink, and nothing that must last is lost.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/failpoint.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

// What DieAtStep says: where the server ends, and that it has.
DurableStore* dying = nullptr;
std::atomic<int> steps_left = 0;
std::atomic<bool> dead = false;

void DieAtStep(absl::string_view name) {
  if (name != "checkpoint.step" || --steps_left != 0) return;
  dying->Freeze();
  dead = true;
}

class CheckpointTest : public DurableStoreTest {
 protected:
  // Begins or continues a round, and ends the server at this step of it, unless
  // the round is through before.
  void RoundUntilStep(int step) {
    dying = &store_;
    steps_left = step;
    dead = false;
    SetFailpointHook(DieAtStep);
    store_.checkpointer().Look();
    EXPECT_TRUE(Await([&] {
      return dead || store_.checkpointer().GetStatistics().rounds > 0;
    }));
    SetFailpointHook(nullptr);
    if (dead) store_.Thaw();
  }
  void SetUp() override {
    store_.checkpointer_options().min_journal_bytes = 128 << 10;
    store_.checkpointer_options().step_entries = 7;
    DurableStoreTest::SetUp();
  }
  // One round, to its end.
  void Round() {
    const uint64_t rounds = store_.checkpointer().GetStatistics().rounds;
    EXPECT_TRUE(Await([&] {
      store_.checkpointer().Look();
      return store_.checkpointer().GetStatistics().rounds > rounds;
    }));
  }
  // Overwrites, which a round drops.
  void Fill() {
    for (int i = 0; i < 1'000; ++i) {
      ASSERT_TRUE(store_.Put("a", "key", std::string(500, 'v')).status.ok());
    }
  }
  void LetDie(const std::string& prefix, int count) {
    const uint64_t next = store_.End("a").next_event;
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(store_
                      .Put("a", absl::StrCat(prefix, i),
                           std::string(static_cast<size_t>(i), 'v'))
                      .status.ok());
    }
    store_.AdvanceBy(120 * kSecond);
    ASSERT_TRUE(Await([&] {
      return store_.End("a").next_event == next + static_cast<uint64_t>(count);
    }));
  }
  uint64_t disk_bytes() { return store_.journal().statistics().disk_bytes; }
};

TEST_F(CheckpointTest, AJournalOfOverwritesShrinksAndLosesNothing) {
  ASSERT_TRUE(
      store_
          .Execute("a",
                   Operation::Put("old", "value").WithTtl(86'400 * kSecond))
          .status.ok());
  for (int i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(store_
                    .Put("a", absl::StrCat("key", i % 10),
                         std::string(500, static_cast<char>('a' + i % 26)))
                    .status.ok());
  }
  const uint64_t before = disk_bytes();
  EXPECT_GT(before, 1'000'000u);
  Round();
  EXPECT_TRUE(Await([&] { return disk_bytes() < before / 4; })) << disk_bytes();
  LosePower();
  Reopen();
  EXPECT_EQ(store_.Get("a", "old"), "value");
  EXPECT_EQ(store_.Get("a", "key9"), std::string(500, 'a' + 1'999 % 26));
  EXPECT_EQ(store_.map("a")->GetSize(store_.clock().NowUs()).entries, 11);
}

// A disk that the journal alone has filled: trimming makes room, without more
// than a part of the reserve.
TEST_F(CheckpointTest, AFullDiskIsTrimmedFromTheReserve) {
  store_.options().reserve_bytes = 200'000;
  store_.options().segment_bytes = 50'000;
  store_.options().reserve_interval = std::chrono::milliseconds(1);
  Reopen();
  store_.files().SetRoom(store_.files().used_bytes() + 100'000);
  Result result;
  for (int i = 0; i < 1'000 && result.status.ok(); ++i) {
    result = store_.Put("a", "key", std::string(500, 'v'));
  }
  EXPECT_EQ(ReasonOf(result.status), Reason::kDiskFull) << result.status;
  EXPECT_LT(disk_bytes(), store_.checkpointer_options().min_journal_bytes);
  Round();
  EXPECT_TRUE(Await(
      [&] { return store_.Put("a", "key", "after the round").status.ok(); }));
  EXPECT_FALSE(store_.journal().low_space());
}

// One round trims what came before the reserve. The open segment stays whatever
// is written again: more rounds would only fill it.
TEST_F(CheckpointTest, AFullDiskWithNothingToTrimIsLeftAlone) {
  store_.options().reserve_bytes = 200'000;
  Reopen();
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  store_.files().SetRoom(store_.files().used_bytes());
  ASSERT_TRUE(store_.Put("a", "key", "from the reserve").status.ok());
  ASSERT_TRUE(store_.journal().low_space());
  Round();
  EXPECT_TRUE(
      Await([&] { return store_.journal().statistics().closed_bytes == 0; }));
  store_.checkpointer().Look();
  EXPECT_FALSE(store_.checkpointer().GetStatistics().writing);
  store_.files().SetRoom(UINT64_MAX);
}

// Live entries that would use the reserve up are not written again meanwhile.
TEST_F(CheckpointTest, AFullDiskIsNotTrimmedBeyondAPartOfTheReserve) {
  store_.options().reserve_bytes = 200'000;
  Reopen();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(
        store_.Put("a", absl::StrCat("key", i % 150), std::string(1'000, 'v'))
            .status.ok());
  }
  store_.files().SetRoom(store_.files().used_bytes() + 100);
  ASSERT_TRUE(store_.Put("a", "last", std::string(1'000, 'v')).status.ok());
  ASSERT_TRUE(store_.journal().low_space());
  store_.checkpointer().Look();
  EXPECT_FALSE(store_.checkpointer().GetStatistics().writing);
  store_.files().SetRoom(UINT64_MAX);
}

// They are written again: no round waits until they are old.
TEST_F(CheckpointTest, EventsThatAreRetainedOutliveATrim) {
  LetDie("dead", 300);
  const std::vector<DeliveredEvent> before = ReadEarliest().events;
  ASSERT_EQ(before.size(), 300u);
  Fill();
  Round();
  // And those that die after it.
  ASSERT_TRUE(Await([&] { return disk_bytes() < 200'000; })) << disk_bytes();
  store_.AdvanceBy(120 * kSecond);
  ASSERT_TRUE(Await([&] { return ReadEarliest().events.size() == 301; }));
  LosePower();
  Reopen();
  const std::vector<DeliveredEvent> after = ReadEarliest().events;
  ASSERT_EQ(after.size(), 301u);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].key, before[i].key);
    EXPECT_EQ(after[i].value, before[i].value);
    EXPECT_EQ(after[i].version, before[i].version);
    EXPECT_EQ(after[i].death_us, before[i].death_us);
    EXPECT_EQ(after[i].published_us, before[i].published_us);
  }
  // For the rest of their time.
  store_.AdvanceBy(3'600 * kSecond - 130 * kSecond);
  EXPECT_EQ(ReadEarliest().events.size(), 301u);
  store_.AdvanceBy(20 * kSecond);
  EXPECT_EQ(ReadEarliest().events.size(), 1u);
}

// A watch that is not read keeps its events, but not the whole journal.
TEST_F(CheckpointTest, AnUnreadWatchHoldsNoRoundUp) {
  auto cursor = store_.map("a")->Subscribe(ExpiryLog::Start::kNow,
                                           store_.clock().NowUs(), [] {});
  const LogPoint point = cursor->Read(1).point;
  LetDie("dead", 1);
  store_.AdvanceBy(10'000 * kSecond);
  for (int i = 1; i <= 3; ++i) {
    Fill();
    Round();
    ASSERT_TRUE(Await([&] { return disk_bytes() < 200'000; })) << disk_bytes();
  }
  EXPECT_EQ(ReadEarliest().events.size(), 1u);
  store_.Freeze();
  cursor = nullptr;
  store_.Thaw();
  Reopen();
  EXPECT_EQ(ReadFrom(point).lost, 0u);
  EXPECT_EQ(ReadFrom(point).events.size(), 1u);
}

// An append is stored behind the end of the walk that has written its entry
// again, if they are in one generation: the entry must be there by then.
TEST_F(CheckpointTest, AWalkEndsOnceItsEntriesAreStored) {
  ASSERT_TRUE(
      store_
          .Execute("a",
                   Operation::Put("log", "first,").WithTtl(86'400 * kSecond))
          .status.ok());
  Fill();
  static std::atomic<bool> stuck;
  static std::atomic<int> steps;
  static std::atomic<int> done;
  static DurableStore* store;
  static const Operation appends[] = {Operation::Append("log", "second,"),
                                      Operation::Append("log", "third")};
  static Result results[2];
  store = &store_;
  steps = done = 0;
  stuck = false;
  store_.files().SetFault([&](const std::string&, uint64_t, bool sync) {
    if (sync) {
      EXPECT_TRUE(Await([] { return !stuck.load(); }));
    }
    return absl::OkStatus();
  });
  // The first is being stored during the step, the second is in the generation
  // of what the step writes.
  SetFailpointHook([](absl::string_view name) {
    if (name != "checkpoint.step" || ++steps != 1) {
      if (name == "checkpoint.step_recorded" ||
          name == "checkpoint.walk_ended") {
        stuck = false;
      }
      return;
    }
    stuck = true;
    for (int i = 0; i < 2; ++i) {
      store->store().Execute("a", {&appends[i], 1}, {&results[i], 1},
                             [](const absl::Status&) { ++done; });
    }
  });
  Round();
  SetFailpointHook(nullptr);
  EXPECT_TRUE(Await([&] { return done == 2; }));
  store_.files().SetFault(nullptr);
  LosePower();
  Reopen();
  EXPECT_EQ(store_.Get("a", "log"), "first,second,third");
}

// However short the lives are in which it is written.
TEST_F(CheckpointTest, ARoundGoesOnOverRestarts) {
  ASSERT_TRUE(store_.Create("b").ok());
  LetDie("dead", 100);
  ASSERT_TRUE(store_.map("b")
                  ->groups()
                  .Create("workers", GroupOptions(), ExpiryLog::Start::kNow,
                          store_.clock().NowUs())
                  .ok());
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(store_.Put("b", absl::StrCat("kept", i), "").status.ok());
  }
  store_.AdvanceBy(120 * kSecond);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(store_
                    .Execute("a", Operation::Put(absl::StrCat("old", i), "v")
                                      .WithTtl(86'400 * kSecond))
                    .status.ok());
  }
  Fill();
  const uint64_t before = disk_bytes();
  int lives = 0;
  for (; lives < 500; ++lives) {
    RoundUntilStep(4);
    if (!dead) break;
    Reopen();
  }
  EXPECT_GT(lives, 10);
  ASSERT_EQ(store_.checkpointer().GetStatistics().rounds, 1u);
  EXPECT_TRUE(Await([&] { return disk_bytes() < before / 2; }));
  LosePower();
  Reopen();
  EXPECT_EQ(ReadEarliest().events.size(), 100u);
  EXPECT_EQ(ReadEarliest("b").events.size(), 50u);
  EXPECT_EQ(store_.Get("a", "old99"), "v");
  const auto group = store_.map("b")->groups().Find("workers");
  ASSERT_TRUE(group.ok());
  EXPECT_EQ((*group)->GetStatistics().backlog, 50u);
  EXPECT_EQ((*group)->GetStatistics().lost, 0u);
}

// What was dead when it was passed by is not there after a trim.
TEST_F(CheckpointTest, WhatHadDiedInARoundDoesNotLiveAgainAfterARestart) {
  NamespaceOptions options = DurableOptions();
  options.restart_policy = RestartPolicy::kPause;
  ASSERT_TRUE(store_.Create("p", options).ok());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(store_.Put("p", absl::StrCat("key", i), "").status.ok());
  }
  Fill();
  // Dead by the clock alone: no tick says so.
  store_.clock().AdvanceBy(120 * kSecond);
  RoundUntilStep(3);
  ASSERT_TRUE(dead);
  store_.clock().AdvanceBy(1'000 * kSecond);
  Reopen();
  Round();
  store_.AdvanceBy(120 * kSecond);
  const size_t events = ReadEarliest("p").events.size();
  LosePower();
  Reopen();
  store_.AdvanceBy(120 * kSecond);
  EXPECT_TRUE(Await([&] { return ReadEarliest("p").events.size() == 100; }));
  EXPECT_LE(events, 100u);
}

// What dies after a trim has the numbers that it would have had without it.
TEST_F(CheckpointTest, NumbersOfEventsGoOnOverATrim) {
  NamespaceOptions options = DurableOptions();
  options.retention_us = 0;
  ASSERT_TRUE(store_.Create("n", options).ok());
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(store_.Put("n", absl::StrCat("k", i), std::string(300, 'v'))
                    .status.ok());
    store_.AdvanceBy(kSecond / 2);
  }
  const uint64_t next = store_.map("n")->first_event();
  Round();
  ASSERT_TRUE(store_.Put("n", "last", "").status.ok());
  LosePower();
  Reopen();
  EXPECT_EQ(store_.map("n")->first_event(), next);
  store_.AdvanceBy(120 * kSecond);
  EXPECT_GT(store_.map("n")->first_event(), next + 100);
}

// Each round writes it again: it would be the next one's reason.
TEST_F(CheckpointTest, WhatGroupsKeepIsNoReasonForARound) {
  NamespaceOptions options = DurableOptions();
  options.retention_us = 0;
  ASSERT_TRUE(store_.Create("n", options).ok());
  for (const char* const name : {"one", "two"}) {
    ASSERT_TRUE(store_.map("n")
                    ->groups()
                    .Create(name, GroupOptions(), ExpiryLog::Start::kNow,
                            store_.clock().NowUs())
                    .ok());
  }
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(store_.Put("n", absl::StrCat("k", i), std::string(1'000, 'v'))
                    .status.ok());
  }
  store_.AdvanceBy(120 * kSecond);
  ASSERT_GT(disk_bytes(), store_.checkpointer_options().min_journal_bytes);
  store_.checkpointer().Look();
  EXPECT_FALSE(store_.checkpointer().GetStatistics().writing);
}

// Another round would write all again, and free nothing.
TEST_F(CheckpointTest, WhatABackupKeepsIsNoReasonForARound) {
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(store_.Put("a", "key", std::string(500, 'v')).status.ok());
  }
  auto backup = static_cast<LocalJournal*>(&store_.journal())->OpenBackup();
  const uint64_t before = disk_bytes();
  Round();
  EXPECT_GE(disk_bytes(), before);
  store_.checkpointer().Look();
  EXPECT_FALSE(store_.checkpointer().GetStatistics().writing);
  backup = nullptr;
  EXPECT_TRUE(Await([&] { return disk_bytes() < before / 4; }));
}

TEST_F(CheckpointTest, AMapThatIsDeletedDuringARoundStaysDeleted) {
  ASSERT_TRUE(store_.Create("b").ok());
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(
        store_.Put("b", absl::StrCat("key", i % 300), std::string(500, 'v'))
            .status.ok());
  }
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(store_.Put("a", "key", std::string(500, 'v')).status.ok());
  }
  // The round's first step is not kept before the deletion.
  std::atomic<bool> stuck = true;
  absl::Notification free;
  store_.files().SetFault([&](const std::string&, uint64_t, bool sync) {
    if (sync && stuck) free.WaitForNotification();
    return absl::OkStatus();
  });
  store_.checkpointer().Look();
  EXPECT_TRUE(store_.checkpointer().GetStatistics().writing);
  ASSERT_TRUE(store_.registry().Delete("b").ok());
  stuck = false;
  free.Notify();
  EXPECT_TRUE(
      Await([&] { return store_.checkpointer().GetStatistics().rounds == 1; }));
  store_.files().SetFault(nullptr);
  ASSERT_TRUE(store_.Put("a", "key", "").status.ok());
  LosePower();
  Reopen();
  EXPECT_EQ(store_.map("b"), nullptr);
  EXPECT_EQ(store_.Get("a", "key"), "");
}

}  // namespace
}  // namespace timecache::server
