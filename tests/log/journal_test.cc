// What a journal promises while its disk does: order, positions, groups, trims.
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/local/journal_tools.h"
#include "server/log/local/local_journal.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() { EXPECT_TRUE(harness_.Open().ok()); }
  std::vector<RecordsByPosition> Read() {
    ReadResult result = ReadAll(harness_.journal());
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.partitions;
  }

  JournalHarness harness_;
};

TEST_F(JournalTest, AGroupHasOneSync) {
  const uint64_t before = harness_.files().syncs(harness_.LastSegment());
  for (int i = 0; i < 100; ++i) {
    harness_.Append(i % 2, {std::to_string(i)});
  }
  harness_.RunOnce();
  EXPECT_EQ(harness_.files().syncs(harness_.LastSegment()), before + 1);
  EXPECT_EQ(harness_.journal().End(0), 50);
  const JournalStatistics statistics = harness_.journal().statistics();
  EXPECT_EQ(statistics.commits, 1);
  EXPECT_EQ(statistics.appends, 100);
  EXPECT_EQ(statistics.syncs, 1);
}

TEST_F(JournalTest, AsyncIsDoneBeforeItsSyncWhichComesInTime) {
  const std::string segment = harness_.LastSegment();
  const uint64_t before = harness_.files().syncs(segment);
  EXPECT_TRUE(harness_.AppendNow(0, "a", Durability::kAsync).ok());
  harness_.Advance(harness_.options().sync_interval -
                   std::chrono::microseconds(1));
  // Later ones do not put it off.
  EXPECT_TRUE(harness_.AppendNow(0, "b", Durability::kAsync).ok());
  EXPECT_EQ(harness_.files().syncs(segment), before);
  harness_.Advance(std::chrono::microseconds(1));
  harness_.RunOnce();
  EXPECT_EQ(harness_.files().syncs(segment), before + 1);
  harness_.Advance(std::chrono::seconds(1));
  harness_.RunOnce();
  EXPECT_EQ(harness_.files().syncs(segment), before + 1);
}

TEST_F(JournalTest, LargeAppendsAreGroupsOfTheirOwn) {
  for (const size_t bytes :
       {size_t{3} << 20, size_t{3} << 20, size_t{kAppendBytesMax}, size_t{1}}) {
    harness_.Append(0, {std::string(bytes, 'a' + bytes % 20)});
  }
  harness_.RunOnce();
  EXPECT_TRUE(harness_.results()[0].ok());
  EXPECT_FALSE(harness_.results()[1].ok());
  for (int i = 0; i < 3; ++i) harness_.RunOnce();
  ASSERT_TRUE(harness_.Open().ok());
  const RecordsByPosition records = Read()[0];
  ASSERT_EQ(records.size(), 4);
  EXPECT_EQ(records.at(2),
            std::string(kAppendBytesMax, 'a' + kAppendBytesMax % 20));
}

TEST_F(JournalTest, AsyncIsSyncedWhenTooManyBytesAreNot) {
  harness_.options().segment_bytes = UINT64_MAX;
  ASSERT_TRUE(harness_.Open().ok());
  const std::string segment = harness_.LastSegment();
  const uint64_t before = harness_.files().syncs(segment);
  const std::string record(kGroupBytesMax, 'a');
  for (uint64_t bytes = 0; bytes < kUnsyncedBytesMax; bytes += record.size()) {
    ASSERT_TRUE(harness_.AppendNow(0, record, Durability::kAsync).ok());
  }
  EXPECT_EQ(harness_.files().syncs(segment), before);
  ASSERT_TRUE(harness_.AppendNow(0, record, Durability::kAsync).ok());
  EXPECT_EQ(harness_.files().syncs(segment), before + 1);
}

