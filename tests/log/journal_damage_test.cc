// Files that are damaged: refused or salvaged, never a wrong record.
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/failpoint.h"
#include "server/log/local/journal_tools.h"
#include "server/log/local/local_journal.h"
#include "tests/support/effort.h"
#include "tests/support/journal/journal_harness.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;

// Damages are up to so many bytes apart.
constexpr size_t kStride = 20 / test::Rounds(size_t{4});

constexpr uint32_t kPartitions = 3;
constexpr char kSalvaged[] = "/salvaged";

// A journal of some segments and groups, partly trimmed, and all of its
// records.
class JournalDamageTest : public ::testing::Test {
 protected:
  JournalDamageTest() {
    EXPECT_TRUE(harness_.Open().ok());
    for (int i = 0; i < 60; ++i) {
      for (uint32_t p = 0; p <= uint32_t(i) % kPartitions; ++p) {
        std::vector<std::string> records;
        for (int n = 0; n <= i % 4; ++n) {
          records.push_back(
              absl::StrCat(p, ":", i, ":", n, std::string(i * 7 % 90, 'r')));
          model_[p][end_[p]++] = records.back();
        }
        harness_.Append(p, records);
      }
      harness_.RunOnce();
      if (i == 30) {
        for (uint32_t p = 0; p < kPartitions; ++p) {
          trimmed_[p] = end_[p] - 5;
          EXPECT_TRUE(harness_.journal().TrimBefore(p, trimmed_[p]).ok());
        }
        harness_.RunOnce();
      }
    }
    EXPECT_GE(harness_.journal().statistics().segments, 3);
    crashed_ = harness_.files().Copy();
    harness_.Close();
    closed_ = harness_.files().Copy();
  }

  // Opens what a damage has left, and reads all. `lost` may be missing at the
  // end of the log. True if it was refused.
  bool IsRefused(std::unique_ptr<MemoryFileSystem> files, bool may_lose_tail) {
    harness_.UseFiles(std::move(files));
    const absl::Status opened = harness_.Open();
    if (!opened.ok()) {
      EXPECT_THAT(opened.code(), AnyOf(absl::StatusCode::kDataLoss,
                                       absl::StatusCode::kFailedPrecondition))
          << opened;
      EXPECT_THAT(std::string(opened.message()), HasSubstr("/journal"));
      return true;
    }
    const ReadResult result = ReadAll(harness_.journal());
    for (uint32_t p = 0; p < kPartitions; ++p) ExpectTrue(p, result);
    if (!result.status.ok()) {
      EXPECT_EQ(result.status.code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(result.status.message()),
                  HasSubstr("timecachectl journal salvage"));
      harness_.Close();
      return true;
    }
    for (uint32_t p = 0; p < kPartitions; ++p) {
      EXPECT_LE(harness_.journal().First(p), trimmed_[p]);
      EXPECT_EQ(result.partitions[p].size(),
                harness_.journal().End(p) - harness_.journal().First(p));
      if (!may_lose_tail) {
        EXPECT_EQ(harness_.journal().End(p), end_[p]);
      }
    }
    harness_.Close();
    return false;
  }

  // Flips a bit of the file, about every `stride` bytes, each on a disk of its
  // own, until the test has failed.
  void FlipBits(const MemoryFileSystem& disk, const std::string& path,
                size_t stride,
                const std::function<void(std::unique_ptr<MemoryFileSystem>,
                                         size_t at)>& check) {
    const std::string contents = disk.Contents(path);
    for (size_t at = random_() % stride; at < contents.size() && !HasFailure();
         at += 1 + random_() % stride) {
      SCOPED_TRACE(absl::StrCat(path, " byte ", at));
      auto files = disk.Copy();
      std::string damaged = contents;
      damaged[at] ^= 1 << random_() % 8;
      files->SetContents(path, damaged);
      check(std::move(files), at);
    }
  }

  // What was read is what was appended.
  void ExpectTrue(uint32_t p, const ReadResult& result) {
    for (const auto& [position, record] : result.partitions[p]) {
      ASSERT_EQ(record, model_[p].at(position));
    }
  }

