// Maps that last: what was answered, told and seen is so again after a crash.

#include "tests/support/journal/durable_store.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "tests/support/await.h"
#include "tests/support/engine/dice.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;
using ::timecache::test::Await;
using Unsynced = MemoryFileSystem::Unsynced;

uint64_t Seed() {
  const char* const text = std::getenv("TIMECACHED_SEED");
  return text != nullptr ? std::stoull(text) : 20111204;
}

class DurableStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", Seed()));
    ASSERT_TRUE(store_.Open().ok());
    ASSERT_TRUE(store_.Create("a").ok());
  }
  void LosePower() { store_.LosePower(Unsynced::kDropped, &random_); }
  void Reopen() {
    const absl::Status status = store_.Open();
    ASSERT_TRUE(status.ok()) << status;
  }
  Reading ReadFrom(LogPoint point, const std::string& name = "a") {
    auto cursor =
        store_.map(name)->Resume(point, store_.clock().NowUs(), [] {});
    EXPECT_TRUE(cursor.ok()) << cursor.status();
    return cursor.ok() ? ReadAll(cursor->get()) : Reading();
  }
  Reading ReadEarliest(const std::string& name = "a") {
    const auto cursor = store_.map(name)->Subscribe(
        ExpiryLog::Start::kEarliest, store_.clock().NowUs(), [] {});
    return ReadAll(cursor.get());
  }

  // Operations of "a", by what refused them.
  uint64_t Refused(LimitHit hit) {
    return store_.map("a")
        ->GetStatistics(store_.clock().NowUs())
        .refused[static_cast<size_t>(hit)];
  }

  DurableStore store_;
  std::mt19937_64 random_{Seed()};
};

TEST_F(DurableStoreTest, AnAnsweredPutOutlivesAPowerLoss) {
  const Result put = store_.Put("a", "key", "value");
  ASSERT_TRUE(put.status.ok()) << put.status;
  LosePower();
  Reopen();
  const Result get = store_.Execute("a", Operation::Get("key"));
  EXPECT_EQ(get.entry.value, "value");
  EXPECT_EQ(get.entry.version, put.version);
  EXPECT_EQ(get.entry.deadline_us, kStartUs + 60 * kSecond);
  EXPECT_EQ(store_.report().entries, 1u);
  // Versions go on above all that were given.
  EXPECT_GT(store_.Put("a", "key", "new").version, put.version);
}

// The disk does lose what is not synced, or the test above shows nothing.
TEST_F(DurableStoreTest, WithoutSyncsAnAnsweredPutIsLostToAPowerLoss) {
  store_.files().IgnoreSyncs();
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  LosePower();
  Reopen();
  EXPECT_EQ(store_.Get("a", "key"), "(none)");
}

TEST_F(DurableStoreTest, AnAnsweredPutOfAnAsyncMapOutlivesTheProcess) {
  ASSERT_TRUE(store_.Create("b", DurableOptions(MapDurability::kAsync)).ok());
  ASSERT_TRUE(store_.Put("b", "key", "value").status.ok());
  store_.Crash();
  Reopen();
  EXPECT_EQ(store_.Get("b", "key"), "value");
}

TEST_F(DurableStoreTest, AMapThatIsNotDurableIsGone) {
  ASSERT_TRUE(store_.Create("m", DurableOptions(MapDurability::kMemory)).ok());
  ASSERT_TRUE(store_.Put("m", "key", "value").status.ok());
  Reopen();
  EXPECT_EQ(store_.map("m"), nullptr);
  EXPECT_NE(store_.map("a"), nullptr);
}

TEST_F(DurableStoreTest, EveryKindOfChangeOutlivesACrash) {
  for (const char* key : {"put", "removed", "renewed", "replaced"}) {
    ASSERT_TRUE(store_.Put("a", key, "1").status.ok());
  }
  ASSERT_TRUE(store_.Execute("a", Operation::Remove("removed")).status.ok());
  ASSERT_TRUE(
      store_.Execute("a", Operation::Touch("renewed").WithTtl(3600 * kSecond))
          .status.ok());
  ASSERT_TRUE(store_.Put("a", "replaced", "2").status.ok());
  store_.Crash();
  Reopen();
  EXPECT_EQ(store_.Get("a", "put"), "1");
  EXPECT_EQ(store_.Get("a", "removed"), "(none)");
  EXPECT_EQ(store_.Get("a", "replaced"), "2");
  EXPECT_EQ(store_.Execute("a", Operation::Get("renewed")).entry.deadline_us,
            kStartUs + 3600 * kSecond);
}