TEST_F(JournalTest, ClosingCommitsAndSyncsWhatWaits) {
  harness_.Append(0, {"sync"});
  harness_.Append(1, {"async"}, Durability::kAsync);
  harness_.Close();
  EXPECT_TRUE(harness_.results()[0].ok());
  EXPECT_TRUE(harness_.results()[1].ok());
  std::mt19937_64 random(1);
  harness_.files().LosePower(MemoryFileSystem::Unsynced::kDropped, &random);
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(), ElementsAre(ElementsAre(Pair(0, "sync")),
                                  ElementsAre(Pair(0, "async"))));
}

TEST_F(JournalTest, TrimmedRecordsAreGoneAndTheirPositionsNotUsedAgain) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(harness_.AppendNow(0, std::string(200, 'a')).ok());
  }
  const uint64_t disk_bytes = harness_.journal().statistics().disk_bytes;
  ASSERT_TRUE(harness_.journal().TrimBefore(0, 95).ok());
  harness_.RunUntilTrimmed();
  EXPECT_LT(harness_.journal().statistics().disk_bytes, disk_bytes / 2);
  EXPECT_EQ(harness_.journal().First(0), 95);
  EXPECT_EQ(Read()[0].begin()->first, 95);
  EXPECT_EQ(harness_.journal()
                .Read({{{0, 94}}}, [](auto...) { return absl::OkStatus(); })
                .code(),
            absl::StatusCode::kOutOfRange);
  ASSERT_TRUE(harness_.journal().TrimBefore(0, 100).ok());
  harness_.RunOnce();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read()[0], IsEmpty());
  EXPECT_EQ(*harness_.AppendNow(0, "b"), 100);
}

TEST_F(JournalTest, ASegmentStaysWhileOnePartitionNeedsIt) {
  ASSERT_TRUE(harness_.AppendNow(1, "needed").ok());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(harness_.AppendNow(0, std::string(200, 'a')).ok());
  }
  ASSERT_TRUE(harness_.journal().TrimBefore(0, 100).ok());
  harness_.RunOnce();
  EXPECT_THAT(Read()[1], ElementsAre(Pair(0, "needed")));
  EXPECT_THAT(Read()[0], IsEmpty());
  const uint64_t segments = harness_.journal().statistics().segments;
  ASSERT_TRUE(harness_.journal().TrimBefore(1, 1).ok());
  harness_.RunOnce();
  EXPECT_LT(harness_.journal().statistics().segments, segments);
}

TEST_F(JournalTest, TrimBeyondTheEndIsRefused) {
  EXPECT_EQ(harness_.journal().TrimBefore(0, 1).code(),
            absl::StatusCode::kOutOfRange);
}

TEST_F(JournalTest, BadAppendsAreRefused) {
  harness_.Append(2, {"a"});
  harness_.Append(0, {});
  harness_.Append(0, {std::string(kAppendBytesMax + 1, 'a')});
  for (const auto& result : harness_.results()) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(JournalTest, AReadFromTheMiddleStartsThere) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(harness_.AppendNow(i % 2, std::to_string(i)).ok());
  }
  std::vector<std::string> records;
  ASSERT_TRUE(harness_.journal()
                  .Read({{{1, 48}}},
                        [&](uint32_t, uint64_t, absl::string_view record) {
                          records.emplace_back(record);
                          return absl::OkStatus();
                        })
                  .ok());
  EXPECT_THAT(records, ElementsAre("97", "99"));
}

TEST_F(JournalTest, AVisitorsErrorEndsTheRead) {
  ASSERT_TRUE(harness_.AppendNow(0, "a").ok());
  EXPECT_EQ(harness_.journal()
                .Read({{{0, 0}}},
                      [](auto...) { return absl::CancelledError("enough"); })
                .code(),
            absl::StatusCode::kCancelled);
}

TEST_F(JournalTest, ADirectoryInUseIsRefused) {
  const absl::Status status =
      LocalJournal::Open(kTestDirectory, harness_.options()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("in use"));
}

TEST_F(JournalTest, AnotherNumberOfPartitionsIsRefused) {
  harness_.options().partitions = 3;
  EXPECT_EQ(harness_.Open().code(), absl::StatusCode::kFailedPrecondition);
  harness_.options().partitions = 0;
  EXPECT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.journal().partitions(), 2);
}