  // Salvages and returns how many of the records that are not trimmed are gone.
  size_t LostBySalvage(MemoryFileSystem* files) {
    for (const std::string& path : files->Paths()) {
      if (absl::StartsWith(path, kSalvaged)) files->Remove(path).IgnoreError();
    }
    const auto report = SalvageJournal(files, kTestDirectory, kSalvaged);
    if (!report.ok()) return SIZE_MAX;
    LocalJournalOptions options = harness_.options();
    options.files = files;
    const auto journal = LocalJournal::Open(kSalvaged, options);
    EXPECT_TRUE(journal.ok()) << journal.status() << report->ToString();
    if (!journal.ok()) return SIZE_MAX;
    const ReadResult result = ReadAll(**journal);
    EXPECT_TRUE(result.status.ok()) << result.status;
    size_t lost = 0;
    for (uint32_t p = 0; p < kPartitions; ++p) {
      ExpectTrue(p, result);
      for (uint64_t at = trimmed_[p]; at < end_[p]; ++at) {
        lost += result.partitions[p].count(at) == 0 ? 1 : 0;
      }
    }
    EXPECT_EQ(lost > 0 || !report->intact, !report->intact);
    return lost;
  }

  // TRIM has each state twice, and a BOOT of other content is of another boot.
  static bool MayBeDamaged(const std::string& path) {
    return absl::EndsWith(path, "/TRIM") || absl::EndsWith(path, "/BOOT");
  }

  JournalHarness harness_{kPartitions};
  RecordsByPosition model_[kPartitions];
  uint64_t end_[kPartitions] = {};
  uint64_t trimmed_[kPartitions] = {};
  std::unique_ptr<MemoryFileSystem> closed_;
  std::unique_ptr<MemoryFileSystem> crashed_;
  std::mt19937_64 random_{7};
};