TEST_F(DurableStoreTest, WhatWasAppendedCombinedAndGatheredOutlivesAPowerLoss) {
  const auto gather = [this](absl::string_view part) {
    Gathering gathering;
    EXPECT_TRUE(gathering.Set(part, 3, {}).ok());
    return store_.Execute("a", Operation::Gather("join", &gathering, part));
  };
  std::string log;
  Result last;
  for (int i = 0; i < 50; ++i) {
    const std::string piece = absl::StrCat("piece ", i, ",");
    last = store_.Execute("a", Operation::Append("log", piece));
    ASSERT_TRUE(last.status.ok()) << last.status;
    log += piece;
    store_.Execute("a", Operation::Combine("sum", Combination::kAdd, i));
  }
  Operation touching = Operation::Append("own", "1").WithTtl(3600 * kSecond);
  touching.touch = true;
  store_.Put("a", "own", "0");
  ASSERT_TRUE(store_.Execute("a", touching).status.ok());
  Operation keeping = Operation::Put("own", "01-");
  keeping.keep_deadline = true;
  ASSERT_TRUE(store_.Execute("a", keeping).status.ok());
  ASSERT_TRUE(gather("x").status.ok());
  ASSERT_TRUE(gather("y").status.ok());
  LosePower();
  Reopen();
  EXPECT_EQ(store_.Get("a", "log"), log);
  EXPECT_EQ(store_.Execute("a", Operation::Get("log")).entry.version,
            last.version);
  EXPECT_EQ(store_.Get("a", "sum"), "1225");
  EXPECT_EQ(store_.Get("a", "own"), "01-");
  EXPECT_EQ(store_.Execute("a", Operation::Get("own")).entry.deadline_us,
            kStartUs + 3600 * kSecond);
  EXPECT_TRUE(store_.Execute("a", Operation::Get("join")).entry.parts);
  // It goes on as if nothing had happened.
  EXPECT_EQ(store_.Execute("a", Operation::Append("log", "more")).number,
            static_cast<int64_t>(log.size() + 4));
  const Result whole = gather("z");
  ASSERT_TRUE(whole.has_entry) << whole.status;
  PartsReader reader(whole.entry.value);
  std::string names;
  for (GatheredPart part; reader.Next(&part);) {
    absl::StrAppend(&names, part.name);
  }
  EXPECT_EQ(names, "xyz");
  LosePower();
  Reopen();
  EXPECT_EQ(store_.Get("a", "join"), "(none)");
  EXPECT_EQ(store_.Get("a", "log"), log + "more");
}

TEST_F(DurableStoreTest, AnAppendWritesItsBytesAndNotTheValue) {
  const std::string large(512 << 10, 'v');
  ASSERT_TRUE(store_.Put("a", "log", large).status.ok());
  const uint64_t before = store_.files().used_bytes();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store_.Execute("a", Operation::Append("log", "0123456789"))
                    .status.ok());
  }
  EXPECT_LT(store_.files().used_bytes() - before, 256u << 10);
}

TEST_F(DurableStoreTest, NamespacesComeAndGoAsTheyDid) {
  ASSERT_TRUE(store_.Create("b").ok());
  ASSERT_TRUE(store_.Put("b", "key", "old").status.ok());
  absl::Notification deleted;
  store_.store().DeleteNamespace("b", [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok());
    deleted.Notify();
  });
  deleted.WaitForNotification();
  ASSERT_TRUE(store_.Create("c").ok());
  LosePower();
  Reopen();
  EXPECT_EQ(store_.map("b"), nullptr);
  ASSERT_TRUE(store_.Create("b").ok());
  EXPECT_EQ(store_.Get("b", "key"), "(none)");
  absl::Notification updated;
  store_.store().UpdateNamespace(
      "c",
      [](MapOptions* options) {
        options->ttl_us = 120 * kSecond;
        options->dead_letter_map = "a";
        return absl::OkStatus();
      },
      [&](const absl::StatusOr<NamespaceInfo>& info) {
        EXPECT_TRUE(info.ok());
        updated.Notify();
      });
  updated.WaitForNotification();
  LosePower();
  Reopen();
  EXPECT_EQ(store_.map("c")->options().ttl_us, 120 * kSecond);
  EXPECT_EQ(store_.map("c")->options().dead_letter_map, "a");
  EXPECT_EQ(store_.map("b")->options().ttl_us, 60 * kSecond);
  EXPECT_EQ(store_.report().namespaces, 3u);
}

