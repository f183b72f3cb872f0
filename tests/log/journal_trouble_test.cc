// A disk that is full, fails, loses power: what was acknowledged is there.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/local/local_journal.h"
#include "tests/support/effort.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class JournalTroubleTest : public ::testing::Test {
 protected:
  JournalTroubleTest() { EXPECT_TRUE(harness_.Open().ok()); }
  RecordsByPosition Read(uint32_t partition) {
    ReadResult result = ReadAll(harness_.journal());
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.partitions[partition];
  }
  void FailSyncs(absl::Status status) {
    harness_.files().SetFault(
        [status](const std::string&, uint64_t, bool sync) {
          return sync ? status : absl::OkStatus();
        });
  }

  JournalHarness harness_;
  std::mt19937_64 random_{1};
};

TEST_F(JournalTroubleTest, AFullDiskRefusesAppendsUntilThereIsRoom) {
  ASSERT_TRUE(harness_.AppendNow(0, "before").ok());
  harness_.files().SetRoom(harness_.files().used_bytes() + 50);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(harness_.AppendNow(0, std::string(100, 'x')).status().code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(Read(0), ElementsAre(Pair(0, "before")));
  }
  EXPECT_EQ(harness_.journal().statistics().full_errors, 3);
  harness_.files().SetRoom(UINT64_MAX);
  EXPECT_EQ(*harness_.AppendNow(0, "after"), 1);
  EXPECT_THAT(harness_.failures(), testing::IsEmpty());
  harness_.Crash();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0), ElementsAre(Pair(0, "before"), Pair(1, "after")));
}

// The bytes of a refused append, which could not be cut off, are no record, nor
// do they make the journal look damaged: however it ends.
TEST_F(JournalTroubleTest, WhatCouldNotBeCutOffIsNotFound) {
  ASSERT_TRUE(harness_.AppendNow(0, "before").ok());
  FailSyncs(absl::ResourceExhaustedError("full"));
  harness_.files().SetChangeFault(
      [](const std::string&) { return absl::ResourceExhaustedError("full"); });
  ASSERT_FALSE(harness_.AppendNow(0, std::string(300, 'x')).ok());
  harness_.files().SetFault(nullptr);
  ASSERT_EQ(*harness_.AppendNow(0, "after"), 1);
  harness_.Close();
  harness_.files().SetChangeFault(nullptr);
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0), ElementsAre(Pair(0, "before"), Pair(1, "after")));
  ASSERT_EQ(*harness_.AppendNow(0, "more"), 2);
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0), testing::SizeIs(3));
}

TEST_F(JournalTroubleTest, ADiskThatIsFullWhenASegmentStartsIsTriedAgain) {
  while (harness_.journal().statistics().disk_bytes < 4096) {
    ASSERT_TRUE(harness_.AppendNow(0, std::string(200, 'a')).ok());
  }
  harness_.files().SetRoom(harness_.files().used_bytes() + 10);
  EXPECT_EQ(harness_.AppendNow(0, "b").status().code(),
            absl::StatusCode::kResourceExhausted);
  harness_.files().SetRoom(UINT64_MAX);
  harness_.Advance(harness_.options().reserve_interval);
  EXPECT_TRUE(harness_.AppendNow(0, "b").ok());
  EXPECT_EQ(harness_.journal().statistics().segments, 2);
}

TEST_F(JournalTroubleTest, TrimmingMakesRoomOnAFullDisk) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(harness_.AppendNow(0, std::string(200, 'a')).ok());
  }
  harness_.files().SetRoom(harness_.files().used_bytes());
  ASSERT_FALSE(harness_.AppendNow(0, std::string(200, 'a')).ok());
  ASSERT_TRUE(harness_.journal().TrimBefore(0, 100).ok());
  harness_.RunOnce();
  EXPECT_EQ(*harness_.AppendNow(0, std::string(200, 'a')), 100);
}

TEST_F(JournalTroubleTest, ASyncWithoutRoomLosesNoAsyncRecord) {
  ASSERT_TRUE(harness_.AppendNow(0, "async", Durability::kAsync).ok());
  FailSyncs(absl::ResourceExhaustedError("full"));
  EXPECT_EQ(harness_.AppendNow(0, "sync").status().code(),
            absl::StatusCode::kResourceExhausted);
  harness_.Advance(harness_.options().sync_interval);
  harness_.RunOnce();
  EXPECT_THAT(Read(0), ElementsAre(Pair(0, "async")));
  harness_.files().SetFault(nullptr);
  EXPECT_EQ(*harness_.AppendNow(0, "later"), 1);
  // All of it: what the failed syncs have dropped was written again.
  harness_.files().LosePower(MemoryFileSystem::Unsynced::kDropped, &random_);
  harness_.Crash();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0), ElementsAre(Pair(0, "async"), Pair(1, "later")));
}

TEST_F(JournalTroubleTest, WhatWasAnsweredAsFailedIsNotThereAfterwards) {
  FailSyncs(absl::ResourceExhaustedError("full"));
  EXPECT_FALSE(harness_.AppendNow(0, "failed").ok());
  harness_.Crash();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0), testing::IsEmpty());
}