TEST_F(JournalDamageTest, AFlippedBitIsNeverRead) {
  int flips = 0;
  int refused = 0;
  for (const std::string& path : closed_->Paths()) {
    FlipBits(*closed_, path, kStride, [&](auto files, size_t /*at*/) {
      ++flips;
      const bool is_refused = IsRefused(std::move(files), false);
      refused += is_refused ? 1 : 0;
      if (!MayBeDamaged(path)) {
        ASSERT_TRUE(is_refused);
      }
    });
  }
  EXPECT_GT(flips, test::Rounds(3'000));
  EXPECT_GT(refused, test::Rounds(1'000));
}

TEST_F(JournalDamageTest, ATruncatedFileIsRefused) {
  for (const std::string& path : closed_->Paths()) {
    const std::string contents = closed_->Contents(path);
    for (size_t size = 0; size < contents.size();
         size += 1 + random_() % (4 * kStride)) {
      auto files = closed_->Copy();
      files->SetContents(path, contents.substr(0, size));
      SCOPED_TRACE(absl::StrCat(path, " cut to ", size));
      const bool is_refused = IsRefused(std::move(files), false);
      if (!MayBeDamaged(path)) {
        ASSERT_TRUE(is_refused);
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(JournalDamageTest, AMissingFileIsRefused) {
  for (const std::string& path : closed_->Paths()) {
    auto files = closed_->Copy();
    ASSERT_TRUE(files->Remove(path).ok());
    SCOPED_TRACE(path);
    // Without END, it is as after a crash.
    EXPECT_THAT(
        IsRefused(std::move(files), false),
        Eq(!absl::EndsWith(path, "/END") && !absl::EndsWith(path, "/BOOT")));
  }
}

TEST_F(JournalDamageTest, AMissingGroupIsRefused) {
  const std::vector<uint64_t> segments =
      *ListSegments(closed_.get(), kTestDirectory);
  const std::string last = SegmentPath(kTestDirectory, segments.back());
  for (const uint64_t number : segments) {
    const std::string path = SegmentPath(kTestDirectory, number);
    const std::string contents = closed_->Contents(path);
    const auto reader = SegmentReader::Open(closed_.get(), path, nullptr);
    ASSERT_TRUE(reader.ok());
    Group group;
    while (*(*reader)->Next(&group) == SegmentReader::Outcome::kGroup) {
      for (const bool crashed : {false, true}) {
        auto files = closed_->Copy();
        files->SetContents(path, contents.substr(0, group.offset) +
                                     contents.substr((*reader)->offset()));
        if (crashed) files->Remove("/journal/END").IgnoreError();
        SCOPED_TRACE(absl::StrCat(path, " group at byte ", group.offset));
        const bool is_last =
            path == last && (*reader)->offset() == contents.size();
        ASSERT_NE(IsRefused(std::move(files), crashed), crashed && is_last);
      }
    }
  }
}

TEST_F(JournalDamageTest, AfterACrashDamageBeforeTheLastGroupIsRefused) {
  const std::vector<uint64_t> segments =
      *ListSegments(crashed_.get(), kTestDirectory);
  for (const uint64_t number : segments) {
    const std::string path = SegmentPath(kTestDirectory, number);
    const size_t size = crashed_->Contents(path).size();
    FlipBits(*crashed_, path, kStride, [&](auto files, size_t at) {
      const bool is_refused = IsRefused(std::move(files), true);
      // The last group has up to six records of 100 bytes.
      if (number != segments.back() || at + 1500 < size) {
        ASSERT_TRUE(is_refused);
      }
    });
  }
}

// Nothing behind its end says how far a log went: what is left of it is right,
// as after a torn write.
TEST_F(JournalDamageTest, AfterACrashAnEndThatIsCutOffLeavesWhatWasBefore) {
  const std::vector<uint64_t> segments =
      *ListSegments(crashed_.get(), kTestDirectory);
  for (const uint64_t number : segments) {
    const std::string path = SegmentPath(kTestDirectory, number);
    const std::string contents = crashed_->Contents(path);
    const bool is_last = number == segments.back();
    const auto reader = SegmentReader::Open(crashed_.get(), path, nullptr);
    ASSERT_TRUE(reader.ok());
    const size_t header_bytes = (*reader)->offset();
    for (size_t size = 0; size < contents.size();
         size += 1 + random_() % (4 * kStride)) {
      auto files = crashed_->Copy();
      files->SetContents(path, contents.substr(0, size));
      SCOPED_TRACE(absl::StrCat(path, " cut to ", size));
      ASSERT_EQ(IsRefused(std::move(files), true),
                !is_last || size < header_bytes);
      if (HasFailure()) return;
    }
    auto files = crashed_->Copy();
    ASSERT_TRUE(files->Remove(path).ok());
    SCOPED_TRACE(absl::StrCat(path, " removed"));
    ASSERT_EQ(IsRefused(std::move(files), true), !is_last);
  }
}

TEST_F(JournalDamageTest, SalvageKeepsAllButTheDamagedGroup) {
  EXPECT_EQ(LostBySalvage(closed_.get()), 0);
  for (const std::string& path : closed_->Paths()) {
    if (absl::StartsWith(path, kSalvaged)) continue;
    FlipBits(*closed_, path, 8 * kStride, [&](auto files, size_t /*at*/) {
      // A newer version, which this one cannot read.
      if (absl::EndsWith(path, "/FORMAT") &&
          absl::IsFailedPrecondition(
              ReadFormat(files.get(), kTestDirectory).status())) {
        return;
      }
      // A group has at most four records of each of three partitions.
      ASSERT_LE(LostBySalvage(files.get()), 12);
    });
  }
}

TEST_F(JournalDamageTest, SalvageOfATruncatedSegmentKeepsWhatIsThere) {
  const std::vector<uint64_t> segments =
      *ListSegments(closed_.get(), kTestDirectory);
  const std::string path = SegmentPath(kTestDirectory, segments[1]);
  const std::string contents = closed_->Contents(path);
  closed_->SetContents(path, contents.substr(0, contents.size() / 2));
  const size_t lost = LostBySalvage(closed_.get());
  EXPECT_GT(lost, 5);
  EXPECT_LT(lost, 100);
}

TEST_F(JournalDamageTest, CheckSaysWhatIsReadable) {
  auto report = CheckJournal(closed_.get(), kTestDirectory);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->intact) << report->ToString();
  for (uint32_t p = 0; p < kPartitions; ++p) {
    EXPECT_EQ(report->partitions[p].end, end_[p]);
    EXPECT_EQ(report->partitions[p].first, trimmed_[p]);
    EXPECT_EQ(report->partitions[p].records, end_[p] - trimmed_[p]);
  }
  EXPECT_EQ(report->Lost(), 0);
  const uint64_t records = report->Records();
  const std::vector<uint64_t> segments =
      *ListSegments(closed_.get(), kTestDirectory);
  const std::string path = SegmentPath(kTestDirectory, segments[1]);
  std::string contents = closed_->Contents(path);
  contents[contents.size() / 2] ^= 1;
  closed_->SetContents(path, contents);
  report = CheckJournal(closed_.get(), kTestDirectory);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->intact);
  EXPECT_THAT(report->files[1].damage, HasSubstr("byte "));
  EXPECT_LT(report->files[1].readable_bytes, report->files[1].bytes);
  EXPECT_GT(report->files[1].readable_bytes, report->files[1].bytes / 2);
  EXPECT_THAT(report->ToString(), HasSubstr("damaged\n"));
  EXPECT_GT(report->Lost(), 0);
  EXPECT_EQ(report->Lost() + report->Records(), records);
}

TEST_F(JournalDamageTest, CheckSaysWhyAJournalCannotBeOpened) {
  const std::string path = SegmentPath(
      kTestDirectory, ListSegments(closed_.get(), kTestDirectory)->front());
  ASSERT_TRUE(closed_->Remove(path).ok());
  const auto report = CheckJournal(closed_.get(), kTestDirectory);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->intact);
  EXPECT_THAT(report->damage, HasSubstr(path + ": is missing"));
  EXPECT_THAT(report->ToString(), HasSubstr(report->damage));
}

TEST_F(JournalDamageTest, CheckTellsATornTailFromDamage) {
  const std::string path = SegmentPath(
      kTestDirectory, ListSegments(crashed_.get(), kTestDirectory)->back());
  EXPECT_FALSE(CheckJournal(crashed_.get(), kTestDirectory)->HasTornTail());
  const std::string contents = crashed_->Contents(path);
  crashed_->SetContents(path, contents.substr(0, contents.size() - 1));
  const auto report = CheckJournal(crashed_.get(), kTestDirectory);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->intact) << report->ToString();
  EXPECT_TRUE(report->HasTornTail());
  EXPECT_EQ(report->Lost(), 0);
}

// On real files: those in memory have no LOCK.
TEST(JournalLockTest, WhoChecksKeepsServersOut) {
  const TemporaryDirectory directory;
  const std::string& path = directory.path();
  LocalJournalOptions options;
  options.partitions = 1;
  options.own_thread = false;
  auto journal = LocalJournal::Open(path, options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ(LockClosedJournal(options.files, path).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const std::string backup = path + "/backup";
  ASSERT_TRUE(BackUp(journal->get(), options.files, backup).ok());
  // Which has no LOCK, and gets none from who reads it.
  EXPECT_TRUE(LockClosedJournal(options.files, backup).ok());
  EXPECT_FALSE(options.files->OpenToRead(backup + "/LOCK").ok());
  EXPECT_EQ(*LockClosedJournal(options.files, path + "/none"), nullptr);
  *journal = nullptr;
  auto lock = LockClosedJournal(options.files, path);
  ASSERT_TRUE(lock.ok());
  EXPECT_NE(*lock, nullptr);
  EXPECT_EQ(LocalJournal::Open(path, options).status().code(),
            absl::StatusCode::kFailedPrecondition);
  *lock = nullptr;
  EXPECT_TRUE(LocalJournal::Open(path, options).ok());
}

TEST_F(JournalDamageTest, CheckOfNoJournalIsNotFound) {
  EXPECT_EQ(CheckJournal(closed_.get(), "/nothing").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(JournalDamageTest, RecordsCannotPassForGroups) {
  // What follows a torn group looks like a synced one, but for the id.
  GroupEncoder encoder;
  encoder.Start(
      {.id = std::string(kJournalIdBytes, 'x'), .partitions = kPartitions},
      1000, 1000, 1);
  encoder.StartSection(0, 0);
  encoder.Add("forged");
  const std::string forged(encoder.Finish());
  harness_.UseFiles(crashed_->Copy());
  ASSERT_TRUE(harness_.Open().ok());
  ASSERT_TRUE(harness_.AppendNow(0, forged).ok());
  const std::string path = harness_.LastSegment();
  harness_.Crash();
  std::string contents = harness_.files().Contents(path);
  contents[contents.size() - forged.size() - 1] ^= 1;
  harness_.files().SetContents(path, contents);
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.journal().End(0), end_[0]);
}

}  // namespace
}  // namespace timecache::server