TEST_F(DurableStoreTest, WhatDiedWhileTheServerWasDownIsToldWithItsDeath) {
  const Result put = store_.Put("a", "key", "value");
  LosePower();
  store_.clock().AdvanceBy(3600 * kSecond);
  Reopen();
  EXPECT_EQ(store_.Get("a", "key"), "(none)");
  store_.AdvanceBy(0);
  const Reading reading = ReadEarliest();
  ASSERT_EQ(reading.events.size(), 1u);
  EXPECT_EQ(reading.events[0].version, put.version);
  EXPECT_EQ(reading.events[0].value, "value");
  EXPECT_EQ(reading.events[0].death_us, kStartUs + 60 * kSecond);
}

TEST_F(DurableStoreTest, AWatcherGoesOnWhereItStoodOverACrash) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(store_.Put("a", absl::StrCat("early", i), "").status.ok());
  }
  store_.AdvanceBy(30 * kSecond);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(store_.Put("a", absl::StrCat("late", i), "").status.ok());
  }
  const uint64_t first = store_.map("a")->first_event();
  store_.AdvanceBy(30 * kSecond);
  EXPECT_EQ(ReadEarliest().events.size(), 10u);
  // Up to the fourth.
  const LogPoint point = {store_.map("a")->origin().log_id, first + 4,
                          INT64_MIN};
  LosePower();
  Reopen();
  store_.AdvanceBy(30 * kSecond);
  const Reading reading = ReadFrom(point);
  EXPECT_EQ(reading.lost, 0u);
  ASSERT_EQ(reading.events.size(), 16u);
  EXPECT_THAT(reading.events[5].key, HasSubstr("early"));
  EXPECT_THAT(reading.events[6].key, HasSubstr("late"));
}

TEST_F(DurableStoreTest, NothingIsToldBeforeItsTickIsKept) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  std::atomic<bool> stuck = true;
  absl::Notification free;
  store_.files().SetFault([&](const std::string&, uint64_t, bool sync) {
    if (sync && stuck) free.WaitForNotification();
    return absl::OkStatus();
  });
  store_.clock().AdvanceBy(120 * kSecond);
  store_.map("a")->Advance(store_.clock().NowUs());
  store_.map("a")->Sweep(store_.clock().NowUs(), 1'000);
  EXPECT_TRUE(ReadEarliest().events.empty());
  stuck = false;
  free.Notify();
  EXPECT_TRUE(Await([&] { return ReadEarliest().events.size() == 1; }));
  store_.files().SetFault(nullptr);
}

// Of a write that is not kept yet nobody sees anything; other keys go on.
TEST_F(DurableStoreTest, NobodySeesWhatACrashCouldTakeBack) {
  ASSERT_TRUE(store_.Put("a", "other", "value").status.ok());
  std::atomic<bool> stuck = true;
  absl::Notification free;
  store_.files().SetFault([&](const std::string&, uint64_t, bool sync) {
    if (sync && stuck) free.WaitForNotification();
    return absl::OkStatus();
  });
  std::atomic<int> answered = 0;
  const Operation put = Operation::Put("key", "value");
  const Operation get = Operation::Get("key");
  Result put_result;
  Result get_result;
  const auto count = [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    ++answered;
  };
  store_.store().Execute("a", {&put, 1}, {&put_result, 1}, count);
  store_.store().Execute("a", {&get, 1}, {&get_result, 1}, count);
  store_.store().GetSize("a", [&](const absl::StatusOr<MapSize>& size) {
    EXPECT_EQ(size->entries, 2);
    ++answered;
  });
  EXPECT_EQ(store_.Get("a", "other"), "value");
  EXPECT_EQ(store_.Get("a", "none"), "(none)");
  EXPECT_EQ(answered, 0);
  stuck = false;
  free.Notify();
  EXPECT_TRUE(Await([&] { return answered == 3; }));
  EXPECT_EQ(get_result.entry.value, "value");
  store_.files().SetFault(nullptr);
}