TEST_F(JournalTroubleTest, WhatIsTrimmedIsSyncedBeforeTheTrim) {
  while (harness_.journal().statistics().segments < 2) {
    ASSERT_TRUE(harness_.AppendNow(0, std::string(200, 'a')).ok());
  }
  ASSERT_TRUE(harness_.AppendNow(0, "async", Durability::kAsync).ok());
  const uint64_t end = harness_.journal().End(0);
  ASSERT_TRUE(harness_.journal().TrimBefore(0, end).ok());
  harness_.RunOnce();
  harness_.files().LosePower(MemoryFileSystem::Unsynced::kDropped, &random_);
  harness_.Crash();
  // Otherwise the log would end before what is trimmed.
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.journal().First(0), end);
  EXPECT_EQ(*harness_.AppendNow(0, "b"), end);
}

TEST_F(JournalTroubleTest, AFailedSyncStopsTheJournal) {
  ASSERT_TRUE(harness_.AppendNow(0, "before").ok());
  FailSyncs(absl::InternalError("input/output error"));
  EXPECT_EQ(harness_.AppendNow(0, "lost").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(harness_.failures(), ElementsAre(HasSubstr("/journal stops")));
  harness_.files().SetFault(nullptr);
  EXPECT_EQ(harness_.AppendNow(0, "later").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Read(0), ElementsAre(Pair(0, "before")));
  EXPECT_EQ(harness_.journal().statistics().sync_errors, 1);
  EXPECT_EQ(harness_.failures().size(), 1);
}

TEST_F(JournalTroubleTest, AFailedSyncOfAsyncRecordsStopsTheJournal) {
  ASSERT_TRUE(harness_.AppendNow(0, "a", Durability::kAsync).ok());
  FailSyncs(absl::InternalError("input/output error"));
  harness_.Advance(harness_.options().sync_interval);
  harness_.RunOnce();
  EXPECT_EQ(harness_.failures().size(), 1);
}

TEST_F(JournalTroubleTest, AFailedWriteStopsTheJournal) {
  harness_.files().SetFault([](const std::string&, uint64_t, bool sync) {
    return sync ? absl::OkStatus() : absl::InternalError("input/output error");
  });
  EXPECT_EQ(harness_.AppendNow(0, "a").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(harness_.failures().size(), 1);
}

TEST(JournalDeathTest, AFailedSyncAbortsByDefault) {
  JournalHarness harness;
  harness.options().on_failure = nullptr;
  ASSERT_TRUE(harness.Open().ok());
  harness.files().SetFault([](const std::string&, uint64_t, bool sync) {
    return sync ? absl::InternalError("broken") : absl::OkStatus();
  });
  EXPECT_DEATH(harness.AppendNow(0, "a").IgnoreError(),
               "timecached: journal /journal stops: .*broken");
}

// Random appends, trims and restarts on a disk that loses power at a random
// write or sync, beside a model of what was acknowledged.
class PowerLossWorld {
 public:
  PowerLossWorld(uint64_t seed, MemoryFileSystem::Unsynced unsynced, bool syncs)
      : random_(seed), unsynced_(unsynced), syncs_(syncs) {
    if (!syncs_) harness_.files().IgnoreSyncs();
  }

  // Acknowledged SYNC records that were lost, over all power losses.
  int lost() const { return lost_; }

  // Until the power fails, and the start after that.
  void Round() {
    if (syncs_ && Random(0, 3) == 0) LosePowerAtOpen();
    const absl::Status opened = harness_.Open();
    if (!syncs_ && !opened.ok()) {
      // Without syncs it may refuse what is there: this is a loss, too.
      ++lost_;
      return;
    }
    ASSERT_TRUE(opened.ok()) << opened;
    Verify();
    dead_ = false;
    FailAfter(Random(0, 60));
    while (!dead_ && Random(0, 100) > 0) Act();
    if (!dead_ && Random(0, 1) == 0) harness_.Close();
    LosePower();
  }

 private:
  // Writes and syncs before the disk does nothing more.
  void FailAfter(int steps) {
    harness_.files().SetFault(
        [this, steps](const std::string&, uint64_t, bool) mutable {
          dead_ |= steps-- <= 0;
          return dead_ ? absl::InternalError("no power") : absl::OkStatus();
        });
  }

  void LosePower() {
    harness_.files().LosePower(unsynced_, &random_);
    harness_.files().SetFault(nullptr);
    harness_.Crash();
    if (!syncs_) harness_.files().IgnoreSyncs();
  }

  void LosePowerAtOpen() {
    dead_ = false;
    FailAfter(Random(0, 6));
    harness_.Open().IgnoreError();
    LosePower();
  }

  static constexpr uint32_t kPartitions = 3;
  struct Partition {
    std::vector<std::string> submitted;  // since the last start, in order
    RecordsByPosition acknowledged;
    uint64_t durable_end = 0;
    uint64_t trimmed = 0;
  };

  int Random(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random_);
  }

  void Act() {
    const int action = Random(0, 9);
    if (action == 0) {
      const uint32_t p = Random(0, kPartitions - 1);
      const uint64_t position =
          Random(harness_.journal().First(p), harness_.journal().End(p));
      ASSERT_TRUE(harness_.journal().TrimBefore(p, position).ok());
      model_[p].trimmed = position;
      harness_.RunOnce();
    } else if (action == 1) {
      harness_.Advance(harness_.options().sync_interval);
      harness_.RunOnce();
    } else {
      Commit();
    }
  }

  void Commit() {
    struct Waiting {
      uint32_t partition;
      std::vector<std::string> records;
      size_t result;
    };
    std::vector<Waiting> group;
    bool sync = false;
    for (int appends = Random(1, 5); appends > 0; --appends) {
      Waiting waiting{.partition = uint32_t(Random(0, kPartitions - 1)),
                      .records = {},
                      .result = 0};
      for (int records = Random(1, 3); records > 0; --records) {
        waiting.records.push_back(absl::StrCat(
            ++counter_, ":",
            std::string(Random(0, Random(0, 9) == 0 ? 2000 : 50), 'r')));
        model_[waiting.partition].submitted.push_back(waiting.records.back());
      }
      const bool is_sync = Random(0, 1) == 0;
      sync |= is_sync;
      waiting.result =
          harness_.Append(waiting.partition, waiting.records,
                          is_sync ? Durability::kSync : Durability::kAsync);
      group.push_back(std::move(waiting));
    }
    harness_.RunOnce();
    for (const Waiting& waiting : group) {
      const auto& result = harness_.results()[waiting.result];
      if (!result.ok()) return;
      for (size_t i = 0; i < waiting.records.size(); ++i) {
        model_[waiting.partition].acknowledged[*result + i] =
            waiting.records[i];
      }
    }
    if (!sync) return;
    for (uint32_t p = 0; p < kPartitions; ++p) {
      model_[p].durable_end = harness_.journal().End(p);
    }
  }

  void Verify() {
    const ReadResult result = ReadAll(harness_.journal());
    if (!syncs_ && !result.status.ok()) {
      ++lost_;
      return;
    }
    ASSERT_TRUE(result.status.ok()) << result.status;
    for (uint32_t p = 0; p < kPartitions; ++p) {
      Partition& partition = model_[p];
      const RecordsByPosition& records = result.partitions[p];
      const uint64_t first = harness_.journal().First(p);
      const uint64_t end = harness_.journal().End(p);
      if (syncs_) {
        ASSERT_GE(end, partition.durable_end);
        ASSERT_LE(first, partition.trimmed);
      } else {
        lost_ += end < partition.durable_end ? partition.durable_end - end : 0;
      }
      ASSERT_EQ(records.size(), end - first);
      ASSERT_EQ(harness_.journal().End(p), end);
      // What was not acknowledged may be there, in the order of its appends.
      auto submitted = partition.submitted.begin();
      for (const auto& [position, record] : records) {
        const auto known = partition.acknowledged.find(position);
        if (known != partition.acknowledged.end()) {
          if (syncs_) {
            ASSERT_EQ(record, known->second) << position;
          }
          continue;
        }
        submitted = std::find(submitted, partition.submitted.end(), record);
        ASSERT_NE(submitted, partition.submitted.end()) << record;
        ++submitted;
      }
      partition.acknowledged = records;
      partition.durable_end = end;
      partition.trimmed = std::max(partition.trimmed, first);
      partition.submitted.clear();
    }
  }

  std::mt19937_64 random_;
  const MemoryFileSystem::Unsynced unsynced_;
  const bool syncs_;
  JournalHarness harness_{kPartitions};
  Partition model_[kPartitions];
  bool dead_ = false;
  int counter_ = 0;
  int lost_ = 0;
};

void LosePowerOften(MemoryFileSystem::Unsynced unsynced) {
  const uint64_t first = test::Seed();
  for (uint64_t seed = first; seed < first + test::Rounds(40); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    PowerLossWorld world(seed, unsynced, /*syncs=*/true);
    for (int round = 0; round < 30; ++round) {
      world.Round();
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(world.lost(), 0);
  }
}

TEST(JournalPowerLossTest, WhatWasSyncedSurvivesALossOfAllElse) {
  LosePowerOften(MemoryFileSystem::Unsynced::kDropped);
}

TEST(JournalPowerLossTest, WhatWasSyncedSurvivesALossOfRandomBlocks) {
  LosePowerOften(MemoryFileSystem::Unsynced::kKeptInPart);
}

// Otherwise the tests above would prove nothing.
TEST(JournalPowerLossTest, WithoutSyncsRecordsAreLost) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    PowerLossWorld world(seed, MemoryFileSystem::Unsynced::kDropped,
                         /*syncs=*/false);
    for (int round = 0; round < 5; ++round) world.Round();
    lost += world.lost();
  }
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace timecache::server
