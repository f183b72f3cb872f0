// A journal that goes on when its disk is full, or the process has no
// descriptor.
#include <random>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/local/local_journal.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// With room for a few appends that is kept for a full disk.
class JournalReserveTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kReserveBytes = 2'000;

  JournalReserveTest() {
    harness_.options().reserve_bytes = kReserveBytes;
    EXPECT_TRUE(harness_.Open().ok());
  }
  void FillDisk() { harness_.files().SetRoom(harness_.files().used_bytes()); }
  void LookForRoom() {
    harness_.Advance(harness_.options().reserve_interval);
    harness_.RunOnce();
  }
  bool low_space() { return harness_.journal().low_space(); }
  RecordsByPosition Read(uint32_t partition) {
    ReadResult result = ReadAll(harness_.journal());
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.partitions[partition];
  }

  JournalHarness harness_;
  std::mt19937_64 random_{1};
};

TEST_F(JournalReserveTest, AFullDiskTakesAppendsFromTheReserve) {
  ASSERT_TRUE(harness_.AppendNow(0, "before").ok());
  EXPECT_FALSE(low_space());
  FillDisk();
  EXPECT_EQ(*harness_.AppendNow(0, std::string(1'000, 'x')), 1);
  EXPECT_TRUE(low_space());
  EXPECT_TRUE(harness_.journal().statistics().low_space);
  EXPECT_EQ(harness_.journal().statistics().full_errors, 1);
  EXPECT_EQ(*harness_.AppendNow(0, "in the reserve"), 2);
  // Used up.
  EXPECT_EQ(harness_.AppendNow(0, std::string(1'000, 'y')).status().code(),
            absl::StatusCode::kResourceExhausted);
  harness_.files().SetRoom(UINT64_MAX);
  harness_.files().LosePower(MemoryFileSystem::Unsynced::kDropped, &random_);
  harness_.Crash();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0),
              ElementsAre(Pair(0, "before"), Pair(1, std::string(1'000, 'x')),
                          Pair(2, "in the reserve")));
  EXPECT_FALSE(low_space());
}

TEST_F(JournalReserveTest, TheReserveIsMadeUpForOnceThereIsRoomForWhatWasUsed) {
  FillDisk();
  ASSERT_TRUE(harness_.AppendNow(0, std::string(1'000, 'x')).ok());
  LookForRoom();
  EXPECT_TRUE(low_space());
  harness_.files().SetRoom(harness_.files().used_bytes() + 1'000);
  LookForRoom();
  EXPECT_TRUE(low_space());
  harness_.files().SetRoom(harness_.files().used_bytes() + 1'500);
  harness_.RunOnce();
  EXPECT_TRUE(low_space()) << "it looks before it is time";
  LookForRoom();
  EXPECT_FALSE(low_space());
  // And is there again.
  FillDisk();
  EXPECT_TRUE(harness_.AppendNow(0, std::string(1'000, 'y')).ok());
  EXPECT_TRUE(low_space());
}

// The room of the segment that was one.
TEST_F(JournalReserveTest, AReserveInUseIsMadeUpForAsItIsUsed) {
  FillDisk();
  ASSERT_TRUE(harness_.AppendNow(0, "x").ok());
  harness_.files().SetRoom(UINT64_MAX);
  LookForRoom();
  ASSERT_FALSE(low_space());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(harness_.AppendNow(0, std::string(80, 'y')).ok());
  }
  FillDisk();
  EXPECT_TRUE(harness_.AppendNow(0, std::string(1'000, 'z')).ok());
  EXPECT_TRUE(harness_.AppendNow(0, std::string(300, 'z')).ok());
  EXPECT_TRUE(low_space());
}

// Which fill the disk, and take at once what becomes free.
TEST_F(JournalReserveTest, TheReserveIsNeverThereForOthers) {
  ASSERT_TRUE(harness_.AppendNow(0, "before").ok());
  harness_.files().TakeAllRoom();
  EXPECT_EQ(*harness_.AppendNow(0, std::string(1'000, 'x')), 1);
  EXPECT_TRUE(low_space());
  EXPECT_EQ(*harness_.AppendNow(0, std::string(500, 'y')), 2);
  // Nor is it over a restart, in order or by a crash.
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_TRUE(low_space());
  EXPECT_EQ(*harness_.AppendNow(0, "z"), 3);
  harness_.Crash();
  harness_.files().TakeAllRoom();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(*harness_.AppendNow(0, "after"), 4);
  EXPECT_THAT(Read(0), testing::SizeIs(5));
}

TEST_F(JournalReserveTest, AStartKeepsTheReserveThatIsThere) {
  ASSERT_TRUE(harness_.AppendNow(0, "before").ok());
  harness_.files().TakeAllRoom();
  harness_.Crash();
  harness_.files().TakeAllRoom();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_FALSE(low_space());
  EXPECT_TRUE(harness_.AppendNow(0, std::string(1'000, 'x')).ok());
  EXPECT_TRUE(low_space());
}

// What an append cuts off that has failed half-way does not take the room
// behind it along.
TEST_F(JournalReserveTest, AFailedAppendInTheReserveLeavesTheRoom) {
  FillDisk();
  ASSERT_TRUE(harness_.AppendNow(0, "x").ok());
  ASSERT_TRUE(low_space());
  bool failed = false;
  harness_.files().SetFault([&](const std::string&, uint64_t, bool) {
    return std::exchange(failed, true)
               ? absl::OkStatus()
               : absl::UnavailableError("Cannot allocate memory");
  });
  EXPECT_FALSE(harness_.AppendNow(0, std::string(100, 'y')).ok());
  const auto file = harness_.files().Open(harness_.LastSegment());
  EXPECT_GE(*(*file)->Allocated(), kReserveBytes);
  harness_.files().SetFault(nullptr);
  EXPECT_TRUE(harness_.AppendNow(0, std::string(1'000, 'z')).ok());
}

// Nor does what a start cuts off.
TEST_F(JournalReserveTest, ATornTailInTheReserveLeavesTheRoom) {
  harness_.files().TakeAllRoom();
  ASSERT_TRUE(harness_.AppendNow(0, std::string(500, 'x')).ok());
  ASSERT_TRUE(low_space());
  const std::string last = harness_.LastSegment();
  harness_.Crash();
  {
    auto file = harness_.files().Open(last);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Write(*(*file)->Size(), "torn").ok());
  }
  harness_.files().SetRoom(harness_.files().used_bytes());
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_GE(*(*harness_.files().Open(last))->Allocated(), kReserveBytes);
}

TEST_F(JournalReserveTest, ASegmentGivesTheRestOfItsRoomBack) {
  harness_.files().TakeAllRoom();
  ASSERT_TRUE(harness_.AppendNow(0, std::string(500, 'x')).ok());
  harness_.files().SetRoom(UINT64_MAX);
  LookForRoom();
  ASSERT_FALSE(low_space());
  const std::string last = harness_.LastSegment();
  EXPECT_GE(*(*harness_.files().Open(last))->Allocated(), kReserveBytes);
  ASSERT_TRUE(harness_.AppendNow(0, std::string(5'000, 'y')).ok());
  ASSERT_TRUE(harness_.AppendNow(0, "z").ok());
  ASSERT_NE(harness_.LastSegment(), last);
  const auto file = harness_.files().Open(last);
  EXPECT_EQ(*(*file)->Allocated(), *(*file)->Size());
  EXPECT_THAT(Read(0), testing::SizeIs(3));
}

TEST_F(JournalReserveTest, AReserveThatCannotBeUsedAtTheMomentIsKept) {
  FillDisk();
  bool failed = false;
  harness_.files().SetChangeFault([&](const std::string& path) {
    return absl::EndsWith(path, "2") && !std::exchange(failed, true)
               ? absl::UnavailableError("Cannot allocate memory")
               : absl::OkStatus();
  });
  EXPECT_FALSE(harness_.AppendNow(0, std::string(1'000, 'x')).ok());
  EXPECT_TRUE(failed);
  EXPECT_TRUE(harness_.AppendNow(0, std::string(1'000, 'x')).ok());
  EXPECT_TRUE(low_space());
  EXPECT_THAT(harness_.failures(), testing::IsEmpty());
}

// Earlier versions filled it with zeros.
TEST_F(JournalReserveTest, AReserveOfAnEarlierVersionIsUsed) {
  harness_.Close();
  harness_.files().SetContents(absl::StrCat(kTestDirectory, "/RESERVE"),
                               std::string(kReserveBytes, '\0'));
  ASSERT_TRUE(harness_.Open().ok());
  harness_.files().TakeAllRoom();
  ASSERT_TRUE(harness_.AppendNow(0, std::string(1'000, 'x')).ok());
  EXPECT_TRUE(low_space());
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0), testing::SizeIs(1));
}

// As btrfs does on a full disk.
TEST_F(JournalReserveTest, ADiskThatIsFullForTruncationsUsesTheReserve) {
  ASSERT_TRUE(harness_.AppendNow(0, "before").ok());
  FillDisk();
  const std::string last = harness_.LastSegment();
  int refused = 0;
  harness_.files().SetChangeFault([&](const std::string& path) {
    if (path != last) return absl::OkStatus();
    ++refused;
    return absl::ResourceExhaustedError("full");
  });
  EXPECT_EQ(*harness_.AppendNow(0, std::string(1'000, 'x')), 1);
  EXPECT_EQ(refused, 2);
  EXPECT_TRUE(low_space());
  // What could not be cut off is written over, and cut off later.
  EXPECT_EQ(*harness_.AppendNow(0, "small"), 2);
  EXPECT_THAT(harness_.failures(), testing::IsEmpty());
  harness_.files().SetChangeFault(nullptr);
  harness_.files().SetRoom(UINT64_MAX);
  LookForRoom();
  ASSERT_FALSE(low_space());
  ASSERT_TRUE(harness_.AppendNow(0, std::string(5'000, 'y')).ok());
  ASSERT_TRUE(harness_.AppendNow(0, "z").ok());
  ASSERT_NE(harness_.LastSegment(), last);
  harness_.files().LosePower(MemoryFileSystem::Unsynced::kDropped, &random_);
  harness_.Crash();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0), testing::SizeIs(5));
}

TEST_F(JournalReserveTest, AStartWithoutRoomForACutGivesTheReserveUp) {
  const std::string last = harness_.LastSegment();
  harness_.Crash();
  {
    auto file = harness_.files().Open(last);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Write(*(*file)->Size(), "torn").ok());
  }
  bool refused = false;
  harness_.files().SetChangeFault([&](const std::string& path) {
    if (path != last || std::exchange(refused, true)) return absl::OkStatus();
    return absl::ResourceExhaustedError("full");
  });
  EXPECT_TRUE(harness_.Open().ok());
  EXPECT_TRUE(refused);
  harness_.files().SetChangeFault(nullptr);
}

TEST_F(JournalReserveTest, AFileSystemThatCannotReserveRoomHasNoReserve) {
  harness_.Close();
  harness_.files().SetFault([](const std::string& path, uint64_t, bool) {
    return absl::StrContains(path, "RESERVE")
               ? absl::UnimplementedError("Operation not supported")
               : absl::OkStatus();
  });
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_FALSE(low_space());
  EXPECT_EQ(harness_.journal().reserve_bytes(), 0);
  EXPECT_TRUE(harness_.AppendNow(0, "x").ok());
  EXPECT_THAT(harness_.files().Paths(),
              testing::Not(testing::Contains(HasSubstr("RESERVE"))));
}

// Until there is one the segment grows.
TEST_F(JournalReserveTest, ASegmentWithoutADescriptorIsStartedLater) {
  const std::string large(harness_.options().segment_bytes, 'x');
  ASSERT_TRUE(harness_.AppendNow(0, large).ok());
  int refused = 0;
  harness_.files().SetChangeFault([&](const std::string& path) {
    if (!absl::EndsWith(path, ".tmp")) return absl::OkStatus();
    ++refused;
    return absl::UnavailableError("Too many open files");
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*harness_.AppendNow(0, "goes on"), i + 1);
  }
  EXPECT_EQ(refused, 1) << "with each append";
  EXPECT_EQ(harness_.journal().statistics().segments, 1);
  EXPECT_FALSE(low_space());
  EXPECT_THAT(harness_.failures(), testing::IsEmpty());
  harness_.files().SetChangeFault(nullptr);
  harness_.Advance(harness_.options().reserve_interval);
  EXPECT_EQ(*harness_.AppendNow(0, "after"), 4);
  EXPECT_EQ(harness_.journal().statistics().segments, 2);
  harness_.Crash();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0), testing::SizeIs(5));
}

// Then a crash may find it or not: nothing is written to either meanwhile.
TEST_F(JournalReserveTest, ASegmentWhoseNameIsNotSyncedTakesNoAppend) {
  const std::string large(harness_.options().segment_bytes, 'x');
  ASSERT_TRUE(harness_.AppendNow(0, large).ok());
  harness_.files().SetFault([](const std::string& path, uint64_t, bool sync) {
    return sync && path == kTestDirectory
               ? absl::UnavailableError("Cannot allocate memory")
               : absl::OkStatus();
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(harness_.AppendNow(0, "refused").status().code(),
              absl::StatusCode::kUnavailable);
  }
  EXPECT_THAT(harness_.failures(), testing::IsEmpty());
  harness_.files().SetFault(nullptr);
  EXPECT_EQ(*harness_.AppendNow(0, "after"), 1);
  EXPECT_EQ(harness_.journal().statistics().segments, 2);
  harness_.files().LosePower(MemoryFileSystem::Unsynced::kDropped, &random_);
  harness_.Crash();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0), ElementsAre(Pair(0, large), Pair(1, "after")));
}

TEST_F(JournalReserveTest, ASyncWithoutRoomIsTriedAgainFromTheReserve) {
  ASSERT_TRUE(harness_.AppendNow(0, "async", Durability::kAsync).ok());
  harness_.files().SetFault([](const std::string&, uint64_t, bool sync) {
    return sync ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  harness_.Advance(harness_.options().sync_interval);
  harness_.RunOnce();
  EXPECT_TRUE(low_space());
  harness_.files().SetFault(nullptr);
  harness_.Advance(harness_.options().sync_interval);
  harness_.RunOnce();
  EXPECT_FALSE(harness_.journal().statistics().syncs == 0);
  harness_.files().LosePower(MemoryFileSystem::Unsynced::kDropped, &random_);
  harness_.Crash();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(Read(0), ElementsAre(Pair(0, "async")));
}

TEST_F(JournalReserveTest, ADiskWithoutRoomForAReserveIsOpenedAllTheSame) {
  ASSERT_TRUE(harness_.AppendNow(0, "before").ok());
  harness_.Close();
  harness_.options().reserve_bytes = 2 * kReserveBytes;
  harness_.files().SetRoom(harness_.files().used_bytes() + 100);
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_TRUE(low_space());
  EXPECT_THAT(Read(0), ElementsAre(Pair(0, "before")));
  harness_.files().SetRoom(UINT64_MAX);
  LookForRoom();
  EXPECT_FALSE(low_space());
}

TEST_F(JournalReserveTest, AJournalWithoutAReserveLeavesNone) {
  const uint64_t used_bytes = harness_.files().used_bytes();
  harness_.options().reserve_bytes = 0;
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_LE(harness_.files().used_bytes(), used_bytes - kReserveBytes);
  FillDisk();
  EXPECT_FALSE(harness_.AppendNow(0, "x").ok());
  EXPECT_FALSE(low_space());
}

}  // namespace
}  // namespace timecache::server