TEST_F(DurableStoreTest, AFullDiskRefusesWritesAndReadsGoOn) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  store_.files().SetRoom(store_.files().used_bytes() + 100);
  const Result first = store_.Put("a", "big", std::string(1'000, 'v'));
  EXPECT_EQ(ReasonOf(first.status), Reason::kDiskFull) << first.status;
  const Result refused = store_.Put("a", "key", "new");
  EXPECT_EQ(ReasonOf(refused.status), Reason::kDiskFull);
  EXPECT_EQ(store_.Get("a", "key"), "value");
  EXPECT_TRUE(store_.logs().disk_full());
  EXPECT_EQ(Refused(LimitHit::kDiskFull), 2u);
  // In a batch, which is answered as a whole.
  const std::vector<Operation> operations = {Operation::Put("key", "new"),
                                             Operation::Get("key"),
                                             Operation::Remove("key")};
  std::vector<Result> results(operations.size());
  absl::Notification done;
  store_.store().Execute("a", operations, absl::MakeSpan(results),
                         [&](const absl::Status& status) {
                           EXPECT_TRUE(status.ok()) << status;
                           done.Notify();
                         });
  done.WaitForNotification();
  EXPECT_EQ(results[1].entry.value, "value");
  EXPECT_EQ(Refused(LimitHit::kDiskFull), 4u);
  store_.files().SetRoom(UINT64_MAX);
  EXPECT_TRUE(Await([&] { return store_.Put("a", "key", "new").status.ok(); }));
  EXPECT_FALSE(store_.logs().disk_full());
  EXPECT_EQ(Refused(LimitHit::kJournalBacklog), 0u);
  // It was in the map, and is kept by now.
  EXPECT_EQ(store_.Get("a", "big"), std::string(1'000, 'v'));
  LosePower();
  Reopen();
  EXPECT_EQ(store_.Get("a", "key"), "new");
  EXPECT_EQ(store_.Get("a", "big"), std::string(1'000, 'v'));
}

// What was under way when the disk filled is kept, and what dies is told.
TEST_F(DurableStoreTest, OnAFullDiskEventsGoOnFromTheReserve) {
  store_.options().reserve_bytes = 100'000;
  Reopen();
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  store_.files().SetRoom(store_.files().used_bytes() + 100);
  const Result last = store_.Put("a", "big", std::string(1'000, 'v'));
  EXPECT_TRUE(last.status.ok()) << last.status;
  const Result refused = store_.Put("a", "key", "new");
  EXPECT_EQ(ReasonOf(refused.status), Reason::kDiskFull);
  EXPECT_EQ(store_.Get("a", "key"), "value");
  EXPECT_EQ(store_.Get("a", "big"), std::string(1'000, 'v'));
  store_.AdvanceBy(120 * kSecond);
  EXPECT_TRUE(Await([&] { return ReadEarliest().events.size() == 2; }));
  EXPECT_EQ(store_.Get("a", "key"), "(none)");
  // A restart finds the disk as full.
  LosePower();
  store_.files().SetRoom(store_.files().used_bytes() + 50'000);
  Reopen();
  EXPECT_EQ(ReadEarliest().events.size(), 2u);
  EXPECT_EQ(store_.Get("a", "key"), "(none)");
  EXPECT_EQ(ReasonOf(store_.Put("a", "key", "new").status), Reason::kDiskFull);
  store_.files().SetRoom(UINT64_MAX);
  EXPECT_TRUE(Await([&] { return store_.Put("a", "key", "new").status.ok(); }));
}

TEST_F(DurableStoreTest, WritesAreRefusedWhileTooManyWaitForTheDisk) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  absl::Notification free;
  std::atomic<bool> stuck = true;
  store_.files().SetFault([&](const std::string&, uint64_t, bool) {
    if (stuck) free.WaitForNotification();
    return absl::OkStatus();
  });
  const std::string value(1 << 20, 'v');
  const Operation put = Operation::Put("big", value);
  constexpr int kPuts = 100;
  std::vector<Result> results(kPuts);
  std::atomic<int> answered = 0;
  for (Result& result : results) {
    store_.store().Execute("a", {&put, 1}, {&result, 1},
                           [&](const absl::Status& status) {
                             EXPECT_TRUE(status.ok()) << status;
                             ++answered;
                           });
  }
  const uint64_t refused = Refused(LimitHit::kJournalBacklog);
  EXPECT_GT(refused, 20u);
  EXPECT_FALSE(store_.logs().disk_full());
  EXPECT_GT(store_.logs().open_bytes(), store_.logs().open_bytes_max());
  EXPECT_EQ(store_.Get("a", "key"), "value");
  stuck = false;
  free.Notify();
  EXPECT_TRUE(Await([&] { return answered == kPuts; }));
  const auto backlog =
      std::count_if(results.begin(), results.end(), [](const Result& result) {
        return ReasonOf(result.status) == Reason::kJournalBacklog;
      });
  EXPECT_EQ(static_cast<uint64_t>(backlog), refused);
  EXPECT_TRUE(Await([&] { return store_.Put("a", "key", "new").status.ok(); }));
  EXPECT_EQ(Refused(LimitHit::kDiskFull), 0u);
  store_.files().SetFault(nullptr);
}

TEST_F(DurableStoreTest, AServerStopsWhileTheDiskIsFull) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  store_.files().SetRoom(store_.files().used_bytes() + 100);
  const Result refused = store_.Put("a", "big", std::string(1'000, 'v'));
  EXPECT_EQ(ReasonOf(refused.status), Reason::kDiskFull) << refused.status;
  store_.Close();
  store_.files().SetRoom(UINT64_MAX);
  Reopen();
  EXPECT_EQ(store_.Get("a", "key"), "value");
  EXPECT_EQ(store_.Get("a", "big"), "(none)");
}

TEST_F(DurableStoreTest, AJournalThatIsDamagedIsRefused) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(store_.Put("a", "key", std::string(100, 'v')).status.ok());
  }
  store_.Close();
  for (const std::string& path : store_.files().Paths()) {
    std::string contents = store_.files().Contents(path);
    if (contents.size() < 10'000) continue;
    contents[contents.size() / 2] ^= 1;
    store_.files().SetContents(path, contents);
  }
  const absl::Status status = store_.Open();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST_F(DurableStoreTest, ARecoveryThatIsCancelledLeavesTheJournalAsItIs) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store_.Put("a", absl::StrCat("key", i), "value").status.ok());
  }
  RecoveryOptions& options = store_.recovery_options();
  options.progress_records = 10;
  uint64_t records = 0;
  options.progress = [&](const RecoveryProgress& progress) {
    records = progress.records;
    EXPECT_GE(progress.records_end, 20u);
  };
  options.cancelled = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(store_.Open()));
  EXPECT_EQ(records, 10u);
  // Few records may be many bytes.
  options.progress_records = 1'000'000;
  options.progress_bytes = 200;
  EXPECT_TRUE(absl::IsCancelled(store_.Open()));
  EXPECT_LT(records, 10u);
  EXPECT_GE(records, 1u);
  options = RecoveryOptions();
  Reopen();
  EXPECT_EQ(store_.Get("a", "key19"), "value");
}

// --- Checkpoints.

class CheckpointTest : public DurableStoreTest {
 protected:
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

// Live entries that would use the reserve up are not told again meanwhile.
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
  EXPECT_FALSE(store_.checkpointer().GetStatistics().walking);
  store_.files().SetRoom(UINT64_MAX);
}

TEST_F(CheckpointTest, EventsThatAreRetainedKeepTheirRecords) {
  ASSERT_TRUE(store_.Put("a", "dead", "value").status.ok());
  store_.AdvanceBy(120 * kSecond);
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(store_.Put("a", "key", std::string(500, 'v')).status.ok());
  }
  store_.checkpointer().Look();
  EXPECT_TRUE(
      Await([&] { return store_.checkpointer().GetStatistics().trimming; }));
  store_.checkpointer().Look();
  EXPECT_TRUE(store_.checkpointer().GetStatistics().trimming);
  LosePower();
  Reopen();
  EXPECT_EQ(ReadEarliest().events.size(), 1u);
}

// What dies after a trim has the numbers that it would have had without it.
TEST_F(CheckpointTest, NumbersOfEventsGoOnOverATrim) {
  MapOptions options = DurableOptions();
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

// What a group keeps from before a round is told again, and no record of it is
// needed any more.
TEST_F(CheckpointTest, AGroupKeepsItsEventsOverATrim) {
  MapOptions options = DurableOptions();
  options.retention_us = 0;
  ASSERT_TRUE(store_.Create("n", options).ok());
  ASSERT_TRUE(store_.map("n")
                  ->groups()
                  .Create("workers", GroupOptions(), ExpiryLog::Start::kNow,
                          store_.clock().NowUs())
                  .ok());
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(store_.Put("n", absl::StrCat("k", i), std::string(100, 'v'))
                    .status.ok());
  }
  store_.AdvanceBy(120 * kSecond);
  auto member =
      store_.map("n")->groups().Find("workers").value()->Join(100, [] {});
  const ConsumerGroup::Chunk chunk =
      member->Take(store_.clock().NowUs(), 1'000, 1 << 20);
  ASSERT_EQ(chunk.deliveries.size(), 40u);
  for (int i = 0; i < 10; ++i) {
    const Delivery& delivery = chunk.deliveries[static_cast<size_t>(i)];
    const Settlement ack = {delivery.event_id, delivery.attempt,
                            SettleAction::kAck, 0, 0};
    SettleResult result;
    ASSERT_TRUE(
        store_.map("n")
            ->groups()
            .Settle("workers", {&ack, 1}, store_.clock().NowUs(), {&result, 1})
            .ok());
    ASSERT_TRUE(result.status.ok());
  }
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(store_.Put("n", "key", std::string(500, 'v')).status.ok());
  }
  const uint64_t before = disk_bytes();
  Round();
  EXPECT_TRUE(Await([&] { return disk_bytes() < before / 2; }));
  member = nullptr;
  LosePower();
  Reopen();
  const GroupStatistics statistics =
      store_.map("n")->groups().Find("workers").value()->GetStatistics();
  EXPECT_EQ(statistics.backlog, 30u);
  EXPECT_EQ(statistics.acked, 10u);
  EXPECT_EQ(statistics.lost, 0u);
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
  store_.checkpointer().Look();
  EXPECT_TRUE(store_.checkpointer().GetStatistics().walking);
  ASSERT_TRUE(store_.registry().Delete("b").ok());
  EXPECT_TRUE(
      Await([&] { return store_.checkpointer().GetStatistics().trimming; }));
  ASSERT_TRUE(store_.Put("a", "key", "").status.ok());
  LosePower();
  Reopen();
  EXPECT_EQ(store_.map("b"), nullptr);
  EXPECT_EQ(store_.Get("a", "key"), "");
}

// --- Everything at once, by chance.

// What one writer knows of its keys, which nobody else writes.
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
                  public ::testing::WithParamInterface<MapDurability> {
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
                          told_.count(expected.version) > 0;
        // Or what was put without an answer was killed at once.
        const bool as_unanswered =
            expected.unanswered &&
            (value == expected.unanswered_value ||
             (!got.found && last_told_[key] > expected.version));
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
    for (const Told& told : reading.events) {
      EXPECT_TRUE(told_.insert(told.version).second)
          << told.key << " died twice";
      last_told_[told.key] = told.version;
    }
    point_.next_event += reading.events.size();
    point_.watermark_us = reading.watermark_us;
  }

  std::array<Writer, kWriters> writers_;
  std::set<uint64_t> told_;
  std::map<std::string, uint64_t> last_told_;  // versions by key
  LogPoint point_;
};

TEST_P(CrashTest, WhatWasAnsweredIsSoAfterEachCrash) {
  constexpr int kCrashes = 30;
  MapOptions options = DurableOptions(GetParam());
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
  Dice dice(Seed());
  uint64_t rounds = 0;
  for (int crash = 0; crash < kCrashes && !HasFailure(); ++crash) {
    SCOPED_TRACE(absl::StrCat("crash ", crash));
    std::atomic<bool> stop = false;
    std::vector<std::thread> writers;
    for (int w = 0; w < kWriters; ++w) {
      writers.emplace_back([this, w, seed = Seed() + crash * 100 + w, &stop] {
        Write(w, seed, &stop);
      });
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
    if (GetParam() == MapDurability::kSync) {
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
      EXPECT_TRUE(told_.count(version) + writer.ended.count(version) > 0)
          << version << " is forgotten";
    }
  }
  EXPECT_GT(told_.size(), 100u);
  EXPECT_GT(rounds, 5u);
}

INSTANTIATE_TEST_SUITE_P(Durabilities, CrashTest,
                         ::testing::Values(MapDurability::kAsync,
                                           MapDurability::kSync),
                         [](const auto& info) {
                           return info.param == MapDurability::kSync ? "Sync"
                                                                     : "Async";
                         });

}  // namespace
}  // namespace timecache::server
