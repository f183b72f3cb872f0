// Syncs of what was appended without one, beside the appends that follow.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/local/local_journal.h"
#include "tests/support/await.h"
#include "tests/support/journal/journal_harness.h"
#include "tests/support/journal/memory_file_system.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::timecache::test::Await;

class JournalSyncTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void TearDown() override {
    Free(absl::OkStatus());
    journal_ = nullptr;
  }
  void Open() {
    LocalJournalOptions options;
    options.partitions = 1;
    options.segment_bytes = segment_bytes_;
    options.sync_interval = std::chrono::microseconds(0);
    options.files = files_.get();
    options.on_failure = [this](const std::string&) { ++failures_; };
    auto journal = LocalJournal::Open(kTestDirectory, options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    journal_ = *std::move(journal);
  }
  // The first sync waits for Free, and ends as that says; the second as
  // second_result_.
  void HoldFirstSync() {
    files_->SetFault([this](const std::string&, uint64_t, bool sync) {
      if (!sync) return absl::OkStatus();
      if (const int before = syncs_++; before > 0) {
        return before == 1 ? second_result_ : absl::OkStatus();
      }
      begun_.Notify();
      free_.WaitForNotification();
      return result_;
    });
  }
  void Free(absl::Status result) {
    if (free_.HasBeenNotified()) return;
    result_ = std::move(result);
    free_.Notify();
  }
  void Start(const std::string& record, Durability durability,
             std::function<void(absl::Status)> done) {
    journal_->Append(
        0, {record}, durability,
        [done](const absl::StatusOr<uint64_t>& position,
               std::vector<std::string>) { done(position.status()); });
  }
  absl::Status Append(const std::string& record, Durability durability) {
    absl::Notification answered;
    absl::Status result;
    Start(record, durability, [&](absl::Status status) {
      result = std::move(status);
      answered.Notify();
    });
    answered.WaitForNotification();
    return result;
  }
  // "a", whose sync is held; and beside it "b", which is SYNC and synced_ once
  // it is done, and "c", which is done.
  void AppendBesideASync() {
    HoldFirstSync();
    ASSERT_TRUE(Append("a", Durability::kAsync).ok());
    begun_.WaitForNotification();
    Start("b", Durability::kSync, [this](absl::Status status) {
      sync_result_ = std::move(status);
      synced_.Notify();
    });
    ASSERT_TRUE(Append("c", Durability::kAsync).ok());
  }
  RecordsByPosition ReadAfterPowerLoss() {
    std::mt19937_64 random(1);
    auto left =
        files_->CopyWithoutPower(MemoryFileSystem::Unsynced::kDropped, &random);
    journal_ = nullptr;
    files_ = std::move(left);
    Open();
    ReadResult result = ReadAll(*journal_);
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.partitions[0];
  }

  std::unique_ptr<MemoryFileSystem> files_ =
      std::make_unique<MemoryFileSystem>();
  uint64_t segment_bytes_ = uint64_t{1} << 20;
  std::atomic<int> syncs_ = 0;
  absl::Status second_result_;
  absl::Notification begun_;
  absl::Notification free_;
  absl::Status result_;
  absl::Notification synced_;
  absl::Status sync_result_;
  std::atomic<int> failures_ = 0;
  std::unique_ptr<LocalJournal> journal_;
};

TEST_F(JournalSyncTest, AppendsAreDoneWhileASyncIsUnderWay) {
  HoldFirstSync();
  ASSERT_TRUE(Append("a", Durability::kAsync).ok());
  begun_.WaitForNotification();
  EXPECT_TRUE(Append("b", Durability::kAsync).ok());
  EXPECT_EQ(journal_->End(0), 2u);
  Free(absl::OkStatus());
  ASSERT_TRUE(Append("c", Durability::kSync).ok());
  EXPECT_THAT(ReadAfterPowerLoss(),
              ElementsAre(Pair(0, "a"), Pair(1, "b"), Pair(2, "c")));
}

TEST_F(JournalSyncTest, WhatWasWrittenBesideASyncIsSyncedByTheNextOne) {
  HoldFirstSync();
  ASSERT_TRUE(Append("a", Durability::kAsync).ok());
  begun_.WaitForNotification();
  ASSERT_TRUE(Append("b", Durability::kAsync).ok());
  Free(absl::OkStatus());
  EXPECT_TRUE(Await([&] { return journal_->statistics().syncs == 2; }));
  // It ends before another begins.
  ASSERT_TRUE(Append("c", Durability::kAsync).ok());
  EXPECT_TRUE(Await([&] { return journal_->statistics().syncs == 3; }));
  // Those beside the commits are timed, too.
  EXPECT_TRUE(
      Await([&] { return journal_->statistics().sync_latency.total() == 3; }));
  const RecordsByPosition left = ReadAfterPowerLoss();
  ASSERT_GE(left.size(), 2u);
  EXPECT_EQ(left.at(1), "b");
}