TEST_F(JournalTest, ANewerFormatIsRefused) {
  harness_.Close();
  harness_.files().SetContents("/journal/FORMAT",
                               "timecached journal 2\nother\n");
  const absl::Status status = harness_.Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("newer"));
}

class JournalThreadTest : public ::testing::Test {
 protected:
  void Open(uint32_t partitions, uint64_t segment_bytes) {
    journal_ = nullptr;
    LocalJournalOptions options;
    options.partitions = partitions;
    options.segment_bytes = segment_bytes;
    options.files = &files_;
    auto journal = LocalJournal::Open(kTestDirectory, options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    journal_ = *std::move(journal);
  }

  MemoryFileSystem files_;
  std::unique_ptr<LocalJournal> journal_;
};

TEST_F(JournalThreadTest, AppendsOfManyThreadsAreAllThere) {
  constexpr uint64_t kSegmentBytes = 1 << 16;
  ASSERT_NO_FATAL_FAILURE(Open(4, kSegmentBytes));
  constexpr int kAppends = 2000;
  std::vector<std::thread> threads;
  std::atomic<int> done = 0;
  for (uint32_t p = 0; p < 4; ++p) {
    threads.emplace_back([&, p] {
      for (int i = 0; i < kAppends; ++i) {
        journal_->Append(p, {std::to_string(i)},
                         i % 3 == 0 ? Durability::kSync : Durability::kAsync,
                         [&, i](absl::StatusOr<uint64_t> position, auto) {
                           EXPECT_TRUE(position.ok());
                           EXPECT_EQ(*position, i);
                           ++done;
                         });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  journal_ = nullptr;
  EXPECT_EQ(done, 4 * kAppends);
  ASSERT_NO_FATAL_FAILURE(Open(4, kSegmentBytes));
  const ReadResult result = ReadAll(*journal_);
  ASSERT_TRUE(result.status.ok()) << result.status;
  for (const RecordsByPosition& records : result.partitions) {
    ASSERT_EQ(records.size(), kAppends);
    for (const auto& [position, record] : records) {
      EXPECT_EQ(record, std::to_string(position));
    }
  }
}

TEST_F(JournalThreadTest, ReadsTrimsAndBackupsRunBesideAppends) {
  ASSERT_NO_FATAL_FAILURE(Open(2, 1 << 14));
  constexpr uint64_t kAppends = 20'000;
  std::atomic<uint64_t> done = 0;
  std::thread appender([&] {
    for (uint64_t i = 0; i < kAppends; ++i) {
      journal_->Append(0, {std::to_string(i)}, Durability::kAsync,
                       [&](absl::StatusOr<uint64_t> position, auto) {
                         EXPECT_TRUE(position.ok());
                         ++done;
                       });
    }
  });
  std::thread reader([&] {
    while (done < kAppends) {
      uint64_t next = journal_->First(0);
      const absl::Status status = journal_->Read(
          {{{0, next}}},
          [&](uint32_t, uint64_t position, absl::string_view record) {
            EXPECT_EQ(position, next++);
            EXPECT_EQ(record, std::to_string(position));
            return absl::OkStatus();
          });
      EXPECT_TRUE(status.ok() || absl::IsOutOfRange(status)) << status;
    }
  });
  for (int backup = 0; done < kAppends; ++backup) {
    const uint64_t end = journal_->End(0);
    if (end > 500) {
      EXPECT_TRUE(journal_->TrimBefore(0, end - 500).ok());
    }
    if (backup < 20) {
      const std::string to = absl::StrCat("/backup", backup);
      EXPECT_TRUE(BackUp(journal_.get(), &files_, to).ok());
      const auto report = CheckJournal(&files_, to);
      ASSERT_TRUE(report.ok());
      EXPECT_TRUE(report->intact) << report->ToString();
    }
  }
  appender.join();
  reader.join();
  EXPECT_EQ(journal_->End(0), kAppends);
  EXPECT_LT(journal_->statistics().segments, 10);
}

}  // namespace
}  // namespace timecache::server
