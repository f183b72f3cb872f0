// Maps that last: what was answered, delivered and seen is so again after a crash.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/durable/map_record.h"
#include "server/engine/store/partitions.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

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

TEST_F(DurableStoreTest, AMapThatIsNotDurableIsGone) {
  ASSERT_TRUE(
      store_.Create("m", DurableOptions(NamespaceDurability::kMemory)).ok());
  ASSERT_TRUE(store_.Put("m", "key", "value").status.ok());
  Reopen();
  EXPECT_EQ(store_.map("m"), nullptr);
  EXPECT_NE(store_.map("a"), nullptr);
}

// What a crash leaves between the creation of a map and the end of the one of
// that name before it, which was recorded first and waits for its map's appends.
TEST_F(DurableStoreTest, AMapWhoseEndWasNotKeptIsNotBesideItsSuccessor) {
  ASSERT_TRUE(store_.Put("a", "key", "of the first").status.ok());
  MapDescription next = {"a", DurableOptions(), store_.map("a")->origin(), {}};
  next.origin.log_id ^= 1;
  absl::Notification appended;
  store_.journal().Append(SlotOfMap("a", store_.journal().partitions()),
                          {EncodeMap(MapRecordKind::kCreated, next)},
                          Durability::kSync,
                          [&](const auto&, const auto&) { appended.Notify(); });
  appended.WaitForNotification();
  store_.Crash();
  Reopen();
  EXPECT_EQ(store_.map("a")->origin().log_id, next.origin.log_id);
  EXPECT_EQ(store_.Get("a", "key"), "(none)");
  // Nor is it there again without that.
  Delete("a");
  store_.Crash();
  Reopen();
  EXPECT_EQ(store_.map("a"), nullptr);
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
  Delete("b");
  ASSERT_TRUE(store_.Create("c").ok());
  LosePower();
  Reopen();
  EXPECT_EQ(store_.map("b"), nullptr);
  ASSERT_TRUE(store_.Create("b").ok());
  EXPECT_EQ(store_.Get("b", "key"), "(none)");
  Update("c", [](NamespaceOptions* options) {
    options->ttl_us = 120 * kSecond;
    options->dead_letter_namespace = "a";
    return absl::OkStatus();
  });
  LosePower();
  Reopen();
  EXPECT_EQ(store_.map("c")->options().ttl_us, 120 * kSecond);
  EXPECT_EQ(store_.map("c")->options().dead_letter_namespace, "a");
  EXPECT_EQ(store_.map("b")->options().ttl_us, 60 * kSecond);
  EXPECT_EQ(store_.report().namespaces, 3u);
}

TEST_F(DurableStoreTest, WhatDiedWhileTheServerWasDownIsDeliveredWithItsDeath) {
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

TEST_F(DurableStoreTest, NothingIsDeliveredBeforeItsTickIsKept) {
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

// No client sees a write that is not kept yet; other keys go on.
TEST_F(DurableStoreTest, NoClientSeesWhatACrashCouldTakeBack) {
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
  store_.store().GetSize("a", [&](const absl::StatusOr<NamespaceSize>& size) {
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
  const std::vector<Result> results = ExecuteAll(operations);
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

// Of a batch, only what a crash could undo.
TEST_F(DurableStoreTest, AChangeWithoutRoomFailsReadsOfItsKeyAlone) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  store_.files().SetRoom(store_.files().used_bytes() + 100);
  const Result first = store_.Put("a", "big", std::string(1'000, 'v'));
  EXPECT_EQ(ReasonOf(first.status), Reason::kDiskFull) << first.status;
  const std::vector<Operation> operations = {
      Operation::Get("key"), Operation::Get("big"), Operation::Get("none")};
  const std::vector<Result> results = ExecuteAll(operations);
  EXPECT_EQ(results[0].entry.value, "value");
  EXPECT_EQ(ReasonOf(results[1].status), Reason::kDiskFull);
  EXPECT_FALSE(results[1].found);
  EXPECT_TRUE(results[2].status.ok());
  EXPECT_EQ(Refused(LimitHit::kDiskFull), 2u);
  store_.files().SetRoom(UINT64_MAX);
}

// Time alone has no room: no client can see what that would undo.
TEST_F(DurableStoreTest, SizesAndScansGoOnWhileATickHasNoRoom) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  store_.files().SetRoom(store_.files().used_bytes());
  // The sweep ends with its tick.
  std::thread sweep([&] { store_.AdvanceBy(120 * kSecond); });
  EXPECT_TRUE(Await([&] { return store_.logs().disk_full(); }));
  absl::Notification sized;
  store_.store().GetSize("a", [&](const absl::StatusOr<NamespaceSize>& size) {
    EXPECT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(size.ok() ? size->entries : -1, 0);
    sized.Notify();
  });
  sized.WaitForNotification();
  EXPECT_TRUE(ReadEarliest().events.empty());
  store_.files().SetRoom(UINT64_MAX);
  sweep.join();
  EXPECT_TRUE(Await([&] { return ReadEarliest().events.size() == 1; }));
}

// What was under way when the disk filled is kept, and what dies is delivered.
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

}  // namespace
}  // namespace timecache::server