TEST_F(JournalSyncTest, AsyncAppendsDoNotWaitForTheSyncOfOthers) {
  AppendBesideASync();
  EXPECT_FALSE(synced_.HasBeenNotified());
  Free(absl::OkStatus());
  synced_.WaitForNotification();
  EXPECT_TRUE(sync_result_.ok()) << sync_result_;
  const RecordsByPosition left = ReadAfterPowerLoss();
  ASSERT_GE(left.size(), 2u);
  EXPECT_EQ(left.at(1), "b");
}

// Written beside the sync that fails, it is done with the one that succeeds.
TEST_F(JournalSyncTest, ASyncAppendOutlivesAFullDiskAtTheSyncBeforeIt) {
  AppendBesideASync();
  Free(absl::ResourceExhaustedError("no room"));
  synced_.WaitForNotification();
  EXPECT_TRUE(sync_result_.ok()) << sync_result_;
  EXPECT_EQ(failures_, 0);
  EXPECT_THAT(ReadAfterPowerLoss(),
              ElementsAre(Pair(0, "a"), Pair(1, "b"), Pair(2, "c")));
}

TEST_F(JournalSyncTest, ASyncAppendFailsWithTheSyncBeforeIt) {
  AppendBesideASync();
  Free(absl::InternalError("the disk is gone"));
  synced_.WaitForNotification();
  EXPECT_FALSE(sync_result_.ok());
  EXPECT_EQ(failures_, 1);
}

// Linux may have dropped all that was written by then.
TEST_F(JournalSyncTest, AFullDiskAtASyncLosesNothingThatCameMeanwhile) {
  HoldFirstSync();
  ASSERT_TRUE(Append("a", Durability::kAsync).ok());
  begun_.WaitForNotification();
  ASSERT_TRUE(Append("b", Durability::kAsync).ok());
  Free(absl::ResourceExhaustedError("no room"));
  ASSERT_TRUE(Append("c", Durability::kSync).ok());
  EXPECT_EQ(journal_->statistics().sync_errors, 1u);
  EXPECT_EQ(failures_, 0);
  EXPECT_THAT(ReadAfterPowerLoss(),
              ElementsAre(Pair(0, "a"), Pair(1, "b"), Pair(2, "c")));
}

// It is not forgotten on a full disk, of all places.
TEST_F(JournalSyncTest, ATrimBehindASyncThatFailsIsDoneAfterIt) {
  journal_ = nullptr;
  segment_bytes_ = 4096;
  Open();
  ASSERT_TRUE(Append(std::string(8192, 'a'), Durability::kSync).ok());
  ASSERT_TRUE(Append("b", Durability::kSync).ok());
  ASSERT_EQ(journal_->statistics().segments, 2u);
  second_result_ = absl::ResourceExhaustedError("no room");
  HoldFirstSync();
  ASSERT_TRUE(Append("c", Durability::kAsync).ok());
  begun_.WaitForNotification();
  // The one that is under way does not have it with it; the next one does.
  ASSERT_TRUE(journal_->TrimBefore(0, 1).ok());
  ASSERT_TRUE(Append("d", Durability::kAsync).ok());
  Free(absl::OkStatus());
  EXPECT_TRUE(Await([&] { return journal_->statistics().segments == 1; }));
  EXPECT_EQ(journal_->statistics().sync_errors, 1u);
  EXPECT_EQ(failures_, 0);
  EXPECT_THAT(ReadAfterPowerLoss(),
              ElementsAre(Pair(1, "b"), Pair(2, "c"), Pair(3, "d")));
}

// Its own sync might not see the error again.
TEST_F(JournalSyncTest, ASyncAppendFailsWithTheSyncThatWasUnderWay) {
  HoldFirstSync();
  ASSERT_TRUE(Append("a", Durability::kAsync).ok());
  begun_.WaitForNotification();
  absl::Notification answered;
  absl::Status result;
  Start("b", Durability::kSync, [&](absl::Status status) {
    result = std::move(status);
    answered.Notify();
  });
  EXPECT_FALSE(answered.HasBeenNotified());
  Free(absl::InternalError("bad sector"));
  answered.WaitForNotification();
  EXPECT_EQ(result.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Await([&] { return failures_ == 1; }));
  EXPECT_EQ(Append("c", Durability::kAsync).code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace timecache::server
